//! TCP Fast Open (RFC 7413): `sendto` that connects, and connections that are used before their handshake is complete.

use crate::errno::{EALREADY, EINPROGRESS, EINTR, EINVAL, EISCONN, Errno, Result};
use crate::host::{Host, Waited};
use crate::socket::{Role, Stream};
use crate::stream::{MSG_DONTWAIT, MSG_FASTOPEN};
use std::net::SocketAddr;
use transom_tcp::connection::{Connection, State};

impl Host {
    /// Whether nothing passes before the handshake is complete. What began with a SYN and a cookie is used at once.
    pub(crate) fn is_in_handshake(&self, stream: &Stream) -> bool {
        self.connection(stream).is_some_and(|connection| {
            let opening = matches!(connection.state(), State::SynSent | State::SynReceived);
            opening && !connection.is_early() && !connection.holds_syn()
        })
    }

    /// Whether the socket's SYN waits for data to go with.
    pub(crate) fn holds_syn(&self, fd: i32) -> bool {
        let Ok(Some(stream)) = self.stream(fd) else { return false };
        self.connection(&stream).is_some_and(Connection::holds_syn)
    }

    /// Lets a SYN go that waits for data.
    pub(crate) fn release_syn(&mut self, fd: i32) {
        let Ok(Some(stream)) = self.stream(fd) else { return };
        let now = self.now();
        let _ = self.stack.with_connection(stream.id, now, Connection::release_syn);
        self.settle();
    }

    /// `sendto(2)`. With `MSG_FASTOPEN` a fresh socket connects to `remote`, and the data goes with the SYN if the server has given a cookie before. A
    /// blocking socket waits for the handshake and sends everything. A non-blocking one gives how much was queued, or `EINPROGRESS` and queues nothing
    /// if there is no cookie. Without `MSG_FASTOPEN`, `remote` is not looked at, and it is [`Host::send`].
    ///
    /// # Errors
    /// `EALREADY` while the socket connects, `EISCONN` if it listens or is connected, `EINVAL` without an address, and those of [`Host::connect`] and
    /// [`Host::send`].
    pub fn send_to(
        &mut self,
        fd: i32,
        bytes: &[u8],
        flags: i32,
        remote: Option<SocketAddr>,
    ) -> Result<usize> {
        if flags & MSG_FASTOPEN == 0 {
            return self.send(fd, bytes, flags);
        }
        let flags = flags & !MSG_FASTOPEN;
        let how = Self::how_to_send(flags)?;
        let socket = self.sockets.get(fd)?;
        let nonblocking = socket.nonblocking || flags & MSG_DONTWAIT != 0;
        let timeout = socket.options.send_timeout;
        match socket.role {
            Role::Fresh => self.begin(fd, remote.ok_or(Errno(EINVAL))?, true)?,
            Role::Stream(_) if self.holds_syn(fd) => return self.send(fd, bytes, flags),
            Role::Stream(stream) if stream.connecting => return Err(Errno(EALREADY)),
            Role::Stream(_) | Role::Listener { .. } => return Err(Errno(EISCONN)),
        }
        let mut queued = 0;
        if self.holds_syn(fd) {
            queued = self.write_now(fd, bytes, how, false)?.unwrap_or(0);
            self.release_syn(fd);
        }
        let or_queued = |errno| if queued > 0 { Ok(queued) } else { Err(Errno(errno)) };
        match self.wait_unless(nonblocking, timeout, |host| host.connected(fd)) {
            Waited::Done(outcome) => outcome?,
            Waited::TimedOut => return or_queued(EINPROGRESS),
            Waited::Interrupted => return or_queued(EINTR),
        }
        let rest = bytes.get(queued..).unwrap_or_default();
        match self.send(fd, rest, flags) {
            Ok(more) => Ok(queued + more),
            Err(Errno(errno)) => or_queued(errno),
        }
    }
}
