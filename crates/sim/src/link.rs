//! One direction of a network path: queue, serialiser, wire.
//!
//! A packet offered to [`LinkModel::send`] meets the effects in the order in which a real path has them:
//!
//! 1. **MTU**: a packet that is too big is dropped.
//! 2. **Policer**: a packet beyond the rate that it lets pass is dropped.
//! 3. **Queue**: if the serialiser is busy the packet waits. The discipline may drop it, or another one, or mark it.
//! 4. **Serialiser**: transmits one packet at a time at the rate, which is constant or follows a trace.
//! 5. **Wire**: loses the packet or delivers it after the propagation delay, perhaps later (jitter,
//!    reordering), twice (duplication), with a cleared ECN codepoint (bleaching) or with flipped bits (corruption). A packet that is lost
//!    here has taken its place in the queue and its time on the serialiser, as on a real link.
//!
//! A drop-tail queue is first-in first-out, and the rate and its changes are known. So a packet's whole future is known when it is offered.
//! The model computes it at once and keeps the deliveries in their order. With another discipline the packets wait until the serialiser is
//! free. Either way the caller asks when something is due next and comes back then, or later; what happens meanwhile happens at its own time.
//!
//! Each random effect draws from a stream of its own: switching one off leaves the others' decisions alone.

mod bleach;
mod config;
mod corruption;
mod counters;
mod delays;
mod deliveries;
mod error;
mod jitter;
mod loss;
mod managed;
mod policer;
mod queue;
mod queue_config;
mod rate_trace;
mod reorder;
mod serialiser;
mod text;
mod transmitter;
mod window_text;

use std::fmt;

use transom_tcp::time::{Duration, Instant};

use crate::random::{Rng, Streams};
use crate::units::{Limit, Rate};
use delays::Waits;
use deliveries::Deliveries;
use managed::{Managed, Waiting};
use policer::Bucket;
use transmitter::Transmitter;
use transom_router::queue::{Flow, FlowHasher, Item};
use transom_wire::ip::{Ecn, peek_ecn, set_ecn};

use bleach::Bleach;
use corruption::Corruption;
use jitter::JitterOrder;
pub(crate) use loss::LossProcess;
pub(crate) use managed::Fate;
pub(crate) use queue::{DropTail, QueueObserver};
pub(crate) use serialiser::Transmission;

pub use config::LinkConfig;
pub use counters::{Counters, Traffic};
pub use delays::Delays;
pub use error::LinkConfigError;
pub use loss::Loss;
pub use queue::{QueueEvent, QueueSample};
pub use queue_config::QueueConfig;
pub use rate_trace::{OPPORTUNITY, RateTrace, RateTraceError};

/// The result for a packet offered to a link.
///
/// The model knows at once what the wire will do; a caller that plays an honest sender ignores the
/// difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// It will be delivered.
    Queued,
    /// It will be delivered, and a copy of it too.
    Duplicated,
    /// It was dropped: larger than the link's MTU.
    TooBig,
    /// It was dropped: the queue had no room for it, its discipline did not want it, or the policer before it let no more pass.
    QueueFull,
    /// It was dropped: the wire lost it, by the loss model.
    Lost,
}

/// A packet that came out of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Delivered<P> {
    /// The packet as it was sent: see [`into_packet`](Self::into_packet).
    pub packet: P,
    /// Its length in bytes, as given to [`LinkModel::send`].
    pub len: usize,
    /// How many packets had been offered to the link before it.
    pub index: u64,
    /// When it was offered to the link.
    pub sent: Instant,
    /// When it was due, which is earlier than the call that delivered it if the caller came late.
    pub due: Instant,
    /// Whether it is the wire's copy of a packet also delivered.
    pub duplicate: bool,
    /// Whether the queue has marked it: the receiver finds "congestion experienced" in its header (RFC 3168).
    pub marked: bool,
    /// The codepoints that were cleared on the wire, after the queue's mark: see [`into_packet`](Self::into_packet).
    pub(crate) bleach: Bleach,
    /// The damage it suffered.
    pub(crate) corruption: Option<Corruption>,
}

impl<P> Delivered<P> {
    /// The same with another packet, and its own.
    pub(crate) fn exchange<Q>(self, packet: Q) -> (Delivered<Q>, P) {
        let Delivered { packet: own, len, index, sent, due, duplicate, marked, bleach, corruption } =
            self;
        (Delivered { packet, len, index, sent, due, duplicate, marked, bleach, corruption }, own)
    }

    /// Whether its ECN codepoint may be another than when it was sent.
    pub(crate) fn may_change_ecn(&self) -> bool {
        self.marked || !self.bleach.is_none()
    }

