//! Prague (draft-briscoe-iccrg-prague-congestion-control): DCTCP made fit for the public internet, by the requirements of RFC 9331 section 4.
//!
//! | requirement | here |
//! |---|---|
//! | 4.1 identifier | ECT(1) ([`CongestionControl::is_scalable`]), once accurate feedback is agreed on |
//! | 4.2 feedback | accurate ECN (RFC 9768). With RFC 3168's echo the controller halves its window once a round trip, its packets carry ECT(0), and its name is `CLASSIC_NAME` |
//! | 4.3 loss | halves the window, as Reno |
//! | 4.3 classic ECN bottleneck | a passive test (`classic`), which makes the reduction as strong as Reno's |
//! | 4.3 round-trip times | below `rtt`, the flow behaves as if its round trip were `rtt`: α and reductions once in that time, and growth to match |
//! | 4.3 small windows | two segments are the least, which pacing spreads |
//! | 4.3 reordering | the recovery unit's: RACK (RFC 8985) measures time, and the preset `l4s` has it |
//! | bursts | paced at a window in a round trip, in bursts of 250 µs |
//!
//! α estimates the share of marked bytes with gain `g`, and each reduction takes α/2 of the window. Growth is a segment a round trip, for unmarked
//! bytes alone, and goes on while the window is reduced: with a mark now and then, a flow is reduced most of the time.
//!
//! **The start.** The first mark ends slow start, and nothing more is known then: the queue may be full, or the mark one of a few that the other
//! queue's flows cause. So the window stands for a round trip, in which the share of marks is counted. That share becomes α, and the window is
//! reduced by it. After an overshoot all bytes are marked and the window is halved; after a single mark it hardly changes.
//!
//! Choices that the draft leaves open, or makes otherwise: `rtt` counts from the end of slow start and not after 500 round trips. The window grows also
//! when pacing and not the window held the sender back, if the window was nearly full. The test for a classic bottleneck is on. α is a fixed-point
//! number with 32 bits.

mod classic;
#[cfg(test)]
mod tests;

use super::arithmetic::mul_div;
use super::built_in::{BuiltIn, Value, is_gain, require};
use super::controller::Kind;
use super::{CongestionControl, CongestionEvent, Window, half, react};
use crate::ack_context::AckContext;
use crate::arguments::{ArgumentError, Arguments, Fraction};
use crate::rto::Estimate;
use crate::time::{Duration, Instant};
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use classic::{Round, Suspicion};
use transom_base::quantity::DurationText;

/// The controller's name on a connection without accurate feedback.
const CLASSIC_NAME: &str = "prague-classic";

/// Prague's parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Prague {
    /// g: the weight of a new round trip in α.
    pub(crate) g: Fraction,
    /// α for a mark before anything was measured: on a connection that has left slow start by a loss.
    pub(crate) alpha: Fraction,
    /// Flows with a shorter round-trip time behave as with this one.
    pub(crate) rtt: Duration,
    /// Whether a bottleneck with classic ECN is looked for.
    pub(crate) fallback: bool,
}

impl Default for Prague {
    fn default() -> Self {
        Prague {
            g: Fraction::from_millionths(62_500),
            alpha: Fraction::ONE,
            rtt: Duration::from_millis(25),
            fallback: true,
        }
    }
}

/// Longer round trips than this are never stretched.
const LONGEST_RTT: Duration = Duration::from_millis(100);

/// α's one.
const ONE: u64 = 1 << 32;

impl BuiltIn for Prague {
    const NAME: &'static str = "prague";
    const SOURCE: &'static str = "draft-briscoe-iccrg-prague-congestion-control, RFC 9331";
    const SUMMARY: &'static str =
        "DCTCP for the internet: a queue below a millisecond in an L4S network; needs accurate ECN";

    fn parameters(&mut self) -> Vec<(&'static str, &mut dyn Value)> {
        vec![
            ("g", &mut self.g),
            ("alpha", &mut self.alpha),
            ("rtt", &mut self.rtt),
            ("fallback", &mut self.fallback),
        ]
    }

    fn check(&self, given: &Arguments<'_>) -> Result<(), ArgumentError> {
        let Prague { g, alpha, rtt, .. } = *self;
        let fits = is_gain(g) && alpha <= Fraction::ONE;
        let rule = "g is above 0 and, as alpha, at most 1";
        require(given, fits, rule, format_args!("{g} and {alpha}"))?;
        let most = DurationText(LONGEST_RTT);
        let rule = format_args!("rtt is at most {most}");
        require(given, rtt <= LONGEST_RTT, rule, DurationText(rtt))
    }

