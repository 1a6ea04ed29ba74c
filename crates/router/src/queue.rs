//! Queues in front of an output link.
//!
//! A [`Discipline`] holds the packets that wait for a link. The link's owner offers each arriving packet
//! ([`enqueue`](Discipline::enqueue)) and takes one whenever the link is free ([`dequeue`](Discipline::dequeue)). The
//! packet being transmitted is no longer in the queue. Either call may drop packets or mark them with "congestion
//! experienced" (RFC 3168). The caller's [`Sink`] gets each such decision at once, with its cause and, for a drop, the
//! packet. So every packet comes out, is reported as dropped, or is still in the queue.
//!
//! A discipline never reads a packet. The [`Item`] has the information that it needs. A mark is set there, and the
//! packet's owner writes it into the header ([`transom_wire::ip::set_ecn`]).
//!
//! Disciplines are deterministic: the same calls at the same times with the same [`RandomSource`] give the same results on
//! every machine. All work is O(1) per call and nothing allocates once a queue has been as long as it gets. A discipline that keeps flows apart
//! looks at each of its queues when it is full. FQ-CoDel then drops several packets, CAKE one at a time.
//!
//! Some disciplines keep flows apart. The owner of a packet says whose it is ([`Flow`]); [`FlowHasher`] finds it in the packet. Two of them wait
//! although the link is free ([`Discipline::ready_at`]): `cake` with a shaper, and `fq` with a rate for each flow.

mod cake;
mod codel;
mod config;
mod dualpi2;
mod fifo;
mod flow;
mod fq;
mod fq_codel;
mod limit;
mod limited;
mod pie;
mod red;
mod rounds;
mod statistics;

use transom_base::time::{Duration, Instant};
use transom_wire::ip::Ecn;

use cake::{Cake, CakeConfig};
use codel::{CoDel, CoDelConfig};
pub use config::{Config, ConfigError};
use dualpi2::{DualPi2, DualPi2Config};
pub use flow::{Flow, FlowHasher};
use fq::{Fq, FqConfig};
use fq_codel::{FqCoDel, FqCoDelConfig};
pub use limit::{Limit, Threshold};
use limited::{Limited, Victim};
use pie::{Pie, PieConfig};
use red::{Red, RedConfig};
pub use statistics::QueueStatistics;

use fifo::Fifo;

/// Decides which packets wait for a link, which are dropped and which are marked.
///
/// `now` should not run backwards between calls; if it does, spans of time count as zero.
pub trait Discipline<P>: Send {
    /// Offers a packet that has arrived. Returns the fate of *this* packet; `sink` gets every drop and mark, this
    /// packet's included.
    fn enqueue(
        &mut self,
        now: Instant,
        item: Item<P>,
        random: &mut dyn RandomSource,
        sink: &mut Sink<'_, P>,
    ) -> Admission;

    /// Takes the next packet to transmit; `None` if the queue is empty, possibly because this call dropped everything
    /// in it.
    fn dequeue(
        &mut self,
        now: Instant,
        random: &mut dyn RandomSource,
        sink: &mut Sink<'_, P>,
    ) -> Option<Item<P>>;

    /// The length of the queue.
    fn length(&self) -> Length;

    /// Whether nothing waits.
    fn is_empty(&self) -> bool {
        self.length().packets == 0
    }

    /// The earliest time at which [`dequeue`](Self::dequeue) may give a packet, if the discipline itself holds back all that waits. `None` if
    /// only the link decides, or if nothing waits.
    fn ready_at(&self) -> Option<Instant> {
        None
    }

