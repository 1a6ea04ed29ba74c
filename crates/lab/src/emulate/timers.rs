//! The timers of applications on kernel hosts.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use transom_tcp::time::Instant;

/// The calls to come, in the order of time and then of asking.
#[derive(Debug, Default)]
pub(super) struct Timers {
    calls: BinaryHeap<Reverse<(Instant, u64, usize)>>,
    asked: u64,
}

impl Timers {
    pub(super) fn call_at(&mut self, at: Instant, application: usize) {
        self.calls.push(Reverse((at, self.asked, application)));
        self.asked += 1;
    }

    /// When the next call is.
    pub(super) fn next(&self) -> Option<Instant> {
        self.calls.peek().map(|Reverse((at, ..))| *at)
    }

    /// Takes out the next call that is due, with the time for which it was asked.
    pub(super) fn take(&mut self, now: Instant) -> Option<(Instant, usize)> {
        if self.next()? > now {
            return None;
        }
        self.calls.pop().map(|Reverse((at, _, application))| (at, application))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_come_in_the_order_of_time_and_then_of_asking() {
        let mut timers = Timers::default();
        for (millis, application) in [(5, 0), (3, 1), (5, 2), (9, 3)] {
            timers.call_at(Instant::from_millis(millis), application);
        }
        let taken: Vec<_> = std::iter::from_fn(|| timers.take(Instant::from_millis(5)))
            .map(|(_, one)| one)
            .collect();
        assert_eq!(taken, [1, 0, 2]);
        assert_eq!(timers.next(), Some(Instant::from_millis(9)));
    }
}
