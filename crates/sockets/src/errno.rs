//! Errors, numbered and chosen as on Linux.
//!
//! The numbers are those of Linux' generic table (x86, ARM, RISC-V; MIPS, SPARC, Alpha and PA-RISC have their own), whatever
//! system the library runs on: a script's expectation then means the same everywhere. At the C boundary they are returned
//! negated.

use transom_stack::{ConnectError, ListenError};
use transom_tcp::ConnectionError;

/// An error number, positive.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Errno(pub i32);

/// The result of every call here.
pub type Result<T> = core::result::Result<T, Errno>;

/// No such algorithm.
pub const ENOENT: i32 = 2;
/// The call was ended while it waited: repeat it to go on waiting.
pub const EINTR: i32 = 4;
/// The library has failed; its message says why.
pub const EIO: i32 = 5;
/// A configuration of a later version whose additions are not known here.
pub const E2BIG: i32 = 7;
/// No such host, or no such descriptor.
pub const EBADF: i32 = 9;
/// Nothing to read, no room to write, or no connection to accept at present.
pub const EAGAIN: i32 = 11;
/// A null pointer where memory is needed.
pub const EFAULT: i32 = 14;
/// An argument makes no sense.
pub const EINVAL: i32 = 22;
/// A router reports that a policy forbids it.
pub const EACCES: i32 = 13;
/// Too many connections.
pub const ENFILE: i32 = 23;
/// Too many descriptors.
pub const EMFILE: i32 = 24;
/// No such request.
pub const ENOTTY: i32 = 25;
/// The connection is closed for writing.
pub const EPIPE: i32 = 32;
/// A router reports that this host is isolated.
pub const ENONET: i32 = 64;
/// A router did not understand a header.
pub const EPROTO: i32 = 71;
/// The packet is too long.
pub const EMSGSIZE: i32 = 90;
/// No such option.
pub const ENOPROTOOPT: i32 = 92;
/// No such protocol.
pub const EPROTONOSUPPORT: i32 = 93;
/// No such type of socket.
pub const ESOCKTNOSUPPORT: i32 = 94;
/// The socket, or the library, does not support it.
pub const EOPNOTSUPP: i32 = 95;
/// No such family of addresses.
pub const EAFNOSUPPORT: i32 = 97;
/// The address is in use.
pub const EADDRINUSE: i32 = 98;
/// The address is not the host's, or no port is free.
pub const EADDRNOTAVAIL: i32 = 99;
/// No route leads to the address.
pub const ENETUNREACH: i32 = 101;
/// The connection was aborted on this side.
pub const ECONNABORTED: i32 = 103;
/// The peer reset the connection.
pub const ECONNRESET: i32 = 104;
/// The socket is connected, or listens.
pub const EISCONN: i32 = 106;
/// The socket is not connected.
pub const ENOTCONN: i32 = 107;
/// The peer did not answer in time.
pub const ETIMEDOUT: i32 = 110;
/// The peer refused the connection.
pub const ECONNREFUSED: i32 = 111;
/// A router reports that the host does not exist.
pub const EHOSTDOWN: i32 = 112;
/// The host cannot be reached.
pub const EHOSTUNREACH: i32 = 113;
/// The socket is connecting already.
pub const EALREADY: i32 = 114;
/// The connection is being opened.
pub const EINPROGRESS: i32 = 115;

impl Errno {
    /// The error's symbol, such as `"EAGAIN"`.
    fn name(self) -> &'static str {
        match self.0 {
            ENOENT => "ENOENT",
            EINTR => "EINTR",
            EIO => "EIO",
            E2BIG => "E2BIG",
            EBADF => "EBADF",
            EAGAIN => "EAGAIN",
            EACCES => "EACCES",
            EFAULT => "EFAULT",
            EINVAL => "EINVAL",
            ENFILE => "ENFILE",
            EMFILE => "EMFILE",
            ENOTTY => "ENOTTY",
            EPIPE => "EPIPE",
            ENONET => "ENONET",
            EPROTO => "EPROTO",
            EMSGSIZE => "EMSGSIZE",
            ENOPROTOOPT => "ENOPROTOOPT",
            EPROTONOSUPPORT => "EPROTONOSUPPORT",
            ESOCKTNOSUPPORT => "ESOCKTNOSUPPORT",
            EOPNOTSUPP => "EOPNOTSUPP",
            EAFNOSUPPORT => "EAFNOSUPPORT",
            EADDRINUSE => "EADDRINUSE",
            EADDRNOTAVAIL => "EADDRNOTAVAIL",
            ENETUNREACH => "ENETUNREACH",
            ECONNABORTED => "ECONNABORTED",
            ECONNRESET => "ECONNRESET",
            EISCONN => "EISCONN",
            ENOTCONN => "ENOTCONN",
            ETIMEDOUT => "ETIMEDOUT",
            ECONNREFUSED => "ECONNREFUSED",
            EHOSTDOWN => "EHOSTDOWN",
            EHOSTUNREACH => "EHOSTUNREACH",
            EALREADY => "EALREADY",
            EINPROGRESS => "EINPROGRESS",
            _ => "unknown error",
        }
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