    fn kind(&self) -> Kind {
        Kind::Prague(Box::new(Controller {
            choice: *self,
            alpha: self.alpha.of(ONE).min(ONE),
            phase: Phase::Unmarked,
            acked: 0,
            marked: 0,
            alpha_moved: Instant::ZERO,
            reduced: Instant::ZERO,
            is_reduction_due: false,
            estimate: None,
            is_classic_feedback: false,
            growth: 0,
            round: Round::default(),
            suspicion: Suspicion::default(),
        }))
    }
}

/// How much is known of the marks on the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// There was none.
    Unmarked,
    /// The first mark has ended slow start: since then the share is counted.
    Counting,
    /// α is an average.
    Averaging,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Controller {
    choice: Prague,
    /// Of [`ONE`].
    alpha: u64,
    phase: Phase,
    /// Bytes acknowledged, and of these marked, since α was moved.
    acked: u64,
    marked: u64,
    alpha_moved: Instant,
    /// When the window was last reduced for marks.
    reduced: Instant,
    /// Marks have come that may not reduce it yet.
    is_reduction_due: bool,
    /// The last estimate of the round-trip time.
    estimate: Option<Estimate>,
    /// Marks come as RFC 3168's echo.
    is_classic_feedback: bool,
    /// Bytes acknowledged towards the next increase, each times its weight: of 2^16.
    growth: u64,
    round: Round,
    suspicion: Suspicion,
}

impl Controller {
    fn srtt(&self) -> Option<Duration> {
        self.estimate.map(|estimate| estimate.srtt)
    }

    /// The round-trip time that the flow behaves as if it had.
    fn virtual_rtt(&self) -> Duration {
        self.srtt().unwrap_or_default().max(self.choice.rtt)
    }

    /// How much an acknowledged byte counts for, of 2^16: (RTT / virtual RTT)².
    fn weight(&self) -> u64 {
        const WHOLE: u64 = 1 << 16;
        let Some(srtt) = self.srtt().filter(|srtt| *srtt < self.choice.rtt) else { return WHOLE };
        let ratio = mul_div(WHOLE, srtt.as_nanos(), self.choice.rtt.as_nanos());
        (ratio * ratio / WHOLE).max(1)
    }

    /// The bytes that an acknowledgement reports as marked.
    fn count_marks(&mut self, ack: &AckContext) -> u64 {
        match ack.marked {
            Some(marked) => {
                self.is_classic_feedback = false;
                marked
            }
            None if ack.ecn_echo => {
                self.is_classic_feedback = true;
                ack.acked
            }
            None => 0,
        }
    }

    /// Moves α by the share of marks since it was last moved.
    fn move_alpha(&mut self, window: &mut Window, now: Instant) {
        let share = mul_div(ONE, self.marked, self.acked).min(ONE);
        match self.phase {
            Phase::Unmarked => {}
            Phase::Counting => {
                self.alpha = share;
                self.phase = Phase::Averaging;
                self.reduce(window, now);
            }
            Phase::Averaging => {
                let g = self.choice.g;
                self.alpha = (self.alpha - g.of(self.alpha) + g.of(share)).min(ONE);
            }
        }
        (self.acked, self.marked) = (0, 0);
        self.alpha_moved = now;
    }

    /// Takes α/2 of the window, or half where the bottleneck is taken for a classic one.
    fn reduce(&mut self, window: &mut Window, now: Instant) {
        let strength =
            if self.choice.fallback { self.suspicion.blend(self.alpha) } else { self.alpha };
        let less = mul_div(window.cwnd, strength, 2 * ONE);
        window.ssthresh = (window.cwnd - less.min(window.cwnd)).max(window.floor());
        window.resize(window.ssthresh);
        self.reduced = now;
        self.is_reduction_due = false;
    }

    /// Marks have come. Those within a real round trip after a reduction are of packets that left before it, and are ignored. Others reduce the window
    /// as soon as that is allowed.
    fn answer_marks(&mut self, window: &mut Window, now: Instant) {
        self.is_reduction_due |= now.since(self.reduced) >= self.srtt().unwrap_or_default();
        self.reduce_if_due(window, now);
    }

    /// Reduces the window if marks wait for it, and the last reduction is a virtual round trip ago.
    fn reduce_if_due(&mut self, window: &mut Window, now: Instant) {
        if self.is_reduction_due && now.since(self.reduced) >= self.virtual_rtt() {
            self.reduce(window, now);
        }
    }

