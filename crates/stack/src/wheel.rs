//! A hierarchical timing wheel: setting and cancelling a timer costs the same with ten as with a million of them.
//!
//! Seven levels of 64 slots; a slot of the lowest level spans 2¹⁶ ns (66 µs), one of the highest 52 days. A timer is in
//! a slot of the lowest level that reaches it, and moves down as its time approaches. Deadlines are kept exactly: a
//! timer never fires early, and `Wheel::next` never names a time later than the earliest deadline (it may name an
//! earlier one, when far timers have to move down a level).

use alloc::vec::Vec;
use transom_tcp::time::Instant;

const SLOT_BITS: u32 = 6;
const SLOTS: usize = 1 << SLOT_BITS;
const LEVELS: usize = 7;
const TICK_BITS: u32 = 16;
const NONE: u32 = u32::MAX;

/// A timer's handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimerId(u32);

#[derive(Clone, Copy, Debug)]
struct Node<K> {
    deadline: Instant,
    key: Option<K>,
    prev: u32,
    next: u32,
    slot: u16,
}

/// Timers that carry a key of type `K`.
#[derive(Debug)]
pub(crate) struct Wheel<K> {
    nodes: Vec<Node<K>>,
    free: u32,
    heads: [u32; LEVELS * SLOTS],
    occupied: [u64; LEVELS],
    /// The tick up to which timers have fired or moved down.
    tick: u64,
}

impl<K: Copy> Wheel<K> {
    /// An empty wheel that starts at `now`.
    pub(crate) fn new(now: Instant) -> Self {
        Wheel {
            nodes: Vec::new(),
            free: NONE,
            heads: [NONE; LEVELS * SLOTS],
            occupied: [0; LEVELS],
            tick: now.as_nanos() >> TICK_BITS,
        }
    }

    /// Sets a timer.
    pub(crate) fn insert(&mut self, deadline: Instant, key: K) -> TimerId {
        // Four and a half years are as good as for ever, and keep within the wheel's reach.
        let reach = Instant::from_nanos((self.tick << TICK_BITS).saturating_add(1 << 57));
        let deadline = deadline.min(reach);
        let node = Node { deadline, key: Some(key), prev: NONE, next: NONE, slot: 0 };
        let index = if self.free == NONE {
            self.nodes.push(node);
            (self.nodes.len() - 1) as u32
        } else {
            let index = self.free;
            self.free = self.nodes[index as usize].next;
            self.nodes[index as usize] = node;
            index
        };
        self.link(index);
        TimerId(index)
    }

    /// Cancels a timer. A handle whose timer has fired or been cancelled must not be used again.
    pub(crate) fn remove(&mut self, id: TimerId) {
        if self.nodes.get(id.0 as usize).is_some_and(|node| node.key.is_some()) {
            self.unlink(id.0);
            self.release(id.0);
        }
    }

    fn release(&mut self, index: u32) {
        let node = &mut self.nodes[index as usize];
        node.key = None;
        node.next = self.free;
        self.free = index;
    }

    fn place(&self, deadline: Instant) -> (usize, usize) {
        let tick = (deadline.as_nanos() >> TICK_BITS).max(self.tick);
        // The highest bit in which the deadline differs from now says how far away it is.
        let distance = 63 - ((tick ^ self.tick) | 1).leading_zeros();
        let level = ((distance / SLOT_BITS) as usize).min(LEVELS - 1);
        let slot = (tick >> (level as u32 * SLOT_BITS)) as usize % SLOTS;
        (level, slot)
    }

    fn link(&mut self, index: u32) {
        let (level, slot) = self.place(self.nodes[index as usize].deadline);
        let at = level * SLOTS + slot;
        let head = self.heads[at];
        let node = &mut self.nodes[index as usize];
        node.slot = at as u16;
        node.prev = NONE;
        node.next = head;
        if head != NONE {
            self.nodes[head as usize].prev = index;
        }
        self.heads[at] = index;
        self.occupied[level] |= 1 << slot;
    }

    fn unlink(&mut self, index: u32) {
        let Node { prev, next, slot, .. } = self.nodes[index as usize];
        if prev == NONE {
            self.heads[slot as usize] = next;
            if next == NONE {
                self.occupied[slot as usize / SLOTS] &= !(1 << (slot as usize % SLOTS));
            }
        } else {
            self.nodes[prev as usize].next = next;
        }
        if next != NONE {
            self.nodes[next as usize].prev = prev;
        }
    }

    /// The first occupied slot at or after the present one on `level`, as the tick at which it begins.
    fn first_slot(&self, level: usize) -> Option<(usize, u64)> {
        let shift = level as u32 * SLOT_BITS;
        let current = (self.tick >> shift) as u32 % SLOTS as u32;
        let ahead = self.occupied[level].rotate_right(current);
        if ahead == 0 {
            return None;
        }
        let steps = u64::from(ahead.trailing_zeros());
        let slot = (u64::from(current) + steps) as usize % SLOTS;
        let begins = ((self.tick >> shift) + steps) << shift;
        Some((slot, begins.max(self.tick)))
    }

    /// A time at which [`Wheel::pop`] should be asked: no later than the earliest deadline.
    pub(crate) fn next(&self) -> Option<Instant> {
        let mut earliest: Option<Instant> = None;
        for level in 0..LEVELS {
            let Some((slot, begins)) = self.first_slot(level) else { continue };
            let begins = Instant::from_nanos(begins << TICK_BITS);
            let at = if level == 0 { self.first_deadline(slot).unwrap_or(begins) } else { begins };
            earliest = Some(earliest.map_or(at, |old| old.min(at)));
        }
        earliest
    }

