//! A Linux TUN interface: IP packets between this process and the kernel's own network.
//!
//! Each `read` gives one packet that the kernel routed into the interface, each `write` is one
//! packet that the kernel takes as received from it. With `IFF_VNET_HDR` a virtio-net header stands
//! before each packet, and two things become possible that make the interface fast. A packet may
//! leave its checksum open, as the kernel trusts both itself and us. And a packet may be a
//! super-segment of up to 64 KB that goes through the whole stack in one piece. Towards the kernel
//! that takes only the header; from the kernel it takes `TUNSETOFFLOAD` as well, which an old
//! kernel may refuse in part. What was obtained is in the device's [`Capabilities`].
//!
//! Sending gathers the header and the packet's parts in one `writev`. Receiving reads straight into
//! a pooled buffer, header and all, of which [`RxPacket`]'s range then leaves the header out.
//! Neither allocates in steady state.
//!
//! The kernel keeps the packets we have not read yet in a queue of fixed length and drops what does
//! not fit, so the queue must hold what a peer may have in flight: see [`TunBuilder::queue_len`].
//!
//! ```no_run
//! use transom_device::namespace::{Namespace, enter_user_namespace};
//! use transom_device::tun::Tun;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! enter_user_namespace()?; // for an ordinary user, and before any thread is started
//! let namespace = Namespace::new()?;
//! // The kernel is 192.0.2.1; every other address of the network leads here.
//! let builder = Tun::builder().address("192.0.2.1/24".parse()?);
//! let mut device = namespace.run(|| builder.open())??;
//! # let _: &mut dyn transom_device::Device = &mut device;
//! # Ok(())
//! # }
//! ```

use std::ffi::{c_int, c_uint};
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use transom_tcp::packet::{BufferPool, PacketBuf};
use transom_wire::offload::{RxOffload, VirtioNetHdr};

use crate::device::{Head, MAX_HEAD, Received};
use crate::interface::{InterfaceError, Interfaces, IpPrefix, checked_name};
use crate::{Capabilities, Device, RxPacket, SendError, TxPacket};

mod ioctl;

/// The longest packet that either IP version's length field can express by itself (RFC 791, section
/// 3.1).
const LONGEST_PACKET: usize = 65_535;

/// A super-segment over IPv6 may be this much longer: the length field leaves the fixed header out
/// (RFC 8200, section 3).
const IPV6_HEADER_LEN: usize = 40;

/// How long the kernel may take to put a new address in its routing table. Milliseconds are usual;
/// when it takes longer than this, the worst is that the first packets to the address are lost.
const ADDRESS_PATIENCE: Duration = Duration::from_secs(2);

/// How much work is shared between the kernel and us.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum TunOffload {
    /// Every packet is at most one MTU long and has its checksum, both ways.
    None,
    /// Checksums may be left open, both ways.
    Checksum,
    /// Super-segments as well, both ways.
    #[default]
    Segmentation,
}

