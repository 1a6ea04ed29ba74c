//! One listener in several shards: what waits to be accepted in any of them.
//!
//! Each shard says under its own lock how many connections wait in it. A thread that waits here leads no shard: the background threads do.

use crate::readiness::Readiness;
use rustix::fd::OwnedFd;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

#[derive(Debug, Default)]
struct State {
    /// Connections that wait in each shard.
    waiting: Vec<usize>,
    /// Shards whose devices do not work.
    failed: Vec<bool>,
    readiness: Option<Readiness>,
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
    bell: Condvar,
    exported: AtomicBool,
}

impl Acceptor {
    pub(crate) fn new(shards: usize) -> Self {
        let state =
            State { waiting: vec![0; shards], failed: vec![false; shards], readiness: None };
        Acceptor {
            state: Mutex::new(state),
            bell: Condvar::new(),
            exported: AtomicBool::new(false),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// So many connections wait in a shard now.
    pub(crate) fn update(&self, shard: usize, waiting: usize, failed: bool) {
        let mut state = self.state();
        let Some(before) = state.waiting.get_mut(shard) else { return };
        let more = waiting.saturating_sub(std::mem::replace(before, waiting));
        if let Some(before) = state.failed.get_mut(shard) {
            *before = failed;
        }
        state.show();
        drop(state);
        if failed {
            self.bell.notify_all();
        } else {
            (0..more).for_each(|_| self.bell.notify_one());
        }
    }

    /// Waits until a connection waits somewhere, or a device fails.
    pub(crate) fn wait(&self) {
        let mut state = self.state();
        while !state.is_ready() {
            state = self.bell.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// A descriptor that is readable when [`Acceptor::wait`] would return.
    pub(crate) fn export(&self) -> io::Result<OwnedFd> {
        let mut state = self.state();
        if state.readiness.is_none() {
            state.readiness = Some(Readiness::new()?);
            self.exported.store(true, Ordering::Release);
        }
        state.show();
        let fd = state.readiness.as_ref().map(|readiness| readiness.fd().try_clone_to_owned());
        fd.unwrap_or_else(|| Err(io::ErrorKind::NotConnected.into()))
    }

    /// Whether somebody may be waiting on a descriptor.
    pub(crate) fn is_exported(&self) -> bool {
        self.exported.load(Ordering::Acquire)
    }
}
