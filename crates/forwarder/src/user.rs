//! Between two interfaces, with a queue of our own.
//!
//! Frames that come in by one interface leave by the other unchanged, in both directions: to hosts it is a wire. The kernel must not
//! forward between the two, and they need no addresses. In front of the bottleneck's interface there is a queue of
//! [`transom_router::queue`] and a serialiser of a given rate. Returning packets pass at once, through the Window Marker.
//!
//! One thread does all the work. It keeps the time at which the serialiser is free, independently of its own delays. While the queue
//! is not empty, a late thread sends more the next time, so the average rate is exact.
//!
//! A super-segment passes as one packet, which the kernel has made and will segment: where they occur, count bytes, not packets.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::num::NonZeroU64;
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use transom_device::FrameSocket;
use transom_device::interface::Interfaces;
use transom_router::queue::{Discipline, Event, FlowHasher, Item};
use transom_router::window::{ChecksumState, Returning, Verdict};
use transom_tcp::time::{Duration, Instant};
use transom_wire::ip::{peek_ecn, set_ecn};
use transom_wire::offload::VirtioNetHdr;

use crate::control::Control;
use crate::policy::PolicyFile;
use crate::refusal::{Refusal, interfaces, look_at, need_capabilities, random};
use crate::status::{Deployment, PartStatus, QueueStatus, Status};
use crate::worker::{Stop, Worker, wait_for_either};

/// CAP_NET_ADMIN, to receive frames for other hosts, and CAP_NET_RAW.
const CAPABILITIES: [u32; 2] = [12, 13];
/// The most frames from one interface before the other one's turn.
const TURN: usize = 64;
/// The most returning frames that are handled together.
const BATCH: usize = 32;
/// How often the thread checks whether it should end.
const STOP_CHECK: Duration = Duration::from_millis(200);

/// The thread that carries frames.
pub struct User {
    device: String,
    shared: Arc<Mutex<Shared>>,
    worker: Worker,
}

impl fmt::Debug for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("User").field("device", &self.device).finish_non_exhaustive()
    }
}

/// State that the thread and requests share.
struct Shared {
    control: Control,
    queue: QueueStatus,
    /// The queue itself: asked for the status of the queues inside it.
    discipline: Box<dyn Discipline<Frame>>,
    /// Frames that an interface did not take.
    lost: u64,
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether the process may do this.
///
/// # Errors
/// [`Refusal::Capability`] if not.
pub fn check_user_privileges() -> Result<(), Refusal> {
    need_capabilities(&CAPABILITIES)
}

impl User {
    /// Begins to carry frames between `from`, where the senders are, and `device`, behind which the receivers are; both in the network
    /// namespace of the calling thread.
    ///
    /// # Errors
    /// [`Refusal`] if the system lacks something. It changes nothing then.
    pub fn start(from: &str, device: &str, policy: &PolicyFile) -> Result<Self, Refusal> {
        let rate = policy.rate.ok_or_else(|| {
            Refusal::Parameter(
                "mode user needs the link's rate in the policy file: rate = \"10Mbit/s\"".into(),
            )
        })?;
        if from == device {
            return Err(Refusal::Parameter(format!(
                "{device} is to lie between senders and receivers: name another interface"
            )));
        }
        policy.fits()?;
        let discipline =
            policy.queue.build().map_err(|error| Refusal::Parameter(error.to_string()))?;
        let control = Control::new(&policy.control)?;
        let mut interfaces = interfaces()?;
        let (near_index, near_header) = link(&mut interfaces, from)?;
        let (far_index, link_header) = link(&mut interfaces, device)?;
        if near_header != link_header {
            return Err(Refusal::Parameter(format!(
                "{from} and {device} do not carry the same kind of frames"
            )));
        }
        check_user_privileges()?;
        let open = |name: &str, index| {
            FrameSocket::open(index).map_err(Refusal::io(format!("cannot take frames of {name}")))
        };
        let (near, far) = (open(from, near_index)?, open(device, far_index)?);

        let kind = policy.queue.to_string();
        let queue_status = QueueStatus { kind, ..QueueStatus::default() };
        let shared = Shared { control, queue: queue_status, discipline, lost: 0 };
        let shared = Arc::new(Mutex::new(shared));
        let carrier = Carrier {
            near,
            far,
            link_header,
            hasher: policy.queue.tells_flows_apart().then(random).transpose()?.map(FlowHasher::new),
            rate,
            free_at: Instant::ZERO,
            shared: Arc::clone(&shared),
            held: VecDeque::new(),
            buffer: vec![0; FrameSocket::MAX_LEN],
            random: SplitMix::new()?,
        };
        let worker = Worker::start("router", move |stop| carrier.run(&stop))?;
        Ok(User { device: device.to_owned(), shared, worker })
    }
}

/// An interface's number, and the length of its frames' link-layer header.
fn link(interfaces: &mut Interfaces, name: &str) -> Result<(u32, usize), Refusal> {
    let state = look_at(interfaces, name)?;
    match state.link_header_len() {
        Some(length) if state.hardware != libc::ARPHRD_LOOPBACK => {
            Ok((state.index, length as usize))
        }
        _ => Err(Refusal::Hardware { device: name.to_owned(), hardware: state.hardware }),
    }
}

impl Deployment for User {
    fn status(&mut self, flows: usize) -> Result<Status, Refusal> {
        let shared = lock(&self.shared);
        let mut queue = shared.queue.clone();
        shared.discipline.queues(&mut |name, one| queue.parts.push(PartStatus::of(name, one)));
        let mut status = shared.control.status("user", &self.device, flows, queue);
        status.counters.lost = shared.lost;
        Ok(status)
    }

