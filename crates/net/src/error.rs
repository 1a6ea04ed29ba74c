//! Errors as the operating system's sockets report them.

use rustix::io::Errno;
use std::io;
use transom_stack::{ConnectError, ListenError, SocketError};
use transom_tcp::{ConnectionError, IcmpError, ReadError, WriteError};

/// The error number Linux gives for a connection that ended so.
pub(crate) fn errno(error: ConnectionError) -> Errno {
    match error {
        ConnectionError::Refused => Errno::CONNREFUSED,
        ConnectionError::Reset => Errno::CONNRESET,
        ConnectionError::TimedOut => Errno::TIMEDOUT,
        ConnectionError::Unreachable(error) => Errno::from_raw_os_error(error.errno()),
        ConnectionError::Aborted => Errno::CONNABORTED,
        _ => Errno::IO,
    }
}

/// A soft error. Its kind is that of the operating system; the [`IcmpError`] inside distinguishes it from an error that ended the
/// connection.
pub(crate) fn soft_error(error: IcmpError) -> io::Error {
    io::Error::new(io::Error::from_raw_os_error(error.errno()).kind(), error)
}

/// Whether an error of a call says how the connection ended.
pub(crate) fn is_final(error: &io::Error) -> bool {
    let passing = [Errno::AGAIN, Errno::PIPE, Errno::NOTCONN];
    error.raw_os_error().is_some_and(|number| passing.iter().all(|e| e.raw_os_error() != number))
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
        SocketError::Read(ReadError::Soft(error)) | SocketError::Write(WriteError::Soft(error)) => {
            soft_error(error)
        }
        SocketError::Read(ReadError::Failed(error))
        | SocketError::Write(WriteError::Failed(error)) => errno(error).into(),
        SocketError::Write(WriteError::Closed) => Errno::PIPE.into(),
        SocketError::Write(WriteError::TooLarge { .. }) | SocketError::BadOption(_) => {
            io::Error::new(io::ErrorKind::InvalidInput, error)
        }
        SocketError::Read(ReadError::Delivery(_)) | SocketError::Write(WriteError::Delivery(_)) => {
            io::Error::new(io::ErrorKind::Unsupported, error)
        }
        _ => io::Error::other(error),
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
        _ => Errno::IO,
    };
    io::Error::new(io::Error::from(errno).kind(), error)
}

pub(crate) fn listen_error(error: ListenError) -> io::Error {
    let errno = match error {
        ListenError::InUse(_) | ListenError::NoPort => Errno::ADDRINUSE,
        ListenError::NotLocal(_) => Errno::ADDRNOTAVAIL,
        ListenError::EverythingInUse => Errno::ADDRINUSE,
        ListenError::NotOurPorts | ListenError::Profile(_) => Errno::INVAL,
        _ => Errno::IO,
    };
    io::Error::new(io::Error::from(errno).kind(), error)
}
