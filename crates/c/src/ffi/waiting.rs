//! Waiting for several sockets: poll, select, epoll, and a stack's own descriptor.

use super::{c_result, libc_result, memory, socket};
use crate::poll::poll;
use crate::registry;
use libc::{
    EBADF, EFAULT, EINVAL, POLLERR, POLLHUP, POLLIN, POLLNVAL, POLLOUT, POLLPRI, epoll_event,
    fd_set, nfds_t, pollfd, sigset_t, timespec, timeval,
};
use std::ffi::c_int;
use std::time::{Duration, Instant};
use transom_sockets::{Errno, Result};

/// So many sockets [`transom_ready`] tells of at most.
const MAX_READY: usize = 1 << 20;

/// Asks the kernel, with these signals blocked meanwhile.
fn ppoll(fds: &mut [pollfd], timeout: Option<Duration>, signals: *const sigset_t) -> Result<usize> {
    let timeout = timeout.map(|span| timespec {
        tv_sec: span.as_secs().try_into().unwrap_or(i64::MAX),
        tv_nsec: span.subsec_nanos().into(),
    });
    let timeout = timeout.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    let len = fds.len() as nfds_t;
    // SAFETY: the structures are as many as `len` says; the timeout lives until the call returns; the set is null or one
    // of the caller's.
    let ready = unsafe { libc::ppoll(fds.as_mut_ptr(), len, timeout, signals) };
    libc_result(ready).map(|ready| usize::try_from(ready).unwrap_or(0))
}

/// A span, if it is one.
fn duration(seconds: i64, nanos: i64) -> Result<Duration> {
    let seconds = u64::try_from(seconds).map_err(|_| Errno(EINVAL))?;
    match u32::try_from(nanos) {
        Ok(nanos) if nanos < 1_000_000_000 => Ok(Duration::new(seconds, nanos)),
        _ => Err(Errno(EINVAL)),
    }
}

/// A span of the caller's; null is for ever.
///
/// # Safety
/// `at` is null or valid for reading.
unsafe fn timeout(at: *const timespec) -> Result<Option<Duration>> {
    if at.is_null() {
        return Ok(None);
    }
    // SAFETY: what the caller promises.
    let timespec { tv_sec, tv_nsec } = unsafe { memory::read(at) }?;
    duration(tv_sec, tv_nsec).map(Some)
}

/// poll(2) over sockets of this library and any other descriptors together.
///
/// Returns how many have something in `revents`, or 0 after `timeout` milliseconds; a negative one is for ever. Errors: EINTR, EINVAL for too many
/// descriptors.
///
/// # Safety
/// `fds` is null or valid for reading and writing `count` structures.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn transom_poll(fds: *mut pollfd, count: nfds_t, timeout: c_int) -> c_int {
    let timeout = u64::try_from(timeout).ok().map(Duration::from_millis);
    // SAFETY: what the caller promises.
    c_result(|| unsafe { poll_memory(fds, count, timeout, std::ptr::null()) })
}

/// ppoll(2): as transom_poll, with `timeout`, or for ever if that is NULL, and with `signals` blocked while it waits, unless that is NULL.
///
/// Returns as transom_poll.
///
/// # Safety
/// As for [`transom_poll`]; the other two are null or valid for reading.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn transom_ppoll(
    fds: *mut pollfd,
    count: nfds_t,
    timeout: *const timespec,
    signals: *const sigset_t,
) -> c_int {
    c_result(|| {
        // SAFETY: what the caller promises.
        let timeout = unsafe { self::timeout(timeout) }?;
        // SAFETY: what the caller promises.
        unsafe { poll_memory(fds, count, timeout, signals) }
    })
}

/// # Safety
/// As for [`transom_ppoll`].
unsafe fn poll_memory(
    fds: *mut pollfd,
    count: nfds_t,
    timeout: Option<Duration>,
    signals: *const sigset_t,
) -> Result<c_int> {
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    let wait = |fds: &mut [pollfd]| poll(fds, timeout, &mut |fds, left| ppoll(fds, left, signals));
    // SAFETY: what the caller promises.
    unsafe { memory::answer_poll(fds, count, wait) }
}

/// select(2) over sockets of this library and any other descriptors together. `*timeout` becomes what is left of it.
///
/// Returns how many bits are set in the three sets. Errors: EINTR, EINVAL, EBADF.
///
/// # Safety
/// The sets and `timeout` are null or valid for reading and writing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn transom_select(
    count: c_int,
    read: *mut fd_set,
    write: *mut fd_set,
    except: *mut fd_set,
    timeout: *mut timeval,
) -> c_int {
    c_result(|| {
        let mut left = None;
        if !timeout.is_null() {
            // SAFETY: what the caller promises.
            let timeval { tv_sec, tv_usec } = unsafe { memory::read(timeout) }?;
            left = Some(duration(tv_sec, tv_usec.saturating_mul(1000))?);
        }
        let began = Instant::now();
        // SAFETY: what the caller promises.
        let ready = unsafe { select(count, [read, write, except], left, std::ptr::null()) }?;
        if let Some(span) = left {
            let left = span.saturating_sub(began.elapsed());
            let tv_sec = left.as_secs().try_into().unwrap_or(i64::MAX);
            let left = timeval { tv_sec, tv_usec: left.subsec_micros().into() };
            // SAFETY: what the caller promises.
            unsafe { memory::write(timeout, left) }?;
        }
        Ok(ready)
    })
}

