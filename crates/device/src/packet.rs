//! An Ethernet interface, beside the kernel's own network (packet(7), AF_PACKET).
//!
//! The stack is a station of its own on the link: it has its own address, its own MAC address, and answers ARP and neighbour discovery itself.
//! The kernel treats frames for that station as another machine's, and does not answer them. The two cannot talk to each other: the stack's frames
//! go out on the link, and the stack does not receive frames that its own machine sends.
//!
//! A virtio-net header stands before each frame, so checksums may be left open and super-segments cross in one system call, both
//! ways, as with a [TUN interface](crate::tun).
//!
//! Opening takes `CAP_NET_RAW`. Its holder can send and receive everything on that link, so give it only to trusted processes.
//!
//! With the feature `bpf` the stack may also have [the kernel's own address](KernelAddress). It shares the interface's MAC address then, and the kernel
//! answers ARP and neighbour discovery. A program at the interface's ingress keeps the kernel silent about the ports that the stack uses.

mod filter;
#[cfg(feature = "bpf")]
mod kernel_address;
mod socket;

use std::cell::RefCell;
use std::fmt;
use std::io::{self, IoSlice, IoSliceMut};
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use transom_base::packet::{BufferPool, PacketBuf};
use transom_wire::offload::{RxOffload, VirtioNetHdr};

use crate::device::{Head, MAX_HEAD, Received};
use crate::interface::{InterfaceError, InterfaceState, Interfaces, IpPrefix};
use crate::link::{ETHERNET_LEN, Link, Mac, OnLink, Routes, Taken};
use crate::many;
use crate::open::kind_of;
use crate::unflushed::Kept;
use crate::{Capabilities, Device, RxPacket, SendError, TxPacket};
#[cfg(feature = "bpf")]
pub(crate) use kernel_address::try_load as try_silence;
#[cfg(feature = "bpf")]
pub use kernel_address::{KernelAddress, SilentPorts};
use socket::PacketSocket;

/// Bytes before an IP packet: a virtio-net header and an Ethernet header.
const FRONT: usize = VirtioNetHdr::LEN + ETHERNET_LEN;
/// The longest super-segment: what an IPv4 header can say.
const LONGEST: usize = 65_535;

