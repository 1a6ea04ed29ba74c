//! Sockets: made, bound, connected, asked and closed.

use super::{c_result, call_and_notify, libc_result, memory, socket};
use crate::entry::Entry;
use crate::registry;
use libc::{EFAULT, EINVAL, F_GETFL, F_SETFL, O_NONBLOCK, sockaddr, socklen_t};
use std::ffi::{c_int, c_long, c_ulong, c_void};
use std::net::SocketAddr;
use std::sync::Arc;
use transom_sockets::address::{self, SOCKADDR_MAX};
use transom_sockets::{Errno, Result, SocketCalls};

/// An option's value is never as long.
const MAX_OPTION: usize = 4096;

/// Reads a socket address.
///
/// # Safety
/// `from` is null or valid for reading `len` bytes.
pub(super) unsafe fn address(from: *const sockaddr, len: socklen_t) -> Result<SocketAddr> {
    if from.is_null() {
        return Err(Errno(EFAULT));
    }
    // Bytes beyond the longest address do not matter.
    let len = (len as usize).min(SOCKADDR_MAX);
    // SAFETY: what the caller promises.
    address::decode(unsafe { memory::bytes(from.cast(), len) }?)
}

/// Writes a socket address to `to`, as much of it as the `*len` bytes there can take, and its length to `len`.
///
/// # Safety
/// `to` is null or valid for writing `*len` bytes; `len` is null or valid for reading and writing.
unsafe fn write_address(
    address: SocketAddr,
    to: *mut sockaddr,
    len: *mut socklen_t,
) -> Result<c_int> {
    // SAFETY: what the caller promises.
    unsafe { memory::copy_out_sized(&address::encode(address), to.cast(), len, false) }?;
    Ok(0)
}

/// Makes a TCP socket on the default stack: AF_INET or AF_INET6, SOCK_STREAM with SOCK_NONBLOCK or SOCK_CLOEXEC, and 0 or IPPROTO_TCP.
///
/// Returns a descriptor. Errors: EAFNOSUPPORT, ESOCKTNOSUPPORT, EPROTONOSUPPORT, EMFILE; as transom_stack_open, if the default stack is opened by this.
#[unsafe(no_mangle)]
pub extern "C" fn transom_socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int {
    transom_socket_on(0, domain, kind, protocol)
}

/// Makes a TCP socket on a stack.
///
/// Returns a descriptor. Errors: EBADF for a number that is no stack's, and as transom_socket.
#[unsafe(no_mangle)]
pub extern "C" fn transom_socket_on(
    stack: c_int,
    domain: c_int,
    kind: c_int,
    protocol: c_int,
) -> c_int {
    c_result(|| {
        let stack = registry::stack(stack)?;
        let key = crate::stack::DrivenStack(&stack).socket(domain, kind, protocol)?;
        registry::insert(&stack, key)
    })
}

/// Whether a descriptor is a socket of this library: 1 or 0.
#[unsafe(no_mangle)]
pub extern "C" fn transom_is_socket(fd: c_int) -> c_int {
    c_result(|| Ok(socket(fd).is_ok_and(|entry| entry.is_some()).into()))
}

/// bind(2). Port 0 takes a free one.
///
/// Returns 0. Errors: EINVAL if it is bound or connected or the address too short, EAFNOSUPPORT, EADDRNOTAVAIL if the address is not the
/// stack's, EADDRINUSE.
///
/// # Safety
/// `addr` is null or valid for reading `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn transom_bind(fd: c_int, addr: *const sockaddr, len: socklen_t) -> c_int {
    c_result(|| {
        let Some(entry) = socket(fd)? else {
            // SAFETY: what the caller promises.
            return libc_result(unsafe { libc::bind(fd, addr, len) });
        };
        // SAFETY: what the caller promises.
        let addr = unsafe { address(addr, len) }?;
        call_and_notify(&entry, |entry| entry.driven().bind(entry.key, addr).map(|()| 0))
    })
}

/// listen(2).
///
/// Returns 0. Errors: EINVAL for a connected socket, EADDRINUSE.
#[unsafe(no_mangle)]
pub extern "C" fn transom_listen(fd: c_int, backlog: c_int) -> c_int {
    c_result(|| match socket(fd)? {
        // SAFETY: no memory is passed.
        None => libc_result(unsafe { libc::listen(fd, backlog) }),
        Some(entry) => {
            call_and_notify(&entry, |entry| entry.driven().listen(entry.key, backlog).map(|()| 0))
        }
    })
}

