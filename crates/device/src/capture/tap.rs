//! A device wrapper that writes down what passes, in the form it has on a wire.
//!
//! Between a stack and a device with offloads, packets are unfinished: checksums are open, and one
//! packet of 64 KB stands for dozens. A capture of that would be full of complaints about checksums
//! and lengths. So the tap finishes a copy of each packet in software, as the device (or for
//! received packets, the sender's) would have done. Checksums that are not known to be right stay as they
//! are, so that a damaged packet is visible.
//!
//! A packet is written down once the device has taken it, so that one it refused is not in the
//! capture. By then its receiver may have acted on it already: [`TapStatus::catch_up`] waits for
//! the capture in that case.
//!
//! All queues of a device are written into one capture, as one interface.
//!
//! Watching must not disturb. When the writer fails, the capture ends there, the error can be asked
//! for, and the packets go on.

use std::io::{self, Write};
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use transom_base::packet::PacketBuf;
use transom_base::time::Instant;
use transom_wire::offload::Segmenter;

use super::{Capture, Direction, InterfaceId};
use crate::{Capabilities, Device, RxPacket, TxPacket};

/// How a capture is doing; a clone can be kept when the [`Tapped`] device is handed away.
#[derive(Clone, Debug, Default)]
pub struct TapStatus(Arc<Status>);

#[derive(Debug, Default)]
struct Status {
    packets: AtomicU64,
    error: OnceLock<io::Error>,
    /// Held from before a packet is sent until it has been written.
    sending: Mutex<()>,
}

impl TapStatus {
    /// How many packets have been written, each segment of a super-segment counted.
    pub fn packets(&self) -> u64 {
        self.0.packets.load(Ordering::Relaxed)
    }

    /// The error that ended the capture early, if there was one.
    pub fn error(&self) -> Option<&io::Error> {
        self.0.error.get()
    }

    /// Returns when every packet that has left by now has been given to the capture's writer, all
    /// segments of a super-segment included.
    ///
    /// A packet's receiver may answer, or end, before the packet is in the capture. So call this
    /// before completing the capture on another thread.
    pub fn catch_up(&self) {
        drop(self.0.sending());
    }
}

impl Status {
    fn sending(&self) -> MutexGuard<'_, ()> {
        // There is nothing under it that a panic could have left half done.
        self.sending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The source of timestamps.
type Clock = Box<dyn FnMut() -> Instant + Send>;

/// The common part of the taps of all queues.
struct Shared<W: Write> {
    /// Absent once the writer has failed.
    capture: Option<Capture<W>>,
    clock: Clock,
}

/// A device whose packets are captured, sent ones as outbound and received ones as inbound.
pub struct Tapped<D, W: Write> {
    device: D,
    recorder: Recorder<W>,
    status: TapStatus,
}

impl<D: Device, W: Write + Send> Tapped<D, W> {
    /// Captures what passes through `device` as an interface called `name`, by the system's
    /// real-time clock.
    ///
    /// # Errors
    /// The writer's errors for the interface's description.
    pub fn new(device: D, mut capture: Capture<W>, name: &str) -> io::Result<Self> {
        let interface = capture.add_interface(name)?;
        let status = TapStatus::default();
        let shared = Shared { capture: Some(capture), clock: Box::new(real_time) };
        let shared = Arc::new(Mutex::new(shared));
        Ok(Tapped { device, recorder: Recorder::new(shared, interface, &status), status })
    }

    /// Takes timestamps from another clock; see [`Capture::write`] for their meaning.
    pub fn with_clock(self, clock: impl FnMut() -> Instant + Send + 'static) -> Self {
        self.recorder.shared().clock = Box::new(clock);
        self
    }

    /// How the capture is doing, now and later.
    pub fn status(&self) -> TapStatus {
        self.status.clone()
    }

