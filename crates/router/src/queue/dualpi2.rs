//! DualPI2: two queues with coupled marking, for scalable and for classic congestion control (RFC 9332, appendix A).
//!
//! Packets with ECT(1) or CE wait in the *L* queue, which is kept almost empty; all others in the *C* queue, which is held at `target`. A controller
//! ([`controller`]) moves one base probability p′ by the delay, as PIE does, every `update`. Signals follow from it:
//!
//! | queue | signal | probability |
//! |---|---|---|
//! | C | a drop, or with `ecn` a mark for ECT(0) | p′² |
//! | L | a mark | the greater of k·p′ and a ramp over the packet's own delay, from `threshold` over `range` |
//!
//! A scalable flow's rate goes with 1/p, a classic one's with 1/√p. So the square makes both take about the same share (RFC 9332, section 2.1).
//!
//! **Overload** (section 4.2 and appendix A.2). Once k·p′ has reached certainty, marks say nothing any more. From there on L packets are also dropped
//! with p′², and ECT(0) is dropped and not marked. p′ goes on to one, so that a flow that does not respond is held by drops.
//!
//! **Starvation.** L goes first, but not always: while C waits, it gets `classic` of the bytes (weighted round robin, section 4.2.2).
//!
//! A decision is not random. Each queue adds up its probabilities, and signals at each whole one (`recur` in the RFC): the spacing is even, and no
//! seed changes a run.
//!
//! The update is made for its own time by the next call. Between two calls the head of each queue gets older and nothing else changes, so the result
//! is that of a timer. At most [`MOST_UPDATES`] are made at once.
//!
//! What differs from the pseudo-code: the delay is that of the longer waiting head, as the RFC has it for overload, in all cases. A C packet that would
//! leave less than two MTUs behind is not dropped, the usual safeguard of PIE (RFC 8033, section 4.1).

mod controller;

use transom_base::arguments::Fraction;
use transom_base::time::{Duration, Instant};
use transom_wire::ip::Ecn;

use super::config::above_zero;
use super::{
    Admission, Cause, ConfigError, Discipline, Event, Fifo, Item, Length, Limit, QueueStatistics,
    RandomSource, Sink, mark, refuse,
};
use crate::parameters::{CHOICE, DURATION, LENGTH, LIMIT, PROBABILITY, Walk, gain, number};
use crate::probability::Probability;

use controller::{Controller, Recurrence};

/// Updates made up for in one call.
const MOST_UPDATES: u64 = 1000;

/// The parameters of [`DualPi2`]. The default has those of RFC 9332, appendix A.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct DualPi2Config {
    /// The capacity of both queues together.
    pub(super) limit: Limit,
    /// The delay of the C queue to be held.
    pub(super) target: Duration,
    /// Tupdate: the time between updates of p′.
    pub(super) update: Duration,
    /// p′'s change per update and second of deviation from the target.
    pub(super) alpha: Fraction,
    /// p′'s change per update and second of change of the delay.
    pub(super) beta: Fraction,
    /// k: how much more often L packets are marked.
    pub(super) coupling: u32,
    /// minTh: the delay from which on L packets are marked for their own.
    pub(super) threshold: Duration,
    /// From there on, the span of delay within which marks become certain.
    pub(super) range: Duration,
    /// With no more than this many bytes behind it, an L packet is not marked for its own delay.
    pub(super) mtu: u32,
    /// The share of bytes that C gets while both wait.
    pub(super) classic: Probability,
    /// Whether ECT(0) is marked instead of dropped.
    pub(super) ecn: bool,
}

impl Default for DualPi2Config {
    fn default() -> Self {
        DualPi2Config {
            limit: Limit::Packets(10_000),
            target: Duration::from_millis(15),
            update: Duration::from_millis(16),
            alpha: Fraction::from_millionths(160_000),
            beta: Fraction::from_millionths(3_200_000),
            coupling: 2,
            threshold: Duration::from_micros(800),
            range: Duration::from_micros(400),
            mtu: 1500,
            classic: Probability::ratio(1, 16),
            ecn: true,
        }
    }
}