    fn first_deadline(&self, slot: usize) -> Option<Instant> {
        let mut first = None;
        let mut index = self.heads[slot];
        while index != NONE {
            let node = &self.nodes[index as usize];
            first = Some(first.map_or(node.deadline, |old: Instant| old.min(node.deadline)));
            index = node.next;
        }
        first
    }

    /// Takes one timer whose deadline has passed by `now`.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<(Instant, K)> {
        let target = now.as_nanos() >> TICK_BITS;
        loop {
            // Higher levels first: what stands there may belong before what stands below.
            let due = (0..LEVELS)
                .filter_map(|level| {
                    self.first_slot(level).map(|(slot, begins)| (begins, level, slot))
                })
                .min_by_key(|&(begins, level, _)| (begins, core::cmp::Reverse(level)));
            let Some((begins, level, slot)) = due.filter(|&(begins, ..)| begins <= target) else {
                self.tick = self.tick.max(target);
                return None;
            };
            self.tick = self.tick.max(begins);
            if level > 0 {
                self.cascade(level * SLOTS + slot);
                continue;
            }
            if let Some(index) = self.due_in(slot, now) {
                let Node { deadline, key, .. } = self.nodes[index as usize];
                self.unlink(index);
                self.release(index);
                return key.map(|key| (deadline, key));
            }
            if begins == target {
                return None; // the rest of this slot lies in the future
            }
            self.tick += 1;
        }
    }

    /// A due timer in a slot of the lowest level, the first in the slot. Among timers that are all due the order does
    /// not matter, and a search for the earliest would make a crowded slot quadratic.
    fn due_in(&self, slot: usize, now: Instant) -> Option<u32> {
        let mut index = self.heads[slot];
        while index != NONE {
            let node = &self.nodes[index as usize];
            if node.deadline <= now {
                return Some(index);
            }
            index = node.next;
        }
        None
    }

    /// Moves the timers of a slot to where they belong now.
    fn cascade(&mut self, at: usize) {
        let mut index = self.heads[at];
        self.heads[at] = NONE;
        self.occupied[at / SLOTS] &= !(1 << (at % SLOTS));
        while index != NONE {
            let next = self.nodes[index as usize].next;
            self.link(index);
            index = next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;
    use std::vec::Vec;
    use transom_tcp::time::Duration;

    #[test]
    fn far_and_near_timers_fire_in_order_and_never_early() {
        let start = Instant::from_secs(1000);
        let mut wheel = Wheel::new(start);
        let spans =
            [1u64, 70_000, 5_000_000, 3_000_000_000, 86_400_000_000_000, 40 * 86_400_000_000_000];
        for (i, span) in spans.into_iter().enumerate().rev() {
            wheel.insert(start + Duration::from_nanos(span), i);
        }
        let mut fired = Vec::new();
        let mut wakes = 0;
        while let Some(at) = wheel.next() {
            wakes += 1;
            while let Some((deadline, key)) = wheel.pop(at) {
                assert!(deadline <= at);
                fired.push(key);
            }
        }
        assert_eq!(fired, [0, 1, 2, 3, 4, 5]);
        assert!(wakes < 40, "{wakes} wake-ups");
    }

    #[derive(Clone, Debug)]
    enum Step {
        Insert(u64),
        Remove(usize),
        Advance(u64),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            5 => (0u64..36, 0u64..1000).prop_map(|(bits, x)| Step::Insert((1 << bits) + x)),
            1 => (0usize..50).prop_map(Step::Remove),
            3 => (0u64..34, 0u64..1000).prop_map(|(bits, x)| Step::Advance((1 << bits) + x)),
        ]
    }

    proptest! {
        #[test]
        fn behaves_like_a_sorted_set(steps in prop::collection::vec(step(), 1..200)) {
            let mut now = Instant::from_secs(5);
            let mut wheel = Wheel::new(now);
            let mut model: BTreeSet<(Instant, usize)> = BTreeSet::new();
            let mut ids = Vec::new();
            for (key, step) in steps.into_iter().enumerate() {
                match step {
                    Step::Insert(span) => {
                        let deadline = now + Duration::from_nanos(span);
                        ids.push(Some((wheel.insert(deadline, key), deadline, key)));
                        model.insert((deadline, key));
                    }
                    Step::Remove(nth) => {
                        if let Some(slot) = ids.get_mut(nth)
                            && let Some((id, deadline, key)) = slot.take()
                            && model.remove(&(deadline, key))
                        {
                            wheel.remove(id);
                        }
                    }
                    Step::Advance(span) => {
                        now += Duration::from_nanos(span);
                        let mut fired = Vec::new();
                        while let Some((deadline, key)) = wheel.pop(now) {
                            fired.push((deadline, key));
                        }
                        fired.sort();
                        let due: Vec<_> = model.iter().copied().filter(|&(at, _)| at <= now).collect();
                        prop_assert_eq!(&fired, &due);
                        for entry in due {
                            model.remove(&entry);
                            for slot in &mut ids {
                                if slot.is_some_and(|(_, at, key)| (at, key) == entry) { *slot = None; }
                            }
                        }
                    }
                }
                let set = wheel.nodes.iter().filter(|node| node.key.is_some()).count();
                prop_assert_eq!(set, model.len());
                let first = model.first().map(|&(at, _)| at);
                prop_assert_eq!(wheel.next().is_some(), first.is_some());
                if let (Some(next), Some(first)) = (wheel.next(), first) {
                    prop_assert!(next <= first, "{:?} is after {:?}", next, first);
                }
            }
        }
    }
}