/// Why there is no TUN device.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TunError {
    /// `/dev/net/tun` could not be opened: the system has no TUN driver, or does not allow it.
    #[error("cannot open /dev/net/tun: {0}")]
    Open(#[source] io::Error),
    /// The kernel refused to make the interface, or to attach to it.
    #[error("cannot create the TUN interface {name}: {source}")]
    Create {
        /// The name asked for; `(any)` if it was left to the kernel.
        name: String,
        /// The kernel's answer.
        source: io::Error,
    },
    /// A setting is impossible.
    #[error("{0}")]
    Config(&'static str),
    /// The interface could not be set up.
    #[error(transparent)]
    Interface(#[from] InterfaceError),
    /// The kernel gave no netlink socket.
    #[error("cannot open a netlink socket: {0}")]
    Netlink(#[source] io::Error),
}

impl TunError {
    /// What the kernel's error number means.
    pub fn kind(&self) -> io::ErrorKind {
        match self {
            TunError::Open(source) | TunError::Netlink(source) => source.kind(),
            TunError::Create { source, .. } => source.kind(),
            TunError::Config(_) => io::ErrorKind::InvalidInput,
            TunError::Interface(error) => error.kind(),
        }
    }
}

impl From<TunError> for io::Error {
    fn from(error: TunError) -> Self {
        io::Error::new(error.kind(), error)
    }
}

/// The settings of a TUN interface to be opened; see [`Tun::builder`].
#[derive(Clone, Debug)]
pub struct TunBuilder {
    name: String,
    mtu: u16,
    addresses: Vec<IpPrefix>,
    queue_len: u32,
    offload: TunOffload,
    keep_buffers: usize,
    configure: bool,
}

impl TunBuilder {
    /// The interface's name, 1 to 15 bytes. `%d` in it stands for a number of the kernel's choice.
    /// Default: `tun%d`.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// The longest IP packet in bytes. Default: 1500. IPv6 needs 1280, IPv4 68.
    pub fn mtu(mut self, mtu: u16) -> Self {
        self.mtu = mtu;
        self
    }

    /// Adds an address of the *kernel's* end; the rest of its network is routed to us.
    pub fn address(mut self, address: IpPrefix) -> Self {
        self.addresses.push(address);
        self
    }

    /// How many packets the kernel keeps for us before it drops. Default: 10,000.
    ///
    /// The kernel's own default of 500 is too little. Its TCP sends whatever the receive window
    /// allows, and nothing holds it back here, for a packet counts as sent once it is in this
    /// queue: without segmentation offload a window of 6 MB, the usual limit on Linux, is 4,300
    /// packets of 1,460 bytes at once. 10,000 covers two such connections, or one of 14 MB, and
    /// costs 80 KB while it is empty. Whoever allows more in flight than that without offload
    /// should ask for more.
    pub fn queue_len(mut self, packets: u32) -> Self {
        self.queue_len = packets;
        self
    }

    /// How much work to share with the kernel; less if it refuses. Default:
    /// [`TunOffload::Segmentation`].
    pub fn offload(mut self, offload: TunOffload) -> Self {
        self.offload = offload;
        self
    }

    /// How many idle receive buffers to keep, of 64 KB each with segmentation offload. Default:
    /// 256.
    pub fn keep_buffers(mut self, buffers: usize) -> Self {
        self.keep_buffers = buffers;
        self
    }

    /// Attaches to an interface that somebody has set up already, such as a persistent one that
    /// belongs to an ordinary user, and changes nothing about it: its MTU is read, and other
    /// settings are not made.
    pub fn existing(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self.configure = false;
        self
    }

    /// Opens the device in the calling thread's network namespace and brings the interface up.
    ///
    /// The interface disappears when the [`Tun`] is dropped, unless it is a persistent one.
    ///
    /// # Errors
    /// [`TunError`]: no TUN driver, no right to it, an impossible setting.
    pub fn open(self) -> Result<Tun, TunError> {
        if !self.name.is_empty() && checked_name(&self.name).is_err() {
            return Err(TunError::Config(
                "the interface name must have 1 to 15 bytes, no blank, no slash",
            ));
        }
        let create_error = |source| TunError::Create {
            name: if self.name.is_empty() { "(any)".into() } else { self.name.clone() },
            source,
        };
        let mut interfaces = Interfaces::open().map_err(TunError::Netlink)?;
        if !self.configure {
            // Without this the kernel would make a new interface, down and useless.
            interfaces.state(&self.name)?;
        }
        let (descriptor, name, vnet_header) = self.create(create_error)?;
        let rx_coalesce = vnet_header && {
            prepare_header(&descriptor).map_err(create_error)?;
            negotiate(&descriptor, self.offload)
        };

        if self.configure {
            interfaces.set_mtu(&name, self.mtu.into())?;
            interfaces.set_queue_len(&name, self.queue_len)?;
            interfaces.set_up(&name, true)?;
            for address in &self.addresses {
                interfaces.add_address(&name, *address)?;
            }
            for address in &self.addresses {
                interfaces.wait_until_local(address.address(), ADDRESS_PATIENCE)?;
            }
        }
        let state = interfaces.state(&name)?;
        let mtu = usize::try_from(state.mtu).unwrap_or(LONGEST_PACKET).min(LONGEST_PACKET);

        let segmentation = vnet_header && self.offload >= TunOffload::Segmentation;
        let capabilities = Capabilities {
            mtu,
            tx_checksum: vnet_header,
            segmentation: segmentation.then_some(LONGEST_PACKET),
            rx_coalesce,
        };
        let header_len = if vnet_header { VirtioNetHdr::LEN } else { 0 };
        let longest = if rx_coalesce { LONGEST_PACKET + IPV6_HEADER_LEN } else { mtu };
        // One byte more than any packet: a read that fills the buffer has cut one off.
        let pool = BufferPool::new(header_len + longest + 1, self.keep_buffers);
        Ok(Tun {
            descriptor,
            name,
            index: state.index,
            capabilities,
            header_len,
            pool,
            spare: None,
            last_header: VirtioNetHdr::default(),
            discarded: 0,
        })
    }

    /// Opens the character device and makes it an interface, with a virtio-net header if that is
    /// wanted and known.
    fn create(
        &self,
        error: impl Fn(io::Error) -> TunError,
    ) -> Result<(OwnedFd, String, bool), TunError> {
        let plain = libc::IFF_TUN | libc::IFF_NO_PI;
        let descriptor = open_tun().map_err(TunError::Open)?;
        let known = ioctl::features(&descriptor).unwrap_or(0) as c_int;
        if self.offload > TunOffload::None && known & libc::IFF_VNET_HDR != 0 {
            match ioctl::set_interface(&descriptor, &self.name, plain | libc::IFF_VNET_HDR) {
                Ok(name) => return Ok((descriptor, name, true)),
                // Some systems that imitate TUN list the flag and do not take it.
                Err(refusal) if refusal.kind() == io::ErrorKind::InvalidInput => {}
                Err(refusal) => return Err(error(refusal)),
            }
        }
        let name = ioctl::set_interface(&descriptor, &self.name, plain).map_err(&error)?;
        Ok((descriptor, name, false))
    }
}

fn open_tun() -> io::Result<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(rustix::fs::open("/dev/net/tun", flags, Mode::empty())?)
}

/// Settles the virtio-net header's length and byte order.
fn prepare_header(tun: &OwnedFd) -> io::Result<()> {
    ioctl::set_header_len(tun, VirtioNetHdr::LEN as c_int)?;
    match ioctl::set_little_endian(tun) {
        // A kernel that does not know the request uses the machine's own order.
        Err(_) if cfg!(target_endian = "little") => Ok(()),
        outcome => outcome,
    }
}

/// Asks for as many of the wanted offloads from the kernel to us as it grants, and says whether
/// super-segments may come. When it grants nothing it finishes every packet before handing it over,
/// which is always right.
fn negotiate(tun: &OwnedFd, wanted: TunOffload) -> bool {
    const CHECKSUM: c_uint = libc::TUN_F_CSUM;
    const SEGMENTATION: c_uint = CHECKSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6;
    // With ECN, a super-segment's CWR flag belongs to its first segment only (RFC 3168, section
    // 6.1.2); without this flag the kernel cuts such super-segments itself.
    const ECN: c_uint = SEGMENTATION | libc::TUN_F_TSO_ECN;
    let attempts: &[c_uint] = match wanted {
        TunOffload::None => &[0],
        TunOffload::Checksum => &[CHECKSUM, 0],
        TunOffload::Segmentation => &[ECN, SEGMENTATION, CHECKSUM, 0],
    };
    let granted = attempts.iter().find(|flags| ioctl::set_offload(tun, **flags).is_ok());
    granted.is_some_and(|flags| flags & SEGMENTATION == SEGMENTATION)
}

/// An open TUN interface.
#[derive(Debug)]
pub struct Tun {
    descriptor: OwnedFd,
    name: String,
    index: u32,
    capabilities: Capabilities,
    /// Bytes before each packet: [`VirtioNetHdr::LEN`] or none.
    header_len: usize,
    pool: BufferPool,
    /// A buffer that a fruitless read has left.
    spare: Option<PacketBuf>,
    /// The virtio-net header of the packet received last in two parts.
    last_header: VirtioNetHdr,
    discarded: u64,
}

impl Tun {
    /// The default settings, to be changed and opened.
    pub fn builder() -> TunBuilder {
        TunBuilder {
            name: "tun%d".into(),
            mtu: 1500,
            addresses: Vec::new(),
            queue_len: 10_000,
            offload: TunOffload::default(),
            keep_buffers: 256,
            configure: true,
        }
    }

    /// The interface's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The interface's number in its network namespace.
    pub fn index(&self) -> u32 {
        self.index
    }

    /// How many packets from the kernel were thrown away because they were longer than the MTU was
    /// when the device was opened, or because their virtio-net header made no sense.
    pub fn discarded(&self) -> u64 {
        self.discarded
    }
}

/// What the header before a packet says; `None` if it makes no sense or there is no packet behind
/// it.
fn parse_header(header_len: usize, read: &[u8]) -> Option<RxOffload> {
    if header_len == 0 {
        return (!read.is_empty()).then(RxOffload::default);
    }
    let packet = read.get(header_len..)?;
    let offload = VirtioNetHdr::decode(read).and_then(|header| header.rx_offload(packet));
    offload.ok().filter(|_| !packet.is_empty())
}

impl Device for Tun {
    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn send(&mut self, packet: &TxPacket<'_>) -> io::Result<()> {
        self.capabilities.admit(packet)?;
        let header = match self.header_len {
            0 => [0; VirtioNetHdr::LEN],
            _ => VirtioNetHdr::for_packet(&packet.offload, packet.headers, packet.len())
                .map_err(SendError::Offload)?
                .encode(),
        };
        let parts = [
            IoSlice::new(&header[..self.header_len]),
            IoSlice::new(packet.headers),
            IoSlice::new(packet.payload[0]),
            IoSlice::new(packet.payload[1]),
        ];
        loop {
            match rustix::io::writev(&self.descriptor, &parts) {
                // The driver takes a packet as a whole or not at all.
                Ok(_) => return Ok(()),
                Err(Errno::INTR) => {}
                // The kernel is short of memory for packets, which passes.
                Err(Errno::NOBUFS | Errno::NOMEM) => return Err(io::ErrorKind::WouldBlock.into()),
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    fn recv(&mut self) -> io::Result<RxPacket> {
        loop {
            let mut buffer = self.spare.take().unwrap_or_else(|| self.pool.take());
            let bytes = buffer.bytes_mut();
            let length = match rustix::io::read(&self.descriptor, &mut *bytes) {
                Ok(length) => length,
                Err(errno) => {
                    self.spare = Some(buffer);
                    match errno {
                        Errno::INTR => continue,
                        // A packet the kernel could not hand over is gone; the next one may be there.
                        Errno::INVAL | Errno::NOMEM => {
                            self.discarded += 1;
                            return Err(io::ErrorKind::Interrupted.into());
                        }
                        _ => return Err(errno.into()),
                    }
                }
            };
            let whole = length < bytes.len();
            match parse_header(self.header_len, bytes.get(..length).unwrap_or_default()) {
                Some(offload) if whole => {
                    return Ok(RxPacket { buffer, range: self.header_len..length, offload });
                }
                _ => {
                    self.discarded += 1;
                    self.spare = Some(buffer);
                }
            }
        }
    }

    fn recv_scattered(&mut self, head_len: usize, body: &mut [u8]) -> io::Result<Received> {
        let longest = self.capabilities.segmentation.unwrap_or(self.capabilities.mtu);
        if head_len > MAX_HEAD || head_len + body.len() < longest {
            return self.recv().map(Received::Whole);
        }
        let mut head = [0; VirtioNetHdr::LEN + MAX_HEAD];
        let front = self.header_len + head_len;
        // One byte more than fits tells a packet that is too long from one that just fits.
        let mut beyond = [0];
        let length = loop {
            let mut parts = [
                IoSliceMut::new(&mut head[..front]),
                IoSliceMut::new(body),
                IoSliceMut::new(&mut beyond),
            ];
            match rustix::io::readv(&self.descriptor, &mut parts) {
                Ok(length) => break length,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        };
        let body_len = length.saturating_sub(front);
        let head_bytes = &head[self.header_len.min(length)..front.min(length)];
        if body_len > body.len() || head_bytes.is_empty() {
            self.discarded += 1;
            return Err(io::ErrorKind::Interrupted.into());
        }
        let header = match self.header_len {
            0 => VirtioNetHdr::default(),
            _ => VirtioNetHdr::decode(&head).unwrap_or_default(),
        };
        self.last_header = header;
        let head = Head::new(head_bytes);
        match header.claimed_offload(u16::try_from(head_len).unwrap_or(u16::MAX)) {
            Ok(offload) if body_len > 0 => Ok(Received::Split { head, body_len, offload }),
            _ => match self.gather(&head, body.get(..body_len).unwrap_or_default()) {
                Some(packet) => Ok(Received::Whole(packet)),
                None => Err(io::ErrorKind::Interrupted.into()),
            },
        }
    }

    fn gather(&mut self, head: &Head, body: &[u8]) -> Option<RxPacket> {
        let head = head.bytes();
        let mut buffer = self.spare.take().unwrap_or_else(|| self.pool.take());
        let length = head.len() + body.len();
        if buffer.capacity() < length {
            buffer = PacketBuf::with_capacity(length);
        }
        let bytes = buffer.bytes_mut();
        bytes[..head.len()].copy_from_slice(head);
        bytes[head.len()..length].copy_from_slice(body);
        let offload = match self.header_len {
            0 => Ok(RxOffload::default()),
            _ => self.last_header.rx_offload(&bytes[..length]),
        };
        match offload {
            Ok(offload) => Some(RxPacket { buffer, range: 0..length, offload }),
            Err(_) => {
                self.discarded += 1;
                self.spare = Some(buffer);
                None
            }
        }
    }

    fn recycle(&mut self, buffer: PacketBuf) {
        self.pool.put(buffer);
    }

    fn poll_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.descriptor.as_fd())
    }
}
