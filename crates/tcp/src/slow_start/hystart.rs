//! HyStart (Ha and Rhee, "Taming the elephants: New TCP slow start", Computer Networks 2011) as Linux' CUBIC has it: slow start ends when a round's
//! acknowledgements show that the path is full.
//!
//! Two detectors run beside each other, from a window of 16 segments on:
//! - The train: acknowledgements at most 2 ms apart form a train. Segments leave in bursts, so the bottleneck spaces their acknowledgements. A
//!   train as long as half of the least round-trip time says that the window fills about half of the path in each direction. A sender that paces
//!   spaces its own segments, so its train has to last a whole round trip.
//! - The delay: the least round-trip time among a round's first acknowledgements has grown by an eighth of the connection's least (4 to 16 ms).
//!
//! [HyStart++](super::hystart_pp) kept the second detector only. The first acknowledgements of a round meet a queue that has drained meanwhile, so
//! where bursts leave before them, that one speaks too late.
//!
//! Differences from Linux: times are in nanoseconds. The pacing rate that the allowance of the train needs is computed here, as twice the window in a
//! smoothed round-trip time; Linux takes the socket's, which is the same in slow start.

use super::SlowStart;
use crate::ack_context::AckContext;
use crate::congestion::Window;
use crate::time::{Duration, Instant};
use alloc::boxed::Box;

/// `hystart_low_window`, in segments.
const LOW_WINDOW: u64 = 16;
/// `hystart_ack_delta_us`: acknowledgements of a train are no further apart.
const ACK_DELTA: Duration = Duration::from_millis(2);
/// `HYSTART_MIN_SAMPLES`: so many round-trip times of a round come before the delay is judged.
const MIN_SAMPLES: u32 = 8;
/// `HYSTART_DELAY_MIN` and `HYSTART_DELAY_MAX`.
const DELAY_MIN: Duration = Duration::from_millis(4);
const DELAY_MAX: Duration = Duration::from_millis(16);
/// Bursts that offloads make may delay an acknowledgement by the time of four of the largest super-segments, a millisecond at most.
const BURSTS: u64 = 4 * 65_536;
const MAX_ACK_DELAY: Duration = Duration::from_millis(1);

/// The slow start of Linux' CUBIC.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct HyStart {
    /// Whether transmissions are paced.
    pub(crate) paced: bool,
    /// The round, once it has begun at a window that is large enough. Boxed, as most connections never have such a window.
    round: Option<Box<Round>>,
    /// The connection's least round-trip time, since the last timeout.
    least: Option<Duration>,
    /// It has ended slow start once; it does so again only after a timeout.
    found: bool,
}

/// What a round's acknowledgements have shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Round {
    began: Instant,
    /// The latest acknowledgement of the train.
    last_ack: Instant,
    least: Duration,
    samples: u32,
}

impl HyStart {
    /// For transmissions that are paced or not.
    pub(crate) fn new(paced: bool) -> Self {
        HyStart { paced, ..HyStart::default() }
    }

    /// How long a train is that shows a full path.
    fn full_train(&self, least: Duration, window: &Window, ack: &AckContext) -> Duration {
        let rate_known = ack.srtt().filter(|srtt| !srtt.is_zero());
        let allowance = rate_known.map_or(Duration::ZERO, |srtt| {
            let rate_in_srtt = window.cwnd.saturating_mul(2).max(1);
            let nanos = u128::from(BURSTS) * u128::from(srtt.as_nanos()) / u128::from(rate_in_srtt);
            Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)).min(MAX_ACK_DELAY)
        });
        let whole = least + allowance;
        if self.paced { whole } else { Duration::from_nanos(whole.as_nanos() / 2) }
    }
}

impl Round {
    fn new(now: Instant) -> Self {
        Round { began: now, last_ack: now, least: Duration::MAX, samples: 0 }
    }

    /// Whether the train, with this acknowledgement, is longer than `full`.
    fn train_is_full(&mut self, now: Instant, full: Duration) -> bool {
        if now.since(self.last_ack) > ACK_DELTA {
            return false;
        }
        self.last_ack = now;
        now.since(self.began) > full
    }

    /// Whether the round's least round-trip time, with this one, shows a queue.
    fn delay_has_risen(&mut self, rtt: Duration, least: Duration) -> bool {
        self.least = self.least.min(rtt);
        if self.samples < MIN_SAMPLES {
            self.samples += 1;
            return false;
        }
        let eighth = Duration::from_nanos(least.as_nanos() / 8);
        self.least > least + eighth.max(DELAY_MIN).min(DELAY_MAX)
    }
}

impl SlowStart for HyStart {
    fn name(&self) -> &'static str {
        "hystart"
    }

    fn on_sample(&mut self, window: &mut Window, ack: &AckContext) {
        // A round may begin with an acknowledgement that gives no sample.
        if ack.round_start {
            self.round = None;
        }
        let Some(rtt) = ack.rtt else { return };
        let least = self.least.map_or(rtt, |least| least.min(rtt));
        self.least = Some(least);
        let low = window.cwnd < LOW_WINDOW * u64::from(window.mss);
        if self.found || low || !window.in_slow_start() {
            return;
        }
        let full = self.full_train(least, window, ack);
        let round = self.round.get_or_insert_with(|| Box::new(Round::new(ack.now)));
        // Both look at each acknowledgement.
        let train = round.train_is_full(ack.now, full);
        let delay = round.delay_has_risen(rtt, least);
        if train || delay {
            self.found = true;
            self.round = None;
            window.ssthresh = window.cwnd;
        }
    }

    fn grow(&mut self, window: &mut Window, acked: u64, _ack: &AckContext) -> u64 {
        window.slow_start(acked)
    }

    fn on_reduction(&mut self, timeout: bool) {
        if timeout {
            *self = HyStart::new(self.paced);
        }
    }
}

#[cfg(test)]
mod tests;
