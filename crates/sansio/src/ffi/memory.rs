//! The caller's memory: where pointers become slices and values, and nowhere else.
//!
//! Every function here asks the same of its caller. A pointer that is not null is valid for the length that comes with it, for
//! reading or writing as the function says, for as long as the call lasts. Null is allowed: it gives `EFAULT` where memory is
//! needed. Bytes are copied. No Rust reference ever points to memory that may not be initialised.

use crate::{Errno, Result};
use libc::EFAULT;

pub(super) use super::shared::{
    address, answer_poll, bytes, copy_out, destination, give_address, give_option, give_text,
    option_value, read, read_all, text, write,
};

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
