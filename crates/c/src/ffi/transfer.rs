//! Reading and writing.

use super::{libc_result, memory, on_socket, socket, to_ssize};
use crate::entry::Entry;
use crate::signals;
use libc::{
    EINVAL, EMSGSIZE, EPIPE, MSG_MORE, MSG_NOSIGNAL, MSG_TRUNC, iovec, msghdr, off_t, sockaddr,
    socklen_t, ssize_t,
};
use std::ffi::{c_int, c_void};
use std::net::SocketAddr;
use transom_sockets::{Errno, Result, Sink, SocketCalls};

/// How much is read at once from a file that is sent.
const FILE_PIECE: usize = 128 * 1024;

/// Sends, with the signal of a write that nobody reads.
fn send(
    entry: &Entry,
    pieces: &[&[u8]],
    flags: c_int,
    remote: Option<SocketAddr>,
) -> Result<usize> {
    let sent = entry.call(|stack, key| stack.send_pieces(key, pieces, flags, remote));
    if sent == Err(Errno(EPIPE)) && flags & MSG_NOSIGNAL == 0 {
        signals::raise_sigpipe();
    }
    sent
}

fn receive(entry: &Entry, sink: Sink<'_, '_>, flags: c_int) -> Result<ssize_t> {
    entry.call(|stack, key| stack.recv_into(key, sink, flags)).map(to_ssize)
}

/// Receives to one place, or with MSG_TRUNC to none.
///
/// # Safety
/// `to` is null or valid for writing `len` bytes.
unsafe fn receive_to(entry: &Entry, to: *mut c_void, len: usize, flags: c_int) -> Result<ssize_t> {
    if flags & MSG_TRUNC != 0 {
        let len = isize::try_from(len).map_err(|_| Errno(EINVAL))? as usize;
        return receive(entry, Sink::Drop(len), flags);
    }
    // SAFETY: what the caller promises.
    let room = unsafe { memory::writable_bytes(to, len) }?;
    receive(entry, Sink::Copy(&mut [room]), flags)
}

/// read(2): up to `len` bytes; 0 is the end of the stream.
///
/// Returns their number. Errors: as transom_recv.
///
/// # Safety
/// `to` is null or valid for writing `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn transom_read(fd: c_int, to: *mut c_void, len: usize) -> ssize_t {
    // SAFETY: what the caller promises.
    let system = || unsafe { libc::read(fd, to, len) };
    // SAFETY: what the caller promises.
    on_socket(fd, system, |entry| unsafe { receive_to(entry, to, len, 0) })
}

/// recv(2) with MSG_PEEK, MSG_OOB, MSG_WAITALL, MSG_DONTWAIT, or MSG_TRUNC, with which `to` may be NULL.
///
/// Returns the number of bytes. Errors: EAGAIN, EINTR, ENOTCONN, EINVAL for MSG_OOB without an urgent byte, EOPNOTSUPP for other flags, and once
/// how the connection ended: ECONNRESET, ETIMEDOUT and others.
///
/// # Safety
/// `to` is null or valid for writing `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn transom_recv(
    fd: c_int,
    to: *mut c_void,
    len: usize,
    flags: c_int,
) -> ssize_t {
    // SAFETY: what the caller promises.
    let system = || unsafe { libc::recv(fd, to, len, flags) };
    // SAFETY: what the caller promises.
    on_socket(fd, system, |entry| unsafe { receive_to(entry, to, len, flags) })
}

/// recvfrom(2): transom_recv. A stream names no sender, so `*addr_len` becomes 0.
///
/// Returns as transom_recv.
///
/// # Safety
/// As for [`transom_recv`]; `addr` is null or valid for writing `*addr_len` bytes, and `addr_len` is null or valid for writing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn transom_recvfrom(
    fd: c_int,
    to: *mut c_void,
    len: usize,
    flags: c_int,
    addr: *mut sockaddr,
    addr_len: *mut socklen_t,
) -> ssize_t {
    // SAFETY: what the caller promises.
    let system = || unsafe { libc::recvfrom(fd, to, len, flags, addr, addr_len) };
    on_socket(fd, system, |entry| {
        // SAFETY: what the caller promises.
        let received = unsafe { receive_to(entry, to, len, flags) }?;
        if !addr.is_null() && !addr_len.is_null() {
            // SAFETY: what the caller promises.
            unsafe { memory::write(addr_len, 0) }?;
        }
        Ok(received)
    })
}

