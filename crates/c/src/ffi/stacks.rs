//! Stacks. A program that opens none gets one, with its first socket, as the environment says: `TRANSOM_DEVICE`, `TRANSOM_ADDRESS` and `TRANSOM_TCP`.

use super::{c_result, memory};
use crate::error::{last_message, set_message};
use crate::registry;
use crate::stack::StackSettings;
use libc::EINVAL;
use std::ffi::{c_char, c_int};
use transom_sockets::Errno;

/// The version of the library.
#[unsafe(no_mangle)]
pub extern "C" fn transom_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// Opens a device and starts a stack on it. `device` is a word such as "tun:transom0" (docs/devices.md). `addresses` are the stack's own with
/// the lengths of their prefixes, as "192.0.2.1/24,2001:db8::1/64"; NULL: those that the device gives. `tcp` are the units of TCP, as
/// "cubic + sack"; NULL: the usual ones.
///
/// Returns the stack's number, which is above 0. Errors: EINVAL for words that make no sense, and what is wrong with the device: EPERM,
/// ENODEV, EBUSY and others. transom_message then says why, in words.
///
/// # Safety
/// Each of the three is null or a string that ends.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn transom_stack_open(
    device: *const c_char,
    addresses: *const c_char,
    tcp: *const c_char,
) -> c_int {
    c_result(|| {
        // SAFETY: what the caller promises.
        let text = |from| unsafe { memory::text(from) }.map(Option::unwrap_or_default);
        let (device, addresses, tcp) = (text(device)?, text(addresses)?, text(tcp)?);
        if device.is_empty() {
            set_message("no device is named");
            return Err(Errno(EINVAL));
        }
        registry::open(StackSettings { device, addresses, tcp })
    })
}

/// Lets go of a stack. It ends when its last socket is closed, once everything is acknowledged or two seconds have passed.
///
/// Returns 0. Errors: EBADF for a number that is no stack's.
#[unsafe(no_mangle)]
pub extern "C" fn transom_stack_close(stack: c_int) -> c_int {
    c_result(|| registry::close_stack(stack).map(|()| 0))
}

/// Makes a stack the one on which transom_socket makes sockets, in all threads.
///
/// Returns 0. Errors: EBADF for a number that is no stack's.
#[unsafe(no_mangle)]
pub extern "C" fn transom_stack_default(stack: c_int) -> c_int {
    c_result(|| registry::make_default(stack).map(|()| 0))
}

/// A descriptor to wait for with poll, epoll and the like. It is readable while one of the sockets that transom_watch was called for is ready, until
/// transom_ready has found none. It is the library's: do not read, write or close it. `stack` may be 0, for the default one.
///
/// Returns the descriptor. Errors: EBADF for a number that is no stack's.
#[unsafe(no_mangle)]
pub extern "C" fn transom_stack_fd(stack: c_int) -> c_int {
    c_result(|| Ok(registry::stack(stack)?.event_fd()))
}

/// Copies to `text`, which has room for `room` bytes, why this thread's last call failed that could say more than a number: one that opened a stack,
/// or panicked. The copy is cut if it has to be, and ends with a zero byte if there is any room.
///
/// Returns the length of the whole, without the zero byte.
///
/// # Safety
/// `text` is null or valid for writing `room` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn transom_message(text: *mut c_char, room: usize) -> usize {
    let message = last_message();
    // SAFETY: what the caller promises.
    unsafe { memory::give_text(&message, text, room) }.unwrap_or(message.len())
}
