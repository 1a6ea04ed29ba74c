//! The agenda: future events in their order.
//!
//! Everything in the network that does something by itself (a link that delivers, a host whose timer expires) is an
//! *entity*, and says when it wants to be called next. So the agenda is as long as the network is large, not as there are
//! packets on their way. Calls at the same time come in the order in which they were asked for.
//!
//! It is a calendar (Brown, "Calendar Queues: A Fast O(1) Priority Queue Implementation for the Simulation Event Set Problem",
//! 1988): a ring of days, of which only the present one is kept sorted. A network of ten thousand hosts has a hundred thousand
//! calls to come, and a heap of them would be walked through memory from top to bottom for each event.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use transom_tcp::time::Instant;

/// An entity's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entity(pub(super) u32);

/// When an entity is to be called, and its place among the calls for that time.
type Call = (Instant, u64);

/// The distance between the places of two calls. There is room between them for calls that other parts of the network ask for.
pub(super) const STEP: u64 = 1 << 24;

/// A day has this power of two nanoseconds: 131 µs, in which a fast link delivers some tens of packets.
const DAY_BITS: u32 = 17;
/// Days in the ring, which are half a second.
const DAYS: u64 = 4096;
const WORDS: usize = (DAYS / 64) as usize;

/// The calls to come.
#[derive(Debug)]
pub(super) struct Agenda {
    /// The present day's, and those of days gone by that nobody has looked at.
    today: BinaryHeap<Reverse<(Call, Entity)>>,
    day: u64,
    /// The days after it, by their number modulo the ring's length, and which of them have calls.
    days: Vec<Vec<Reverse<(Call, Entity)>>>,
    occupied: [u64; WORDS],
    /// Calls further in the future.
    later: BinaryHeap<Reverse<(Call, Entity)>>,
    /// The call that counts, of each entity; others are out of date.
    current: Vec<Option<Call>>,
    /// The place of the next call.
    asked: u64,
}

impl Agenda {
    /// An agenda for so many entities.
    pub(super) fn new(entities: usize) -> Self {
        Agenda {
            today: BinaryHeap::new(),
            day: 0,
            days: (0..DAYS).map(|_| Vec::new()).collect(),
            occupied: [0; WORDS],
            later: BinaryHeap::new(),
            current: vec![None; entities],
            asked: STEP,
        }
    }

    /// Sees to it that `entity` is called at `at` at the latest. One that is called too early asks again. False if it will be called before anyway.
    pub(super) fn call(&mut self, entity: Entity, at: Instant) -> bool {
        let Some(current) = self.current.get(entity.0 as usize) else { return false };
        if current.is_some_and(|(soon, _)| soon <= at) {
            return false;
        }
        let place = self.asked;
        self.asked += STEP;
        self.call_in_place(entity, (at, place));
        true
    }

    /// How many entities there are.
    pub(super) fn entities(&self) -> usize {
        self.current.len()
    }

    /// The place of the last call that was asked for.
    pub(super) fn last_place(&self) -> u64 {
        self.asked - STEP
    }

    /// Leaves a gap behind the calls asked for so far.
    pub(super) fn leave_a_gap(&mut self) {
        self.asked += STEP;
    }

    /// Calls `entity` then and in that place, instead of when it asked for.
    pub(super) fn call_in_place(&mut self, entity: Entity, call: Call) {
        let Some(current) = self.current.get_mut(entity.0 as usize) else { return };
        *current = Some(call);
        let at = call.0;
        let (entry, day) = (Reverse((call, entity)), day_of(at));
        if day <= self.day {
            self.today.push(entry);
        } else if day - self.day < DAYS {
            let place = (day % DAYS) as usize;
            self.days[place].push(entry);
            self.occupied[place / 64] |= 1 << (place % 64);
        } else {
            self.later.push(entry);
        }
    }

    /// When the next call is.
    pub(super) fn peek(&mut self) -> Option<Instant> {
        loop {
            let Some(&Reverse((call, entity))) = self.today.peek() else {
                self.advance_to_day(u64::MAX)?;
                continue;
            };
            if self.current.get(entity.0 as usize).copied().flatten() == Some(call) {
                return Some(call.0);
            }
            self.today.pop();
        }
    }

    /// Takes out the next call that is not after `limit`.
    pub(super) fn next(&mut self, limit: Instant) -> Option<(Instant, Entity)> {
        loop {
            let Some(&Reverse((call, entity))) = self.today.peek() else {
                self.advance_to_day(day_of(limit))?;
                continue;
            };
            let current = self.current.get_mut(entity.0 as usize)?;
            if *current != Some(call) {
                self.today.pop();
                continue;
            }
            if call.0 > limit {
                return None;
            }
            *current = None;
            self.today.pop();
            return Some((call.0, entity));
        }
    }

