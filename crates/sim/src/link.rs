//! One direction of a network path: queue, serialiser, wire.
//!
//! A packet offered to [`LinkModel::send`] meets the effects in the order in which a real path has them:
//!
//! 1. **MTU**: a packet that is too big is dropped.
//! 2. **Queue** (drop-tail): if the serialiser is busy the packet waits, or is dropped when it does not fit.
//! 3. **Serialiser**: transmits one packet at a time at the rate.
//! 4. **Wire**: loses the packet or delivers it after the propagation delay, perhaps later (jitter,
//!    reordering), twice (duplication) or with flipped bits (corruption). What is lost here has taken its
//!    place in the queue and its time on the serialiser, as on a real link.
//!
//! The queue is first-in first-out and the rate is constant, so a packet's whole future is known when it
//! is offered: the model computes it at once and keeps a heap of deliveries. There are no events inside
//! the link. The caller asks when the next delivery is due and comes back then, or later.
//!
//! Each random effect draws from a stream of its own: switching one off leaves the others' decisions alone.

mod config;
mod corruption;
mod counters;
mod deliveries;
mod jitter;
mod loss;
mod queue;
mod reorder;
mod serialiser;
mod text;

use std::fmt;

use transom_tcp::time::Instant;

use crate::random::{Rng, Streams};
use deliveries::Deliveries;

pub use config::{LinkConfig, LinkConfigError};
pub use corruption::{Corrupt, Corruption};
pub use counters::{Counters, Traffic};
pub use jitter::{Jitter, JitterOrder};
pub use loss::{GilbertElliott, Loss, LossProcess};
pub use queue::{DropTail, QueueEvent, QueueObserver, QueueSample};
pub use reorder::Reorder;
pub use serialiser::{Serialiser, Transmission};
pub use text::SyntaxError;

/// What became of a packet offered to a link.
///
/// The model knows at once what the wire will do; a caller that plays an honest sender ignores the
/// difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// It will be delivered.
    Queued,
    /// It will be delivered, and a copy of it too.
    Duplicated,
    /// It will not.
    Dropped(DropCause),
}

/// Why a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DropCause {
    /// It was larger than the link's MTU.
    TooBig,
    /// The queue had no room for it.
    QueueFull,
    /// The wire lost it, by the loss model.
    Loss,
}

/// A packet that came out of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivered<P> {
    /// The packet as it was sent: if it is to be corrupt, the receiver applies [`Self::corruption`].
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
    /// The damage it suffered.
    pub corruption: Option<Corruption>,
}

/// One direction of a path, carrying packets of type `P`. See the [module](self).
pub struct LinkModel<P> {
    config: LinkConfig,
    serialiser: Serialiser,
    queue: DropTail,
    wire: Wire,
    deliveries: Deliveries<P>,
    /// The latest time the caller has shown; time does not run backwards.
    clock: Instant,
    counters: Counters,
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

/// The purposes of a link's streams. A number once given is never reused for something else.
mod purpose {
    pub(super) const LOSS: u64 = 0;
    pub(super) const DUPLICATE: u64 = 1;
    pub(super) const CORRUPT: u64 = 2;
    pub(super) const JITTER: u64 = 3;
    pub(super) const REORDER: u64 = 4;
}

impl<P> LinkModel<P> {
    /// A link at rest. `entity` is its number in the run: links that should not share their luck need
    /// different ones, the two directions of a path included.
    pub fn new(config: &LinkConfig, streams: Streams, entity: u64) -> Self {
        LinkModel {
            serialiser: Serialiser::new(config.rate),
            queue: DropTail::new(config.queue),
            wire: Wire {
                loss: LossProcess::new(&config.loss, streams.rng(entity, purpose::LOSS)),
                duplicate: streams.rng(entity, purpose::DUPLICATE),
                corrupt: streams.rng(entity, purpose::CORRUPT),
                jitter: streams.rng(entity, purpose::JITTER),
                reorder: streams.rng(entity, purpose::REORDER),
                in_order_until: Instant::ZERO,
            },
            deliveries: Deliveries::new(),
            clock: Instant::ZERO,
            counters: Counters::default(),
            config: config.clone(),
        }
    }

