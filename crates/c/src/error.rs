//! Errors of the operating system and of devices by their numbers.

use std::cell::RefCell;
use std::io;
use transom_sockets::Errno;

thread_local! {
    /// Why this thread's last call failed, where a number says too little.
    static MESSAGE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Sets this thread's message: why its last call failed.
pub(crate) fn set_message(message: impl Into<String>) {
    MESSAGE.set(message.into());
}

/// This thread's last message.
pub(crate) fn last_message() -> String {
    MESSAGE.with_borrow(String::clone)
}

/// The number of an error. An error without a number gets one by its kind.
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

/// The number of an error, whose text becomes this thread's message.
pub(crate) fn errno_with_message(error: &io::Error) -> Errno {
    set_message(error.to_string());
    errno_of(error)
}
