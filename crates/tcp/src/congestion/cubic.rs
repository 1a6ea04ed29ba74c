//! CUBIC (RFC 9438).
//!
//! After a loss the window follows a cubic function of the *time* since congestion avoidance began. It rises fast towards the
//! window at which the loss happened (W_max), slowly around it, and fast again beyond. Where that is slower than Reno would be, it
//! follows an estimate of Reno's window (W_est) instead.
//!
//! The RFC counts in segments and seconds; here windows are bytes and times microseconds. W_cubic is rounded down to bytes, K to
//! microseconds.
//!
//! Differences from the RFC, and choices that it leaves open:
//! - Section 4.4 adds (target − cwnd)/cwnd segments for each acknowledgement, however much it covers. Here that is for each segment acknowledged, to the byte:
//!   a receiver that delays or divides its acknowledgements changes nothing.
//! - Section 4.6's flight_size is bounded by cwnd, so that what Limited Transmit sent counts for nothing.
//! - A window that is already at or above W_max when congestion avoidance begins starts with K = 0 and W_max = cwnd, as after a slow start that
//!   ended without a loss (section 4.10). The cube root of a negative number would put the plateau into the past.
//! - Before the first loss there is no cwnd_prior; W_est then grows as after having reached it (α = 1).
//! - Before the first loss cwnd also grows by a twentieth in each round trip, as Linux' does. A slow start that ended early leaves a window that may be
//!   a small part of what the path carries, and W_cubic is slow to get from there to the rest. RFC 5681 section 3.1 allows slow start up to the
//!   first loss, which is twenty times as fast. `Cubic::before_loss` is that share; with zero it is the RFC by the letter.
//! - Sections 4.2 and 5.8: time in which the window was not the limit does not count towards t. It is subtracted in pieces, from one acknowledgement
//!   to the next. A new epoch begins after an idle period, and when validation has reduced the window.
//! - Sections 4.9.1 and 4.9.2 (what was for nothing): W_max, K, W_est and the epoch come back as they were, with t running on, also where cwnd is above
//!   cwnd_prior by then; and after a timeout as after a fast retransmission.

use super::arithmetic::{Carry, cube_root, mul_div};
use super::built_in::{BuiltIn, Value, is_share, require};
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

/// CUBIC's parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cubic {
    /// C: how steep the cubic function is, in segments per second cubed (section 5.1).
    pub(crate) c: Fraction,
    /// β_cubic: the share of the window that is left after a loss (section 4.6).
    pub(crate) beta: Fraction,
    /// Whether a flow that loses below its last W_max gives up more (section 4.7).
    pub(crate) fast_convergence: bool,
    /// Whether W_est grows like Reno's window, a segment each round trip, once it has reached cwnd_prior (section 4.3). Linux has no such step: there it
    /// goes on with α.
    pub(crate) beyond_prior: bool,
    /// How much of itself the window gains in a round trip at least, until the first loss.
    pub(crate) before_loss: Fraction,
}

impl Default for Cubic {
    fn default() -> Self {
        Cubic {
            c: Fraction::from_millionths(400_000),
            beta: Fraction::from_millionths(700_000),
            fast_convergence: true,
            beyond_prior: true,
            before_loss: Fraction::from_millionths(50_000),
        }
    }
}

impl BuiltIn for Cubic {
    const NAME: &'static str = "cubic";
    const SOURCE: &'static str = "RFC 9438";
    const SUMMARY: &'static str =
        "a cubic function of the time since the last loss, around the window at which it happened";

    fn parameters(&mut self) -> Vec<(&'static str, &mut dyn Value)> {
        vec![
            ("c", &mut self.c),
            ("beta", &mut self.beta),
            ("fast-convergence", &mut self.fast_convergence),
            ("beyond-prior", &mut self.beyond_prior),
            ("before-loss", &mut self.before_loss),
        ]
    }

