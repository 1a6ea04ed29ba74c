//! Congestion window validation for rate-limited traffic (RFC 7661).
//!
//! pipeACK is the most that was acknowledged in a round trip of the last max(3·RTT, 1 s). While it is half of cwnd or more, or is not known
//! (at the beginning and after a loss recovery), the window is *validated*, and nothing is special. Below that begins the *nonvalidated* phase:
//! - The window is kept, also over idle periods: there is no restart window.
//! - A loss or a mark reduces max(pipeACK, FlightSize) instead of an untested window. At the end of the recovery the retransmitted amount, R, is
//!   subtracted before: cwnd = (max(pipeACK, LossFlightSize) − R)/2 for a controller that halves (section 4.4.1).
//! - After five minutes the window is halved, not below IW, and ssthresh is three quarters of it at least (section 4.4.3); and again after the
//!   next five.
//!
//! Differences from the RFC, and choices that it leaves open:
//! - The reduction is the controller's own share, not always a half: (max(pipeACK, LossFlightSize) − R)·ssthresh/max(pipeACK, LossFlightSize).
//! - R is what recovery has believed lost, so that a segment sent three times counts twice; the RFC would count it once.
//! - Once there has been a sample, a period without any is one in which nothing was acknowledged: pipeACK is zero then, not unknown.
//! - A sample's lifetime is counted from the first of its quarter of the period: it may end up to a quarter early, never late.
//! - An idle period takes no timer: when data leaves again, the unit applies what the five-minute timer would have done.
//! - Pacing keeps bursts small (section 4.4.2); choose it with this unit.

use super::{IdlePeriod, Validation, WindowBounds};
use crate::ack_context::AckContext;
use crate::congestion::{InitialWindow, Window};
use crate::time::{Duration, Instant};

/// The nonvalidated period (section 4.4.3, and section 5 for why).
const NONVALIDATED_PERIOD: Duration = Duration::from_secs(300);
/// The least sampling period (section 4.2).
const LEAST_PERIOD: Duration = Duration::from_secs(1);
/// Pieces of the sampling period.
const PIECES: usize = 4;

/// The largest of the samples of a period: one for each piece of it, beginning at that time.
#[derive(Clone, Copy, Debug, Default)]
struct Samples {
    pieces: [Option<(Instant, u64)>; PIECES],
    newest: usize,
}

impl Samples {
    fn add(&mut self, now: Instant, sample: u64, period: Duration) {
        let piece = Duration::from_nanos(period.as_nanos() / PIECES as u64);
        match self.pieces.get_mut(self.newest) {
            Some(Some((begun, largest))) if now.since(*begun) < piece => {
                *largest = sample.max(*largest);
            }
            _ => {
                self.newest = (self.newest + 1) % PIECES;
                if let Some(slot) = self.pieces.get_mut(self.newest) {
                    *slot = Some((now, sample));
                }
            }
        }
    }

    /// The largest that is not older than `period`; zero if there is none.
    fn largest(&self, now: Instant, period: Duration) -> u64 {
        let fresh = self.pieces.iter().flatten().filter(|(begun, _)| now.since(*begun) <= period);
        fresh.map(|&(_, sample)| sample).max().unwrap_or(0)
    }
}

/// The method of RFC 7661.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cwv {
    /// IW.
    initial: InitialWindow,
    /// The samples of pipeACK; `None` while it is unknown.
    samples: Option<Samples>,
    /// Acknowledged in the present round trip; `None` before the first that is whole.
    round: Option<u64>,
    /// The beginning of the nonvalidated phase.
    nonvalidated: Option<Instant>,
    /// pipeACK as of the last acknowledgement.
    pipe_ack: u64,
    /// max(pipeACK, LossFlightSize) of the present recovery, and the bytes lost before it.
    reduced: Option<(u64, u64)>,
}

/// pipeACK's sampling period.
fn period(srtt: Option<Duration>) -> Duration {
    srtt.unwrap_or_default().times(3).max(LEAST_PERIOD)
}

impl Cwv {
    /// A unit that has measured nothing, for connections with this initial window.
    pub(crate) fn new(initial: InitialWindow) -> Self {
        Cwv { initial, ..Cwv::default() }
    }

    /// The phase at `now`; the nonvalidated one began at `since` if it begins with this.
    fn classify(&mut self, window: &Window, now: Instant, since: Instant, period: Duration) {
        self.pipe_ack = self.samples.map_or(0, |samples| samples.largest(now, period));
        // Section 4.3.
        let validated = self.samples.is_none() || self.pipe_ack.saturating_mul(2) >= window.cwnd;
        self.nonvalidated = if validated { None } else { Some(self.nonvalidated.unwrap_or(since)) };
    }

    /// Section 4.4.3, for each period that has passed.
    fn expire(&mut self, window: &Window, now: Instant) -> Option<WindowBounds> {
        let begun = self.nonvalidated?;
        let periods = now.since(begun).as_nanos() / NONVALIDATED_PERIOD.as_nanos();
        if periods == 0 {
            return None;
        }
        self.nonvalidated = Some(begun + NONVALIDATED_PERIOD.times(periods));
        let initial = self.initial.bytes(window.mss);
        let (mut cwnd, mut ssthresh) = (window.cwnd, 0);
        // A window has fewer halves than bits.
        for _ in 0..periods.min(64) {
            ssthresh = (cwnd / 4 * 3).max(ssthresh);
            cwnd = cwnd.min(initial.max(cwnd / 2));
        }
        Some(WindowBounds { most_cwnd: cwnd, least_ssthresh: ssthresh })
    }
}

impl Validation for Cwv {
    fn on_restart(&mut self, window: &Window, silence: &IdlePeriod) -> WindowBounds {
        let IdlePeriod { now, since, estimate } = *silence;
        self.classify(window, now, since, period(estimate.map(|known| known.srtt)));
        self.expire(window, now).unwrap_or(WindowBounds::UNCHANGED)
    }

    fn on_ack(&mut self, window: &Window, ack: &AckContext) -> Option<WindowBounds> {
        if ack.recovering {
            return None;
        }
        let period = period(ack.srtt());
        if ack.round_start {
            if let Some(sample) = self.round.take() {
                self.samples.get_or_insert_default().add(ack.now, sample, period);
            }
            self.round = Some(0);
        }
        if let Some(round) = &mut self.round {
            *round = round.saturating_add(ack.newly_delivered);
        }
        self.classify(window, ack.now, ack.now, period);
        self.expire(window, ack.now)
    }

    fn on_mark(&self, flight: u64) -> u64 {
        match self.nonvalidated {
            None => flight,
            Some(_) => flight.max(self.pipe_ack),
        }
    }

    fn on_loss(&mut self, flight: u64, lost: u64) -> u64 {
        let from = self.on_mark(flight);
        self.reduced = self.nonvalidated.map(|_| (from.max(1), lost));
        from
    }

    fn on_recovered(&mut self, window: &Window, lost: u64) -> Option<u64> {
        let reduced = self.reduced;
        self.on_invalidated();
        let (from, before) = reduced?;
        let rest = from.saturating_sub(lost.saturating_sub(before));
        let cwnd = u128::from(window.ssthresh) * u128::from(rest) / u128::from(from);
        Some(u64::try_from(cwnd).unwrap_or(u64::MAX))
    }

    fn on_invalidated(&mut self) {
        *self = Cwv::new(self.initial);
    }
}

#[cfg(test)]
mod tests;
