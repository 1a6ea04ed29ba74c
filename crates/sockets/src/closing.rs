//! `shutdown` and `close`.
//!
//! After `close` a connection belongs to the stack, which ends it in order, or by a reset if data would be lost unnoticed.

use crate::drive::{Awaited, Drive, Sockets};
use crate::errno::{Errno, Result};
use crate::socket::{Role, Stream};
use libc::{EINVAL, ENOTCONN, SHUT_RD, SHUT_RDWR, SHUT_WR};
use transom_tcp::State;
use transom_tcp::time::Duration;

impl Sockets<'_> {
    /// Gives what threads may be waiting for that this has changed.
    pub(crate) fn shutdown(&mut self, fd: i32, how: i32) -> Result<Vec<Awaited>> {
        let (read, write) = match how {
            SHUT_RD => (true, false),
            SHUT_WR => (false, true),
            SHUT_RDWR => (true, true),
            _ => return Err(Errno(EINVAL)),
        };
        match self.table.get(fd)?.role {
            Role::Fresh => Err(Errno(ENOTCONN)),
            Role::Listener { id, .. } => {
                if read {
                    self.stack.close_listener(id, self.now());
                    self.table.set_role(fd, Role::Fresh)?;
                    self.settle();
                }
                Ok(vec![Awaited::Acceptable(id)])
            }
            Role::Stream(stream) => {
                let awaited = vec![Awaited::Readable(stream.id), Awaited::Writable(stream.id)];
                match self.state(&stream) {
                    State::SynSent => {
                        self.forget(fd, &stream);
                        Ok(awaited)
                    }
                    state => {
                        let now = self.now();
                        if write {
                            let _ = self.stack.shutdown_write(stream.id, now);
                        }
                        if let Some(stream) = self.stream_mut(fd) {
                            stream.shut_read |= read;
                            stream.shut_write |= write;
                        }
                        self.settle();
                        if state == State::Closed { Err(Errno(ENOTCONN)) } else { Ok(awaited) }
                    }
                }
            }
        }
    }

    /// Closes at once, except where there is time to be spent on it: then it gives the connection and how long.
    fn close(&mut self, fd: i32, waits: bool) -> Result<Option<(Stream, Duration)>> {
        let socket = self.table.remove(fd)?;
        let now = self.now();
        match socket.role {
            Role::Fresh => {}
            Role::Listener { id, .. } => self.stack.close_listener(id, now),
            Role::Stream(stream) => match socket.options.linger {
                Some(Duration::ZERO) => self.stack.abort(stream.id, now),
                Some(linger) if waits && !socket.nonblocking && self.is_orderly(&stream) => {
                    let _ = self.stack.shutdown_write(stream.id, now);
                    self.settle();
                    return Ok(Some((stream, linger)));
                }
                _ => self.stack.close(stream.id, now),
            },
        }
        self.settle();
        Ok(None)
    }

    /// Whether closing now sends a FIN and not a reset.
    fn is_orderly(&self, stream: &Stream) -> bool {
        self.connection(stream).is_some_and(|connection| {
            let open = connection.state().is_synchronized() || connection.opening().is_early;
            connection.readable() == 0 && open
        })
    }

    /// Whether the peer has everything, our FIN included, or never will have.
    fn is_delivered(&self, stream: &Stream) -> bool {
        !matches!(self.state(stream), State::FinWait1 | State::Closing | State::LastAck)
    }
}

/// `waits`: there is somebody to wait for a lingering close.
pub(crate) fn close(driver: &mut impl Drive, fd: i32, waits: bool) -> Result<()> {
    let Some((stream, linger)) = driver.with(|sockets| sockets.close(fd, waits))? else {
        return Ok(());
    };
    let awaited = Awaited::Writable(stream.id);
    driver.wait(awaited, Some(linger), |sockets| sockets.is_delivered(&stream).then_some(()));
    driver.with(|sockets| {
        sockets.stack.close(stream.id, sockets.now());
        sockets.settle();
    });
    Ok(())
}
