//! A descriptor's socket.
//!
//! A socket is fresh (perhaps bound), listens, or has a connection of the stack. The connection's own state says everything else.

use crate::address::Family;
use crate::drive::Sockets;
use crate::errno::{self, Errno, Result};
use crate::options::Options;
use libc::{
    EINVAL, EPROTONOSUPPORT, ESOCKTNOSUPPORT, F_GETFD, F_GETFL, F_SETFD, F_SETFL, IPPROTO_TCP,
    O_NONBLOCK, O_RDWR, SOCK_CLOEXEC, SOCK_NONBLOCK, SOCK_STREAM,
};
use std::any::Any;
use std::net::SocketAddr;
use transom_stack::{ConnectionId, ListenerId};
use transom_tcp::{Connection, State};

/// A descriptor's socket.
#[derive(Debug)]
pub(crate) struct Socket {
    pub(crate) family: Family,
    pub(crate) nonblocking: bool,
    pub(crate) options: Options,
    /// Its local address, from `bind` or from listening. The port is never zero.
    pub(crate) bound: Option<SocketAddr>,
    /// Keeps the port of `bound`, if the driver allocates ports.
    pub(crate) port: Option<Box<dyn Any + Send>>,
    pub(crate) role: Role,
}

/// A socket's part in a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Role {
    /// None yet.
    Fresh,
    /// It waits for connections, so many at a time.
    Listener { id: ListenerId, backlog: usize },
    /// It is one end of a connection.
    Stream(Stream),
}

/// A socket's own notes about its connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stream {
    pub(crate) id: ConnectionId,
    /// `connect` has not returned success yet.
    pub(crate) connecting: bool,
    /// The error that ended the connection has been reported, which happens once.
    pub(crate) error_reported: bool,
    /// Bytes taken out of the stream.
    pub(crate) consumed: u64,
    /// The place of the urgent byte that was last read out of band.
    pub(crate) urgent_read: Option<u64>,
    /// The application will not read, or not write, any more.
    pub(crate) shut_read: bool,
    pub(crate) shut_write: bool,
}

impl Stream {
    pub(crate) fn new(id: ConnectionId, connecting: bool) -> Self {
        Stream {
            id,
            connecting,
            error_reported: false,
            consumed: 0,
            urgent_read: None,
            shut_read: false,
            shut_write: false,
        }
    }
}

impl Sockets<'_> {
    pub(crate) fn socket(&mut self, domain: i32, kind: i32, protocol: i32) -> Result<i32> {
        let family = Family::from_number(domain)?;
        if kind & !(SOCK_NONBLOCK | SOCK_CLOEXEC) != SOCK_STREAM {
            return Err(Errno(ESOCKTNOSUPPORT));
        }
        if protocol != 0 && protocol != IPPROTO_TCP {
            return Err(Errno(EPROTONOSUPPORT));
        }
        let options = Options::of_profile(&self.stack.config().profile);
        self.table.insert(Socket {
            family,
            nonblocking: kind & SOCK_NONBLOCK != 0,
            options,
            bound: None,
            port: None,
            role: Role::Fresh,
        })
    }

    pub(crate) fn fcntl(&mut self, fd: i32, command: i32, argument: i32) -> Result<i32> {
        let socket = self.table.get_mut(fd)?;
        match command {
            F_GETFL => Ok(O_RDWR | if socket.nonblocking { O_NONBLOCK } else { 0 }),
            F_SETFL => {
                socket.nonblocking = argument & O_NONBLOCK != 0;
                Ok(0)
            }
            F_GETFD | F_SETFD => Ok(0),
            _ => Err(Errno(EINVAL)),
        }
    }

    /// The stream behind a descriptor, if it is one.
    pub(crate) fn stream(&self, fd: i32) -> Result<Option<Stream>> {
        Ok(match self.table.get(fd)?.role {
            Role::Stream(stream) => Some(stream),
            Role::Fresh | Role::Listener { .. } => None,
        })
    }

    pub(crate) fn stream_mut(&mut self, fd: i32) -> Option<&mut Stream> {
        match &mut self.table.get_mut(fd).ok()?.role {
            Role::Stream(stream) => Some(stream),
            Role::Fresh | Role::Listener { .. } => None,
        }
    }

    /// The connection of a stream. It lives until the socket is closed.
    pub(crate) fn connection(&self, stream: &Stream) -> Option<&Connection> {
        self.stack.connection(stream.id)
    }

    /// A stream's state; closed if there is nothing left of it.
    pub(crate) fn state(&self, stream: &Stream) -> State {
        self.connection(stream).map_or(State::Closed, Connection::state)
    }

    /// The error that ended a connection, unless it has been reported; or a soft error, with `IP_RECVERR`.
    pub(crate) fn pending_error(&self, stream: &Stream) -> Option<Errno> {
        let connection = self.connection(stream)?;
        if let Some(error) = connection.pending_soft_error() {
            return Some(Errno(error.errno()));
        }
        let error = connection.error().filter(|_| !stream.error_reported)?;
        let half_closed = connection.peer_has_closed() && !stream.shut_write;
        Some(errno::of_connection(error, half_closed))
    }

    /// Reports a pending error, once.
    pub(crate) fn take_error(&mut self, fd: i32) -> Option<Errno> {
        let stream = self.stream(fd).ok()??;
        let error = self.pending_error(&stream)?;
        let soft = |connection: &Connection| connection.pending_soft_error().is_some();
        if self.connection(&stream).is_some_and(soft) {
            let now = self.now();
            let _ = self.stack.with_connection(stream.id, now, Connection::take_soft_error);
            return Some(error);
        }
        self.stream_mut(fd)?.error_reported = true;
        Some(error)
    }
}
