//! The common part of this program's small servers: the HTTP server, the metrics, and the Unix sockets.
//!
//! - [`after_accept`] says what an error of accept(2) means for the listener; [`accept_next`] heeds it.
//! - [`Deadline`] bounds a whole exchange, however many reads and writes it takes.
//! - [`Slots`] bounds how many are served at a time.
//! - [`serve`] is the front that stands before every server of pages and measures.
//! - [`serve_metrics`] answers Prometheus, with [`MetricsText`].
//! - [`UnixName`] is a Unix socket with a name, which replaces one that a crash has left.

mod deadline;
mod exposition;
mod front;
mod metrics;
mod slots;
#[cfg(test)]
mod test_clients;
mod unix_name;

use std::io;
use std::time::Duration;

use rustix::io::Errno;

pub use deadline::{Deadline, Timeouts};
pub use exposition::{MetricsText, labels};
pub use front::{Guest, MOST_GUESTS, MOST_STREAMS, Serving, serve};
pub use metrics::serve_metrics;
pub use slots::{Slot, Slots};
pub use unix_name::{MOST_ASKING, UnixName};

/// So long a listener waits when the system has run out of something.
const PAUSE: Duration = Duration::from_millis(100);

/// The reaction to an error of accept(2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterAccept {
    /// That one connection is gone. Accept the next.
    Next,
    /// The system has run out of descriptors or memory. Wait for so long, and accept again: the connection is still there.
    Wait(Duration),
    /// The listener itself is of no more use.
    End,
}

/// The meaning of an error of accept(2), from its manual page under "Error handling" and "Errors".
pub fn after_accept(error: &io::Error) -> AfterAccept {
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => {
            AfterAccept::Wait(PAUSE)
        }
        // Errors that a new connection already has are given to accept(2), and mean this connection only.
        Some(
            Errno::CONNABORTED
            | Errno::CONNRESET
            | Errno::INTR
            | Errno::AGAIN
            | Errno::TIMEDOUT
            | Errno::PERM
            | Errno::NETDOWN
            | Errno::PROTO
            | Errno::NOPROTOOPT
            | Errno::HOSTDOWN
            | Errno::NONET
            | Errno::HOSTUNREACH
            | Errno::OPNOTSUPP
            | Errno::NETUNREACH,
        ) => AfterAccept::Next,
        Some(_) => AfterAccept::End,
        None => match error.kind() {
            io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::Interrupted => AfterAccept::Next,
            io::ErrorKind::OutOfMemory => AfterAccept::Wait(PAUSE),
            _ => AfterAccept::End,
        },
    }
}

/// The next one that is to be served. Errors of a single connection are passed over; while the system has run out of something, this waits.
///
/// # Errors
/// That of a listener that is of no more use.
pub fn accept_next<S>(accept: impl Fn() -> io::Result<S>) -> io::Result<S> {
    loop {
        let error = match accept() {
            Ok(stream) => return Ok(stream),
            Err(error) => error,
        };
        match after_accept(&error) {
            AfterAccept::Next => {}
            AfterAccept::Wait(pause) => std::thread::sleep(pause),
            AfterAccept::End => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_broken_listener_ends() {
        let after = |errno: Errno| after_accept(&errno.into());
        for errno in [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM] {
            assert_eq!(after(errno), AfterAccept::Wait(PAUSE), "{errno}");
        }
        for errno in [Errno::CONNABORTED, Errno::INTR, Errno::PROTO, Errno::NETUNREACH] {
            assert_eq!(after(errno), AfterAccept::Next, "{errno}");
        }
        for errno in [Errno::BADF, Errno::INVAL, Errno::NOTSOCK, Errno::FAULT] {
            assert_eq!(after(errno), AfterAccept::End, "{errno}");
        }
        assert_eq!(after_accept(&io::ErrorKind::ConnectionAborted.into()), AfterAccept::Next);
        assert_eq!(after_accept(&io::Error::other("the host is gone")), AfterAccept::End);
    }
}
