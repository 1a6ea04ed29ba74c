//! Units out of parts of the stream, in whatever order the parts arrive.
//!
//! Data between two zeros is a unit. An arriving part is divided at its zeros. A piece with a zero on both sides is decoded at once, out
//! of the segment. The pieces at the ends of the part are *runs*: consecutive bytes without a zero, with or without a known zero before
//! and behind. Runs are the only state: the next part extends them, joins them, or adds the missing zero. Each byte is scanned once and
//! copied at most three times, however the stream was divided.
//!
//! The beginning of the stream counts as a zero, so that an encoder that only writes zeros behind its units is understood too.
//!
//! Bytes that are no unit cost their own place alone: the next zero begins anew. A run that has grown longer than the largest unit
//! allows is forgotten but for its ends, so that no peer can fill the memory with what will never be a unit.

use super::encoding::{DELIMITER, decode, decoded_len, max_encoded_len};
use super::ready::Ready;
use crate::ordering::UnitFaults;
use crate::pos::Pos;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::ops::Range;

/// The number of empty vectors that are kept for reuse.
const MAX_SPARE: usize = 8;
/// The least a run is charged for, in bytes.
const RUN_CHARGE: usize = 512;

/// Why a run will be no unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unusable {
    Oversized,
    Incomplete,
}

/// Bytes in a row without a zero, of which an end at least is not in sight.
#[derive(Debug)]
struct Run {
    start: Pos,
    end: Pos,
    /// A zero precedes it.
    opened: bool,
    /// A zero follows it.
    closed: bool,
    unusable: Option<Unusable>,
    /// Its bytes, unless it is spoiled.
    bytes: Vec<u8>,
}

/// Makes units of parts of the stream.
#[derive(Debug)]
pub(crate) struct Assembler {
    max: usize,
    /// The first byte of the stream.
    origin: Pos,
    /// By position. They never touch.
    runs: VecDeque<Run>,
    /// Bytes in runs.
    held: usize,
    ready: Ready,
    faults: UnitFaults,
    spare: Vec<Vec<u8>>,
}

impl Assembler {
    /// For a stream whose first byte is at `origin`, and units of at most `max` bytes.
    pub(crate) fn new(origin: Pos, max: usize) -> Self {
        Assembler {
            max,
            origin,
            runs: VecDeque::new(),
            held: 0,
            ready: Ready::new(),
            faults: UnitFaults::default(),
            spare: Vec::new(),
        }
    }

    /// Accepts `bytes` at position `at` of the stream. No byte of the stream may be given twice.
    pub(crate) fn accept(&mut self, at: Pos, bytes: &[u8]) {
        let end = at + bytes.len() as u64;
        let mut from = 0;
        for zero in memchr::memchr_iter(DELIMITER, bytes) {
            let part = &bytes[from..zero];
            let range = at + from as u64..at + zero as u64;
            if from == 0 {
                self.first(range, part, true);
            } else {
                self.unit(range, part);
            }
            from = zero + 1;
        }
        let rest = &bytes[from..];
        if from == 0 {
            if !rest.is_empty() {
                self.first(at..end, rest, false);
            }
        } else {
            let opened = self.run(at + from as u64, rest, true, false);
            self.place(opened);
        }
    }

    /// The part of a segment before its first zero, or all of it.
    fn first(&mut self, range: Range<Pos>, part: &[u8], closed: bool) {
        let index = self.runs.partition_point(|run| run.start <= range.start);
        let before = index.checked_sub(1).filter(|&before| {
            self.runs.get(before).is_some_and(|run| run.end == range.start && !run.closed)
        });
        let run = match before.and_then(|before| self.runs.remove(before)) {
            Some(mut run) => {
                self.held -= run.bytes.len();
                self.prolong(&mut run, part);
                run.end = range.end;
                run.closed = closed;
                run
            }
            None => self.run(range.start, part, range.start == self.origin, closed),
        };
        self.place(run);
    }

    /// Adds a separate run.
    fn run(&mut self, start: Pos, bytes: &[u8], opened: bool, closed: bool) -> Run {
        let mut run = Run { start, end: start, opened, closed, unusable: None, bytes: Vec::new() };
        self.prolong(&mut run, bytes);
        run
    }

    fn prolong(&mut self, run: &mut Run, bytes: &[u8]) {
        run.end += bytes.len() as u64;
        let longest = max_encoded_len(self.max) as u64 - 2;
        if run.unusable.is_none() && run.end.since(run.start) > longest {
            run.unusable = Some(Unusable::Oversized);
        }
        if run.unusable.is_some() {
            self.recycle(core::mem::take(&mut run.bytes));
            return;
        }
        if run.bytes.capacity() == 0 && !bytes.is_empty() {
            run.bytes = self.spare.pop().unwrap_or_default();
        }
        run.bytes.extend_from_slice(bytes);
    }

