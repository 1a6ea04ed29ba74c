//! The interface between a stack and what carries its packets.
//!
//! Sending is scatter-gather: a packet is a block of headers and up to two payload slices (a ring
//! buffer's two halves), so that nothing is copied to put them in a row. Receiving hands out
//! pooled buffers, and with them their ownership: the receive queue may keep one for as long as the
//! application has not read it, and in the end it comes back through [`Device::recycle`].

use std::io;
use std::ops::Range;
use std::os::fd::BorrowedFd;

use transom_base::packet::PacketBuf;
use transom_wire::offload::{RxOffload, TxChecksum, TxOffload};

/// The abilities of a device: packet lengths, and the work that it takes off the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// The longest IP packet, in bytes including its headers, that may be sent unsegmented.
    pub mtu: usize,
    /// Whether [`TxChecksum::Partial`] may be used: the device or its receiver completes
    /// the sum.
    pub tx_checksum: bool,
    /// The longest super-segment, in bytes including its headers, that may be sent with a
    /// segmentation request; `None` when the device cannot segment.
    pub segmentation: Option<usize>,
    /// Whether [`Device::recv`] may deliver super-segments longer than the MTU.
    pub rx_coalesce: bool,
}

/// A packet to be sent, borrowed from wherever its parts lie.
#[derive(Clone, Copy, Debug)]
pub struct TxPacket<'a> {
    /// The IP and transport headers, or a whole packet.
    pub headers: &'a [u8],
    /// The payload that follows the headers, in order; either slice may be empty.
    pub payload: [&'a [u8]; 2],
    /// The work left to the device: completing the checksum, cutting a super-segment.
    pub offload: TxOffload,
}

impl<'a> TxPacket<'a> {
    /// A complete packet in one piece that leaves nothing to the device.
    pub fn whole(packet: &'a [u8]) -> Self {
        TxPacket { headers: packet, payload: [&[]; 2], offload: TxOffload::default() }
    }

    /// The packet's length in bytes, headers included.
    pub fn len(&self) -> usize {
        self.headers.len() + self.payload[0].len() + self.payload[1].len()
    }

    /// Whether there are no bytes at all.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Copies the packet's parts one after the other into `out`, which must hold at least
    /// [`TxPacket::len`] bytes; returns the number written, or `None` if they do not fit.
    pub fn copy_to(&self, out: &mut [u8]) -> Option<usize> {
        let mut at = 0;
        for part in [self.headers, self.payload[0], self.payload[1]] {
            out.get_mut(at..at + part.len())?.copy_from_slice(part);
            at += part.len();
        }
        Some(at)
    }
}

/// A received packet: a place in a pooled buffer.
///
/// After use, the buffer goes back to the device with [`Device::recycle`].
/// Dropping it instead is safe and costs an allocation later.
#[derive(Clone, Debug)]
pub struct RxPacket {
    /// The buffer that holds the packet.
    pub buffer: PacketBuf,
    /// The place of the IP packet in the buffer.
    pub range: Range<usize>,
    /// The state of its checksum, and whether this is a super-segment.
    pub offload: RxOffload,
}

impl RxPacket {
    /// The IP packet's bytes; empty if the range does not lie within the buffer.
    pub fn bytes(&self) -> &[u8] {
        self.buffer.get(self.range.clone()).unwrap_or_default()
    }
}

/// The longest head of a packet received in two parts, in bytes.
pub const MAX_HEAD: usize = 120;

/// The first bytes of a packet received in two parts.
#[derive(Clone, Copy, Debug)]
pub struct Head {
    bytes: [u8; MAX_HEAD],
    len: usize,
}