    /// Goes on to the next day with calls, if it is not after `last`.
    fn advance_to_day(&mut self, last: u64) -> Option<()> {
        let later = self.later.peek().map(|Reverse(((at, _), _))| day_of(*at));
        let next = match (self.next_in_ring(), later) {
            (Some(one), Some(other)) => one.min(other),
            (one, other) => one.or(other)?,
        };
        if next > last {
            return None;
        }
        self.day = next;
        let place = (next % DAYS) as usize;
        if self.occupied[place / 64] & (1 << (place % 64)) != 0 {
            self.occupied[place / 64] &= !(1 << (place % 64));
            self.today.extend(self.days[place].drain(..));
        }
        while let Some(entry) = self.later.peek()
            && day_of(entry.0.0.0) <= next
        {
            self.today.extend(self.later.pop());
        }
        Some(())
    }

    /// The next day in the ring that has calls.
    fn next_in_ring(&self) -> Option<u64> {
        let first = ((self.day + 1) % DAYS) as usize;
        // The word in which the ring begins comes twice: its upper part first, its lower part at the end.
        let words = (0..=WORDS).map(|step| {
            let word = (first / 64 + step) % WORDS;
            let bits = self.occupied[word];
            let mask = u64::MAX << (first % 64);
            match step {
                0 => (word, bits & mask),
                WORDS => (word, bits & !mask),
                _ => (word, bits),
            }
        });
        let (word, bits) = words.into_iter().find(|(_, bits)| *bits != 0)?;
        let place = word as u64 * 64 + u64::from(bits.trailing_zeros());
        let ahead = (place + DAYS - self.day % DAYS) % DAYS;
        Some(self.day + ahead)
    }
}

fn day_of(at: Instant) -> u64 {
    at.as_nanos() >> DAY_BITS
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    #[test]
    fn by_time_and_then_in_the_order_asked_for() {
        let mut agenda = Agenda::new(4);
        for (entity, nanos) in [(3, 7), (0, 5), (2, 7), (1, 9)] {
            agenda.call(Entity(entity), at(nanos));
        }
        let calls: Vec<_> =
            std::iter::from_fn(|| agenda.next(at(8))).map(|(_, entity)| entity.0).collect();
        assert_eq!(calls, [0, 3, 2]);
        assert_eq!(agenda.next(at(9)), Some((at(9), Entity(1))));
    }

    #[test]
    fn the_earliest_of_an_entitys_calls_counts() {
        let mut agenda = Agenda::new(1);
        for nanos in [9, 5, 7] {
            agenda.call(Entity(0), at(nanos));
        }
        assert_eq!(agenda.next(at(100)), Some((at(5), Entity(0))));
        assert_eq!(agenda.next(at(100)), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn like_a_list_that_is_searched(
            steps in prop::collection::vec((0u32..6, 0u32..34, any::<u32>(), 0usize..4), 1..200),
        ) {
            let mut agenda = Agenda::new(6);
            let mut model: Vec<Option<(Instant, u64)>> = vec![None; 6];
            let mut now = Instant::ZERO;
            for (asked, (entity, magnitude, fraction, calls)) in (0u64..).zip(steps) {
                // From nanoseconds to minutes ahead.
                let ahead = (u64::from(fraction) << magnitude) >> 32;
                let when = at(now.as_nanos() + ahead);
                agenda.call(Entity(entity), when);
                let slot = &mut model[entity as usize];
                if slot.is_none_or(|(soon, _)| soon > when) {
                    *slot = Some((when, asked));
                }
                let limit = at(now.as_nanos() + (1 << 30));
                for _ in 0..calls {
                    let first = (0u32..).zip(&model).filter_map(|(entity, call)| Some(((*call)?, entity))).min();
                    let wanted = first.filter(|((when, _), _)| *when <= limit);
                    // Looking ahead changes nothing.
                    if asked % 2 == 0 {
                        prop_assert_eq!(agenda.peek(), first.map(|((when, _), _)| when));
                    }
                    let got = agenda.next(limit);
                    prop_assert_eq!(got, wanted.map(|((when, _), entity)| (when, Entity(entity))));
                    let Some(((when, _), entity)) = wanted else { break };
                    model[entity as usize] = None;
                    now = when;
                }
            }
        }
    }
}
