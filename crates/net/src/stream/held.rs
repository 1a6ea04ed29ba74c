//! Connections that stop before the last step of their handshake.

use super::TcpStream;
use crate::engine::{Channel, Inner};
use crate::error::soft_error;
use crate::socket::Kept;
use crate::stack::Stack;
use rustix::io::Errno;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use transom_tcp::{Profile, State};

/// A connection whose last acknowledgement is held until [`HeldStream::release`]. By [`TcpStream::connect_held`].
///
/// Dropping it resets the peer, if that has answered, and gives the attempt up otherwise.
#[derive(Debug)]
#[must_use = "dropping it gives the attempt up"]
pub struct HeldStream {
    /// There until it is released.
    stream: Option<TcpStream>,
    local: SocketAddr,
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
        let local = stream.local_addr().unwrap_or_else(|_| SocketAddr::from(([0; 4], 0)));
        HeldStream { stream: Some(stream), local }
    }

    /// The stream, to [watch](crate::Driver::watch): it is reported as writable when the peer has answered, or the attempt has failed.
    ///
    /// # Panics
    /// Never: it is there until the value is consumed.
    pub fn stream(&self) -> &TcpStream {
        self.stream.as_ref().expect("a stream that is not released")
    }

    /// Our address and port.
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// Whether the peer has answered. Does not wait.
    ///
    /// # Errors
    /// How the attempt ended, if it has: [`io::ErrorKind::ConnectionRefused`], [`io::ErrorKind::TimedOut`], … With
    /// [`Profile::report_soft_errors`] also what the network reports though the attempt goes on, such as [`io::ErrorKind::HostUnreachable`]: Linux
    /// gives up then.
    pub fn is_answered(&self) -> io::Result<bool> {
        let stream = self.stream();
        let inner = stream.socket.shared.runtime.lock();
        stream.answered(&inner).transpose().map(|answer| answer.is_some())
    }

    /// Waits until the peer has answered, or until `timeout`.
    ///
    /// # Errors
    /// As [`HeldStream::is_answered`], and [`io::ErrorKind::TimedOut`].
    pub fn wait_answered(&self, timeout: Option<Duration>) -> io::Result<()> {
        let stream = self.stream();
        let runtime = &stream.socket.shared.runtime;
        let deadline = timeout.map(|timeout| runtime.now() + timeout.into());
        let channel = Channel::Writable(stream.socket.id);
        let outcome = runtime.wait(channel, deadline, |inner, _| stream.answered(inner));
        outcome.unwrap_or_else(|| Err(io::ErrorKind::TimedOut.into()))
    }

    /// Completes the handshake: the last acknowledgement leaves, and the stream is connected. If the peer has not answered, the stream will be connected
    /// when it does.
    ///
    /// # Errors
    /// How the attempt ended, if it has.
    pub fn release(mut self) -> io::Result<TcpStream> {
        self.is_answered()?;
        let stream = self.stream.take().ok_or(Errno::NOTCONN)?;
        stream.change(|connection, now| connection.release(now))?;
        Ok(stream)
    }
}

impl Drop for HeldStream {
    fn drop(&mut self) {
        if let Some(stream) = &self.stream {
            let (shared, id) = (&stream.socket.shared, stream.socket.id);
            shared.runtime.with(|inner, now| inner.host.abort(id, now));
        }
    }
}
