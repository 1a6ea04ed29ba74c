//! A first-in first-out queue that holds so much and no more.
//!
//! - **Drop-tail**: a packet that arrives at a full queue is dropped. The default queue of every router. RFC 7567, section 2, lists its problems:
//!   standing queues, lock-out, and synchronised losses.
//! - **Drop-head**: it pushes out the oldest ones. The receiver sees the gap a whole queue earlier than with drop-tail, so the sender slows down
//!   earlier. Sources: Lakshman, Neidhardt and Ott, "The drop from front strategy in TCP and in TCP over ATM", INFOCOM 1996; RFC 7567, section 2,
//!   "head drop".

use transom_base::time::Instant;

use super::{
    Admission, Cause, Discipline, Event, Fifo, Item, Length, Limit, RandomSource, Sink, refuse,
};

/// The packets that a full queue drops.
#[derive(Clone, Copy, Debug)]
pub(super) enum Victim {
    /// The one that arrives.
    Arriving,
    /// The oldest, as many as it takes.
    Oldest,
}

/// A queue with a limit.
#[derive(Clone, Debug)]
pub(super) struct Limited<P> {
    limit: Limit,
    victim: Victim,
    fifo: Fifo<P>,
}

impl<P> Limited<P> {
    /// An empty queue.
    pub(super) const fn new(limit: Limit, victim: Victim) -> Self {
        Limited { limit, victim, fifo: Fifo::new() }
    }
}

impl<P: Send> Discipline<P> for Limited<P> {
    fn enqueue(
        &mut self,
        now: Instant,
        item: Item<P>,
        _: &mut dyn RandomSource,
        sink: &mut Sink<'_, P>,
    ) -> Admission {
        // A packet that would not fit into an empty queue must not empty it.
        let waiting = match self.victim {
            Victim::Arriving => self.fifo.length(),
            Victim::Oldest => Length::default(),
        };
        if !self.limit.admits(waiting, item.len) {
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
mod tests;
