//! A set of ranges of a sequence space.

use std::collections::BTreeMap;

/// Ranges that do not touch, by where they begin.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ranges(BTreeMap<i64, i64>);

impl Ranges {
    /// Adds a range, and says how many bytes of it were there already.
    pub(crate) fn add(&mut self, start: i64, end: i64) -> u64 {
        if start >= end {
            return 0;
        }
        let (mut low, mut high, mut covered) = (start, end, 0);
        // From the last one that begins at or before the end, backwards.
        while let Some((&from, &to)) = self.0.range(..=end).next_back() {
            if to < start {
                break;
            }
            covered += (to.min(end) - from.max(start)).max(0).unsigned_abs();
            (low, high) = (low.min(from), high.max(to));
            self.0.remove(&from);
        }
        self.0.insert(low, high);
        covered
    }
}

impl Ranges {
    /// Moves all of them.
    pub(crate) fn shift(&mut self, by: i64) {
        self.0 = self.0.iter().map(|(start, end)| (start + by, end + by)).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_join_and_count_what_was_there() {
        let mut ranges = Ranges::default();
        assert_eq!(ranges.add(10, 20), 0);
        assert_eq!(ranges.add(30, 40), 0);
        assert_eq!(ranges.add(20, 30), 0, "it touches both");
        assert_eq!(ranges.0.len(), 1);
        assert_eq!(ranges.add(5, 45), 30);
        assert_eq!(ranges.add(5, 45), 40);
        assert_eq!(ranges.add(7, 7), 0);
        assert_eq!(ranges.add(-9, -1), 0);
        assert_eq!(ranges.add(-2, 6), 2);
        assert_eq!(ranges.0, BTreeMap::from([(-9, 45)]));
    }
}
