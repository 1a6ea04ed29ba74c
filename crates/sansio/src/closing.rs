//! `shutdown` and `close`.
//!
//! After `close` a connection belongs to the stack, which ends it in order, or by a reset if somebody would lose data unawares.

use crate::errno::{EINVAL, ENOTCONN, Errno, Result};
use crate::host::Host;
use crate::socket::{Role, Stream};
use transom_tcp::connection::State;
use transom_tcp::time::Duration;

/// `shutdown`: no more reading.
pub const SHUT_RD: i32 = 0;
/// `shutdown`: no more writing.
pub const SHUT_WR: i32 = 1;
/// `shutdown`: neither.
pub const SHUT_RDWR: i32 = 2;

impl Host {
    /// `shutdown(2)`. As on Linux, after `SHUT_RD` what has arrived and what still arrives can be read, and then the end; a listener
    /// stops listening, and an attempt to connect is given up.
    ///
    /// # Errors
    /// `EINVAL` for another `how`, `ENOTCONN`.
    pub fn shutdown(&mut self, fd: i32, how: i32) -> Result<()> {
        let (read, write) = match how {
            SHUT_RD => (true, false),
            SHUT_WR => (false, true),
            SHUT_RDWR => (true, true),
            _ => return Err(Errno(EINVAL)),
        };
        match self.sockets.get(fd)?.role {
            Role::Fresh => Err(Errno(ENOTCONN)),
            Role::Listener { id, .. } => {
                if read {
                    self.stack.close_listener(id, self.now());
                    self.sockets.get_mut(fd)?.role = Role::Fresh;
                    self.settle();
                }
                Ok(())
            }
            Role::Stream(stream) => match self.state(&stream) {
                State::SynSent => {
                    self.forget(fd, &stream);
                    Ok(())
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
                    if state == State::Closed { Err(Errno(ENOTCONN)) } else { Ok(()) }
                }
            },
        }
    }

    /// `close(2)`. The descriptor is free afterwards, whatever happens. Unread data, or `SO_LINGER` of zero seconds, reset the
    /// connection; a longer `SO_LINGER` waits on a blocking socket for so long, or as long as patience lasts, until everything is
    /// acknowledged. The connection then ends by itself.
    ///
    /// # Errors
    /// `EBADF`.
    pub fn close(&mut self, fd: i32) -> Result<()> {
        let socket = self.sockets.remove(fd)?;
        let now = self.now();
        match socket.role {
            Role::Fresh => {}
            Role::Listener { id, .. } => self.stack.close_listener(id, now),
            Role::Stream(stream) => match socket.options.linger {
                Some(Duration::ZERO) => self.stack.abort(stream.id, now),
                Some(linger) if !socket.nonblocking && self.is_orderly(&stream) => {
                    let _ = self.stack.shutdown_write(stream.id, now);
                    self.settle();
                    self.wait(Some(linger), |host| host.is_delivered(&stream).then_some(()));
                    self.stack.close(stream.id, self.now());
                }
                _ => self.stack.close(stream.id, now),
            },
        }
        self.settle();
        Ok(())
    }

    /// Whether closing now sends a FIN and not a reset.
    fn is_orderly(&self, stream: &Stream) -> bool {
        self.connection(stream).is_some_and(|connection| {
            let open = connection.state().is_synchronized() || connection.is_early();
            connection.readable() == 0 && open
        })
    }

    /// Whether the peer has everything, our FIN included, or never will have.
    fn is_delivered(&self, stream: &Stream) -> bool {
        !matches!(self.state(stream), State::FinWait1 | State::Closing | State::LastAck)
    }
}
