//! Sockets: made, bound, connected, asked and closed.

use super::{c_result, libc_result, memory, on_socket, socket};
use crate::entry::Entry;
use crate::registry;
use libc::{EFAULT, EINVAL, F_GETFL, F_SETFL, O_NONBLOCK, sockaddr, socklen_t};
use std::ffi::{c_int, c_long, c_ulong, c_void};
use std::sync::Arc;
use transom_sockets::{Errno, Result, SocketCalls};

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
    // SAFETY: what the caller promises.
    let system = || unsafe { libc::bind(fd, addr, len) };
    on_socket(fd, system, |entry| {
        // SAFETY: what the caller promises.
        let addr = unsafe { memory::address(addr.cast(), len) }?;
        entry.call(|stack, key| stack.bind(key, addr)).map(|()| 0)
    })
}

/// listen(2).
///
/// Returns 0. Errors: EINVAL for a connected socket, EADDRINUSE.
#[unsafe(no_mangle)]
pub extern "C" fn transom_listen(fd: c_int, backlog: c_int) -> c_int {
    // SAFETY: no memory is passed.
    let system = || unsafe { libc::listen(fd, backlog) };
    on_socket(fd, system, |entry| entry.call(|stack, key| stack.listen(key, backlog)).map(|()| 0))
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
    // SAFETY: what the caller promises.
    let system = || unsafe { libc::connect(fd, addr, len) };
    on_socket(fd, system, |entry| {
        // SAFETY: what the caller promises.
        let addr = unsafe { memory::address(addr.cast(), len) }?;
        entry.call(|stack, key| stack.connect(key, addr)).map(|()| 0)
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
    // SAFETY: what the caller promises.
    let system = || unsafe { libc::accept4(fd, addr, len, flags) };
    on_socket(fd, system, |entry| {
        if !addr.is_null() && len.is_null() {
            return Err(Errno(EFAULT));
        }
        let (key, remote) = entry.call(|stack, key| stack.accept(key, flags))?;
        let accepted = registry::insert(&entry.stack, key)?;
        if !addr.is_null() {
            // SAFETY: what the caller promises.
            unsafe { memory::give_address(remote, addr.cast(), len) }.inspect_err(|_| {
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
    // SAFETY: what the caller promises.
    let system = || unsafe { libc::getsockname(fd, addr, len) };
    on_socket(fd, system, |entry| {
        let local = entry.driven().local_address(entry.key)?;
        // SAFETY: what the caller promises.
        unsafe { memory::give_address(local, addr.cast(), len) }.map(|()| 0)
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
    // SAFETY: what the caller promises.
    let system = || unsafe { libc::getpeername(fd, addr, len) };
    on_socket(fd, system, |entry| {
        let peer = entry.driven().peer_address(entry.key)?;
        // SAFETY: what the caller promises.
        unsafe { memory::give_address(peer, addr.cast(), len) }.map(|()| 0)
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
    // SAFETY: what the caller promises.
    let system = || unsafe { libc::getsockopt(fd, level, name, value, len) };
    on_socket(fd, system, |entry| {
        if value.is_null() || len.is_null() {
            return Err(Errno(EFAULT));
        }
        let option = entry.call(|stack, key| stack.option(key, level, name))?;
        // SAFETY: what the caller promises.
        unsafe { memory::give_option(level, option, value, len) }.map(|()| 0)
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
    // SAFETY: what the caller promises.
    let system = || unsafe { libc::setsockopt(fd, level, name, value, len) };
    on_socket(fd, system, |entry| {
        // SAFETY: what the caller promises.
        let value = unsafe { memory::option_value(value, len) }?;
        entry.call(|stack, key| stack.set_option(key, level, name, value)).map(|()| 0)
    })
}

/// shutdown(2): SHUT_RD, SHUT_WR or SHUT_RDWR. Calls of other threads that wait on the socket end.
///
/// Returns 0. Errors: EINVAL, ENOTCONN.
#[unsafe(no_mangle)]
pub extern "C" fn transom_shutdown(fd: c_int, how: c_int) -> c_int {
    // SAFETY: no memory is passed.
    let system = || unsafe { libc::shutdown(fd, how) };
    on_socket(fd, system, |entry| entry.call(|stack, key| stack.shutdown(key, how)).map(|()| 0))
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
    // SAFETY: what the caller promises.
    let system = || unsafe { libc::ioctl(fd, request, argument) };
    on_socket(fd, system, |entry| {
        let argument = argument.cast::<c_int>();
        if request == libc::FIONBIO {
            // SAFETY: what the caller promises.
            let on = unsafe { memory::read(argument) }? != 0;
            return set_nonblocking(entry, on);
        }
        let answer = entry.driven().ioctl(entry.key, request)?;
        // SAFETY: what the caller promises.
        unsafe { memory::write(argument, answer) }.map(|()| 0)
    })
}

fn set_nonblocking(entry: &Entry, on: bool) -> Result<c_int> {
    let flags = entry.driven().fcntl(entry.key, F_GETFL, 0)? & !O_NONBLOCK;
    entry.driven().fcntl(entry.key, F_SETFL, flags | if on { O_NONBLOCK } else { 0 })
}