    /// Adds a segment for each window of unmarked bytes.
    fn grow(&mut self, window: &mut Window, bytes: u64) {
        const WHOLE: u64 = 1 << 16;
        // A window is at most 2^40 bytes, and so is what an acknowledgement adds: 2^57 in all.
        let per_segment = window.cwnd.max(1).saturating_mul(WHOLE);
        // What was counted towards a segment of a wider window is worth less than one of this window.
        let counted = self.growth.min(per_segment - 1);
        self.growth = counted + bytes.min(window.cwnd).saturating_mul(self.weight());
        let segments = self.growth / per_segment;
        self.growth %= per_segment;
        window.resize(window.cwnd.saturating_add(segments * window.segment()));
    }
}

impl CongestionControl for Controller {
    fn name(&self) -> &'static str {
        if self.is_classic_feedback { CLASSIC_NAME } else { "prague" }
    }

    fn on_sample(&mut self, window: &mut Window, ack: &AckContext) {
        self.estimate = ack.estimate.or(self.estimate);
        let marked = self.count_marks(ack);
        self.acked = self.acked.saturating_add(ack.acked);
        self.marked = self.marked.saturating_add(marked);
        self.round.on_sample(ack);
        if ack.round_start && self.phase == Phase::Averaging {
            self.suspicion.on_round(&self.round, window);
        }
        let due = match self.phase {
            // What had left when the first mark came has been acknowledged.
            Phase::Counting => ack.now.since(self.reduced) >= self.srtt().unwrap_or_default(),
            Phase::Unmarked | Phase::Averaging => {
                ack.round_start && ack.now.since(self.alpha_moved) >= self.virtual_rtt()
            }
        };
        if due && self.acked > 0 {
            self.move_alpha(window, ack.now);
        }
        if self.phase == Phase::Averaging && !self.is_classic_feedback && !ack.recovering {
            match marked {
                0 => self.reduce_if_due(window, ack.now),
                _ => self.answer_marks(window, ack.now),
            }
        }
        let nearly_full = ack.prior_in_flight.saturating_mul(8) >= window.cwnd.saturating_mul(7);
        if !window.in_slow_start() && !ack.recovering && (ack.cwnd_limited || nearly_full) {
            self.grow(window, ack.acked.saturating_sub(ack.given_up).saturating_sub(marked));
        }
    }

    // What slow start leaves over, and congestion avoidance, are counted above: growth goes on while the window is reduced for a mark.
    fn on_ack(&mut self, _window: &mut Window, _acked: u64, _ack: &AckContext) {}

    fn ssthresh(&mut self, window: &Window, flight: u64, _now: Instant) -> u64 {
        half(window, flight)
    }

    fn on_event(&mut self, window: &mut Window, event: CongestionEvent, now: Instant) {
        let CongestionEvent::Ecn { .. } = event else {
            self.growth = 0;
            if let CongestionEvent::Loss { .. } | CongestionEvent::Timeout { .. } = event {
                self.reduced = now;
                self.is_reduction_due = false;
            }
            return react(self, window, event, now);
        };
        if self.is_classic_feedback {
            return react(self, window, event, now);
        }
        match self.phase {
            Phase::Unmarked if window.in_slow_start() => {
                window.ssthresh = window.cwnd.max(window.floor());
                self.phase = Phase::Counting;
                (self.acked, self.marked) = (0, 0);
                self.reduced = now;
            }
            Phase::Unmarked => {
                self.phase = Phase::Averaging;
                self.reduce(window, now);
            }
            // The share is not known yet.
            Phase::Counting => {}
            Phase::Averaging => self.answer_marks(window, now),
        }
    }

    fn pacing_rate(&self, window: &Window) -> Option<u64> {
        let srtt = self.srtt().filter(|srtt| !srtt.is_zero())?;
        // Twice as fast while the window doubles.
        let doubling = window.cwnd < window.ssthresh / 2;
        let bytes = if doubling { window.cwnd.saturating_mul(2) } else { window.cwnd };
        Some(mul_div(bytes, 1_000_000_000, srtt.as_nanos()).max(1))
    }

    fn needs_pacing(&self) -> bool {
        true
    }

    fn is_scalable(&self) -> bool {
        true
    }

    fn pacing_burst(&self) -> Duration {
        Duration::from_micros(250)
    }
}
