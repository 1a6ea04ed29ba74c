//! Locks and condition variables for threads: those of the standard library.
//!
//! The runtime's own files (`runtime.rs`, `waiting.rs`, `background.rs`, `lock.rs`, `notifier.rs`, `roles.rs`, `tasks.rs`) take these from here alone. So the
//! model in `tests/model` compiles the same files with those of a model checker.

pub(crate) use std::sync::atomic;
pub(crate) use std::sync::{
    Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError, Weak,
};
pub(crate) use std::thread;
