//! Sockets with an owner and a control group that the supervisor has not.
//!
//! The kernel writes both down when a socket is made. The owner is that of the thread that makes it, and a thread may be somebody else for a moment
//! ([`as_owner`]). The control group is that of the process: so one that is born there makes the socket (clone(2), `CLONE_INTO_CGROUP`, Linux 5.7).
//!
//! That process shares our table of descriptors (`CLONE_FILES`), so that what it makes is ours, and it tells the numbers through a pipe. It shares no memory, and
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

/// What sockets are to be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Order<'a> {
    /// The path of the control group.
    pub(super) group: &'a str,
    /// The namespace of networks, if it is not the calling thread's.
    pub(super) namespace: Option<BorrowedFd<'a>>,
    /// The user and the group, if they are not the calling thread's.
    pub(super) owner: Option<(u32, u32)>,
    pub(super) domain: c_int,
    /// At most so many, and at least one.
    pub(super) count: usize,
}

impl Order<'_> {
    /// Has them made by a process in the control group.
    pub(super) fn carry_out(&self) -> io::Result<Vec<OwnedFd>> {
        let directory = open_group(self.group)?;
        let (from, to) = pipe_with(PipeFlags::CLOEXEC)?;
        let arguments = CloneArguments {
            flags: libc::CLONE_FILES as u64 | CLONE_INTO_CGROUP,
            cgroup: directory.as_raw_fd() as u64,
            ..CloneArguments::default()
        };
        // SAFETY: the kernel reads the structure, which lives across the call. The child has a copy of our memory and runs `live` only, which makes system
        // calls and does not return.
        let process = unsafe {
            libc::syscall(libc::SYS_clone3, &raw const arguments, size_of::<CloneArguments>())
        };
        match process {
            0 => self.live(to.as_raw_fd()),
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
    fn live(&self, to: RawFd) -> ! {
        let tell = |number: c_int| {
            // SAFETY: four bytes of `number` are read.
            unsafe { libc::write(to, (&raw const number).cast(), size_of::<c_int>()) };
        };
        let failed = |error: io::Error| tell(-error.raw_os_error().unwrap_or(libc::EIO));
        match self.enter().and_then(|()| self.owner.map_or(Ok(()), become_owner)) {
            Err(error) => failed(error),
            Ok(()) => {
                for _ in 0..self.count {
                    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC;
                    // SAFETY: a system call that takes numbers.
                    match unsafe { libc::socket(self.domain, kind, 0) } {
                        -1 => failed(io::Error::last_os_error()),
                        socket => tell(socket),
                    }
                }
            }
        }
        // SAFETY: it ends this process, without anything that is done at the end of a program.
        unsafe { libc::_exit(0) }
    }

    fn enter(&self) -> io::Result<()> {
        let Some(namespace) = self.namespace else { return Ok(()) };
        // SAFETY: a system call that takes numbers.
        match unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// Does something while the files that the calling thread makes are those of a user and a group: firewalls know the owner of a socket by that
/// (iptables-extensions(8), `owner`). Takes `CAP_SETUID` and `CAP_SETGID`.
pub(super) fn as_owner<T>(owner: (u32, u32), act: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let before =
        (set_of_files(libc::SYS_setfsuid, NOBODY), set_of_files(libc::SYS_setfsgid, NOBODY));
    let outcome = become_owner(owner).and_then(|()| act());
    // The right to come back is that of the user and the group that the thread still is in all other respects.
    become_owner(before)?;
    outcome
}

/// No user and no group has this number: who asks to be it stays what it is.
const NOBODY: u32 = u32::MAX;

/// Sets the calling thread's user or group for files, and gives the one before. It tells of no refusal (setfsuid(2)). The C library is passed by: there is no need for
/// it, and it may set those of all threads.
fn set_of_files(call: libc::c_long, number: u32) -> u32 {
    // SAFETY: system calls that take a number, and set what belongs to the calling thread only.
    let before = unsafe { libc::syscall(call, number) };
    before as u32
}

fn become_owner((user, group): (u32, u32)) -> io::Result<()> {
    // The group first: without the user's rights it might be refused.
    for (call, number) in [(libc::SYS_setfsgid, group), (libc::SYS_setfsuid, user)] {
        set_of_files(call, number);
        if set_of_files(call, NOBODY) != number {
            return Err(io::Error::from_raw_os_error(libc::EPERM));
        }
    }
    Ok(())
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

    fn owner_of(socket: &OwnedFd) -> (u32, u32) {
        let file = rustix::fs::fstat(socket).unwrap();
        (file.st_uid, file.st_gid)
    }

    fn socket() -> io::Result<OwnedFd> {
        super::super::make(super::super::Family::V4)
    }

    #[test]
    fn a_thread_is_somebody_else_for_a_moment() {
        let own = owner_of(&socket().unwrap());
        let other = (own.0 + 7, own.1 + 9);
        match as_owner(other, socket) {
            Ok(theirs) => assert_eq!(owner_of(&theirs), other),
            Err(error) => {
                assert_eq!(error.raw_os_error(), Some(libc::EPERM));
                assert!(!rustix::process::geteuid().is_root(), "root may");
            }
        }
        assert_eq!(owner_of(&socket().unwrap()), own, "it is itself again");
        let failed = as_owner(own, || Err::<(), _>(io::ErrorKind::Other.into()));
        assert_eq!(failed.unwrap_err().kind(), io::ErrorKind::Other);
        as_owner((NOBODY, own.1), socket).unwrap_err();
        assert_eq!(owner_of(&socket().unwrap()), own);
    }

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
