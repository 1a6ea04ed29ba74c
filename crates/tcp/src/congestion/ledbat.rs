//! LEDBAT (RFC 6817): a background flow that keeps the queue at a target delay, and yields to flows that build a longer one.
//!
//! For each acknowledgement the window moves by GAIN·off_target·bytes_newly_acked·MSS/cwnd, with off_target = (TARGET − queueing delay)/TARGET: at
//! most as fast as Reno up, and proportionally down (section 2.4.2). A loss halves.
//!
//! Differences from the RFC, and choices that it leaves open:
//! - Delays are one-way, from timestamps with a resolution of a millisecond, and round trips where those cannot be used.
//! - CURRENT_FILTER is the least of four samples not older than a smoothed round trip; BASE_HISTORY is ten minutes.
//! - ALLOWED_INCREASE (one segment above the flight) bounds growth, but never takes away what the window already was: several acknowledgements may
//!   arrive before the answer to the first is sent.
//! - The retransmission timer serves as CTO. After it the window is one segment, and with the next acknowledgement MIN_CWND, two.
//! - Slow start, which the RFC does not use, can be switched on; it ends at half the target.

use super::arithmetic::Carry;
use super::built_in::{BuiltIn, Value, is_gain, require};
use super::controller::Kind;
use super::delay::{DelaySource, Queue};
use super::{CongestionControl, Takeover, Window};
use crate::ack_context::AckContext;
use crate::arguments::{ArgumentError, Arguments, Fraction};
use crate::quantity::DurationText;
use crate::time::{Duration, Instant};
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

#[cfg(test)]
mod tests;

/// LEDBAT's parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ledbat {
    /// TARGET: the queueing delay to keep; at most 100 ms (section 2.4.2).
    pub(crate) target: Duration,
    /// GAIN: how fast; at most 1.
    pub(crate) gain: Fraction,
    /// The delay that is measured.
    pub(crate) delay: DelaySource,
    /// Whether it begins with slow start.
    pub(crate) slow_start: bool,
}

impl Default for Ledbat {
    fn default() -> Self {
        Ledbat {
            target: Duration::from_millis(100),
            gain: Fraction::ONE,
            delay: DelaySource::OneWay,
            slow_start: false,
        }
    }
}

impl BuiltIn for Ledbat {
    const NAME: &'static str = "ledbat";
    const SOURCE: &'static str = "RFC 6817";
    const SUMMARY: &'static str =
        "keeps the queue at a target delay and yields to others; for background transfers";

    fn parameters(&mut self) -> Vec<(&'static str, &mut dyn Value)> {
        vec![
            ("target", &mut self.target),
            ("gain", &mut self.gain),
            ("delay", &mut self.delay),
            ("slow-start", &mut self.slow_start),
        ]
    }

    fn check(&self, given: &Arguments<'_>) -> Result<(), ArgumentError> {
        let Ledbat { target, gain, .. } = *self;
        let fits = !target.is_zero() && target <= Ledbat::default().target;
        require(given, fits, "target is above 0 and at most 100ms", DurationText(target))?;
        require(given, is_gain(gain), "gain is above 0 and at most 1", gain)
    }

    fn kind(&self) -> Kind {
        Kind::Ledbat(Box::new(Controller {
            parameters: *self,
            queue: Queue::new(self.delay),
            up: Carry::default(),
            down: Carry::default(),
        }))
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Controller {
    parameters: Ledbat,
    queue: Queue,
    up: Carry,
    down: Carry,
}

impl CongestionControl for Controller {
    fn name(&self) -> &'static str {
        "ledbat"
    }

    fn on_start(&mut self, window: &mut Window, _now: Instant) {
        // INIT_CWND and MIN_CWND are two segments.
        window.resize(window.floor());
        if !self.parameters.slow_start {
            window.ssthresh = window.floor();
        }
    }

    fn on_takeover(&mut self, _window: &mut Window, _takeover: &Takeover) {
        // The flight was not guessed at the start of a connection: the delay says whether it is too much.
    }

    fn has_own_slow_start(&self) -> bool {
        !self.parameters.slow_start
    }

    fn on_sample(&mut self, window: &mut Window, ack: &AckContext) {
        let Some(queued) = self.queue.measure(ack) else { return };
        let Ledbat { target, gain, slow_start, .. } = self.parameters;
        let segment = window.segment();
        if slow_start && window.in_slow_start() {
            if queued >= target.over(2) {
                window.ssthresh = window.cwnd.max(window.floor());
            }
            return;
        }
        if ack.recovering || ack.acked == 0 {
            return;
        }
        // GAIN·|TARGET − queueing delay|·acked·MSS, over TARGET·cwnd.
        let off = u128::from(target.abs_diff(queued).as_nanos().min(1_000_000_000_000));
        let acked = u128::from(ack.acked.min(Window::WIDEST));
        let above = u128::from(gain.millionths()) * off * acked * u128::from(segment);
        let below = 1_000_000 * u128::from(target.as_nanos()) * u128::from(window.cwnd);
        if queued <= target {
            let grown = window.cwnd.saturating_add(self.up.divide(above, below));
            let allowed = ack.prior_in_flight.saturating_add(segment).max(window.cwnd);
            window.resize(grown.min(allowed));
        } else {
            window.resize(window.cwnd.saturating_sub(self.down.divide(above, below)));
        }
        window.resize(window.cwnd.max(window.floor()));
        if !slow_start {
            window.ssthresh = window.floor();
        } else {
            window.ssthresh = window.ssthresh.min(window.cwnd).max(window.floor());
        }
    }

    fn on_ack(&mut self, _window: &mut Window, _acked: u64, _ack: &AckContext) {
        // All is done in on_sample: the window also shrinks when it is not the limit.
    }
}
