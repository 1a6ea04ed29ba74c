//! Processes, told apart from later ones with the same number.

use std::io;
use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// A process that may end at any time.
#[derive(Debug)]
pub(super) struct Process {
    /// Readable when it has ended.
    pub(super) pidfd: OwnedFd,
    /// When it started, in clock ticks since the boot.
    pub(super) started: u64,
}

impl Process {
    /// The process that has this number now.
    pub(super) fn find(number: u32) -> io::Result<Self> {
        let pid = i32::try_from(number).ok().and_then(Pid::from_raw).ok_or_else(no_such_process)?;
        Self::from_pidfd(pidfd_open(pid, PidfdFlags::empty())?, number)
    }

    /// The process that this descriptor stands for, which has or had this number.
    pub(super) fn from_pidfd(pidfd: OwnedFd, number: u32) -> io::Result<Self> {
        let stat = std::fs::read_to_string(format!("/proc/{number}/stat"))?;
        let process = Process { pidfd, started: start_time(&stat).ok_or_else(no_such_process)? };
        // The number was its own, and no later process' one, if it has not ended by now.
        if process.has_ended()? { Err(no_such_process()) } else { Ok(process) }
    }

    fn has_ended(&self) -> io::Result<bool> {
        let mut fds = [PollFd::new(&self.pidfd, PollFlags::IN)];
        Ok(poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }))? > 0)
    }
}

fn no_such_process() -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, "there is no such process")
}

/// The 22nd field of proc_pid_stat(5). The second may have blanks and brackets in it.
fn start_time(stat: &str) -> Option<u64> {
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_ascii_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_told_from_a_later_one_with_its_number() {
        let own = Process::find(std::process::id()).unwrap();
        assert!(own.started > 0);
        assert!(Process::find(0).is_err() && Process::find(u32::MAX).is_err());
        // A process that has ended is not found, even while its number is not free yet or is another process'.
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let descriptor = pidfd_open(Pid::from_child(&child), PidfdFlags::empty()).unwrap();
        let copy = descriptor.try_clone().unwrap();
        poll(&mut [PollFd::new(&copy, PollFlags::IN)], None).unwrap();
        assert!(Process::from_pidfd(copy, child.id()).is_err());
        child.wait().unwrap();
        assert!(Process::from_pidfd(descriptor, std::process::id()).is_err());
        let line = "7 (a) b) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4242 20";
        assert_eq!(start_time(line), Some(4242));
        assert_eq!(start_time("7 (x"), None);
    }
}