/// readv(2).
///
/// Returns the number of bytes. Errors: as transom_recv, and EINVAL for more than 1024 pieces.
///
/// # Safety
/// `pieces` is null or valid for reading `piece_count` structures, and what they describe for writing, without overlap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn transom_readv(
    fd: c_int,
    pieces: *const iovec,
    piece_count: c_int,
) -> ssize_t {
    // SAFETY: what the caller promises.
    let system = || unsafe { libc::readv(fd, pieces, piece_count) };
    on_socket(fd, system, |entry| {
        let number = usize::try_from(piece_count).map_err(|_| Errno(EINVAL))?;
        // SAFETY: what the caller promises.
        let mut rooms = unsafe { memory::writable_pieces(pieces, number) }?;
        receive(entry, Sink::Copy(&mut rooms), 0)
    })
}

/// recvmsg(2): the data alone. There are no control messages, and no sender's address.
///
/// Returns the number of bytes. Errors: as transom_recv, and EMSGSIZE for more than 1024 pieces.
///
/// # Safety
/// `message` is null or valid for reading and writing, and what its pieces describe for writing, without overlap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn transom_recvmsg(fd: c_int, message: *mut msghdr, flags: c_int) -> ssize_t {
    // SAFETY: what the caller promises.
    let system = || unsafe { libc::recvmsg(fd, message, flags) };
    on_socket(fd, system, |entry| {
        // SAFETY: what the caller promises.
        let mut header = unsafe { memory::read(message) }?;
        let number = piece_count(&header)?;
        // SAFETY: what the caller promises.
        let mut rooms = unsafe { memory::writable_pieces(header.msg_iov, number) }?;
        let received = receive(entry, Sink::Copy(&mut rooms), flags)?;
        header.msg_namelen = 0;
        header.msg_controllen = 0;
        header.msg_flags = 0;
        // SAFETY: what the caller promises.
        unsafe { memory::write(message, header) }?;
        Ok(received)
    })
}

#[allow(clippy::unnecessary_cast, reason = "the type differs between C libraries")]
fn piece_count(message: &msghdr) -> Result<usize> {
    let number = message.msg_iovlen as usize;
    if number > memory::MAX_PIECES { Err(Errno(EMSGSIZE)) } else { Ok(number) }
}

/// write(2). A blocking socket takes all bytes, a non-blocking one what there is room for.
///
/// Returns their number. Errors: as transom_send.
///
/// # Safety
/// `from` is null or valid for reading `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn transom_write(fd: c_int, from: *const c_void, len: usize) -> ssize_t {
    // SAFETY: what the caller promises.
    let system = || unsafe { libc::write(fd, from, len) };
    on_socket(fd, system, |entry| {
        // SAFETY: what the caller promises.
        let bytes = unsafe { memory::bytes(from, len) }?;
        send(entry, &[bytes], 0, None).map(to_ssize)
    })
}

/// send(2) with MSG_OOB, MSG_EOR, MSG_MORE, MSG_DONTWAIT, MSG_NOSIGNAL.
///
/// Returns the number of bytes. Errors: EAGAIN, EINTR, EPIPE, with SIGPIPE unless there is MSG_NOSIGNAL, EOPNOTSUPP for other flags, and once how the
/// connection ended.
///
/// # Safety
/// `from` is null or valid for reading `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn transom_send(
    fd: c_int,
    from: *const c_void,
    len: usize,
    flags: c_int,
) -> ssize_t {
    // SAFETY: what the caller promises.
    unsafe { transom_sendto(fd, from, len, flags, std::ptr::null(), 0) }
}

/// sendto(2): transom_send, or with MSG_FASTOPEN transom_connect and transom_send in one. Without that flag the address is not looked at.
///
/// Returns the number of bytes. Errors: as transom_connect and transom_send.
///
/// # Safety
/// `from` is null or valid for reading `len` bytes; `addr` is null or valid for reading `addr_len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn transom_sendto(
    fd: c_int,
    from: *const c_void,
    len: usize,
    flags: c_int,
    addr: *const sockaddr,
    addr_len: socklen_t,
) -> ssize_t {
    // SAFETY: what the caller promises.
    let system = || unsafe { libc::sendto(fd, from, len, flags, addr, addr_len) };
    on_socket(fd, system, |entry| {
        // SAFETY: what the caller promises.
        let (bytes, remote) = unsafe {
            (memory::bytes(from, len)?, memory::destination(addr.cast(), addr_len, flags)?)
        };
        send(entry, &[bytes], flags, remote).map(to_ssize)
    })
}