    /// The ECN codepoint that the receiver finds in a packet that was sent with `ecn`: the queue has marked it, then the wire has cleared it.
    pub(crate) fn ecn_on_arrival(&self, ecn: Ecn) -> Ecn {
        self.bleach.apply(if self.marked { Ecn::Ce } else { ecn })
    }

    /// The packet as the receiver finds it: what has been done to it on its way, to the codepoint and then the damage, is written
    /// into its `bytes`.
    pub fn into_packet(self, bytes: impl FnOnce(&mut P) -> &mut [u8]) -> P {
        let (fate, mut packet) = self.exchange(());
        if fate.may_change_ecn() || fate.corruption.is_some() {
            let bytes = bytes(&mut packet);
            if fate.may_change_ecn() {
                // Without an IP header there is no codepoint to change.
                let _ = set_ecn(bytes, fate.ecn_on_arrival(peek_ecn(bytes)));
            }
            if let Some(corruption) = &fate.corruption {
                corruption.apply(bytes);
            }
        }
        packet
    }
}

/// One direction of a path, carrying packets of type `P`. See the [module](self).
pub struct LinkModel<P> {
    config: LinkConfig,
    policer: Option<Bucket>,
    transmitter: Transmitter,
    queue: Queue<P>,
    wire: Wire,
    deliveries: Deliveries<P>,
    /// The latest time the caller has shown; time does not run backwards.
    clock: Instant,
    counters: Counters,
    waits: Measured,
    /// The same of packets that came through a low-latency queue.
    low_waits: Measured,
    /// Finds the flows of packets, if the queue keeps them apart.
    hasher: Option<FlowHasher>,
}

/// How long packets have waited, if that is of interest.
#[derive(Default)]
struct Measured {
    is_on: bool,
    /// Nothing has waited before it is made.
    waits: Option<Box<Waits>>,
}

impl Measured {
    /// What was seen since the last call.
    fn take(&mut self) -> Delays {
        self.waits.as_mut().map_or_else(Delays::default, |waits| waits.take())
    }

    fn record(&mut self, delay: Duration) {
        if !self.is_on || delay.is_zero() {
            return;
        }
        if self.waits.is_none() {
            self.waits = Waits::new();
        }
        if let Some(waits) = &mut self.waits {
            waits.record(delay);
        }
    }
}

/// The queue of packets before the serialiser.
enum Queue<P> {
    /// It is known when each packet leaves.
    Computed(DropTail),
    /// The discipline says when asked.
    Managed(Box<Managed<P>>),
}

/// The random effects, and where each takes its numbers.
struct Wire {
    loss: LossProcess,
    duplicate: Rng,
    corrupt: Rng,
    jitter: Rng,
    reorder: Rng,
    /// The latest delivery of a packet that keeps its order.
    in_order_until: Instant,
}

impl Wire {
    fn new(config: &LinkConfig, streams: Streams, entity: u64, in_order_until: Instant) -> Self {
        Wire {
            loss: LossProcess::new(&config.loss, streams.rng(entity, purpose::LOSS)),
            duplicate: streams.rng(entity, purpose::DUPLICATE),
            corrupt: streams.rng(entity, purpose::CORRUPT),
            jitter: streams.rng(entity, purpose::JITTER),
            reorder: streams.rng(entity, purpose::REORDER),
            in_order_until,
        }
    }
}

/// The purposes of a link's streams. A number once given is never reused for something else.
pub(crate) mod purpose {
    pub(super) const LOSS: u64 = 0;
    pub(super) const DUPLICATE: u64 = 1;
    pub(super) const CORRUPT: u64 = 2;
    pub(super) const JITTER: u64 = 3;
    pub(super) const REORDER: u64 = 4;
    pub(super) const QUEUE: u64 = 5;
    /// The random part of the delay. Both directions of a link draw with the entity of the first.
    pub(crate) const DELAY: u64 = 6;
    /// The key by which flows are told apart.
    pub(super) const FLOWS: u64 = 7;
}

