//! Throughput by the size of messages, as figures 6 and 7 of the paper on user-level TCP have it.
//!
//! One end writes messages of one size as fast as it can; each message is one write. The other end reads 64 KB at a time, or a whole message where
//! messages are longer. As *client* the measured TCP connects and sends, and as *server* it accepts and receives. The kernel's TCP is at the other end.
//!
//! Nagle's algorithm is on, or off at the sender (`nodelay`). The paths are those of bulk transfer. gVisor's netstack and *no offload* have a TUN device
//! without offloads; the kernel, Transom and smoltcp have checksums and super-segments. smoltcp has no thread of its own: it fills its send buffer with
//! messages before it sends, so small messages cost it least.
//!
//! Two groups have the paper's own set-up instead: all buffers of 16 KB, at both ends, and one packet of 1500 bytes for each crossing into the kernel.

use super::Settings;
use super::bulk::{self, LEAST_READ, SMOLTCP_BUFFER, into_kernel, smoltcp_receives, smoltcp_sends};
use crate::harness::{Case, Group, Unit, named};
use crate::netstack::NetstackPath;
use crate::network::{PATIENCE, TransomPath, Veth, patient};
use crate::smol::tun::{Help, SmolPath};
use anyhow::ensure;
use std::cell::RefCell;
use std::net::{TcpListener, TcpStream};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use transom_device::tun::TunOffload;
use transom_net::Profile;

const PORT: u16 = 5001;
/// Bytes of a message, and how a case calls them.
const SIZES: [(usize, &str); 8] = [
    (64, "64 B"),
    (256, "256 B"),
    (1 << 10, "1 KB"),
    (4 << 10, "4 KB"),
    (16 << 10, "16 KB"),
    (64 << 10, "64 KB"),
    (256 << 10, "256 KB"),
    (1 << 20, "1 MB"),
];
const KERNEL: &str = "kernel";

/// The measured end.
#[derive(Clone, Copy)]
enum Role {
    Client,
    Server,
}

/// What all cases of a group have in common.
#[derive(Clone, Copy)]
struct Measurement {
    role: Role,
    nodelay: bool,
    /// The size of all buffers; each TCP's own without it.
    buffers: Option<usize>,
    settings: Settings,
}

/// The buffers of the paper.
const OLD_BUFFERS: usize = 16 << 10;

/// Takes one sample with messages of so many bytes.
type Sample = Box<dyn FnMut(Duration, Settings) -> anyhow::Result<f64>>;

impl Measurement {
    /// A case for each size, on the same path.
    fn cases(self, who: &str, sample: Sample) -> Vec<Case> {
        let sample = Rc::new(RefCell::new(sample));
        let case = |(bytes, size): (usize, &str)| {
            let sample = sample.clone();
            let settings = Settings { chunk: bytes, ..self.settings };
            let case = Case::new(named(format!("{who}, {size}")), move |span| {
                sample.borrow_mut()(span, settings)
            });
            if who == KERNEL { case } else { case.against(named(format!("{KERNEL}, {size}"))) }
        };
        SIZES.into_iter().map(case).collect()
    }

    fn kernel(self) -> anyhow::Result<Sample> {
        let veth = Veth::new()?;
        let Measurement { role, nodelay, buffers, .. } = self;
        let (from, to) = match role {
            Role::Client => (veth.other, veth.kernel),
            Role::Server => (veth.kernel, veth.other),
        };
        let listener = to.listen(PORT)?;
        Ok(Box::new(move |span, settings| {
            let sender = sized(from.connect(to.at(PORT))?, buffers)?;
            sender.set_nodelay(nodelay)?;
            let receiver = sized(accept(&listener)?, buffers)?;
            bulk::transfer_in(sender, receiver, reads(settings), span, settings)
        }))
    }

    fn transom(self, offload: TunOffload) -> anyhow::Result<Sample> {
        let path = TransomPath::new(offload, self.profile()?, Duration::ZERO)?;
        let Measurement { nodelay, buffers, .. } = self;
        Ok(match self.role {
            Role::Client => {
                let listener = path.kernel.listen(PORT)?;
                Box::new(move |span, settings| {
                    let sender = path.connect(path.kernel.at(PORT))?;
                    sender.set_nodelay(nodelay)?;
                    let receiver = sized(accept(&listener)?, buffers)?;
                    bulk::transfer_in(sender, receiver, reads(settings), span, settings)
                })
            }
            Role::Server => {
                let listener = path.stack.listen(path.at(PORT))?;
                Box::new(move |span, settings| {
                    let sender = sized(path.kernel.connect(path.at(PORT))?, buffers)?;
                    sender.set_nodelay(nodelay)?;
                    let (receiver, _) = listener.accept()?;
                    receiver.set_read_timeout(Some(PATIENCE))?;
                    bulk::transfer_in(sender, receiver, reads(settings), span, settings)
                })
            }
        })
    }

    fn profile(self) -> anyhow::Result<Profile> {
        let Some(size) = self.buffers else { return Ok(Profile::classic()) };
        let classic =
            transom_tcp::compose::compose_classic(&format!("fixed-window(size={size}B)"))?;
        Ok(classic.with_send_buffer(size).with_max_send_buffer(size))
    }

