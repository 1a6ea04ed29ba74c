//! A record of the calls that wait for an answer, in a file that a second process can read.
//!
//! The kernel hands each call out once. If the supervisor is killed with a call in its hands, nobody else is given that call, and its thread would wait for
//! ever. So the supervisor notes calls in a file in memory. The guard reads it afterwards and answers them.
//!
//! The file is a row of words. The first is the call that was received last. Each of the others is a call that waits, or 0.
//! The kernel numbers calls one after the other and hands them out in this order. So a call that was received and could not be noted any more is found among
//! the next numbers.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::{pread, pwrite};
use transom_device::intercept::{Answer, Call, Notifier};

const ENTRY_LEN: usize = size_of::<u64>();
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
    pub fn from_descriptor(file: OwnedFd) -> Ledger {
        Ledger { file }
    }

    fn write(&self, slot: u64, word: u64) -> io::Result<()> {
        pwrite(&self.file, &word.to_ne_bytes(), slot * ENTRY_LEN as u64)?;
        Ok(())
    }

    /// All words that are not 0.
    fn entries(&self) -> io::Result<Vec<u64>> {
        let mut words = Vec::new();
        let mut block = [0; 512 * ENTRY_LEN];
        let mut at = 0;
        loop {
            let n = pread(&self.file, &mut block[..], at)?;
            let (chunks, _) = block.get(..n).unwrap_or_default().as_chunks();
            words.extend(chunks.iter().map(|chunk| u64::from_ne_bytes(*chunk)).filter(|&w| w != 0));
            if n < block.len() {
                return Ok(words);
            }
            at += n as u64;
        }
    }

    /// Answers each call that somebody else had received, with this error. `false` if none was ever noted, so that no call's number is known.
    pub(crate) fn answer_all(&self, notifier: &Notifier, error: i32) -> io::Result<bool> {
        let words = self.entries()?;
        let Some(&last) = words.first() else { return Ok(false) };
        let next = (1..=MAX_UNRECORDED).map(|ahead| last.wrapping_add(ahead));
        for id in words.into_iter().chain(next) {
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

/// Whether a list of waiting calls of this length should be purged of calls that are gone. Signals interrupt calls, and then they are made again: the old ones would pile up.
pub(crate) fn is_time_to_purge(len: usize) -> bool {
    len >= 16 && len.is_power_of_two()
}

/// A notifier whose calls are noted.
#[derive(Debug)]
pub(crate) struct RecordedCalls {
    pub(crate) notifier: Notifier,
    ledger: Ledger,
    /// The slot in the file of each call that waits.
    slots: HashMap<u64, u64>,
    /// Slots that were used and are free.
    free_slots: Vec<u64>,
}

impl RecordedCalls {
    pub(crate) fn new(notifier: Notifier, ledger: Ledger) -> RecordedCalls {
        RecordedCalls { notifier, ledger, slots: HashMap::new(), free_slots: Vec::new() }
    }

    /// Takes the next call. See [`Notifier::receive`]. It has to be answered, or kept, before the next one is taken.
    pub(crate) fn receive(&self) -> io::Result<Option<Call>> {
        let call = self.notifier.receive()?;
        if let Some(call) = &call {
            self.ledger.write(0, call.id)?;
        }
        Ok(call)
    }

    /// Records a call that will be answered later.
    pub(crate) fn record_pending(&mut self, id: u64) -> io::Result<()> {
        let slot = self.free_slots.pop().unwrap_or(self.slots.len() as u64 + 1);
        self.slots.insert(id, slot);
        self.ledger.write(slot, id)
    }

    /// Erases a call that was answered or is gone.
    fn erase(&mut self, id: u64) {
        let Some(slot) = self.slots.remove(&id) else { return };
        // If its number stays there, it names nothing.
        let _ = self.ledger.write(slot, 0);
        self.free_slots.push(slot);
    }

    /// See [`Notifier::is_valid`].
    pub(crate) fn is_valid(&mut self, id: u64) -> bool {
        let valid = self.notifier.is_valid(id);
        if !valid {
            self.erase(id);
        }
        valid
    }

    /// See [`Notifier::answer`].
    pub(crate) fn answer(&mut self, id: u64, answer: Answer) -> io::Result<bool> {
        let result = self.notifier.answer(id, answer);
        self.erase(id);
        result
    }

    /// See [`Notifier::answer_with_descriptor`].
    pub(crate) fn answer_with_descriptor(
        &mut self,
        id: u64,
        descriptor: BorrowedFd<'_>,
        close_on_exec: bool,
    ) -> io::Result<bool> {
        let delivered = self.notifier.answer_with_descriptor(id, descriptor, close_on_exec)?;
        self.erase(id);
        Ok(delivered)
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

    /// The guard after a supervisor that is gone.
    fn guard(notifier: Notifier, ledger: &Ledger) {
        let (watched, held) = io::pipe().unwrap();
        drop(held);
        crate::guard(&notifier, ledger, watched).unwrap();
    }

    fn copy(notifier: &Notifier) -> Notifier {
        Notifier::from_descriptor(notifier.as_fd().try_clone_to_owned().unwrap())
    }

    #[test]
    fn the_guard_answers_a_call_that_was_received() {
        for recorded in [false, true] {
            let (child, notifier) = program();
            let ledger = Ledger::new().unwrap();
            let copied = Ledger::from_descriptor(ledger.file.try_clone().unwrap());
            let mut calls = RecordedCalls::new(copy(&notifier), copied);
            let call = calls.receive().unwrap().unwrap();
            if recorded {
                calls.record_pending(call.id).unwrap();
                // Others came since.
                calls.ledger.write(0, call.id.wrapping_add(MAX_UNRECORDED)).unwrap();
            }
            drop(calls);
            guard(notifier, &ledger);
            assert!(ends_in_time(child), "recorded: {recorded}");
        }
    }

    /// The supervisor was killed between the two.
    #[test]
    fn the_guard_answers_a_call_that_was_not_yet_recorded() {
        let (child, notifier) = program();
        let ledger = Ledger::new().unwrap();
        let call = notifier.receive().unwrap().unwrap();
        ledger.write(0, call.id.wrapping_sub(3)).unwrap();
        guard(notifier, &ledger);
        assert!(ends_in_time(child));
        // The first call of all.
        let (child, notifier) = program();
        notifier.receive().unwrap().unwrap();
        guard(notifier, &Ledger::new().unwrap());
        assert!(ends_in_time(child));
    }

    #[test]
    fn free_slots_are_reused() {
        let (child, notifier) = program();
        let mut calls = RecordedCalls::new(notifier, Ledger::new().unwrap());
        for round in 0..3 {
            (1..=1000).for_each(|id| calls.record_pending(id).unwrap());
            calls.ledger.write(0, 4711).unwrap();
            let words = calls.ledger.entries().unwrap();
            assert_eq!((words.len(), words[0]), (1001, 4711), "{round}");
            (1..=1000).for_each(|id| assert!(!calls.is_valid(id)));
            assert_eq!(calls.ledger.entries().unwrap(), [4711]);
        }
        drop(calls);
        assert!(ends_in_time(child));
    }
}
