//! Holes: parts of the stream that never come, and how a receiver handles them.
//!
//! An ordinary receiver waits for missing data without a limit. There are two other ways. One needs the sender: when both ends have agreed
//! on partial reliability ([`crate::persistence`]), the sender announces what it will not send any more. The other needs only the receiver:
//! after some time it acknowledges data that is missing. Its sender, any TCP at all, assumes that it has arrived.
//!
//! In both cases the reader learns of each hole at its position, before it gets any data from behind. Later data for the hole is dropped
//! like other old data. It is not reported as a duplicate (RFC 2883), because it arrived only once. A sender that undoes reductions for
//! such reports would take a real loss for a spurious one.
//!
//! # What a receiver's impatience does to the sender's congestion control
//!
//! A loss that the sender never hears of makes it no slower. So a hole is given up only
//! - when something beyond it has arrived, never at the end of what has;
//! - after the time of [`HoleChoice::Skip`], which should be longer than a round trip. By then the sender has had the time to find and repair the loss.
//!   So the data that is given up was lost twice, or is late by that much;
//! - and after three more segments with data have arrived, each of which was answered by a duplicate acknowledgement at once: three
//!   duplicates are what makes any sender reduce its window (RFC 5681 section 3.2). Where fewer follow, the hole stays a second longer, the
//!   least retransmission timeout of RFC 6298, so that the sender's timer finds the loss.
//!
//! The acknowledgement that moves over a hole echoes the latest timestamp that has arrived (RFC 7323). That of the last segment in order
//! would look as if the original had arrived after all (RFC 3522).

use crate::pos::Pos;
use crate::time::{Duration, Instant};
use alloc::collections::VecDeque;
use core::ops::Range;

/// A receiver's handling of missing data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HoleChoice {
    /// It waits.
    #[default]
    Wait,
    /// It accepts holes that the sender announces.
    Accept,
    /// The same, and with any other sender it waits no longer than this, from when something beyond the hole has arrived.
    Skip(Duration),
}

/// A part of the stream that never comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Hole {
    /// Its place: bytes of the stream before it, holes included.
    pub offset: u64,
    /// Its length in bytes.
    pub len: u64,
}

impl From<Range<Pos>> for Hole {
    fn from(range: Range<Pos>) -> Self {
        Hole { offset: range.start.stream_offset(), len: range.end.since(range.start) }
    }
}

/// Segments beyond a hole after which the sender must have detected it (DupThresh of RFC 5681).
const LATER: u64 = 3;
/// How much longer a hole stays beyond which fewer have arrived (RFC 6298 section 2.4).
const LONGER: Duration = Duration::from_secs(1);
/// The most holes whose ages are known one by one; beyond that they share the age of the youngest.
const MOST: usize = 1024;

/// A hole, or several that were found together.
#[derive(Clone, Copy, Debug)]
struct Missing {
    /// Something has arrived here, and nothing directly before it had.
    upto: Pos,
    since: Instant,
    /// Segments that had arrived early then, this one included.
    arrivals: u64,
}

/// How old the holes are.
#[derive(Debug)]
pub(crate) struct Ages {
    patience: Duration,
    /// By position, and so by age.
    missing: VecDeque<Missing>,
    /// One past the highest position that has arrived.
    highest: Pos,
    /// Segments that have arrived early.
    arrivals: u64,
}

impl Ages {
    pub(crate) fn new(patience: Duration) -> Self {
        let missing = VecDeque::new();
        Ages { patience, missing, highest: Pos::FIRST_DATA, arrivals: 0 }
    }

    /// Data or the FIN at `range` has arrived in `segments` segments. `next` is RCV.NXT after it.
    pub(crate) fn on_arrival(&mut self, now: Instant, range: Range<Pos>, segments: u64, next: Pos) {
        if range.start > next {
            self.arrivals = self.arrivals.saturating_add(segments);
            if range.start > self.highest {
                let young = Missing { upto: range.start, since: now, arrivals: self.arrivals };
                if self.missing.len() >= MOST {
                    self.missing.pop_back();
                }
                self.missing.push_back(young);
            }
        }
        self.highest = self.highest.max(range.end).max(next);
        self.forget_below(next);
    }