    fn smoltcp(self) -> anyhow::Result<Sample> {
        let mut path = SmolPath::new(Help::GivenTheDevice, 1500, SMOLTCP_BUFFER)?;
        path.set_nodelay(self.nodelay);
        let nodelay = self.nodelay;
        Ok(match self.role {
            Role::Client => {
                let listener = path.kernel.listen(PORT)?;
                Box::new(move |span, settings| {
                    smoltcp_sends(&mut path, &listener, PORT, span, settings)
                })
            }
            Role::Server => Box::new(move |span, settings| {
                let (kernel, remote) = (path.kernel.clone(), path.at(PORT));
                let connect = move || {
                    let stream = kernel.connect(remote)?;
                    stream.set_nodelay(nodelay)?;
                    Ok(stream)
                };
                smoltcp_receives(&mut path, PORT, connect, reads(settings), span, settings)
            }),
        })
    }

    fn netstack(self) -> anyhow::Result<Sample> {
        let mut path = NetstackPath::new()?;
        let nodelay = self.nodelay;
        Ok(match self.role {
            Role::Client => {
                let listener = path.kernel.listen(PORT)?;
                Box::new(move |span, settings| {
                    path.start_sending(PORT, settings.chunk, nodelay)?;
                    into_kernel(&listener, span, settings, |stop| {
                        while !stop.load(Ordering::Relaxed) {
                            std::thread::sleep(Duration::from_millis(1));
                        }
                        match path.stop_sending() {
                            Ok(sent) => (sent, Ok(())),
                            Err(error) => (0, Err(error)),
                        }
                    })
                })
            }
            Role::Server => Box::new(move |span, settings| {
                path.start_receiving(PORT, reads(settings), span)?;
                let (kernel, remote) = (path.kernel.clone(), path.at(PORT));
                let stop = AtomicBool::new(false);
                std::thread::scope(|scope| {
                    let sending = scope.spawn(|| -> anyhow::Result<u64> {
                        settings.place_peer()?;
                        let stream = kernel.connect(remote)?;
                        stream.set_nodelay(nodelay)?;
                        bulk::send(stream, settings.chunk, &stop)
                    });
                    let rate = path.rate();
                    stop.store(true, Ordering::Relaxed);
                    let sent = bulk::joined(sending)?;
                    let (rate, received) = (rate?, path.received()?);
                    ensure!(sent == received, "{sent} bytes were sent and {received} received");
                    Ok(rate)
                })
            }),
        })
    }

    /// The paper's set-up.
    fn build_old(self) -> anyhow::Result<Group> {
        let mut cases = self.cases(KERNEL, self.kernel()?);
        cases.extend(self.cases("Transom, no offload", self.transom(TunOffload::None)?));
        Ok(Group::new(Unit::GigabitsPerSecond, cases))
    }

    fn build(self) -> anyhow::Result<Group> {
        let mut cases = self.cases(KERNEL, self.kernel()?);
        cases.extend(self.cases("Transom", self.transom(TunOffload::Segmentation)?));
        cases.extend(self.cases("smoltcp", self.smoltcp()?));
        cases.extend(self.cases("Transom, no offload", self.transom(TunOffload::None)?));
        match self.netstack() {
            Ok(netstack) => {
                cases.extend(self.cases("gVisor, no offload", netstack));
                Ok(Group::new(Unit::GigabitsPerSecond, cases))
            }
            Err(error) => {
                let group = Group::new(Unit::GigabitsPerSecond, cases);
                Ok(group.note(format!("gVisor's netstack is left out: {error:#}")))
            }
        }
    }
}

fn reads(settings: Settings) -> usize {
    settings.chunk.max(LEAST_READ)
}

/// A socket whose buffers hold so much. The kernel takes twice that for its own bookkeeping.
fn sized(stream: TcpStream, buffers: Option<usize>) -> anyhow::Result<TcpStream> {
    if let Some(size) = buffers {
        rustix::net::sockopt::set_socket_send_buffer_size(&stream, size)?;
        rustix::net::sockopt::set_socket_recv_buffer_size(&stream, size)?;
    }
    Ok(stream)
}

fn accept(listener: &TcpListener) -> anyhow::Result<TcpStream> {
    let (stream, _) = listener.accept()?;
    patient(&stream)?;
    Ok(stream)
}

/// Builds the group in which the measured end connects and sends, with Nagle's algorithm.
///
/// # Errors
/// When one of the paths cannot be made.
pub fn build_client(settings: Settings) -> anyhow::Result<Group> {
    Measurement { role: Role::Client, nodelay: false, buffers: None, settings }.build()
}

/// The same without Nagle's algorithm.
///
/// # Errors
/// As there.
pub fn build_client_nodelay(settings: Settings) -> anyhow::Result<Group> {
    Measurement { role: Role::Client, nodelay: true, buffers: None, settings }.build()
}

/// Builds the group in which the measured end accepts and receives, with Nagle's algorithm at the sender.
///
/// # Errors
/// When one of the paths cannot be made.
pub fn build_server(settings: Settings) -> anyhow::Result<Group> {
    Measurement { role: Role::Server, nodelay: false, buffers: None, settings }.build()
}

/// The same without Nagle's algorithm.
///
/// # Errors
/// As there.
pub fn build_server_nodelay(settings: Settings) -> anyhow::Result<Group> {
    Measurement { role: Role::Server, nodelay: true, buffers: None, settings }.build()
}

/// Builds the group of the paper's set-up in which the measured end connects and sends.
///
/// # Errors
/// As there.
pub fn build_client_old(settings: Settings) -> anyhow::Result<Group> {
    let buffers = Some(OLD_BUFFERS);
    Measurement { role: Role::Client, nodelay: false, buffers, settings }.build_old()
}

/// Builds the group of the paper's set-up in which the measured end accepts and receives.
///
/// # Errors
/// As there.
pub fn build_server_old(settings: Settings) -> anyhow::Result<Group> {
    let buffers = Some(OLD_BUFFERS);
    Measurement { role: Role::Server, nodelay: false, buffers, settings }.build_old()
}
