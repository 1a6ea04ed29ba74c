//! A small ordered set of disjoint ranges of positions.
//!
//! Used for what has arrived out of order and for what the peer has selectively acknowledged. The set is a
//! sorted vector: the ranges are few, lookups are a binary search, and nothing is allocated once it has grown
//! to its working size. How many ranges may exist is the caller's bound, because a peer can ask for one per byte.

use crate::pos::Pos;
use alloc::vec::Vec;
use core::ops::Range;

/// Disjoint, non-adjacent, ascending ranges.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RangeSet {
    ranges: Vec<(Pos, Pos)>,
}

impl RangeSet {
    /// Whether the set is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// How many disjoint ranges there are.
    pub(crate) fn len(&self) -> usize {
        self.ranges.len()
    }

    /// The ranges in ascending order.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = Range<Pos>> + '_ {
        self.ranges.iter().map(|&(start, end)| start..end)
    }

    /// The lowest range.
    pub(crate) fn first(&self) -> Option<Range<Pos>> {
        self.ranges.first().map(|&(start, end)| start..end)
    }

    /// The highest range.
    pub(crate) fn last(&self) -> Option<Range<Pos>> {
        self.ranges.last().map(|&(start, end)| start..end)
    }

    /// The index of the first range that ends at or after `pos` (it contains, touches or follows it).
    fn lower_bound(&self, pos: Pos) -> usize {
        self.ranges.partition_point(|&(_, end)| end < pos)
    }

    /// The range that contains `pos`.
    pub(crate) fn containing(&self, pos: Pos) -> Option<Range<Pos>> {
        let index = self.ranges.partition_point(|&(_, end)| end <= pos);
        let &(start, end) = self.ranges.get(index)?;
        (start <= pos).then_some(start..end)
    }

    /// The first range that has something in common with `range`.
    pub(crate) fn overlapping(&self, range: &Range<Pos>) -> Option<Range<Pos>> {
        let index = self.ranges.partition_point(|&(_, end)| end <= range.start);
        let &(start, end) = self.ranges.get(index)?;
        (start < range.end && range.start < range.end).then_some(start..end)
    }

    /// Whether adding `range` would create a further disjoint range.
    pub(crate) fn would_add_a_range(&self, range: &Range<Pos>) -> bool {
        match self.ranges.get(self.lower_bound(range.start)) {
            Some(&(start, _)) => start > range.end,
            None => true,
        }
    }

    /// Adds `range`, merging what touches, and returns the merged range it became part of.
    pub(crate) fn insert(&mut self, range: Range<Pos>) -> Range<Pos> {
        if range.start >= range.end {
            return range;
        }
        let from = self.lower_bound(range.start);
        let upto = from + self.ranges[from..].partition_point(|&(start, _)| start <= range.end);
        if from == upto {
            self.ranges.insert(from, (range.start, range.end));
            return range;
        }
        let merged = (range.start.min(self.ranges[from].0), range.end.max(self.ranges[upto - 1].1));
        self.ranges[from] = merged;
        self.ranges.drain(from + 1..upto);
        merged.0..merged.1
    }

    /// Forgets everything below `pos`.
    pub(crate) fn remove_below(&mut self, pos: Pos) {
        let gone = self.ranges.partition_point(|&(_, end)| end <= pos);
        self.ranges.drain(..gone);
        if let Some(first) = self.ranges.first_mut() {
            first.0 = first.0.max(pos);
        }
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.ranges.clear();
    }

    /// The parts of `range` that are not in the set, ascending.
    pub(crate) fn gaps(&self, range: Range<Pos>) -> Gaps<'_> {
        let index = self.ranges.partition_point(|&(_, end)| end <= range.start);
        Gaps { rest: &self.ranges[index..], at: range.start, end: range.end }
    }

    /// Bytes of memory owned.
    pub(crate) fn memory(&self) -> usize {
        self.ranges.capacity() * size_of::<(Pos, Pos)>()
    }

    /// Gives back unused memory.
    pub(crate) fn shrink(&mut self) {
        self.ranges.shrink_to_fit();
    }
}

/// Iterator over the uncovered parts of a range; see [`RangeSet::gaps`].
#[derive(Debug)]
pub(crate) struct Gaps<'a> {
    rest: &'a [(Pos, Pos)],
    at: Pos,
    end: Pos,
}

impl Iterator for Gaps<'_> {
    type Item = Range<Pos>;

    fn next(&mut self) -> Option<Range<Pos>> {
        while self.at < self.end {
            let gap_start = self.at;
            let gap_end = match self.rest.split_first() {
                Some((&(start, end), rest)) if start < self.end => {
                    self.rest = rest;
                    self.at = end;
                    start
                }
                _ => {
                    self.at = self.end;
                    self.end
                }
            };
            if gap_start < gap_end {
                return Some(gap_start..gap_end);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;
    use std::vec::Vec;

    fn p(n: u64) -> Pos {
        Pos::INITIAL + n
    }

    #[test]
    fn touching_ranges_merge() {
        let mut set = RangeSet::default();
        assert_eq!(set.insert(p(10)..p(20)), p(10)..p(20));
        assert_eq!(set.insert(p(30)..p(40)), p(30)..p(40));
        assert_eq!(set.len(), 2);
        assert_eq!(set.insert(p(20)..p(30)), p(10)..p(40));
        assert_eq!(set.len(), 1);
        assert!(!set.would_add_a_range(&(p(40)..p(50))));
        assert!(set.would_add_a_range(&(p(41)..p(50))));
    }

    proptest! {
        #[test]
        fn behaves_like_a_set_of_bytes(
            inserts in prop::collection::vec((0u64..200, 0u64..30), 0..40),
            below in 0u64..220, query in (0u64..200, 0u64..60),
        ) {
            let mut set = RangeSet::default();
            let mut model = BTreeSet::new();
            for (start, len) in inserts {
                set.insert(p(start)..p(start + len));
                model.extend(start..start + len);
            }
            let bytes = |set: &RangeSet| -> Vec<u64> {
                set.iter().flat_map(|r| r.start.since(Pos::INITIAL)..r.end.since(Pos::INITIAL)).collect()
            };
            prop_assert_eq!(bytes(&set), model.iter().copied().collect::<Vec<_>>());
            for pair in set.ranges.windows(2) {
                prop_assert!(pair[0].1 < pair[1].0, "disjoint and not adjacent");
            }
            let (start, len) = query;
            let gaps: Vec<u64> = set.gaps(p(start)..p(start + len))
                .flat_map(|r| r.start.since(Pos::INITIAL)..r.end.since(Pos::INITIAL)).collect();
            prop_assert_eq!(gaps, (start..start + len).filter(|b| !model.contains(b)).collect::<Vec<_>>());
            prop_assert_eq!(set.containing(p(start)).is_some(), model.contains(&start));
            let first = (start..start + len).find(|b| model.contains(b));
            let overlap = set.overlapping(&(p(start)..p(start + len)));
            prop_assert_eq!(overlap.map(|r| r.start.max(p(start))), first.map(p));
            set.remove_below(p(below));
            prop_assert_eq!(bytes(&set), model.range(below..).copied().collect::<Vec<_>>());
        }
    }
}
