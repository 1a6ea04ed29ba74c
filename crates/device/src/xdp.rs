//! An Ethernet interface by AF_XDP: frames pass between the driver and memory of ours, and never become the kernel's packets.
//!
//! As with [`packet`](crate::packet), the stack is a station of its own on the link. A program at the driver gives us the frames for that station, and
//! leaves the rest to the kernel. A packet socket receives broadcast questions (ARP, neighbour discovery), so that the kernel receives them too.
//!
//! Some drivers copy nothing; others, such as veth, copy each frame. There are no super-segments and no open checksums: the stack's are cut and
//! completed here, and packets arrive as they were on the wire. A veth pair leaves checksums open and does not report it. Such a checksum field holds
//! the sum of the pseudo-header alone, and is recognised by that.
//!
//! Opening takes `CAP_NET_RAW`, `CAP_NET_ADMIN`, `CAP_BPF`, and Linux 5.9. Frames come in by all queues of the interface, which may be 16 at most, and leave by the
//! first.
//!
//! The crate `xdp` has the rings and the memory: it is all Rust, has no dependencies and builds with stable compilers. (`xsk-rs` needs libxdp, a C
//! library, and clang.) The program is loaded by `transom-bpf`, as the router's and the broker's are.

mod program;
mod queues;
mod rings;

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::epoll;
use rustix::io::Errno;
use transom_base::packet::{BufferPool, PacketBuf};
use transom_wire::offload::{RxChecksum, RxOffload, Segmenter};
use transom_wire::{IpPacket, Protocol, checksum, tcp};

use crate::interface::IpPrefix;
use crate::link::{ETHERNET_LEN, Link, Mac, OnLink, Taken};
use crate::open::kind_of;
use crate::packet::{PacketError, Place, QuestionSocket, Station, ethernet_header, station};
use crate::{Capabilities, Device, MAX_HEAD, RxPacket, SendError, TxPacket};
use program::Redirection;
use queues::Queues;

/// The longest frame that has room in the memory shared with the kernel.
const LONGEST_FRAME: usize = rings::FRAME;
/// The longest super-segment that is cut here.
const LONGEST_SUPER_SEGMENT: usize = 65_535;

/// Why there is no such device.
#[derive(Debug, thiserror::Error)]
pub(crate) enum XdpError {
    #[error(transparent)]
    Packet(#[from] PacketError),
    #[error("{interface} has more than {most} queues")]
    Queues { interface: String, most: usize },
    /// The interface's packets are too long for the memory shared with the kernel.
    #[error("the MTU of {mtu} bytes is too large: the maximum is {}", LONGEST_FRAME - ETHERNET_LEN)]
    Mtu { mtu: usize },
    #[error("cannot {action}")]
    Program { action: &'static str, source: Box<dyn std::error::Error + Send + Sync> },
    #[error("cannot open an AF_XDP socket")]
    Socket(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("the system refuses memory or descriptors for the device")]
    System(#[source] io::Error),
}

impl XdpError {
    /// The meaning of the kernel's error number.
    pub(crate) fn kind(&self) -> io::ErrorKind {
        match self {
            XdpError::Packet(error) => error.kind(),
            XdpError::Program { .. } | XdpError::Socket(_) => kind_of(self, io::ErrorKind::Other),
            _ => kind_of(self, io::ErrorKind::InvalidInput),
        }
    }
}

impl From<XdpError> for io::Error {
    fn from(error: XdpError) -> Self {
        io::Error::new(error.kind(), error)
    }
}

/// An Ethernet interface that a stack of its own is on, by AF_XDP.
pub(crate) struct XdpDevice {
    // Dropped in this order: first nothing comes any more.
    redirection: Redirection,
    queues: Queues,
    questions: QuestionSocket,
    waiting: OwnedFd,
    place: Place,
    link: Link,
    mtu: usize,
    pool: BufferPool,
    question: Vec<u8>,
    started: Instant,
    discarded: u64,
}

impl fmt::Debug for XdpDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let XdpDevice { place, link, discarded, .. } = self;
        f.debug_struct("XdpDevice")
            .field("name", &place.name())
            .field("link", link)
            .field("discarded", discarded)
            .finish_non_exhaustive()
    }
}

impl XdpDevice {
    /// Opens the device on an interface in the calling thread's network namespace, for a stack with these addresses.
    pub(crate) fn open(interface: &str, addresses: &[IpPrefix]) -> Result<Self, XdpError> {
        let Station { place, mtu, link } = station(interface, addresses)?;
        if mtu + ETHERNET_LEN > LONGEST_FRAME {
            return Err(XdpError::Mtu { mtu });
        }
        let index = place.index();
        let questions = QuestionSocket::open(index, link.mac(), addresses)?;
        let queues = Queues::open(interface, index)?;
        let redirection = Redirection::attach(index, link.mac(), &queues)?;
        let waiting = epoll::create(epoll::CreateFlags::CLOEXEC)
            .and_then(|waiting| {
                for fd in queues.descriptors().chain([questions.as_fd()]) {
                    epoll::add(&waiting, fd, epoll::EventData::new_u64(0), epoll::EventFlags::IN)?;
                }
                Ok(waiting)
            })
            .map_err(|errno| XdpError::System(errno.into()))?;
        let mut device = XdpDevice {
            redirection,
            queues,
            questions,
            waiting,
            place,
            link,
            mtu,
            pool: BufferPool::new(LONGEST_FRAME, 2048),
            question: vec![0; 2048],
            started: Instant::now(),
            discarded: 0,
        };
        for frame in device.link.announcements() {
            let _ = device.queues.send([&frame[..]].into_iter());
        }
        device.queues.flush();
        Ok(device)
    }

    /// Whether the program is at the driver, and not behind it.
    pub(crate) fn is_native(&self) -> bool {
        self.redirection.is_native()
    }

