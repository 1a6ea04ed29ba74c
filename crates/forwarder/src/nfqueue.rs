//! Packets that the kernel forwards, and asks us about (NFQUEUE).
//!
//! Rules in `mangle FORWARD` send TCP packets that leave through the interface with the bottleneck queue to one NFQUEUE queue, and those that
//! come in by it to another. A thread takes them. Of packets to the first queue only the headers come, and they pass unchanged. The others come
//! whole, segmented and with complete checksums, and may be rewritten. The thread asks the kernel for the length of the interface's queue at
//! most once in a millisecond, because the answer costs as much time as some hundred packets.
//!
//! When the thread wakes up, it takes the packets that have arrived, up to 32, and gives each its verdict in order. It does not wait for more.
//! So it prefetches the memory of their flows together (see [`returning_all`](transom_router::window::WindowControl::returning_all)).
//!
//! When we are not there, packets pass by the rules (`--queue-bypass`), and when we are too slow, they pass us (`fail-open`). A packet that
//! the kernel held for us when we died is dropped with the queue; it will be sent again.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use transom_device::interface::Interfaces;
use transom_device::{Decision, PacketQueue, QueueOptions, QueuedPacket};
use transom_router::queue::Length;
use transom_router::window::{ChecksumState, ControlConfig, Returning, Verdict};
use transom_tcp::time::{Duration, Instant};

use crate::control::Control;
use crate::refusal::{self, Refusal, look_at, need_capabilities};
use crate::status::{Deployment, Status};
use crate::worker::{Stop, Worker, wait_for_either};

mod rules;

use rules::Rules;

/// CAP_NET_ADMIN.
const CAPABILITIES: [u32; 1] = [12];
/// The bytes of packets of which only the headers matter: IPv6, a few of its options, TCP with all of its own.
const HEADERS: u16 = 256;
/// Packets that the kernel holds for us.
const HELD: u32 = 4096;
/// The longest age of the queue's length.
const FRESH: Duration = Duration::from_millis(1);
/// The most packets that are taken together.
const BATCH: usize = 32;
/// The most batches from one queue before the other one's turn.
const TURN: usize = 2;
/// How often the thread checks whether it should end.
const STOP_CHECK: Duration = Duration::from_millis(200);
/// The first queue number to try. Other programs use numbers near zero.
const FIRST_NUMBER: u16 = 30_200;
/// How many are tried.
const NUMBERS: u16 = 256;

/// The rules, and the thread that decides.
pub struct Nfqueue {
    device: String,
    index: u32,
    interfaces: Interfaces,
    control: Arc<Mutex<Control>>,
    worker: Worker,
}

impl fmt::Debug for Nfqueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Nfqueue").field("device", &self.device).finish_non_exhaustive()
    }
}

fn lock(control: &Mutex<Control>) -> MutexGuard<'_, Control> {
    control.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether the process may do this.
///
/// # Errors
/// [`Refusal::Capability`] if not.
pub fn check_nfqueue_privileges() -> Result<(), Refusal> {
    need_capabilities(&CAPABILITIES)
}

impl Nfqueue {
    /// Installs the rules and begins, in the network namespace of the calling thread.
    ///
    /// # Errors
    /// [`Refusal`] if the system lacks something. It changes nothing then.
    pub fn start(device: &str, config: &ControlConfig) -> Result<Self, Refusal> {
        let mut interfaces = refusal::interfaces()?;
        let state = look_at(&mut interfaces, device)?;
        let control = Arc::new(Mutex::new(Control::new(config)?));
        check_nfqueue_privileges()?;
        let asked = refusal::interfaces()?;
        let kind = interfaces.root_queue(state.index).map_or("noqueue".into(), |queue| queue.kind);
        if kind == "noqueue" {
            return Err(Refusal::Queue { device: device.to_owned(), kind });
        }
        let headers = QueueOptions { copy: HEADERS, offloads: true, held: HELD };
        let whole = QueueOptions { copy: u16::MAX, offloads: false, held: HELD };
        let forward = bind(FIRST_NUMBER, headers)?;
        let returning = bind(forward.number().saturating_add(1), whole)?;
        let mut rules = Rules::install(device, forward.number(), returning.number())?;

        let decider = Decider {
            forward,
            returning,
            control: Arc::clone(&control),
            asked,
            index: state.index,
            length: Length::default(),
            fresh_until: Instant::ZERO,
            held: VecDeque::new(),
        };
        // The rules go with the thread, also when it panics or cannot be started. It is in the network namespace that they are in, as we are.
        let worker = Worker::start("nfqueue", move |stop| {
            let ended = decider.run(&stop);
            rules.remove().and(ended)
        })?;
        let device = device.to_owned();
        Ok(Nfqueue { device, index: state.index, interfaces, control, worker })
    }
}

