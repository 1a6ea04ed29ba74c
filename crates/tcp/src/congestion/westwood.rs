//! Westwood+ (Mascolo, Casetti, Gerla, Sanadidi, Wang: "TCP Westwood", MobiCom 2001; Grieco, Mascolo: "Performance evaluation and comparison of Westwood+,
//! New Reno, and Vegas TCP congestion control", CCR 2004).
//!
//! Reno's growth; but after a loss the window becomes the estimated bandwidth times the least round-trip time. So a random loss costs little on a
//! path that is not full.
//!
//! The estimate is Westwood+'s: the bytes delivered in a round trip over its length are one sample, filtered with b̂ = α·b̂ + (1 − α)·b and α = 0.9.
//!
//! Differences from the papers, and choices that they leave open:
//! - A sample spans at least 50 ms, as in Linux, so that compressed acknowledgements of a short round trip do not count as bandwidth.
//! - The first sample is the estimate, instead of a tenth of it.
//! - Bytes acknowledged selectively count when they are, not when the cumulative acknowledgement passes them.
//! - Before the first sample a loss halves.
//! - cwnd never rises by a reduction.

use super::arithmetic::{bytes_in, rate_of};
use super::built_in::{BuiltIn, Value, require};
use super::controller::Kind;
use super::{CongestionControl, CongestionEvent, Window, half, react};
use crate::ack_context::AckContext;
use crate::arguments::{ArgumentError, Arguments, Fraction};
use crate::time::{Duration, Instant};
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

#[cfg(test)]
mod tests;

/// Westwood+'s parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Westwood {
    /// α: the weight of the past in the bandwidth filter.
    pub(crate) filter: Fraction,
}

impl Default for Westwood {
    fn default() -> Self {
        Westwood { filter: Fraction::from_millionths(900_000) }
    }
}

/// The least time a bandwidth sample spans.
const SHORTEST: Duration = Duration::from_millis(50);

impl BuiltIn for Westwood {
    const NAME: &'static str = "westwood";
    const SOURCE: &'static str = "Grieco, Mascolo: Westwood+, CCR 34(2), 2004";
    const SUMMARY: &'static str =
        "Reno's growth; a loss sets the window to bandwidth times the least round-trip time";

    fn parameters(&mut self) -> Vec<(&'static str, &mut dyn Value)> {
        vec![("filter", &mut self.filter)]
    }

    fn check(&self, given: &Arguments<'_>) -> Result<(), ArgumentError> {
        require(given, self.filter < Fraction::ONE, "filter is below 1", self.filter)
    }

    fn kind(&self) -> Kind {
        Kind::Westwood(Box::new(Controller {
            filter: self.filter,
            estimate: None,
            min_rtt: None,
            sample: None,
        }))
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Controller {
    filter: Fraction,
    /// The bandwidth in bytes per second.
    estimate: Option<u64>,
    min_rtt: Option<Duration>,
    /// The beginning of the sample, and the bytes delivered by then.
    sample: Option<(Instant, u64)>,
}

impl Controller {
    /// The bandwidth times the least round-trip time, in bytes.
    fn pipe(&self) -> Option<u64> {
        Some(bytes_in(self.min_rtt?, self.estimate?))
    }
}

impl CongestionControl for Controller {
    fn name(&self) -> &'static str {
        "westwood"
    }

    fn counts_acknowledged_bytes(&self) -> bool {
        true
    }

    fn on_sample(&mut self, _window: &mut Window, ack: &AckContext) {
        self.min_rtt = ack.min_rtt;
        let Some((since, before)) = self.sample else {
            self.sample = Some((ack.now, ack.delivered));
            return;
        };
        let span = ack.now.since(since);
        if span < SHORTEST.max(ack.srtt().unwrap_or(SHORTEST)) {
            return;
        }
        let Some(rate) = rate_of(ack.delivered.saturating_sub(before), span) else { return };
        self.sample = Some((ack.now, ack.delivered));
        self.estimate = Some(match self.estimate {
            None => rate,
            Some(past) => self.filter.of(past).saturating_add(self.filter.complement().of(rate)),
        });
    }

    fn on_ack(&mut self, window: &mut Window, acked: u64, _ack: &AckContext) {
        window.additive_increase(acked, window.cwnd);
    }

    fn ssthresh(&mut self, window: &Window, flight: u64, _now: Instant) -> u64 {
        self.pipe().map_or_else(|| half(window, flight), |pipe| pipe.max(window.floor()))
    }

    fn on_event(&mut self, window: &mut Window, event: CongestionEvent, now: Instant) {
        let before = window.cwnd;
        react(self, window, event, now);
        window.resize(window.cwnd.min(before));
        if let CongestionEvent::Unvalidated { idle: true, .. } = event {
            // Nothing was sent: the time says nothing about the path.
            self.sample = None;
        }
    }
}
