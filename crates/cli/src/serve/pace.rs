//! How fast a client takes a response, for the choice of who has to go when there is no place for another.

use std::time::{Duration, Instant};

/// Whoever has not taken [`ENOUGH`] for so long has stalled. Losses and a retransmission timer of one to three seconds are no stall.
pub(super) const STALLED: Duration = Duration::from_secs(5);
/// The bytes that end a stall; fewer, such as a byte now and then, do not.
const ENOUGH: usize = 16 * 1024;

/// The pace of one client.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// Since when it has not taken [`ENOUGH`].
    since: Instant,
    taken: usize,
}

impl Pace {
    /// Of a client that begins now.
    pub(super) fn new(now: Instant) -> Pace {
        Pace { since: now, taken: 0 }
    }

    /// It has taken so many bytes.
    pub(super) fn took(&mut self, bytes: usize, now: Instant) {
        self.taken = self.taken.saturating_add(bytes);
        if self.taken >= ENOUGH {
            *self = Pace::new(now);
        }
    }

    /// Since when it has taken next to nothing, if that is long enough to be sent away.
    pub(super) fn stalled_since(&self, now: Instant) -> Option<Instant> {
        (now.saturating_duration_since(self.since) >= STALLED).then_some(self.since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_now_and_then_does_not_end_a_stall() {
        let start = Instant::now();
        let (mut dripping, mut slow) = (Pace::new(start), Pace::new(start));
        for second in 1..60 {
            let now = start + Duration::from_secs(second);
            dripping.took(100, now);
            slow.took(ENOUGH / 4, now);
            assert_eq!(slow.stalled_since(now), None, "{second}");
            let stalled = dripping.stalled_since(now);
            assert_eq!(stalled, (second >= STALLED.as_secs()).then_some(start), "{second}");
        }
    }
}
