//! PIE: proportional integral controller enhanced (RFC 8033).
//!
//! Arriving packets are dropped or marked at random. Every `update` a controller moves the probability by how far the
//! queueing delay is from `target` and by how it has changed ([`controller`]). The delay is either that of the last
//! packet that left, by its time stamp, or the queue's length over an estimate of the departure rate ([`estimate`]).
//!
//! Parts of the RFC and where they are: random dropping and its safeguards (section 4.1), the probability (4.2), the
//! delay (4.3), burst tolerance (4.4), ECN below a probability (5.1), the departure rate (5.2), the cap on steps (5.5).
//! Derandomisation (5.4) and byte mode are optional here too. Turning PIE off when the queue is short (5.3) and the
//! additional step at delays above 250 ms that some implementations have are left out.
//!
//! PIE needs a timer. Its inputs do not change between two calls, so the next call first makes the updates that were due
//! since the last one, each for its own time. The result is that of a timer, which starts with the first packet. An idle
//! queue's controller settles after a few hundred updates, and at most [`MOST_UPDATES`] are made at once, so that no
//! call takes long. A link that held packets back for longer has been down.

mod controller;
mod estimate;

use transom_base::arguments::Fraction;
use transom_base::time::{Duration, Instant};

use super::config::above_zero;
use super::{
    Admission, Cause, ConfigError, Discipline, Fifo, Item, Length, Limit, RandomSource, Sink, mark,
    refuse,
};
use crate::parameters::{DURATION, LENGTH, LIMIT, PROBABILITY, SWITCH, Walk, gain};
use crate::probability::Probability;

use controller::Controller;
use estimate::Estimator;

/// Updates made up for in one call.
const MOST_UPDATES: u32 = 1000;

/// The parameters of [`Pie`]. The default has those of RFC 8033, sections 4 and 5, without its options.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct PieConfig {
    /// The queue's capacity.
    pub(super) limit: Limit,
    /// QDELAY_REF: the queueing delay to be held.
    pub(super) target: Duration,
    /// T_UPDATE: the time between updates of the probability.
    pub(super) update: Duration,
    /// MAX_BURST: how long a burst may last before anything is dropped early.
    pub(super) burst: Duration,
    /// The probability's change per update and second of deviation from the target.
    pub(super) alpha: Fraction,
    /// The probability's change per update and second of change of the delay.
    pub(super) beta: Fraction,
    /// Whether a packet's probability is in proportion to its length, or the same for each.
    pub(super) bytes: bool,
    /// MEAN_PKTSIZE, in bytes.
    pub(super) packet_size: u32,
    /// Whether the queueing delay is estimated from the measured departure rate, or from how long packets have waited (section 5.2).
    pub(super) departure_rate: bool,
    /// Whether drops are kept from coming too close together or too far apart (section 5.4).
    pub(super) derandomize: bool,
    /// Whether packets of ECN-capable transports are marked instead of dropped…
    pub(super) ecn: bool,
    /// …while the probability is below this (section 5.1).
    pub(super) ecn_limit: Probability,
}

impl Default for PieConfig {
    fn default() -> Self {
        PieConfig {
            limit: Limit::default(),
            target: Duration::from_millis(15),
            update: Duration::from_millis(15),
            burst: Duration::from_millis(150),
            alpha: Fraction::from_millionths(125_000),
            beta: Fraction::from_millionths(1_250_000),
            bytes: false,
            packet_size: 1500,
            departure_rate: false,
            derandomize: false,
            ecn: false,
            ecn_limit: Probability::ratio(1, 10),
        }
    }
}

impl PieConfig {
    /// # Errors
    /// [`ConfigError`] if the parameters make no sense together.
    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        above_zero(&[
            ("target", self.target.is_zero()),
            ("update", self.update.is_zero()),
            ("alpha", self.alpha == Fraction::default()),
            ("packet", self.packet_size == 0),
        ])
    }

    /// All parameters.
    pub(super) fn walk(&mut self, walk: &mut Walk<'_>) {
        walk.at("limit", &mut self.limit, LIMIT);
        walk.at("target", &mut self.target, DURATION);
        walk.at("update", &mut self.update, DURATION);
        walk.at("burst", &mut self.burst, DURATION);
        walk.at("alpha", &mut self.alpha, gain("0.125"));
        walk.at("beta", &mut self.beta, gain("1.25"));
        walk.at("packet", &mut self.packet_size, LENGTH);
        walk.at("bytes", &mut self.bytes, SWITCH);
        walk.at("departure-rate", &mut self.departure_rate, SWITCH);
        walk.at("derandomize", &mut self.derandomize, SWITCH);
        walk.at("ecn", &mut self.ecn, SWITCH);
        walk.at("ecn-limit", &mut self.ecn_limit, PROBABILITY);
    }
}

