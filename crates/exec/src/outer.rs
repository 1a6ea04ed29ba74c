//! The outer side of a connection: Transom's, or the kernel's.

use std::collections::VecDeque;
use std::io::{self, Read as _, Write};
use std::net::{self, Shutdown, SocketAddr};
use std::os::fd::OwnedFd;
use std::time::Duration;

use libc::c_int;
use rustix::buffer::spare_capacity;
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, recv, sockopt};
use transom_net::{Chunk, Stack, TcpStream};
use transom_tcp::connection::{Connection, ConnectionError, ReadError, State, WriteError};
use transom_tcp::time::Instant;

/// Data that lies in one piece of this size is handed to the kernel where it lies. Smaller pieces are gathered first: a copy costs less than a call.
const WORTH_LENDING: usize = 8 * 1024;

/// A connection.
#[derive(Debug)]
pub(crate) enum Outer {
    Transom(TcpStream),
    Kernel(net::TcpStream),
}

/// How far a connection has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opening {
    Going,
    Done,
    Failed(c_int),
}

/// The result of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Read {
    /// So many bytes, and whether there is more at once: data, the end or an error.
    Bytes(usize, bool),
    End,
    Later,
    Failed(c_int),
}

/// The result of moving the program's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moved {
    Bytes(usize),
    /// The program has written nothing more.
    Later,
    /// It never will.
    End,
    /// It has closed its end and left something unread.
    Broken,
    /// There is no room.
    Full,
    /// It has to be done in the ordinary way.
    NotHere,
}

/// The number of an error, also where only its kind is known.
pub(crate) fn errno_of(error: &io::Error) -> c_int {
    if let Some(number) = error.raw_os_error() {
        return number;
    }
    match error.kind() {
        io::ErrorKind::AddrInUse => libc::EADDRINUSE,
        io::ErrorKind::AddrNotAvailable => libc::EADDRNOTAVAIL,
        io::ErrorKind::NetworkUnreachable => libc::ENETUNREACH,
        io::ErrorKind::ConnectionRefused => libc::ECONNREFUSED,
        io::ErrorKind::ConnectionReset => libc::ECONNRESET,
        io::ErrorKind::InvalidInput => libc::EINVAL,
        io::ErrorKind::NotConnected => libc::ENOTCONN,
        io::ErrorKind::PermissionDenied => libc::EACCES,
        io::ErrorKind::TimedOut => libc::ETIMEDOUT,
        io::ErrorKind::WouldBlock => libc::EAGAIN,
        _ => libc::EIO,
    }
}

/// The number Linux gives for a connection that ended so.
fn errno(error: ConnectionError) -> c_int {
    match error {
        ConnectionError::Refused => libc::ECONNREFUSED,
        ConnectionError::Reset => libc::ECONNRESET,
        ConnectionError::TimedOut => libc::ETIMEDOUT,
        ConnectionError::Unreachable(error) => error.errno(),
        ConnectionError::Aborted => libc::ECONNABORTED,
    }
}

/// A socket of the kernel's that is not used yet.
pub(crate) fn kernel_socket(v6: bool) -> io::Result<OwnedFd> {
    let family = if v6 { AddressFamily::INET6 } else { AddressFamily::INET };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(rustix::net::socket_with(family, SocketType::STREAM, flags, None)?)
}

/// Receives at most `room` bytes behind what `end` holds.
fn receive(ours: &OwnedFd, end: &mut Vec<u8>, room: usize) -> Result<usize, Errno> {
    let flags = RecvFlags::DONTWAIT;
    let len = end.len();
    loop {
        let result = if end.capacity() - len <= room {
            recv(ours, spare_capacity(end), flags).map(|(n, _)| n)
        } else {
            end.resize(len + room, 0);
            let fresh = end.get_mut(len..).unwrap_or_default();
            let result = recv(ours, fresh, flags).map(|(n, _)| n);
            end.truncate(len + result.unwrap_or(0));
            result
        };
        if result != Err(Errno::INTR) {
            return result;
        }
    }
}

impl Outer {
    /// Begins to connect by Transom.
    pub(crate) fn by_transom(
        stack: &Stack,
        local: Option<SocketAddr>,
        remote: SocketAddr,
    ) -> io::Result<Outer> {
        TcpStream::connect_nonblocking_with(stack, local, remote, None).map(Outer::Transom)
    }

    /// Begins to connect by a socket of the kernel's.
    pub(crate) fn by_kernel(socket: OwnedFd, remote: SocketAddr) -> io::Result<Outer> {
        match rustix::net::connect(&socket, &remote) {
            Ok(()) | Err(Errno::INPROGRESS) => Ok(Outer::Kernel(socket.into())),
            Err(error) => Err(error.into()),
        }
    }

