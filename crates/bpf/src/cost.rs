//! The cost of programs, as the kernel counts it.

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

use libbpf_rs::Program;

use crate::BpfError;
use crate::error::listen;

/// The time that a program has taken since it was loaded, and how often it ran. The kernel counts only on request ([`count_cost`], or
/// `kernel.bpf_stats_enabled`).
///
/// # Errors
/// The kernel's refusal.
pub fn cost(program: &Program<'_>) -> Result<(Duration, u64), BpfError> {
    let mut info = libbpf_sys::bpf_prog_info::default();
    let mut length = size_of::<libbpf_sys::bpf_prog_info>() as u32;
    listen();
    // SAFETY: `info` is as long as `length` says, and asks for nothing behind pointers; both live through the call.
    let outcome = unsafe {
        libbpf_sys::bpf_prog_get_info_by_fd(program.as_fd().as_raw_fd(), &mut info, &mut length)
    };
    match outcome {
        0.. => Ok((Duration::from_nanos(info.run_time_ns), info.run_cnt)),
        error => Err(BpfError::system(
            "cannot read what a program has cost",
            io::Error::from_raw_os_error(-error),
        )),
    }
}

/// Makes the kernel count what programs cost, all of them, until the descriptor is closed (Linux 5.8).
///
/// # Errors
/// The kernel's refusal.
pub fn count_cost() -> Result<OwnedFd, BpfError> {
    listen();
    // SAFETY: it takes a number and nothing else.
    let fd = unsafe { libbpf_sys::bpf_enable_stats(libbpf_sys::BPF_STATS_RUN_TIME) };
    match fd {
        // SAFETY: the kernel has just made the descriptor for us.
        0.. => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
        error => Err(BpfError::system(
            "cannot have the kernel count what programs cost",
            io::Error::from_raw_os_error(-error),
        )),
    }
}