    fn maintain(&mut self) -> Result<(), Refusal> {
        self.worker.maintain()
    }
}

/// A virtio-net header and a frame.
type Frame = Vec<u8>;

/// Random numbers for disciplines: splitmix64, from a secret seed.
struct SplitMix(u64);

impl SplitMix {
    fn new() -> Result<Self, Refusal> {
        Ok(SplitMix(u64::from_ne_bytes(random()?)))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }
}

struct Carrier {
    near: FrameSocket,
    far: FrameSocket,
    link_header: usize,
    /// Finds the flows of packets, if the queue keeps them apart.
    hasher: Option<FlowHasher>,
    rate: NonZeroU64,
    /// When the serialiser will have sent its last frame.
    free_at: Instant,
    shared: Arc<Mutex<Shared>>,
    /// Acknowledgements that go on later, and when, in order.
    held: VecDeque<(Instant, Frame)>,
    buffer: Vec<u8>,
    random: SplitMix,
}

impl Carrier {
    fn run(mut self, stop: &Stop) -> Result<(), Refusal> {
        let failed = || Refusal::io("cannot carry frames");
        while !stop.is_stop_requested() {
            let now = self.now();
            self.release(now).map_err(failed())?;
            self.transmit(now).map_err(failed())?;
            self.wait(now).map_err(failed())?;
            for _ in 0..TURN {
                if !self.forward().map_err(failed())? {
                    break;
                }
            }
            for _ in 0..TURN / BATCH {
                if !self.back().map_err(failed())? {
                    break;
                }
            }
        }
        Ok(())
    }

    fn now(&self) -> Instant {
        lock(&self.shared).control.now()
    }

    /// Waits for a frame, or until something is due.
    fn wait(&self, now: Instant) -> io::Result<()> {
        let mut patience = STOP_CHECK;
        let shared = lock(&self.shared);
        if !shared.discipline.is_empty() {
            let ready = shared.discipline.ready_at().unwrap_or(Instant::ZERO);
            patience = patience.min(self.free_at.max(ready) - now);
        }
        drop(shared);
        if let Some((due, _)) = self.held.front() {
            patience = patience.min(*due - now);
        }
        wait_for_either([self.near.as_fd(), self.far.as_fd()], patience)
    }

