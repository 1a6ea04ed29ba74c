//! Counters by destination: numbers that count up towards one host and tell it nothing about the others.
//!
//! One counter for all destinations would tell each of them how many connections the host opens elsewhere. One for each would need memory
//! without bound. So a keyed hash of the destination chooses one of many counters, and another one shifts what is read from it (RFC 6056
//! section 3.3.4, "double hash"). Two destinations see each other's steps only if they share a counter, which is one in [`COUNTERS`], and
//! nobody outside can tell which ones do.

use crate::flow::FlowKey;
use crate::secrets::{Purpose, Secrets};
use alloc::vec::Vec;

/// How many counters there are.
pub(crate) const COUNTERS: usize = 4096;

/// The counters of one purpose.
#[derive(Debug)]
pub(crate) struct DestinationCounters {
    purpose: Purpose,
    /// Empty until one is moved: many hosts never open a connection.
    counts: Vec<u32>,
    /// Where all of them begin.
    start: u32,
}

/// Where the counter of a destination stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    /// The next number, counted modulo 2^32.
    pub(crate) number: u32,
    counter: usize,
}

impl DestinationCounters {
    /// All counters begin at `start`.
    pub(crate) fn new(purpose: Purpose, start: u32) -> Self {
        DestinationCounters { purpose, counts: Vec::new(), start }
    }

    /// The position towards a destination; the parts of `towards` that do not matter are zero.
    pub(crate) fn position(&self, secrets: &Secrets, towards: &FlowKey) -> Position {
        let counter = secrets.hash(Purpose::Counter, &(self.purpose as u8, *towards));
        let counter = (counter % COUNTERS as u64) as usize;
        let count = self.counts.get(counter).copied().unwrap_or(self.start);
        let offset = secrets.hash(self.purpose, towards) as u32;
        Position { number: offset.wrapping_add(count), counter }
    }

    /// Counts `by` numbers as used.
    pub(crate) fn advance(&mut self, position: Position, by: u32) {
        if self.counts.is_empty() {
            self.counts.resize(COUNTERS, self.start);
        }
        if let Some(count) = self.counts.get_mut(position.counter) {
            *count = count.wrapping_add(by);
        }
    }

    /// The next number towards a destination.
    pub(crate) fn next(&mut self, secrets: &Secrets, towards: &FlowKey) -> u32 {
        let position = self.position(secrets, towards);
        self.advance(position, 1);
        position.number
    }
}