/// writev(2).
///
/// Returns the number of bytes. Errors: as transom_send, and EINVAL for more than 1024 pieces.
///
/// # Safety
/// `pieces` is null or valid for reading `piece_count` structures, and what they describe too.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn transom_writev(
    fd: c_int,
    pieces: *const iovec,
    piece_count: c_int,
) -> ssize_t {
    // SAFETY: what the caller promises.
    let system = || unsafe { libc::writev(fd, pieces, piece_count) };
    on_socket(fd, system, |entry| {
        let number = usize::try_from(piece_count).map_err(|_| Errno(EINVAL))?;
        // SAFETY: what the caller promises.
        let bytes = unsafe { memory::readable_pieces(pieces, number) }?;
        send(entry, &bytes, 0, None).map(to_ssize)
    })
}

/// sendmsg(2): the data, and with MSG_FASTOPEN the address. Control messages are not looked at.
///
/// Returns the number of bytes. Errors: as transom_sendto, and EMSGSIZE for more than 1024 pieces.
///
/// # Safety
/// `message` is null or valid for reading, and so is what it describes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn transom_sendmsg(
    fd: c_int,
    message: *const msghdr,
    flags: c_int,
) -> ssize_t {
    // SAFETY: what the caller promises.
    let system = || unsafe { libc::sendmsg(fd, message, flags) };
    on_socket(fd, system, |entry| {
        // SAFETY: what the caller promises.
        let header = unsafe { memory::read(message) }?;
        let number = piece_count(&header)?;
        // SAFETY: what the caller promises.
        let (bytes, remote) = unsafe {
            (
                memory::readable_pieces(header.msg_iov, number)?,
                memory::destination(header.msg_name, header.msg_namelen, flags)?,
            )
        };
        send(entry, &bytes, flags, remote).map(to_ssize)
    })
}

/// sendfile(2) to a socket: `len` bytes of the file `in` from `*offset` on, which moves; from the file's own position if `offset` is NULL.
///
/// Returns the number of bytes. Errors: as transom_send and read(2).
///
/// # Safety
/// `offset` is null or valid for reading and writing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn transom_sendfile(
    fd: c_int,
    from: c_int,
    offset: *mut off_t,
    len: usize,
) -> ssize_t {
    // SAFETY: what the caller promises.
    let system = || unsafe { libc::sendfile(fd, from, offset, len) };
    on_socket(fd, system, |entry| {
        if socket(from)?.is_some() {
            return Err(Errno(EINVAL));
        }
        let own_position = offset.is_null();
        let mut at = match own_position {
            // SAFETY: no memory is passed.
            true => libc_result(unsafe { libc::lseek(from, 0, libc::SEEK_CUR) })?,
            // SAFETY: what the caller promises.
            false => unsafe { memory::read(offset) }?,
        };
        let mut buffer = vec![0; len.min(FILE_PIECE)];
        let mut done = 0;
        let outcome = loop {
            let room = buffer.len().min(len - done);
            if room == 0 {
                break Ok(());
            }
            // SAFETY: the buffer has at least `room` bytes.
            let read = unsafe { libc::pread(from, buffer.as_mut_ptr().cast(), room, at) };
            let piece = match libc_result(read) {
                Ok(read) => buffer.get(..read.unsigned_abs()).unwrap_or_default(),
                Err(error) => break Err(error),
            };
            if piece.is_empty() {
                break Ok(());
            }
            let more = if done + piece.len() < len && piece.len() == room { MSG_MORE } else { 0 };
            match send(entry, &[piece], more, None) {
                Ok(sent) => {
                    done += sent;
                    at += to_ssize(sent) as off_t;
                    if sent < piece.len() {
                        break Ok(());
                    }
                }
                Err(error) => break Err(error),
            }
        };
        if own_position {
            // SAFETY: no memory is passed.
            libc_result(unsafe { libc::lseek(from, at, libc::SEEK_SET) })?;
        } else {
            // SAFETY: what the caller promises.
            unsafe { memory::write(offset, at) }?;
        }
        match outcome {
            Err(error) if done == 0 => Err(error),
            _ => Ok(to_ssize(done)),
        }
    })
}
