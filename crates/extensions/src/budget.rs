//! How much time the extensions of one host may take together.
//!
//! The extensions of a host run under its lock, so each holds up every connection while it runs. A bound on each call is not enough: sixteen layers
//! that each stay just below it take all the time there is. A [`Budget`] gives them a share of each second. When it is used up, layers miss their
//! wake-ups until it has been refilled, and a layer whose calls are long is detached.
//!
//! It is a token bucket, kept as the one time at which the bucket will be full again, so that a call costs a load and an exchange.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant as Clock;
use transom_tcp::time::Duration;

/// The default time that extensions may take of each second.
pub const PER_SECOND: Duration = Duration::from_millis(250);

/// The time that they may take at once, after a pause.
const BURST: Duration = Duration::from_millis(20);

/// A call counts as this much at most, so that a very long one does not exclude the others for more than a few seconds.
const COUNTED: Duration = Duration::from_secs(1);

const SECOND: u64 = 1_000_000_000;

/// A bound on each call, and a share of each second.
#[derive(Debug)]
pub struct Budget {
    /// The time that a call may take: 10 ms, unless it is set.
    pub allowed: Duration,
    /// Nanoseconds until one used nanosecond is refilled.
    refill: u64,
    /// Times count from here.
    base: Clock,
    /// When everything that was taken has been refilled, in nanoseconds.
    full_at: AtomicU64,
    used: AtomicU64,
    missed: AtomicU64,
}

impl Default for Budget {
    fn default() -> Self {
        Budget::new(PER_SECOND)
    }
}

impl Budget {
    /// `per_second` of each second, one second at most. With nothing at all no extension is ever called.
    pub fn new(per_second: Duration) -> Self {
        let refill = match per_second.as_nanos() {
            0 => u64::MAX,
            nanos => SECOND.div_ceil(nanos.min(SECOND)),
        };
        Budget {
            allowed: Duration::from_millis(10),
            refill,
            base: Clock::now(),
            full_at: AtomicU64::new(0),
            used: AtomicU64::new(0),
            missed: AtomicU64::new(0),
        }
    }

    fn nanos(&self, at: Clock) -> u64 {
        Duration::from(at.saturating_duration_since(self.base)).as_nanos()
    }

    /// Whether any time is left at `now`. If not, an extension misses a wake-up, which is counted.
    pub(crate) fn allows(&self, now: Clock) -> bool {
        let ahead = self.full_at.load(Relaxed).saturating_sub(self.nanos(now));
        let allows = self.refill < u64::MAX && ahead < BURST.as_nanos().saturating_mul(self.refill);
        if !allows {
            self.missed.fetch_add(1, Relaxed);
        }
        allows
    }

    /// A call that began at `began` took so long.
    ///
    /// Calls of several shards may be charged at the same time.
    pub(crate) fn charge(&self, began: Clock, took: Duration) {
        self.used.fetch_add(took.as_nanos(), Relaxed);
        let debt = took.min(COUNTED).as_nanos().saturating_mul(self.refill);
        let began = self.nanos(began);
        let later = |full_at: u64| Some(full_at.max(began).saturating_add(debt));
        // It never refuses.
        let _ = self.full_at.fetch_update(Relaxed, Relaxed, later);
    }

    /// The time that extensions have used so far.
    pub fn used(&self) -> Duration {
        Duration::from_nanos(self.used.load(Relaxed))
    }

    /// Wake-ups that were missed because the time was used up.
    pub fn missed(&self) -> u64 {
        self.missed.load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    /// A quarter of each second is refilled four times slower than it was used, and 20 ms may be used at once.
    #[test]
    fn a_quarter_of_each_second() {
        let budget = Budget::new(ms(250));
        let at = |millis| budget.base + std::time::Duration::from_millis(millis);
        for call in 0..4 {
            assert!(budget.allows(at(call * 5)), "{call}");
            budget.charge(at(call * 5), ms(5));
        }
        // 20 ms were used by 20 ms, of which 5 have come back.
        assert!(budget.allows(at(20)));
        budget.charge(at(20), ms(5));
        // Now it is 100 ms until all has come back, and 20 until anything may be used.
        assert!(!budget.allows(at(20)));
        assert!(!budget.allows(at(19)));
        assert!(budget.allows(at(21)));
        assert_eq!((budget.used(), budget.missed()), (ms(25), 2));
    }

    /// Over a long time no more than the share is used, whatever the calls are like.
    #[test]
    fn never_more_than_its_share() {
        let budget = Budget::new(ms(100));
        let (mut now, mut used) = (Duration::ZERO, Duration::ZERO);
        for call in 0..100_000_u64 {
            let at = budget.base + std::time::Duration::from(now);
            let took = Duration::from_micros(1 + call * 7919 % 9_000);
            if budget.allows(at) {
                budget.charge(at, took);
                now = now + took;
                used = used + took;
            } else {
                now = now + Duration::from_micros(500);
            }
        }
        assert!(used <= now.over(10) + BURST + ms(9), "{used:?} of {now:?}");
        assert!(used >= now.over(11), "{used:?} of {now:?}");
    }

    #[test]
    fn nothing_allows_nothing() {
        let budget = Budget::new(Duration::ZERO);
        assert!(!budget.allows(budget.base));
        assert!(!budget.allows(budget.base + std::time::Duration::from_secs(1_000_000)));
    }

    /// A call that took an hour keeps others out for seconds, not for hours.
    #[test]
    fn a_very_long_call_is_not_paid_for_whole() {
        let budget = Budget::new(ms(250));
        budget.charge(budget.base, Duration::from_secs(3600));
        assert!(!budget.allows(budget.base + std::time::Duration::from_secs(3)));
        assert!(budget.allows(budget.base + std::time::Duration::from_secs(4)));
    }
}
