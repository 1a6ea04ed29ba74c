//! RED: random early detection.
//!
//! S. Floyd and V. Jacobson, "Random Early Detection Gateways for Congestion Avoidance", IEEE/ACM Transactions on
//! Networking, August 1993: the algorithm of its figure 2. Each arriving packet updates an exponentially weighted
//! average of the queue's length. Below `min` nothing happens; from there to `max` the probability of a signal (a drop
//! or a mark) rises from 0 to `max_p`; above it every packet is a signal. The probability grows with the packets since
//! the last signal, so that signals are spread evenly instead of geometrically.
//!
//! With `gentle` (S. Floyd, "Recommendation on using the 'gentle' variant of RED", March 2000) the probability rises
//! on from `max_p` at `max` to 1 at twice `max`.
//!
//! Choices that the paper leaves open:
//! - **Distance between signals.** The paper's text has it uniform on 1, …, 1/p, its figure on 1, …, 1/p − 1, because
//!   `count` is raised before it is used. The figure is followed, as ns-2 does; the mean is 1/(2p).
//! - **Idle time.** While the queue is empty the average decays as if as many packets as the link could have sent had
//!   found an empty queue. A packet that is dropped there leaves the queue empty: no time counts twice.
//! - **In bytes** the average and the thresholds count bytes and a packet's probability is proportional to its length:
//!   `max_p` is that of a packet of `packet_size`.
//! - **ECN.** Early signals mark packets of ECN-capable transports. Beyond the range of control packets are dropped
//!   even if ECN-capable: a sender that ignores marks has to be stopped (RFC 7567, section 4.2.1).
//! - **A full queue** drops as drop-tail does, and that does not touch `count`.

use alloc::format;
use alloc::string::ToString;

use transom_base::time::{Duration, Instant};

use super::config::above_zero;
use super::{
    Admission, Cause, ConfigError, Discipline, Fifo, Item, Length, Limit, RandomSource, Sink,
    Threshold, mark, refuse,
};
use crate::parameters::{Kind, LENGTH, LIMIT, PROBABILITY, SOME_DURATION, SWITCH, Shown, Walk};
use crate::probability::Probability;

/// Fractional bits of the average.
const FRACTION: u32 = 24;
/// Queues are measured up to this many packets or bytes (half a terabyte).
const LARGEST: u64 = 1 << 39;

/// The parameters of [`Red`]. The default has those of the paper's simulations (sections 5 and 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct RedConfig {
    /// The queue's capacity.
    pub(super) limit: Limit,
    /// The average below which nothing is signalled.
    pub(super) min: Threshold,
    /// The average from which everything is (or, gently, from which the probability rises to one), in the same unit.
    pub(super) max: Threshold,
    /// w_q: the weight of the newest sample in the average.
    pub(super) weight: Probability,
    /// The probability of a signal where the average reaches `max`, before spreading.
    pub(super) max_p: Probability,
    /// The packet length for which `max_p` is defined, in bytes; used if the thresholds count bytes, and for `transmission`.
    pub(super) packet_size: u32,
    /// How long the link takes for a packet (s in the paper), for the average's decay while the queue is empty. Without
    /// it, an idle period counts as one sample, however long. [`Config::on_link`](super::Config::on_link) computes it.
    pub(super) transmission: Option<Duration>,
    /// Whether the probability rises to one at twice `max` instead of jumping there at `max`.
    pub(super) gentle: bool,
    /// Whether early signals mark packets of ECN-capable transports.
    pub(super) ecn: bool,
}

/// A bare number counts packets.
const THRESHOLD: Kind<Threshold> = Kind {
    example: "5 (packets) or 30kB",
    read: |text| match (text.trim().parse(), text.parse()) {
        (Ok(packets), _) | (_, Ok(Limit::Packets(packets))) => Some(Threshold::Packets(packets)),
        (_, Ok(Limit::Bytes(bytes))) => Some(Threshold::Bytes(bytes)),
        _ => None,
    },
    show: |threshold| {
        Shown::Value(match threshold {
            Threshold::Packets(packets) => packets.to_string(),
            Threshold::Bytes(bytes) => format!("{bytes}B"),
        })
    },
};

impl Default for RedConfig {
    fn default() -> Self {
        RedConfig {
            limit: Limit::default(),
            min: Threshold::Packets(5),
            max: Threshold::Packets(15),
            weight: Probability::ratio(2, 1000),
            max_p: Probability::ratio(1, 50),
            packet_size: 1500,
            transmission: None,
            gentle: false,
            ecn: false,
        }
    }
}

