//! TCP-LP (Kuzmanovic, Knightly: "TCP-LP: Low-Priority Service via End-Point Congestion Control", INFOCOM 2003, ToN 2006).
//!
//! Early congestion is inferred from one-way delays, before there is loss: the smoothed delay passes d_min + δ·(d_max − d_min). Then the window is
//! halved, and for an inference time of three round trips the flow only watches. With another indication meanwhile the window becomes one segment:
//! there is other traffic. Otherwise it is Reno.
//!
//! Differences from the paper, and choices that it leaves open:
//! - After a reduction the next indication counts a smoothed round trip later, when delays can show its effect, and smoothing restarts then. So, as
//!   in the paper, persistent congestion takes the window to one segment in two round trips.
//! - Delays are measured with a resolution of a millisecond, or as round trips where timestamps cannot be used. The threshold is at least two
//!   milliseconds above d_min in the first case, so that the clock's steps are no congestion.
//! - A segment that travels alone is no sample, as its receiver may have delayed the acknowledgement. Otherwise a window of one segment would always
//!   look congested.
//! - In slow start indications count as well, and end it.

use super::built_in::{BuiltIn, Value, require};
use super::controller::Kind;
use super::delay::{DelaySource, Meter, is_alone};
use super::{CongestionControl, Window};
use crate::ack_context::AckContext;
use crate::arguments::{ArgumentError, Arguments, Fraction};
use crate::time::{Duration, Instant};
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

#[cfg(test)]
mod tests;

/// TCP-LP's parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lp {
    /// δ: how far between the least and the largest delay congestion begins.
    pub(crate) threshold: Fraction,
    /// The delay that is measured.
    pub(crate) delay: DelaySource,
}

impl Default for Lp {
    fn default() -> Self {
        Lp { threshold: Fraction::from_millionths(150_000), delay: DelaySource::OneWay }
    }
}

impl BuiltIn for Lp {
    const NAME: &'static str = "lp";
    const SOURCE: &'static str = "Kuzmanovic, Knightly: TCP-LP, INFOCOM 2003";
    const SUMMARY: &'static str =
        "Reno that yields as soon as delays rise; for background transfers";

    fn parameters(&mut self) -> Vec<(&'static str, &mut dyn Value)> {
        vec![("threshold", &mut self.threshold), ("delay", &mut self.delay)]
    }

    fn check(&self, given: &Arguments<'_>) -> Result<(), ArgumentError> {
        require(given, self.threshold < Fraction::ONE, "threshold is below 1", self.threshold)
    }

    fn kind(&self) -> Kind {
        Kind::Lp(Box::new(Controller {
            parameters: *self,
            meter: Meter::new(self.delay),
            delays: None,
            phase: None,
        }))
    }
}

/// Nanoseconds from the meter's origin.
#[derive(Clone, Copy, Debug)]
struct Delays {
    least: i64,
    largest: i64,
    /// `None` after a reduction, until it can show.
    smoothed: Option<i64>,
}

/// The inference phase.
#[derive(Clone, Copy, Debug)]
struct Inference {
    /// From when on indications count again.
    watch: Instant,
    /// When it ends.
    end: Instant,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Controller {
    parameters: Lp,
    meter: Meter,
    delays: Option<Delays>,
    phase: Option<Inference>,
}

impl Controller {
    /// Takes a delay. Whether the smoothed one is above the threshold.
    fn is_congested(&mut self, ack: &AckContext) -> bool {
        let Some(sample) = self.meter.sample(ack) else { return false };
        if is_alone(ack) && !sample.restarted {
            return false;
        }
        let delay = sample.delay;
        let fresh = Delays { least: delay, largest: delay, smoothed: None };
        let old = self.delays.filter(|_| !sample.restarted).unwrap_or(fresh);
        let least = old.least.min(delay);
        let largest = old.largest.max(delay);
        if self.phase.is_some_and(|phase| ack.now < phase.watch) {
            self.delays = Some(Delays { least, largest, ..old });
            return false;
        }
        // γ = 1/8, rounded towards minus infinity.
        let smoothed = old.smoothed.map_or(i128::from(delay), |smoothed| {
            let smoothed = i128::from(smoothed);
            smoothed + (i128::from(delay) - smoothed).div_euclid(8)
        });
        let above = self.parameters.threshold.of(largest.abs_diff(least));
        let above = i128::from(above).max(2 * i128::from(self.meter.resolution()));
        self.delays = Some(Delays { least, largest, smoothed: i64::try_from(smoothed).ok() });
        smoothed > i128::from(least) + above
    }
}

impl CongestionControl for Controller {
    fn name(&self) -> &'static str {
        "lp"
    }

    fn counts_acknowledged_bytes(&self) -> bool {
        true
    }

    fn on_sample(&mut self, window: &mut Window, ack: &AckContext) {
        let now = ack.now;
        self.phase = self.phase.filter(|phase| now < phase.end);
        if !self.is_congested(ack) || ack.recovering {
            return;
        }
        if let Some(delays) = &mut self.delays {
            delays.smoothed = None;
        }
        let left = if self.phase.is_some() { window.segment() } else { window.cwnd / 2 };
        window.cwnd_cnt = 0;
        window.resize(left);
        window.ssthresh = window.ssthresh.min(window.cwnd).max(window.floor());
        let rtt = ack.srtt().or(ack.rtt).unwrap_or(Duration::from_millis(100));
        self.phase = Some(Inference { watch: now + rtt, end: now + rtt.times(3) });
    }

    fn has_own_slow_start(&self) -> bool {
        // It must not grow while it watches either.
        true
    }

    fn on_ack(&mut self, window: &mut Window, acked: u64, _ack: &AckContext) {
        if self.phase.is_some() {
            return;
        }
        let left = if window.in_slow_start() { window.slow_start(acked) } else { acked };
        if left > 0 {
            window.additive_increase(left, window.cwnd);
        }
    }
}
