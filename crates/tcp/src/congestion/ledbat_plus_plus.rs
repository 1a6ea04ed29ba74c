//! LEDBAT++ (draft-irtf-iccrg-ledbat-plus-plus): LEDBAT without its faults.
//!
//! - Slow start begins with two segments, grows by GAIN times what is acknowledged, and the first ends at three quarters of the target (section
//!   4.1).
//! - Growth is slower than Reno's: GAIN = 1/min(16, ⌈2·TARGET/base⌉) a round trip (section 4.2).
//! - Decrease is multiplicative: W += max(GAIN − W·(delay/TARGET − 1), −W/2) each round trip (section 4.3).
//! - Two round trips after slow start, and then periodically, the window is two segments for two round trips, so that all flows see the empty
//!   path. Then slow start leads back to where it was. Nine times as long as that took, the next begins (section 4.4).
//! - Round trips instead of one-way delays, and a target of 60 ms (section 4.5).
//!
//! Differences from the draft, and choices that it leaves open:
//! - The delay is LEDBAT's: the least of four samples not older than a smoothed round trip, over the least of ten minutes.
//! - The sum for a round trip is spread over its acknowledgements, by the share of the window that each covers.
//! - Just above the target the sum of section 4.3 can be positive; here the window stays then.
//! - The draft can be read so that the ramp back after a slowdown is not slowed by GAIN. Here it is, as slow start is (section 4.1).
//! - Sections are those of version 06 by its contents, and were compared with quotations of 01.
//! - A loss halves the window; during a slowdown it halves the window to return to, and the slowdown continues.

use super::arithmetic::Carry;
use super::built_in::{BuiltIn, Value, require};
use super::controller::Kind;
use super::delay::{DelaySource, Queue};
use super::{CongestionControl, CongestionEvent, Takeover, Window, react};
use crate::ack_context::AckContext;
use crate::arguments::{ArgumentError, Arguments};
use crate::quantity::DurationText;
use crate::time::{Duration, Instant};
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

#[cfg(test)]
mod tests;

/// LEDBAT++'s parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LedbatPlusPlus {
    /// TARGET: the queueing delay to keep.
    target: Duration,
}

impl Default for LedbatPlusPlus {
    fn default() -> Self {
        LedbatPlusPlus { target: Duration::from_millis(60) }
    }
}

impl BuiltIn for LedbatPlusPlus {
    const NAME: &'static str = "ledbat++";
    const SOURCE: &'static str = "draft-irtf-iccrg-ledbat-plus-plus-06";
    const SUMMARY: &'static str =
        "LEDBAT with slower growth, multiplicative decrease and periodic slowdowns";

    fn parameters(&mut self) -> Vec<(&'static str, &mut dyn Value)> {
        vec![("target", &mut self.target)]
    }

    fn check(&self, given: &Arguments<'_>) -> Result<(), ArgumentError> {
        let fits = !self.target.is_zero() && self.target <= Duration::from_secs(1);
        require(given, fits, "target is above 0 and at most 1s", DurationText(self.target))
    }