impl Head {
    /// A head of `bytes`, of which there may be at most [`MAX_HEAD`]; more are cut off.
    pub fn new(bytes: &[u8]) -> Self {
        let len = bytes.len().min(MAX_HEAD);
        let mut head = Head { bytes: [0; MAX_HEAD], len };
        head.bytes[..len].copy_from_slice(&bytes[..len]);
        head
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// A packet from [`Device::recv_scattered`].
#[derive(Clone, Debug)]
pub enum Received {
    /// A packet in one piece.
    Whole(RxPacket),
    /// A packet in two parts.
    Split {
        /// Its first bytes.
        head: Head,
        /// How many of the bytes of `body` follow.
        body_len: usize,
        /// As in [`RxPacket::offload`], but taken on trust: it holds if the packet's headers are what the caller
        /// expected.
        offload: RxOffload,
    },
}

/// Why a device refused a packet. Nothing was sent; sending the same packet again fails the same
/// way.
///
/// It arrives inside an [`io::Error`] of kind [`io::ErrorKind::InvalidInput`]; see
/// [`SendError::of`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// The packet is longer than the device carries.
    #[error("packet of {length} bytes exceeds the device's limit of {limit} bytes")]
    TooLong {
        /// The packet's length in bytes.
        length: usize,
        /// The MTU, or for a super-segment the longest one the device cuts.
        limit: usize,
    },
    /// The packet asks for segmentation, which this device does not do.
    #[error("the device does not segment packets")]
    Segmentation,
    /// The packet leaves its checksum to a device that does not complete it.
    #[error("the device does not complete checksums")]
    Checksum,
    /// The offload request contradicts the packet it comes with.
    #[error("the offload request does not fit the packet: {0}")]
    Offload(transom_wire::Error),
}

impl SendError {
    /// The reason behind an error that [`Device::send`] returned, if it was a refusal.
    pub fn of(error: &io::Error) -> Option<SendError> {
        error.get_ref()?.downcast_ref().copied()
    }
}

impl From<SendError> for io::Error {
    fn from(error: SendError) -> Self {
        io::Error::new(io::ErrorKind::InvalidInput, error)
    }
}

impl Capabilities {
    /// Checks that `packet` asks for no more than these capabilities offer; whether its offload
    /// request makes sense is for
    /// [`VirtioNetHdr::for_packet`](transom_wire::offload::VirtioNetHdr::for_packet) to say.
    ///
    /// # Errors
    /// The first [`SendError`] that applies.
    pub fn admit(&self, packet: &TxPacket<'_>) -> Result<(), SendError> {
        let limit = match packet.offload.segmentation {
            Some(_) => self.segmentation.ok_or(SendError::Segmentation)?,
            None => self.mtu,
        };
        if matches!(packet.offload.checksum, TxChecksum::Partial { .. }) && !self.tx_checksum {
            return Err(SendError::Checksum);
        }
        let length = packet.len();
        if length > limit {
            return Err(SendError::TooLong { length, limit });
        }
        Ok(())
    }
}

/// Something that carries IP packets, used by one thread at a time and never blocking.
pub trait Device: Send {
    /// The device's abilities. Fixed for the device's lifetime.
    fn capabilities(&self) -> Capabilities;