    /// Calls `each` with the name and the statistics of each queue inside, for disciplines that have several.
    fn queues(&self, each: &mut dyn FnMut(&'static str, &QueueStatistics)) {
        let _ = each;
    }
}

/// A source of random decisions.
///
/// Any `FnMut() -> u64` is one.
pub trait RandomSource {
    /// 64 random bits, all equally likely.
    fn uniform(&mut self) -> u64;
}

impl<F: FnMut() -> u64> RandomSource for F {
    fn uniform(&mut self) -> u64 {
        self()
    }
}

/// A packet and what a queue needs to know of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item<P> {
    /// The packet, in whatever form its owner keeps it.
    pub packet: P,
    /// Its length on the link, in bytes.
    pub len: usize,
    /// Its ECN codepoint. [`Ecn::Ce`] if a queue has marked it.
    pub ecn: Ecn,
    /// Whether a queue has marked it, so that the codepoint in its header has to be rewritten.
    pub marked: bool,
    /// When it entered the queue: set by [`Discipline::enqueue`].
    pub enqueued: Instant,
    /// The flow that it belongs to, for disciplines that keep flows apart. All packets with the default are one flow.
    pub flow: Flow,
    /// Whether it came through the low-latency queue of a dual queue (RFC 9332): set by [`Discipline::dequeue`].
    pub low_latency: bool,
}

impl<P> Item<P> {
    /// A packet of `len` bytes that no queue has seen.
    pub fn new(packet: P, len: usize, ecn: Ecn) -> Self {
        let flow = Flow::default();
        Item { packet, len, ecn, marked: false, enqueued: Instant::ZERO, flow, low_latency: false }
    }

    /// The same packet, of this flow.
    #[must_use]
    pub fn of_flow(self, flow: Flow) -> Self {
        Item { flow, ..self }
    }

    /// Whether its transport supports marks. This includes a packet that was marked before.
    const fn is_ecn_capable(&self) -> bool {
        !matches!(self.ecn, Ecn::NotEct)
    }

    /// How long it has been in the queue, or was when it left it at `now`.
    pub(crate) fn waited(&self, now: Instant) -> Duration {
        now - self.enqueued
    }
}

/// The fate of an arriving packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// It waits, marked or not.
    Queued,
    /// It was dropped.
    Dropped(Cause),
}

/// Why a packet was dropped or marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Cause {
    /// The queue was full, or the packet larger than the whole queue.
    Tail,
    /// The queue was full and the packet, its oldest, had to make room.
    Head,
    /// A random early signal while the queue was in its range of control.
    Early,
    /// A signal without a random decision, because the queue was beyond its range of control.
    Forced,
    /// Packets had been waiting too long for too long.
    Delay,
}

/// A decision on a packet other than to queue it.
#[derive(Debug)]
pub enum Event<'a, P> {
    /// The packet has left the queue, or never entered it, and will not be transmitted.
    Dropped {
        /// When.
        at: Instant,
        /// Why.
        cause: Cause,
        /// The packet, to be counted and disposed of. Its `enqueued` is `at` if it never entered.
        item: Item<P>,
    },
    /// The packet now carries "congestion experienced". It waits, or is about to be returned by `dequeue`.
    Marked {
        /// When.
        at: Instant,
        /// Why.
        cause: Cause,
        /// The packet.
        item: &'a Item<P>,
    },
}

/// Called for each dropped or marked packet, in the order of the decisions.
pub type Sink<'s, P> = dyn FnMut(Event<'_, P>) + 's;

/// Packets and bytes that wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Length {
    /// How many packets.
    pub packets: u64,
    /// The sum of their lengths.
    pub bytes: u64,
}

impl Length {
    fn put(&mut self, len: usize) {
        self.packets += 1;
        self.bytes = self.bytes.saturating_add(len as u64);
    }

    fn take(&mut self, len: usize) {
        self.packets = self.packets.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(len as u64);
    }
}

/// Drops an arriving packet.
fn refuse<P>(now: Instant, cause: Cause, item: Item<P>, sink: &mut Sink<'_, P>) -> Admission {
    sink(Event::Dropped { at: now, cause, item: Item { enqueued: now, ..item } });
    Admission::Dropped(cause)
}

/// Marks a packet whose transport is ECN-capable. A packet that was marked on an earlier link keeps its header.
fn mark<P>(now: Instant, cause: Cause, item: &mut Item<P>, sink: &mut Sink<'_, P>) {
    if item.ecn != Ecn::Ce {
        item.ecn = Ecn::Ce;
        item.marked = true;
    }
    sink(Event::Marked { at: now, cause, item });
}

#[cfg(test)]
mod properties_tests;
#[cfg(test)]
mod test_bench;
