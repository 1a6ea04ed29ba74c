//! The two kinds of path: a veth pair between two kernels, and a TUN between Transom and a kernel.
//!
//! Each path has namespaces of its own, so nothing outside is touched and nothing is left behind: when the process ends,
//! however it ends, the kernel removes them. All of them get the same TCP settings, Linux' own defaults, written down
//! here so that a tuned system does not shift the comparison.

use anyhow::Context;
use rustix::net::sockopt::set_tcp_congestion;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;
use transom_device::interface::InterfaceState;
use transom_device::namespace::Namespace;
use transom_device::tun::{Tun, TunBuilder, TunOffload};
use transom_net::{Profile, Stack};

/// The address of the kernel that Transom or the other kernel talks to.
pub const KERNEL: [u8; 4] = [192, 0, 2, 1];
/// The address at the other end.
pub const OTHER: [u8; 4] = [192, 0, 2, 2];
/// The host's address on a TUN interface behind it, and that network.
const ROUTER: &str = "198.51.100.1/24";
const ROUTED_NETWORK: &str = "198.51.100.0/24";
/// Transom's address there.
pub const ROUTED: [u8; 4] = [198, 51, 100, 2];
/// Nothing on these paths takes so long; a wait that does is an error instead of a benchmark that hangs.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// The settings that decide about speed, at their defaults (ip-sysctl.rst of the kernel's documentation).
const SYSCTLS: &[(&str, &str)] = &[
    // The largest sizes are those of Transom's default profile, too.
    ("net.ipv4.tcp_rmem", "4096 131072 6291456"),
    ("net.ipv4.tcp_wmem", "4096 16384 4194304"),
];

/// The kernel's congestion control, at its default too. A system may have been told to use another; where that is BBR, its
/// pacing is what would be measured. It is set for each socket: only the first namespace may change the default freely.
const CONGESTION_CONTROL: &str = "cubic";

/// A namespace with the settings above.
fn namespace() -> anyhow::Result<Namespace> {
    let namespace = Namespace::new().context("making a network namespace")?;
    for (name, value) in SYSCTLS {
        namespace.set_sysctl(name, value).with_context(|| format!("setting {name}"))?;
    }
    Ok(namespace)
}

/// One kernel's end of a path: where its sockets are opened.
#[derive(Debug)]
pub struct KernelEnd {
    namespace: Namespace,
    address: [u8; 4],
}

impl KernelEnd {
    /// An address at this end.
    pub fn at(&self, port: u16) -> SocketAddr {
        (self.address, port).into()
    }

    /// Listens at a port of this end.
    ///
    /// # Errors
    /// The operating system's.
    pub fn listen(&self, port: u16) -> io::Result<TcpListener> {
        let listener = self.namespace.run(|| TcpListener::bind(self.at(port)))??;
        // Those that are accepted take it over.
        set_tcp_congestion(&listener, CONGESTION_CONTROL)?;
        Ok(listener)
    }

    /// Listens at a port of all addresses, also of those that are still to come.
    ///
    /// # Errors
    /// The operating system's.
    pub fn listen_everywhere(&self, port: u16) -> io::Result<TcpListener> {
        let everywhere = std::net::Ipv4Addr::UNSPECIFIED;
        let listener = self.namespace.run(|| TcpListener::bind((everywhere, port)))??;
        set_tcp_congestion(&listener, CONGESTION_CONTROL)?;
        Ok(listener)
    }

    /// Connects from this end.
    ///
    /// # Errors
    /// The operating system's.
    pub fn connect(&self, remote: SocketAddr) -> io::Result<TcpStream> {
        let stream = self.namespace.run(|| kernel_socket(SocketFlags::CLOEXEC))??;
        patient(&stream)?;
        rustix::net::connect(&stream, &remote)?;
        Ok(stream)
    }

    /// Gives an interface an address, and sets it up: for a TUN that another process has opened here.
    ///
    /// # Errors
    /// The operating system's.
    pub fn join(&self, interface: &str, address: &str) -> anyhow::Result<()> {
        let mut interfaces = self.namespace.interfaces();
        interfaces.add_address(interface, address.parse()?)?;
        interfaces.set_up(interface, true)?;
        Ok(())
    }

    /// The Ethernet address of this end's wire, and its number.
    ///
    /// # Errors
    /// The operating system's.
    pub fn wire(&self) -> io::Result<InterfaceState> {
        Ok(self.namespace.interfaces().state("veth0")?)
    }

    /// How many packets have come in by this end's wire.
    ///
    /// # Errors
    /// The operating system's.
    pub fn received(&self) -> io::Result<u64> {
        Ok(self.namespace.interfaces().state("veth0")?.counters.received)
    }

    /// Calls `work` at this end.
    ///
    /// # Errors
    /// The operating system's.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        Ok(self.namespace.run(work)?)
    }

    /// Moves the calling thread to this end for good.
    ///
    /// # Errors
    /// The operating system's.
    pub fn enter(&self) -> io::Result<()> {
        Ok(self.namespace.enter()?)
    }
}

/// A socket of the calling thread's kernel that is still to be connected.
///
/// # Errors
/// The operating system's.
pub fn kernel_socket(flags: SocketFlags) -> io::Result<TcpStream> {
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
    // Before the connection is made: what BBR has turned on for it, another one does not turn off.
    set_tcp_congestion(&socket, CONGESTION_CONTROL)?;
    Ok(socket.into())
}

