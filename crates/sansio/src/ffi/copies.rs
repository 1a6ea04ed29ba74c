//! Copies between the caller's memory and ours. `libtransom` uses this file too, so that this unsafe code exists once.
//!
//! Every function here asks of its caller what the module `memory` says.

use libc::{EFAULT, EINVAL};
use std::ffi::c_void;
use transom_sockets::options::in_room;
use transom_sockets::{Errno, Result};

/// The bytes at `from`. No bytes may be at null.
///
/// # Safety
/// As the module says, for reading.
pub(crate) unsafe fn bytes<'a>(from: *const c_void, len: usize) -> Result<&'a [u8]> {
    if len == 0 {
        return Ok(&[]);
    }
    if from.is_null() {
        return Err(Errno(EFAULT));
    }
    if isize::try_from(len).is_err() {
        return Err(Errno(EINVAL));
    }
    // SAFETY: not null, of a possible length, and readable by what the caller promises; bytes need no alignment.
    Ok(unsafe { core::slice::from_raw_parts(from.cast(), len) })
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
