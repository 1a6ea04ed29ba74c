//! Socket calls: those of POSIX with the host in front, and the negated error in place of -1 and `errno`.
//!
//! Addresses are Linux' `struct sockaddr_in` and `struct sockaddr_in6`, given as `void *`. Besides the errors named at each call
//! there are `-TS_EBADF` for a host or descriptor that is none, `-TS_EFAULT` for null where memory is needed, and `-TS_EIO`.

use super::{HostNumber, count, memory, number, status, with};
use crate::{Errno, PollFd, SocketCalls};
use libc::{EFAULT, EINVAL};
use std::ffi::c_void;

/// A call receives as much at most (64 MiB).
const MAX_RECEIVE: usize = 64 << 20;

/// Makes a TCP socket: `TS_AF_INET` or `TS_AF_INET6`, `TS_SOCK_STREAM` (with `TS_SOCK_NONBLOCK`), and 0 or `TS_IPPROTO_TCP`.
///
/// Returns the lowest free descriptor from 3 on, or `-TS_EAFNOSUPPORT`, `-TS_ESOCKTNOSUPPORT`, `-TS_EPROTONOSUPPORT`,
/// `-TS_EMFILE`.
#[unsafe(no_mangle)]
pub extern "C" fn ts_socket(host: HostNumber, domain: i32, kind: i32, protocol: i32) -> i32 {
    number(with(host, |host| host.socket(domain, kind, protocol)))
}

/// Binds a socket. Port 0 takes a free one.
///
/// Returns 0, or `-TS_EINVAL` if it is bound or connected or the address too short, `-TS_EAFNOSUPPORT`, `-TS_EADDRNOTAVAIL` if the
/// address is not the host's, `-TS_EADDRINUSE`.
///
/// # Safety
/// `addr` is null or valid for reading `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ts_bind(host: HostNumber, fd: i32, addr: *const c_void, len: u32) -> i32 {
    status(with(host, |host| {
        // SAFETY: what the caller promises.
        let addr = unsafe { memory::address(addr, len) }?;
        host.bind(fd, addr)
    }))
}

/// Listens; one connection more than `backlog` may wait, as on Linux.
///
/// Returns 0, or `-TS_EINVAL` for a connected socket, `-TS_EADDRINUSE`.
#[unsafe(no_mangle)]
pub extern "C" fn ts_listen(host: HostNumber, fd: i32, backlog: i32) -> i32 {
    status(with(host, |host| host.listen(fd, backlog)))
}

/// Connects. A blocking socket waits for the handshake.
///
/// Returns 0, or `-TS_EINPROGRESS`, `-TS_EALREADY`, `-TS_EISCONN`, `-TS_EINTR`, `-TS_EAFNOSUPPORT`, `-TS_EADDRNOTAVAIL`,
/// `-TS_ENETUNREACH`, `-TS_EINVAL`, and how the attempt failed: `-TS_ECONNREFUSED`, `-TS_ETIMEDOUT` and others.
///
/// # Safety
/// `addr` is null or valid for reading `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ts_connect(
    host: HostNumber,
    fd: i32,
    addr: *const c_void,
    len: u32,
) -> i32 {
    status(with(host, |host| {
        // SAFETY: what the caller promises.
        let addr = unsafe { memory::address(addr, len) }?;
        host.connect(fd, addr)
    }))
}

/// Accepts a connection. The peer's address goes to `addr` unless that is null; `*len` is the room there and then its length.
///
/// Returns a descriptor, or `-TS_EAGAIN`, `-TS_EINTR`, `-TS_EINVAL` if the socket does not listen, `-TS_EMFILE`.
///
/// # Safety
/// `addr` is null or valid for writing `*len` bytes; `len` is null or valid for reading and writing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ts_accept(
    host: HostNumber,
    fd: i32,
    addr: *mut c_void,
    len: *mut u32,
) -> i32 {
    // SAFETY: what the caller promises.
    unsafe { ts_accept4(host, fd, addr, len, 0) }
}

/// `ts_accept` with `TS_SOCK_NONBLOCK` for the new socket, if wanted.
///
/// Returns as `ts_accept`.
///
/// # Safety
/// As for `ts_accept`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ts_accept4(
    host: HostNumber,
    fd: i32,
    addr: *mut c_void,
    len: *mut u32,
    flags: i32,
) -> i32 {
    number(with(host, |host| {
        if !addr.is_null() && len.is_null() {
            return Err(Errno(EFAULT));
        }
        let (accepted, remote) = host.accept(fd, flags)?;
        if !addr.is_null() {
            // SAFETY: what the caller promises.
            unsafe { memory::give_address(remote, addr, len) }?;
        }
        Ok(accepted)
    }))
}

