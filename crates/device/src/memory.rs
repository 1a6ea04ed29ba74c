//! Devices that are only memory: two ends for two threads, or one link for a single one.
//!
//! A packet is copied once, from the sender's slices into a pooled buffer, and the receiver reads
//! it there. The queue in each direction is bounded, so a sender that is too fast sees
//! [`io::ErrorKind::WouldBlock`] as it would on a real device; nothing is ever lost. There are two
//! sizes of buffers, so that an acknowledgement waiting in the queue does not hold 64 KB.
//!
//! With [`pair`], each direction is a queue under a mutex, held for moments only (never while
//! copying), and an eventfd that is readable while there may be something to receive.
//! [`named`] joins two ends by a name alone. [`MemoryLink`] is the same queue without either, for simulations and benchmarks in one thread.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::event::EventfdFlags;
use rustix::io::Errno;
use transom_base::packet::{BufferPool, PacketBuf};
use transom_wire::offload::{RxChecksum, RxOffload, Segmenter, TxChecksum, VirtioNetHdr};

use crate::{Capabilities, Device, RxPacket, SendError, TxPacket};

mod named;

pub use named::named;

/// How a memory device behaves; both ends and both directions are alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryConfig {
    /// The longest IP packet in bytes.
    pub mtu: usize,
    /// Whether checksums may be left open; the receiver is then told that they are valid.
    pub tx_checksum: bool,
    /// The longest super-segment in bytes, if there may be any; it arrives in one piece.
    pub segmentation: Option<usize>,
    /// Whether the device does the work of a network card: it segments super-segments and completes partial checksums. Then
    /// packets of at most the MTU arrive, with checksums that the receiver has to verify.
    pub does_work: bool,
    /// How many packets each direction holds; at least one.
    pub queue_packets: usize,
}

transom_base::setters! {
    const MemoryConfig:
    with_mtu = mtu: usize,
    with_tx_checksum = tx_checksum: bool,
    with_segmentation = segmentation: Option<usize>,
    with_does_work = does_work: bool,
    with_queue_packets = queue_packets: usize,
}

impl MemoryConfig {
    /// A link that leaves checksums open and carries super-segments of up to 64 KB, as a virtual
    /// machine's would.
    pub fn with_offload() -> Self {
        MemoryConfig { tx_checksum: true, segmentation: Some(65_535), ..Self::default() }
    }

    /// A link between two network cards: they cut super-segments of up to 64 KB into packets and complete checksums, and the
    /// receiver verifies them.
    pub fn with_cards() -> Self {
        MemoryConfig { does_work: true, ..Self::with_offload() }
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            mtu: self.mtu,
            tx_checksum: self.tx_checksum,
            segmentation: self.segmentation,
            rx_coalesce: self.segmentation.is_some() && !self.does_work,
        }
    }
}

impl Default for MemoryConfig {
    /// Ethernet's 1500 bytes, no offload, 512 packets each way.
    fn default() -> Self {
        MemoryConfig {
            mtu: 1500,
            tx_checksum: false,
            segmentation: None,
            does_work: false,
            queue_packets: 512,
        }
    }
}

/// The traffic of one direction of a memory device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct MemoryCounts {
    /// Packets accepted from the sender.
    pub packets: u64,
    /// Bytes of IP packet accepted from the sender.
    pub bytes: u64,
    /// Times that the sender was told to wait.
    pub refused: u64,
}

/// One direction: packets under way, and the buffers they travel in.
#[derive(Debug)]
struct Lane {
    queue: VecDeque<RxPacket>,
    limit: usize,
    /// Buffers of one MTU.
    packets: BufferPool,
    /// Buffers of one super-segment; never asked where there are none.
    super_segments: BufferPool,
    mtu: usize,
    counts: MemoryCounts,
}

impl Lane {
    fn new(config: &MemoryConfig) -> Self {
        let limit = config.queue_packets.max(1);
        let longest = config.segmentation.unwrap_or(0).max(config.mtu);
        Lane {
            queue: VecDeque::with_capacity(limit),
            limit,
            packets: BufferPool::new(config.mtu, limit),
            super_segments: BufferPool::new(longest, limit),
            mtu: config.mtu,
            counts: MemoryCounts::default(),
        }
    }

