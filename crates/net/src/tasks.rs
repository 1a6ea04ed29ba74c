//! Tasks that wait: a [`Waker`] for each, by what it waits for.
//!
//! A waker is put here under the host's lock, by the call that has just found nothing. So no event comes between the attempt and the
//! waker. The event takes the waker out, and it is called when the lock is free.

use crate::engine::Channel;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Waker;

/// The place of one waiting task among those that wait for the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot(u64);

impl Slot {
    /// The place for the `poll_…` calls of a stream or listener: the last task that polled has it.
    pub(crate) const OWN: Slot = Slot(0);

    /// A place that nobody else has.
    pub(crate) fn new() -> Slot {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Slot(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// Wakers of those that wait for one thing. There are seldom more than one.
#[derive(Debug, Default)]
pub(crate) struct Queue(Vec<(Slot, Waker)>);

impl Queue {
    /// Keeps a waker. Returns the one that was there, which is to be dropped when the lock is free.
    pub(crate) fn put(&mut self, slot: Slot, waker: &Waker) -> Option<Waker> {
        match self.0.iter_mut().find(|(place, _)| *place == slot) {
            Some((_, kept)) if kept.will_wake(waker) => None,
            Some((_, kept)) => Some(std::mem::replace(kept, waker.clone())),
            None => {
                self.0.push((slot, waker.clone()));
                None
            }
        }
    }

    /// Takes out the waker of a task that waits no more.
    pub(crate) fn remove(&mut self, slot: Slot) -> Option<Waker> {
        let index = self.0.iter().position(|(place, _)| *place == slot)?;
        Some(self.0.swap_remove(index).1)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes all of them out.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Waker> {
        self.0.drain(..).map(|(_, waker)| waker)
    }
}

/// The waiting tasks of a host.
#[derive(Debug, Default)]
pub(crate) struct Tasks(HashMap<Channel, Queue>);

impl Tasks {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// As [`Queue::put`].
    pub(crate) fn put(&mut self, channel: Channel, slot: Slot, waker: &Waker) -> Option<Waker> {
        self.0.entry(channel).or_default().put(slot, waker)
    }

    /// As [`Queue::remove`].
    pub(crate) fn remove(&mut self, channel: Channel, slot: Slot) -> Option<Waker> {
        let queue = self.0.get_mut(&channel)?;
        let waker = queue.remove(slot);
        if queue.is_empty() {
            self.0.remove(&channel);
        }
        waker
    }

    /// Takes out all that wait for `channel`.
    pub(crate) fn take(&mut self, channel: Channel) -> Option<Queue> {
        self.0.remove(&channel)
    }

    /// Takes out all.
    pub(crate) fn take_all(&mut self) -> impl Iterator<Item = Queue> {
        std::mem::take(&mut self.0).into_values()
    }
}