impl DualPi2Config {
    /// # Errors
    /// [`ConfigError`] if the parameters make no sense together.
    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        above_zero(&[
            ("coupling", self.coupling == 0),
            ("mtu", self.mtu == 0),
            ("target", self.target.is_zero()),
            ("update", self.update.is_zero()),
            ("alpha", self.alpha == Fraction::default()),
            // Without a share, a flow that never stops in L would starve C.
            ("classic", self.classic.is_zero()),
        ])
    }

    /// All parameters.
    pub(super) fn walk(&mut self, walk: &mut Walk<'_>) {
        walk.at("limit", &mut self.limit, LIMIT);
        walk.at("target", &mut self.target, DURATION);
        walk.at("update", &mut self.update, DURATION);
        walk.at("alpha", &mut self.alpha, gain("0.16"));
        walk.at("beta", &mut self.beta, gain("3.2"));
        walk.at("coupling", &mut self.coupling, number("2"));
        walk.at("threshold", &mut self.threshold, DURATION);
        walk.at("range", &mut self.range, DURATION);
        walk.at("mtu", &mut self.mtu, LENGTH);
        walk.at("classic", &mut self.classic, PROBABILITY);
        walk.at("ecn", &mut self.ecn, CHOICE);
    }

    /// The probability of a mark for an L packet's own delay (`laqm` in the RFC).
    fn ramp(&self, delay: Duration) -> Probability {
        match delay > self.threshold {
            true => {
                let above = delay - self.threshold;
                Probability::ratio(above.as_nanos(), self.range.as_nanos())
            }
            false => Probability::ZERO,
        }
    }
}

/// A low-latency queue and a classic one, coupled.
#[derive(Clone, Debug)]
pub(super) struct DualPi2<P> {
    config: DualPi2Config,
    low: Side<P>,
    classic: Side<P>,
    controller: Controller,
    /// When the next update is due; `None` before the first packet.
    next_update: Option<Instant>,
    /// What C is owed of the bytes that L has sent meanwhile, in parts of 2^16 of a byte.
    owed: i64,
}

/// All bytes, where C's share is a part of them.
const ALL: i64 = 1 << 16;

/// The length of a packet, of which none is free.
fn length_of(len: usize) -> i64 {
    i64::try_from(len.max(1)).unwrap_or(i64::MAX)
}

/// One of the two queues.
#[derive(Clone, Debug)]
struct Side<P> {
    fifo: Fifo<P>,
    signals: Recurrence,
    statistics: QueueStatistics,
}

impl<P> Side<P> {
    fn new() -> Self {
        Side {
            fifo: Fifo::new(),
            signals: Recurrence::default(),
            statistics: QueueStatistics::default(),
        }
    }

    /// How long its oldest packet has waited at `now`.
    fn delay(&self, now: Instant) -> Duration {
        self.fifo.front().map_or(Duration::ZERO, |item| item.waited(now))
    }

    fn drop(&mut self, now: Instant, cause: Cause, item: Item<P>, sink: &mut Sink<'_, P>) {
        self.statistics.dropped += 1;
        sink(Event::Dropped { at: now, cause, item });
    }

    fn mark(&mut self, now: Instant, cause: Cause, item: &mut Item<P>, sink: &mut Sink<'_, P>) {
        self.statistics.marked += 1;
        mark(now, cause, item, sink);
    }
}

impl<P> DualPi2<P> {
    /// Empty queues.
    pub(super) fn new(config: DualPi2Config) -> Result<Self, ConfigError> {
        config.validate()?;
        Ok(DualPi2 {
            config,
            low: Side::new(),
            classic: Side::new(),
            controller: Controller::default(),
            next_update: None,
            owed: 0,
        })
    }

    /// Makes up for the updates that were due by `now`.
    fn advance(&mut self, now: Instant) {
        let period = self.config.update;
        let mut due = *self.next_update.get_or_insert(now + period);
        if due > now {
            return;
        }
        let periods = 1 + now.since(due).as_nanos() / period.as_nanos().max(1);
        self.next_update = Some(due + period.times(periods));
        for _ in 0..periods.min(MOST_UPDATES) {
            let before = self.controller;
            let delay = self.classic.delay(due).max(self.low.delay(due));
            self.controller.update(&self.config, delay);
            due += period;
            // An idle queue's controller settles.
            if delay.is_zero() && self.controller == before {
                break;
            }
        }
    }

    /// C's share of the bytes, in parts of [`ALL`].
    fn share(&self) -> i64 {
        // At most 2^63 parts: the result is at most 2^16.
        i64::try_from(self.config.classic.parts() >> 47).unwrap_or(ALL).max(1)
    }

    /// Whether it is L's turn: unless C has saved up what its next packet takes.
    fn is_low_next(&self) -> bool {
        let Some(first) = self.classic.fifo.front() else { return true };
        let cost = (ALL - self.share()).saturating_mul(length_of(first.len));
        !self.low.fifo.is_empty() && self.owed < cost
    }

