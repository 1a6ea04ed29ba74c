//! FAST (Wei, Jin, Low, Hegde: "FAST TCP: Motivation, Architecture, Algorithms, Performance", ToN 2006).
//!
//! Once each round trip the window moves towards the one with α segments in queues: w = min(2w, (1 − γ)·w + γ·(baseRTT/RTT·w + α)). Unlike Vegas,
//! which moves by one segment, it takes steps as large as the distance.
//!
//! RTT is the paper's average, with weight min(3/w, 1/4) for a sample (section IV-B).
//!
//! Differences from the paper, and choices that it leaves open:
//! - Slow start doubles the window each round trip, and ends when half of α is queued by the round's least sample.
//! - Losses are Reno's matter, as in the paper's implementation.
//! - The window grows only when it held the sender back, and stays at two segments at least.

use super::arithmetic::mul_div;
use super::built_in::{BuiltIn, Value, is_gain, require};
use super::controller::Kind;
use super::{CongestionControl, Window};
use crate::ack_context::AckContext;
use crate::arguments::{ArgumentError, Arguments, Fraction};
use crate::time::Duration;
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

#[cfg(test)]
mod tests;

/// FAST's parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fast {
    /// α: segments to keep in queues. The paper uses 200 for gigabits.
    pub(crate) alpha: u64,
    /// γ: the share of the distance that a round trip covers.
    pub(crate) gamma: Fraction,
}

impl Default for Fast {
    fn default() -> Self {
        Fast { alpha: 20, gamma: Fraction::from_millionths(500_000) }
    }
}

impl BuiltIn for Fast {
    const NAME: &'static str = "fast";
    const SOURCE: &'static str = "Wei, Jin, Low, Hegde: FAST TCP, ToN 14(6), 2006";
    const SUMMARY: &'static str = "moves to the window that keeps alpha segments in queues";

    fn parameters(&mut self) -> Vec<(&'static str, &mut dyn Value)> {
        vec![("alpha", &mut self.alpha), ("gamma", &mut self.gamma)]
    }

    fn check(&self, given: &Arguments<'_>) -> Result<(), ArgumentError> {
        let Fast { alpha, gamma } = *self;
        let fits = (1..=1_000_000).contains(&alpha);
        require(given, fits, "alpha is between 1 and 1000000", alpha)?;
        require(given, is_gain(gamma), "gamma is above 0 and at most 1", gamma)
    }

    fn kind(&self) -> Kind {
        Kind::Fast(Box::new(Controller { parameters: *self, average: None, least: None }))
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Controller {
    parameters: Fast,
    /// The averaged round-trip time.
    average: Option<Duration>,
    /// The least sample of this round.
    least: Option<Duration>,
}

impl Controller {
    fn average(&mut self, rtt: Duration, window: &Window) {
        self.least = Some(self.least.map_or(rtt, |least| least.min(rtt)));
        self.average = Some(match self.average {
            None => rtt,
            Some(old) => {
                // min(3/w, 1/4), with w in segments: over max(w/3, 4).
                let step = mul_div(
                    old.abs_diff(rtt).as_nanos(),
                    3 * window.segment(),
                    window.cwnd.max(12 * window.segment()),
                );
                let step = Duration::from_nanos(step);
                if rtt > old { old + step } else { old - step }
            }
        });
    }

    /// The window of the next round trip.
    fn next(&self, window: &Window, base: Duration, rtt: Duration) -> u64 {
        let Fast { alpha, gamma } = self.parameters;
        let propagated = mul_div(window.cwnd, base.as_nanos(), rtt.as_nanos());
        let target = propagated.saturating_add(alpha.saturating_mul(window.segment()));
        let next = gamma.complement().of(window.cwnd).saturating_add(gamma.of(target));
        next.min(window.cwnd.saturating_mul(2))
    }
}

impl CongestionControl for Controller {
    fn name(&self) -> &'static str {
        "fast"
    }

    fn on_sample(&mut self, window: &mut Window, ack: &AckContext) {
        if let Some(rtt) = ack.rtt {
            self.average(rtt, window);
        }
        if !ack.round_start {
            return;
        }
        let least = self.least.take();
        let (Some(base), Some(rtt)) = (ack.min_rtt, self.average) else { return };
        if ack.recovering {
            return;
        }
        if window.in_slow_start() {
            let least = least.unwrap_or(rtt);
            let queued = mul_div(window.cwnd, (least - base).as_nanos(), least.as_nanos());
            if queued.saturating_mul(2) >= self.parameters.alpha.saturating_mul(window.segment()) {
                window.ssthresh = window.cwnd.max(window.floor());
            }
            return;
        }
        let next = self.next(window, base, rtt);
        if next > window.cwnd && !ack.cwnd_limited {
            return;
        }
        window.resize(next.max(window.floor()));
        window.ssthresh = window.ssthresh.min(window.cwnd).max(window.floor());
    }

    fn on_ack(&mut self, _window: &mut Window, _acked: u64, _ack: &AckContext) {
        // The window moves once a round trip, in on_sample.
    }
}