    /// Sends one packet.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] when the device is full: nothing was sent, and the same packet
    /// may be sent later. [`io::ErrorKind::InvalidInput`] with a [`SendError`] inside when the
    /// packet is refused. Anything else is the operating system's answer.
    fn send(&mut self, packet: &TxPacket<'_>) -> io::Result<()>;

    /// Sends one packet, or keeps a copy until [`Device::flush`] and sends it together with others by one system call. This is for a caller that
    /// sends several and flushes after the last. All packets leave in the order in which they were given, those of [`Device::send`] among them.
    /// What a device keeps is bounded: a full one sends by itself.
    ///
    /// # Errors
    /// As [`Device::send`]. Success means that the packet was sent or is kept.
    fn send_more(&mut self, packet: &TxPacket<'_>) -> io::Result<()> {
        self.send(packet)
    }

    /// Sends what [`Device::send_more`] has kept. Says how many of the packets given to it were lost since the last flush, as the device was full or
    /// the operating system refused them: those for which [`Device::send`] would have been an error.
    fn flush(&mut self) -> usize {
        0
    }

    /// Says something about the packet that is sent next, for those who write packets down. Others need not listen.
    fn annotate(&mut self, comment: &str) {
        let _ = comment;
    }

    /// Receives one packet.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] when there is none. Anything else is the operating system's
    /// answer.
    fn recv(&mut self) -> io::Result<RxPacket>;

    /// Receives up to `max` packets, appends them to `out` and returns how many there were.
    ///
    /// # Errors
    /// As [`Device::recv`], but only when nothing was received before the error; so
    /// [`io::ErrorKind::WouldBlock`] means that there was no packet at all.
    fn recv_batch(&mut self, max: usize, out: &mut Vec<RxPacket>) -> io::Result<usize> {
        for received in 0..max {
            match self.recv() {
                Ok(packet) => out.push(packet),
                Err(error) if received == 0 => return Err(error),
                // An error that lasts is met again by the next call; one that does not is none.
                Err(_) => return Ok(received),
            }
        }
        Ok(max)
    }

    /// Whether [`Device::recv_batch`] takes several packets by one system call. Otherwise a caller that may want no more than one does better by
    /// [`Device::recv`].
    fn receives_many(&self) -> bool {
        false
    }

    /// Receives one packet in two parts: its first `head_len` bytes (at most [`MAX_HEAD`]) by themselves, and the rest in `body`.
    /// Never blocks.
    ///
    /// This is for a caller that expects a packet with so long a header and wants the payload where it is to be
    /// used. A device that cannot scatter gives a whole packet, as [`Device::recv`] does; so does one that finds
    /// that the packet does not fit, or is shorter than its head.
    ///
    /// # Errors
    /// As [`Device::recv`], and [`io::ErrorKind::Interrupted`] after a packet that made no sense: there may be more.
    fn recv_scattered(&mut self, head_len: usize, body: &mut [u8]) -> io::Result<Received> {
        let _ = (head_len, body);
        self.recv().map(Received::Whole)
    }

    /// Puts the packet received last, in two parts, together after all. `None`: it makes no sense, and is dropped.
    fn gather(&mut self, head: &Head, body: &[u8]) -> Option<RxPacket> {
        let bytes = [head.bytes(), body].concat();
        let offload = RxOffload::default();
        Some(RxPacket { range: 0..bytes.len(), buffer: bytes.into(), offload })
    }

    /// The device's other queues, each a device of its own for another thread; a second time there are none. A device without
    /// others gives none.
    fn take_queues(&mut self) -> Vec<Box<dyn Device>> {
        Vec::new()
    }

    /// Gives a received packet's buffer back for reuse.
    fn recycle(&mut self, buffer: PacketBuf);

    /// A descriptor that is readable whenever [`Device::recv`] would succeed. It may also be
    /// readable without reason until the next [`Device::recv`] has found nothing. `None` if there
    /// is nothing to wait on.
    fn poll_fd(&self) -> Option<BorrowedFd<'_>>;

    /// [`Device::poll_fd`] in two parts, where it has two: one for nearly all packets, and one for a few others. To wait for both and to
    /// look only at the one that is readable saves a look at the other with each packet.
    fn poll_parts(&self) -> Option<[BorrowedFd<'_>; 2]> {
        None
    }

    /// Whether [`Device::recv`] is to look also for the packets of the second of the [parts](Device::poll_parts). It does until told
    /// otherwise.
    fn look_aside(&mut self, aside: bool) {
        let _ = aside;
    }
}

/// Passes everything on, the batch as well: the inner device may have a better way than the
/// default.
macro_rules! forward_device {
    ($($pointer:ty),*) => {$(
        impl<D: Device + ?Sized> Device for $pointer {
            fn capabilities(&self) -> Capabilities {
                (**self).capabilities()
            }

            fn send(&mut self, packet: &TxPacket<'_>) -> io::Result<()> {
                (**self).send(packet)
            }

            fn send_more(&mut self, packet: &TxPacket<'_>) -> io::Result<()> {
                (**self).send_more(packet)
            }

            fn flush(&mut self) -> usize {
                (**self).flush()
            }

            fn annotate(&mut self, comment: &str) {
                (**self).annotate(comment);
            }

            fn recv(&mut self) -> io::Result<RxPacket> {
                (**self).recv()
            }

            fn recv_batch(&mut self, max: usize, out: &mut Vec<RxPacket>) -> io::Result<usize> {
                (**self).recv_batch(max, out)
            }

            fn receives_many(&self) -> bool {
                (**self).receives_many()
            }

            fn recv_scattered(&mut self, head_len: usize, body: &mut [u8]) -> io::Result<Received> {
                (**self).recv_scattered(head_len, body)
            }

            fn gather(&mut self, head: &Head, body: &[u8]) -> Option<RxPacket> {
                (**self).gather(head, body)
            }

            fn take_queues(&mut self) -> Vec<Box<dyn Device>> {
                (**self).take_queues()
            }

            fn recycle(&mut self, buffer: PacketBuf) {
                (**self).recycle(buffer);
            }

            fn poll_fd(&self) -> Option<BorrowedFd<'_>> {
                (**self).poll_fd()
            }

            fn poll_parts(&self) -> Option<[BorrowedFd<'_>; 2]> {
                (**self).poll_parts()
            }

            fn look_aside(&mut self, aside: bool) {
                (**self).look_aside(aside);
            }
        }
    )*};
}

forward_device!(&mut D, Box<D>);
