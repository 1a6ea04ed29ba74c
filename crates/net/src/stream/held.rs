//! Connections that stop before the last step of their handshake.

use super::TcpStream;
use crate::engine::{Channel, Inner};
use crate::error::soft_error;
use crate::socket::Kept;
use crate::stack::Stack;
use std::io;
use std::net::SocketAddr;
use std::ops::Deref;
use std::time::Duration;
use transom_tcp::{Profile, State};

/// A connection whose last acknowledgement is held until [`HeldStream::release`]. By [`TcpStream::connect_held`].
///
/// It has what the stream has, and can be [watched](crate::Driver::watch): it is reported as writable when the peer has answered, or the attempt has failed.
/// Dropping it resets the peer, if that has answered, and gives the attempt up otherwise.
#[derive(Debug)]
#[must_use = "dropping it gives the attempt up"]
pub struct HeldStream {
    stream: TcpStream,
    released: bool,
}

impl Deref for HeldStream {
    type Target = TcpStream;

    fn deref(&self) -> &TcpStream {
        &self.stream
    }
}

impl TcpStream {
    /// Starts connecting, from a local address and port of one's choice, and returns at once. The handshake stops when the peer has answered: the last
    /// acknowledgement leaves by [`HeldStream::release`]. Until then no connection waits in the peer's accept queue. A proxy that opens two connections for
    /// one can so make sure of both before either is used.
    ///
    /// The peer is reset after `limit`. It should be shorter than the time for which peers repeat their answer: about a minute on Linux.
    ///
    /// # Errors
    /// Those that can be told at once; [`io::ErrorKind::InvalidInput`] for a profile that does not work.
    pub fn connect_held(
        stack: &Stack,
        local: Option<SocketAddr>,
        remote: SocketAddr,
        profile: Option<Profile>,
        limit: Duration,
    ) -> io::Result<HeldStream> {
        let kept = Kept::holding(limit);
        Self::start_with(stack, local, remote, profile, &kept, None).map(HeldStream::new)
    }

    /// Whether the peer has answered a SYN whose answer is held, or how the attempt ended.
    fn answered(&self, inner: &Inner) -> Option<io::Result<()>> {
        self.opening(inner, |connection| match connection.state() {
            State::SynSent if connection.opening().is_answered => Some(Ok(())),
            State::SynSent => connection.pending_soft_error().map(|error| Err(soft_error(error))),
            _ => Some(Ok(())),
        })
    }
}

impl HeldStream {
    pub(crate) fn new(stream: TcpStream) -> Self {
        HeldStream { stream, released: false }
    }

    /// Whether the peer has answered. Does not wait.
    ///
    /// # Errors
    /// How the attempt ended, if it has: [`io::ErrorKind::ConnectionRefused`], [`io::ErrorKind::TimedOut`], … With
    /// [`Profile::report_soft_errors`] also what the network reports though the attempt goes on, such as [`io::ErrorKind::HostUnreachable`]: Linux
    /// gives up then.
    pub fn is_answered(&self) -> io::Result<bool> {
        let inner = self.socket.shared.runtime.lock();
        self.answered(&inner).transpose().map(|answer| answer.is_some())
    }

    /// Waits until the peer has answered, or until `timeout`.
    ///
    /// # Errors
    /// As [`HeldStream::is_answered`], and [`io::ErrorKind::TimedOut`].
    pub fn wait_answered(&self, timeout: Option<Duration>) -> io::Result<()> {
        let runtime = &self.socket.shared.runtime;
        let deadline = timeout.map(|timeout| runtime.now() + timeout.into());
        let channel = Channel::Writable(self.socket.id);
        let outcome = runtime.wait(channel, deadline, |inner, _| self.answered(inner));
        outcome.unwrap_or_else(|| Err(io::ErrorKind::TimedOut.into()))
    }

    /// Completes the handshake: the last acknowledgement leaves, and the stream is connected. If the peer has not answered, the stream will be connected
    /// when it does.
    ///
    /// # Errors
    /// How the attempt ended, if it has.
    pub fn release(mut self) -> io::Result<TcpStream> {
        self.is_answered()?;
        self.change(|connection, now| connection.release(now))?;
        self.released = true;
        self.try_clone()
    }
}

impl Drop for HeldStream {
    fn drop(&mut self) {
        if !self.released {
            let (shared, id) = (&self.socket.shared, self.socket.id);
            shared.runtime.with(|inner, now| inner.host.abort(id, now));
        }
    }
}
