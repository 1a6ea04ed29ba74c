//! From a [word](crate::DeviceWord) to a device that is open.
//!
//! ```no_run
//! use transom_device::open::{OpenOptions, open};
//!
//! let word = "udp:192.0.2.1:4000".parse()?;
//! let opened = open(&word, &OpenOptions::default())?;
//! println!("we are {:?} there", opened.addresses);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod advice;
mod error;

use std::any::Any;
use std::io;
use std::net::{IpAddr, Ipv4Addr, ToSocketAddrs};
use std::ops::RangeInclusive;
use std::path::Path;

use crate::Device;
use crate::demux::DemuxDevice;
use crate::interface::{Interfaces, IpPrefix};
use crate::memory::{MemoryConfig, named};
use crate::packet::PacketDevice;
use crate::tun::{Tun, TunError, TunOffload};
use crate::udp::UdpTunnel;
use crate::word::DeviceWord;

pub use error::OpenError;
pub(crate) use error::{Reason, kind_of, with_causes};

/// The socket of the broker of `shared`, by default.
pub const BROKER_SOCKET: &str = "/run/transom/broker.sock";

/// A function that opens `shared`: it asks the broker at a socket for a device. It is passed in ([`OpenOptions::shared`]), as the broker's client is a
/// crate above this one.
pub type OpenShared = fn(socket: &Path, options: &OpenOptions) -> io::Result<Opened>;

/// Settings of a device besides its word.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct OpenOptions {
    /// The stack's own addresses. Without any, the device has its own idea: see docs/devices.md.
    pub addresses: Vec<IpPrefix>,
    /// The kernel's addresses on a TUN interface that is made; by default another one of each network of [`OpenOptions::addresses`], so that both
    /// ends find each other.
    pub kernel_addresses: Vec<IpPrefix>,
    /// The longest IP packet in bytes; by default what the device carries.
    pub mtu: Option<u16>,
    /// Whether the device may take work off the stack: checksums, segmentation.
    pub offload: bool,
    /// Whether the device's user sends in batches ([`Device::send_more`]), as a stack does. The device may then do more for batches than for packets
    /// that are sent alone.
    pub batches: bool,
    /// How many queues the device is to have at most. TUN interfaces and the devices of a broker have several; a TUN interface that exists, and was made for
    /// one queue, and all other devices have one.
    pub queues: usize,
    /// The function that opens `shared`, if the program has one.
    pub shared: Option<OpenShared>,
}

transom_base::setters! {
    OpenOptions:
    with_addresses = addresses: Vec<IpPrefix>,
    with_kernel_addresses = kernel_addresses: Vec<IpPrefix>,
    with_mtu = mtu: Option<u16>,
    with_offload = offload: bool,
    with_batches = batches: bool,
    with_queues = queues: usize,
    with_shared = shared: Option<OpenShared>,
}

impl Default for OpenOptions {
    fn default() -> Self {
        OpenOptions {
            addresses: Vec::new(),
            kernel_addresses: Vec::new(),
            mtu: None,
            offload: true,
            batches: true,
            queues: 1,
            shared: None,
        }
    }
}

/// A device that is open.
pub struct Opened {
    /// It itself.
    pub device: Box<dyn Device>,
    /// The addresses that the stack on it has.
    pub addresses: Vec<IpPrefix>,
    /// The place of the device, in words: `transom0`, `UDP port 4000 of 127.0.0.1`.
    pub place: String,
    /// A companion of the device for the stack on it: a lease of the broker's ([`OpenOptions::shared`]), or the
    /// `KernelAddress` (feature `bpf`).
    pub lease: Option<Box<dyn Any + Send>>,
}

impl Opened {
    fn alone(device: impl Device + 'static, addresses: Vec<IpPrefix>, place: String) -> Self {
        Opened { device: Box::new(device), addresses, place, lease: None }
    }
}

impl std::fmt::Debug for Opened {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Opened { addresses, place, .. } = self;
        f.debug_struct("Opened").field("addresses", addresses).field("place", place).finish()
    }
}

/// The inner network where nobody chooses one: the one who waits, or the kernel, is 1, and the other 2.
const fn usual_address(host: u8) -> IpPrefix {
    match IpPrefix::new(IpAddr::V4(Ipv4Addr::new(10, 9, 0, host)), 24) {
        Some(prefix) => prefix,
        None => unreachable!(),
    }
}

