//! The connection to the peer, behind a program's socket: Transom's, or the kernel's.

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

/// The kernel takes received data of this size or more from where it lies. Smaller data is copied together first: a copy costs less than a call.
const MIN_LENT_PIECE: usize = 8 * 1024;

/// The connection to the peer.
#[derive(Debug)]
pub(crate) enum OuterConnection {
    Transom(TcpStream),
    Kernel(net::TcpStream),
}

/// How far an attempt to connect has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnectProgress {
    InProgress,
    Connected,
    Failed(c_int),
}

/// The result of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadOutcome {
    /// So many bytes, and whether there is more at once: data, the end or an error.
    Bytes(usize, bool),
    End,
    WouldBlock,
    Failed(c_int),
}

/// The result of moving the program's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MoveOutcome {
    Bytes(usize),
    /// The program has written nothing more yet.
    NoData,
    /// The program will write no more.
    End,
    /// The program has closed its end with unread data in it.
    Reset,
    /// The send buffer is full.
    NoRoom,
    /// This connection cannot do it: read the data and write it instead.
    Unsupported,
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

/// The error number of Linux for a connection that ended with this error.
fn connection_errno(error: ConnectionError) -> c_int {
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

/// Receives at most `room` bytes behind what `buffer` holds.
fn receive(ours: &OwnedFd, buffer: &mut Vec<u8>, room: usize) -> Result<usize, Errno> {
    let flags = RecvFlags::DONTWAIT;
    let len = buffer.len();
    loop {
        let result = if buffer.capacity() - len <= room {
            recv(ours, spare_capacity(buffer), flags).map(|(n, _)| n)
        } else {
            buffer.resize(len + room, 0);
            let tail = buffer.get_mut(len..).unwrap_or_default();
            let result = recv(ours, tail, flags).map(|(n, _)| n);
            buffer.truncate(len + result.unwrap_or(0));
            result
        };
        if result != Err(Errno::INTR) {
            return result;
        }
    }
}

impl OuterConnection {
    /// Begins to connect by Transom.
    pub(crate) fn by_transom(
        stack: &Stack,
        local: Option<SocketAddr>,
        remote: SocketAddr,
    ) -> io::Result<OuterConnection> {
        TcpStream::connect_nonblocking_with(stack, local, remote, None)
            .map(OuterConnection::Transom)
    }

    /// Begins to connect by a socket of the kernel's.
    pub(crate) fn by_kernel(socket: OwnedFd, remote: SocketAddr) -> io::Result<OuterConnection> {
        match rustix::net::connect(&socket, &remote) {
            Ok(()) | Err(Errno::INPROGRESS) => Ok(OuterConnection::Kernel(socket.into())),
            Err(error) => Err(error.into()),
        }
    }

    /// How far connecting has come.
    pub(crate) fn connect_progress(&self) -> ConnectProgress {
        match self {
            OuterConnection::Transom(stream) => {
                match stream
                    .with_connection(|connection, _| (connection.state(), connection.error()))
                {
                    Ok((_, Some(error))) => ConnectProgress::Failed(connection_errno(error)),
                    Ok((State::SynSent | State::SynReceived, None)) => ConnectProgress::InProgress,
                    Ok(_) => ConnectProgress::Connected,
                    Err(error) => ConnectProgress::Failed(errno_of(&error)),
                }
            }
            OuterConnection::Kernel(stream) => match stream.take_error() {
                Ok(Some(error)) | Err(error) => ConnectProgress::Failed(errno_of(&error)),
                Ok(None) if stream.peer_addr().is_ok() => ConnectProgress::Connected,
                Ok(None) => ConnectProgress::InProgress,
            },
        }
    }

    pub(crate) fn local_addr(&self) -> io::Result<SocketAddr> {
        match self {
            OuterConnection::Transom(stream) => stream.local_addr(),
            OuterConnection::Kernel(stream) => stream.local_addr(),
        }
    }

    pub(crate) fn peer_addr(&self) -> io::Result<SocketAddr> {
        match self {
            OuterConnection::Transom(stream) => stream.peer_addr(),
            OuterConnection::Kernel(stream) => stream.peer_addr(),
        }
    }

    /// Reads the data that is there.
    pub(crate) fn read(&self, into: &mut [u8]) -> ReadOutcome {
        match self {
            OuterConnection::Transom(stream) => {
                let read = |connection: &mut Connection, now: Instant| {
                    let result = connection.read(now, into);
                    (result, connection.is_readable())
                };
                match stream.with_connection(read) {
                    Ok((Ok(0), _)) => ReadOutcome::End,
                    Ok((Ok(n), more)) => ReadOutcome::Bytes(n, more),
                    Ok((Err(ReadError::WouldBlock | ReadError::Soft(_)), _)) => {
                        ReadOutcome::WouldBlock
                    }
                    Ok((Err(ReadError::Failed(error)), _)) => {
                        ReadOutcome::Failed(connection_errno(error))
                    }
                    // Data that has holes is not a stream any more.
                    Ok((Err(ReadError::Hole | ReadError::Delivery(_)), _)) => {
                        ReadOutcome::Failed(libc::EIO)
                    }
                    Err(error) => ReadOutcome::Failed(errno_of(&error)),
                }
            }
            OuterConnection::Kernel(stream) => loop {
                return match (&mut &*stream).read(into) {
                    Ok(0) => ReadOutcome::End,
                    Ok(n) => ReadOutcome::Bytes(n, true),
                    Err(error) => match error.kind() {
                        io::ErrorKind::Interrupted => continue,
                        io::ErrorKind::WouldBlock => ReadOutcome::WouldBlock,
                        _ => ReadOutcome::Failed(errno_of(&error)),
                    },
                };
            },
        }
    }

    /// Takes large pieces of what has arrived, with the memory in which they lie.
    pub(crate) fn take_pieces(&self, pieces: &mut VecDeque<Chunk>, most: usize) {
        if let OuterConnection::Transom(stream) = self {
            stream.take_chunks(MIN_LENT_PIECE, most, pieces);
        }
    }

    /// Moves the program's data into the send buffer, without a copy of our own.
    pub(crate) fn move_from_pair(&self, ours: &OwnedFd) -> MoveOutcome {
        let OuterConnection::Transom(stream) = self else { return MoveOutcome::Unsupported };
        let mut moved = MoveOutcome::NoRoom;
        let receive = |buffer: &mut Vec<u8>, room: usize| {
            moved = match receive(ours, buffer, room) {
                Ok(0) => MoveOutcome::End,
                Ok(n) => MoveOutcome::Bytes(n),
                Err(Errno::AGAIN) => MoveOutcome::NoData,
                Err(_) => MoveOutcome::Reset,
            }
        };
        match stream.with_connection(|connection, now| connection.write_by(now, receive)) {
            Ok(Ok(_)) => moved,
            Ok(Err(WriteError::WouldBlock | WriteError::Soft(_))) => MoveOutcome::NoRoom,
            // An ordinary write finds the error.
            Ok(Err(_)) | Err(_) => MoveOutcome::Unsupported,
        }
    }

    /// Writes as much as there is room for: `Ok(0)` if there is none.
    pub(crate) fn write(&self, bytes: &[u8]) -> Result<usize, c_int> {
        let result = match self {
            OuterConnection::Transom(stream) => (&mut &*stream).write(bytes),
            OuterConnection::Kernel(stream) => (&mut &*stream).write(bytes),
        };
        match result {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(0),
            Err(error) => Err(errno_of(&error)),
            Ok(n) => Ok(n),
        }
    }

    /// Ends the direction to the peer: the connection sends a FIN after the data.
    pub(crate) fn shut_down_writes(&self) {
        // This fails only for a connection that has ended.
        let _ = match self {
            OuterConnection::Transom(stream) => stream.shutdown(Shutdown::Write),
            OuterConnection::Kernel(stream) => stream.shutdown(Shutdown::Write),
        };
    }

    /// Resets the connection.
    pub(crate) fn abort(self) {
        match self {
            OuterConnection::Transom(stream) => {
                let _ = stream.set_linger(Some(Duration::ZERO));
            }
            OuterConnection::Kernel(stream) => {
                let _ = sockopt::set_socket_linger(stream, Some(Duration::ZERO));
            }
        }
    }
}
