//! smoltcp on the same TUN as Transom.
//!
//! *As it comes*: packets of one MTU with checksums in software, which is what smoltcp's own TUN device does.
//! *Given the device*: checksums are left open and super-segments cross in one piece, both ways, through smoltcp's own
//! support for segmentation offload. smoltcp leaves the whole checksum field to such a device, while a virtio-net
//! header wants the pseudo-header's sum in it, so that is added here.

use crate::network::{KERNEL, KernelEnd, OTHER, PATIENCE, tun};
use anyhow::{Context, anyhow, ensure};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::phy::{self, Checksum, ChecksumCapabilities, DeviceCapabilities, Medium, PacketMeta};
use smoltcp::socket::tcp;
use smoltcp::time::{Duration, Instant};
use smoltcp::wire::{HardwareAddress, IpAddress, IpCidr};
use std::cell::RefCell;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;
use transom_device::tun::{Tun, TunOffload};
use transom_device::{Device, RxPacket, TxPacket};
use transom_wire::Protocol;
use transom_wire::checksum::pseudo_header;
use transom_wire::offload::{SegmentKind, Segmentation, TxChecksum, TxOffload};

/// The longest packet an IPv4 header can express.
const LONGEST: usize = 65_535;
/// An IPv4 header as smoltcp writes it, without options.
const IP_HEADER: usize = 20;
/// Where the checksum lies in a TCP header (RFC 9293 section 3.1).
const CHECKSUM: usize = 16;

/// The first of the local ports from which connections are made.
const FIRST_PORT: u16 = 1024;

/// How much of the work the device does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Help {
    /// None.
    AsItComes,
    /// Checksums and segmentation.
    GivenTheDevice,
}

impl Help {
    fn tun_offload(self) -> TunOffload {
        match self {
            Help::AsItComes => TunOffload::None,
            Help::GivenTheDevice => TunOffload::Segmentation,
        }
    }
}

/// A TUN as smoltcp sees it.
struct SmolTun {
    help: Help,
    // A received packet and the answer to it both need the device.
    tun: RefCell<Tun>,
    buffer: RefCell<Vec<u8>>,
}

impl phy::Device for SmolTun {
    type RxToken<'a> = RxToken<'a>;
    type TxToken<'a> = TxToken<'a>;

    fn capabilities(&self) -> DeviceCapabilities {
        let mut checksum = ChecksumCapabilities::default();
        let mut capabilities = DeviceCapabilities::default();
        if self.help == Help::GivenTheDevice {
            // The kernel verifies what it hands over, or trusts itself.
            checksum.tcp = Checksum::None;
            capabilities.segmentation.tcpv4 = NonZeroUsize::new(LONGEST);
        }
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = self.tun.borrow().capabilities().mtu;
        capabilities.checksum = checksum;
        capabilities
    }

    fn receive(&mut self, _timestamp: Instant) -> Option<(RxToken<'_>, TxToken<'_>)> {
        let packet = self.tun.get_mut().recv().ok()?;
        let device = &*self;
        Some((RxToken { device, packet }, TxToken { device, segment_size: None }))
    }

    fn transmit(&mut self, _timestamp: Instant) -> Option<TxToken<'_>> {
        Some(TxToken { device: self, segment_size: None })
    }
}

struct RxToken<'a> {
    device: &'a SmolTun,
    packet: RxPacket,
}

impl phy::RxToken for RxToken<'_> {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, read: F) -> R {
        let result = read(self.packet.bytes());
        self.device.tun.borrow_mut().recycle(self.packet.buffer);
        result
    }
}

struct TxToken<'a> {
    device: &'a SmolTun,
    segment_size: Option<u16>,
}

