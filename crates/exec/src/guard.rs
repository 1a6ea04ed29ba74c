//! What becomes of programs when their supervisor is killed.
//!
//! Their connections end at once, as its descriptors are closed. But a server whose calls all fail may go on trying for ever. So a second process keeps the
//! notifier too, and ends the programs that still call.

use std::io;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use transom_device::intercept::{Answer, Call, Notifier};

use crate::program::process_of;

/// Waits until `supervisor`, of which it holds the other end, hangs up. Then kills each program that makes a call, until the last has gone.
///
/// # Errors
/// The kernel's.
pub fn guard(notifier: &Notifier, supervisor: impl std::os::fd::AsFd) -> io::Result<()> {
    wait(&mut [PollFd::new(&supervisor, PollFlags::IN)])?;
    loop {
        let mut fds = [PollFd::new(notifier, PollFlags::IN)];
        wait(&mut fds)?;
        if !fds.iter().any(|fd| fd.revents().contains(PollFlags::IN)) {
            return Ok(());
        }
        if let Some(call) = notifier.receive()? {
            end(notifier, &call)?;
        }
    }
}

fn wait(fds: &mut [PollFd<'_>]) -> io::Result<()> {
    loop {
        match poll(fds, None) {
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

fn end(notifier: &Notifier, call: &Call) -> io::Result<()> {
    let process = process_of(call.thread).ok().and_then(|number| i32::try_from(number).ok());
    let process = process.and_then(Pid::from_raw);
    let process = process.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
    // The number was the program's if its call still waits.
    if let Some(process) = process.filter(|_| notifier.is_valid(call.id)) {
        let _ = pidfd_send_signal(process, Signal::KILL);
    }
    notifier.answer(call.id, Answer::Error(libc::ENETDOWN))?;
    Ok(())
}
