//! TCP Nice (Venkataramani, Kokku, Dahlin: "TCP Nice: A Mechanism for Background Transfers", OSDI 2002).
//!
//! Vegas, made sensitive to queues that others build. If more than the share f of a round trip's packets were delayed by more than minRTT + t·(maxRTT
//! − minRTT), the window is halved. It may fall below one packet, down to one in 48 round trips.
//!
//! Differences from the paper, and choices that it leaves open:
//! - f = 0.5 and t = 0.1 by default, as Arpaci-Dusseau et al. ("Deploying Safe User-Level Network Services with icTCP") use them.
//! - A window of 1/n packets is one segment, and a pacing rate of one segment in n smoothed round trips: on a connection that does not pace, the
//!   window stays at one.
//! - A segment that travels alone shows no queue, as its receiver may have delayed the acknowledgement. So after n round trips with one segment
//!   comes one with two: if they were delayed, n doubles; if not, n halves, and at n = 1 the window grows again.
//! - minRTT and maxRTT are the least and the largest sample of data, except segments that travel alone. The handshake's packets are small, and on a
//!   slow link faster than any data. maxRTT is twice minRTT at least, as if the queue held a bandwidth-delay product. Without this, a tenth of the
//!   observed queue can be less than the transmission time of a segment, and a flow would mistake its own segments for a queue and stall on an idle
//!   link.
//! - Where Vegas leaves a choice, the choice is that of [`super::vegas`].

use super::arithmetic::mul_div;
use super::built_in::{BuiltIn, Value, require};
use super::controller::Kind;
use super::delay::is_alone;
use super::vegas::{Controller as VegasController, Vegas, Verdict};
use super::{CongestionControl, CongestionEvent, Window, react, restore};
use crate::ack_context::AckContext;
use crate::arguments::{ArgumentError, Arguments, Fraction};
use crate::rto::Estimate;
use crate::time::{Duration, Instant};
use alloc::boxed::Box;
use alloc::vec::Vec;

#[cfg(test)]
mod tests;

/// Nice's parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nice {
    /// Vegas's.
    pub vegas: Vegas,
    /// f: with more than this share of a round's packets delayed, the window is halved.
    pub fraction: Fraction,
    /// t: how far between minRTT and maxRTT a delay begins.
    pub threshold: Fraction,
}

impl Default for Nice {
    fn default() -> Self {
        let (fraction, threshold) =
            (Fraction::from_millionths(500_000), Fraction::from_millionths(100_000));
        Nice { vegas: Vegas::default(), fraction, threshold }
    }
}

/// A rate, in bytes per second, at which two segments are as good as one.
const PAIR_RATE: u64 = 1 << 40;

/// The most round trips for one segment.
const LONGEST_WAIT: u64 = 48;

impl Nice {
    /// Takes the parameters.
    ///
    /// # Errors
    /// [`ArgumentError`] for what is no number, for Vegas's, and for a fraction or threshold of one or more.
    pub fn read(given: &mut Arguments<'_>) -> Result<Self, ArgumentError> {
        BuiltIn::read(given)
    }
}

impl BuiltIn for Nice {
    const NAME: &'static str = "nice";
    const SOURCE: &'static str = "Venkataramani, Kokku, Dahlin: TCP Nice, OSDI 2002";
    const SUMMARY: &'static str = "Vegas that halves its window when half of a round's packets meet a queue; for background transfers";

    fn parameters(&mut self) -> Vec<(&'static str, &mut dyn Value)> {
        let mut all = self.vegas.parameters();
        all.push(("fraction", &mut self.fraction));
        all.push(("threshold", &mut self.threshold));
        all
    }

    fn check(&self, given: &Arguments<'_>) -> Result<(), ArgumentError> {
        let Nice { vegas, fraction, threshold } = *self;
        vegas.check(given)?;
        let fits = fraction < Fraction::ONE && threshold < Fraction::ONE;
        let value = format_args!("{fraction} and {threshold}");
        require(given, fits, "fraction and threshold are below 1", value)
    }

