//! Pacing: *when* the next transmission may leave. A connection without the unit does not ask.

use crate::congestion::Window;
use crate::time::{Duration, Instant};

/// The rate that sends `window` in a little less than a round trip, in bytes per second. It is twice as fast in slow start, where the
/// window doubles meanwhile, and a quarter faster afterwards, as in QUIC (RFC 9002 section 7.7). So pacing never limits the flow.
/// `None` before the first round-trip time.
pub(crate) fn window_rate(window: &Window, srtt: Option<Duration>) -> Option<u64> {
    let nanos = u128::from(srtt?.as_nanos());
    let percent = if window.in_slow_start() { 200 } else { 125 };
    let bytes = u128::from(window.cwnd) * percent / 100;
    let rate = (bytes * 1_000_000_000).checked_div(nanos)?;
    Some(u64::try_from(rate).unwrap_or(u64::MAX).max(1))
}

/// Transmissions spaced to a rate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RatePacing {
    next: Instant,
    /// How much lateness may be caught up with in a burst.
    slack: Duration,
}

impl Default for RatePacing {
    fn default() -> Self {
        RatePacing::with_bursts(RatePacing::BURST)
    }
}

impl RatePacing {
    /// How much usually leaves in one burst, as a span of time at the pace.
    pub(crate) const BURST: Duration = Duration::from_millis(1);

    /// One that lets bursts of this span leave, or of two segments if that is more.
    pub(crate) const fn with_bursts(slack: Duration) -> Self {
        RatePacing { next: Instant::ZERO, slack }
    }

    /// Sets the rate to `new`; the remaining debt at the old rate is scaled to the new one.
    pub(crate) fn change_rate(&mut self, now: Instant, old: u64, new: u64) {
        if self.next <= now {
            return;
        }
        let left = u128::from(self.next.since(now).as_nanos());
        let left = left * u128::from(old) / u128::from(new.max(1));
        self.next = now + Duration::from_nanos(u64::try_from(left).unwrap_or(u64::MAX));
    }
}

impl RatePacing {
    /// When the next transmission may leave; now or in the past means at once.
    pub(crate) fn release_at(&self) -> Instant {
        self.next
    }

    /// Nothing leaves before `release`: another unit has paced what left already.
    pub(crate) fn hold_until(&mut self, release: Instant) {
        self.next = self.next.max(release);
    }

    /// The most bytes one transmission should carry at `rate`, so that a super-segment is not a burst.
    pub(crate) fn quantum(&self, rate: Option<u64>) -> u64 {
        // Usually one millisecond's worth, as the large stacks size their super-segments.
        let worth = |rate: u64| {
            let bytes = u128::from(rate) * u128::from(self.slack.as_nanos()) / 1_000_000_000;
            u64::try_from(bytes).unwrap_or(u64::MAX)
        };
        rate.map_or(u64::MAX, |rate| worth(rate).max(2 * 1460))
    }

    /// `bytes` left at `now` while the rate to keep is `rate` bytes per second (`None`: no opinion).
    pub(crate) fn on_sent(&mut self, now: Instant, bytes: u64, rate: Option<u64>) {
        let Some(rate) = rate.filter(|&rate| rate > 0) else {
            self.next = now;
            return;
        };
        let nanos = u128::from(bytes) * 1_000_000_000 / u128::from(rate);
        let gap = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        self.next = self.next.max(now - self.slack) + gap;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1000 bytes at 1000 bytes per second are owed for a second. After half of it 500 bytes are left, which at 10,000 take 50 ms.
    #[test]
    fn another_rate_holds_from_now_on() {
        let mut pacing = RatePacing::default();
        let start = Instant::from_millis(1000);
        pacing.on_sent(start, 1000, Some(1000));
        // The slack of a millisecond was used up.
        assert_eq!(pacing.release_at(), Instant::from_millis(1999));
        let half = Instant::from_millis(1499);
        pacing.change_rate(half, 1000, 10_000);
        assert_eq!(pacing.release_at(), Instant::from_millis(1549));
        pacing.change_rate(Instant::from_millis(1600), 10_000, 1);
        assert_eq!(pacing.release_at(), Instant::from_millis(1549), "nothing is owed");
    }

    #[test]
    fn a_window_in_less_than_a_round_trip() {
        let slow_start = Window { cwnd: 10_000, cwnd_cnt: 0, ssthresh: u64::MAX, mss: 1000 };
        let avoidance = Window { ssthresh: 5000, ..slow_start };
        let srtt = Some(Duration::from_millis(100));
        assert_eq!(window_rate(&slow_start, srtt), Some(200_000));
        assert_eq!(window_rate(&avoidance, srtt), Some(125_000));
        assert_eq!(window_rate(&avoidance, None), None);
        assert_eq!(window_rate(&avoidance, Some(Duration::ZERO)), None);
    }

    #[test]
    fn transmissions_keep_the_rate() {
        let mut pacing = RatePacing::default();
        let mut now = Instant::from_secs(1);
        let start = now;
        for _ in 0..1000 {
            now = now.max(pacing.release_at());
            pacing.on_sent(now, 1500, Some(1_500_000));
        }
        let spent = pacing.release_at().since(start);
        // 1000 packets of one millisecond each, less the slack allowed at the start.
        assert_eq!(spent, Duration::from_millis(999));
    }
}
