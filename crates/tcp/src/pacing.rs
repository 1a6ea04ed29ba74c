//! Pacing: *when* the next transmission may leave.

use crate::time::{Duration, Instant};
use core::fmt;

/// A pacing unit.
pub trait Pacing: fmt::Debug + Send {
    /// The name by which profiles and reports call it.
    fn name(&self) -> &'static str;

    /// When the next transmission may leave; now or in the past means at once.
    fn release_at(&self) -> Instant;

    /// The most bytes one transmission should carry at `rate`, so that a super-segment is not a burst.
    fn quantum(&self, rate: Option<u64>) -> u64;

    /// `bytes` left at `now` while the rate to keep is `rate` bytes per second (`None`: no opinion).
    fn on_sent(&mut self, now: Instant, bytes: u64, rate: Option<u64>);
}

/// Nothing is held back.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unpaced;

impl Pacing for Unpaced {
    fn name(&self) -> &'static str {
        "none"
    }

    fn release_at(&self) -> Instant {
        Instant::ZERO
    }

    fn quantum(&self, _rate: Option<u64>) -> u64 {
        u64::MAX
    }

    fn on_sent(&mut self, _now: Instant, _bytes: u64, _rate: Option<u64>) {}
}

/// Transmissions spaced to a rate.
#[derive(Clone, Copy, Debug)]
pub struct RatePacing {
    next: Instant,
    /// How much lateness may be caught up with in a burst.
    slack: Duration,
}

impl Default for RatePacing {
    fn default() -> Self {
        RatePacing { next: Instant::ZERO, slack: Duration::from_millis(1) }
    }
}

impl Pacing for RatePacing {
    fn name(&self) -> &'static str {
        "rate"
    }

    fn release_at(&self) -> Instant {
        self.next
    }

    fn quantum(&self, rate: Option<u64>) -> u64 {
        // One millisecond's worth, as the large stacks size their super-segments.
        rate.map_or(u64::MAX, |rate| (rate / 1000).max(2 * 1460))
    }

    fn on_sent(&mut self, now: Instant, bytes: u64, rate: Option<u64>) {
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
