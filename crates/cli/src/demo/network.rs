//! The two ends of the demo: Transom, and the kernel in a namespace (or a second Transom in memory).

use super::Args;
use super::algorithms::KernelSide;
use super::observe::{Observed, Seen, Timeline};
use crate::network::CaptureFile;
use crate::socket::{Listener, Socket};
use crate::thread::lock;
use anyhow::{Context, Result};
use rustix::net::{AddressFamily, SocketFlags, SocketType, ipproto, socket_with};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::{Arc, Mutex};
use transom_device::memory::{MemoryConfig, pair};
use transom_device::namespace::{Namespace, enter_user_namespace};
use transom_device::tun::Tun;
use transom_device::{Device, Tapped, tcp_info};
use transom_lab::{Emulated, PathConfig, PathMonitor};
use transom_net::{Profile, Stack};
use transom_report::QueueTrace;
use transom_sim::link::{QueueEvent, QueueSample};
use transom_tcp::{ConnectionState, Untold};

const OURS: &str = "192.0.2.2";
const PEERS: &str = "192.0.2.1";
const PREFIX: u8 = 24;

/// Whether this process may make its own network, or the reason why not.
pub(crate) type Privileges = Result<(), String>;

/// Gets what is needed for a namespace. To be called before any thread exists.
pub(crate) fn prepare(memory: bool) -> Privileges {
    if memory {
        return Err("as asked for by --memory".into());
    }
    enter_user_namespace().map_err(|error| format!("{:#}", anyhow::Error::new(error)))
}

/// The host at the other end.
pub(crate) enum Peer {
    Kernel(Namespace, KernelSide),
    /// A second Transom, and why it is not the kernel.
    Memory(Stack, String),
}

/// The demo's network.
pub(crate) struct Network {
    pub(crate) stack: Stack,
    /// Transom's congestion control.
    congestion: &'static str,
    pub(crate) peer: Peer,
    pub(crate) seen: Arc<Mutex<Seen>>,
    /// Towards the peer, and back.
    pub(crate) queues: [Arc<Mutex<QueueTrace>>; 2],
    pub(crate) monitor: PathMonitor,
    capture: CaptureFile,
}

/// Makes the network.
pub(crate) fn build(
    args: &Args,
    profile: Profile,
    privileges: Privileges,
    pcap: &Path,
    timeline: &Timeline,
) -> Result<Network> {
    let opened = privileges.and_then(|()| open_tun().map_err(|error| format!("{error:#}")));
    match opened {
        Ok((namespace, tun)) => {
            let ours = profile.congestion.name();
            let kernel = KernelSide::find(&namespace, args.kernel_congestion, ours)?;
            assemble(args, profile, tun, Peer::Kernel(namespace, kernel), pcap, timeline)
        }
        Err(reason) => {
            let config = MemoryConfig::default().with_queue_packets(10_000);
            let (left, right) = pair(&config).context("cannot make the in-memory network")?;
            let stack = Stack::builder()
                .profile(profile.clone())
                .address(address(PEERS), PREFIX)
                .start(right)
                .context("cannot start the peer")?;
            assemble(args, profile, left, Peer::Memory(stack, reason), pcap, timeline)
        }
    }
}

fn address(text: &str) -> IpAddr {
    text.parse().expect("a literal address")
}

fn open_tun() -> Result<(Namespace, Tun)> {
    let namespace = Namespace::new().context("no network namespace")?;
    let tun = namespace
        .run(|| {
            Tun::builder()
                .name("transom%d")
                .address(format!("{PEERS}/{PREFIX}").parse().expect("a literal prefix"))
                .open()
        })
        .context("cannot enter the namespace")?
        .context("no TUN device")?;
    Ok((namespace, tun))
}

fn queue_observer(trace: &Arc<Mutex<QueueTrace>>) -> impl FnMut(QueueSample) + Send + use<> {
    let trace = Arc::clone(trace);
    move |sample| {
        let mut trace = lock(&trace);
        let point = (sample.at.as_secs_f64(), sample.length.bytes as f64);
        if sample.event == QueueEvent::Dropped {
            trace.drops.push(point);
        } else {
            trace.lengths.push(point);
        }
    }
}

