//! The application's bytes on their way out: not yet sent, or sent and not yet acknowledged.
//!
//! One growable ring, so that any part of it is at most two slices and a 64 KB super-segment leaves without
//! being copied inside the stack. It owns no memory until the first write, and returns it when idle.

use crate::pos::Pos;
use alloc::vec::Vec;
use core::ops::Range;

/// Bytes in a ring of fixed size: written as at most two slices, read as at most two slices.
#[derive(Debug, Default)]
struct Ring {
    bytes: Vec<u8>,
    head: usize,
    len: usize,
}

impl Ring {
    fn len(&self) -> usize {
        self.len
    }

    fn is_empty(&self) -> bool {
        self.len == 0
    }

    fn capacity(&self) -> usize {
        self.bytes.len()
    }

    /// Moves to a larger ring.
    fn grow(&mut self, capacity: usize) {
        let mut bytes = Vec::with_capacity(capacity);
        let [front, back] = self.slices(0, self.len);
        bytes.extend_from_slice(front);
        bytes.extend_from_slice(back);
        bytes.resize(capacity.max(self.len), 0);
        self.bytes = bytes;
        self.head = 0;
    }

    /// Where the byte at `offset` from the head lies.
    fn place(&self, offset: usize) -> usize {
        let place = self.head + offset;
        if place >= self.bytes.len() { place - self.bytes.len() } else { place }
    }

    /// Appends `new`, for which there must be room.
    fn push(&mut self, new: &[u8]) {
        let at = self.place(self.len);
        let first = new.len().min(self.bytes.len() - at);
        let (front, back) = new.split_at(first);
        self.bytes[at..at + first].copy_from_slice(front);
        self.bytes[..back.len()].copy_from_slice(back);
        self.len += new.len();
    }

    /// Forgets the first `count` bytes.
    fn drop_front(&mut self, count: usize) {
        let count = count.min(self.len);
        self.len -= count;
        // An empty ring starts over, so that what comes next lies in one piece.
        self.head = if self.len == 0 { 0 } else { self.place(count) };
    }

    /// The bytes from offset `from` up to `upto`, neither beyond what there is.
    fn slices(&self, from: usize, upto: usize) -> [&[u8]; 2] {
        if from >= upto {
            return [&[]; 2];
        }
        let (start, last) = (self.place(from), self.place(upto - 1));
        if start <= last {
            [&self.bytes[start..=last], &[]]
        } else {
            [&self.bytes[start..], &self.bytes[..=last]]
        }
    }
}

/// The retransmission buffer.
#[derive(Debug)]
pub struct SendBuffer {
    ring: Ring,
    start: Pos,
    limit: usize,
    fixed: bool,
}

impl SendBuffer {
    /// An empty buffer whose first byte will stand at `start`, holding at most `limit` bytes.
    pub fn new(start: Pos, limit: usize) -> Self {
        SendBuffer { ring: Ring::default(), start, limit, fixed: false }
    }

    /// The oldest byte still held (everything before is acknowledged).
    pub fn start(&self) -> Pos {
        self.start
    }

    /// One past the last byte written.
    pub fn end(&self) -> Pos {
        self.start + self.ring.len() as u64
    }

    /// Bytes held.
    pub fn len(&self) -> usize {
        self.ring.len()
    }

    /// Whether nothing is held.
    pub fn is_empty(&self) -> bool {
        self.ring.is_empty()
    }

    /// The most bytes it may hold.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Changes the bound, unless it is fixed.
    pub fn set_limit(&mut self, limit: usize) {
        if !self.fixed {
            self.limit = limit;
        }
    }

    /// Changes the bound for good. Bytes already held are never dropped.
    pub fn fix_limit(&mut self, limit: usize) {
        self.limit = limit;
        self.fixed = true;
    }

    /// How many bytes a write would take now.
    pub fn space(&self) -> usize {
        self.limit.saturating_sub(self.ring.len())
    }

    /// Appends as much of `bytes` as there is space for and says how much that was.
    pub fn write(&mut self, bytes: &[u8]) -> usize {
        let taken = bytes.len().min(self.space());
        let needed = self.ring.len() + taken;
        if needed > self.ring.capacity() {
            // Doubling, but never past the limit: the ring is the connection's largest piece of memory.
            let grown = (self.ring.capacity() * 2).clamp(needed, self.limit.max(needed));
            self.ring.grow(grown);
        }
        self.ring.push(&bytes[..taken]);
        taken
    }

    /// Forgets everything before `pos`.
    pub fn acknowledge(&mut self, pos: Pos) {
        let gone = (pos.since(self.start)).min(self.ring.len() as u64) as usize;
        self.ring.drop_front(gone);
        self.start += gone as u64;
    }

    /// The bytes of `range` (clamped to what is held) as at most two slices.
    pub fn slices(&self, range: Range<Pos>) -> [&[u8]; 2] {
        let from = (range.start.since(self.start) as usize).min(self.ring.len());
        let upto = (range.end.since(self.start) as usize).clamp(from, self.ring.len());
        self.ring.slices(from, upto)
    }

    /// Gives the memory back when nothing is held.
    pub fn release_if_empty(&mut self) {
        if self.ring.is_empty() {
            self.ring = Ring::default();
        }
    }

    /// Bytes of memory owned.
    pub fn memory(&self) -> usize {
        self.ring.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    #[test]
    fn owns_nothing_until_written_to_and_after_release() {
        let mut buffer = SendBuffer::new(Pos::FIRST_DATA, 100);
        assert_eq!(buffer.memory(), 0);
        assert_eq!(buffer.write(&[7; 150]), 100);
        assert_eq!(buffer.space(), 0);
        buffer.acknowledge(buffer.end());
        buffer.release_if_empty();
        assert_eq!(buffer.memory(), 0);
        assert_eq!(buffer.start(), Pos::FIRST_DATA + 100);
    }

    #[test]
    fn a_fixed_limit_stays() {
        let mut buffer = SendBuffer::new(Pos::FIRST_DATA, 100);
        buffer.set_limit(200);
        assert_eq!(buffer.space(), 200);
        buffer.fix_limit(50);
        buffer.set_limit(500);
        assert_eq!(buffer.space(), 50);
    }

    proptest! {
        #[test]
        fn any_range_reads_back_what_was_written(
            steps in prop::collection::vec((1usize..50, 0u64..50), 1..60), cut in (0u64..100, 0u64..100),
        ) {
            let mut buffer = SendBuffer::new(Pos::FIRST_DATA, 128);
            let mut written: Vec<u8> = Vec::new();
            for (len, acked) in steps {
                let bytes: Vec<u8> = (0..len).map(|i| (written.len() + i) as u8).collect();
                let taken = buffer.write(&bytes);
                written.extend(&bytes[..taken]);
                prop_assert!(buffer.len() <= 128);
                let start = buffer.start() + cut.0;
                let end = start + cut.1;
                let [a, b] = buffer.slices(start..end);
                let got: Vec<u8> = a.iter().chain(b).copied().collect();
                let base = start.stream_offset() as usize;
                let upto = (end.stream_offset() as usize).min(written.len());
                prop_assert_eq!(&got[..], written.get(base..upto.max(base)).unwrap_or(&[]));
                buffer.acknowledge(buffer.start() + acked);
            }
            prop_assert_eq!(buffer.end().stream_offset(), written.len() as u64);
        }
    }
}
