//! The caller's memory: where pointers become slices and values, and nowhere else.
//!
//! Every function here asks the same of its caller. A pointer that is not null is valid for the length that comes with it, for
//! reading or writing as the function says, for as long as the call lasts. Null is allowed: it gives `EFAULT` where memory is
//! needed. Bytes are copied. No Rust reference ever points to memory that may not be initialised.

use crate::errno::{EFAULT, EINVAL, Errno, Result};
use std::ffi::{CStr, c_char, c_void};

/// The bytes at `from`. No bytes may be at null.
///
/// # Safety
/// As the module says, for reading.
pub(super) unsafe fn bytes<'a>(from: *const c_void, len: usize) -> Result<&'a [u8]> {
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

/// The string at `from`.
///
/// # Safety
/// As the module says: a string that ends with a zero byte.
pub(super) unsafe fn text<'a>(from: *const c_char) -> Result<&'a str> {
    if from.is_null() {
        return Err(Errno(EFAULT));
    }
    // SAFETY: not null, and a string that ends by what the caller promises.
    let text = unsafe { CStr::from_ptr(from) };
    text.to_str().map_err(|_| Errno(EINVAL))
}

/// Copies as much of `bytes` to `to` as fits into `room`, and says how much that was.
///
/// # Safety
/// As the module says, for writing.
pub(super) unsafe fn copy_out(bytes: &[u8], to: *mut c_void, room: usize) -> Result<usize> {
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
pub(super) unsafe fn read<T: Copy>(from: *const T) -> Result<T> {
    if from.is_null() {
        return Err(Errno(EFAULT));
    }
    // SAFETY: not null, and readable by what the caller promises; it may stand anywhere.
    Ok(unsafe { from.read_unaligned() })
}

/// Replaces the first `len` bytes of `value` by those at `from`. Pointers among them stay pointers.
///
/// # Safety
/// As the module says, for reading `len` bytes; `len` is at most the size of `T`, and every pattern of bits is a `T`.
pub(super) unsafe fn overlay<T: Copy>(from: *const T, value: &mut T, len: usize) -> Result<()> {
    if from.is_null() {
        return Err(Errno(EFAULT));
    }
    let to = core::ptr::from_mut(value).cast::<u8>();
    // SAFETY: readable by what the caller promises, writable as part of `value`, and the two do not overlap, `value` being
    // borrowed by us alone.
    unsafe { core::ptr::copy_nonoverlapping(from.cast::<u8>(), to, len) };
    Ok(())
}

/// Puts `value` at `to`.
///
/// # Safety
/// As the module says, for writing.
pub(super) unsafe fn write<T: Copy>(to: *mut T, value: T) -> Result<()> {
    if to.is_null() {
        return Err(Errno(EFAULT));
    }
    // SAFETY: not null, and writable by what the caller promises; it may stand anywhere.
    unsafe { to.write_unaligned(value) };
    Ok(())
}

/// Copies `bytes` where a length comes in, the room there is, and goes out, the length there would be: the way of
/// `getsockname`. Cut short if there is too little room.
///
/// # Safety
/// As the module says: `len` for reading and writing, `to` for writing as many bytes as `len` says.
pub(super) unsafe fn copy_out_sized(
    bytes: &[u8],
    to: *mut c_void,
    len: *mut u32,
    cut: bool,
) -> Result<()> {
    // SAFETY: what the caller promises.
    let room = unsafe { read(len) }?;
    // SAFETY: what the caller promises.
    let copied = unsafe { copy_out(bytes, to, room as usize) }?;
    let told = if cut { copied } else { bytes.len() };
    // SAFETY: what the caller promises.
    unsafe { write(len, u32::try_from(told).unwrap_or(u32::MAX)) }
}