/// The bound address; `*len` is the room at `addr` and then the address' length.
///
/// Returns 0.
///
/// # Safety
/// `addr` is null or valid for writing `*len` bytes; `len` is null or valid for reading and writing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ts_getsockname(
    host: HostNumber,
    fd: i32,
    addr: *mut c_void,
    len: *mut u32,
) -> i32 {
    status(with(host, |host| {
        // SAFETY: what the caller promises.
        unsafe { memory::give_address(host.local_address(fd)?, addr, len) }
    }))
}

/// The peer's address; `*len` is the room at `addr` and then the address' length.
///
/// Returns 0 or `-TS_ENOTCONN`.
///
/// # Safety
/// As for `ts_getsockname`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ts_getpeername(
    host: HostNumber,
    fd: i32,
    addr: *mut c_void,
    len: *mut u32,
) -> i32 {
    status(with(host, |host| {
        // SAFETY: what the caller promises.
        unsafe { memory::give_address(host.peer_address(fd)?, addr, len) }
    }))
}

/// Reads up to `len` bytes (never more than 64 MiB); 0 is the end of the stream.
///
/// Returns their number, or as `ts_recv`.
///
/// # Safety
/// `to` is null or valid for writing `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ts_read(host: HostNumber, fd: i32, to: *mut c_void, len: usize) -> i64 {
    // SAFETY: what the caller promises.
    unsafe { ts_recv(host, fd, to, len, 0) }
}

/// `ts_read` with `TS_MSG_PEEK`, `TS_MSG_OOB`, `TS_MSG_WAITALL`, `TS_MSG_DONTWAIT` or `TS_MSG_TRUNC`, with which `to` may be null.
///
/// Returns the number of bytes, or `-TS_EAGAIN`, `-TS_EINTR`, `-TS_ENOTCONN`, `-TS_EINVAL` for `TS_MSG_OOB` without an urgent byte,
/// `-TS_EOPNOTSUPP` for other flags, and once how the connection ended: `-TS_ECONNRESET`, `-TS_ETIMEDOUT` and others.
///
/// # Safety
/// `to` is null or valid for writing `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ts_recv(
    host: HostNumber,
    fd: i32,
    to: *mut c_void,
    len: usize,
    flags: i32,
) -> i64 {
    count(with(host, |host| {
        let dropped = flags & libc::MSG_TRUNC != 0;
        if to.is_null() && len > 0 && !dropped {
            return Err(Errno(EFAULT));
        }
        if isize::try_from(len).is_err() {
            return Err(Errno(EINVAL));
        }
        let mut bytes = vec![0; len.min(MAX_RECEIVE)];
        let received = host.recv(fd, &mut bytes, flags)?;
        if !dropped {
            // SAFETY: what the caller promises.
            unsafe { memory::copy_out(bytes.get(..received).unwrap_or_default(), to, len) }?;
        }
        Ok(received)
    }))
}

/// Writes `len` bytes; a non-blocking socket takes what there is room for.
///
/// Returns their number, or as `ts_send`.
///
/// # Safety
/// `from` is null or valid for reading `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ts_write(
    host: HostNumber,
    fd: i32,
    from: *const c_void,
    len: usize,
) -> i64 {
    // SAFETY: what the caller promises.
    unsafe { ts_send(host, fd, from, len, 0) }
}

/// `ts_write` with `TS_MSG_OOB`, `TS_MSG_EOR`, `TS_MSG_MORE`, `TS_MSG_DONTWAIT` or `TS_MSG_NOSIGNAL` (there never is a signal).
///
/// Returns the number of bytes, or `-TS_EAGAIN`, `-TS_EINTR`, `-TS_EPIPE`, `-TS_EOPNOTSUPP` for other flags, and once how the
/// connection ended.
///
/// # Safety
/// `from` is null or valid for reading `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ts_send(
    host: HostNumber,
    fd: i32,
    from: *const c_void,
    len: usize,
    flags: i32,
) -> i64 {
    count(with(host, |host| {
        // SAFETY: what the caller promises.
        let bytes = unsafe { memory::bytes(from, len) }?;
        host.send(fd, bytes, flags)
    }))
}