fn assemble<D: Device + 'static>(
    args: &Args,
    profile: Profile,
    device: D,
    peer: Peer,
    pcap: &Path,
    timeline: &Timeline,
) -> Result<Network> {
    let link = args.link();
    let config = PathConfig { egress: link.clone(), ingress: link, seed: args.seed };
    let queues = [Arc::default(), Arc::default()];
    let clock = timeline.clone();
    let emulated = Emulated::new(device, &config)
        .context("cannot emulate the path")?
        .with_clock(move || clock.now())
        .observe_queues(queues.each_ref().map(queue_observer));
    let monitor = emulated.monitor();
    let snap = if args.snap == 0 { u32::MAX } else { args.snap.max(64) };
    let (capture, writer) = CaptureFile::create(pcap, snap)?;
    let tapped = Tapped::new(emulated, writer, "transom")?;
    let capture = capture.with_status(tapped.status());
    let seen = Arc::new(Mutex::new(Seen::default()));
    let observed = Observed::new(tapped, timeline.clone(), Arc::clone(&seen));
    let congestion = profile.congestion.name();
    let stack = Stack::builder()
        .profile(profile)
        .address(address(OURS), PREFIX)
        .start(observed)
        .context("cannot start Transom")?;
    Ok(Network { stack, congestion, peer, seen, queues, monitor, capture })
}

/// The state of a sender's connection. All that is outstanding counts as in flight with the kernel.
pub(crate) fn state_of(socket: &Socket) -> Option<ConnectionState> {
    let Socket::Kernel(stream) = socket else { return socket.info() };
    let mut told = ConnectionState::of_tcp_info(tcp_info(stream).ok()?.as_bytes())?;
    (told.in_flight, told.min_rtt) = (told.outstanding, None);
    told.counters.timeouts = 0;
    told.untold |= Untold::TIMEOUTS;
    Some(told)
}

impl Network {
    pub(crate) fn peer_name(&self) -> &'static str {
        match self.peer {
            Peer::Kernel(..) => "the kernel",
            Peer::Memory(..) => "a second Transom",
        }
    }

    /// Describes the network in one or two sentences.
    pub(crate) fn describe(&self) -> String {
        match &self.peer {
            Peer::Kernel(..) => format!(
                "Transom at {OURS} and the kernel's TCP at {PEERS}, in a network namespace of their own"
            ),
            Peer::Memory(_, reason) => format!(
                "Using the in-memory network with a second Transom in place of the kernel's TCP: {reason}"
            ),
        }
    }

    /// Transom's congestion control, and the peer's.
    pub(crate) fn congestion(&self) -> [&str; 2] {
        match &self.peer {
            Peer::Kernel(_, kernel) => [self.congestion, &kernel.name],
            Peer::Memory(..) => [self.congestion; 2],
        }
    }

    /// Describes the congestion control of both sides in one sentence.
    pub(crate) fn describe_congestion(&self) -> String {
        let [ours, peers] = self.congestion();
        let why = match &self.peer {
            Peer::Kernel(_, KernelSide { why: Some(why), .. }) => format!(", as {why}"),
            _ => String::new(),
        };
        format!("Congestion control: Transom {ours}, {} {peers}{why}", self.peer_name())
    }

    /// Has the peer listen.
    pub(crate) fn listen(&self, port: u16) -> Result<(Listener, SocketAddr)> {
        let address = SocketAddr::new(address(PEERS), port);
        let listener = match &self.peer {
            Peer::Kernel(namespace, kernel) => {
                let listen = || {
                    let listener = std::net::TcpListener::bind(address)?;
                    kernel.set(&listener)?;
                    Ok::<_, io::Error>(listener)
                };
                let listener = namespace.run(listen)?.context("the kernel cannot listen")?;
                Listener::Kernel(listener)
            }
            Peer::Memory(stack, _) => Listener::Transom(stack.listen(address)?),
        };
        Ok((listener, address))
    }

    /// Has the peer connect to us.
    pub(crate) fn connect_from_peer(&self, port: u16) -> Result<Socket> {
        let address = SocketAddr::new(address(OURS), port);
        Ok(match &self.peer {
            Peer::Kernel(namespace, kernel) => {
                // The standard library has no socket that is not connected yet.
                let connect = || {
                    let flags = SocketFlags::CLOEXEC;
                    let tcp = Some(ipproto::TCP);
                    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, tcp)?;
                    kernel.set(&socket)?;
                    rustix::net::connect(&socket, &address)?;
                    Ok::<_, io::Error>(std::net::TcpStream::from(socket))
                };
                let stream = namespace.run(connect)?;
                Socket::Kernel(stream.context("the kernel cannot connect to Transom")?)
            }
            Peer::Memory(stack, _) => Socket::Transom(stack.connect(address)?),
        })
    }

    pub(crate) fn own_address(port: u16) -> SocketAddr {
        SocketAddr::new(address(OURS), port)
    }

    /// Ends everything and closes the capture. Returns how many packets it holds, or why it is incomplete.
    pub(crate) fn finish(self) -> Result<u64, String> {
        let Network { stack, peer, capture, .. } = self;
        stack.drain(std::time::Duration::from_secs(5));
        drop(stack);
        drop(peer);
        capture.finish().map_err(|error| error.to_string())
    }
}