    fn kind(&self) -> Kind {
        Kind::Nice(Box::new(Controller {
            parameters: *self,
            vegas: VegasController::new(self.vegas),
            min_rtt: None,
            max_rtt: Duration::ZERO,
            below: false,
            estimate: None,
            acked: 0,
            delayed: 0,
            wait: 1,
        }))
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Controller {
    parameters: Nice,
    vegas: VegasController,
    min_rtt: Option<Duration>,
    max_rtt: Duration,
    /// Whether the window has fallen to one segment and not yet come back.
    below: bool,
    estimate: Option<Estimate>,
    /// Bytes of this round whose round-trip time is known.
    acked: u64,
    /// Those among them that met a queue.
    delayed: u64,
    /// n: a window of one segment for this many round trips.
    wait: u64,
}

impl Controller {
    /// Counts the packets of the round that met a queue.
    fn count(&mut self, ack: &AckContext) {
        let Some(rtt) = ack.rtt else { return };
        let known = !is_alone(ack);
        if known {
            self.min_rtt = Some(self.min_rtt.map_or(rtt, |min| min.min(rtt)));
            self.max_rtt = self.max_rtt.max(rtt);
        }
        let min = self.min_rtt.unwrap_or(rtt);
        let span = (self.max_rtt.max(min.times(2)) - min).as_nanos();
        let Nice { vegas, threshold, .. } = self.parameters;
        let late = min + Duration::from_nanos(threshold.of(span)) + vegas.noise;
        let bytes = ack.acked.saturating_add(ack.sacked).max(1);
        self.acked = self.acked.saturating_add(bytes);
        if rtt > late && known {
            self.delayed = self.delayed.saturating_add(bytes);
        }
    }

    /// Ends the round. Returns whether too many packets met a queue.
    fn were_too_many(&mut self) -> bool {
        let congested = self.delayed > self.parameters.fraction.of(self.acked);
        (self.acked, self.delayed) = (0, 0);
        congested
    }

    fn halve(&mut self, window: &mut Window) {
        if self.below {
            self.wait = (self.wait * 2).min(LONGEST_WAIT);
            window.resize(window.segment());
        } else {
            window.resize(window.cwnd / 2);
            self.below = window.cwnd <= window.segment();
        }
    }

    fn grow(&mut self, window: &mut Window) {
        let segment = window.segment();
        if window.cwnd <= segment {
            // Two show what one does not.
            window.resize(2 * segment);
        } else if self.below && self.wait > 1 {
            self.wait /= 2;
            window.resize(segment);
        } else {
            self.below = false;
            window.resize(window.cwnd.saturating_add(segment));
        }
    }
}

impl CongestionControl for Controller {
    fn name(&self) -> &'static str {
        "nice"
    }

    fn on_sample(&mut self, window: &mut Window, ack: &AckContext) {
        self.estimate = ack.estimate;
        self.count(ack);
        let congested = ack.round_start && self.were_too_many();
        let verdict = self.vegas.measure(window, ack);
        let before = window.cwnd;
        if congested && !ack.recovering {
            self.halve(window);
            self.vegas.end_slow_start();
        } else {
            match verdict {
                Verdict::Grow => self.grow(window),
                Verdict::Shrink => {
                    let less = window.cwnd.saturating_sub(window.segment());
                    window.resize(less.max(window.segment()));
                }
                Verdict::Stay => {}
            }
        }
        if window.cwnd < before {
            window.ssthresh = window.ssthresh.min(window.cwnd).max(window.floor());
        }
    }

    fn has_own_slow_start(&self) -> bool {
        true
    }

    fn on_ack(&mut self, window: &mut Window, acked: u64, _ack: &AckContext) {
        self.vegas.slow_start(window, acked);
    }

    fn on_event(&mut self, window: &mut Window, event: CongestionEvent, now: Instant) {
        react(self, window, event, now);
        let idle = matches!(event, CongestionEvent::Unvalidated { idle: true, .. });
        if idle && self.wait > 1 && window.cwnd <= window.segment() {
            // The silence is this one's own: n round trips are often longer than a timeout. The window cannot lose anything by it, and slow start, begun anew
            // in every rest, would never come to the round trip in which it doubles.
            return;
        }
        self.vegas.after(window, event);
        (self.acked, self.delayed) = (0, 0);
    }

    fn on_undo(&mut self, window: &mut Window, prior: Window, _now: Instant) {
        restore(window, prior);
        self.vegas.resume(window);
    }

    fn pacing_rate(&self, window: &Window) -> Option<u64> {
        if self.below && window.cwnd > window.segment() && window.cwnd <= 2 * window.segment() {
            // The two that show what one does not leave together: apart, a receiver would delay the acknowledgement of each.
            return Some(PAIR_RATE);
        }
        if self.wait == 1 || window.cwnd > window.segment() {
            return None;
        }
        let span = self.estimate?.srtt.times(self.wait);
        Some(mul_div(window.segment(), 1_000_000_000, span.as_nanos()).max(1))
    }
}