/// Opens the device that `word` names, in the calling thread's network namespace.
///
/// # Errors
/// [`OpenError`], which says the reason and what would work.
pub fn open(word: &DeviceWord, options: &OpenOptions) -> Result<Opened, OpenError> {
    let opened = match word {
        DeviceWord::Shared { socket } => {
            let socket = socket.as_deref().unwrap_or(Path::new(BROKER_SOCKET));
            open_shared(socket, options)
        }
        DeviceWord::Tun { name } => open_tun(name, options),
        DeviceWord::Packet { .. } | DeviceWord::Demux { .. } if options.mtu.is_some() => {
            Err(Reason::MtuIsFixed)
        }
        DeviceWord::Packet { interface } => open_packet(interface, options),
        DeviceWord::Xdp { interface } => open_xdp(interface, options),
        DeviceWord::Udp { listens, host, port } => open_udp(*listens, (host, *port), options),
        DeviceWord::Demux { socket, ports } => join(socket, ports),
        DeviceWord::Fd { number } => inherit(*number, options),
        DeviceWord::Memory { name } => open_memory(name, options),
    };
    opened.map_err(|reason| OpenError::new(word.clone(), reason))
}

fn or_usual(addresses: &[IpPrefix], host: u8) -> Vec<IpPrefix> {
    if addresses.is_empty() { vec![usual_address(host)] } else { addresses.to_vec() }
}

/// The first of the kernel's addresses on a TUN interface that is made with these options; nothing if that is impossible.
pub fn kernel_end(options: &OpenOptions) -> Option<IpAddr> {
    Some(kernel_ends(options).ok()?.first()?.address())
}

/// The kernel's addresses on a TUN interface that is made. The kernel finds the stack by the network of its own address, so each address of the stack
/// lies in one of these networks.
fn kernel_ends(options: &OpenOptions) -> Result<Vec<IpPrefix>, Reason> {
    let own = or_usual(&options.addresses, 2);
    if options.kernel_addresses.is_empty() {
        let mut ends: Vec<IpPrefix> = Vec::new();
        for prefix in &own {
            // Two addresses of one network have one other end.
            if ends.iter().any(|end| end.network() == prefix.network()) {
                continue;
            }
            let taken = |address: IpAddr| own.iter().any(|prefix| prefix.address() == address);
            let end = prefix.first_host(taken).ok_or(Reason::NoRoom { prefix: *prefix })?;
            ends.push(end);
        }
        return Ok(ends);
    }
    for prefix in &own {
        let kernel = options.kernel_addresses.iter();
        let mut of_family =
            kernel.filter(|end| end.address().is_ipv4() == prefix.address().is_ipv4()).peekable();
        if let Some(&&kernel) = of_family.peek()
            && !of_family.any(|end| end.contains(prefix.address()))
        {
            return Err(Reason::Apart { own: *prefix, kernel });
        }
    }
    Ok(options.kernel_addresses.clone())
}

fn open_shared(socket: &Path, options: &OpenOptions) -> Result<Opened, Reason> {
    let absent = |source| Reason::Broker { socket: socket.to_owned(), source };
    match options.shared {
        Some(open) => open(socket, options).map_err(absent),
        None => Err(absent(io::Error::new(
            io::ErrorKind::Unsupported,
            "this program has no client of the broker",
        ))),
    }
}

fn tun_offload(options: &OpenOptions) -> TunOffload {
    if options.offload { TunOffload::Segmentation } else { TunOffload::None }
}

fn open_tun(name: &str, options: &OpenOptions) -> Result<Opened, Reason> {
    let state = Interfaces::open().map_err(Reason::Netlink)?.state(name).ok();
    let builder = match state {
        Some(state) if state.hardware != libc::ARPHRD_NONE || state.persistent_tun.is_none() => {
            return Err(Reason::NoTun);
        }
        // An interface for several queues would take another program's too, and give each packet to either of them.
        Some(state) if state.carrier => {
            let source = io::ErrorKind::ResourceBusy.into();
            return Err(TunError::Create { name: name.to_owned(), source }.into());
        }
        Some(_) if options.mtu.is_some() => return Err(Reason::MtuIsFixed),
        Some(_) => Tun::builder().existing(name),
        None => {
            let builder = Tun::builder().name(name).mtu(options.mtu.unwrap_or(1500));
            kernel_ends(options)?
                .into_iter()
                .fold(builder, |builder, prefix| builder.address(prefix))
        }
    };
    let joining = options.batches && !options.offload;
    let builder = builder.offload(tun_offload(options)).joining(joining);
    let tun = builder.queues(options.queues).open()?;
    let mut place = tun.name().to_owned();
    if joining && !tun.joins() {
        place.push_str(" (the kernel takes each packet by itself)");
    }
    Ok(Opened::alone(tun, or_usual(&options.addresses, 2), place))
}

