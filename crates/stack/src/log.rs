//! The event log: the recent events of a host's connections, in a ring that is always on.
//!
//! A record has 64 bytes of fixed layout ([`Record`], documented byte by byte in docs/event-log.md). Writing one takes only a few stores:
//! nothing is formatted or allocated, and the ring's memory is bounded. There is one for each acknowledgement, arrival of new data and
//! transmission (a super-segment is one), and for rarer events: losses, timeouts, changes of state and of the requests of extensions. Records
//! are numbered, so that a late reader knows how many it has missed.
//!
//! There are no notifications; a reader [reads](crate::Stack::log) from where it stopped.

pub mod file;
mod hooks;
mod json;
mod record;

pub use json::Line;
pub use record::{EndedBy, FlowEvent, LayerFate, Record, RecordError, Values, What};

pub(crate) use hooks::Subject;

use alloc::vec::Vec;
use transom_tcp::time::Instant;

/// When a stored record was made.
pub fn time_of(record: &Encoded) -> Instant {
    let (words, _) = record.as_chunks();
    Instant::from_nanos(words.first().copied().map_or(0, u64::from_le_bytes))
}

/// A stored record with another number, for a log that is put together from several. A record has the lower half of its number.
pub fn renumbered(record: &Encoded, number: u64) -> Encoded {
    let mut renumbered = *record;
    renumbered[record::SEQUENCE].copy_from_slice(&(number as u32).to_le_bytes());
    renumbered
}

/// Bytes of a record.
pub const RECORD_LEN: usize = 64;

/// A stored record.
pub type Encoded = [u8; RECORD_LEN];

/// A record where it is kept: in one line of the cache, where it would otherwise lie across two.
#[derive(Debug)]
#[repr(C, align(64))]
struct Slot(Encoded);

/// The ring.
#[derive(Debug)]
pub(crate) struct Log {
    records: Vec<Slot>,
    capacity: usize,
    /// The index of the next record once the ring is full.
    place: usize,
    /// How many records there have been.
    written: u64,
    /// Arrivals that are to be written.
    run: Option<hooks::Run>,
}

/// The records that are still there, oldest first.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Reading<'a> {
    /// Records that were overwritten before they were read.
    pub missed: u64,
    /// The number of the next record there will be: where to go on.
    pub next: u64,
    parts: [&'a [Slot]; 2],
}

impl Log {
    /// A ring of `capacity` records; zero turns it off. Memory is allocated with the first record.
    pub(crate) const fn new(capacity: usize) -> Self {
        Log { records: Vec::new(), capacity, place: 0, written: 0, run: None }
    }

    /// Whether anything is recorded.
    fn is_on(&self) -> bool {
        self.capacity > 0
    }

    /// The records from number `from` on (they are counted from zero).
    pub(crate) fn read(&self, from: u64) -> Reading<'_> {
        let held = self.records.len() as u64;
        let oldest = self.written - held;
        let from = from.min(self.written);
        let skip = usize::try_from(from.saturating_sub(oldest)).unwrap_or(usize::MAX);
        // Before the ring is full its beginning is its oldest record.
        let (newer, older) = self.records.split_at(self.place.min(self.records.len()));
        let first = older.get(skip..).unwrap_or_default();
        let second = newer.get(skip.saturating_sub(older.len())..).unwrap_or_default();
        let missed = oldest.saturating_sub(from);
        Reading { missed, next: self.written, parts: [first, second] }
    }

    #[inline]
    fn push(&mut self, words: record::Words) {
        let sequence = self.written as u32;
        self.written += 1;
        if self.records.len() < self.capacity {
            return self.push_one_more(words, sequence);
        }
        if let Some(Slot(bytes)) = self.records.get_mut(self.place) {
            record::finish(words, sequence, bytes);
        }
        self.place += 1;
        if self.place == self.capacity {
            self.place = 0;
        }
    }

    #[cold]
    fn push_one_more(&mut self, words: record::Words, sequence: u32) {
        if self.records.is_empty() {
            self.records.reserve_exact(self.capacity);
        }
        let mut bytes = [0; RECORD_LEN];
        record::finish(words, sequence, &mut bytes);
        self.records.push(Slot(bytes));
    }
}

impl<'a> Reading<'a> {
    /// The records, as they are stored.
    pub fn records(&self) -> impl Iterator<Item = &'a Encoded> + use<'a> {
        let [first, second] = self.parts;
        first.iter().chain(second).map(|slot| &slot.0)
    }
}

#[cfg(test)]
mod tests;
