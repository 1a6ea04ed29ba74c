//! A thread seen through its descriptor (pidfd_open(2); `PIDFD_GET_INFO` of linux/pidfd.h, Linux 6.13).

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use crate::intercept::open_thread;

const WANTED: u64 = (libc::PIDFD_INFO_CREDS | libc::PIDFD_INFO_CGROUPID) as u64;

/// `struct pidfd_info`, as far as the first version goes.
#[repr(C)]
#[derive(Default)]
struct Info {
    mask: u64,
    control_group: u64,
    pid: u32,
    tgid: u32,
    ppid: u32,
    /// Real, effective and saved user and group.
    others: [u32; 6],
    user_of_files: u32,
    group_of_files: u32,
    exit_code: i32,
}

const _: () = assert!(size_of::<Info>() == libc::PIDFD_INFO_SIZE_VER0 as usize);

/// A thread's user and group for new files, its control group of version 2, and its network namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Told {
    pub(super) user: u32,
    pub(super) group: u32,
    /// By the number of its directory.
    pub(super) control_group: u64,
    /// By the number of its file.
    pub(super) network: u64,
}

/// Asks for a thread. Nothing if the kernel does not know these requests.
pub(super) fn ask(thread: u32) -> io::Result<Option<Told>> {
    let thread = open_thread(thread)?;
    let mut info = Info { mask: WANTED, ..Info::default() };
    // SAFETY: the request names the length of the structure, which lives across the call.
    if unsafe { libc::ioctl(thread.as_raw_fd(), libc::PIDFD_GET_INFO, &raw mut info) } != 0 {
        return unless_unknown(io::Error::last_os_error());
    }
    if info.mask & WANTED != WANTED {
        return Ok(None);
    }
    // Since Linux 6.11. SAFETY: the request takes no argument.
    let network = unsafe { libc::ioctl(thread.as_raw_fd(), libc::PIDFD_GET_NET_NAMESPACE, 0) };
    if network < 0 {
        return unless_unknown(io::Error::last_os_error());
    }
    // SAFETY: the kernel has made the descriptor for us, and nobody else knows of it.
    let network = unsafe { OwnedFd::from_raw_fd(network) };
    Ok(Some(Told {
        user: info.user_of_files,
        group: info.group_of_files,
        control_group: info.control_group,
        network: rustix::fs::fstat(&network)?.st_ino,
    }))
}

/// Whether the kernel is too old, or refuses.
fn unless_unknown(error: io::Error) -> io::Result<Option<Told>> {
    match error.raw_os_error() {
        Some(libc::ENOTTY | libc::EINVAL | libc::EOPNOTSUPP) => Ok(None),
        _ => Err(error),
    }
}
