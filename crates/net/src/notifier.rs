//! Threads that sleep until they are notified, without the host's lock.
//!
//! A condition variable of the host's lock would take that lock by itself when a thread wakes up, behind the back of [`Lock`](crate::lock::Lock), which
//! sees to it that nobody waits for long. So sleepers wait with a small lock of their own, and take the host's as everybody does.

use crate::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use transom_tcp::time::Duration;

/// Sleepers of one kind.
#[derive(Debug, Default)]
pub(crate) struct Notifier {
    /// Notifications so far.
    count: Mutex<u64>,
    condvar: Condvar,
}

/// The notifications that a thread knows of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known(u64);

impl Notifier {
    fn count(&self) -> MutexGuard<'_, u64> {
        self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Those so far. To be called with the host's lock, where what the thread waits for cannot happen yet.
    pub(crate) fn known(&self) -> Known {
        Known(*self.count())
    }

    /// Wakes one sleeper.
    pub(crate) fn notify_one(&self) {
        *self.count() += 1;
        self.condvar.notify_one();
    }

    /// Wakes all sleepers.
    pub(crate) fn notify_all(&self) {
        *self.count() += 1;
        self.condvar.notify_all();
    }

    /// Sleeps until there is a notification that is not known, until `limit` has passed, or for no reason.
    pub(crate) fn sleep(&self, known: Known, limit: Option<Duration>) {
        let count = self.count();
        if *count != known.0 {
            return;
        }
        match limit {
            None => drop(self.condvar.wait(count)),
            Some(limit) => drop(self.condvar.wait_timeout(count, limit.into())),
        }
    }
}