    /// Answers questions about our addresses, until there are no more. The error says so, or names the failure of the interface.
    fn answer_address_requests(&mut self) -> io::Error {
        let mut question = std::mem::take(&mut self.question);
        let errno = loop {
            let length = match self.questions.receive(&mut question) {
                Ok(length) => length,
                Err(errno) => break errno,
            };
            let frame = question.get(..length).unwrap_or_default();
            if let Taken::Link(answer, held) = self.link.take(self.started.elapsed(), frame) {
                self.send_after_link_frame(answer, held);
            }
        };
        self.question = question;
        match errno {
            Errno::AGAIN => io::ErrorKind::WouldBlock.into(),
            errno => self.place.failed(errno),
        }
    }
}

/// Sees whether such a device could be opened, as far as that can be seen without disturbing the interface.
pub(crate) fn try_parts() -> Result<(), XdpError> {
    rings::try_socket()?;
    program::try_load()
}

/// Whether a packet's TCP checksum is open: the sum of the pseudo-header alone is in the field, as a sender leaves it that trusts the wire.
fn is_open(packet: &[u8]) -> bool {
    let Ok(ip) = IpPacket::parse(packet) else { return false };
    if ip.protocol() != Protocol::TCP || ip.fragment().is_some() {
        return false;
    }
    let field = ip.payload().get(tcp::CHECKSUM_OFFSET..).and_then(|rest| rest.first_chunk::<2>());
    let length = u32::try_from(ip.payload().len()).unwrap_or(0);
    let open = checksum::pseudo_header(ip.src(), ip.dst(), Protocol::TCP, length);
    field.is_some_and(|field| u16::from_be_bytes(*field) == open.0)
}

impl OnLink for XdpDevice {
    fn link(&mut self) -> (&mut Link, Duration) {
        (&mut self.link, self.started.elapsed())
    }

    fn send_frame(&mut self, frame: &[u8]) {
        let _ = self.queues.send([frame].into_iter());
        self.queues.flush();
    }

    fn send_to(&mut self, to: Mac, packet: &TxPacket<'_>) -> io::Result<()> {
        let outcome = self.put_into_ring(to, packet);
        self.queues.flush();
        outcome
    }

    /// Cuts off the headers for the segmenter.
    fn send_held(&mut self, to: Mac, packet: &TxPacket<'_>) -> io::Result<()> {
        let header_len = match packet.offload.segmentation {
            Some(segmentation) => usize::from(segmentation.header_len),
            None => packet.headers.len().min(MAX_HEAD),
        };
        let (headers, payload) = packet.headers.split_at(header_len.min(packet.headers.len()));
        self.send_to(to, &TxPacket { headers, payload: [payload, &[]], offload: packet.offload })
    }
}

impl XdpDevice {
    /// Puts a packet into the ring, from which it leaves when that is flushed.
    fn put_into_ring(&mut self, to: Mac, packet: &TxPacket<'_>) -> io::Result<()> {
        let mut segmenter = Segmenter::new(packet.headers, packet.payload, &packet.offload)
            .map_err(SendError::Offload)?;
        let ethernet = ethernet_header(self.link.mac(), to, packet.headers);
        // A whole packet may come as headers alone.
        let mut head = [0; 2048];
        let mut outcome = Ok(());
        let mut sent = 0;
        while let Some(segment) = segmenter.next_segment(&mut head).map_err(SendError::Offload)? {
            let [first, second, third] = segment.payload;
            let parts = [&ethernet[..], &head[..segment.header_len], first, second, third];
            outcome = self.queues.send(parts.into_iter());
            if outcome.is_err() {
                break;
            }
            sent += 1;
        }
        // The rest of the super-segment is lost, as in any full queue.
        if sent > 0 { Ok(()) } else { outcome }
    }
}

impl Device for XdpDevice {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            mtu: self.mtu,
            tx_checksum: true,
            segmentation: Some(LONGEST_SUPER_SEGMENT),
            rx_coalesce: false,
        }
    }

    fn send(&mut self, packet: &TxPacket<'_>) -> io::Result<()> {
        self.capabilities().admit(packet)?;
        self.send_packet(packet)
    }

    /// The ring keeps it. A full ring says so at once, so that a flush loses nothing.
    fn send_more(&mut self, packet: &TxPacket<'_>) -> io::Result<()> {
        self.capabilities().admit(packet)?;
        self.neighbour_of(packet)?.map_or(Ok(()), |station| self.put_into_ring(station, packet))
    }

    fn flush(&mut self) -> usize {
        self.queues.flush();
        0
    }

    fn recv(&mut self) -> io::Result<RxPacket> {
        loop {
            let mut buffer = self.pool.take();
            let Some(length) = self.queues.receive(&mut buffer) else {
                self.pool.put(buffer);
                return Err(self.answer_address_requests());
            };
            let frame = buffer.get(..length).unwrap_or_default();
            match self.link.take(self.started.elapsed(), frame) {
                Taken::Packet => {
                    let packet = frame.get(ETHERNET_LEN..).unwrap_or_default();
                    let checksum =
                        if is_open(packet) { RxChecksum::Valid } else { RxChecksum::Unverified };
                    let offload = RxOffload { checksum, segmentation: None };
                    return Ok(RxPacket { buffer, range: ETHERNET_LEN..length, offload });
                }
                Taken::Link(answer, held) => self.send_after_link_frame(answer, held),
                Taken::Nothing => self.discarded += 1,
            }
            self.pool.put(buffer);
        }
    }

    fn recycle(&mut self, buffer: PacketBuf) {
        self.pool.put(buffer);
    }

    fn poll_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.waiting.as_fd())
    }
}

#[cfg(test)]
mod tests;
