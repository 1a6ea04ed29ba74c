//! Errors, numbered and chosen as on Linux.
//!
//! The numbers are those of `libc`, and so of the processor: MIPS, SPARC, Alpha and PA-RISC have tables of their own. At the C boundary of
//! `transom-sansio` they are returned negated.

use libc::{
    EADDRINUSE, EADDRNOTAVAIL, ECONNABORTED, ECONNREFUSED, ECONNRESET, EINVAL, EIO, ENETUNREACH,
    ENFILE, EPIPE, ETIMEDOUT,
};
use std::io;
use transom_stack::{ConnectError, ListenError};
use transom_tcp::ConnectionError;

/// An error number, positive.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Errno(pub i32);

/// The result of every call here.
pub type Result<T> = core::result::Result<T, Errno>;

/// The name of an error number, out of these.
macro_rules! name_of {
    ($number:expr, $($name:ident)*) => {
        match $number {
            $(libc::$name => stringify!($name),)*
            _ => "unknown error",
        }
    };
}

impl Errno {
    /// The error's symbol, such as `"EAGAIN"`.
    fn name(self) -> &'static str {
        name_of!(
            self.0,
            ENOENT EINTR EIO E2BIG EBADF EAGAIN EACCES EFAULT EINVAL ENFILE EMFILE ENOTTY EPIPE ENONET EPROTO EMSGSIZE ENOPROTOOPT
            EPROTONOSUPPORT ESOCKTNOSUPPORT EOPNOTSUPP EAFNOSUPPORT EADDRINUSE EADDRNOTAVAIL ENETUNREACH ECONNABORTED ECONNRESET
            EISCONN ENOTCONN ETIMEDOUT ECONNREFUSED EHOSTDOWN EHOSTUNREACH EALREADY EINPROGRESS
        )
    }
}

impl core::fmt::Debug for Errno {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} ({})", self.name(), self.0)
    }
}

impl core::fmt::Display for Errno {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.name())
    }
}

impl core::error::Error for Errno {}

/// Of the operating system or of a device. An error without a number gets one by its kind.
impl From<io::Error> for Errno {
    fn from(error: io::Error) -> Self {
        Errno(error.raw_os_error().unwrap_or_else(|| match error.kind() {
            io::ErrorKind::NotFound => libc::ENODEV,
            io::ErrorKind::PermissionDenied => libc::EPERM,
            io::ErrorKind::AddrInUse => EADDRINUSE,
            io::ErrorKind::AddrNotAvailable => EADDRNOTAVAIL,
            io::ErrorKind::InvalidInput => EINVAL,
            io::ErrorKind::TimedOut => ETIMEDOUT,
            io::ErrorKind::Unsupported => libc::EOPNOTSUPP,
            io::ErrorKind::NetworkUnreachable => ENETUNREACH,
            io::ErrorKind::HostUnreachable => libc::EHOSTUNREACH,
            io::ErrorKind::OutOfMemory => libc::ENOMEM,
            _ => libc::ENETDOWN,
        }))
    }
}

/// How a connection ended. `half_closed`: the peer's FIN had arrived before, and nothing had been closed here.
pub(crate) fn of_connection(error: ConnectionError, half_closed: bool) -> Errno {
    Errno(match error {
        ConnectionError::Refused => ECONNREFUSED,
        // Linux: a reset in CLOSE-WAIT means that nobody reads what we write.
        ConnectionError::Reset if half_closed => EPIPE,
        ConnectionError::Reset => ECONNRESET,
        ConnectionError::TimedOut => ETIMEDOUT,
        ConnectionError::Unreachable(error) => error.errno(),
        ConnectionError::Aborted => ECONNABORTED,
        _ => EIO,
    })
}

impl From<ConnectError> for Errno {
    fn from(error: ConnectError) -> Self {
        Errno(match error {
            ConnectError::BadRemote(remote) if remote.port() == 0 => EINVAL,
            ConnectError::BadRemote(_) | ConnectError::NoRoute(_) => ENETUNREACH,
            ConnectError::NotLocal(_) | ConnectError::NoPort | ConnectError::InUse => EADDRNOTAVAIL,
            ConnectError::TooMany => ENFILE,
            ConnectError::Profile(_) => EINVAL,
            _ => EIO,
        })
    }
}

impl From<ListenError> for Errno {
    fn from(error: ListenError) -> Self {
        Errno(match error {
            ListenError::InUse(_) | ListenError::EverythingInUse | ListenError::NoPort => {
                EADDRINUSE
            }
            ListenError::NotLocal(_) => EADDRNOTAVAIL,
            ListenError::NotOurPorts | ListenError::Profile(_) => EINVAL,
            _ => EIO,
        })
    }
}
