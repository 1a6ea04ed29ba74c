//! Selects the flows to report.

/// The `count` items with the smallest keys, in order. With zero no item is visited: a request for counts only, as from Prometheus,
/// must not delay packets for a scan of the table. No more than twice `count` are kept at any time.
pub(crate) fn smallest<T, K: Ord>(
    items: impl IntoIterator<Item = T>,
    count: usize,
    key: impl Fn(&T) -> K,
) -> Vec<T> {
    let mut kept = Vec::new();
    if count == 0 {
        return kept;
    }
    for item in items {
        kept.push(item);
        if kept.len() == count.saturating_mul(2) {
            // The smaller half comes to the front.
            kept.select_nth_unstable_by_key(count - 1, &key);
            kept.truncate(count);
        }
    }
    kept.sort_by_key(key);
    kept.truncate(count);
    kept
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn nobody_is_visited_for_nothing() {
        let visited = Cell::new(0);
        let items = || (0..100).inspect(|_| visited.set(visited.get() + 1));
        assert!(smallest(items(), 0, |item| *item).is_empty());
        assert_eq!(visited.get(), 0);
        assert_eq!(smallest(items(), 1, |item| *item), [0]);
        assert_eq!(visited.get(), 100);
    }

    #[test]
    fn the_smallest_are_found_in_order() {
        for len in [0u64, 1, 2, 3, 7, 100, 1000] {
            let items: Vec<_> = (0..len).map(|number| number * 7919 % 1009).collect();
            let mut sorted = items.clone();
            sorted.sort_unstable();
            for count in [1, 2, 3, 10, 500, 999, 1000, 1001, usize::MAX] {
                let expected = &sorted[..sorted.len().min(count)];
                assert_eq!(
                    smallest(items.clone(), count, |item| *item),
                    expected,
                    "{count} of {len}"
                );
            }
        }
    }

    /// An item that is counted as long as it is there.
    struct Counted<'a>(&'a Cell<usize>, u32);

    impl Drop for Counted<'_> {
        fn drop(&mut self) {
            self.0.set(self.0.get() - 1);
        }
    }

    #[test]
    fn few_are_kept_at_any_time() {
        let (there, most) = (Cell::new(0), Cell::new(0));
        let items = (0..1000).rev().map(|number| {
            there.set(there.get() + 1);
            most.set(most.get().max(there.get()));
            Counted(&there, number)
        });
        let kept = smallest(items, 10, |item| item.1);
        assert_eq!(kept.iter().map(|item| item.1).collect::<Vec<_>>(), (0..10).collect::<Vec<_>>());
        assert!(most.get() <= 20, "{} at a time", most.get());
    }
}
