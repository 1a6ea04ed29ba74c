//! The packets of a queue in the order of their arrival, and their number and size.

use alloc::collections::VecDeque;

use transom_base::time::Instant;

use super::{Admission, Cause, Item, Length, Limit, Sink, refuse};

/// First in, first out.
#[derive(Clone, Debug)]
pub(super) struct Fifo<P> {
    items: VecDeque<Item<P>>,
    bytes: u64,
}

impl<P> Fifo<P> {
    pub(super) const fn new() -> Self {
        Fifo { items: VecDeque::new(), bytes: 0 }
    }

    pub(super) fn length(&self) -> Length {
        Length { packets: self.items.len() as u64, bytes: self.bytes }
    }

    /// Appends a packet if `limit` has room for it, and refuses it otherwise.
    pub(super) fn admit(
        &mut self,
        now: Instant,
        item: Item<P>,
        limit: Limit,
        sink: &mut Sink<'_, P>,
    ) -> Admission {
        if !limit.admits(self.length(), item.len) {
            return refuse(now, Cause::Tail, item, sink);
        }
        self.push(now, item);
        Admission::Queued
    }

    /// Appends a packet and notes when it came.
    pub(super) fn push(&mut self, now: Instant, item: Item<P>) {
        // Lengths are whatever the caller says; a sum that saturates is still taken apart without wrapping.
        self.bytes = self.bytes.saturating_add(item.len as u64);
        self.items.push_back(Item { enqueued: now, ..item });
    }

    /// The oldest packet.
    pub(super) fn front(&self) -> Option<&Item<P>> {
        self.items.front()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Takes the oldest packet.
    pub(super) fn pop(&mut self) -> Option<Item<P>> {
        let item = self.items.pop_front()?;
        self.bytes = self.bytes.saturating_sub(item.len as u64);
        Some(item)
    }
}
