//! The caller's memory: where pointers become slices and values, and nowhere else.
//!
//! Every function here asks the same of its caller. A pointer that is not null is valid for the length that comes with it, for
//! reading or writing as the function says, for as long as the call lasts. Nobody else writes there meanwhile. Null gives `EFAULT`
//! where memory is needed.

use libc::{EFAULT, EINVAL, iovec};
use std::ffi::c_void;
use transom_sockets::{Errno, Result};

#[path = "../../../sansio/src/ffi/shared.rs"]
mod shared;

pub(super) use shared::{
    address, answer_poll, bytes, destination, give_address, give_option, give_text, has_bytes,
    option_value, panic_text, read, text, write,
};

/// The most pieces of memory in one call (Linux' `UIO_MAXIOV`).
pub(super) const MAX_PIECES: usize = 1024;

/// Memory for `len` bytes at `at`. The library writes there and reads nothing that it has not written.
///
/// # Safety
/// As the module says, for writing.
pub(super) unsafe fn writable_bytes<'a>(at: *mut c_void, len: usize) -> Result<&'a mut [u8]> {
    if !has_bytes(at, len)? {
        return Ok(&mut []);
    }
    // SAFETY: not null, of a possible length, and writable by what the caller promises. It came from C, so the compiler cannot
    // take it for memory without a value.
    Ok(unsafe { core::slice::from_raw_parts_mut(at.cast(), len) })
}

/// The pieces that `count` structures at `at` describe, once their number is known to be possible.
///
/// # Safety
/// As the module says, for reading `count` structures.
unsafe fn pieces<'a>(at: *const iovec, count: usize) -> Result<&'a [iovec]> {
    if count > MAX_PIECES {
        return Err(Errno(EINVAL));
    }
    if !has_bytes(at.cast(), count)? {
        return Ok(&[]);
    }
    if !at.is_aligned() {
        return Err(Errno(EFAULT));
    }
    // SAFETY: not null, aligned, few, and readable by what the caller promises.
    let pieces = unsafe { core::slice::from_raw_parts(at, count) };
    let total = pieces.iter().try_fold(0usize, |sum, piece| sum.checked_add(piece.iov_len));
    match total {
        Some(total) if isize::try_from(total).is_ok() => Ok(pieces),
        _ => Err(Errno(EINVAL)),
    }
}

/// The bytes in several places.
///
/// # Safety
/// As the module says, for reading the structures and what they describe.
pub(super) unsafe fn readable_pieces<'a>(at: *const iovec, count: usize) -> Result<Vec<&'a [u8]>> {
    // SAFETY: what the caller promises.
    let pieces = unsafe { pieces(at, count) }?;
    // SAFETY: what the caller promises.
    pieces.iter().map(|piece| unsafe { bytes(piece.iov_base, piece.iov_len) }).collect()
}

/// Memory in several places.
///
/// # Safety
/// As the module says, for reading the structures and for writing what they describe; the places do not overlap.
pub(super) unsafe fn writable_pieces<'a>(
    at: *const iovec,
    count: usize,
) -> Result<Vec<&'a mut [u8]>> {
    // SAFETY: what the caller promises.
    let pieces = unsafe { pieces(at, count) }?;
    // SAFETY: what the caller promises.
    pieces.iter().map(|piece| unsafe { writable_bytes(piece.iov_base, piece.iov_len) }).collect()
}