/// connect(2). A blocking socket waits for the handshake.
///
/// Returns 0. Errors: EINPROGRESS, EALREADY, EISCONN, EINTR, EAFNOSUPPORT, EADDRNOTAVAIL, ENETUNREACH, EINVAL, and how the attempt failed: ECONNREFUSED,
/// ETIMEDOUT and others.
///
/// # Safety
/// `addr` is null or valid for reading `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn transom_connect(
    fd: c_int,
    addr: *const sockaddr,
    len: socklen_t,
) -> c_int {
    c_result(|| {
        let Some(entry) = socket(fd)? else {
            // SAFETY: what the caller promises.
            return libc_result(unsafe { libc::connect(fd, addr, len) });
        };
        // SAFETY: what the caller promises.
        let addr = unsafe { address(addr, len) }?;
        call_and_notify(&entry, |entry| entry.driven().connect(entry.key, addr).map(|()| 0))
    })
}

/// accept(2). The peer's address goes to `addr` unless that is NULL; `*len` is the room there and then its length.
///
/// Returns a descriptor. Errors: EAGAIN, EINTR, EINVAL if the socket does not listen, EMFILE.
///
/// # Safety
/// `addr` is null or valid for writing `*len` bytes; `len` is null or valid for reading and writing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn transom_accept(
    fd: c_int,
    addr: *mut sockaddr,
    len: *mut socklen_t,
) -> c_int {
    // SAFETY: what the caller promises.
    unsafe { transom_accept4(fd, addr, len, 0) }
}

/// accept4(2): transom_accept with SOCK_NONBLOCK or SOCK_CLOEXEC for the new socket.
///
/// Returns as transom_accept.
///
/// # Safety
/// As for [`transom_accept`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn transom_accept4(
    fd: c_int,
    addr: *mut sockaddr,
    len: *mut socklen_t,
    flags: c_int,
) -> c_int {
    c_result(|| {
        let Some(entry) = socket(fd)? else {
            // SAFETY: what the caller promises.
            return libc_result(unsafe { libc::accept4(fd, addr, len, flags) });
        };
        if !addr.is_null() && len.is_null() {
            return Err(Errno(EFAULT));
        }
        let (key, remote) =
            call_and_notify(&entry, |entry| entry.driven().accept(entry.key, flags))?;
        let accepted = registry::insert(&entry.stack, key)?;
        if !addr.is_null() {
            // SAFETY: what the caller promises.
            unsafe { write_address(remote, addr, len) }.inspect_err(|_| {
                registry::remove(accepted);
            })?;
        }
        Ok(accepted)
    })
}

/// getsockname(2); `*len` is the room at `addr` and then the address' length.
///
/// Returns 0.
///
/// # Safety
/// `addr` is null or valid for writing `*len` bytes; `len` is null or valid for reading and writing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn transom_getsockname(
    fd: c_int,
    addr: *mut sockaddr,
    len: *mut socklen_t,
) -> c_int {
    c_result(|| match socket(fd)? {
        // SAFETY: what the caller promises.
        None => libc_result(unsafe { libc::getsockname(fd, addr, len) }),
        Some(entry) => {
            let local = entry.driven().local_address(entry.key)?;
            // SAFETY: what the caller promises.
            unsafe { write_address(local, addr, len) }
        }
    })
}

/// getpeername(2); `*len` is the room at `addr` and then the address' length.
///
/// Returns 0. Errors: ENOTCONN.
///
/// # Safety
/// As for [`transom_getsockname`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn transom_getpeername(
    fd: c_int,
    addr: *mut sockaddr,
    len: *mut socklen_t,
) -> c_int {
    c_result(|| match socket(fd)? {
        // SAFETY: what the caller promises.
        None => libc_result(unsafe { libc::getpeername(fd, addr, len) }),
        Some(entry) => {
            let peer = entry.driven().peer_address(entry.key)?;
            // SAFETY: what the caller promises.
            unsafe { write_address(peer, addr, len) }
        }
    })
}

/// getsockopt(2). `*len` is the room at `value` and then how much of it was used.
///
/// Returns 0. Errors: ENOPROTOOPT, ENOTCONN for the MTU without a connection.
///
/// # Safety
/// `value` is null or valid for writing `*len` bytes; `len` is null or valid for reading and writing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn transom_getsockopt(
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *mut c_void,
    len: *mut socklen_t,
) -> c_int {
    c_result(|| {
        let Some(entry) = socket(fd)? else {
            // SAFETY: what the caller promises.
            return libc_result(unsafe { libc::getsockopt(fd, level, name, value, len) });
        };
        if value.is_null() || len.is_null() {
            return Err(Errno(EFAULT));
        }
        let option =
            call_and_notify(&entry, |entry| entry.driven().option(entry.key, level, name))?;
        // SAFETY: what the caller promises.
        unsafe { memory::give_option(level, option, value, len) }?;
        Ok(0)
    })
}