impl phy::TxToken for TxToken<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, write: F) -> R {
        let mut buffer = self.device.buffer.borrow_mut();
        let packet = &mut buffer[..len];
        let result = write(packet);
        let offload = match self.device.help {
            Help::AsItComes => TxOffload::default(),
            Help::GivenTheDevice => offload(packet, self.segment_size),
        };
        // Packets that a device refuses are lost, as on any network.
        let _ = self.device.tun.borrow_mut().send(&TxPacket { offload, ..TxPacket::whole(packet) });
        result
    }

    fn set_meta(&mut self, meta: PacketMeta) {
        self.segment_size = meta.segmentation_offload_size.map(|size| size.get());
    }
}

/// Prepares an IPv4 packet of smoltcp's making for a virtio-net header and says what is left to do.
fn offload(packet: &mut [u8], segment_size: Option<u16>) -> TxOffload {
    let Some(&[data_offset]) = packet.get(IP_HEADER + 12..).and_then(|rest| rest.first_chunk())
    else {
        return TxOffload::default();
    };
    if packet[9] != Protocol::TCP.0 {
        return TxOffload::default();
    }
    let length = (packet.len() - IP_HEADER) as u32;
    let sum = pseudo_header(OTHER.into(), KERNEL.into(), Protocol::TCP, length);
    packet[IP_HEADER + CHECKSUM..][..2].copy_from_slice(&sum.0.to_be_bytes());
    TxOffload {
        checksum: TxChecksum::Partial { start: IP_HEADER as u16, offset: CHECKSUM as u16 },
        segmentation: segment_size.map(|segment_size| Segmentation {
            kind: SegmentKind::Tcp4,
            segment_size,
            header_len: IP_HEADER as u16 + u16::from(data_offset >> 4) * 4,
        }),
    }
}

/// A smoltcp host with sockets of one kind on a TUN, and the kernel it talks to.
pub struct SmolPath {
    /// The kernel's end, which other threads use meanwhile.
    pub kernel: Arc<KernelEnd>,
    device: SmolTun,
    interface: Interface,
    sockets: SocketSet<'static>,
    buffer: usize,
    next_port: u16,
    nodelay: bool,
}

impl std::fmt::Debug for SmolPath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SmolPath").field("kernel", &self.kernel).finish_non_exhaustive()
    }
}

impl SmolPath {
    /// Starts smoltcp on a TUN of its own; each socket buffer has `buffer` bytes.
    ///
    /// # Errors
    /// As [`tun`].
    pub fn new(help: Help, mtu: u16, buffer: usize) -> anyhow::Result<Self> {
        let (kernel, tun) = tun(help.tun_offload(), mtu)?;
        let buffers = RefCell::new(vec![0; LONGEST]);
        let mut device = SmolTun { help, tun: RefCell::new(tun), buffer: buffers };
        let mut config = Config::new(HardwareAddress::Ip);
        config.random_seed = 1;
        let mut interface = Interface::new(config, &mut device, Instant::now());
        interface.update_ip_addrs(|addresses| {
            let [a, b, c, d] = OTHER;
            let _ = addresses.push(IpCidr::new(IpAddress::v4(a, b, c, d), 24));
        });
        let sockets = SocketSet::new(Vec::new());
        let kernel = Arc::new(kernel);
        Ok(SmolPath {
            kernel,
            device,
            interface,
            sockets,
            buffer,
            next_port: FIRST_PORT,
            nodelay: false,
        })
    }

    /// Whether new sockets do without Nagle's algorithm.
    pub fn set_nodelay(&mut self, nodelay: bool) {
        self.nodelay = nodelay;
    }

    /// A new socket.
    pub fn add(&mut self) -> SocketHandle {
        let ring = || tcp::SocketBuffer::new(vec![0; self.buffer]);
        let mut socket = tcp::Socket::new(ring(), ring());
        // Timestamps, as both others send them; without, a port could not be used again within a minute.
        socket.set_tsval_generator(Some(|| (Instant::now().total_micros() / 1000) as u32));
        socket.set_nagle_enabled(!self.nodelay);
        self.sockets.add(socket)
    }

    /// Forgets a socket, whatever state it is in.
    pub fn remove(&mut self, handle: SocketHandle) {
        self.sockets.remove(handle);
    }

