//! A record of the call in the supervisor's hands, in a file that a second process can read.
//!
//! The kernel hands each call out once. If the supervisor is killed with a call in its hands, nobody else is given that call, and its thread would wait for
//! ever. So the supervisor notes the number of each call in a file in memory. The guard reads it afterwards.
//!
//! The kernel numbers calls one after the other and hands them out in this order. So a call that was received and could not be noted any more is found among
//! the next numbers.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::{pread, pwrite};
use transom_device::intercept::{Answer, Notifier};

/// How many numbers behind the last one are tried. Each of them, but one, is a call that was withdrawn before it was received.
const MAX_UNRECORDED: u64 = 1 << 16;

/// The file. The supervisor and the guard have it in common.
#[derive(Debug)]
pub struct Ledger {
    file: OwnedFd,
}

impl Ledger {
    /// A new one, in which nothing is noted.
    ///
    /// # Errors
    /// The kernel's.
    pub fn new() -> io::Result<Ledger> {
        Ok(Ledger { file: memfd_create("calls", MemfdFlags::CLOEXEC)? })
    }

    /// Takes a descriptor of one that was handed on.
    pub(crate) fn from_descriptor(file: OwnedFd) -> Ledger {
        Ledger { file }
    }

    /// Notes the call that was received last.
    pub(crate) fn note(&self, id: u64) -> io::Result<()> {
        pwrite(&self.file, &id.to_ne_bytes(), 0)?;
        Ok(())
    }

    /// Answers the call that somebody else had received, with this error. `false` if none was ever noted, so that no call's number is known.
    pub(crate) fn answer(&self, notifier: &Notifier, error: i32) -> io::Result<bool> {
        let mut word = [0; size_of::<u64>()];
        if pread(&self.file, &mut word, 0)? != word.len() {
            return Ok(false);
        }
        let last = u64::from_ne_bytes(word);
        for id in (0..=MAX_UNRECORDED).map(|ahead| last.wrapping_add(ahead)) {
            if notifier.is_valid(id) {
                notifier.answer(id, Answer::Error(error))?;
            }
        }
        Ok(true)
    }
}

impl AsFd for Ledger {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command, Stdio};
    use std::time::{Duration, Instant};

    use transom_device::intercept;

    /// A program that asks for a socket, and ends whether it gets one or not.
    fn program() -> (Child, Notifier) {
        let mut command = Command::new("bash");
        command.args(["-c", "exec 3<>/dev/tcp/127.0.0.1/1"]).stderr(Stdio::null());
        intercept::spawn(&mut command).unwrap()
    }

    fn ends_in_time(mut child: Child) -> bool {
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(60) {
            if child.try_wait().unwrap().is_some() {
                return true;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        child.kill().unwrap();
        false
    }

    #[test]
    fn a_call_in_hand_is_answered_by_whoever_reads_the_record() {
        // The supervisor was killed before it had noted the call, and after.
        for behind in [3, 0] {
            let (child, notifier) = program();
            let ledger = Ledger::new().unwrap();
            let call = notifier.receive().unwrap().unwrap();
            ledger.note(call.id.wrapping_sub(behind)).unwrap();
            assert!(ledger.answer(&notifier, libc::ENETDOWN).unwrap());
            drop(notifier);
            assert!(ends_in_time(child), "{behind}");
        }
    }

    #[test]
    fn an_empty_record_names_no_call() {
        let (child, notifier) = program();
        notifier.receive().unwrap().unwrap();
        assert!(!Ledger::new().unwrap().answer(&notifier, libc::ENETDOWN).unwrap());
        // The kernel answers when nobody has the notifier any more.
        drop(notifier);
        assert!(ends_in_time(child));
    }
}