    /// Whether there is room for `count` more packets.
    fn admit(&mut self, count: usize) -> io::Result<()> {
        // A packet that is longer than the queue may enter an empty one.
        if !self.queue.is_empty() && self.queue.len() + count > self.limit {
            self.counts.refused += 1;
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(())
    }

    /// A buffer for a packet of `length` bytes.
    fn buffer(&mut self, length: usize) -> PacketBuf {
        let pool = if length <= self.mtu { &mut self.packets } else { &mut self.super_segments };
        pool.take()
    }

    fn push(&mut self, packet: RxPacket) {
        self.counts.packets += 1;
        self.counts.bytes += packet.range.len() as u64;
        self.queue.push_back(packet);
    }

    fn recycle(&mut self, buffer: PacketBuf) {
        if buffer.len() == self.mtu {
            self.packets.put(buffer);
        } else {
            self.super_segments.put(buffer);
        }
    }
}

/// Refuses what a real device could not send either.
fn check(capabilities: &Capabilities, packet: &TxPacket<'_>) -> Result<(), SendError> {
    capabilities.admit(packet)?;
    VirtioNetHdr::for_packet(&packet.offload, packet.headers, packet.len())
        .map_err(SendError::Offload)?;
    Ok(())
}

/// Copies an admitted packet into a buffer of sufficient size: the way it will be received.
fn fill(mut buffer: PacketBuf, packet: &TxPacket<'_>) -> io::Result<RxPacket> {
    let length = packet.copy_to(&mut buffer).ok_or(io::ErrorKind::InvalidInput)?;
    let checksum = match packet.offload.checksum {
        TxChecksum::Complete => RxChecksum::Unverified,
        // Memory does not corrupt, and the field is not a checksum yet.
        TxChecksum::Partial { .. } => RxChecksum::Valid,
    };
    let offload = RxOffload { checksum, segmentation: packet.offload.segmentation };
    Ok(RxPacket { buffer, range: 0..length, offload })
}

/// How many packets `packet` becomes where the device does the work.
fn pieces(packet: &TxPacket<'_>) -> usize {
    packet.offload.segmentation.map_or(1, |segmentation| {
        let payload = packet.len().saturating_sub(usize::from(segmentation.header_len));
        payload.div_ceil(usize::from(segmentation.segment_size).max(1)).max(1)
    })
}

/// Does what an admitted packet asks for, and gives out the packets that arrive.
fn work(
    packet: &TxPacket<'_>,
    mut buffer: impl FnMut() -> PacketBuf,
    mut push: impl FnMut(RxPacket) -> io::Result<()>,
) -> io::Result<()> {
    let impossible = |_| io::ErrorKind::InvalidInput;
    let mut segmenter = Segmenter::new(packet.headers, packet.payload, &packet.offload)
        .map_err(SendError::Offload)?;
    for _ in 0..pieces(packet) {
        let mut buffer = buffer();
        let bytes = &mut buffer[..];
        let Some(segment) = segmenter.next_segment(bytes).map_err(impossible)? else {
            return Ok(());
        };
        let mut at = segment.header_len;
        for part in segment.payload {
            let place = bytes.get_mut(at..at + part.len()).ok_or(io::ErrorKind::InvalidInput)?;
            place.copy_from_slice(part);
            at += part.len();
        }
        push(RxPacket { buffer, range: 0..at, offload: RxOffload::default() })?;
    }
    Ok(())
}

/// One direction shared by two threads.
#[derive(Debug)]
struct Shared {
    state: Mutex<SharedState>,
    readable: OwnedFd,
}

#[derive(Debug)]
struct SharedState {
    lane: Lane,
    /// Whether `readable` has been written to and not yet read. Changes together with it, under the
    /// lock.
    signalled: bool,
}

impl Shared {
    fn new(config: &MemoryConfig) -> io::Result<Arc<Self>> {
        let readable = rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let state = SharedState { lane: Lane::new(config), signalled: false };
        Ok(Arc::new(Shared { state: Mutex::new(state), readable }))
    }

    fn lock(&self) -> MutexGuard<'_, SharedState> {
        // Nothing under the lock stops half-way, so what a panicking thread leaves behind is whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, packet: RxPacket) -> io::Result<()> {
        let mut state = self.lock();
        // One write announces everything up to the moment when the receiver finds nothing more.
        if !state.signalled {
            rustix::io::write(&self.readable, &1u64.to_ne_bytes())?;
            state.signalled = true;
        }
        state.lane.push(packet);
        Ok(())
    }

    fn pop(&self) -> io::Result<RxPacket> {
        let mut state = self.lock();
        if let Some(packet) = state.lane.queue.pop_front() {
            return Ok(packet);
        }
        if state.signalled {
            match rustix::io::read(&self.readable, &mut [0u8; 8]) {
                Ok(_) | Err(Errno::AGAIN) => state.signalled = false,
                Err(errno) => return Err(errno.into()),
            }
        }
        Err(io::ErrorKind::WouldBlock.into())
    }
}

