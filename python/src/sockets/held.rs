//! What takes a stack's lock when it ends.

use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Something whose end takes a stack's lock: it ends without Python's.
pub(super) struct Held<T: Send>(Option<T>);

impl<T: Send + Clone> Clone for Held<T> {
    fn clone(&self) -> Self {
        Held(self.0.clone())
    }
}

impl<T: Send> Held<T> {
    pub(super) fn new(held: T) -> Held<T> {
        Held(Some(held))
    }

    /// Nothing only while it ends.
    pub(super) fn get(&self) -> PyResult<&T> {
        self.0.as_ref().ok_or_else(closed)
    }
}

impl<T: Send> Drop for Held<T> {
    fn drop(&mut self) {
        let mut held = self.0.take();
        let dropped = Python::try_attach(|py| py.detach(|| drop(held.take())));
        if dropped.is_none() {
            drop(held);
        }
    }
}

/// A mutex that a panic does not close.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The error of a call on something that is closed.
pub(super) fn closed() -> PyErr {
    PyOSError::new_err((9, "it is closed"))
}
