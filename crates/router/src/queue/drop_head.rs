//! Drop-head: a packet that arrives at a full queue pushes out the oldest ones.
//!
//! The receiver sees the gap a whole queue earlier than with drop-tail, so the sender slows down earlier.
//! Sources: Lakshman, Neidhardt and Ott, "The drop from front strategy in TCP and in TCP over ATM", INFOCOM
//! 1996; RFC 7567, section 2, "head drop".

use transom_base::time::Instant;

use super::{
    Admission, Cause, Discipline, Event, Fifo, Item, Length, Limit, RandomSource, Sink, refuse,
};

/// A first-in first-out queue that makes room at its front.
#[derive(Clone, Debug)]
pub(super) struct DropHead<P> {
    limit: Limit,
    fifo: Fifo<P>,
}

impl<P> DropHead<P> {
    /// An empty queue.
    pub(super) const fn new(limit: Limit) -> Self {
        DropHead { limit, fifo: Fifo::new() }
    }
}

impl<P: Send> Discipline<P> for DropHead<P> {
    fn enqueue(
        &mut self,
        now: Instant,
        item: Item<P>,
        _: &mut dyn RandomSource,
        sink: &mut Sink<'_, P>,
    ) -> Admission {
        // A packet that would not fit into an empty queue must not empty it.
        if !self.limit.admits(Length::default(), item.len) {
            return refuse(now, Cause::Tail, item, sink);
        }
        while !self.limit.admits(self.fifo.length(), item.len) {
            let Some(oldest) = self.fifo.pop() else { break };
            sink(Event::Dropped { at: now, cause: Cause::Head, item: oldest });
        }
        self.fifo.push(now, item);
        Admission::Queued
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

    /// Offers packets numbered from 0 of these lengths; gives what was dropped, in order, and what is left.
    fn offer(limit: Limit, lens: &[usize]) -> (Vec<(usize, Cause)>, Vec<usize>) {
        let mut queue = DropHead::new(limit);
        let mut dropped = Vec::new();
        for (id, len) in lens.iter().enumerate() {
            let item = Item::new(id, *len, Ecn::NotEct);
            queue.enqueue(Instant::ZERO, item, &mut || 0, &mut |event| match event {
                Event::Dropped { item, cause, .. } => dropped.push((item.packet, cause)),
                other => panic!("{other:?}"),
            });
        }
        let next = || queue.dequeue(Instant::ZERO, &mut || 0, &mut |_| panic!());
        let left = core::iter::from_fn(next).map(|item| item.packet).collect();
        (dropped, left)
    }

    #[test]
    fn the_oldest_makes_room() {
        let (dropped, left) = offer(Limit::Packets(2), &[1, 1, 1, 1]);
        assert_eq!(dropped, [(0, Cause::Head), (1, Cause::Head)]);
        assert_eq!(left, [2, 3]);
    }

    #[test]
    fn a_large_packet_pushes_out_as_many_as_it_needs() {
        let (dropped, left) = offer(Limit::Bytes(3000), &[1000, 1000, 1000, 1500]);
        assert_eq!(dropped, [(0, Cause::Head), (1, Cause::Head)]);
        assert_eq!(left, [2, 3]);
    }

    #[test]
    fn a_packet_larger_than_the_queue_pushes_out_nothing() {
        let (dropped, left) = offer(Limit::Bytes(3000), &[1000, 3001]);
        assert_eq!((dropped, left), (Vec::from([(1, Cause::Tail)]), Vec::from([0])));
        assert_eq!(offer(Limit::Packets(0), &[1]).0, [(0, Cause::Tail)]);
    }
}