impl RedConfig {
    /// # Errors
    /// [`ConfigError`] if the parameters make no sense together.
    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        if self.min.counts_bytes() != self.max.counts_bytes() {
            return Err(ConfigError::MixedUnits);
        }
        let (min, max) = (self.min.amount(), self.max.amount());
        if min >= max {
            return Err(ConfigError::Thresholds { min, max });
        }
        if max >= LARGEST / 2 {
            return Err(ConfigError::TooLarge { parameter: "max", most: LARGEST / 2 - 1 });
        }
        above_zero(&[
            ("w", self.weight.is_zero()),
            ("p", self.max_p.is_zero()),
            ("packet", self.packet_size == 0),
            ("transmission", self.transmission == Some(Duration::ZERO)),
        ])?;
        match (self.min, self.limit) {
            (Threshold::Packets(min), Limit::Packets(limit))
            | (Threshold::Bytes(min), Limit::Bytes(limit))
                if min >= limit =>
            {
                Err(ConfigError::NeverReached { min, limit })
            }
            _ => Ok(()),
        }
    }

    /// All parameters.
    pub(super) fn walk(&mut self, walk: &mut Walk<'_>) {
        walk.at("limit", &mut self.limit, LIMIT);
        walk.at("min", &mut self.min, THRESHOLD);
        walk.at("max", &mut self.max, THRESHOLD);
        walk.at("w", &mut self.weight, PROBABILITY);
        walk.at("p", &mut self.max_p, PROBABILITY);
        walk.at("packet", &mut self.packet_size, LENGTH);
        walk.at("transmission", &mut self.transmission, SOME_DURATION);
        walk.at("gentle", &mut self.gentle, SWITCH);
        walk.at("ecn", &mut self.ecn, SWITCH);
    }

    /// The probability of a signal at this average (with `FRACTION` bits), before spreading; `None` beyond the range
    /// of control.
    fn probability(&self, average: u64) -> Option<Probability> {
        let (min, max) = (self.min.amount() << FRACTION, self.max.amount() << FRACTION);
        if average < min {
            Some(Probability::ZERO)
        } else if average < max {
            Some(self.max_p.scaled(average - min, max - min))
        } else if self.gentle && average < 2 * max {
            let rest = self.max_p.complement().scaled(average - max, max);
            Some(Probability::from_parts(self.max_p.parts() + rest.parts()))
        } else {
            None
        }
    }
}

/// The probability of a signal if `count` packets have passed since the last one: p / (1 − count·p).
fn spread(p: Probability, count: u64) -> Probability {
    let passed = u128::from(p.parts()) * u128::from(count);
    match u128::from(Probability::PARTS).checked_sub(passed) {
        // The rest is at most 2^63 now.
        Some(rest) => p.scaled(Probability::PARTS, rest as u64),
        None => Probability::ONE,
    }
}

/// A queue that drops or marks at random before it is full.
#[derive(Clone, Debug)]
pub(super) struct Red<P> {
    config: RedConfig,
    fifo: Fifo<P>,
    /// The average length in the configured unit, with `FRACTION` fractional bits.
    average: u64,
    /// Packets since the last signal; `None` (−1 in the paper) while the average is below `min`.
    count: Option<u64>,
    /// Up to when the time in which the queue was empty has been accounted for. Meaningless while it is not.
    idle_since: Instant,
}

impl<P> Red<P> {
    /// An empty queue.
    pub(super) fn new(config: RedConfig) -> Result<Self, ConfigError> {
        config.validate()?;
        Ok(Red { config, fifo: Fifo::new(), average: 0, count: None, idle_since: Instant::ZERO })
    }

    /// The average length in packets or bytes, for plots.
    #[cfg(test)]
    fn average(&self) -> f64 {
        self.average as f64 / (1u64 << FRACTION) as f64
    }

    fn update_average(&mut self, now: Instant) {
        let weight = self.config.weight;
        let length = self.fifo.length();
        if length.packets > 0 {
            let target = self.config.min.measure(length).min(LARGEST) << FRACTION;
            // avg ← (1 − w)·avg + w·q, rounded once. Either product is below 2^126.
            let weighted = u128::from(self.average) * u128::from(weight.complement().parts())
                + u128::from(target) * u128::from(weight.parts());
            self.average = ((weighted + (1 << 62)) >> 63) as u64;
            return;
        }
        let samples = match self.config.transmission {
            Some(each) => {
                let idle = now.since(self.idle_since);
                let samples = idle.as_nanos() / each.as_nanos().max(1);
                self.idle_since += each.times(samples);
                samples
            }
            None => 1,
        };
        let kept = weight.complement().every(samples);
        self.average =
            ((u128::from(self.average) * u128::from(kept.parts()) + (1 << 62)) >> 63) as u64;
    }

    /// Whether a packet of `len` bytes that arrives now is to carry a signal.
    fn decide(&mut self, len: usize, random: &mut dyn RandomSource) -> Option<Cause> {
        let Some(p) = self.config.probability(self.average) else {
            self.count = Some(0);
            return Some(Cause::Forced);
        };
        if self.average < self.config.min.amount() << FRACTION {
            self.count = None;
            return None;
        }
        let count = self.count.map_or(0, |count| count.saturating_add(1));
        self.count = Some(count);
        let p = match self.config.min {
            Threshold::Packets(_) => p,
            Threshold::Bytes(_) => p.scaled(len as u64, u64::from(self.config.packet_size)),
        };
        if spread(p, count).toss(random) {
            self.count = Some(0);
            return Some(Cause::Early);
        }
        None
    }
}

impl<P: Send> Discipline<P> for Red<P> {
    fn enqueue(
        &mut self,
        now: Instant,
        item: Item<P>,
        random: &mut dyn RandomSource,
        sink: &mut Sink<'_, P>,
    ) -> Admission {
        let mut item = Item { enqueued: now, ..item };
        self.update_average(now);
        let signal = self.decide(item.len, random);
        let may_mark = self.config.ecn && signal == Some(Cause::Early) && item.is_ecn_capable();
        if let Some(cause) = signal
            && !may_mark
        {
            return refuse(now, cause, item, sink);
        }
        if !self.config.limit.admits(self.fifo.length(), item.len) {
            return refuse(now, Cause::Tail, item, sink);
        }
        if may_mark {
            mark(now, Cause::Early, &mut item, sink);
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
        let item = self.fifo.pop()?;
        if self.fifo.length().packets == 0 {
            self.idle_since = now;
        }
        Some(item)
    }

    fn length(&self) -> Length {
        self.fifo.length()
    }
}

#[cfg(test)]
mod tests;
