//! A device behind an emulated path.
//!
//! Packets from the stack pass one [`LinkModel`], the *egress*, before the inner device gets them. Packets from the inner device pass another, the
//! *ingress*, before the stack gets them. There is no thread: packets move whenever the device is used, and [`Device::poll_fd`] becomes readable when
//! there is something to do. It is an epoll descriptor that watches the inner device and a timer, which is set to the next moment at which a packet
//! reaches the end of either link.
//!
//! A path carries packets in their form on a wire. So super-segments are segmented and partial checksums completed before they enter a link, in both
//! directions. No checksum is marked as verified behind a link: the receiver has to detect damage itself. The stack may still send super-segments;
//! segmenting them here costs less than there.
//!
//! A packet is never early. It is late by as much as the thread that uses the device is. The resolution is that
//! of the operating system's timers and scheduler, tens of microseconds on an idle machine.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex};

use rustix::event::epoll;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use transom_device::{Capabilities, Device, RxPacket, SendError, TxPacket};
use transom_sim::Streams;
use transom_sim::link::{Counters, LinkConfig, LinkModel, QueueSample};
use transom_tcp::packet::{BufferPool, PacketBuf};
use transom_tcp::time::{Duration, Instant};
use transom_wire::offload::{RxOffload, Segmenter};

use crate::lock;

/// The longest super-segment from the stack, in bytes: the largest value of an IPv4 length field.
const LONGEST_SUPER_SEGMENT: usize = 65_535;
/// The most packets from the inner device before due ones are checked again.
const BATCH: usize = 64;
/// Which random streams a direction has.
const EGRESS: u64 = 0;
const INGRESS: u64 = 1;
/// Idle buffers kept for packets on their way.
const KEEP_BUFFERS: usize = 1024;

/// Both directions of a path, and the seed of all that is random about it.
#[derive(Clone, Debug, Default)]
pub struct PathConfig {
    /// The link from the stack to the inner device.
    pub egress: LinkConfig,
    /// The link from the inner device to the stack.
    pub ingress: LinkConfig,
    /// Decides the random effects. With the same seed, the n-th packet of a direction meets the same fate;
    /// which packet is the n-th is up to real time.
    pub seed: u64,
}

/// A packet on its way: the first `len` bytes of a buffer.
#[derive(Clone, Debug)]
struct Carried {
    buffer: PacketBuf,
    len: usize,
}

/// The part that a [`PathMonitor`] reads.
#[derive(Debug)]
struct Path {
    egress: LinkModel<Carried>,
    ingress: LinkModel<Carried>,
    refused: u64,
    streams: Streams,
}

/// The events on a path so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PathReport {
    /// The link from the stack to the inner device.
    pub egress: Counters,
    /// The link from the inner device to the stack.
    pub ingress: Counters,
    /// Packets that passed the egress and that the inner device then refused: damaged so that it would not take
    /// them for IP, or too many at once.
    pub refused: u64,
}

/// Observes a path from another thread; keep a clone when the [`Emulated`] device is handed away.
#[derive(Clone, Debug)]
pub struct PathMonitor {
    path: Arc<Mutex<Path>>,
}

impl PathMonitor {
    /// The totals so far.
    pub fn report(&self) -> PathReport {
        let path = lock(&self.path);
        PathReport {
            egress: path.egress.counters(),
            ingress: path.ingress.counters(),
            refused: path.refused,
        }
    }

    /// Begins all random effects anew, with the directions exchanged. From now on, incoming packets meet what outgoing ones have met since the path
    /// was made, and outgoing packets what incoming ones have met. So what is sent there and what is sent back can be compared.
    pub fn reseed_reversed(&self) {
        let mut path = lock(&self.path);
        let streams = path.streams;
        path.egress.reseed(streams, INGRESS);
        path.ingress.reseed(streams, EGRESS);
    }

    /// The queue of the egress link's serialiser at `now`, by the device's clock.
    #[cfg(test)]
    fn egress_queue(&self, now: Instant) -> transom_sim::link::Traffic {
        lock(&self.path).egress.queued(now)
    }
}

/// Sends a packet over a link, with what the link's queue has to know of it.
fn send(link: &mut LinkModel<Carried>, now: Instant, carried: Carried) {
    link.send_ip(now, carried, Carried::bytes);
}

