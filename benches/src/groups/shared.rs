//! Transom on the host's own address by way of the broker, beside Transom on a TUN interface with an address of its own; and what the host's own
//! traffic loses by it.
//!
//! *Over the wire* the peer is a neighbour. Its packets come to the host's uplink, and the kernel either routes them to the TUN interface, or a
//! program at the uplink redirects them. *To its host* the peer is the kernel of the same host. *By a process* is a TUN interface whose packets
//! another process hands over ([`crate::handed`]).

use super::Settings;
use super::bulk::{self, transfer};
use super::round_trip::{Waiting, beside_echo, listen, round_trips, stream_trip};
use crate::handed::{self, HandingProcess};
use crate::harness::{Bound, Case, Group, Unit};
use crate::lent_address::LentHost;
use crate::network::{KernelEnd, OTHER, PATIENCE, ROUTED, Veth, patient, routed_tun};
use std::any::Any;
use std::net::SocketAddr;
use std::time::Duration;
use transom_broker::client::bind;
use transom_device::Device;
use transom_device::tun::TunOffload;
use transom_net::{Profile, Stack};

const PORT: u16 = 5001;
const ECHO: u16 = 7;
const PLAIN: &str = "TUN, over the wire";
const SHARED: &str = "shared, over the wire";
const HANDED: &str = "TUN by a process, over the wire";
const PLAIN_LOCAL: &str = "TUN, to its host";
const SHARED_LOCAL: &str = "shared, to its host";
/// The aims.
const LEAST: f64 = 0.95;
const MOST: f64 = 1.05;

/// A stack, its kernel peer, and what has to stay for as long as both.
struct Path {
    stack: Stack,
    address: [u8; 4],
    peer: Peer,
}

enum Peer {
    /// The neighbour, and the process that hands packets over, if there is one.
    Neighbour(Veth, #[expect(dead_code, reason = "it is kept, not used")] Option<HandingProcess>),
    /// The neighbour of a host with a broker.
    NeighbourOf(LentHost),
    /// The host itself.
    Host(LentHost),
    /// The host of a TUN interface.
    Tun(KernelEnd),
}

impl Peer {
    fn end(&self) -> &KernelEnd {
        match self {
            Peer::Neighbour(veth, _) => &veth.kernel,
            Peer::NeighbourOf(host) => &host.veth.kernel,
            Peer::Host(host) => host.end(),
            Peer::Tun(end) => end,
        }
    }
}

impl Path {
    fn on_tun(
        veth: Veth,
        device: impl Device + 'static,
        kept: Option<HandingProcess>,
        busy_poll: Duration,
    ) -> anyhow::Result<Self> {
        let builder = Stack::builder().profile(Profile::classic()).busy_poll(busy_poll);
        let stack = builder.address(ROUTED.into(), 24).start(device)?;
        Ok(Path { stack, address: ROUTED, peer: Peer::Neighbour(veth, kept) })
    }

    fn plain(busy_poll: Duration) -> anyhow::Result<Self> {
        let veth = Veth::new()?;
        let tun = routed_tun(&veth, TunOffload::Segmentation)?;
        Self::on_tun(veth, tun, None, busy_poll)
    }

    fn handed(busy_poll: Duration) -> anyhow::Result<Self> {
        let veth = Veth::new()?;
        let (process, device) = handed::start(&veth, 1..=u16::MAX)?;
        Self::on_tun(veth, device, Some(process), busy_poll)
    }

    fn shared(busy_poll: Duration) -> anyhow::Result<Self> {
        let host = LentHost::new()?;
        let stack = host.stack(Profile::classic(), busy_poll)?;
        Ok(Path { stack, address: OTHER, peer: Peer::NeighbourOf(host) })
    }

    fn shared_local(busy_poll: Duration) -> anyhow::Result<Self> {
        let Path { stack, peer, address } = Self::shared(busy_poll)?;
        let peer = match peer {
            Peer::NeighbourOf(host) => Peer::Host(host),
            peer => peer,
        };
        Ok(Path { stack, address, peer })
    }

    fn plain_local(busy_poll: Duration) -> anyhow::Result<Self> {
        let offload = TunOffload::Segmentation;
        let path = crate::network::TransomPath::new(offload, Profile::classic(), busy_poll)?;
        Ok(Path { stack: path.stack, address: OTHER, peer: Peer::Tun(path.kernel) })
    }

