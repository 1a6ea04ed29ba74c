//! TCP Fast Open (RFC 7413): `sendto` that connects, and connections that are used before their handshake is complete.

use crate::drive::{Drive, Sockets, Waited};
use crate::errno::{Errno, Result};
use crate::opening;
use crate::socket::{Role, Stream};
use crate::stream::{self, How, Pieces};
use libc::{EALREADY, EINPROGRESS, EINTR, EINVAL, EISCONN, MSG_DONTWAIT};
use std::net::SocketAddr;
use transom_tcp::State;

impl Sockets<'_> {
    /// Whether nothing passes before the handshake is complete. A connection that began with a SYN and a cookie is used at once.
    pub(crate) fn is_in_handshake(&self, stream: &Stream) -> bool {
        self.connection(stream).is_some_and(|connection| {
            let opening = matches!(connection.state(), State::SynSent | State::SynReceived);
            opening && !connection.opening().is_early && !connection.opening().holds_syn
        })
    }

    /// Whether the socket's SYN waits for data to go with.
    pub(crate) fn holds_syn(&self, fd: i32) -> bool {
        let Ok(Some(stream)) = self.stream(fd) else { return false };
        self.connection(&stream).is_some_and(|connection| connection.opening().holds_syn)
    }

    /// Lets a SYN go that waits for data.
    pub(crate) fn release_syn(&mut self, fd: i32) {
        let Ok(Some(stream)) = self.stream(fd) else { return };
        let now = self.now();
        let _ = self.stack.with_connection(stream.id, now, |connection| connection.release(now));
        self.settle();
    }
}

/// `sendto(2)` with `MSG_FASTOPEN`, which is not among `flags` any more.
pub(crate) fn send_to(
    driver: &mut impl Drive,
    fd: i32,
    bytes: Pieces<'_>,
    flags: i32,
    remote: Option<SocketAddr>,
) -> Result<usize> {
    let how = How::of_flags(flags)?;
    let begun = |sockets: &mut Sockets<'_>| -> Result<(Role, bool)> {
        Ok((sockets.table.get(fd)?.role, sockets.holds_syn(fd)))
    };
    let (role, held) = driver.with(begun)?;
    // Begun by another call: this one finds out how it came out, as on Linux, and sends if it came out well.
    let again = matches!(role, Role::Stream(stream) if stream.connecting && !held);
    match role {
        Role::Fresh => opening::begin(driver, fd, remote.ok_or(Errno(EINVAL))?, true)?,
        Role::Stream(_) if held => return stream::send(driver, fd, bytes, flags),
        Role::Stream(_) if again => {}
        Role::Stream(_) | Role::Listener { .. } => return Err(Errno(EISCONN)),
    }
    let queued = driver.with(|sockets| -> Result<usize> {
        if again || !sockets.holds_syn(fd) {
            return Ok(0);
        }
        let queued = sockets.write_now(fd, bytes, 0, how, false)?.unwrap_or(0);
        sockets.release_syn(fd);
        Ok(queued)
    })?;
    let or_queued = |errno| if queued > 0 { Ok(queued) } else { Err(Errno(errno)) };
    let mut waiting = driver.with(|sockets| sockets.opening(fd))?;
    waiting.nonblocking |= flags & MSG_DONTWAIT != 0;
    match waiting.until(driver, |sockets| sockets.connected(fd)) {
        Waited::Done(outcome) => outcome?,
        Waited::TimedOut => return or_queued(if again { EALREADY } else { EINPROGRESS }),
        Waited::Interrupted => return or_queued(EINTR),
        Waited::Failed(Errno(errno)) => return or_queued(errno),
    }
    match stream::send_from(driver, fd, bytes, queued, flags) {
        Ok(more) => Ok(queued + more),
        Err(Errno(errno)) => or_queued(errno),
    }
}