/// pselect(2): as transom_select, with `signals` blocked while it waits, unless that is NULL.
///
/// Returns as transom_select.
///
/// # Safety
/// The sets, `timeout` and `signals` are null or valid for reading, and the sets for writing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn transom_pselect(
    count: c_int,
    read: *mut fd_set,
    write: *mut fd_set,
    except: *mut fd_set,
    timeout: *const timespec,
    signals: *const sigset_t,
) -> c_int {
    c_result(|| {
        // SAFETY: what the caller promises.
        let left = unsafe { self::timeout(timeout) }?;
        // SAFETY: what the caller promises.
        unsafe { select(count, [read, write, except], left, signals) }
    })
}

/// The event that each set asks for, and the answers that count for it, as in the kernel's select.
const SELECT_SETS: [(i16, i16); 3] =
    [(POLLIN, POLLIN | POLLHUP | POLLERR), (POLLOUT, POLLOUT | POLLERR), (POLLPRI, POLLPRI)];

/// # Safety
/// The sets and `signals` are null or valid for reading, and the sets for writing.
unsafe fn select(
    count: c_int,
    sets: [*mut fd_set; 3],
    timeout: Option<Duration>,
    signals: *const sigset_t,
) -> Result<c_int> {
    if !(0..=libc::FD_SETSIZE as c_int).contains(&count) {
        return Err(Errno(EINVAL));
    }
    let mut pollfds = Vec::new();
    for fd in 0..count {
        let events = sets.iter().zip(SELECT_SETS).filter(|(set, _)| {
            // SAFETY: what the caller promises, and the descriptor is below FD_SETSIZE.
            !set.is_null() && unsafe { libc::FD_ISSET(fd, **set) }
        });
        let events = events.fold(0, |events, (_, (event, _))| events | event);
        if events != 0 {
            pollfds.push(pollfd { fd, events, revents: 0 });
        }
    }
    poll(&mut pollfds, timeout, &mut |fds, left| ppoll(fds, left, signals))?;
    if pollfds.iter().any(|answer| answer.revents & POLLNVAL != 0) {
        return Err(Errno(EBADF));
    }
    let mut bits = 0;
    for (set, (event, answers)) in sets.into_iter().zip(SELECT_SETS) {
        for answer in pollfds.iter().filter(|answer| answer.events & event != 0) {
            if answer.revents & answers != 0 {
                bits += 1;
            } else {
                // SAFETY: the set is not null, as it has asked for this; the descriptor is below FD_SETSIZE.
                unsafe { libc::FD_CLR(answer.fd, set) };
            }
        }
    }
    Ok(bits)
}

/// Makes a socket's descriptor one that poll(2), select(2), epoll(7) and libraries over them can wait for. It shows readable and writable; errors and
/// hang-ups show as both. Nothing else of it may be used.
///
/// Returns 0. Errors: EBADF if it is no socket of this library's, EMFILE.
#[unsafe(no_mangle)]
pub extern "C" fn transom_pollable(fd: c_int) -> c_int {
    c_result(|| {
        let entry = socket(fd)?.ok_or(Errno(EBADF))?;
        entry.stack.make_pollable(entry.key, &entry.descriptor)?;
        Ok(0)
    })
}

/// epoll_ctl(2), which makes a socket of this library pollable first. `epfd` is one of epoll_create(2); wait with epoll_wait(2).
///
/// Returns 0. Errors: as epoll_ctl(2).
///
/// # Safety
/// `event` is null or valid for reading.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn transom_epoll_ctl(
    epfd: c_int,
    op: c_int,
    fd: c_int,
    event: *mut epoll_event,
) -> c_int {
    c_result(|| {
        if let Some(entry) = socket(fd)? {
            entry.stack.make_pollable(entry.key, &entry.descriptor)?;
        }
        // SAFETY: what the caller promises.
        libc_result(unsafe { libc::epoll_ctl(epfd, op, fd, event) })
    })
}

/// Has the descriptor of the socket's stack (transom_stack_fd) tell when one of `events` holds: POLLIN, POLLOUT, POLLPRI, POLLRDHUP. POLLERR and
/// POLLHUP are always told. With 0 it tells no more.
///
/// Returns 0. Errors: EBADF if it is no socket of this library's.
#[unsafe(no_mangle)]
pub extern "C" fn transom_watch(fd: c_int, events: i16) -> c_int {
    c_result(|| {
        let entry = socket(fd)?.ok_or(Errno(EBADF))?;
        entry.stack.set_interest(entry.key, fd, events);
        Ok(0)
    })
}

/// Fills `fds` with sockets of a stack that are ready for what transom_watch has asked, at most `room` of them. It does not wait. What is ready
/// is told again by the next call, until it is not ready any more. `stack` may be 0, for the default one.
///
/// Returns how many. Errors: EBADF for a number that is no stack's.
///
/// # Safety
/// `fds` is null or valid for writing `room` structures.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn transom_ready(stack: c_int, fds: *mut pollfd, room: usize) -> c_int {
    c_result(|| {
        if fds.is_null() && room > 0 {
            return Err(Errno(EFAULT));
        }
        let stack = registry::stack(stack)?;
        let ready = stack.ready(room.min(MAX_READY));
        for (index, &(fd, revents)) in ready.iter().enumerate() {
            let answer = pollfd { fd, events: 0, revents };
            // SAFETY: what the caller promises; the pointer is not null, and `nth` is below `room`.
            unsafe { memory::write(fds.wrapping_add(index), answer) }?;
        }
        Ok(c_int::try_from(ready.len()).unwrap_or(c_int::MAX))
    })
}