    fn check(&self, given: &Arguments<'_>) -> Result<(), ArgumentError> {
        let Cubic { c, beta, before_loss, .. } = *self;
        let most = Fraction::from_millionths(100_000_000);
        require(given, c.millionths() > 0 && c <= most, "c is above 0 and at most 100", c)?;
        require(given, is_share(beta), "beta is between 0 and 1", beta)?;
        require(given, before_loss <= Fraction::ONE, "before-loss is at most 1", before_loss)
    }

    fn kind(&self) -> Kind {
        Kind::Cubic(Box::new(Controller {
            parameters: *self,
            state: State::default(),
            before: None,
            seen: Instant::ZERO,
        }))
    }
}

/// The state that a reduction changes, and an undo restores.
#[derive(Clone, Copy, Debug, Default)]
struct State {
    /// W_max in bytes; zero before the first loss.
    w_max: u64,
    /// cwnd_prior in bytes: the window before the last reduction.
    prior: u64,
    /// Whether the next epoch is the first after a timeout (section 4.8).
    after_timeout: bool,
    /// The current stage of congestion avoidance.
    epoch: Option<Epoch>,
}

/// A stage of congestion avoidance.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    start: Instant,
    /// K in microseconds.
    k: u64,
    /// W_max of this stage.
    origin: u64,
    /// W_est in bytes.
    w_est: u64,
    est_carry: Carry,
    cwnd_carry: Carry,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Controller {
    parameters: Cubic,
    state: State,
    before: Option<State>,
    /// When the last acknowledgement came.
    seen: Instant,
}

/// The largest |t − K|, in microseconds: 28 hours. Beyond it the window has no useful bound. With it the products of [`w_cubic`] fit 128 bits.
const LONGEST: u64 = 100_000_000_000;

/// K of figure 2, in microseconds: the cube root of (W_max − cwnd_epoch) / C.
fn time_to_origin(below: u64, c: Fraction, segment: u64) -> u64 {
    // below / segment segments over c millionths, in microseconds cubed.
    let cubed = u128::from(below.min(Window::WIDEST)) * 1_000_000_000_000_000_000_000_000
        / (u128::from(segment) * u128::from(c.millionths().max(1)));
    cube_root(cubed).min(LONGEST)
}

/// W_cubic(t) of figure 1 in bytes: C·(t − K)³ + W_max, with `t` and `k` in microseconds.
fn w_cubic(t: u64, k: u64, origin: u64, c: Fraction, segment: u64) -> u64 {
    let distance = u128::from(t.abs_diff(k).min(LONGEST));
    // In units of 10⁻⁹ s³, then in bytes.
    let cubed = distance * distance * distance / 1_000_000_000;
    let bytes = cubed * u128::from(c.millionths()) * u128::from(segment) / 1_000_000_000_000_000;
    let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
    if t < k { origin.saturating_sub(bytes) } else { origin.saturating_add(bytes) }
}

impl Controller {
    /// Section 4.8 and 4.10: where a stage of congestion avoidance starts from.
    fn begin(&mut self, window: &Window, now: Instant) -> Epoch {
        let below = self.state.w_max.saturating_sub(window.cwnd);
        if self.state.after_timeout || below == 0 {
            self.state.w_max = window.cwnd;
        }
        self.state.after_timeout = false;
        let below = self.state.w_max.saturating_sub(window.cwnd);
        Epoch {
            start: now,
            k: time_to_origin(below, self.parameters.c, window.segment()),
            origin: self.state.w_max,
            w_est: window.cwnd,
            est_carry: Carry::default(),
            cwnd_carry: Carry::default(),
        }
    }

    /// Sections 4.6 and 4.7: remembers the window that was too large, and ends the epoch.
    fn remember(&mut self, window: &Window) {
        self.before = Some(self.state);
        let Cubic { beta, fast_convergence, .. } = self.parameters;
        self.state.w_max = if fast_convergence && window.cwnd < self.state.w_max {
            mul_div(window.cwnd, 1_000_000 + beta.millionths(), 2_000_000)
        } else {
            window.cwnd
        };
        self.state.prior = window.cwnd;
        self.state.after_timeout = false;
        self.state.epoch = None;
    }
}

