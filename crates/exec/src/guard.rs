//! The fate of programs when their supervisor is killed.
//!
//! Their connections end at once, as its descriptors are closed. But two kinds of programs would go on for ever: those that wait for the answer to a call, and
//! servers that try again although each call fails. So a second process keeps the notifier too. It answers the calls that wait and all later ones with
//! an error, and kills programs that go on calling.

use std::collections::HashMap;
use std::io;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use transom_device::intercept::{Answer, Call, Notifier};

use crate::ledger::Ledger;
use crate::program::process_of;

/// The end of all calls.
const SUPERVISOR_GONE: i32 = libc::ENETDOWN;
/// So many calls a process may make to end in order, such as those that close a socket. With the next one it is killed.
const MAX_CALLS_AFTER_END: u32 = 16;

/// Waits until `supervisor`, of which it holds the other end, hangs up. Then has the calls in `ledger` and all later ones fail with `ENETDOWN`, and kills each
/// process that goes on calling, until the last has gone. The caller lets go of the notifier then: if no call was ever noted, this returns at once.
///
/// # Errors
/// The kernel's.
pub fn guard(
    notifier: &Notifier,
    ledger: &Ledger,
    supervisor: impl std::os::fd::AsFd,
) -> io::Result<()> {
    poll_until_event(&mut [PollFd::new(&supervisor, PollFlags::IN)])?;
    // If the very first call was in its hands, nobody knows that call's number. No program has a socket yet, and without the notifier each call fails.
    if !ledger.answer_all(notifier, SUPERVISOR_GONE)? {
        return Ok(());
    }
    let mut calls = HashMap::new();
    loop {
        let mut fds = [PollFd::new(notifier, PollFlags::IN)];
        poll_until_event(&mut fds)?;
        if !fds.iter().any(|fd| fd.revents().contains(PollFlags::IN)) {
            return Ok(());
        }
        if let Some(call) = notifier.receive()? {
            fail_call(notifier, &call, &mut calls)?;
        }
    }
}

fn poll_until_event(fds: &mut [PollFd<'_>]) -> io::Result<()> {
    loop {
        match poll(fds, None) {
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Has a call fail. `calls` has how many each process has made.
fn fail_call(notifier: &Notifier, call: &Call, calls: &mut HashMap<Pid, u32>) -> io::Result<()> {
    let process = process_of(call.thread).ok().and_then(|number| i32::try_from(number).ok());
    if let Some(pid) = process.and_then(Pid::from_raw) {
        let call_count = calls.entry(pid).or_default();
        *call_count += 1;
        let process =
            pidfd_open(pid, PidfdFlags::empty()).ok().filter(|_| *call_count > MAX_CALLS_AFTER_END);
        // The number was the program's if its call still waits.
        if let Some(process) = process.filter(|_| notifier.is_valid(call.id)) {
            let _ = pidfd_send_signal(process, Signal::KILL);
        }
    }
    notifier.answer(call.id, Answer::Error(SUPERVISOR_GONE))?;
    Ok(())
}