/// setsockopt(2). docs/sockets.md lists the options.
///
/// Returns 0. Errors: ENOPROTOOPT, EINVAL, ENOENT for a congestion controller there is not.
///
/// # Safety
/// `value` is null or valid for reading `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn transom_setsockopt(
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *const c_void,
    len: socklen_t,
) -> c_int {
    c_result(|| {
        let Some(entry) = socket(fd)? else {
            // SAFETY: what the caller promises.
            return libc_result(unsafe { libc::setsockopt(fd, level, name, value, len) });
        };
        if len as usize > MAX_OPTION {
            return Err(Errno(EINVAL));
        }
        // SAFETY: what the caller promises.
        let value = unsafe { memory::bytes(value, len as usize) }?;
        call_and_notify(&entry, |entry| {
            entry.driven().set_option(entry.key, level, name, value).map(|()| 0)
        })
    })
}

/// shutdown(2): SHUT_RD, SHUT_WR or SHUT_RDWR. Calls of other threads that wait on the socket end.
///
/// Returns 0. Errors: EINVAL, ENOTCONN.
#[unsafe(no_mangle)]
pub extern "C" fn transom_shutdown(fd: c_int, how: c_int) -> c_int {
    c_result(|| match socket(fd)? {
        // SAFETY: no memory is passed.
        None => libc_result(unsafe { libc::shutdown(fd, how) }),
        Some(entry) => {
            call_and_notify(&entry, |entry| entry.driven().shutdown(entry.key, how).map(|()| 0))
        }
    })
}

/// close(2). The descriptor is free at once. While another thread waits in a call on the socket, the connection stays open until that call
/// ends, as on Linux; transom_shutdown ends it.
///
/// Returns 0. Errors: EBADF.
#[unsafe(no_mangle)]
pub extern "C" fn transom_close(fd: c_int) -> c_int {
    c_result(|| match registry::remove(fd) {
        // SAFETY: no memory is passed; what the descriptor is, is the caller's business.
        None => libc_result(unsafe { libc::close(fd) }),
        Some(entry) => {
            if let Ok(last) = Arc::try_unwrap(entry) {
                last.close()?;
            }
            Ok(0)
        }
    })
}

/// fcntl(2) with F_GETFL and F_SETFL (O_NONBLOCK), F_GETFD and F_SETFD. `argument` is 0 where there is none.
///
/// Returns the flags, or 0. Errors: EINVAL for any other command.
#[unsafe(no_mangle)]
pub extern "C" fn transom_fcntl(fd: c_int, command: c_int, argument: c_long) -> c_int {
    c_result(|| {
        let entry = socket(fd)?;
        match entry {
            Some(entry) if ![libc::F_GETFD, libc::F_SETFD].contains(&command) => {
                let argument = c_int::try_from(argument).map_err(|_| Errno(EINVAL))?;
                entry.driven().fcntl(entry.key, command, argument)
            }
            // The flags of a number are the kernel's.
            // SAFETY: commands that take a pointer get the one that the caller passes.
            _ => libc_result(unsafe { libc::fcntl(fd, command, argument) }),
        }
    })
}

/// ioctl(2) with FIONREAD, TIOCOUTQ, SIOCATMARK, SIOCOUTQNSD, whose answer goes to the integer at `argument`, and FIONBIO.
///
/// Returns 0. Errors: EINVAL for a listener, ENOTTY for any other request.
///
/// # Safety
/// `argument` is null or valid for reading and writing an integer; for other descriptors it is what the request says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn transom_ioctl(
    fd: c_int,
    request: c_ulong,
    argument: *mut c_void,
) -> c_int {
    c_result(|| {
        let Some(entry) = socket(fd)? else {
            // SAFETY: what the caller promises.
            return libc_result(unsafe { libc::ioctl(fd, request, argument) });
        };
        let argument = argument.cast::<c_int>();
        if request == libc::FIONBIO {
            // SAFETY: what the caller promises.
            let on = unsafe { memory::read(argument) }? != 0;
            return set_nonblocking(&entry, on);
        }
        let answer = entry.driven().ioctl(entry.key, request)?;
        // SAFETY: what the caller promises.
        unsafe { memory::write(argument, answer) }?;
        Ok(0)
    })
}

fn set_nonblocking(entry: &Entry, on: bool) -> Result<c_int> {
    let flags = entry.driven().fcntl(entry.key, F_GETFL, 0)? & !O_NONBLOCK;
    entry.driven().fcntl(entry.key, F_SETFL, flags | if on { O_NONBLOCK } else { 0 })
}