    /// A frame from the senders' side goes to the queue. Whether there was one.
    fn forward(&mut self) -> io::Result<bool> {
        let Some(mut frame) = take(&self.near, &mut self.buffer)? else { return Ok(false) };
        let at = self.start(&frame);
        let packet = packet(&mut frame, at, self.link_header);
        let ecn = peek_ecn(packet);
        let flow = self.hasher.as_ref().map(|hasher| hasher.flow(packet)).unwrap_or_default();
        let Shared { control, queue, discipline, .. } = &mut *lock(&self.shared);
        let now = control.now();
        if !packet.is_empty() {
            control.forward(now, packet, packet.len(), discipline.length());
        }
        if discipline.is_empty() {
            // While nothing waited the serialiser has not saved up time.
            self.free_at = self.free_at.max(now);
        }
        let length = frame.len() - VirtioNetHdr::LEN;
        let random = &mut self.random;
        let item = Item::new(frame, length, ecn).of_flow(flow);
        discipline.enqueue(now, item, &mut || random.next(), &mut |event| count(&event, queue));
        let length = discipline.length();
        (queue.packets, queue.bytes) = (length.packets, length.bytes);
        Ok(true)
    }

    /// Sends what is due.
    fn transmit(&mut self, now: Instant) -> io::Result<()> {
        while self.free_at <= now {
            let mut shared = lock(&self.shared);
            let random = &mut self.random;
            let Shared { queue, discipline, .. } = &mut *shared;
            let ready = discipline.ready_at();
            let next =
                discipline.dequeue(now, &mut || random.next(), &mut |event| count(&event, queue));
            let length = discipline.length();
            (queue.packets, queue.bytes) = (length.packets, length.bytes);
            let Some(mut item) = next else { break };
            if let Some(ready) = ready {
                // While the queue held everything back, the serialiser has not saved up time.
                self.free_at = self.free_at.max(ready);
            }
            let nanos = item.len as u128 * 8 * 1_000_000_000 / u128::from(self.rate.get());
            self.free_at += Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
            drop(shared);
            let at = self.start(&item.packet);
            if item.marked {
                // It has an IP header, or it would not have been marked.
                let _ = set_ecn(packet(&mut item.packet, at, self.link_header), item.ecn);
            }
            let took = self.far.send(&item.packet)?;
            let shared = &mut *lock(&self.shared);
            if took {
                shared.queue.sent_packets += 1;
                shared.queue.sent_bytes += item.len as u64;
            } else {
                shared.lost += 1;
            }
        }
        Ok(())
    }

    /// The frames that have come from behind the bottleneck go on, in their order; nothing is waited for. Whether there may be more.
    fn back(&mut self) -> io::Result<bool> {
        let mut frames = Vec::new();
        while frames.len() < BATCH
            && let Some(frame) = take(&self.far, &mut self.buffer)?
        {
            frames.push(frame);
        }
        let more = frames.len() == BATCH;
        let mut batch: Vec<Returning<'_>> = frames
            .iter_mut()
            .map(|frame| {
                let at = self.start(frame);
                let checksum = match frame[0] & VirtioNetHdr::NEEDS_CSUM {
                    0 => ChecksumState::Complete,
                    _ => ChecksumState::ToBeMade,
                };
                // Of what is no IP nothing is shown, and nothing is done to it.
                let packet = packet(frame, at, self.link_header);
                let len = packet.len();
                Returning { packet, len, checksum, verdict: Verdict::default() }
            })
            .collect();
        if batch.is_empty() {
            return Ok(false);
        }
        let mut shared = lock(&self.shared);
        let now = shared.control.now();
        let length = shared.discipline.length();
        shared.control.returning_all(now, &mut batch, length);
        drop(shared);
        let verdicts: Vec<Verdict> = batch.iter().map(|one| one.verdict).collect();
        for (frame, verdict) in frames.into_iter().zip(verdicts) {
            let due = if verdict.hold.is_zero() { Instant::ZERO } else { now + verdict.hold };
            // Nothing overtakes what is held.
            let due = self.held.back().map_or(due, |(last, _)| due.max(*last));
            if due > Instant::ZERO {
                self.held.push_back((due, frame));
            } else {
                self.return_to_sender(&frame)?;
            }
        }
        Ok(more)
    }