fn open_packet(interface: &str, options: &OpenOptions) -> Result<Opened, Reason> {
    let (addresses, offload) = (&options.addresses, options.offload);
    #[cfg(feature = "bpf")]
    if let Some((device, kernel)) =
        PacketDevice::open_on_kernel_address(interface, addresses, offload)?
    {
        return Ok(Opened {
            device: Box::new(device),
            addresses: kernel.addresses.clone(),
            place: format!("{interface}, beside the kernel"),
            lease: Some(Box::new(kernel)),
        });
    }
    let device = PacketDevice::open(interface, addresses, offload)?;
    Ok(Opened::alone(device, addresses.clone(), interface.to_owned()))
}

#[cfg(feature = "xdp")]
fn open_xdp(interface: &str, options: &OpenOptions) -> Result<Opened, Reason> {
    if options.mtu.is_some() {
        return Err(Reason::MtuIsFixed);
    }
    let device = crate::xdp::XdpDevice::open(interface, &options.addresses)?;
    let native = if device.is_native() { "" } else { " (behind its driver)" };
    let place = format!("{interface} by AF_XDP{native}");
    Ok(Opened::alone(device, options.addresses.clone(), place))
}

#[cfg(not(feature = "xdp"))]
fn open_xdp(_interface: &str, _options: &OpenOptions) -> Result<Opened, Reason> {
    Err(Reason::NotBuilt)
}

fn inherit(number: u32, options: &OpenOptions) -> Result<Opened, Reason> {
    let tun = Tun::builder().offload(tun_offload(options)).inherit(number, options.mtu)?;
    let place = format!("{} (descriptor {number})", tun.name());
    Ok(Opened::alone(tun, or_usual(&options.addresses, 2), place))
}

fn open_udp(listens: bool, end: (&str, u16), options: &OpenOptions) -> Result<Opened, Reason> {
    let unknown = |source| Reason::Resolve { host: end.0.to_owned(), source };
    let at = end.to_socket_addrs().map_err(unknown)?.next();
    let at = at.ok_or_else(|| unknown(io::ErrorKind::NotFound.into()))?;
    let (port, mtu) =
        (format!("UDP port {} of {}", at.port(), at.ip()), options.mtu.map(usize::from));
    if listens {
        let addresses = or_usual(&options.addresses, 1);
        let tunnel = UdpTunnel::listen(at, &addresses, mtu)?;
        return Ok(Opened::alone(tunnel, addresses, format!("tunnels to {port}")));
    }
    let wanted: Vec<IpAddr> = options.addresses.iter().map(IpPrefix::address).collect();
    let tunnel = UdpTunnel::connect(at, &wanted, mtu)?;
    let addresses = tunnel.given();
    Ok(Opened::alone(tunnel, addresses, format!("a tunnel to {port}")))
}

fn join(socket: &Path, ports: &[RangeInclusive<u16>]) -> Result<Opened, Reason> {
    let absent = |source| Reason::Demux { socket: socket.to_owned(), source };
    let device = DemuxDevice::connect(socket, ports).map_err(absent)?;
    let addresses = device.addresses().to_vec();
    let place = format!("the device of the process at {}", socket.display());
    Ok(Opened::alone(device, addresses, place))
}

fn open_memory(name: &str, options: &OpenOptions) -> Result<Opened, Reason> {
    if options.addresses.is_empty() {
        return Err(Reason::NoAddress);
    }
    let mut config =
        if options.offload { MemoryConfig::with_offload() } else { MemoryConfig::default() };
    if let Some(mtu) = options.mtu {
        config.mtu = mtu.into();
    }
    let device = named(name, &config).map_err(Reason::Memory)?;
    let place = format!("memory called `{name}`");
    Ok(Opened::alone(device, options.addresses.clone(), place))
}

#[cfg(test)]
mod tests;