    /// Offers a packet of `len` bytes at time `now`. A `now` earlier than in a previous call counts as that
    /// call's.
    pub fn send(&mut self, now: Instant, packet: P, len: usize) -> Admission
    where
        P: Clone,
    {
        let now = self.advance(now);
        let index = self.counters.offered.packets;
        self.counters.offered.count(len);

        if self.config.mtu.is_some_and(|mtu| len as u64 > u64::from(mtu.get())) {
            self.counters.too_big.count(len);
            return Admission::Dropped(DropCause::TooBig);
        }
        if self.serialiser.is_busy(now) && !self.queue.admits(len) {
            self.queue.refuse(now);
            self.counters.queue_full.count(len);
            return Admission::Dropped(DropCause::QueueFull);
        }
        let transmission = self.serialiser.transmit(now, len);
        if transmission.begins > now {
            self.queue.push(now, transmission.begins, len);
        }
        if self.wire.loss.loses(index) {
            self.counters.lost.count(len);
            return Admission::Dropped(DropCause::Loss);
        }
        let journey = Journey { now, index, len, transmission, duplicate: false };
        if self.wire.duplicate.bernoulli(self.config.duplicate) {
            self.counters.duplicated.count(len);
            let copy = packet.clone();
            self.propagate(journey, packet);
            self.propagate(Journey { duplicate: true, ..journey }, copy);
            return Admission::Duplicated;
        }
        self.propagate(journey, packet);
        Admission::Queued
    }

    /// When the next packet arrives at the far end; `None` while there is none on the way.
    pub fn next_delivery(&self) -> Option<Instant> {
        self.deliveries.next_due()
    }

    /// Takes the next packet that has arrived by `now`. Call it until it returns `None`.
    pub fn deliver(&mut self, now: Instant) -> Option<Delivered<P>> {
        let now = self.advance(now);
        if self.next_delivery()? > now {
            return None;
        }
        let delivered = self.deliveries.pop()?;
        self.counters.delivered.count(delivered.len);
        Some(delivered)
    }

    /// Packets that will be delivered and have not been, copies included.
    pub fn in_flight(&self) -> usize {
        self.deliveries.len()
    }

    /// Packets and bytes waiting for the serialiser at time `now`, without the one being transmitted.
    pub fn queued(&mut self, now: Instant) -> Traffic {
        self.advance(now);
        self.queue.length()
    }

    /// What the link has done so far.
    pub fn counters(&self) -> Counters {
        Counters { queue_peak: self.queue.peak(), ..self.counters }
    }

    /// The configuration the link was made with.
    pub fn config(&self) -> &LinkConfig {
        &self.config
    }

    /// Calls `observer` at each change of the queue's length and each packet it refuses, with the time at
    /// which that happens on the link: for plots. Replaces a previous observer.
    pub fn observe_queue(&mut self, observer: QueueObserver) {
        self.queue.observe(observer);
    }

    fn advance(&mut self, now: Instant) -> Instant {
        self.clock = self.clock.max(now);
        self.queue.drain(self.clock);
        self.clock
    }

    /// Sends one packet, or the copy of one, down the wire.
    fn propagate(&mut self, journey: Journey, packet: P) {
        let Journey { now: sent, index, len, transmission, duplicate } = journey;
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
        self.deliveries.push(Delivered { packet, len, index, sent, due, duplicate, corruption });
    }
}

impl<P> fmt::Debug for LinkModel<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LinkModel")
            .field("config", &self.config)
            .field("clock", &self.clock)
            .field("in_flight", &self.in_flight())
            .field("counters", &self.counters())
            .finish_non_exhaustive()
    }
}

/// What the wire needs to know of a packet besides the packet.
#[derive(Clone, Copy)]
struct Journey {
    now: Instant,
    index: u64,
    len: usize,
    transmission: Transmission,
    duplicate: bool,
}

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
