//! Between the caller's memory and ours. `libtransom` uses this file too, so that this unsafe code exists once.
//!
//! Every unsafe function here asks of its caller what the module `memory` says.

use libc::{EFAULT, EINVAL, MSG_FASTOPEN};
use std::any::Any;
use std::ffi::{CStr, c_char, c_void};
use std::net::SocketAddr;
use transom_sockets::options::in_room;
use transom_sockets::{Errno, Result, address};

/// Descriptors in one poll at most.
const MAX_POLL: usize = 1 << 20;
/// An option's value is never as long.
const MAX_OPTION: usize = 4096;

/// Whether there is anything at `at`, if `len` bytes can be there at all.
pub(crate) fn has_bytes(at: *const c_void, len: usize) -> Result<bool> {
    match len {
        0 => Ok(false),
        _ if at.is_null() => Err(Errno(EFAULT)),
        _ if isize::try_from(len).is_err() => Err(Errno(EINVAL)),
        _ => Ok(true),
    }
}

/// The bytes at `from`. No bytes may be at null.
///
/// # Safety
/// As the module says, for reading.
pub(crate) unsafe fn bytes<'a>(from: *const c_void, len: usize) -> Result<&'a [u8]> {
    if !has_bytes(from, len)? {
        return Ok(&[]);
    }
    // SAFETY: not null, of a possible length, and readable by what the caller promises; bytes need no alignment.
    Ok(unsafe { core::slice::from_raw_parts(from.cast(), len) })
}

/// The string at `from`; `None` at null.
///
/// # Safety
/// As the module says: a string that ends with a zero byte.
pub(crate) unsafe fn text<'a>(from: *const c_char) -> Result<Option<&'a str>> {
    if from.is_null() {
        return Ok(None);
    }
    // SAFETY: not null, and a string that ends by what the caller promises.
    let text = unsafe { CStr::from_ptr(from) };
    text.to_str().map(Some).map_err(|_| Errno(EINVAL))
}

/// Copies a text to `to`, cut to what there is room for, with a zero byte at its end. Gives the length of the whole, without that byte.
///
/// # Safety
/// As the module says, for writing `room` bytes.
pub(crate) unsafe fn give_text(text: &str, to: *mut c_char, room: usize) -> Result<usize> {
    if room > 0 {
        let mut bytes = text.as_bytes().to_vec();
        bytes.truncate(room - 1);
        bytes.push(0);
        // SAFETY: what the caller promises.
        unsafe { copy_out(&bytes, to.cast(), room) }?;
    }
    Ok(text.len())
}

/// Copies as much of `bytes` to `to` as fits into `room`, and says how much that was.
///
/// # Safety
/// As the module says, for writing.
pub(crate) unsafe fn copy_out(bytes: &[u8], to: *mut c_void, room: usize) -> Result<usize> {
    let len = bytes.len().min(room);
    if len == 0 {
        return Ok(0);
    }
    if to.is_null() {
        return Err(Errno(EFAULT));
    }
    // SAFETY: `len` bytes are readable, being part of a slice, and writable by what the caller promises; what belongs to the
    // library and what belongs to the caller do not overlap.
    unsafe { core::ptr::copy_nonoverlapping(bytes.as_ptr(), to.cast(), len) };
    Ok(len)
}

/// The value at `from`.
///
/// # Safety
/// As the module says, for reading; every pattern of bits is a `T`.
pub(crate) unsafe fn read<T: Copy>(from: *const T) -> Result<T> {
    if from.is_null() {
        return Err(Errno(EFAULT));
    }
    // SAFETY: not null, and readable by what the caller promises; it may stand anywhere.
    Ok(unsafe { from.read_unaligned() })
}

/// The `count` values at `from`.
///
/// # Safety
/// As [`read`], for all of them.
pub(crate) unsafe fn read_all<T: Copy>(from: *const T, count: usize) -> Result<Vec<T>> {
    // SAFETY: what the caller promises. At null, the first one ends it.
    (0..count).map(|nth| unsafe { read(from.wrapping_add(nth)) }).collect()
}

/// Puts `value` at `to`.
///
/// # Safety
/// As the module says, for writing.
pub(crate) unsafe fn write<T: Copy>(to: *mut T, value: T) -> Result<()> {
    if to.is_null() {
        return Err(Errno(EFAULT));
    }
    // SAFETY: not null, and writable by what the caller promises; it may stand anywhere.
    unsafe { to.write_unaligned(value) };
    Ok(())
}

