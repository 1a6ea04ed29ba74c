//! Sockets of another control group: a process born there makes them (clone(2), `CLONE_INTO_CGROUP`, Linux 5.7).
//!
//! The process shares our table of descriptors (`CLONE_FILES`), so that what it makes is ours, and it tells the numbers through a pipe. It shares no memory, and
//! makes system calls only: other threads of ours may have held a lock when it was born.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use libc::c_int;
use rustix::fs::{Mode, OFlags};
use rustix::pipe::{PipeFlags, pipe_with};

const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

/// `struct clone_args` of linux/sched.h, version 2.
#[repr(C)]
#[derive(Default)]
struct CloneArguments {
    flags: u64,
    pidfd: u64,
    child_tid: u64,
    parent_tid: u64,
    exit_signal: u64,
    stack: u64,
    stack_size: u64,
    tls: u64,
    set_tid: u64,
    set_tid_size: u64,
    cgroup: u64,
}

/// Makes up to `count` sockets in a namespace of networks, by a process in the control group with this path. There is at least one.
pub(super) fn make(
    group: &str,
    namespace: BorrowedFd<'_>,
    domain: c_int,
    count: usize,
) -> io::Result<Vec<OwnedFd>> {
    let directory = open_group(group)?;
    let (from, to) = pipe_with(PipeFlags::CLOEXEC)?;
    let arguments = CloneArguments {
        flags: libc::CLONE_FILES as u64 | CLONE_INTO_CGROUP,
        cgroup: directory.as_raw_fd() as u64,
        ..CloneArguments::default()
    };
    // SAFETY: the kernel reads the structure, which lives across the call. The child has a copy of our memory and runs `child` only, which makes system calls
    // and does not return.
    let process = unsafe {
        libc::syscall(libc::SYS_clone3, &raw const arguments, size_of::<CloneArguments>())
    };
    match process {
        0 => child(namespace.as_raw_fd(), domain, count, to.as_raw_fd()),
        process if process > 0 => {
            // Who exits has written everything; and our own end of the pipe is open, in the shared table.
            wait(process as libc::pid_t)?;
            drop(to);
            collect(&from)
        }
        _ => Err(io::Error::last_os_error()),
    }
}

/// The process' life. It writes the number of each socket, or the negative number of an error.
fn child(namespace: RawFd, domain: c_int, count: usize, to: RawFd) -> ! {
    let tell = |number: c_int| {
        // SAFETY: four bytes of `number` are read.
        unsafe { libc::write(to, (&raw const number).cast(), size_of::<c_int>()) };
    };
    let error = || -io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO);
    // SAFETY: a system call that takes numbers.
    if unsafe { libc::setns(namespace, libc::CLONE_NEWNET) } != 0 {
        tell(error());
    } else {
        for _ in 0..count {
            // SAFETY: a system call that takes numbers.
            let socket = unsafe { libc::socket(domain, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0) };
            tell(if socket < 0 { error() } else { socket });
        }
    }
    // SAFETY: it ends this process, without anything that is done at the end of a program.
    unsafe { libc::_exit(0) }
}

fn wait(process: libc::pid_t) -> io::Result<()> {
    loop {
        // SAFETY: no status is asked for. Without a signal at its end, the process is found with __WALL only, so that nobody else waits for it.
        let ended = unsafe { libc::waitpid(process, std::ptr::null_mut(), libc::__WALL) };
        match ended {
            -1 if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
            -1 => return Err(io::Error::last_os_error()),
            _ => return Ok(()),
        }
    }
}

/// Reads what the process has written before it ended.
fn collect(from: &OwnedFd) -> io::Result<Vec<OwnedFd>> {
    let mut sockets = Vec::new();
    let mut failed = None;
    let mut number = [0; size_of::<c_int>()];
    while rustix::io::read(from, &mut number)? == number.len() {
        match c_int::from_ne_bytes(number) {
            // SAFETY: the process has made it in our table of descriptors, and nobody else knows of it.
            socket if socket >= 0 => sockets.push(unsafe { OwnedFd::from_raw_fd(socket) }),
            error => failed = Some(io::Error::from_raw_os_error(error.saturating_neg())),
        }
    }
    match failed {
        Some(error) if sockets.is_empty() => Err(error),
        _ if sockets.is_empty() => Err(io::ErrorKind::BrokenPipe.into()),
        _ => Ok(sockets),
    }
}

/// The directory of a control group, below the first place where version 2 is mounted.
fn open_group(group: &str) -> io::Result<OwnedFd> {
    // From our own root of groups on. One that lies outside of it has no path here.
    if !group.starts_with('/') || group.split('/').any(|part| part == "..") {
        return Err(io::ErrorKind::NotFound.into());
    }
    let mounts = fs::read_to_string("/proc/self/mountinfo")?;
    let place = mounts.lines().find_map(mount_of_groups).ok_or(io::ErrorKind::NotFound)?;
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(rustix::fs::open(format!("{place}{group}"), flags, Mode::empty())?)
}

/// The mount point in a line of mountinfo (proc_pid_mountinfo(5)), if it shows version 2 from its root on.
fn mount_of_groups(line: &str) -> Option<&str> {
    let (mount, kind) = line.split_once(" - ")?;
    let mut fields = mount.split(' ').skip(3);
    let (root, point) = (fields.next()?, fields.next()?);
    (kind.starts_with("cgroup2 ") && root == "/").then_some(point)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_of_control_groups_is_found() {
        let line = "35 24 0:30 / /sys/fs/cgroup rw,relatime shared:9 - cgroup2 cgroup2 rw";
        assert_eq!(mount_of_groups(line), Some("/sys/fs/cgroup"));
        assert_eq!(mount_of_groups(&line.replace("cgroup2 ", "cgroup ")), None);
        assert_eq!(mount_of_groups(&line.replace(" / ", " /part ")), None);
        for end in 0..line.len() - 13 {
            assert_eq!(mount_of_groups(&line[..end]), None);
        }
    }

    #[test]
    fn a_path_that_leads_out_is_refused() {
        for group in ["/..", "/a/../..", "a", ""] {
            assert_eq!(open_group(group).unwrap_err().kind(), io::ErrorKind::NotFound, "{group}");
        }
    }
}
