//! How often something may happen: the generic cell rate algorithm (ITU-T I.371).
//!
//! Each event has a turn, an interval after the one before. A turn may be taken early by the length of a burst. Faster clients have to wait for
//! their turns, in the order of asking, so that a flood delays others by no more than a turn each.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

#[derive(Debug)]
pub(super) struct Rate {
    interval: Duration,
    /// How long a burst is.
    tolerance: Duration,
    /// When the next turn is.
    next: Mutex<Option<Instant>>,
}

impl Rate {
    /// This many in a second, and this many at once. Neither is zero.
    pub(super) fn new(per_second: u32, burst: u32) -> Self {
        let interval = Duration::from_secs(1) / per_second.max(1);
        Rate { interval, tolerance: interval * burst.saturating_sub(1), next: Mutex::default() }
    }

    /// Takes a turn. How long it has to be waited for.
    pub(super) fn take(&self, now: Instant) -> Duration {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let turn = next.unwrap_or(now).max(now);
        *next = turn.checked_add(self.interval);
        turn.saturating_duration_since(now).saturating_sub(self.tolerance)
    }

    /// Whether a turn could be taken without waiting.
    pub(super) fn is_free(&self, now: Instant) -> bool {
        let next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        next.is_none_or(|next| next.saturating_duration_since(now) <= self.tolerance)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn a_burst_goes_at_once_and_the_rest_in_turn() {
        let rate = Rate::new(1000, 5);
        let now = Instant::now();
        for _ in 0..5 {
            assert!(rate.is_free(now));
            assert_eq!(rate.take(now), Duration::ZERO);
        }
        assert!(!rate.is_free(now));
        assert_eq!([rate.take(now), rate.take(now)], [MS, 2 * MS]);
        // The seventh turn was 6 ms after the first; with the tolerance of 4 ms the eighth is free at 3 ms.
        assert!(!rate.is_free(now + 2 * MS));
        assert!(rate.is_free(now + 3 * MS));
        // After a rest there is one burst, and not more.
        let later = now + Duration::from_secs(10);
        let waits: Vec<_> = (0..7).map(|_| rate.take(later)).collect();
        assert_eq!(waits, [0, 0, 0, 0, 0, 1, 2].map(|ms| ms * MS));
    }
}
