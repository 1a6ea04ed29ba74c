//! HyStart++ (RFC 9406): slow start ends when the round-trip time rises, not when the queue overflows.
//!
//! The least round-trip time of a round is compared with that of the round before. When it has grown by an eighth, the window grows four times more
//! slowly for five rounds (Conservative Slow Start). If the round-trip time falls meanwhile, it was a false alarm; otherwise slow start ends.
//!
//! That is for as long as ssthresh has its first value (section 4.3). After a loss or a timeout it says where slow start ends, which is the usual one then.

use super::SlowStart;
use crate::ack_context::AckContext;
use crate::congestion::Window;
use crate::time::Duration;

/// The constants of RFC 9406 section 4.3.
const MIN_RTT_THRESH: Duration = Duration::from_millis(4);
const MAX_RTT_THRESH: Duration = Duration::from_millis(16);
const MIN_RTT_DIVISOR: u64 = 8;
const N_RTT_SAMPLE: u32 = 8;
const CSS_GROWTH_DIVISOR: u64 = 4;
const CSS_ROUNDS: u32 = 5;
/// L for a sender that does not pace, in segments for each acknowledgement.
const BURST: u64 = 8;

/// The slow start of RFC 9406.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HyStartPp {
    /// Whether transmissions are paced: then an acknowledgement may count for as much as it covers.
    pub(crate) paced: bool,
    last_round: Option<Duration>,
    this_round: Option<Duration>,
    samples: u32,
    /// In Conservative Slow Start: the round-trip time that began it, and its rounds so far.
    conservative: Option<(Duration, u32)>,
}

impl HyStartPp {
    /// For transmissions that are paced or not.
    pub(crate) fn new(paced: bool) -> Self {
        HyStartPp { paced, ..HyStartPp::default() }
    }

    fn begin_round(&mut self, window: &mut Window) {
        self.last_round = self.this_round.take();
        self.samples = 0;
        if let Some((_, rounds)) = &mut self.conservative {
            *rounds += 1;
            if *rounds >= CSS_ROUNDS {
                window.ssthresh = window.cwnd;
                self.conservative = None;
            }
        }
    }
}

impl SlowStart for HyStartPp {
    fn name(&self) -> &'static str {
        "hystart++"
    }

    // Section 4.2.
    fn on_sample(&mut self, window: &mut Window, ack: &AckContext) {
        if window.ssthresh != u64::MAX || !window.in_slow_start() {
            return;
        }
        if ack.round_start {
            self.begin_round(window);
        }
        let Some(rtt) = ack.rtt else { return };
        self.this_round = Some(self.this_round.map_or(rtt, |least| least.min(rtt)));
        self.samples += 1;
        let (Some(this), true) = (self.this_round, self.samples >= N_RTT_SAMPLE) else { return };
        match (self.conservative, self.last_round) {
            (Some((baseline, _)), _) if this < baseline => self.conservative = None,
            (None, Some(last)) => {
                let eighth = Duration::from_nanos(last.as_nanos() / MIN_RTT_DIVISOR);
                if this >= last + eighth.max(MIN_RTT_THRESH).min(MAX_RTT_THRESH) {
                    self.conservative = Some((this, 0));
                }
            }
            _ => {}
        }
    }

    fn grow(&mut self, window: &mut Window, acked: u64, _ack: &AckContext) -> u64 {
        let most = if self.paced { u64::MAX } else { BURST * u64::from(window.mss) };
        let counted = acked.min(most);
        match self.conservative {
            None => window.slow_start(counted),
            Some(_) => window.slow_start(counted / CSS_GROWTH_DIVISOR) * CSS_GROWTH_DIVISOR,
        }
    }

    fn on_reduction(&mut self, _timeout: bool) {
        *self = HyStartPp::new(self.paced);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window() -> Window {
        Window { cwnd: 100_000, cwnd_cnt: 0, ssthresh: u64::MAX, mss: 1000 }
    }

    /// A round of ten acknowledgements of a segment each, with this round-trip time.
    fn round(unit: &mut HyStartPp, window: &mut Window, millis: u64) -> u64 {
        let before = window.cwnd;
        for i in 0..10 {
            let rtt = Some(Duration::from_millis(millis));
            let ack = AckContext { rtt, round_start: i == 0, ..AckContext::default() };
            unit.on_sample(window, &ack);
            if window.in_slow_start() {
                unit.grow(window, 1000, &ack);
            }
        }
        window.cwnd - before
    }

    #[test]
    fn a_rising_round_trip_ends_slow_start_after_five_rounds() {
        let (mut unit, mut window) = (HyStartPp::default(), window());
        assert_eq!(round(&mut unit, &mut window, 80), 10_000);
        // An eighth of 80 is 10.
        assert_eq!(round(&mut unit, &mut window, 89), 10_000);
        // An eighth of 89 is 11.1: from the eighth sample on.
        assert_eq!(round(&mut unit, &mut window, 101), 7 * 1000 + 3 * 250);
        for _ in 0..4 {
            assert_eq!(round(&mut unit, &mut window, 110), 2500);
            assert!(window.in_slow_start());
        }
        let cwnd = window.cwnd;
        assert_eq!(round(&mut unit, &mut window, 110), 0);
        assert_eq!(window.ssthresh, cwnd);
    }

    #[test]
    fn a_false_alarm() {
        let (mut unit, mut window) = (HyStartPp::default(), window());
        round(&mut unit, &mut window, 80);
        round(&mut unit, &mut window, 100);
        assert_eq!(round(&mut unit, &mut window, 120), 2500);
        assert_eq!(round(&mut unit, &mut window, 85), 7 * 250 + 3 * 1000);
        assert_eq!(round(&mut unit, &mut window, 85), 10_000);
    }

    #[test]
    fn the_threshold_is_between_4_and_16_ms() {
        for (before, after, alarm) in
            [(8, 11, false), (8, 12, true), (400, 415, false), (400, 416, true)]
        {
            let (mut unit, mut window) = (HyStartPp::default(), window());
            round(&mut unit, &mut window, before);
            round(&mut unit, &mut window, after);
            assert_eq!(unit.conservative.is_some(), alarm, "{before} to {after} ms");
        }
    }

    /// Section 4.3: a slow start that has a threshold doubles until it is there, whatever round trips take. Events that leave no threshold, such as
    /// silence, or that were undone, change nothing.
    #[test]
    fn only_a_slow_start_without_a_threshold_looks_at_round_trips() {
        for (ssthresh, grown) in [(1_000_000, 10_000), (u64::MAX, 2500)] {
            let (mut unit, mut window) = (HyStartPp::default(), window());
            round(&mut unit, &mut window, 80);
            unit.on_reduction(false);
            window.ssthresh = ssthresh;
            for millis in [80, 100] {
                round(&mut unit, &mut window, millis);
            }
            assert_eq!(round(&mut unit, &mut window, 120), grown);
        }
    }

    #[test]
    fn one_acknowledgement_counts_for_eight_segments_unless_paced() {
        let mut w = window();
        HyStartPp::new(false).grow(&mut w, 64_000, &AckContext::default());
        assert_eq!(w.cwnd, 108_000);
        HyStartPp::new(true).grow(&mut w, 64_000, &AckContext::default());
        assert_eq!(w.cwnd, 172_000);
    }
}