    /// Smoltcp's address and a port.
    pub fn at(&self, port: u16) -> SocketAddr {
        (OTHER, port).into()
    }

    /// Connects to a port of the kernel.
    ///
    /// # Errors
    /// When smoltcp refuses or the kernel does not answer.
    pub fn connect(&mut self, port: u16) -> anyhow::Result<SocketHandle> {
        let handle = self.add();
        self.start(handle, port)?;
        self.run(true, |path| path.socket(handle).may_send().then_some(()))?;
        Ok(handle)
    }

    /// Starts connecting to a port of the kernel, from a local port that was not used lately.
    ///
    /// # Errors
    /// When smoltcp refuses.
    pub fn start(&mut self, handle: SocketHandle, port: u16) -> anyhow::Result<()> {
        self.next_port = self.next_port.checked_add(1).unwrap_or(FIRST_PORT);
        let [a, b, c, d] = KERNEL;
        let remote = (IpAddress::v4(a, b, c, d), port);
        self.sockets
            .get_mut::<tcp::Socket<'_>>(handle)
            .connect(self.interface.context(), remote, self.next_port)
            .map_err(|error| anyhow!("connecting: {error}"))
    }

    /// Starts listening at a port.
    ///
    /// # Errors
    /// When smoltcp refuses.
    pub fn listen(&mut self, port: u16) -> anyhow::Result<SocketHandle> {
        let handle = self.add();
        self.socket(handle).listen(port).map_err(|error| anyhow!("listening: {error}"))?;
        Ok(handle)
    }

    /// A socket.
    pub fn socket(&mut self, handle: SocketHandle) -> &mut tcp::Socket<'static> {
        self.sockets.get_mut(handle)
    }

    /// Closes a socket in order and forgets it.
    ///
    /// # Errors
    /// When the kernel does not close its side.
    pub fn close(&mut self, handle: SocketHandle) -> anyhow::Result<()> {
        self.socket(handle).close();
        self.run(true, |path| {
            let state = path.socket(handle).state();
            matches!(state, tcp::State::Closed | tcp::State::TimeWait).then_some(())
        })?;
        self.sockets.remove(handle);
        Ok(())
    }

    /// Works until `done` has a result, sleeping when there is nothing to do if `sleep`.
    ///
    /// # Errors
    /// When nothing happens for as long as nothing may.
    pub fn run<T>(
        &mut self,
        sleep: bool,
        mut done: impl FnMut(&mut Self) -> Option<T>,
    ) -> anyhow::Result<T> {
        let mut deadline = std::time::Instant::now() + PATIENCE;
        loop {
            let now = Instant::now();
            let change = self.interface.poll(now, &mut self.device, &mut self.sockets);
            if let Some(result) = done(self) {
                return Ok(result);
            }
            if change != smoltcp::iface::PollResult::None {
                deadline = std::time::Instant::now() + PATIENCE;
            } else {
                ensure!(std::time::Instant::now() < deadline, "smoltcp waited too long");
            }
            // Data that `done` has written leaves with the next poll.
            let wait = self.interface.poll_delay(Instant::now(), &self.sockets);
            match wait {
                Some(Duration::ZERO) => {}
                _ if sleep => self.wait(wait)?,
                _ => std::hint::spin_loop(),
            }
        }
    }

    /// Sleeps until a packet arrives or `timeout` has passed.
    fn wait(&mut self, timeout: Option<Duration>) -> anyhow::Result<()> {
        let longest = std::time::Duration::from_secs(1);
        let timeout = timeout.map_or(longest, |span| std::time::Duration::from(span).min(longest));
        let tun = self.device.tun.get_mut();
        let fd = tun.poll_fd().context("a TUN that cannot be waited for")?;
        let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::IN)];
        let timeout = Timespec::try_from(timeout).context("a timeout out of range")?;
        poll(&mut fds, Some(&timeout)).context("waiting for the TUN")?;
        Ok(())
    }
}