    fn at(&self, port: u16) -> SocketAddr {
        (self.address, port).into()
    }

    /// Where the stack's ports are the kernel's.
    fn place(&self) -> Option<&KernelEnd> {
        match &self.peer {
            Peer::NeighbourOf(host) | Peer::Host(host) => Some(host.end()),
            _ => None,
        }
    }

    fn inside<T: Send>(
        &self,
        work: impl FnOnce() -> std::io::Result<T> + Send,
    ) -> std::io::Result<T> {
        match self.place() {
            Some(end) => end.run(work)?,
            None => work(),
        }
    }

    fn connect(&self, port: u16) -> std::io::Result<transom_net::TcpStream> {
        let to = self.peer.end().at(port);
        let connect = || transom_net::TcpStream::connect_timeout(&self.stack, &to, PATIENCE);
        let stream = self.inside(connect)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(stream)
    }

    fn listen(&self, port: u16) -> std::io::Result<transom_net::TcpListener> {
        let at = self.at(port);
        self.inside(|| self.stack.listen(at))
    }
}

type Make = fn(Duration) -> anyhow::Result<Path>;

fn send(name: &'static str, make: Make, settings: Settings) -> anyhow::Result<Case> {
    let path = make(Duration::ZERO)?;
    let listener = path.peer.end().listen(PORT)?;
    Ok(Case::new(name, move |span| {
        let sender = path.connect(PORT)?;
        let (receiver, _) = listener.accept()?;
        patient(&receiver)?;
        transfer(sender, receiver, span, settings)
    }))
}

fn receive(name: &'static str, make: Make, settings: Settings) -> anyhow::Result<Case> {
    let path = make(Duration::ZERO)?;
    let listener = path.listen(PORT)?;
    Ok(Case::new(name, move |span| {
        let sender = path.peer.end().connect(path.at(PORT))?;
        let (receiver, _) = listener.accept()?;
        receiver.set_read_timeout(Some(PATIENCE))?;
        transfer(sender, receiver, span, settings)
    }))
}

fn trip(name: &'static str, make: Make, settings: Settings) -> anyhow::Result<Case> {
    let path = make(Duration::ZERO)?;
    let listener = listen(path.peer.end(), ECHO)?;
    Ok(Case::new(name, move |span| {
        beside_echo(&listener, settings, Waiting::Asleep, || {
            let mut stream = path.connect(ECHO)?;
            stream.set_nodelay(true)?;
            round_trips(|byte| stream_trip(&mut stream, byte), span)
        })
    }))
}

type Sample = fn(&'static str, Make, Settings) -> anyhow::Result<Case>;

/// All paths by one measurement.
fn paths(sample: Sample, bound: Bound, settings: Settings) -> anyhow::Result<Vec<Case>> {
    Ok(vec![
        sample(PLAIN, Path::plain, settings)?,
        sample(SHARED, Path::shared, settings)?.figure(PLAIN, bound).against(HANDED),
        sample(HANDED, Path::handed, settings)?.against(PLAIN),
        sample(PLAIN_LOCAL, Path::plain_local, settings)?,
        sample(SHARED_LOCAL, Path::shared_local, settings)?.figure(PLAIN_LOCAL, bound),
    ])
}

/// Builds the group in which Transom sends.
///
/// # Errors
/// When one of the paths cannot be made.
pub fn build_send(settings: Settings) -> anyhow::Result<Group> {
    let mut cases = paths(send, Bound::AtLeast(LEAST), settings)?;
    cases.push(bulk::kernel_to_kernel(settings)?.against(PLAIN));
    Ok(Group::new(Unit::GigabitsPerSecond, cases))
}

/// Builds the group in which Transom receives.
///
/// # Errors
/// When one of the paths cannot be made.
pub fn build_recv(settings: Settings) -> anyhow::Result<Group> {
    let mut cases = paths(receive, Bound::AtLeast(LEAST), settings)?;
    cases.push(bulk::kernel_to_kernel(settings)?.against(PLAIN));
    Ok(Group::new(Unit::GigabitsPerSecond, cases))
}

/// Builds the group of round trips.
///
/// # Errors
/// When one of the paths cannot be made.
pub fn build_trip(settings: Settings) -> anyhow::Result<Group> {
    Ok(Group::new(Unit::Microseconds, paths(trip, Bound::AtMost(MOST), settings)?))
}

/// What the host's own traffic may lose.
const KERNEL_LEAST: f64 = 0.97;
const KERNEL_MOST: f64 = 1.03;
/// So many ports are held in the last case.
const PORTS: u16 = 500;

/// A wire between two kernels, perhaps with a broker on one.
enum Wire {
    Bare(Veth),
    Broker(LentHost, #[expect(dead_code, reason = "they are kept, not used")] Box<dyn Any>),
}

impl Wire {
    fn bare() -> anyhow::Result<Self> {
        Veth::new().map(Wire::Bare)
    }

    fn broker() -> anyhow::Result<Self> {
        Ok(Wire::Broker(LentHost::new()?, Box::new(())))
    }

    fn ports() -> anyhow::Result<Self> {
        let host = LentHost::new()?;
        let mut lease = host.lease()?;
        let mut held = Vec::new();
        for port in 20_000..20_000 + PORTS {
            let socket = host.end().run(|| bind((OTHER, port).into(), &Default::default()))??;
            lease.add_port(&socket)?;
            held.push(socket);
        }
        Ok(Wire::Broker(host, Box::new((lease, held))))
    }

    fn veth(&self) -> &Veth {
        match self {
            Wire::Bare(veth) => veth,
            Wire::Broker(host, _) => &host.veth,
        }
    }
}

const WITHOUT: &str = "without a broker";
const AGAIN: &str = "without a broker, to compare";
const WITH: &str = "with a broker";
const WITH_PORTS: &str = "with a broker, 500 ports held";

/// Between the kernel of the host and that of its neighbour.
fn wires(
    sample: impl Fn(&'static str, Wire) -> anyhow::Result<Case>,
    bound: Bound,
) -> anyhow::Result<Vec<Case>> {
    Ok(vec![
        sample(WITHOUT, Wire::bare()?)?,
        sample(AGAIN, Wire::bare()?)?.against(WITHOUT),
        sample(WITH, Wire::broker()?)?.figure(WITHOUT, bound),
        sample(WITH_PORTS, Wire::ports()?)?.figure(WITHOUT, bound),
    ])
}

/// Builds the group in which the host's kernel receives.
///
/// # Errors
/// When one of the wires cannot be made.
pub fn build_kernel_recv(settings: Settings) -> anyhow::Result<Group> {
    let sample = |name, wire: Wire| {
        let listener = wire.veth().other.listen(PORT)?;
        Ok(Case::new(name, move |span| {
            let sender = wire.veth().kernel.connect(wire.veth().other.at(PORT))?;
            let (receiver, _) = listener.accept()?;
            patient(&receiver)?;
            transfer(sender, receiver, span, settings)
        }))
    };
    let cases = wires(sample, Bound::AtLeast(KERNEL_LEAST))?;
    Ok(Group::new(Unit::GigabitsPerSecond, cases))
}

/// Builds the group in which the host's kernel sends.
///
/// # Errors
/// When one of the wires cannot be made.
pub fn build_kernel_send(settings: Settings) -> anyhow::Result<Group> {
    let sample = |name, wire: Wire| {
        let listener = wire.veth().kernel.listen(PORT)?;
        Ok(Case::new(name, move |span| {
            let sender = wire.veth().other.connect(wire.veth().kernel.at(PORT))?;
            let (receiver, _) = listener.accept()?;
            patient(&receiver)?;
            transfer(sender, receiver, span, settings)
        }))
    };
    let cases = wires(sample, Bound::AtLeast(KERNEL_LEAST))?;
    Ok(Group::new(Unit::GigabitsPerSecond, cases))
}

/// Builds the group of round trips with the host's kernel.
///
/// # Errors
/// When one of the wires cannot be made.
pub fn build_kernel_trip(settings: Settings) -> anyhow::Result<Group> {
    let sample = |name, wire: Wire| {
        let listener = listen(&wire.veth().other, ECHO)?;
        Ok(Case::new(name, move |span| {
            beside_echo(&listener, settings, Waiting::Asleep, || {
                let mut stream = wire.veth().kernel.connect(wire.veth().other.at(ECHO))?;
                stream.set_nodelay(true)?;
                patient(&stream)?;
                round_trips(|byte| stream_trip(&mut stream, byte), span)
            })
        }))
    };
    let cases = wires(sample, Bound::AtMost(KERNEL_MOST))?;
    Ok(Group::new(Unit::Microseconds, cases))
}
