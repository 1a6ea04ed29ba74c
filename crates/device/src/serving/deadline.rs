//! One deadline for a whole exchange.
//!
//! The timeouts of a socket are for one read or write. A peer that sends a byte now and then never exceeds them, and holds its server for ever.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::net::sockopt::{Timeout, set_socket_timeout};

/// A socket whose reads and writes can be bounded one by one. Every socket of the kernel is one; other types may be.
pub trait Timeouts {
    /// Bounds how long a read waits.
    ///
    /// # Errors
    /// The system's.
    fn set_read_timeout(&self, timeout: Option<Duration>) -> io::Result<()>;

    /// Bounds how long a write waits.
    ///
    /// # Errors
    /// The system's.
    fn set_write_timeout(&self, timeout: Option<Duration>) -> io::Result<()>;
}

impl<S: AsFd> Timeouts for S {
    fn set_read_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        Ok(set_socket_timeout(self, Timeout::Recv, timeout)?)
    }

    fn set_write_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        Ok(set_socket_timeout(self, Timeout::Send, timeout)?)
    }
}

/// A socket whose reads and writes fail with [`io::ErrorKind::TimedOut`] from some time on.
#[derive(Debug)]
pub struct Deadline<S> {
    socket: S,
    /// `None` when it has been lifted.
    end: Option<Instant>,
}

impl<S: Timeouts> Deadline<S> {
    /// All that is read and written from now on takes no longer than `patience`.
    pub fn new(socket: S, patience: Duration) -> Self {
        Deadline { socket, end: Instant::now().checked_add(patience) }
    }

    /// From now on reads take as long as they take. Writes are bounded by what the socket was told last.
    ///
    /// # Errors
    /// The system's.
    pub fn lift(&mut self) -> io::Result<()> {
        self.end = None;
        self.socket.set_read_timeout(None)
    }

    /// The socket.
    pub fn get_ref(&self) -> &S {
        &self.socket
    }

    fn left(&self) -> io::Result<Option<Duration>> {
        let left = self.end.map(|end| end.saturating_duration_since(Instant::now()));
        // Zero would mean for ever.
        if left.is_some_and(|left| left.is_zero()) {
            return Err(io::ErrorKind::TimedOut.into());
        }
        Ok(left)
    }
}

/// A socket says "would block" when its time is over.
fn timed_out<T>(outcome: io::Result<T>) -> io::Result<T> {
    outcome.map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => io::ErrorKind::TimedOut.into(),
        _ => error,
    })
}

impl<S: Timeouts + Read> Read for Deadline<S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Some(left) = self.left()? {
            self.socket.set_read_timeout(Some(left))?;
        }
        timed_out(self.socket.read(buffer))
    }
}

impl<S: Timeouts + Write> Write for Deadline<S> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        if let Some(left) = self.left()? {
            self.socket.set_write_timeout(Some(left))?;
        }
        timed_out(self.socket.write(buffer))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.socket.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn a_byte_now_and_then_does_not_help() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        let trickle = std::thread::spawn(move || {
            // Until the end of the test, or of the other socket.
            while stopped.recv_timeout(Duration::from_millis(5)).is_err()
                && (&theirs).write_all(b"x").is_ok()
            {}
            theirs
        });
        let mut reader = Deadline::new(&ours, Duration::from_millis(200));
        let error = std::io::copy(&mut reader, &mut std::io::sink()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        stop.send(()).unwrap();
        let theirs = trickle.join().unwrap();
        // The writer's side of it: nobody reads.
        let mut writer = Deadline::new(&theirs, Duration::from_millis(200));
        let error = writer.write_all(&vec![0; 64 << 20]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[test]
    fn data_in_time_is_read() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        (&theirs).write_all(b"in time").unwrap();
        drop(theirs);
        let mut text = String::new();
        let patience = Duration::from_secs(60);
        Deadline::new(&ours, patience).read_to_string(&mut text).unwrap();
        assert_eq!(text, "in time");
    }
}
