//! Threads, with the error of a system that has no more of them, and the locks between them.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};

use anyhow::Context as _;

/// Starts a thread.
pub(crate) fn spawn<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> anyhow::Result<JoinHandle<T>> {
    Builder::new().name(name.to_owned()).spawn(work).context("cannot start a thread")
}

/// Locks, also after a thread has panicked with the lock: what is behind it is whole at every step.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