impl CongestionControl for Controller {
    fn name(&self) -> &'static str {
        "cubic"
    }

    fn on_sample(&mut self, _window: &mut Window, ack: &AckContext) {
        // Section 5.8.
        if !ack.cwnd_limited
            && let Some(epoch) = &mut self.state.epoch
        {
            epoch.start += ack.now.since(self.seen.max(epoch.start));
        }
        self.seen = ack.now;
    }

    fn on_ack(&mut self, window: &mut Window, acked: u64, ack: &AckContext) {
        let mut epoch = match self.state.epoch {
            Some(epoch) => epoch,
            None => self.begin(window, ack.now),
        };
        let Cubic { c, beta, beyond_prior, before_loss, .. } = self.parameters;
        let (segment, cwnd) = (window.segment(), window.cwnd.max(1));
        let (acked, wide) = (u128::from(acked), u128::from(cwnd));

        // Section 4.3: Reno's window, whose α makes up for giving up less than half.
        let (up, down) = if beyond_prior && epoch.w_est >= self.state.prior {
            (1, 1)
        } else {
            (3 * beta.complement().millionths(), 1_000_000 + beta.millionths())
        };
        let grown = epoch.est_carry.divide(
            u128::from(up).saturating_mul(acked).saturating_mul(u128::from(segment)),
            u128::from(down) * wide,
        );
        epoch.w_est = epoch.w_est.saturating_add(grown).min(Window::WIDEST);

        // Section 4.2.
        let elapsed = ack.now.since(epoch.start);
        let rtt = ack.srtt().or(ack.rtt).unwrap_or(Duration::ZERO);
        let at = |span: Duration| w_cubic(span.as_micros(), epoch.k, epoch.origin, c, segment);
        let friendly = at(elapsed) < epoch.w_est;
        // Sections 4.4 and 4.5.
        let target = at(elapsed + rtt).clamp(cwnd, cwnd + cwnd / 2);
        let missing = if friendly { 0 } else { target - cwnd };
        // Nothing is known yet of where the path is full.
        let least = if self.state.prior == 0 { before_loss.of(cwnd) } else { 0 };
        let missing = u128::from(missing.max(least));
        let grown = epoch.cwnd_carry.divide(missing.saturating_mul(acked), wide);
        let reached = if friendly { epoch.w_est } else { cwnd };
        window.resize(reached.max(cwnd.saturating_add(grown)));
        self.state.epoch = Some(epoch);
    }

    fn ssthresh(&mut self, window: &Window, flight: u64, _now: Instant) -> u64 {
        self.parameters.beta.of(flight.min(window.cwnd)).max(window.floor())
    }

    fn on_event(&mut self, window: &mut Window, event: CongestionEvent, now: Instant) {
        match event {
            CongestionEvent::Loss { .. } => self.remember(window),
            CongestionEvent::Ecn { flight } => {
                self.remember(window);
                // Section 4.6: a mark may leave one segment, a loss two.
                let left = self.parameters.beta.of(flight.min(window.cwnd));
                react(self, window, event, now);
                window.resize(left);
                return;
            }
            CongestionEvent::Timeout { first, .. } => {
                if first {
                    self.remember(window);
                }
                self.state.epoch = None;
                self.state.after_timeout = true;
            }
            CongestionEvent::Unvalidated { .. } | CongestionEvent::HandshakeLoss => {
                self.state.epoch = None;
            }
            CongestionEvent::RecoveryEnd { .. } => {}
        }
        react(self, window, event, now);
    }

    fn on_undo(&mut self, window: &mut Window, prior: Window, _now: Instant) {
        if let Some(before) = self.before.take() {
            self.state = before;
        }
        restore(window, prior);
    }
}