    /// RCV.NXT has moved to `next`.
    pub(crate) fn forget_below(&mut self, next: Pos) {
        while self.missing.pop_front_if(|missing| missing.upto <= next).is_some() {}
    }

    fn is_signalled(&self, missing: &Missing) -> bool {
        self.arrivals - missing.arrivals >= LATER
    }

    fn end_of_patience(&self, missing: &Missing) -> Instant {
        let end = missing.since + self.patience;
        if self.is_signalled(missing) { end } else { end + LONGER }
    }

    /// When to give up the first hole.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.missing.front().map(|missing| self.end_of_patience(missing))
    }

    /// Up to where the stream is given up at `now`.
    pub(crate) fn overdue(&self, now: Instant) -> Option<Pos> {
        let old = self.missing.iter().take_while(|missing| self.end_of_patience(missing) <= now);
        old.last().map(|missing| missing.upto)
    }

    /// Bytes of memory owned.
    pub(crate) fn memory(&self) -> usize {
        self.missing.capacity() * size_of::<Missing>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn p(n: u64) -> Pos {
        Pos::FIRST_DATA + n
    }

    fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    fn ages(after: u64) -> Ages {
        Ages::new(Duration::from_millis(after))
    }

    #[test]
    fn a_hole_is_given_up_when_it_is_old_and_the_sender_knows() {
        let mut ages = ages(100);
        ages.on_arrival(at(0), p(0)..p(100), 1, p(100));
        assert_eq!(ages.deadline(), None);
        // 100 to 200 is missing; two segments follow, then a third.
        ages.on_arrival(at(10), p(200)..p(300), 1, p(100));
        ages.on_arrival(at(11), p(300)..p(400), 1, p(100));
        ages.on_arrival(at(12), p(400)..p(500), 1, p(100));
        assert_eq!(ages.deadline(), Some(at(1110)), "two duplicates after the first");
        assert_eq!(ages.overdue(at(500)), None);
        ages.on_arrival(at(13), p(500)..p(600), 1, p(100));
        assert_eq!(ages.deadline(), Some(at(110)));
        assert_eq!(ages.overdue(at(109)), None);
        assert_eq!(ages.overdue(at(110)), Some(p(200)));
        // A second hole, found at 50 and known to the sender at 60.
        ages.on_arrival(at(50), p(700)..p(800), 1, p(100));
        ages.on_arrival(at(60), p(800)..p(1100), 3, p(100));
        assert_eq!(ages.overdue(at(149)), Some(p(200)));
        assert_eq!(ages.overdue(at(150)), Some(p(700)));
        // Repaired in time.
        ages.on_arrival(at(70), p(100)..p(200), 1, p(600));
        assert_eq!(ages.deadline(), Some(at(150)));
        ages.on_arrival(at(71), p(600)..p(700), 1, p(1100));
        assert_eq!(ages.deadline(), None);
    }

    #[test]
    fn a_partly_filled_hole_keeps_its_age() {
        let mut ages = ages(100);
        ages.on_arrival(at(0), p(300)..p(700), 4, p(0));
        ages.on_arrival(at(50), p(100)..p(200), 1, p(0));
        assert_eq!(ages.overdue(at(100)), None, "only one later segment");
        ages.on_arrival(at(51), p(700)..p(900), 2, p(0));
        assert_eq!(ages.overdue(at(100)), Some(p(300)));
    }

    #[test]
    fn memory_is_bounded_whatever_arrives() {
        let mut ages = ages(100);
        for i in 1..100_000u64 {
            ages.on_arrival(at(i), p(2 * i)..p(2 * i + 1), 1, p(0));
        }
        assert!(ages.memory() <= MOST * size_of::<Missing>());
        assert_eq!(ages.overdue(at(200_000)), Some(p(2 * 99_999)));
    }
}