    /// Puts a run where it belongs: joins it with the one that follows it, makes a unit of it if it is whole, or keeps it.
    fn place(&mut self, mut run: Run) {
        let mut index = self.runs.partition_point(|other| other.start < run.start);
        if !run.closed
            && self.runs.get(index).is_some_and(|next| next.start == run.end && !next.opened)
            && let Some(next) = self.runs.remove(index)
        {
            self.held -= next.bytes.len();
            run.unusable = run.unusable.or(next.unusable);
            self.prolong(&mut run, &next.bytes);
            (run.end, run.closed) = (next.end, next.closed);
            self.recycle(next.bytes);
        }
        if run.opened && run.closed {
            let range = run.start..run.end;
            match run.unusable {
                None => self.unit(range, &run.bytes),
                // The data that was given up ended together with a unit.
                Some(_) if range.is_empty() => {}
                Some(why) => self.note(why),
            }
            self.recycle(run.bytes);
            return;
        }
        self.held += run.bytes.len();
        index = index.min(self.runs.len());
        self.runs.insert(index, run);
    }

    /// Accepts a whole unit, or data in its place that may be malformed.
    fn unit(&mut self, range: Range<Pos>, encoded: &[u8]) {
        if encoded.is_empty() {
            // Two zeros in a row.
            return;
        }
        match decoded_len(encoded) {
            Err(_) => self.faults.malformed += 1,
            Ok(len) if len > self.max => self.faults.oversized += 1,
            Ok(len) => {
                self.ready.begin(&range, len);
                let ready = &mut self.ready;
                // It has been found well-formed.
                let _ = decode(encoded, |bytes| ready.extend(bytes));
            }
        }
    }

    fn note(&mut self, why: Unusable) {
        match why {
            Unusable::Oversized => self.faults.oversized += 1,
            Unusable::Incomplete => self.faults.incomplete += 1,
        }
    }

    /// `hole` of the stream will never come, and neither will the units of which it is a part.
    pub(crate) fn give_up(&mut self, hole: Range<Pos>) {
        let index = self.runs.partition_point(|run| run.start <= hole.start);
        if let Some(before) = index.checked_sub(1)
            && self.runs.get(before).is_some_and(|run| run.end == hole.start && !run.closed)
            && let Some(run) = self.runs.remove(before)
        {
            self.held -= run.bytes.len();
            if run.end > run.start {
                self.note(run.unusable.unwrap_or(Unusable::Incomplete));
            }
            self.recycle(run.bytes);
        }
        // The bytes up to the next zero are the end of a unit.
        self.place(Run {
            start: hole.end,
            end: hole.end,
            opened: true,
            closed: false,
            unusable: Some(Unusable::Incomplete),
            bytes: Vec::new(),
        });
    }

    /// The stream ends: runs without a zero behind them were truncated.
    pub(crate) fn finish(&mut self) {
        while let Some(run) = self.runs.pop_front() {
            match run.unusable {
                _ if run.end == run.start => {}
                None => self.faults.truncated += 1,
                Some(why) => self.note(why),
            }
            self.recycle(run.bytes);
        }
        self.held = 0;
    }

    /// Takes the next unit, replacing the contents of `unit`, and returns the position of its encoding in the stream.
    pub(crate) fn take(&mut self, unit: &mut Vec<u8>) -> Option<Range<Pos>> {
        self.ready.take(unit)
    }

    /// Drops complete units, until they amount to `bytes` of the stream. Returns the number of these bytes.
    pub(crate) fn discard(&mut self, bytes: usize) -> usize {
        let mut dropped = 0;
        while dropped < bytes
            && let Some(wire) = self.ready.drop_next()
        {
            dropped += wire;
        }
        dropped
    }

    /// The position of the next unit.
    pub(crate) fn next_start(&self) -> Option<Pos> {
        self.ready.next_start()
    }

    /// Bytes of the stream that the complete units took.
    pub(crate) fn readable(&self) -> usize {
        self.ready.wire()
    }

    /// Bytes of the stream that are held, in complete units or not.
    pub(crate) fn held(&self) -> usize {
        self.ready.wire() + self.held
    }

    /// The first byte held.
    pub(crate) fn front(&self) -> Option<Pos> {
        let run = self.runs.iter().find(|run| !run.bytes.is_empty()).map(|run| run.start);
        self.ready.next_start().into_iter().chain(run).min()
    }

    /// Its charge to the receive buffer, in bytes: at least the bytes that it holds, and more for small pieces.
    pub(crate) fn charge(&self) -> usize {
        let ready = self.ready.bytes().max(self.ready.wire());
        ready + self.held.max(self.runs.len() * RUN_CHARGE)
    }

    /// The pieces that were not units.
    pub(crate) fn faults(&self) -> UnitFaults {
        self.faults
    }

    fn recycle(&mut self, mut bytes: Vec<u8>) {
        if bytes.capacity() > 0 && self.spare.len() < MAX_SPARE {
            bytes.clear();
            self.spare.push(bytes);
        }
    }

    /// Gives unused memory back.
    pub(crate) fn release(&mut self) {
        self.spare = Vec::new();
        self.ready.release();
        if self.runs.is_empty() {
            self.runs = VecDeque::new();
        }
    }

    /// Bytes of memory owned.
    pub(crate) fn memory(&self) -> usize {
        self.ready.memory()
            + self.runs.capacity() * size_of::<Run>()
            + self.runs.iter().map(|run| run.bytes.capacity()).sum::<usize>()
            + self.spare.iter().map(Vec::capacity).sum::<usize>()
            + self.spare.capacity() * size_of::<Vec<u8>>()
    }
}

#[cfg(test)]
#[path = "assembler/tests.rs"]
mod tests;