/// One end of a [`pair`].
///
/// When the other end has been dropped, this one behaves like a host whose cable was pulled:
/// packets are accepted until the queue is full, and none arrive.
/// [`MemoryDevice::is_connected`] tells.
#[derive(Debug)]
pub struct MemoryDevice {
    capabilities: Capabilities,
    does_work: bool,
    outgoing: Arc<Shared>,
    incoming: Arc<Shared>,
}

/// Two devices, each of which receives what the other sends.
///
/// # Errors
/// When the system gives no eventfd.
pub fn pair(config: &MemoryConfig) -> io::Result<(MemoryDevice, MemoryDevice)> {
    let (there, back) = (Shared::new(config)?, Shared::new(config)?);
    let capabilities = config.capabilities();
    let does_work = config.does_work;
    let near =
        MemoryDevice { capabilities, does_work, outgoing: there.clone(), incoming: back.clone() };
    let far = MemoryDevice { capabilities, does_work, outgoing: back, incoming: there };
    Ok((near, far))
}

impl MemoryDevice {
    /// Whether the other end exists still.
    pub fn is_connected(&self) -> bool {
        Arc::strong_count(&self.outgoing) > 1
    }

    /// The traffic that this end has sent.
    pub fn sent(&self) -> MemoryCounts {
        self.outgoing.lock().lane.counts
    }

    /// The traffic that the other end has sent, received already or not.
    pub fn arrived(&self) -> MemoryCounts {
        self.incoming.lock().lane.counts
    }
}

impl Device for MemoryDevice {
    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn send(&mut self, packet: &TxPacket<'_>) -> io::Result<()> {
        check(&self.capabilities, packet)?;
        // This end alone adds to the queue, so the place that is free now is free after copying.
        if self.does_work {
            self.outgoing.lock().lane.admit(pieces(packet))?;
            let mtu = self.capabilities.mtu;
            let buffer = || self.outgoing.lock().lane.buffer(mtu);
            return work(packet, buffer, |packet| self.outgoing.push(packet));
        }
        let buffer = {
            let lane = &mut self.outgoing.lock().lane;
            lane.admit(1)?;
            lane.buffer(packet.len())
        };
        self.outgoing.push(fill(buffer, packet)?)
    }

    fn recv(&mut self) -> io::Result<RxPacket> {
        self.incoming.pop()
    }

    fn recycle(&mut self, buffer: PacketBuf) {
        self.incoming.lock().lane.recycle(buffer);
    }

    fn poll_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.incoming.readable.as_fd())
    }
}

/// One direction of a link within a single thread: what is sent into it is received from it.
///
/// As a [`Device`] it is a loopback. Two of them join two stacks that are driven in turns: each
/// stack sends into one and receives from the other.
#[derive(Debug)]
pub struct MemoryLink {
    capabilities: Capabilities,
    does_work: bool,
    lane: Lane,
}

impl MemoryLink {
    /// An empty link.
    pub fn new(config: &MemoryConfig) -> Self {
        MemoryLink {
            capabilities: config.capabilities(),
            does_work: config.does_work,
            lane: Lane::new(config),
        }
    }

    /// How many packets are under way.
    pub fn len(&self) -> usize {
        self.lane.queue.len()
    }

    /// Whether nothing is under way.
    pub fn is_empty(&self) -> bool {
        self.lane.queue.is_empty()
    }

    /// The traffic of the link.
    pub fn counts(&self) -> MemoryCounts {
        self.lane.counts
    }
}

impl Device for MemoryLink {
    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn send(&mut self, packet: &TxPacket<'_>) -> io::Result<()> {
        check(&self.capabilities, packet)?;
        if self.does_work {
            self.lane.admit(pieces(packet))?;
            let mtu = self.capabilities.mtu;
            let lane = RefCell::new(&mut self.lane);
            return work(
                packet,
                || lane.borrow_mut().buffer(mtu),
                |packet| {
                    lane.borrow_mut().push(packet);
                    Ok(())
                },
            );
        }
        self.lane.admit(1)?;
        let buffer = self.lane.buffer(packet.len());
        self.lane.push(fill(buffer, packet)?);
        Ok(())
    }

    fn recv(&mut self) -> io::Result<RxPacket> {
        self.lane.queue.pop_front().ok_or_else(|| io::ErrorKind::WouldBlock.into())
    }

    fn recycle(&mut self, buffer: PacketBuf) {
        self.lane.recycle(buffer);
    }

    /// `None`: there is nobody else who could make it readable.
    fn poll_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

#[cfg(test)]
mod tests;