    /// How far connecting has come.
    pub(crate) fn opening(&self) -> Opening {
        match self {
            Outer::Transom(stream) => {
                match stream
                    .with_connection(|connection, _| (connection.state(), connection.error()))
                {
                    Ok((_, Some(error))) => Opening::Failed(errno(error)),
                    Ok((State::SynSent | State::SynReceived, None)) => Opening::Going,
                    Ok(_) => Opening::Done,
                    Err(error) => Opening::Failed(errno_of(&error)),
                }
            }
            Outer::Kernel(stream) => match stream.take_error() {
                Ok(Some(error)) | Err(error) => Opening::Failed(errno_of(&error)),
                Ok(None) if stream.peer_addr().is_ok() => Opening::Done,
                Ok(None) => Opening::Going,
            },
        }
    }

    pub(crate) fn local(&self) -> io::Result<SocketAddr> {
        match self {
            Outer::Transom(stream) => stream.local_addr(),
            Outer::Kernel(stream) => stream.local_addr(),
        }
    }

    pub(crate) fn peer(&self) -> io::Result<SocketAddr> {
        match self {
            Outer::Transom(stream) => stream.peer_addr(),
            Outer::Kernel(stream) => stream.peer_addr(),
        }
    }

    /// Reads the data that is there.
    pub(crate) fn read(&self, into: &mut [u8]) -> Read {
        match self {
            Outer::Transom(stream) => {
                let read = |connection: &mut Connection, now: Instant| {
                    let result = connection.read(now, into);
                    (result, connection.is_readable())
                };
                match stream.with_connection(read) {
                    Ok((Ok(0), _)) => Read::End,
                    Ok((Ok(n), more)) => Read::Bytes(n, more),
                    Ok((Err(ReadError::WouldBlock | ReadError::Soft(_)), _)) => Read::Later,
                    Ok((Err(ReadError::Failed(error)), _)) => Read::Failed(errno(error)),
                    // Data that has holes is not a stream any more.
                    Ok((Err(ReadError::Hole | ReadError::Delivery(_)), _)) => {
                        Read::Failed(libc::EIO)
                    }
                    Err(error) => Read::Failed(errno_of(&error)),
                }
            }
            Outer::Kernel(stream) => loop {
                return match (&mut &*stream).read(into) {
                    Ok(0) => Read::End,
                    Ok(n) => Read::Bytes(n, true),
                    Err(error) => match error.kind() {
                        io::ErrorKind::Interrupted => continue,
                        io::ErrorKind::WouldBlock => Read::Later,
                        _ => Read::Failed(errno_of(&error)),
                    },
                };
            },
        }
    }

    /// Takes large pieces of what has arrived, with the memory in which they lie.
    pub(crate) fn take_pieces(&self, pieces: &mut VecDeque<Chunk>, most: usize) {
        if let Outer::Transom(stream) = self {
            stream.take_chunks(WORTH_LENDING, most, pieces);
        }
    }

    /// Moves the program's data into the send buffer, without a copy of our own.
    pub(crate) fn take_from(&self, ours: &OwnedFd) -> Moved {
        let Outer::Transom(stream) = self else { return Moved::NotHere };
        let mut moved = Moved::Full;
        let receive = |end: &mut Vec<u8>, room: usize| {
            moved = match receive(ours, end, room) {
                Ok(0) => Moved::End,
                Ok(n) => Moved::Bytes(n),
                Err(Errno::AGAIN) => Moved::Later,
                Err(_) => Moved::Broken,
            }
        };
        match stream.with_connection(|connection, now| connection.write_by(now, receive)) {
            Ok(Ok(_)) => moved,
            Ok(Err(WriteError::WouldBlock | WriteError::Soft(_))) => Moved::Full,
            // The ordinary way finds the error.
            Ok(Err(_)) | Err(_) => Moved::NotHere,
        }
    }

    /// Writes as much as there is room for: `Ok(0)` if there is none.
    pub(crate) fn write(&self, bytes: &[u8]) -> Result<usize, c_int> {
        let result = match self {
            Outer::Transom(stream) => (&mut &*stream).write(bytes),
            Outer::Kernel(stream) => (&mut &*stream).write(bytes),
        };
        match result {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(0),
            Err(error) => Err(errno_of(&error)),
            Ok(n) => Ok(n),
        }
    }

    /// Says that no more will be written.
    pub(crate) fn finish(&self) {
        // If the connection is over, this is too.
        let _ = match self {
            Outer::Transom(stream) => stream.shutdown(Shutdown::Write),
            Outer::Kernel(stream) => stream.shutdown(Shutdown::Write),
        };
    }

    /// Resets the connection.
    pub(crate) fn abort(self) {
        match self {
            Outer::Transom(stream) => {
                let _ = stream.set_linger(Some(Duration::ZERO));
            }
            Outer::Kernel(stream) => {
                let _ = sockopt::set_socket_linger(stream, Some(Duration::ZERO));
            }
        }
    }
}