/// The source of time.
type Clock = Box<dyn FnMut() -> Instant + Send>;

/// A device behind an emulated path.
pub struct Emulated<D> {
    inner: D,
    capabilities: Capabilities,
    path: Arc<Mutex<Path>>,
    clock: Clock,
    wake: Wake,
    pool: BufferPool,
    /// A buffer for the headers of a segment.
    headers: Vec<u8>,
}

impl<D: Device> Emulated<D> {
    /// Puts a path before `inner`, by a clock that starts at [`Instant::ZERO`] now.
    ///
    /// # Errors
    /// When the system gives no descriptors for the timer and for waiting.
    pub fn new(inner: D, config: &PathConfig) -> io::Result<Self> {
        let mtu = inner.capabilities().mtu;
        let streams = Streams::new(config.seed);
        let path = Path {
            egress: LinkModel::new(&config.egress, streams, EGRESS),
            ingress: LinkModel::new(&config.ingress, streams, INGRESS),
            refused: 0,
            streams,
        };
        let started = std::time::Instant::now();
        let wake = Wake::new(inner.poll_fd())?;
        Ok(Emulated {
            inner,
            capabilities: Capabilities {
                mtu,
                tx_checksum: true,
                segmentation: Some(LONGEST_SUPER_SEGMENT),
                rx_coalesce: false,
            },
            path: Arc::new(Mutex::new(path)),
            clock: Box::new(move || Instant::ZERO + started.elapsed().into()),
            wake,
            pool: BufferPool::new(mtu, KEEP_BUFFERS),
            headers: Vec::new(),
        })
    }

    /// Takes the time from another clock, which runs as fast as the system's: the stack's, for one, so that both
    /// stamp their observations alike. To be called before any packet is sent.
    pub fn with_clock(mut self, clock: impl FnMut() -> Instant + Send + 'static) -> Self {
        self.clock = Box::new(clock);
        self
    }

    /// Calls an observer for each change of a link's queue, at the latest when the next packet passes: the egress link's and the ingress link's.
    pub fn observe_queues(
        self,
        [egress, ingress]: [impl FnMut(QueueSample) + Send + 'static; 2],
    ) -> Self {
        let mut path = lock(&self.path);
        path.egress.observe_queue(egress);
        path.ingress.observe_queue(ingress);
        drop(path);
        self
    }

    /// Something that tells how the path is doing, now and later.
    pub fn monitor(&self) -> PathMonitor {
        PathMonitor { path: Arc::clone(&self.path) }
    }

    /// Hands the inner device what has reached the end of the egress link.
    fn transmit_due(&mut self, now: Instant) {
        loop {
            // Taken out one by one, so that nobody who looks has to wait for the device.
            let Some(delivered) = lock(&self.path).egress.deliver(now) else { return };
            let packet = delivered.into_packet(Carried::bytes_mut);
            if self.inner.send(&TxPacket::whole(packet.bytes())).is_err() {
                lock(&self.path).refused += 1;
            }
            self.pool.put(packet.buffer);
        }
    }

    /// Takes what the inner device has into the ingress link.
    fn collect(&mut self, now: Instant) -> io::Result<()> {
        for _ in 0..BATCH {
            let packet = match self.inner.recv() {
                Ok(packet) => packet,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            };
            let mut segments = Segmenter::for_received(packet.bytes(), &packet.offload);
            self.headers.resize(segments.headers_len(), 0);
            while let Ok(Some(segment)) = segments.next_segment(&mut self.headers) {
                let headers = self.headers.get(..segment.header_len).unwrap_or_default();
                if let Some(carried) = Carried::of(&mut self.pool, headers, &segment.payload) {
                    send(&mut lock(&self.path).ingress, now, carried);
                }
            }
            self.inner.recycle(packet.buffer);
        }
        Ok(())
    }

    /// The next packet at the end of the ingress link.
    fn receive_due(&mut self, now: Instant) -> Option<RxPacket> {
        let delivered = lock(&self.path).ingress.deliver(now)?;
        let Carried { buffer, len } = delivered.into_packet(Carried::bytes_mut);
        Some(RxPacket { buffer, range: 0..len, offload: RxOffload::default() })
    }

    /// Sets the timer to the next time at which a packet arrives somewhere.
    fn set_timer(&mut self, now: Instant) -> io::Result<()> {
        let path = lock(&self.path);
        let next = [path.egress.next_delivery(), path.ingress.next_delivery()];
        drop(path);
        self.wake.at(now, next.into_iter().flatten().min())
    }
}

impl<D: Device> Device for Emulated<D> {
    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    /// Sends a packet into the egress link. Whether it gets anywhere is not known to the sender.
    fn send(&mut self, packet: &TxPacket<'_>) -> io::Result<()> {
        self.capabilities.admit(packet)?;
        let now = (self.clock)();
        self.transmit_due(now);
        let TxPacket { headers, payload, offload } = packet;
        let mut segments =
            Segmenter::new(headers, *payload, offload).map_err(SendError::Offload)?;
        self.headers.resize(segments.headers_len(), 0);
        while let Some(segment) =
            segments.next_segment(&mut self.headers).map_err(SendError::Offload)?
        {
            let headers = self.headers.get(..segment.header_len).unwrap_or_default();
            let Some(carried) = Carried::of(&mut self.pool, headers, &segment.payload) else {
                // The stack cuts for the MTU it was told; a segment above it is its mistake.
                let (length, limit) = (segment.total_len(), self.capabilities.mtu);
                return Err(SendError::TooLong { length, limit }.into());
            };
            send(&mut lock(&self.path).egress, now, carried);
        }
        // A link without delay has delivered already.
        self.transmit_due(now);
        self.set_timer(now)
    }