/// Why there is no such device.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PacketError {
    #[error("there is no interface {name}")]
    NoInterface { name: String, there_are: Vec<String> },
    #[error("{0} carries no Ethernet frames")]
    NoEthernet(String),
    #[error("{0} is down")]
    Down(String),
    #[error("the stack on it needs an address of its own, of the link's network")]
    NoAddress,
    #[error("{0} is the kernel's address: its TCP would answer with resets")]
    KernelAddress(IpAddr),
    #[cfg(feature = "bpf")]
    #[error("{0} is not one of the kernel's addresses at this interface, but other named ones are")]
    MixedAddresses(IpAddr),
    #[cfg(feature = "bpf")]
    #[error("cannot keep the kernel silent on its own address")]
    Silence(#[source] transom_bpf::BpfError),
    #[error("{0} addresses are too many: the maximum is 16")]
    TooManyAddresses(usize),
    #[error("cannot open a packet socket")]
    Socket(#[source] io::Error),
    #[error("cannot ask the kernel for its interfaces")]
    Netlink(#[source] io::Error),
    #[error(transparent)]
    Interface(#[from] InterfaceError),
}

impl PacketError {
    /// The meaning of the kernel's error number.
    pub(crate) fn kind(&self) -> io::ErrorKind {
        match self {
            PacketError::NoInterface { .. } => io::ErrorKind::NotFound,
            PacketError::Down(_) => io::ErrorKind::NetworkDown,
            _ => kind_of(self, io::ErrorKind::InvalidInput),
        }
    }
}

/// An Ethernet interface found fit for use, and the station that the stack is there.
pub(crate) struct Station {
    pub(crate) place: Place,
    pub(crate) mtu: usize,
    pub(crate) link: Link,
}

/// The place of a device: an interface of one namespace. A later caller may be in another namespace.
pub(crate) struct Place {
    name: String,
    index: u32,
    interfaces: RefCell<Interfaces>,
}

impl Place {
    #[cfg(feature = "xdp")]
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn index(&self) -> u32 {
        self.index
    }

    /// The meaning of an error of a socket on the interface.
    pub(crate) fn failed(&self, errno: Errno) -> io::Error {
        if !matches!(errno, Errno::NETDOWN | Errno::NXIO | Errno::NODEV) {
            return errno.into();
        }
        let state = self.interfaces.borrow_mut().state(&self.name);
        if state.is_ok_and(|state| state.index == self.index) {
            // Down for now: connections wait, as they do for any path that is gone.
            return io::ErrorKind::Interrupted.into();
        }
        let why = format!("the interface {} has been removed", self.name);
        io::Error::new(io::ErrorKind::NetworkDown, why)
    }
}

/// Looks at an interface, which has to carry Ethernet frames and be up.
fn ethernet(interfaces: &mut Interfaces, name: &str) -> Result<InterfaceState, PacketError> {
    let Ok(state) = interfaces.state(name) else {
        let there_are = interfaces.all().map_err(PacketError::Netlink)?;
        let there_are = there_are.into_iter().map(|other| other.name).collect();
        return Err(PacketError::NoInterface { name: name.into(), there_are });
    };
    if state.hardware != libc::ARPHRD_ETHER {
        return Err(PacketError::NoEthernet(name.into()));
    }
    if !state.up {
        return Err(PacketError::Down(name.into()));
    }
    Ok(state)
}

/// Makes a station of its own at an interface.
pub(crate) fn station(name: &str, addresses: &[IpPrefix]) -> Result<Station, PacketError> {
    let mut interfaces = Interfaces::open().map_err(PacketError::Netlink)?;
    let state = ethernet(&mut interfaces, name)?;
    let Some(first) = addresses.first() else { return Err(PacketError::NoAddress) };
    if addresses.len() > filter::MOST_ADDRESSES {
        return Err(PacketError::TooManyAddresses(addresses.len()));
    }
    for own in addresses {
        if interfaces.is_local(own.address())? {
            return Err(PacketError::KernelAddress(own.address()));
        }
    }
    let mac = own_mac(state.station, first.address());
    Station::new(name, state, interfaces, mac, addresses.to_vec())
}

impl Station {
    fn new(
        name: &str,
        state: InterfaceState,
        interfaces: Interfaces,
        mac: Mac,
        addresses: Vec<IpPrefix>,
    ) -> Result<Self, PacketError> {
        let mtu = usize::try_from(state.mtu).unwrap_or(LONGEST).min(LONGEST);
        let link = Link::new(mac, addresses, Routes::of(interfaces, state.index));
        let interfaces = RefCell::new(Interfaces::open().map_err(PacketError::Netlink)?);
        let place = Place { name: name.into(), index: state.index, interfaces };
        Ok(Station { place, mtu, link })
    }
}

/// A MAC address of one's own: locally administered (IEEE 802), and the same whenever the same address is used on the same interface, so that
/// neighbours need not learn another.
fn own_mac(interface: Mac, address: IpAddr) -> Mac {
    use std::hash::Hasher;
    let mut hasher = siphasher::sip::SipHasher24::new();
    hasher.write(&interface);
    match address {
        IpAddr::V4(v4) => hasher.write(&v4.octets()),
        IpAddr::V6(v6) => hasher.write(&v6.octets()),
    }
    let [a, b, c, d, e, f, ..] = hasher.finish().to_be_bytes();
    [a & 0xfc | 0x02, b, c, d, e, f]
}

/// A socket that hears questions about our addresses and nothing else, for a device that gets its packets by another way. It has the interface take
/// in what is for the station.
#[cfg(feature = "xdp")]
pub(crate) struct QuestionSocket(PacketSocket);

#[cfg(feature = "xdp")]
impl QuestionSocket {
    pub(crate) fn open(index: u32, mac: Mac, addresses: &[IpPrefix]) -> Result<Self, PacketError> {
        let socket = PacketSocket::open(index, &filter::questions(addresses));
        let socket = socket.map_err(PacketError::Socket)?;
        socket.join(index, mac, addresses).map_err(PacketError::Socket)?;
        Ok(QuestionSocket(socket))
    }

    /// Receives a frame into `buffer`, which is one of an MTU that any Ethernet has, and says how long it is.
    pub(crate) fn receive(&self, buffer: &mut [u8]) -> Result<usize, Errno> {
        let mut header = [0; VirtioNetHdr::LEN];
        let mut parts = [IoSliceMut::new(&mut header), IoSliceMut::new(buffer)];
        let length = self.0.receive(&mut parts)?;
        Ok(length.saturating_sub(VirtioNetHdr::LEN))
    }
}

#[cfg(feature = "xdp")]
impl AsFd for QuestionSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Opens a socket that hears nothing, to see whether it may be.
pub(crate) fn try_socket(index: u32) -> Result<(), PacketError> {
    PacketSocket::open(index, &filter::nothing()).map_err(PacketError::Socket)?;
    Ok(())
}

/// An Ethernet interface that a stack of its own is on.
pub(crate) struct PacketDevice {
    socket: PacketSocket,
    place: Place,
    link: Link,
    capabilities: Capabilities,
    pool: BufferPool,
    spare: Option<PacketBuf>,
    /// Frames that leave with the next flush.
    kept: Kept,
    /// The bytes before the packet received last in two parts.
    last_front: [u8; FRONT],
    started: Instant,
    discarded: u64,
}

impl fmt::Debug for PacketDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PacketDevice { place, link, discarded, .. } = self;
        f.debug_struct("PacketDevice")
            .field("name", &place.name)
            .field("link", link)
            .field("discarded", discarded)
            .finish_non_exhaustive()
    }
}

impl PacketDevice {
    /// Opens the device of a stack with these addresses at an interface of the calling thread's network namespace. With `offload`, checksums may be left open and
    /// super-segments be sent.
    pub(crate) fn open(
        interface: &str,
        addresses: &[IpPrefix],
        offload: bool,
    ) -> Result<Self, PacketError> {
        let station = station(interface, addresses)?;
        let (index, mac) = (station.place.index(), station.link.mac());
        let hears = filter::program(mac, addresses);
        let socket = PacketSocket::open(index, &hears).map_err(PacketError::Socket)?;
        socket.join(index, mac, addresses).map_err(PacketError::Socket)?;
        let mut device = PacketDevice::new(station, socket, offload);
        for frame in device.link.announcements() {
            device.send_frame(&frame);
        }
        Ok(device)
    }

    fn new(station: Station, socket: PacketSocket, offload: bool) -> Self {
        let Station { place, mtu, link } = station;
        PacketDevice {
            capabilities: Capabilities {
                mtu,
                tx_checksum: offload,
                segmentation: offload.then_some(LONGEST),
                rx_coalesce: true,
            },
            socket,
            place,
            link,
            pool: BufferPool::new(FRONT + LONGEST + 40 + 1, 256),
            spare: None,
            kept: Kept::default(),
            last_front: [0; FRONT],
            started: Instant::now(),
            discarded: 0,
        }
    }

    /// The bytes before a packet on its way to a station.
    fn front(&self, to: Mac, packet: &TxPacket<'_>) -> Result<[u8; FRONT], SendError> {
        let header = VirtioNetHdr::for_packet(&packet.offload, packet.headers, packet.len())
            .map_err(SendError::Offload)?;
        Ok(front(header, self.link.mac(), to, packet.headers))
    }

    /// Sends the frames that were kept.
    fn send_kept(&mut self) {
        if !self.kept.is_empty() {
            self.kept.send_by(|frames| self.socket.send_many(frames));
        }
    }

    /// Looks at what was received: `bytes` is all of it. Says what the packet's offload state is, if it is a packet for the stack.
    fn look_at(&mut self, bytes: &[u8]) -> Option<RxOffload> {
        let frame = bytes.get(VirtioNetHdr::LEN..)?;
        match self.link.take(self.started.elapsed(), frame) {
            Taken::Packet => {
                let packet = bytes.get(FRONT..).filter(|packet| !packet.is_empty());
                let header = VirtioNetHdr::decode(bytes).ok().and_then(inner);
                let offload = packet.zip(header).and_then(|(packet, header)| {
                    // Short packets are padded to 46 bytes on an Ethernet; the IP header has the length.
                    header.rx_offload(packet).ok()
                });
                if offload.is_none() {
                    self.discarded += 1;
                }
                offload
            }
            Taken::Link(answer, held) => {
                self.send_after_link_frame(answer, held);
                None
            }
            Taken::Nothing => None,
        }
    }
}

/// The virtio-net header of a frame, as it would be without the Ethernet header; `None` if that makes no sense.
pub(crate) fn inner(header: VirtioNetHdr) -> Option<VirtioNetHdr> {
    let mut header = header;
    if header.flags & VirtioNetHdr::NEEDS_CSUM != 0 {
        header.csum_start = header.csum_start.checked_sub(ETHERNET_LEN as u16)?;
    }
    header.hdr_len = header.hdr_len.saturating_sub(ETHERNET_LEN as u16);
    Some(header)
}

/// The virtio-net header and the Ethernet header of a packet.
pub(crate) fn front(header: VirtioNetHdr, from: Mac, to: Mac, packet: &[u8]) -> [u8; FRONT] {
    let mut header = header;
    if header.flags & VirtioNetHdr::NEEDS_CSUM != 0 {
        header.csum_start = header.csum_start.saturating_add(ETHERNET_LEN as u16);
    }
    if header.hdr_len != 0 {
        header.hdr_len = header.hdr_len.saturating_add(ETHERNET_LEN as u16);
    }
    let mut front = [0; FRONT];
    front[..VirtioNetHdr::LEN].copy_from_slice(&header.encode());
    front[VirtioNetHdr::LEN..].copy_from_slice(&ethernet_header(from, to, packet));
    front
}

/// The Ethernet header of an IP packet.
pub(crate) fn ethernet_header(from: Mac, to: Mac, packet: &[u8]) -> [u8; ETHERNET_LEN] {
    let is_v6 = packet.first().is_some_and(|first| first >> 4 == 6);
    let ethertype = if is_v6 { libc::ETH_P_IPV6 } else { libc::ETH_P_IP } as u16;
    let mut header = [0; ETHERNET_LEN];
    header[..6].copy_from_slice(&to);
    header[6..12].copy_from_slice(&from);
    header[12..].copy_from_slice(&ethertype.to_be_bytes());
    header
}

impl OnLink for PacketDevice {
    fn link(&mut self) -> (&mut Link, Duration) {
        (&mut self.link, self.started.elapsed())
    }

    fn send_frame(&mut self, frame: &[u8]) {
        let _ = self
            .socket
            .send(&[IoSlice::new(&VirtioNetHdr::default().encode()), IoSlice::new(frame)]);
    }

    fn send_to(&mut self, to: Mac, packet: &TxPacket<'_>) -> io::Result<()> {
        self.send_kept();
        let front = self.front(to, packet)?;
        let outcome = self.socket.send(&[
            IoSlice::new(&front),
            IoSlice::new(packet.headers),
            IoSlice::new(packet.payload[0]),
            IoSlice::new(packet.payload[1]),
        ]);
        outcome.map_err(|errno| match errno {
            // The queue is full, or memory short; both pass.
            Errno::NOBUFS | Errno::NOMEM | Errno::AGAIN => io::ErrorKind::WouldBlock.into(),
            errno => self.place.failed(errno),
        })
    }
}

impl Device for PacketDevice {
    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn send(&mut self, packet: &TxPacket<'_>) -> io::Result<()> {
        self.capabilities.admit(packet)?;
        self.send_packet(packet)
    }

    fn send_more(&mut self, packet: &TxPacket<'_>) -> io::Result<()> {
        self.capabilities.admit(packet)?;
        let Some(station) = self.neighbour_of(packet)? else { return Ok(()) };
        let front = self.front(station, packet)?;
        if self.kept.is_full() {
            self.send_kept();
        }
        if self.kept.keep(&[&front, packet.headers, packet.payload[0], packet.payload[1]]) {
            return Ok(());
        }
        self.send_to(station, packet)
    }

    fn flush(&mut self) -> usize {
        self.send_kept();
        self.kept.take_lost()
    }

    fn recv(&mut self) -> io::Result<RxPacket> {
        loop {
            let mut buffer = self.spare.take().unwrap_or_else(|| self.pool.take());
            let length = match self.socket.receive(&mut [IoSliceMut::new(&mut buffer)]) {
                Ok(length) => length,
                Err(errno) => {
                    self.spare = Some(buffer);
                    return Err(self.place.failed(errno));
                }
            };
            let whole = length < buffer.len();
            let bytes = buffer.get(..length).unwrap_or_default();
            match self.look_at(bytes) {
                Some(offload) if whole => {
                    return Ok(RxPacket { buffer, range: FRONT..length, offload });
                }
                _ => self.spare = Some(buffer),
            }
        }
    }

    fn receives_many(&self) -> bool {
        true
    }

    fn recv_batch(&mut self, max: usize, out: &mut Vec<RxPacket>) -> io::Result<usize> {
        let max = max.min(many::MOST_RECEIVED);
        let before = out.len();
        while max > 0 && out.len() == before {
            let mut buffers: [PacketBuf; many::MOST_RECEIVED] = Default::default();
            buffers.iter_mut().take(max).for_each(|buffer| *buffer = self.pool.take());
            let mut lengths = [0; many::MOST_RECEIVED];
            let received = {
                let mut parts = buffers.each_mut().map(|buffer| IoSliceMut::new(buffer));
                self.socket.receive_many(&mut parts[..max], &mut lengths)
            };
            let count = *received.as_ref().unwrap_or(&0);
            for (number, (buffer, length)) in buffers.into_iter().zip(lengths).enumerate() {
                let bytes = buffer.get(..length).unwrap_or_default();
                // One that fills its buffer was cut off.
                let cut_off = length >= buffer.len();
                let arrived = number < count;
                self.discarded += u64::from(arrived && cut_off);
                match (arrived && !cut_off).then(|| self.look_at(bytes)).flatten() {
                    Some(offload) => out.push(RxPacket { buffer, range: FRONT..length, offload }),
                    None => self.pool.put(buffer),
                }
            }
            received.map_err(|errno| self.place.failed(errno))?;
        }
        Ok(out.len() - before)
    }

    fn recv_scattered(&mut self, head_len: usize, body: &mut [u8]) -> io::Result<Received> {
        if head_len > MAX_HEAD || head_len + body.len() < LONGEST {
            return self.recv().map(Received::Whole);
        }
        let mut head = [0; FRONT + MAX_HEAD];
        let front = FRONT + head_len;
        let mut beyond = [0];
        let parts = &mut [
            IoSliceMut::new(&mut head[..front]),
            IoSliceMut::new(body),
            IoSliceMut::new(&mut beyond),
        ];
        let length = self.socket.receive(parts).map_err(|errno| self.place.failed(errno))?;
        let body_len = length.saturating_sub(front);
        let header = VirtioNetHdr::decode(&head).ok().and_then(inner);
        let for_stack = head[VirtioNetHdr::LEN..].starts_with(&self.link.mac());
        let claimed = header.and_then(|header| {
            header.claimed_offload(u16::try_from(head_len).unwrap_or(u16::MAX)).ok()
        });
        match claimed {
            // The caller looks at the IP header: what is no packet of the connection's is gathered after all.
            Some(offload) if for_stack && (1..=body.len()).contains(&body_len) => {
                self.last_front.copy_from_slice(&head[..FRONT]);
                let head = Head::new(&head[FRONT..front]);
                Ok(Received::Split { head, body_len, offload })
            }
            _ if body_len > body.len() => {
                self.discarded += 1;
                Err(io::ErrorKind::Interrupted.into())
            }
            _ => {
                // Something for the link, most likely, and short.
                let bytes = [&head[..front.min(length)], &body[..body_len]].concat();
                let offload = self.look_at(&bytes).ok_or(io::ErrorKind::Interrupted)?;
                let buffer = PacketBuf::from(&bytes[..]);
                Ok(Received::Whole(RxPacket { buffer, range: FRONT..length, offload }))
            }
        }
    }

    fn gather(&mut self, head: &Head, body: &[u8]) -> Option<RxPacket> {
        // It may be an answer for the link after all, which is for the same station.
        let mut buffer = self.spare.take().unwrap_or_else(|| self.pool.take());
        let mut length = 0;
        for part in [&self.last_front[..], head.bytes(), body] {
            let place = buffer.get_mut(length..length + part.len())?;
            place.copy_from_slice(part);
            length += part.len();
        }
        match self.look_at(buffer.get(..length)?) {
            Some(offload) => Some(RxPacket { buffer, range: FRONT..length, offload }),
            None => {
                self.spare = Some(buffer);
                None
            }
        }
    }

    fn recycle(&mut self, buffer: PacketBuf) {
        self.pool.put(buffer);
    }

    fn poll_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.as_fd())
    }
}
