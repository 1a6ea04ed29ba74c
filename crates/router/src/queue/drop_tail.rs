//! Drop-tail: a packet that arrives at a full queue is dropped.
//!
//! The default queue of every router. RFC 7567, section 2, lists its problems: standing queues, lock-out, and
//! synchronised losses.

use transom_base::time::Instant;

use super::{Admission, Discipline, Fifo, Item, Length, Limit, RandomSource, Sink};

/// A first-in first-out queue that refuses what does not fit.
#[derive(Clone, Debug)]
pub(super) struct DropTail<P> {
    limit: Limit,
    fifo: Fifo<P>,
}

impl<P> DropTail<P> {
    /// An empty queue.
    pub(super) const fn new(limit: Limit) -> Self {
        DropTail { limit, fifo: Fifo::new() }
    }
}

impl<P: Send> Discipline<P> for DropTail<P> {
    fn enqueue(
        &mut self,
        now: Instant,
        item: Item<P>,
        _: &mut dyn RandomSource,
        sink: &mut Sink<'_, P>,
    ) -> Admission {
        self.fifo.admit(now, item, self.limit, sink)
    }

    fn dequeue(
        &mut self,
        _: Instant,
        _: &mut dyn RandomSource,
        _: &mut Sink<'_, P>,
    ) -> Option<Item<P>> {
        self.fifo.pop()
    }

    fn length(&self) -> Length {
        self.fifo.length()
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use transom_wire::ip::Ecn;

    use super::*;
    use crate::queue::{Cause, Event};

    /// Offers packets of these lengths to a queue with this limit. Returns which were admitted, and the length afterwards.
    fn offer(limit: Limit, lens: &[usize]) -> (Vec<bool>, Length) {
        let mut queue = DropTail::new(limit);
        let mut refused = Vec::new();
        let admitted = lens
            .iter()
            .enumerate()
            .map(|(id, len)| {
                let item = Item::new(id, *len, Ecn::NotEct);
                let outcome =
                    queue.enqueue(Instant::ZERO, item, &mut || 0, &mut |event| match event {
                        Event::Dropped { item, cause: Cause::Tail, .. } => {
                            refused.push(item.packet)
                        }
                        other => panic!("{other:?}"),
                    });
                outcome == Admission::Queued
            })
            .collect::<Vec<_>>();
        for (id, admitted) in admitted.iter().enumerate() {
            assert_ne!(refused.contains(&id), *admitted);
        }
        (admitted, queue.length())
    }

    #[test]
    fn a_limit_in_packets_ignores_their_size() {
        let (admitted, length) = offer(Limit::Packets(2), &[9000, 1, 1]);
        assert_eq!(admitted, [true, true, false]);
        assert_eq!(length, Length { packets: 2, bytes: 9001 });
    }

    #[test]
    fn a_limit_in_bytes_is_met_exactly_and_a_smaller_packet_may_still_fit() {
        let (admitted, length) = offer(Limit::Bytes(3000), &[1500, 1501, 1499, 2, 1, 0, 1]);
        assert_eq!(admitted, [true, false, true, false, true, true, false]);
        assert_eq!(length, Length { packets: 4, bytes: 3000 });
    }

    #[test]
    fn limits_of_nothing_and_none() {
        assert_eq!(offer(Limit::Packets(0), &[1]).0, [false]);
        assert_eq!(offer(Limit::Bytes(0), &[1, 0]).0, [false, true]);
        assert_eq!(offer(Limit::Bytes(u64::MAX), &[usize::MAX, 1]).0, [true, false]);
        assert!(offer(Limit::Unlimited, &[1500; 5000]).0.iter().all(|admitted| *admitted));
    }

    #[test]
    fn packets_leave_in_order_with_the_time_they_came() {
        let mut queue = DropTail::new(Limit::Unlimited);
        for id in 1..=3 {
            let item = Item::new(id, 100, Ecn::Ect0);
            queue.enqueue(Instant::from_millis(id), item, &mut || 0, &mut |_| panic!());
        }
        let now = Instant::from_millis(10);
        for id in 1..=3 {
            let item = queue.dequeue(now, &mut || 0, &mut |_| panic!()).unwrap();
            assert_eq!((item.packet, item.waited(now).as_millis()), (id, 10 - id));
            assert_eq!((item.ecn, item.marked), (Ecn::Ect0, false));
        }
        assert!(queue.is_empty() && queue.dequeue(now, &mut || 0, &mut |_| panic!()).is_none());
    }
}
