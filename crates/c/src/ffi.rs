//! The functions that C calls.
//!
//! Each returns -1 and sets `errno` when it fails. Nothing unwinds into C: a panic gives `EIO`, and `transom_message` says what happened. The
//! caller's memory is touched in `memory.rs` alone.
//!
//! A descriptor that is none of this library's goes to the C library's function of the same name.

mod memory;
mod sockets;
mod stacks;
mod transfer;
mod waiting;

pub use sockets::*;
pub use stacks::*;
pub use transfer::*;
pub use waiting::*;

use crate::entry::Entry;
use crate::error::set_message;
use crate::registry;
use libc::{EBADF, EIO};
use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use transom_sockets::{Errno, Result};

fn set_errno(error: Errno) {
    // SAFETY: the C library gives the place of the calling thread's own number.
    unsafe { *libc::__errno_location() = error.0 };
}

fn errno() -> Errno {
    // SAFETY: as above.
    Errno(unsafe { *libc::__errno_location() })
}

/// Makes a call, and turns its result into C's: the value, or -1 with `errno` set. A call that succeeds leaves `errno` alone.
fn c_result<T: From<i8>>(call: impl FnOnce() -> Result<T>) -> T {
    let before = errno();
    // State after a panic is as consistent as after an error: locks are released, and sockets are numbers.
    let result = catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| {
        set_message(memory::panic_text(&*panic));
        Err(Errno(EIO))
    });
    set_errno(result.as_ref().err().copied().unwrap_or(before));
    result.unwrap_or(T::from(-1))
}

/// The result of a function of the C library: -1 is the error in `errno`.
fn libc_result<T: From<i8> + PartialEq>(returned: T) -> Result<T> {
    if returned == T::from(-1) { Err(errno()) } else { Ok(returned) }
}

/// A count as C's `ssize_t`.
fn to_ssize(count: usize) -> libc::ssize_t {
    libc::ssize_t::try_from(count).unwrap_or(libc::ssize_t::MAX)
}

/// The socket behind a descriptor. `None`: it is none of this library's.
fn socket(fd: c_int) -> Result<Option<Arc<Entry>>> {
    match registry::entry(fd) {
        Some(entry) if entry.is_ours() => Ok(Some(entry)),
        // A parent's.
        Some(_) => Err(Errno(EBADF)),
        None => Ok(None),
    }
}

/// Makes a call on a socket of this library. Of any other descriptor, the C library's call of the same name is made.
fn on_socket<T: From<i8> + PartialEq>(
    fd: c_int,
    system: impl FnOnce() -> T,
    call: impl FnOnce(&Entry) -> Result<T>,
) -> T {
    c_result(|| match socket(fd)? {
        Some(entry) => call(&entry),
        None => libc_result(system()),
    })
}