/// Copies `bytes` where a length comes in, the room there is, and goes out, the length there would be: the way of
/// `getsockname`. Cut short if there is too little room. With `cut`, the length copied goes out. A length above `i32::MAX` is `EINVAL`, as on
/// Linux.
///
/// # Safety
/// As the module says: `len` for reading and writing, `to` for writing as many bytes as `len` says.
pub(crate) unsafe fn copy_out_sized(
    bytes: &[u8],
    to: *mut c_void,
    len: *mut u32,
    cut: bool,
) -> Result<()> {
    // SAFETY: what the caller promises.
    let room = unsafe { read(len) }?;
    if i32::try_from(room).is_err() {
        return Err(Errno(EINVAL));
    }
    // SAFETY: what the caller promises.
    let copied = unsafe { copy_out(bytes, to, room as usize) }?;
    let told = if cut { copied } else { bytes.len() };
    // SAFETY: what the caller promises.
    unsafe { write(len, u32::try_from(told).unwrap_or(u32::MAX)) }
}

/// A socket address.
///
/// # Safety
/// As the module says, for reading `len` bytes.
pub(crate) unsafe fn address(from: *const c_void, len: u32) -> Result<SocketAddr> {
    if from.is_null() {
        return Err(Errno(EFAULT));
    }
    // Bytes beyond the longest address do not matter.
    let len = (len as usize).min(size_of::<libc::sockaddr_in6>());
    // SAFETY: what the caller promises.
    address::decode(unsafe { bytes(from, len) }?)
}

/// The address that `sendto` and `sendmsg` look at: only with MSG_FASTOPEN.
///
/// # Safety
/// As [`address`].
pub(crate) unsafe fn destination(
    from: *const c_void,
    len: u32,
    flags: i32,
) -> Result<Option<SocketAddr>> {
    if flags & MSG_FASTOPEN == 0 || from.is_null() {
        return Ok(None);
    }
    // SAFETY: what the caller promises.
    unsafe { address(from, len) }.map(Some)
}

/// Gives a program a socket address: as much of it as the `*len` bytes at `to` can take, and its length.
///
/// # Safety
/// As [`copy_out_sized`].
pub(crate) unsafe fn give_address(
    address: SocketAddr,
    to: *mut c_void,
    len: *mut u32,
) -> Result<()> {
    // SAFETY: what the caller promises.
    unsafe { copy_out_sized(&address::encode(address), to, len, false) }
}

/// An option's value, to be set.
///
/// # Safety
/// As the module says, for reading `len` bytes.
pub(crate) unsafe fn option_value<'a>(from: *const c_void, len: u32) -> Result<&'a [u8]> {
    let len = len as usize;
    if len > MAX_OPTION {
        return Err(Errno(EINVAL));
    }
    // SAFETY: what the caller promises.
    unsafe { bytes(from, len) }
}

/// Gives a program an option's value: [`in_room`] says which bytes of it.
///
/// # Safety
/// As [`copy_out_sized`].
pub(crate) unsafe fn give_option(
    level: i32,
    value: Vec<u8>,
    to: *mut c_void,
    len: *mut u32,
) -> Result<()> {
    // SAFETY: what the caller promises.
    let room = unsafe { read(len) }?;
    let value = in_room(level, value, room as usize);
    // SAFETY: the same.
    unsafe { copy_out_sized(&value, to, len, true) }
}

/// Has `poll` answer the `count` questions at `fds`. It gives how many have an answer.
///
/// # Safety
/// As the module says, for reading and writing `count` questions; every pattern of bits is a `T`.
pub(crate) unsafe fn answer_poll<T: Copy>(
    fds: *mut T,
    count: usize,
    poll: impl FnOnce(&mut [T]) -> Result<usize>,
) -> Result<i32> {
    if count > MAX_POLL {
        return Err(Errno(EINVAL));
    }
    // SAFETY: what the caller promises.
    let mut asked = unsafe { read_all(fds, count) }?;
    let ready = poll(&mut asked)?;
    for (nth, answer) in asked.iter().enumerate() {
        // SAFETY: what the caller promises; `nth` is below `count`.
        unsafe { write(fds.wrapping_add(nth), *answer) }?;
    }
    Ok(i32::try_from(ready).unwrap_or(i32::MAX))
}

/// The message of a panic.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a message".to_owned())
}