/// Bounds every wait of a kernel's socket.
///
/// # Errors
/// The operating system's.
pub fn patient(stream: &TcpStream) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))
}

/// Two kernels' network stacks joined by a veth pair with the offloads it has by default.
#[derive(Debug)]
pub struct Veth {
    /// One end.
    pub kernel: KernelEnd,
    /// The other one.
    pub other: KernelEnd,
}

impl Veth {
    /// Makes both namespaces and joins them.
    ///
    /// # Errors
    /// When the system refuses namespaces or knows no veth.
    pub fn new() -> anyhow::Result<Self> {
        let (here, there) = (namespace()?, namespace()?);
        here.add_veth("veth0", &there, "veth0").context("making a veth pair")?;
        for (namespace, address) in [(&here, "192.0.2.1/24"), (&there, "192.0.2.2/24")] {
            let mut interfaces = namespace.interfaces();
            interfaces.add_address("veth0", address.parse()?)?;
            interfaces.set_up("veth0", true)?;
        }
        Ok(Veth {
            kernel: KernelEnd { namespace: here, address: KERNEL },
            other: KernelEnd { namespace: there, address: OTHER },
        })
    }
}

/// A host with nothing but loopback. Somebody may open a TUN interface there and give it the address [`KERNEL`].
///
/// # Errors
/// When the system refuses namespaces.
pub fn alone() -> anyhow::Result<KernelEnd> {
    let namespace = namespace()?;
    namespace.interfaces().set_up("lo", true)?;
    Ok(KernelEnd { namespace, address: KERNEL })
}

/// A TUN interface beside the veth pair of `host`. The kernel forwards packets for `network` there.
///
/// # Errors
/// When there is no TUN, or the routes are refused.
pub fn routed_tun(veth: &Veth, offload: TunOffload) -> anyhow::Result<Tun> {
    for name in ["net.ipv4.ip_forward", "net.ipv4.conf.all.forwarding"] {
        veth.other.namespace.set_sysctl(name, "1").with_context(|| format!("setting {name}"))?;
    }
    let builder = Tun::builder().offload(offload).address(ROUTER.parse()?);
    let tun = veth.other.run(|| builder.open())?.context("opening a TUN device")?;
    let mut interfaces = veth.kernel.namespace.interfaces();
    interfaces.add_route("veth0", ROUTED_NETWORK.parse()?, Some(OTHER.into()))?;
    Ok(tun)
}

/// A TUN whose kernel end is in a namespace; who is at the other end is up to the caller.
///
/// # Errors
/// When the system refuses namespaces or there is no TUN.
pub fn tun(offload: TunOffload, mtu: u16) -> anyhow::Result<(KernelEnd, Tun)> {
    open_tun(Tun::builder().offload(offload).mtu(mtu))
}

/// The same with so many queues, as a stack has it that sends in batches: without offloads the kernel joins its packets.
///
/// # Errors
/// As [`tun`].
pub fn stacks_tun(
    queues: usize,
    offload: TunOffload,
    mtu: u16,
) -> anyhow::Result<(KernelEnd, Tun)> {
    let builder = Tun::builder().queues(queues).offload(offload).mtu(mtu);
    open_tun(builder.joining(offload == TunOffload::None))
}

fn open_tun(builder: TunBuilder) -> anyhow::Result<(KernelEnd, Tun)> {
    let namespace = namespace()?;
    let builder = builder.address("192.0.2.1/24".parse()?);
    let tun = namespace.run(|| builder.open())?.context("opening a TUN device")?;
    Ok((KernelEnd { namespace, address: KERNEL }, tun))
}

/// A Transom host and the kernel it talks to.
#[derive(Debug)]
pub struct TransomPath {
    /// The kernel's end.
    pub kernel: KernelEnd,
    /// Transom's end.
    pub stack: Stack,
}

impl TransomPath {
    /// Starts Transom on a TUN of its own. `busy_poll`: how long a waiting thread looks before it sleeps.
    ///
    /// # Errors
    /// As [`tun`], and when the runtime does not start.
    pub fn new(offload: TunOffload, profile: Profile, busy_poll: Duration) -> anyhow::Result<Self> {
        Self::with_shards(1, offload, profile, busy_poll)
    }

    /// The same with several shards, each with a queue of the device.
    ///
    /// # Errors
    /// As [`TransomPath::new`].
    pub fn with_shards(
        shards: usize,
        offload: TunOffload,
        profile: Profile,
        busy_poll: Duration,
    ) -> anyhow::Result<Self> {
        let (kernel, tun) = stacks_tun(shards, offload, 1500)?;
        let stack = Stack::builder()
            .profile(profile)
            .busy_poll(busy_poll)
            .address(std::net::IpAddr::from(OTHER), 24)
            .start(tun)
            .context("starting Transom")?;
        Ok(TransomPath { kernel, stack })
    }

    /// An address at Transom's end.
    pub fn at(&self, port: u16) -> SocketAddr {
        (OTHER, port).into()
    }

    /// Connects from Transom.
    ///
    /// # Errors
    /// Those of the connection.
    pub fn connect(&self, remote: SocketAddr) -> io::Result<transom_net::TcpStream> {
        let stream = transom_net::TcpStream::connect_timeout(&self.stack, &remote, PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(stream)
    }
}
