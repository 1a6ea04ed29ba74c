//! Active opens that hold their last acknowledgement, for an owner that decides when the peer has answered.

use super::{ConnectError, ConnectionId, SocketError, Stack};
use alloc::sync::Arc;
use core::net::SocketAddr;
use transom_tcp::time::{Duration, Instant};
use transom_tcp::{Profile, Setting};

impl Stack {
    /// Like [`Stack::connect`], but the handshake stops when the peer has answered ([`Signal::Answered`](transom_tcp::Signal::Answered)). The
    /// last acknowledgement leaves when the owner calls [`Stack::release_answer`]; [`Stack::abort`] and [`Stack::close`] reset the peer. So a connection that
    /// comes to nothing never takes a place in the peer's accept queue.
    ///
    /// After `limit` the peer is reset, and the connection has timed out. It should be shorter than the time for which peers repeat their SYN-ACK: about a
    /// minute on Linux.
    ///
    /// # Errors
    /// As [`Stack::connect`].
    pub fn connect_held(
        &mut self,
        now: Instant,
        local: Option<SocketAddr>,
        remote: SocketAddr,
        profile: Option<Arc<Profile>>,
        limit: Duration,
    ) -> Result<ConnectionId, ConnectError> {
        let id = self.connect(now, local, remote, profile)?;
        // The SYN leaves later, so the hold is there before any answer.
        let _ =
            self.with_connection(id, now, |connection| connection.set(Setting::HoldAnswer(limit)));
        Ok(id)
    }

    /// Completes the handshake of a connection [that holds it](Stack::connect_held): at once if the peer has answered, or else when it does.
    ///
    /// # Errors
    /// [`SocketError::NotFound`] if there is no such connection.
    pub fn release_answer(&mut self, id: ConnectionId, now: Instant) -> Result<(), SocketError> {
        self.with_connection(id, now, |connection| connection.release(now))
    }
}