    fn recv(&mut self) -> io::Result<RxPacket> {
        let now = (self.clock)();
        self.transmit_due(now);
        if let Some(packet) = self.receive_due(now) {
            return Ok(packet);
        }
        let collected = self.collect(now);
        if let Some(packet) = self.receive_due(now) {
            return Ok(packet);
        }
        self.set_timer(now)?;
        collected?;
        Err(io::ErrorKind::WouldBlock.into())
    }

    fn recycle(&mut self, buffer: PacketBuf) {
        self.pool.put(buffer);
    }

    fn poll_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.wake.epoll.as_fd())
    }
}

impl<D: std::fmt::Debug> std::fmt::Debug for Emulated<D> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Emulated")
            .field("inner", &self.inner)
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl Carried {
    /// A copy of a packet given in parts; `None` if it is longer than the pool's buffers.
    fn of(pool: &mut BufferPool, headers: &[u8], payload: &[&[u8]; 3]) -> Option<Self> {
        let mut buffer = pool.take();
        let mut len = 0;
        for part in [headers, payload[0], payload[1], payload[2]] {
            let Some(place) = buffer.get_mut(len..len + part.len()) else {
                pool.put(buffer);
                return None;
            };
            place.copy_from_slice(part);
            len += part.len();
        }
        Some(Carried { buffer, len })
    }

    fn bytes(&self) -> &[u8] {
        self.buffer.get(..self.len).unwrap_or_default()
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        let len = self.len;
        self.buffer.get_mut(..len).unwrap_or_default()
    }
}

/// A descriptor that is readable when the inner device is or a certain time has come.
#[derive(Debug)]
struct Wake {
    epoll: OwnedFd,
    timer: OwnedFd,
    set_for: Option<Instant>,
}

impl Wake {
    fn new(inner: Option<BorrowedFd<'_>>) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        for fd in [Some(timer.as_fd()), inner].into_iter().flatten() {
            epoll::add(&epoll, fd, epoll::EventData::new_u64(0), epoll::EventFlags::IN)?;
        }
        Ok(Wake { epoll, timer, set_for: None })
    }

    /// Sets the timer; `None` stops it. A time that has come makes the descriptor readable at once, and it stays
    /// so until the timer is set again.
    fn at(&mut self, now: Instant, due: Option<Instant>) -> io::Result<()> {
        if self.set_for == due {
            return Ok(());
        }
        let it_value = due.map_or(Ok(Timespec::default()), |due| {
            // Zero would stop the timer. An event that is due already must wake at once.
            let left = due.since(now).max(Duration::from_nanos(1));
            std::time::Duration::from(left).try_into().map_err(io::Error::other)
        })?;
        let setting = Itimerspec { it_interval: Timespec::default(), it_value };
        timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &setting)?;
        self.set_for = due;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