/// `ts_send`, or with `TS_MSG_FASTOPEN` `ts_connect` and `ts_send` in one: the data goes with the SYN if the server has given a cookie before. Without
/// that flag the address is not looked at, and may be null.
///
/// Returns the number of bytes, or as `ts_connect` and `ts_send`; `-TS_EINPROGRESS` if a non-blocking socket has no cookie: nothing is queued then.
///
/// # Safety
/// `from` is null or valid for reading `len` bytes; `addr` is null or valid for reading `addr_len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ts_sendto(
    host: HostNumber,
    fd: i32,
    from: *const c_void,
    len: usize,
    flags: i32,
    addr: *const c_void,
    addr_len: u32,
) -> i64 {
    count(with(host, |host| {
        // SAFETY: what the caller promises.
        let bytes = unsafe { memory::bytes(from, len) }?;
        // SAFETY: what the caller promises.
        let remote = unsafe { memory::destination(addr, addr_len, flags) }?;
        host.send_to(fd, bytes, flags, remote)
    }))
}

/// Ends reading (`TS_SHUT_RD`), writing (`TS_SHUT_WR`) or both (`TS_SHUT_RDWR`).
///
/// Returns 0, `-TS_EINVAL` or `-TS_ENOTCONN`.
#[unsafe(no_mangle)]
pub extern "C" fn ts_shutdown(host: HostNumber, fd: i32, how: i32) -> i32 {
    status(with(host, |host| host.shutdown(fd, how)))
}

/// Closes a descriptor; the connection ends by itself.
///
/// Returns 0.
#[unsafe(no_mangle)]
pub extern "C" fn ts_close(host: HostNumber, fd: i32) -> i32 {
    status(with(host, |host| host.close(fd)))
}

/// Waits for one of `count` descriptors, for `timeout` milliseconds, for ever if that is negative, and never longer than patience.
///
/// Returns how many have something in `revents`, 0 after `timeout`, or `-TS_EINTR`, `-TS_EINVAL` for too many descriptors.
///
/// # Safety
/// `fds` is null or valid for reading and writing `count` structures.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ts_poll(
    host: HostNumber,
    fds: *mut PollFd,
    count: usize,
    timeout: i32,
) -> i32 {
    number(with(host, |host| {
        // SAFETY: what the caller promises.
        unsafe { memory::answer_poll(fds, count, |fds| host.poll(fds, timeout)) }
    }))
}

/// Sets an option. There are those named `TS_SO_*`, `TS_TCP_*`, `TS_IP_*` and `TS_IPV6_*`; the numbers are Linux'.
///
/// Returns 0, `-TS_ENOPROTOOPT`, `-TS_EINVAL`, or `-TS_ENOENT` for a congestion controller there is not.
///
/// # Safety
/// `value` is null or valid for reading `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ts_setsockopt(
    host: HostNumber,
    fd: i32,
    level: i32,
    name: i32,
    value: *const c_void,
    len: u32,
) -> i32 {
    status(with(host, |host| {
        // SAFETY: what the caller promises.
        host.set_option(fd, level, name, unsafe { memory::option_value(value, len) }?)
    }))
}

/// Reads an option. `*len` is the room at `value` and then how much of it was used.
///
/// Returns 0 or `-TS_ENOPROTOOPT`.
///
/// # Safety
/// `value` is null or valid for writing `*len` bytes; `len` is null or valid for reading and writing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ts_getsockopt(
    host: HostNumber,
    fd: i32,
    level: i32,
    name: i32,
    value: *mut c_void,
    len: *mut u32,
) -> i32 {
    status(with(host, |host| {
        if value.is_null() || len.is_null() {
            return Err(Errno(EFAULT));
        }
        let option = host.option(fd, level, name)?;
        // SAFETY: what the caller promises.
        unsafe { memory::give_option(level, option, value, len) }
    }))
}

/// `TS_F_GETFL` and `TS_F_SETFL` with `TS_O_NONBLOCK`.
///
/// Returns the flags, 0, or `-TS_EINVAL` for any other command.
#[unsafe(no_mangle)]
pub extern "C" fn ts_fcntl(host: HostNumber, fd: i32, command: i32, argument: i32) -> i32 {
    number(with(host, |host| host.fcntl(fd, command, argument)))
}

/// `TS_FIONREAD`, `TS_TIOCOUTQ`, `TS_SIOCATMARK` and `TS_SIOCOUTQNSD`, whose answer goes to `value`.
///
/// Returns 0, `-TS_EINVAL` for a listener, or `-TS_ENOTTY` for any other request.
///
/// # Safety
/// `value` is null or valid for writing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ts_ioctl(host: HostNumber, fd: i32, request: u64, value: *mut i32) -> i32 {
    status(with(host, |host| {
        let answer = host.ioctl(fd, request)?;
        // SAFETY: what the caller promises.
        unsafe { memory::write(value, answer) }
    }))
}
