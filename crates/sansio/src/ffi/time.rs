//! Packets and time. Times are in nanoseconds on the host's own clock.

use super::{HostNumber, count, memory, status, with};
use crate::{Errno, Result};
use libc::{EAGAIN, EINVAL, EMSGSIZE};
use std::ffi::c_void;
use transom_tcp::time::{Duration, Instant};

/// A time that never comes.
pub const NEVER: i64 = i64::MAX;

fn instant(nanos: i64) -> Result<Instant> {
    u64::try_from(nanos).map(Instant::from_nanos).map_err(|_| Errno(EINVAL))
}

fn nanos(at: Option<Instant>) -> i64 {
    at.map_or(NEVER, |at| i64::try_from(at.as_nanos()).unwrap_or(NEVER))
}

fn time(result: Result<i64>) -> i64 {
    result.unwrap_or_else(|error| -i64::from(error.0))
}

/// The time on the host's clock.
///
/// Returns the time, or `-TS_EBADF` or `-TS_EIO`.
#[unsafe(no_mangle)]
pub extern "C" fn ts_now(host: HostNumber) -> i64 {
    time(with(host, |host| Ok(nanos(Some(host.now())))))
}

/// Moves the host's clock on to `at`: timers fire and queued packets arrive on the way and at that time, packets before timers.
///
/// Returns 0, or `-TS_EINVAL` if `at` has passed, `-TS_EBADF` or `-TS_EIO`.
#[unsafe(no_mangle)]
pub extern "C" fn ts_run_to(host: HostNumber, at: i64) -> i32 {
    status(with(host, |host| host.run_to(instant(at)?)))
}

/// When the stack's next timer is to be looked at; it may turn out that nothing is due then.
///
/// Returns the time, `TS_NEVER` if no timer is set, or `-TS_EBADF` or `-TS_EIO`.
#[unsafe(no_mangle)]
pub extern "C" fn ts_next_timer(host: HostNumber) -> i64 {
    time(with(host, |host| Ok(nanos(host.next_timer()))))
}

/// When something happens next by itself: a timer, or the arrival of a queued packet.
///
/// Returns the time, `TS_NEVER` if nothing will, or `-TS_EBADF` or `-TS_EIO`.
#[unsafe(no_mangle)]
pub extern "C" fn ts_next_event(host: HostNumber) -> i64 {
    time(with(host, |host| Ok(nanos(host.next_event()))))
}

/// How far a call on a blocking socket may move the clock on before it gives `-TS_EINTR`, in nanoseconds; zero at first. Repeat the
/// call to go on waiting.
///
/// Returns 0, or `-TS_EINVAL` for a negative span or more than thirty days, `-TS_EBADF` or `-TS_EIO`.
#[unsafe(no_mangle)]
pub extern "C" fn ts_set_patience(host: HostNumber, span: i64) -> i32 {
    status(with(host, |host| {
        let span = u64::try_from(span).map_err(|_| Errno(EINVAL))?;
        host.set_patience(Duration::from_nanos(span))
    }))
}

/// Lets a raw IP packet arrive at `at`: within this call if that is now, otherwise when the clock gets there. Whether the packet
/// makes sense is for the stack to find out; its checksums are verified. The packet is copied.
///
/// Returns 0, or `-TS_EINVAL` if `at` has passed or there is no packet, `-TS_EMSGSIZE` if it is longer than 65535 bytes,
/// `-TS_EFAULT`, `-TS_EBADF` or `-TS_EIO`.
///
/// # Safety
/// `packet` is null or valid for reading `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ts_inject(
    host: HostNumber,
    at: i64,
    packet: *const c_void,
    len: usize,
) -> i32 {
    status(with(host, |host| {
        // SAFETY: what the caller promises.
        let packet = unsafe { memory::bytes(packet, len) }?;
        host.inject(instant(at)?, packet)
    }))
}

/// Takes the oldest packet that left the host, and stores in `at`, unless that is null, when it did. With `room` 0 the packet stays.
///
/// Returns its length, or `-TS_EAGAIN` if there is none, `-TS_EMSGSIZE` if `room` is too small (the packet stays), `-TS_EFAULT`,
/// `-TS_EBADF` or `-TS_EIO`.
///
/// # Safety
/// `packet` is null or valid for writing `room` bytes, `at` is null or valid for writing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ts_next_packet(
    host: HostNumber,
    packet: *mut c_void,
    room: usize,
    at: *mut i64,
) -> i64 {
    count(with(host, |host| {
        let (left, bytes) = host.peek_packet().ok_or(Errno(EAGAIN))?;
        let len = bytes.len();
        if !at.is_null() {
            // SAFETY: what the caller promises.
            unsafe { memory::write(at, nanos(Some(left))) }?;
        }
        if room == 0 {
            return Ok(len);
        }
        if room < len {
            return Err(Errno(EMSGSIZE));
        }
        // SAFETY: what the caller promises.
        unsafe { memory::copy_out(bytes, packet, room) }?;
        host.next_packet();
        Ok(len)
    }))
}