    /// Notes what was sent, for the next turns. C saves up nothing while it has nothing.
    fn account(&mut self, low: bool, len: usize) {
        let other = if low { &self.classic } else { &self.low };
        if other.fifo.is_empty() {
            self.owed = self.owed.min(0);
            return;
        }
        let change = if low { self.share() } else { self.share() - ALL };
        // As much as a turn of large packets needs.
        let most = ALL.saturating_mul(1 << 20);
        let change = change.saturating_mul(length_of(len));
        self.owed = self.owed.saturating_add(change).clamp(-most, most);
    }

    /// What becomes of an L packet that has left its queue; `None` if it is dropped.
    fn signal_low(
        &mut self,
        now: Instant,
        mut item: Item<P>,
        sink: &mut Sink<'_, P>,
    ) -> Option<Item<P>> {
        let DualPi2 { config, low, controller, .. } = self;
        if controller.is_overloaded(config.coupling) {
            if low.signals.signals(controller.classic()) {
                low.drop(now, Cause::Early, item, sink);
                return None;
            }
            low.mark(now, Cause::Forced, &mut item, sink);
            return Some(item);
        }
        let own = match low.fifo.length().bytes > u64::from(config.mtu) {
            true => config.ramp(item.waited(now)),
            false => Probability::ZERO,
        };
        let coupled = controller.coupled(config.coupling);
        if low.signals.signals(own.max(coupled)) {
            let cause = if own > coupled { Cause::Delay } else { Cause::Early };
            low.mark(now, cause, &mut item, sink);
        }
        Some(item)
    }

    /// The same for a C packet.
    fn signal_classic(
        &mut self,
        now: Instant,
        mut item: Item<P>,
        sink: &mut Sink<'_, P>,
    ) -> Option<Item<P>> {
        let DualPi2 { config, low, classic, controller, .. } = self;
        if !classic.signals.signals(controller.classic()) {
            return Some(item);
        }
        let marks = config.ecn && item.is_ecn_capable();
        if marks && !controller.is_overloaded(config.coupling) {
            classic.mark(now, Cause::Early, &mut item, sink);
            return Some(item);
        }
        let left = classic.fifo.length().bytes.saturating_add(low.fifo.length().bytes);
        if left < 2 * u64::from(config.mtu) {
            return Some(item);
        }
        classic.drop(now, Cause::Early, item, sink);
        None
    }
}

impl<P: Send> Discipline<P> for DualPi2<P> {
    fn enqueue(
        &mut self,
        now: Instant,
        item: Item<P>,
        _: &mut dyn RandomSource,
        sink: &mut Sink<'_, P>,
    ) -> Admission {
        self.advance(now);
        let length = Discipline::<P>::length(self);
        let side = match item.ecn {
            Ecn::Ect1 | Ecn::Ce => &mut self.low,
            Ecn::NotEct | Ecn::Ect0 => &mut self.classic,
        };
        if !self.config.limit.admits(length, item.len) {
            side.statistics.dropped += 1;
            return refuse(now, Cause::Tail, item, sink);
        }
        side.fifo.push(now, item);
        Admission::Queued
    }

    fn dequeue(
        &mut self,
        now: Instant,
        _: &mut dyn RandomSource,
        sink: &mut Sink<'_, P>,
    ) -> Option<Item<P>> {
        self.advance(now);
        loop {
            let low = self.is_low_next();
            let sent = if low {
                let item = self.low.fifo.pop()?;
                self.signal_low(now, item, sink)
            } else {
                let item = self.classic.fifo.pop()?;
                self.signal_classic(now, item, sink)
            };
            let Some(item) = sent else { continue };
            self.account(low, item.len);
            let side = if low { &mut self.low } else { &mut self.classic };
            side.statistics.count_sent(now, &item);
            return Some(Item { low_latency: low, ..item });
        }
    }

    fn length(&self) -> Length {
        let (low, classic) = (self.low.fifo.length(), self.classic.fifo.length());
        Length {
            packets: low.packets + classic.packets,
            bytes: low.bytes.saturating_add(classic.bytes),
        }
    }

    fn queues(&self, each: &mut dyn FnMut(&'static str, &QueueStatistics)) {
        let sides = [
            ("low-latency", &self.low, self.controller.coupled(self.config.coupling)),
            ("classic", &self.classic, self.controller.classic()),
        ];
        for (name, side, probability) in sides {
            let waiting = side.fifo.length();
            each(name, &QueueStatistics { waiting, probability, ..side.statistics });
        }
    }
}

#[cfg(test)]
mod tests;
