//! Vegas (Brakmo, Peterson: "TCP Vegas: End to End Congestion Avoidance on a Global Internet", JSAC 1995).
//!
//! Once each round trip the rate that was expected, cwnd/BaseRTT, is compared with the actual one, cwnd/RTT. The difference times BaseRTT is what
//! the flow keeps in queues: cwnd·(RTT − BaseRTT)/RTT. With less than α segments there the window grows by one, with more
//! than β it shrinks by one, in between it stays.
//!
//! Slow start is Vegas's own: the window doubles every other round trip, and stays in between so that the rates can be compared. It ends with more
//! than γ segments in queues.
//!
//! Differences from the paper, and choices that it leaves open:
//! - RTT is the least of the round's samples, as in Linux: so neither delayed acknowledgements nor their compression count as queues. A round without a
//!   sample changes nothing.
//! - BaseRTT is the least round-trip time of the connection.
//! - Vegas's retransmission mechanism belongs to loss recovery, and is not here. A loss halves the window, as RFC 5681 has it.
//! - `noise` is subtracted from each delay, and is none by default. On paths of microseconds a scheduler delays packets by more than any queue.
//! - The window grows only when it was what held the sender back, and never shrinks below two segments.

use super::arithmetic::mul_div;
use super::built_in::{BuiltIn, Value, require};
use super::controller::Kind;
use super::{CongestionControl, CongestionEvent, Window, react, restore};
use crate::ack_context::AckContext;
use crate::arguments::{ArgumentError, Arguments, Fraction};
use crate::time::{Duration, Instant};
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

#[cfg(test)]
mod tests;

/// Vegas's parameters: segments in queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vegas {
    /// With fewer the window grows.
    pub alpha: Fraction,
    /// With more the window shrinks.
    pub beta: Fraction,
    /// With more, slow start ends.
    pub gamma: Fraction,
    /// A delay up to this shows no queue. Whole microseconds, a second at most.
    pub noise: Duration,
}

impl Default for Vegas {
    fn default() -> Self {
        let segments = |n: u64| Fraction::from_millionths(n * 1_000_000);
        Vegas { alpha: segments(2), beta: segments(4), gamma: segments(1), noise: Duration::ZERO }
    }
}

impl Vegas {
    /// Takes the parameters.
    ///
    /// # Errors
    /// [`ArgumentError`] for what is no number, for an alpha above beta, and for a noise of more than a second or of parts of a microsecond.
    pub fn read(given: &mut Arguments<'_>) -> Result<Self, ArgumentError> {
        BuiltIn::read(given)
    }
}

impl BuiltIn for Vegas {
    const NAME: &'static str = "vegas";
    const SOURCE: &'static str = "Brakmo, Peterson: TCP Vegas, JSAC 13(8), 1995";
    const SUMMARY: &'static str = "keeps between alpha and beta segments in queues";

    fn parameters(&mut self) -> Vec<(&'static str, &mut dyn Value)> {
        vec![
            ("alpha", &mut self.alpha),
            ("beta", &mut self.beta),
            ("gamma", &mut self.gamma),
            ("noise", &mut self.noise),
        ]
    }

    fn check(&self, given: &Arguments<'_>) -> Result<(), ArgumentError> {
        let Vegas { alpha, beta, noise, .. } = *self;
        let value = format_args!("{alpha} with beta = {beta}");
        require(given, alpha <= beta, "alpha is at most beta", value)?;
        let fits = noise <= Duration::from_secs(1) && noise.as_nanos().is_multiple_of(1000);
        let rule = "noise is whole microseconds, a second at most";
        require(given, fits, rule, format_args!("{noise:?}"))
    }

    fn kind(&self) -> Kind {
        Kind::Vegas(Box::new(Controller::new(*self)))
    }
}

/// The result of a round of Vegas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Fewer than α segments in queues.
    Grow,
    /// More than β.
    Shrink,
    /// As it should be, or not known.
    Stay,
}

