//! Calls that wait: for a descriptor, no longer than a timeout says, and with a look for signals ten times a second.

use crate::error::os;
use pyo3::exceptions::{PyBlockingIOError, PyTimeoutError, PyValueError};
use pyo3::prelude::*;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io;
use std::time::{Duration, Instant};

/// The interval between two looks for signals.
const SLICE: Duration = Duration::from_millis(100);

/// A timeout in Python's seconds.
pub(super) fn duration(seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds)
        .map_err(|_| PyValueError::new_err("a timeout is a number of seconds, zero or more"))
}

/// The end of a timeout that begins now.
pub(super) fn deadline(timeout: Option<f64>) -> PyResult<Option<Instant>> {
    timeout
        .map(duration)
        .transpose()
        .map(|span| span.and_then(|span| Instant::now().checked_add(span)))
}

/// Tries until there is a result. Between the tries, `rest` waits for at most the time that it is given.
pub(super) fn patiently<T: Send>(
    py: Python<'_>,
    timeout: Option<Duration>,
    mut attempt: impl FnMut() -> io::Result<T> + Send,
    mut rest: impl FnMut(Duration) -> io::Result<()> + Send,
) -> PyResult<T> {
    let deadline = timeout.and_then(|span| Instant::now().checked_add(span));
    loop {
        let tried = py.detach(&mut attempt);
        match tried {
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock) => {}
            outcome => return outcome.map_err(os),
        }
        if timeout == Some(Duration::ZERO) {
            return Err(PyBlockingIOError::new_err((11, "it would have to wait")));
        }
        let left =
            deadline.map_or(SLICE, |deadline| deadline.saturating_duration_since(Instant::now()));
        if left.is_zero() {
            return Err(PyTimeoutError::new_err("timed out"));
        }
        py.detach(|| rest(left.min(SLICE))).map_err(os)?;
        py.check_signals()?;
    }
}

/// Waits for a descriptor.
pub(super) fn wait_for(
    fd: rustix::fd::BorrowedFd<'_>,
    flags: PollFlags,
    span: Duration,
) -> io::Result<()> {
    let mut fds = [PollFd::new(&fd, flags)];
    let span = Timespec { tv_sec: span.as_secs() as i64, tv_nsec: i64::from(span.subsec_nanos()) };
    match poll(&mut fds, Some(&span)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