    fn kind(&self) -> Kind {
        Kind::LedbatPlusPlus(Box::new(Controller {
            target: self.target,
            queue: Queue::new(DelaySource::RoundTrip),
            phase: Phase::FirstSlowStart,
            slowdown_at: None,
            divisor: 16,
            excess: Duration::ZERO,
            carry: Carry::default(),
        }))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The first slow start, which ends by delay.
    FirstSlowStart,
    /// Congestion avoidance.
    Avoidance,
    /// Two segments until the moment; the slowdown began at the other.
    Frozen { until: Instant, began: Instant },
    /// Back to ssthresh. `began`: of the slowdown; `None` after a timeout.
    Return { began: Option<Instant> },
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Controller {
    target: Duration,
    queue: Queue,
    phase: Phase,
    /// When the next slowdown begins.
    slowdown_at: Option<Instant>,
    /// 1/GAIN.
    divisor: u64,
    /// The queueing delay above the target.
    excess: Duration,
    carry: Carry,
}

/// The window during a slowdown, in segments, and the round trips it lasts.
const FROZEN: u64 = 2;

impl Controller {
    fn begin_avoidance(&mut self, window: &mut Window) {
        window.ssthresh = window.ssthresh.min(window.cwnd).max(window.floor());
        self.phase = Phase::Avoidance;
    }

    /// The events of time: a slowdown begins, freezes or ends.
    fn advance(&mut self, window: &mut Window, ack: &AckContext) {
        let rtt = ack.srtt().or(ack.rtt).unwrap_or(self.target);
        match self.phase {
            Phase::Avoidance if self.slowdown_at.is_some_and(|at| ack.now >= at) => {
                window.ssthresh = window.cwnd.max(window.floor());
                window.resize(FROZEN * window.segment());
                let until = ack.now + rtt.times(FROZEN);
                self.phase = Phase::Frozen { until, began: ack.now };
                self.slowdown_at = None;
            }
            Phase::Frozen { until, began } if ack.now >= until => {
                self.phase = Phase::Return { began: Some(began) };
            }
            Phase::Return { began } if !window.in_slow_start() => {
                let rest = began.map_or(rtt.times(FROZEN), |began| ack.now.since(began).times(9));
                self.slowdown_at.get_or_insert(ack.now + rest);
                self.begin_avoidance(window);
            }
            _ => {}
        }
    }
}

impl CongestionControl for Controller {
    fn name(&self) -> &'static str {
        "ledbat++"
    }

    fn on_start(&mut self, window: &mut Window, _now: Instant) {
        window.resize(FROZEN * window.segment());
    }

    fn on_takeover(&mut self, _window: &mut Window, _takeover: &Takeover) {
        // The flight was not guessed at the start of a connection: the delay says whether it is too much.
    }

    fn has_own_slow_start(&self) -> bool {
        true
    }

    fn on_sample(&mut self, window: &mut Window, ack: &AckContext) {
        if let Some(queued) = self.queue.measure(ack) {
            self.excess = queued - self.target;
            if let Some(base) = self.queue.base() {
                let ratio = self.target.times(2).as_nanos().div_ceil(base.as_nanos().max(1));
                self.divisor = ratio.clamp(1, 16);
            }
            let exit = Duration::from_nanos(self.target.as_nanos() / 4 * 3);
            if self.phase == Phase::FirstSlowStart && (queued > exit || !window.in_slow_start()) {
                let rtt = ack.srtt().or(ack.rtt).unwrap_or(self.target);
                self.slowdown_at = Some(ack.now + rtt.times(FROZEN));
                self.begin_avoidance(window);
            }
        }
        self.advance(window, ack);
        if self.phase == Phase::Avoidance && !self.excess.is_zero() && !ack.recovering {
            // W·(delay/TARGET − 1) − GAIN, at most W/2, for a round trip; and of that the share acknowledged.
            let excess = u128::from(self.excess.as_nanos().min(1_000_000_000_000));
            let target = u128::from(self.target.as_nanos());
            let wide = u128::from(window.cwnd);
            let gain = u128::from(window.segment() / self.divisor);
            let less = (wide * excess / target).saturating_sub(gain).min(wide / 2);
            let acked = u128::from(ack.acked.min(window.cwnd));
            let shrunk = self.carry.divide(less * acked, wide);
            window.resize(window.cwnd.saturating_sub(shrunk).max(window.floor()));
            window.ssthresh = window.ssthresh.min(window.cwnd).max(window.floor());
        }
    }

    fn on_ack(&mut self, window: &mut Window, acked: u64, _ack: &AckContext) {
        let acked = u128::from(acked.min(Window::WIDEST));
        match self.phase {
            Phase::FirstSlowStart | Phase::Return { .. } => {
                let counted = self.carry.divide(acked, u128::from(self.divisor));
                window.slow_start(counted);
            }
            Phase::Avoidance if self.excess.is_zero() => {
                let bytes = acked * u128::from(window.segment());
                let below = u128::from(window.cwnd) * u128::from(self.divisor);
                let grown = self.carry.divide(bytes, below);
                window.resize(window.cwnd.saturating_add(grown));
            }
            Phase::Avoidance | Phase::Frozen { .. } => {}
        }
    }

    fn on_event(&mut self, window: &mut Window, event: CongestionEvent, now: Instant) {
        let frozen = matches!(self.phase, Phase::Frozen { .. });
        if let (true, CongestionEvent::Loss { .. } | CongestionEvent::Ecn { .. }) = (frozen, event)
        {
            window.ssthresh = (window.ssthresh / 2).max(window.floor());
            return;
        }
        react(self, window, event, now);
        match (event, self.phase) {
            (CongestionEvent::Timeout { .. }, _) => self.phase = Phase::Return { began: None },
            (
                CongestionEvent::Unvalidated { .. } | CongestionEvent::RecoveryEnd { .. },
                Phase::Avoidance,
            ) if window.in_slow_start() => {
                self.phase = Phase::Return { began: None };
            }
            // A loss in the first slow start ends it: the next sample sees that, and schedules the slowdown.
            _ => {}
        }
    }
}
