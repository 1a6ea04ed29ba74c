//! Errors as the operating system's sockets report them.

use rustix::io::Errno;
use std::io;
use transom_stack::stack::{ConnectError, ListenError, SocketError};
use transom_tcp::connection::{ConnectionError, ReadError, WriteError};

/// The error number Linux gives for a connection that ended so.
pub(crate) fn errno(error: ConnectionError) -> Errno {
    match error {
        ConnectionError::Refused => Errno::CONNREFUSED,
        ConnectionError::Reset => Errno::CONNRESET,
        ConnectionError::TimedOut => Errno::TIMEDOUT,
        ConnectionError::HostUnreachable => Errno::HOSTUNREACH,
        ConnectionError::NetworkUnreachable => Errno::NETUNREACH,
        ConnectionError::Aborted => Errno::CONNABORTED,
    }
}

pub(crate) fn would_block() -> io::Error {
    Errno::AGAIN.into()
}

pub(crate) fn socket_error(error: SocketError) -> io::Error {
    match error {
        SocketError::NotFound => Errno::NOTCONN.into(),
        SocketError::Read(ReadError::WouldBlock) | SocketError::Write(WriteError::WouldBlock) => {
            would_block()
        }
        // It is the data that is not whole; the stream can be read on behind it.
        SocketError::Read(ReadError::Hole) => io::Error::new(io::ErrorKind::InvalidData, error),
        SocketError::Read(ReadError::Failed(error))
        | SocketError::Write(WriteError::Failed(error)) => errno(error).into(),
        SocketError::Write(WriteError::Closed) => Errno::PIPE.into(),
        SocketError::Write(WriteError::TooLarge { .. }) => {
            io::Error::new(io::ErrorKind::InvalidInput, error)
        }
        SocketError::Read(ReadError::Delivery(_)) | SocketError::Write(WriteError::Delivery(_)) => {
            io::Error::new(io::ErrorKind::Unsupported, error)
        }
    }
}

pub(crate) fn connect_error(error: ConnectError) -> io::Error {
    let errno = match error {
        ConnectError::BadRemote(_) => Errno::INVAL,
        ConnectError::NoRoute(_) => Errno::NETUNREACH,
        ConnectError::NotLocal(_) => Errno::ADDRNOTAVAIL,
        ConnectError::InUse => Errno::ADDRINUSE,
        ConnectError::NoPort => Errno::ADDRNOTAVAIL,
        ConnectError::TooMany => Errno::NFILE,
        ConnectError::Profile(_) => Errno::INVAL,
    };
    io::Error::new(io::Error::from(errno).kind(), error)
}

pub(crate) fn listen_error(error: ListenError) -> io::Error {
    let errno = match error {
        ListenError::InUse(_) | ListenError::NoPort => Errno::ADDRINUSE,
        ListenError::NotLocal(_) => Errno::ADDRNOTAVAIL,
        ListenError::Profile(_) => Errno::INVAL,
    };
    io::Error::new(io::Error::from(errno).kind(), error)
}
