//! Errors of the operating system and of devices by their numbers.

use std::cell::RefCell;
use std::io;
use transom_sockets::errno::Errno;

thread_local! {
    /// Why this thread's last call failed, where a number says too little.
    static MESSAGE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Keeps the reason of a failure for the thread's program to ask for.
pub(crate) fn explain(why: impl Into<String>) {
    MESSAGE.set(why.into());
}

/// What was kept last.
pub(crate) fn explanation() -> String {
    MESSAGE.with_borrow(String::clone)
}

/// An error by its number. What has none is told by its kind.
pub(crate) fn errno_of(error: &io::Error) -> Errno {
    let number = error.raw_os_error().unwrap_or_else(|| match error.kind() {
        io::ErrorKind::NotFound => libc::ENODEV,
        io::ErrorKind::PermissionDenied => libc::EPERM,
        io::ErrorKind::AddrInUse => libc::EADDRINUSE,
        io::ErrorKind::AddrNotAvailable => libc::EADDRNOTAVAIL,
        io::ErrorKind::InvalidInput => libc::EINVAL,
        io::ErrorKind::TimedOut => libc::ETIMEDOUT,
        io::ErrorKind::Unsupported => libc::EOPNOTSUPP,
        io::ErrorKind::NetworkUnreachable => libc::ENETUNREACH,
        io::ErrorKind::HostUnreachable => libc::EHOSTUNREACH,
        io::ErrorKind::OutOfMemory => libc::ENOMEM,
        _ => libc::ENETDOWN,
    });
    Errno(number)
}

/// The same, with the reason kept.
pub(crate) fn explained(error: &io::Error) -> Errno {
    explain(error.to_string());
    errno_of(error)
}
