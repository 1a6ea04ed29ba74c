//! Descriptors of the thread whose call is answered (pidfd_open(2)).

use std::io;
use std::os::fd::OwnedFd;

use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// `PIDFD_THREAD` of linux/pidfd.h (Linux 6.9): the descriptor stands for a thread, not for its process.
const OF_A_THREAD: PidfdFlags = PidfdFlags::from_bits_retain(rustix::fs::OFlags::EXCL.bits());

/// A descriptor that stands for a thread, by its number in our PID namespace.
///
/// # Errors
/// There is no such thread; [`io::ErrorKind::InvalidInput`] before Linux 6.9, which knows descriptors of processes only.
pub fn open_thread(thread: u32) -> io::Result<OwnedFd> {
    let number = i32::try_from(thread).ok().and_then(Pid::from_raw);
    Ok(pidfd_open(number.ok_or(io::ErrorKind::NotFound)?, OF_A_THREAD)?)
}