/// A queue that drops or marks at random so that packets wait for about the target time.
#[derive(Clone, Debug)]
pub(super) struct Pie<P> {
    config: PieConfig,
    fifo: Fifo<P>,
    controller: Controller,
    estimator: Estimator,
    /// When the next update is due; `None` before the first packet.
    next_update: Option<Instant>,
    /// The sum of the probabilities since the last signal, in parts of `Probability::PARTS` (`accu_prob_`).
    accumulated: u128,
}

impl<P> Pie<P> {
    /// An empty queue.
    pub(super) fn new(config: PieConfig) -> Result<Self, ConfigError> {
        config.validate()?;
        Ok(Pie {
            fifo: Fifo::new(),
            controller: Controller::new(&config),
            estimator: Estimator::new(config.departure_rate),
            next_update: None,
            accumulated: 0,
            config,
        })
    }

    /// The probability with which packets are dropped or marked, as of the last call.
    #[cfg(test)]
    fn drop_probability(&self) -> Probability {
        self.controller.drop_probability()
    }

    /// Makes up for the updates that were due by `now`.
    fn advance(&mut self, now: Instant) {
        let period = self.config.update;
        let due = *self.next_update.get_or_insert(now + period);
        if due > now {
            return;
        }
        let periods = 1 + now.since(due).as_nanos() / period.as_nanos().max(1);
        self.next_update = Some(due + period.times(periods));
        let delay = self.estimator.delay(self.fifo.length().bytes);
        for _ in 0..periods.min(u64::from(MOST_UPDATES)) {
            let before = self.controller;
            self.controller.update(&self.config, delay);
            if self.controller == before {
                break;
            }
        }
    }

    /// Whether an arriving packet of `len` bytes is to carry a signal (`drop_early` in the RFC).
    fn decide(&mut self, len: usize, random: &mut dyn RandomSource) -> Option<Cause> {
        let mean = u64::from(self.config.packet_size);
        let p = self.controller.drop_probability();
        if self.controller.tolerates_burst() {
            return None;
        }
        // The safeguards of section 4.1: PIE must not drop where there is no congestion.
        let calm = self.controller.delay() < self.config.target.over(2);
        if (calm && p < Probability::ratio(1, 5)) || self.fifo.length().bytes <= 2 * mean {
            return None;
        }
        let p = if self.config.bytes { p.scaled(len as u64, mean) } else { p };
        if self.config.derandomize {
            const LOW: u128 = Probability::PARTS as u128 * 85 / 100;
            const HIGH: u128 = Probability::PARTS as u128 * 85 / 10;
            self.accumulated =
                if p.is_zero() { 0 } else { self.accumulated + u128::from(p.parts()) };
            if self.accumulated < LOW {
                return None;
            }
            if self.accumulated >= HIGH {
                return Some(Cause::Forced);
            }
        }
        p.toss(random).then_some(Cause::Early)
    }
}

impl<P: Send> Discipline<P> for Pie<P> {
    fn enqueue(
        &mut self,
        now: Instant,
        item: Item<P>,
        random: &mut dyn RandomSource,
        sink: &mut Sink<'_, P>,
    ) -> Admission {
        self.advance(now);
        let mut item = Item { enqueued: now, ..item };
        if !self.config.limit.admits(self.fifo.length(), item.len) {
            self.accumulated = 0;
            return refuse(now, Cause::Tail, item, sink);
        }
        if let Some(cause) = self.decide(item.len, random) {
            self.accumulated = 0;
            let markable = self.controller.drop_probability() < self.config.ecn_limit;
            if !(self.config.ecn && markable && item.is_ecn_capable()) {
                return refuse(now, cause, item, sink);
            }
            mark(now, cause, &mut item, sink);
        }
        self.fifo.push(now, item);
        Admission::Queued
    }

    fn dequeue(
        &mut self,
        now: Instant,
        _: &mut dyn RandomSource,
        _: &mut Sink<'_, P>,
    ) -> Option<Item<P>> {
        self.advance(now);
        let item = self.fifo.pop()?;
        self.estimator.on_departure(now, item.len, item.waited(now), self.fifo.length().bytes);
        Some(item)
    }

    fn length(&self) -> Length {
        self.fifo.length()
    }
}

#[cfg(test)]
mod tests;