/// Vegas for one connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Controller {
    parameters: Vegas,
    /// The least sample of this round.
    rtt: Option<Duration>,
    /// Slow start has ended.
    linear: bool,
    /// Whether slow start doubles in this round.
    doubling: bool,
}

impl Controller {
    pub(super) fn new(parameters: Vegas) -> Self {
        Controller { parameters, rtt: None, linear: false, doubling: true }
    }

    /// Takes a sample. At the end of a round in linear mode, what it found.
    pub(super) fn measure(&mut self, window: &mut Window, ack: &AckContext) -> Verdict {
        self.rtt = match (self.rtt, ack.rtt) {
            (Some(least), Some(sample)) => Some(least.min(sample)),
            (least, sample) => least.or(sample),
        };
        if !ack.round_start {
            return Verdict::Stay;
        }
        let (Some(rtt), Some(base)) = (self.rtt.take(), ack.min_rtt) else { return Verdict::Stay };
        if ack.recovering {
            return Verdict::Stay;
        }
        let Vegas { alpha, beta, gamma, noise } = self.parameters;
        let late = rtt - base - noise;
        let queued = mul_div(window.cwnd, late.as_nanos(), rtt.as_nanos());
        let segment = window.segment();
        if !self.linear {
            if !self.doubling && queued > gamma.of(segment) {
                window.ssthresh = window.ssthresh.min(window.cwnd).max(window.floor());
                self.linear = true;
            }
            self.doubling = !self.doubling;
            return Verdict::Stay;
        }
        if queued < alpha.of(segment) && ack.cwnd_limited {
            Verdict::Grow
        } else if queued > beta.of(segment) {
            Verdict::Shrink
        } else {
            Verdict::Stay
        }
    }

    /// Slow start: doubles, every other round.
    pub(super) fn slow_start(&mut self, window: &mut Window, acked: u64) {
        if self.linear || !self.doubling {
            return;
        }
        window.slow_start(acked);
        self.linear = !window.in_slow_start();
    }

    /// Ends slow start for a reason of Vegas.
    pub(super) fn end_slow_start(&mut self) {
        self.linear = true;
    }

    /// A reduction was undone: slow start continues if it had not ended.
    pub(super) fn resume(&mut self, window: &Window) {
        self.linear = !window.in_slow_start();
    }

    /// Follows an event: after losses the window grows linearly, after timeouts by slow start.
    pub(super) fn after(&mut self, window: &Window, event: CongestionEvent) {
        self.rtt = None;
        self.doubling = true;
        self.linear = match event {
            CongestionEvent::Loss { .. } | CongestionEvent::Ecn { .. } => true,
            CongestionEvent::Timeout { .. } | CongestionEvent::HandshakeLoss => false,
            CongestionEvent::RecoveryEnd { .. } | CongestionEvent::Unvalidated { .. } => {
                !window.in_slow_start()
            }
        };
    }
}

impl CongestionControl for Controller {
    fn name(&self) -> &'static str {
        "vegas"
    }

    fn on_sample(&mut self, window: &mut Window, ack: &AckContext) {
        let segment = window.segment();
        match self.measure(window, ack) {
            Verdict::Grow => window.resize(window.cwnd.saturating_add(segment)),
            Verdict::Shrink => {
                window.resize(window.cwnd.saturating_sub(segment).max(window.floor()));
                window.ssthresh = window.ssthresh.min(window.cwnd).max(window.floor());
            }
            Verdict::Stay => {}
        }
    }

    fn has_own_slow_start(&self) -> bool {
        true
    }

    fn on_ack(&mut self, window: &mut Window, acked: u64, _ack: &AckContext) {
        self.slow_start(window, acked);
    }

    fn on_event(&mut self, window: &mut Window, event: CongestionEvent, now: Instant) {
        react(self, window, event, now);
        self.after(window, event);
    }

    fn on_undo(&mut self, window: &mut Window, prior: Window, _now: Instant) {
        restore(window, prior);
        self.resume(window);
    }
}
