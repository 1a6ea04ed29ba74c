//! One listener in several shards: what waits to be accepted in any of them.
//!
//! Each shard says under its own lock how many connections wait in it. A thread that waits here leads no shard: the background threads do.

use crate::readiness::Readiness;
use crate::tasks::{Queue, Slot};
use rustix::fd::OwnedFd;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

#[derive(Debug, Default)]
struct State {
    /// Connections that wait in each shard.
    waiting: Vec<usize>,
    /// Shards whose devices do not work.
    failed: Vec<bool>,
    readiness: Option<Readiness>,
    tasks: Queue,
}

impl State {
    fn is_ready(&self) -> bool {
        self.waiting.iter().any(|&waiting| waiting > 0) || self.failed.contains(&true)
    }

    fn show(&mut self) {
        let ready = self.is_ready();
        if let Some(readiness) = &mut self.readiness {
            // The descriptor is only a signal; if the kernel refuses it there is nobody to tell.
            let _ = readiness.show(ready, true);
        }
    }
}

#[derive(Debug)]
pub(crate) struct Acceptor {
    state: Mutex<State>,
    available: Condvar,
    /// Somebody waits, or has waited, whom the background threads serve.
    awaited: AtomicBool,
}

impl Acceptor {
    pub(crate) fn new(shards: usize) -> Self {
        let state = State {
            waiting: vec![0; shards],
            failed: vec![false; shards],
            readiness: None,
            tasks: Queue::default(),
        };
        Acceptor {
            state: Mutex::new(state),
            available: Condvar::new(),
            awaited: AtomicBool::new(false),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// So many connections wait in a shard now. Returns the tasks that are to be woken when the shard's lock is free.
    pub(crate) fn update(&self, shard: usize, waiting: usize, failed: bool) -> Vec<Waker> {
        let mut state = self.state();
        let Some(before) = state.waiting.get_mut(shard) else { return Vec::new() };
        let more = waiting.saturating_sub(std::mem::replace(before, waiting));
        if let Some(before) = state.failed.get_mut(shard) {
            *before = failed;
        }
        state.show();
        let news = failed || more > 0;
        let tasks = if news { state.tasks.drain().collect() } else { Vec::new() };
        drop(state);
        if failed {
            self.available.notify_all();
        } else {
            (0..more).for_each(|_| self.available.notify_one());
        }
        tasks
    }

    /// Waits until a connection waits somewhere, or a device fails.
    pub(crate) fn wait(&self) {
        let mut state = self.state();
        while !state.is_ready() {
            state = self.available.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// A descriptor that is readable when [`Acceptor::wait`] would return.
    pub(crate) fn export(&self) -> io::Result<OwnedFd> {
        let mut state = self.state();
        if state.readiness.is_none() {
            state.readiness = Some(Readiness::new()?);
            self.awaited.store(true, Ordering::Release);
        }
        state.show();
        let fd = state.readiness.as_ref().map(|readiness| readiness.fd().try_clone_to_owned());
        fd.unwrap_or_else(|| Err(io::ErrorKind::NotConnected.into()))
    }

    /// Has a task woken when [`Acceptor::wait`] would return. `None`: it would return now. Otherwise whether the background threads have to be
    /// told that somebody waits, and the waker that was in this place.
    pub(crate) fn put(&self, slot: Slot, waker: &Waker) -> Option<(bool, Option<Waker>)> {
        let mut state = self.state();
        if state.is_ready() {
            return None;
        }
        let replaced = state.tasks.put(slot, waker);
        Some((!self.awaited.swap(true, Ordering::AcqRel), replaced))
    }

    /// The task waits no more. Returns its waker, which is to be dropped without a lock.
    pub(crate) fn remove(&self, slot: Slot) -> Option<Waker> {
        self.state().tasks.remove(slot)
    }

    /// Whether somebody may be waiting on a descriptor, or as a task.
    pub(crate) fn is_awaited(&self) -> bool {
        self.awaited.load(Ordering::Acquire)
    }
}
