//! Errors as exceptions.

use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use std::cell::Cell;
use std::fmt::Display;
use std::io;

/// An error of a socket: the subclass of OSError that belongs to its number.
pub(crate) fn os(error: io::Error) -> PyErr {
    match error.raw_os_error() {
        Some(number) => {
            let text = error.to_string();
            let text = text.split(" (os error").next().unwrap_or_default().to_owned();
            PyOSError::new_err((number, text))
        }
        None if error.kind() == io::ErrorKind::InvalidInput => value(error),
        None => error.into(),
    }
}

/// A value that cannot be used.
pub(crate) fn value(error: impl Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

thread_local! {
    /// Whether this thread is in an extension or a controller, and so may hold a stack's lock.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Marks the thread as one that may hold a stack's lock, until it is dropped.
pub(crate) struct Inside(bool);

impl Inside {
    pub(crate) fn enter() -> Inside {
        Inside(INSIDE.replace(true))
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        INSIDE.set(self.0);
    }
}

/// Refuses a call of a socket from within an extension or a controller, where it would wait for itself.
pub(crate) fn outside() -> PyResult<()> {
    if INSIDE.get() {
        let why = "an extension or a congestion controller may not use sockets and stacks";
        return Err(PyRuntimeError::new_err(why));
    }
    Ok(())
}