    fn release(&mut self, now: Instant) -> io::Result<()> {
        while let Some((_, frame)) = self.held.pop_front_if(|(due, _)| *due <= now) {
            self.return_to_sender(&frame)?;
        }
        Ok(())
    }

    fn return_to_sender(&mut self, frame: &[u8]) -> io::Result<()> {
        if !self.near.send(frame)? {
            lock(&self.shared).lost += 1;
        }
        Ok(())
    }

    /// The offset of the IP packet in a frame, if there is one.
    fn start(&self, frame: &[u8]) -> Option<usize> {
        let at = VirtioNetHdr::LEN + self.link_header;
        // The type of an Ethernet frame: IPv4 or IPv6.
        let ip =
            self.link_header == 0 || matches!(frame.get(at - 2..at), Some([8, 0] | [0x86, 0xdd]));
        ip.then_some(at)
    }
}

/// The IP packet in a frame, without what Ethernet pads short ones with; empty if there is none.
fn packet(frame: &mut [u8], at: Option<usize>, link_header: usize) -> &mut [u8] {
    let Some(bytes) = at.and_then(|at| frame.get_mut(at..)) else { return &mut [] };
    let word = |at: usize| {
        bytes.get(at..at + 2).map_or(0, |two| usize::from(u16::from_be_bytes([two[0], two[1]])))
    };
    let length = match bytes.first().map(|first| first >> 4) {
        // Zero in a super-segment that is too long to say how long it is.
        Some(4) if link_header > 0 && word(2) > 0 => word(2),
        Some(6) if link_header > 0 && word(4) > 0 => 40 + word(4),
        _ => bytes.len(),
    };
    let length = length.min(bytes.len());
    &mut bytes[..length]
}

/// The next frame of a socket.
fn take(socket: &FrameSocket, buffer: &mut [u8]) -> io::Result<Option<Frame>> {
    let length = socket.receive(buffer)?.unwrap_or(0);
    // A frame is kept in as much memory as it needs: what waits may be much.
    let frame = buffer.get(..length).filter(|frame| frame.len() > VirtioNetHdr::LEN);
    Ok(frame.map(<[u8]>::to_vec))
}

fn count(event: &Event<'_, Frame>, queue: &mut QueueStatus) {
    match event {
        Event::Dropped { .. } => queue.drops += 1,
        Event::Marked { .. } => queue.marks += 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(ethertype: [u8; 2], packet: &[u8]) -> Frame {
        [&[0; VirtioNetHdr::LEN + 12][..], &ethertype, packet].concat()
    }

    #[test]
    fn packets_are_found_without_their_padding() {
        let at = Some(VirtioNetHdr::LEN + 14);
        // 40 bytes in a frame that Ethernet has made 46 bytes long.
        let mut four = frame([8, 0], &[&[0x45, 0, 0, 40][..], &[7; 42]].concat());
        assert_eq!(packet(&mut four, at, 14).len(), 40);
        let mut six = frame([0x86, 0xdd], &[&[0x60, 0, 0, 0, 0, 2][..], &[7; 40]].concat());
        assert_eq!(packet(&mut six, at, 14).len(), 42);
        // Lengths that lie, and none.
        let mut lying = frame([8, 0], &[0x45, 0, 0xff, 0xff, 1]);
        assert_eq!(packet(&mut lying, at, 14).len(), 5);
        assert_eq!(packet(&mut [0; 12], at, 14).len(), 0);
        assert_eq!(packet(&mut four, None, 14).len(), 0);
    }
}