    /// Gives the device back, and the capture unless it has failed.
    pub fn into_parts(self) -> (D, Option<Capture<W>>) {
        let capture = self.recorder.shared().capture.take();
        (self.device, capture)
    }
}

impl<D: Device, W: Write + Send + 'static> Tapped<D, W> {
    fn send_by(
        &mut self,
        packet: &TxPacket<'_>,
        send: impl FnOnce(&mut D, &TxPacket<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        let Tapped { device, recorder, status } = self;
        let _sending = status.0.sending();
        // Before sending: the answer may be captured elsewhere and should not seem to come first.
        let at = recorder.now();
        let sent = send(device, packet);
        if sent.is_ok() {
            recorder.sent(at, packet);
        }
        // The comment was for this packet.
        recorder.comment.clear();
        sent
    }
}

/// Nanoseconds since 1970, until the year 2554.
fn real_time() -> Instant {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Instant::from_nanos(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}

impl<D: Device, W: Write + Send + 'static> Device for Tapped<D, W> {
    fn capabilities(&self) -> Capabilities {
        self.device.capabilities()
    }

    fn send(&mut self, packet: &TxPacket<'_>) -> io::Result<()> {
        self.send_by(packet, D::send)
    }

    /// What the device keeps is written down at once. If it is lost in the end, it was on its way as far as the stack knows.
    fn send_more(&mut self, packet: &TxPacket<'_>) -> io::Result<()> {
        self.send_by(packet, D::send_more)
    }

    fn flush(&mut self) -> usize {
        self.device.flush()
    }

    fn annotate(&mut self, comment: &str) {
        self.device.annotate(comment);
        self.recorder.comment.clear();
        self.recorder.comment.push_str(comment);
    }

    fn recv(&mut self) -> io::Result<RxPacket> {
        let packet = self.device.recv()?;
        let at = self.recorder.now();
        self.recorder.received(at, &packet);
        Ok(packet)
    }

    fn recv_batch(&mut self, max: usize, out: &mut Vec<RxPacket>) -> io::Result<usize> {
        let before = out.len();
        let received = self.device.recv_batch(max, out)?;
        let at = self.recorder.now();
        for packet in out.iter().skip(before) {
            self.recorder.received(at, packet);
        }
        Ok(received)
    }

    fn receives_many(&self) -> bool {
        self.device.receives_many()
    }

    fn take_queues(&mut self) -> Vec<Box<dyn Device>> {
        let tapped = |device| -> Box<dyn Device> {
            let Recorder { shared, interface, .. } = &self.recorder;
            let recorder = Recorder::new(Arc::clone(shared), *interface, &self.status);
            Box::new(Tapped { device, recorder, status: self.status.clone() })
        };
        self.device.take_queues().into_iter().map(tapped).collect()
    }

    fn recycle(&mut self, buffer: PacketBuf) {
        self.device.recycle(buffer);
    }

    fn poll_fd(&self) -> Option<BorrowedFd<'_>> {
        self.device.poll_fd()
    }
}

/// The part of a tap that writes.
struct Recorder<W: Write> {
    shared: Arc<Mutex<Shared<W>>>,
    interface: InterfaceId,
    /// A buffer for the headers of a finished packet.
    headers: Vec<u8>,
    /// The comment on the packet that is sent next; each segment of a super-segment gets it.
    comment: String,
    status: TapStatus,
}

impl<W: Write> Recorder<W> {
    fn new(shared: Arc<Mutex<Shared<W>>>, interface: InterfaceId, status: &TapStatus) -> Self {
        let (headers, comment) = (Vec::new(), String::new());
        Recorder { shared, interface, headers, comment, status: status.clone() }
    }

    fn shared(&self) -> MutexGuard<'_, Shared<W>> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Instant {
        let mut shared = self.shared();
        if shared.capture.is_some() { (shared.clock)() } else { Instant::ZERO }
    }

    fn sent(&mut self, at: Instant, packet: &TxPacket<'_>) {
        let TxPacket { headers, payload, offload } = packet;
        // A packet that makes no sense, but that the device took, is written as it was handed over.
        let as_is = || Segmenter::new(headers, *payload, &Default::default());
        if let Ok(packets) = Segmenter::new(headers, *payload, offload).or_else(|_| as_is()) {
            self.write(at, Direction::Outbound, packets);
        }
    }

    fn received(&mut self, at: Instant, packet: &RxPacket) {
        let packets = Segmenter::for_received(packet.bytes(), &packet.offload);
        self.write(at, Direction::Inbound, packets);
    }

    fn write(&mut self, at: Instant, direction: Direction, mut packets: Segmenter<'_>) {
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        let Shared { capture: place, .. } = &mut *shared;
        let Some(capture) = place else { return };
        self.headers.resize(packets.headers_len(), 0);
        while let Ok(Some(segment)) = packets.next_segment(&mut self.headers) {
            let headers = self.headers.get(..segment.header_len).unwrap_or_default();
            let [first, second, third] = segment.payload;
            let parts = [headers, first, second, third];
            let comment = Some(self.comment.as_str())
                .filter(|comment| direction == Direction::Outbound && !comment.is_empty());
            if let Err(error) = capture.write(self.interface, at, direction, &parts, comment) {
                // The first error is the one that tells; there is no second, as the capture ends
                // here.
                let _ = self.status.0.error.set(error);
                *place = None;
                return;
            }
            self.status.0.packets.fetch_add(1, Ordering::Relaxed);
        }
    }
}
