//! Whether a signal ends a call, and which threads get signals.
//!
//! On Linux a call that waits goes on after a handler that was installed with `SA_RESTART`, and ends with `EINTR` after another one, or if
//! the socket has a timeout (signal(7)). Which handler ran cannot be seen from here. So a call goes on if every handler of the process has
//! `SA_RESTART`, and ends otherwise: the same, except in programs that have handlers of both kinds.

use std::mem::MaybeUninit;
use std::ptr;

/// The last of the real-time signals.
const LAST_SIGNAL: i32 = 64;

/// Whether a handler exists that ends calls.
pub(crate) fn any_handler_without_restart() -> bool {
    (1..=LAST_SIGNAL).any(|signal| {
        let mut action = MaybeUninit::<libc::sigaction>::uninit();
        // SAFETY: without a new action nothing changes; the old one is written to memory of its size.
        if unsafe { libc::sigaction(signal, ptr::null(), action.as_mut_ptr()) } != 0 {
            return false;
        }
        // SAFETY: the call has succeeded, so it is filled in.
        let action = unsafe { action.assume_init() };
        let handled = ![libc::SIG_DFL, libc::SIG_IGN].contains(&action.sa_sigaction);
        handled && action.sa_flags & libc::SA_RESTART == 0
    })
}

/// Calls `start` with all signals blocked in this thread, and so in the threads that it starts: handlers run in the program's own threads.
pub(crate) fn with_signals_blocked<T>(start: impl FnOnce() -> T) -> T {
    let mut all = MaybeUninit::<libc::sigset_t>::uninit();
    let mut before = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the first call fills the set that the second one reads; both sets live until it returns.
    let blocked = unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr()) == 0
    };
    let result = start();
    if blocked {
        // SAFETY: the call above has succeeded, so it has filled the set.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), ptr::null_mut()) };
    }
    result
}

/// The signal of a write that nobody reads, to this thread.
pub(crate) fn raise_sigpipe() {
    // SAFETY: no memory is passed. The program chose what the signal does.
    unsafe { libc::raise(libc::SIGPIPE) };
}