impl<P: Clone + Send + 'static> LinkModel<P> {
    /// A link at rest. `entity` is its number in the run: links that should not share their luck need
    /// different ones, the two directions of a path included. A configuration that `LinkConfig::check` refuses makes a link that
    /// delivers nothing, if the file of its rate trace has not been read, or one without a rate besides the trace's.
    pub fn new(config: &LinkConfig, streams: Streams, entity: u64) -> Self {
        let mut settled = config.clone();
        settled.settle_delay(|| streams.rng(entity, purpose::DELAY));
        let config = &settled;
        let managed = |queue: &QueueConfig| {
            let rate = config.mean_rate().map_or(u64::MAX, Rate::bits_per_sec);
            let discipline = queue.0.on_link(rate).build().ok()?;
            Some(Box::new(Managed::new(discipline, streams.rng(entity, purpose::QUEUE))))
        };
        let queue = match config.queue.drop_tail() {
            Some(limit) => Queue::Computed(DropTail::new(limit)),
            // Parameters that make no sense cannot be written as text; whoever makes them up gets the default queue.
            None => managed(&config.queue)
                .map_or_else(|| Queue::Computed(DropTail::new(Limit::default())), Queue::Managed),
        };
        let hasher = config.queue.0.tells_flows_apart().then(|| {
            let mut secret = [0; 16];
            streams.rng(entity, purpose::FLOWS).fill(&mut secret);
            FlowHasher::new(secret)
        });
        LinkModel {
            hasher,
            policer: config.policer.map(Bucket::new),
            transmitter: Transmitter::new(config),
            queue,
            wire: Wire::new(config, streams, entity, Instant::ZERO),
            deliveries: Deliveries::new(),
            clock: Instant::ZERO,
            counters: Counters::default(),
            waits: Measured::default(),
            low_waits: Measured::default(),
            config: config.clone(),
        }
    }

    /// Begins what is random on the wire anew, with the streams of an entity. The next packet meets the fate that the first meets of a new link.
    /// Packets on their way and counters stay as they are.
    pub fn reseed(&mut self, streams: Streams, entity: u64) {
        self.wire = Wire::new(&self.config, streams, entity, self.wire.in_order_until);
    }

    /// Offers a packet of `len` bytes, which cannot be marked, at time `now`. A `now` earlier than in a previous call counts
    /// as that call's.
    pub fn send(&mut self, now: Instant, packet: P, len: usize) -> Admission {
        self.send_of(now, packet, len, (Ecn::NotEct, Flow::default()))
    }

    /// Offers a packet at time `now`, of which `bytes` gives the bytes from its IP header on: from them are its length, its ECN codepoint, and
    /// its flow if the queue keeps flows apart.
    pub fn send_ip(
        &mut self,
        now: Instant,
        packet: P,
        bytes: impl FnOnce(&P) -> &[u8],
    ) -> Admission {
        let bytes = bytes(&packet);
        let (len, with) = (bytes.len(), (peek_ecn(bytes), self.flow_of(bytes)));
        self.send_of(now, packet, len, with)
    }

    /// The flow of a packet that begins with its IP header, if the queue keeps flows apart; otherwise all are of one.
    pub(crate) fn flow_of(&self, packet: &[u8]) -> Flow {
        self.hasher.as_ref().map(|hasher| hasher.flow(packet)).unwrap_or_default()
    }

    /// Offers a packet of `len` bytes with its ECN codepoint and its flow ([`flow_of`](Self::flow_of)) at time `now`.
    pub(crate) fn send_of(
        &mut self,
        now: Instant,
        packet: P,
        len: usize,
        (ecn, flow): (Ecn, Flow),
    ) -> Admission {
        let now = self.advance(now);
        let index = self.counters.offered.packets;
        self.counters.offered.count(len);

        if self.config.mtu.is_some_and(|mtu| len as u64 > u64::from(mtu.get())) {
            self.counters.too_big.count(len);
            return Admission::TooBig;
        }
        if self.policer.as_mut().is_some_and(|policer| !policer.passes(now, len)) {
            self.counters.queue_full.count(len);
            return Admission::QueueFull;
        }
        let busy = self.transmitter.must_wait(now);
        match &mut self.queue {
            Queue::Computed(queue) => {
                if busy && !queue.admits(len) {
                    queue.refuse(now);
                    self.counters.queue_full.count(len);
                    return Admission::QueueFull;
                }
                let transmission = self.transmitter.transmit(now, len);
                if transmission.begins > now {
                    queue.push(now, transmission.begins, len);
                }
                let in_flight = InFlight { sent: now, index, len, transmission, marked: false };
                self.carry(in_flight, packet)
            }
            Queue::Managed(queue) => {
                if queue.is_empty() {
                    self.transmitter.idle_until(now);
                }
                let waiting = Waiting { packet, index, sent: now };
                let (admitted, verdicts) = queue.offer(now, waiting, len, (ecn, flow));
                self.counters.count(verdicts);
                if !admitted {
                    self.counters.queue_full.count(len);
                    return Admission::QueueFull;
                }
                if !busy {
                    self.transmit_next(now);
                }
                if let Queue::Managed(queue) = &mut self.queue {
                    queue.note_peak();
                }
                Admission::Queued
            }
        }
    }

    /// Takes the next packet out of a managed queue onto the wire, at `at`.
    fn transmit_next(&mut self, at: Instant) {
        let Queue::Managed(queue) = &mut self.queue else { return };
        let shaped = queue.ready_at().is_some();
        let (item, verdicts) = queue.next(at);
        self.counters.count(verdicts);
        let Some(Item { packet, len, marked, low_latency, .. }) = item else { return };
        let Waiting { packet, index, sent } = packet;
        let delay = at.since(sent);
        self.counters.dequeued += 1;
        self.counters.queue_delay = self.counters.queue_delay + delay;
        self.waits.record(delay);
        if low_latency {
            self.counters.low_dequeued += 1;
            self.counters.low_queue_delay = self.counters.low_queue_delay + delay;
            self.low_waits.record(delay);
        }
        // It has waited for this since it came, unless it was the queue that held it.
        let transmission = self.transmitter.transmit(if shaped { at } else { sent }, len);
        let in_flight = InFlight { sent, index, len, transmission, marked };
        let kept = queue.tells_fates().then(|| packet.clone());
        let admission = self.carry(in_flight, packet);
        let Queue::Managed(queue) = &mut self.queue else { return };
        match (admission, kept) {
            (Admission::Lost, Some(packet)) => queue.tell(Fate::Gone(packet)),
            (Admission::Duplicated, Some(packet)) => queue.tell(Fate::Copied(packet)),
            _ => {}
        }
    }

    /// Keeps from now on what becomes of packets after they were admitted, for [`LinkModel::take_fate`]: for owners of packets
    /// that have to be disposed of.
    pub(crate) fn tell_fates(&mut self) {
        if let Queue::Managed(queue) = &mut self.queue {
            queue.tell_fates();
        }
    }

    /// The next packet that the link dropped or duplicated after accepting it. Call this until it returns `None`, after every other call.
    pub(crate) fn take_fate(&mut self) -> Option<Fate<P>> {
        match &mut self.queue {
            Queue::Computed(_) => None,
            Queue::Managed(queue) => queue.take_fate(),
        }
    }

    /// Sends a packet down the wire, which may lose or duplicate it.
    fn carry(&mut self, in_flight: InFlight, packet: P) -> Admission {
        if self.wire.loss.loses(in_flight.index) {
            self.counters.lost.count(in_flight.len);
            return Admission::Lost;
        }
        if self.wire.duplicate.bernoulli(self.config.duplicate) {
            self.counters.duplicated.count(in_flight.len);
            let copy = packet.clone();
            self.propagate(in_flight, packet, false);
            self.propagate(in_flight, copy, true);
            return Admission::Duplicated;
        }
        self.propagate(in_flight, packet, false);
        Admission::Queued
    }

    /// When something is to be delivered next, or a waiting packet's turn comes; `None` if there is nothing on the way.
    pub fn next_delivery(&self) -> Option<Instant> {
        let due = self.deliveries.next_due();
        match &self.queue {
            Queue::Managed(queue) if !queue.is_empty() => {
                let turn = self.turn_of(queue);
                Some(due.map_or(turn, |due| due.min(turn)))
            }
            _ => due,
        }
    }

    /// When the next packet of a queue is taken: when the serialiser is free and the queue ready.
    fn turn_of(&self, queue: &Managed<P>) -> Instant {
        let turn = self.transmitter.turn();
        queue.ready_at().map_or(turn, |ready| turn.max(ready))
    }

    /// Takes the next packet that has arrived by `now`. Call it until it returns `None`.
    pub fn deliver(&mut self, now: Instant) -> Option<Delivered<P>> {
        let now = self.advance(now);
        if self.deliveries.next_due()? > now {
            return None;
        }
        let delivered = self.deliveries.pop()?;
        self.counters.delivered.count(delivered.len);
        Some(delivered)
    }

    /// Takes the next packet that is to be delivered, whenever that is, for a receiver who keeps the time: it is not counted as delivered here.
    pub(crate) fn take_scheduled(&mut self) -> Option<Delivered<P>> {
        self.deliveries.pop()
    }

    /// Has a packet delivered that another model has carried.
    pub(crate) fn schedule(&mut self, delivered: Delivered<P>) {
        self.deliveries.push(delivered);
    }

    /// The latest time that it has seen.
    pub(crate) fn clock(&self) -> Instant {
        self.clock
    }

    /// Packets that are still to be delivered, as far as is known, copies included.
    fn in_flight(&self) -> usize {
        let waiting = match &self.queue {
            Queue::Computed(_) => 0,
            Queue::Managed(queue) => queue.length().packets as usize,
        };
        self.deliveries.len() + waiting
    }

    /// Packets and bytes waiting for the serialiser at time `now`, without the one being transmitted.
    pub fn queued(&mut self, now: Instant) -> Traffic {
        self.advance(now);
        match &self.queue {
            Queue::Computed(queue) => queue.length(),
            Queue::Managed(queue) => queue.length(),
        }
    }

    /// The counters of the link.
    pub fn counters(&self) -> Counters {
        let Counters { offered, too_big, queue_full, .. } = self.counters;
        let opportunities = self.transmitter.opportunities(self.clock);
        match &self.queue {
            Queue::Computed(queue) => Counters {
                queue_peak: queue.peak(),
                // Packets that were admitted and do not wait have left, most of them without having waited.
                dequeued: offered.packets
                    - too_big.packets
                    - queue_full.packets
                    - queue.length().packets,
                queue_delay: queue.delay(),
                opportunities,
                ..self.counters
            },
            Queue::Managed(queue) => {
                Counters { queue_peak: queue.peak(), opportunities, ..self.counters }
            }
        }
    }

    /// Keeps from now on how long each packet waits, for [`LinkModel::take_delays`].
    pub(crate) fn measure_delays(&mut self) {
        (self.waits.is_on, self.low_waits.is_on) = (true, true);
    }

    /// How long the packets had waited that have left the queue by `now` and since the last call: all of them, and those that came through the
    /// low-latency queue of a dual queue.
    pub(crate) fn take_delays(&mut self, now: Instant) -> [Delays; 2] {
        self.advance(now);
        [self.waits.take(), self.low_waits.take()]
    }

    /// The configuration the link was made with.
    pub fn config(&self) -> &LinkConfig {
        &self.config
    }

    /// Calls `observer` at each change of the queue's length and each packet it refuses, with the time at
    /// which that happens on the link: for plots. Replaces a previous observer.
    pub fn observe_queue(&mut self, observer: impl FnMut(QueueSample) + Send + 'static) {
        let observer = Box::new(observer);
        match &mut self.queue {
            Queue::Computed(queue) => queue.observe(observer),
            Queue::Managed(queue) => queue.observe(observer),
        }
    }

    fn advance(&mut self, now: Instant) -> Instant {
        self.clock = self.clock.max(now);
        loop {
            let turn = match &self.queue {
                Queue::Computed(_) => Instant::ZERO,
                Queue::Managed(queue) => self.turn_of(queue),
            };
            match &mut self.queue {
                Queue::Computed(queue) => {
                    let waits = &mut self.waits;
                    queue.drain(self.clock, |delay| waits.record(delay));
                    return self.clock;
                }
                Queue::Managed(queue) if queue.is_empty() || turn > self.clock => {
                    return self.clock;
                }
                Queue::Managed(_) => self.transmit_next(turn),
            }
        }
    }

    /// Sends one packet, or the copy of one, down the wire.
    fn propagate(&mut self, in_flight: InFlight, packet: P, duplicate: bool) {
        let InFlight { sent, index, len, transmission, marked } = in_flight;
        let wire = &mut self.wire;
        let corruption = self.config.corrupt.damage(&mut wire.corrupt);
        self.counters.corrupted += u64::from(corruption.is_some());

        let mut due = transmission.ends + self.config.delay;
        if let Some(jitter) = &self.config.jitter {
            due += jitter.draw(&mut wire.jitter);
        }
        if self.config.jitter_order == JitterOrder::Keep {
            due = due.max(wire.in_order_until);
        }
        if let Some(extra) = self.config.reorder.draw(&mut wire.reorder) {
            // A reordered packet does not hold back those behind it: that is what reorders it.
            due += extra;
            self.counters.reordered += 1;
        } else {
            wire.in_order_until = wire.in_order_until.max(due);
        }
        self.deliveries.push(Delivered {
            packet,
            len,
            index,
            sent,
            due,
            duplicate,
            marked,
            bleach: self.config.bleach,
            corruption,
        });
    }
}

impl<P: Clone + Send + 'static> fmt::Debug for LinkModel<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LinkModel")
            .field("config", &self.config)
            .field("clock", &self.clock)
            .field("in_flight", &self.in_flight())
            .field("counters", &self.counters())
            .finish_non_exhaustive()
    }
}

/// The facts about a packet that the wire needs.
#[derive(Clone, Copy)]
struct InFlight {
    sent: Instant,
    index: u64,
    len: usize,
    transmission: Transmission,
    marked: bool,
}

#[cfg(test)]
mod properties_tests;
#[cfg(test)]
mod tests;