/// Binds the first number that is free.
fn bind(first: u16, options: QueueOptions) -> Result<PacketQueue, Refusal> {
    let mut last = io::Error::from(io::ErrorKind::ResourceBusy);
    for number in first..first.saturating_add(NUMBERS) {
        match PacketQueue::bind(number, options) {
            Ok(queue) => return Ok(queue),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                return Err(Refusal::Capability { missing: "CAP_NET_ADMIN".into() });
            }
            // EBUSY, and what the kernel says instead: EPERM would have been said before.
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => last = error,
            Err(error) => return Err(Refusal::NoQueues(error)),
        }
    }
    Err(Refusal::io("no queue number is free")(last))
}

impl Deployment for Nfqueue {
    fn status(&mut self, flows: usize) -> Result<Status, Refusal> {
        let queue = self.interfaces.root_queue(self.index);
        let queue = queue.map_err(Refusal::io("cannot look at the queue"))?;
        Ok(lock(&self.control).status("nfqueue", &self.device, flows, queue.into()))
    }

    fn maintain(&mut self) -> Result<(), Refusal> {
        self.worker.maintain()
    }
}

struct Decider {
    forward: PacketQueue,
    returning: PacketQueue,
    control: Arc<Mutex<Control>>,
    asked: Interfaces,
    index: u32,
    length: Length,
    fresh_until: Instant,
    /// Acknowledgements that go on later, and when, in order.
    held: VecDeque<(Instant, u32)>,
}

impl Decider {
    fn run(mut self, stop: &Stop) -> Result<(), Refusal> {
        let failed = || Refusal::io("cannot take packets from the kernel");
        while !stop.is_stop_requested() {
            let now = lock(&self.control).now();
            self.release(now).map_err(failed())?;
            let patience =
                self.held.front().map_or(STOP_CHECK, |(due, _)| STOP_CHECK.min(*due - now));
            self.wait(patience).map_err(failed())?;
            for _ in 0..TURN {
                if !self.take_forward().map_err(failed())? {
                    break;
                }
            }
            for _ in 0..TURN {
                if !self.take_returning().map_err(failed())? {
                    break;
                }
            }
        }
        self.release(Instant::FAR_FUTURE).map_err(failed())
    }

    fn wait(&self, patience: Duration) -> io::Result<()> {
        wait_for_either([self.forward.as_fd(), self.returning.as_fd()], patience)
    }

    /// The length of the interface's queue, as far as it is known.
    fn length(&mut self, now: Instant) -> Length {
        if now >= self.fresh_until {
            // An interface that is gone has no queue.
            let queue = self.asked.root_queue(self.index).unwrap_or_default();
            self.length = Length { packets: queue.packets.into(), bytes: queue.bytes.into() };
            self.fresh_until = now + FRESH;
        }
        self.length
    }

    fn take_forward(&mut self) -> io::Result<bool> {
        let now = lock(&self.control).now();
        let length = self.length(now);
        let control = &self.control;
        self.forward.receive_all(BATCH, |packets| {
            let mut control = lock(control);
            for packet in packets {
                control.forward(now, packet.bytes, packet.len, length);
            }
        })
    }

    fn take_returning(&mut self) -> io::Result<bool> {
        let now = lock(&self.control).now();
        let length = self.length(now);
        let (control, held) = (&self.control, &mut self.held);
        self.returning.receive_all(BATCH, |packets| {
            // All are, as the queue was bound; one that is not would go on with a checksum that nobody completes.
            let whole = |packet: &QueuedPacket<'_>| {
                packet.bytes.len() >= packet.len && packet.checksum_ready
            };
            let mut batch: Vec<Returning<'_>> = packets
                .iter_mut()
                .filter(|packet| whole(packet))
                .map(|packet| Returning {
                    packet: &mut *packet.bytes,
                    len: packet.len,
                    checksum: ChecksumState::Complete,
                    verdict: Verdict::default(),
                })
                .collect();
            let taken = batch.len();
            let mut control = lock(control);
            control.returning_all(now, &mut batch, length);
            let verdicts: Vec<Verdict> = batch.iter().map(|one| one.verdict).collect();
            control.failed(packets.len() - taken);
            drop(control);
            let decided = packets.iter_mut().filter(|packet| whole(packet));
            for (packet, verdict) in decided.zip(verdicts) {
                packet.decision = if !verdict.hold.is_zero() {
                    let due = now + verdict.hold;
                    let due = held.back().map_or(due, |(last, _)| due.max(*last));
                    held.push_back((due, packet.id));
                    Decision::Keep
                } else if verdict.rewritten {
                    Decision::AcceptChanged
                } else {
                    Decision::Accept
                };
            }
        })
    }

    fn release(&mut self, now: Instant) -> io::Result<()> {
        while let Some((_, id)) = self.held.pop_front_if(|(due, _)| *due <= now) {
            self.returning.accept(id, None)?;
        }
        Ok(())
    }
}
