//! What happens next.
//!
//! Everything in the network that does something by itself (a link that delivers, a host whose timer expires) is an
//! *entity*, and says when it wants to be called next. So the agenda is as long as the network is large, not as there are
//! packets on their way. Calls at the same time come in the order in which they were asked for.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use transom_tcp::time::Instant;

/// An entity's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entity(pub(super) u32);

/// When an entity is to be called, and how many calls had been asked for before.
type Call = (Instant, u64);

/// The calls to come.
#[derive(Debug, Default)]
pub(super) struct Agenda {
    calls: BinaryHeap<Reverse<(Call, Entity)>>,
    /// The call that counts, of each entity; others in the heap are out of date.
    current: Vec<Option<Call>>,
    asked: u64,
}

impl Agenda {
    /// An agenda for so many entities.
    pub(super) fn new(entities: usize) -> Self {
        Agenda { current: vec![None; entities], ..Agenda::default() }
    }

    /// Sees to it that `entity` is called at `at` at the latest. One that is called too early asks again.
    pub(super) fn call(&mut self, entity: Entity, at: Instant) {
        let Some(current) = self.current.get_mut(entity.0 as usize) else { return };
        if current.is_some_and(|(soon, _)| soon <= at) {
            return;
        }
        let call = (at, self.asked);
        self.asked += 1;
        *current = Some(call);
        self.calls.push(Reverse((call, entity)));
    }

    /// Takes out the next call that is not after `limit`.
    pub(super) fn next(&mut self, limit: Instant) -> Option<(Instant, Entity)> {
        loop {
            let &Reverse((call, entity)) = self.calls.peek()?;
            let current = self.current.get_mut(entity.0 as usize)?;
            if *current != Some(call) {
                self.calls.pop();
                continue;
            }
            if call.0 > limit {
                return None;
            }
            *current = None;
            self.calls.pop();
            return Some((call.0, entity));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
