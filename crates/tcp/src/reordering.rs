//! RR, robustness against reordering: how many duplicates a path that reorders brings without a loss (Blanton, Allman: "On Making TCP More Robust
//! to Packet Reordering", CCR 2002; in icTCP, section 5.4.3, as an extension).
//!
//! The length of a reordering is the number of duplicates that arrived while its segment was the next expected one. It is kept for every position
//! with duplicates. A report (RFC 2883) of a second copy of the segment at such a position shows a spurious retransmission. From then on, one
//! duplicate more than that means a loss, if this is an increase. The threshold is never more than a share of the window, so that duplicates can
//! still reveal a loss. It is reset after a timeout, which a threshold that is too large causes.
//!
//! Differences: Blanton and Allman compare several ways to raise the threshold; this one uses the measured length. [Undo](crate::undo) restores
//! the window after a spurious reduction; this module does not.

use crate::arguments::Fraction;
use crate::pos::Pos;
use alloc::collections::VecDeque;

/// The most positions that are remembered; only those with duplicates are.
const REMEMBERED: usize = 128;

/// The threshold is at most this share of cwnd, unless another is chosen: nine tenths, as in the papers.
pub(crate) const CAP: Fraction = Fraction::from_millionths(900_000);

/// The threshold for `learnt`: within the share `cap` of a window of `cwnd` bytes in segments of `mss`, and not below `usual`.
pub(crate) fn capped(cap: Fraction, learnt: u32, cwnd: u64, mss: u64, usual: u32) -> u32 {
    let most = cap.of(cwnd) / mss.max(1);
    learnt.min(u32::try_from(most).unwrap_or(u32::MAX)).max(usual)
}

/// The reordering that a connection has learned of; it begins with the first duplicate.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reordering {
    /// The number of duplicates for each next expected position; in their order.
    history: VecDeque<(Pos, u32)>,
    threshold: Option<u32>,
}

impl Reordering {
    /// A duplicate, while `next` is the next position that the peer expects.
    pub(crate) fn on_duplicate(&mut self, next: Pos) {
        match self.history.back_mut() {
            Some((last, duplicates)) if *last == next => *duplicates = duplicates.saturating_add(1),
            _ => {
                if self.history.len() == REMEMBERED {
                    self.history.pop_front();
                }
                self.history.push_back((next, 1));
            }
        }
    }

    /// The peer reports that the segment at `start` arrived twice; `usual` duplicates mean a loss where nothing is known.
    pub(crate) fn on_reported(&mut self, start: Pos, usual: u32) {
        let entry = self.history.iter().rev().find(|(position, _)| *position == start);
        let length = entry.map(|(_, duplicates)| *duplicates).filter(|&length| length >= usual);
        self.threshold = self.threshold.max(length.map(|length| length.saturating_add(1)));
    }

    /// The retransmission timer expired.
    pub(crate) fn on_timeout(&mut self) {
        self.threshold = None;
    }

    /// Nothing has moved for long: no report is expected any more.
    pub(crate) fn release(&mut self) {
        self.history = VecDeque::new();
    }

    /// How many duplicates it takes, by what was learnt; nothing if that is not known, or not any more.
    pub(crate) fn threshold(&self) -> Option<u32> {
        self.threshold
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(offset: u64) -> Pos {
        Pos::FIRST_DATA + offset
    }

    fn reordered(learnt: &mut Reordering, position: Pos, duplicates: u32) {
        (0..duplicates).for_each(|_| learnt.on_duplicate(position));
    }

    /// Five duplicates: six from then on. Fewer later do not lower it, and what was within the usual three teaches nothing.
    #[test]
    fn one_more_than_the_longest() {
        let mut learnt = Reordering::default();
        reordered(&mut learnt, at(0), 2);
        learnt.on_reported(at(0), 3);
        assert_eq!(learnt.threshold(), None);
        reordered(&mut learnt, at(1000), 5);
        reordered(&mut learnt, at(9000), 4);
        learnt.on_reported(at(1000), 3);
        learnt.on_reported(at(9000), 3);
        assert_eq!(learnt.threshold(), Some(6));
        // Of this position nobody knows anything: a lie, or long ago.
        learnt.on_reported(at(5000), 3);
        assert_eq!(learnt.threshold(), Some(6));
        learnt.on_timeout();
        assert_eq!(learnt.threshold(), None);
    }

    /// 0.9 of ten segments are nine; with three segments it would be two, and three is the least.
    #[test]
    fn no_more_than_a_share_of_the_window() {
        let most = |learnt, segments: u64| capped(CAP, learnt, segments * 1000, 1000, 3);
        assert_eq!([most(6, 10), most(12, 10), most(12, 3)], [6, 9, 3]);
        assert_eq!(capped(CAP, u32::MAX, u64::MAX, 0, 3), u32::MAX);
    }

    #[test]
    fn the_memory_of_reordering_is_bounded() {
        let mut learnt = Reordering::default();
        for n in 0..1000 {
            reordered(&mut learnt, at(1000 * n), 4);
        }
        assert_eq!(learnt.history.len(), REMEMBERED);
        learnt.on_reported(at(0), 3);
        assert_eq!(learnt.threshold(), None);
        learnt.on_reported(at(1000 * 999), 3);
        assert_eq!(learnt.threshold(), Some(5));
    }
}
