//! Packets on the wire, in the order in which they will arrive.
//!
//! Most packets arrive in the order in which they were sent; those wait in a queue, which costs the same however many there
//! are. Only those that would overtake others, or are overtaken, go into a heap.

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, VecDeque};

use transom_tcp::time::Instant;

use super::Delivered;

/// Deliveries by time, and at the same time in the order in which they were added.
pub(super) struct Deliveries<P> {
    in_order: VecDeque<Scheduled<P>>,
    others: BinaryHeap<Reverse<Scheduled<P>>>,
    next_number: u64,
}

struct Scheduled<P> {
    number: u64,
    delivered: Delivered<P>,
}

impl<P> Deliveries<P> {
    pub(super) fn new() -> Self {
        Deliveries { in_order: VecDeque::new(), others: BinaryHeap::new(), next_number: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.in_order.len() + self.others.len()
    }

    pub(super) fn push(&mut self, delivered: Delivered<P>) {
        let number = self.next_number;
        self.next_number += 1;
        let follows = self.in_order.back().is_none_or(|last| last.delivered.due <= delivered.due);
        let scheduled = Scheduled { number, delivered };
        if follows {
            self.in_order.push_back(scheduled);
        } else {
            self.others.push(Reverse(scheduled));
        }
    }

    /// When the next one arrives.
    pub(super) fn next_due(&self) -> Option<Instant> {
        let in_order = self.in_order.front().map(|scheduled| scheduled.delivered.due);
        let other = self.others.peek().map(|Reverse(scheduled)| scheduled.delivered.due);
        match (in_order, other) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        }
    }

    /// Takes out the next one.
    pub(super) fn pop(&mut self) -> Option<Delivered<P>> {
        let other_is_next = match (self.in_order.front(), self.others.peek()) {
            (Some(one), Some(Reverse(other))) => other.key() < one.key(),
            (None, other) => other.is_some(),
            (Some(_), None) => false,
        };
        let scheduled = if other_is_next {
            self.others.pop().map(|Reverse(scheduled)| scheduled)
        } else {
            self.in_order.pop_front()
        };
        scheduled.map(|scheduled| scheduled.delivered)
    }
}

impl<P> Scheduled<P> {
    fn key(&self) -> (Instant, u64) {
        (self.delivered.due, self.number)
    }
}

impl<P> Ord for Scheduled<P> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl<P> PartialOrd for Scheduled<P> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<P> PartialEq for Scheduled<P> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<P> Eq for Scheduled<P> {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn they_come_by_time_and_then_by_number(steps in prop::collection::vec((0u64..20, 0usize..3), 0..100)) {
            let mut deliveries = Deliveries::new();
            let mut model: Vec<(u64, usize)> = Vec::new();
            for (number, (due, pops)) in steps.into_iter().enumerate() {
                deliveries.push(Delivered {
                    packet: number,
                    len: 1,
                    index: number as u64,
                    sent: Instant::ZERO,
                    due: Instant::from_nanos(due),
                    duplicate: false,
                    marked: false,
                    bleach: Default::default(),
                    corruption: None,
                });
                model.push((due, number));
                model.sort_unstable();
                for _ in 0..pops {
                    let wanted = (!model.is_empty()).then(|| model.remove(0));
                    prop_assert_eq!(deliveries.next_due().map(Instant::as_nanos), wanted.map(|(due, _)| due));
                    prop_assert_eq!(deliveries.pop().map(|one| one.packet), wanted.map(|(_, number)| number));
                    prop_assert_eq!(deliveries.len(), model.len());
                }
            }
        }
    }
}
