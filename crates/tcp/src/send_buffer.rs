//! The application's bytes on their way out: not yet sent, or sent and not yet acknowledged.
//!
//! They lie in blocks of 64 KB, so that any super-segment is at most two slices and leaves without being copied inside the
//! stack. The buffer owns no memory until the first write, and returns it when idle. Zeros need no memory at all, so that a
//! simulation of thousands of large windows holds none of their contents.

mod blocks;
mod spare;

pub use spare::SpareBlocks;

use crate::pos::Pos;
use alloc::vec::Vec;
use blocks::Blocks;
use bytes::Bytes;
use core::ops::Range;

/// The bytes of a block: as much as the longest packet can carry.
pub const BLOCK: usize = 65_536;
/// The zeros of `SendBuffer::write_zeros`: a payload that begins here is known without reading it.
pub static ZEROS: [u8; BLOCK] = [0; BLOCK];

/// The retransmission buffer.
#[derive(Debug)]
pub(crate) struct SendBuffer {
    /// Empty while there are `zeros`.
    bytes: Blocks<BLOCK>,
    /// This many zeros follow, and nothing else.
    zeros: usize,
    start: Pos,
    limit: usize,
    fixed: bool,
}

impl SendBuffer {
    /// An empty buffer whose first byte has position `start`, with at most `limit` bytes.
    pub(crate) fn new(start: Pos, limit: usize) -> Self {
        SendBuffer { bytes: Blocks::default(), zeros: 0, start, limit, fixed: false }
    }

    /// The oldest byte still held (everything before is acknowledged).
    pub(crate) fn start(&self) -> Pos {
        self.start
    }

    /// One past the last byte written.
    pub(crate) fn end(&self) -> Pos {
        self.start + self.len() as u64
    }

    /// Bytes held.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len() + self.zeros
    }

    /// Whether nothing is held.
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The most bytes it may hold.
    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// Changes the bound, unless it is fixed.
    pub(crate) fn set_limit(&mut self, limit: usize) {
        if !self.fixed {
            self.limit = limit;
        }
    }

    /// Changes the bound for good. Bytes already held are never dropped.
    pub(crate) fn fix_limit(&mut self, limit: usize) {
        self.limit = limit;
        self.fixed = true;
    }

    /// How many bytes a write would take now.
    pub(crate) fn space(&self) -> usize {
        self.limit.saturating_sub(self.len())
    }

    /// How many bytes follow until a block is full, whether there is space for them or not.
    pub(crate) fn block_room(&self) -> usize {
        match self.bytes.room_at_end() {
            0 => BLOCK,
            room => room,
        }
    }

    /// Appends as much of `bytes` as there is space for and says how much that was.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> usize {
        let taken = bytes.len().min(self.space());
        if taken > 0 {
            // From now on they are bytes like all others.
            push_zeros(&mut self.bytes, core::mem::take(&mut self.zeros));
        }
        self.bytes.push(&bytes[..taken]);
        taken
    }

    /// Lets `fill` append bytes where they are to lie, and returns how many it has appended. It is given a block of memory with what it holds already, and how
    /// many bytes there is space for; there is memory for them. No more than that count.
    pub(crate) fn write_by(
        &mut self,
        most: usize,
        fill: impl FnOnce(&mut Vec<u8>, usize),
    ) -> usize {
        let most = most.min(self.space());
        if most > 0 {
            push_zeros(&mut self.bytes, core::mem::take(&mut self.zeros));
        }
        self.bytes.push_by(most, fill)
    }

    /// Takes as much from the front of `bytes` as there is space for, keeps that memory until it is acknowledged, and says how much that was.
    pub(crate) fn write_owned(&mut self, bytes: &mut Bytes) -> usize {
        let taken = bytes.split_to(bytes.len().min(self.space()));
        if !taken.is_empty() {
            push_zeros(&mut self.bytes, core::mem::take(&mut self.zeros));
        }
        let length = taken.len();
        self.bytes.keep(taken);
        length
    }

    /// Appends as many of `count` zeros as there is space for and says how many that were.
    pub(crate) fn write_zeros(&mut self, count: usize) -> usize {
        let taken = count.min(self.space());
        if self.bytes.is_empty() {
            self.zeros += taken;
        } else {
            push_zeros(&mut self.bytes, taken);
        }
        taken
    }

    /// Forgets everything before `pos`.
    pub(crate) fn acknowledge(&mut self, pos: Pos) {
        let gone = (pos.since(self.start)).min(self.len() as u64) as usize;
        if self.zeros > 0 {
            self.zeros -= gone;
        } else {
            self.bytes.drop_front(gone);
        }
        self.start += gone as u64;
    }

    /// How many bytes from `pos` on lie in two slices: at least half of [`BLOCK`], also where less is held.
    pub(crate) fn reach(&self, pos: Pos) -> usize {
        let from = (pos.since(self.start) as usize).min(self.len());
        if self.zeros > 0 { BLOCK } else { self.bytes.reach(from) }
    }

    /// The bytes of `range` (clamped to what is held, and to the 64 KB that a packet can carry) as at most two slices.
    pub(crate) fn slices(&self, range: Range<Pos>) -> [&[u8]; 2] {
        let from = (range.start.since(self.start) as usize).min(self.len());
        let upto = (range.end.since(self.start) as usize).clamp(from, self.len());
        if self.zeros > 0 {
            return [&ZEROS[..(upto - from).min(BLOCK)], &[]];
        }
        self.bytes.slices(from, upto)
    }

    /// From now on [`SendBuffer::reach`] is a whole [`BLOCK`] everywhere, at the price of copies: for segments that are longer than half of one.
    pub(crate) fn make_even(&mut self) {
        self.bytes.make_even();
    }

    /// Gives the memory back when nothing is held.
    pub(crate) fn release_if_empty(&mut self) {
        if self.is_empty() {
            self.bytes.release();
        }
    }

    /// Exchanges the memory that is free for another's.
    pub(crate) fn swap_spare(&mut self, spare: &mut SpareBlocks) {
        self.bytes.swap_spare(spare);
    }

    /// Bytes of memory that are free here.
    pub(crate) fn spare_memory(&self) -> usize {
        self.bytes.spare_memory()
    }

    /// Bytes of memory in use.
    pub(crate) fn memory(&self) -> usize {
        self.bytes.memory()
    }
}

fn push_zeros(bytes: &mut Blocks<BLOCK>, mut count: usize) {
    while count > 0 {
        let now = count.min(BLOCK);
        bytes.push(&ZEROS[..now]);
        count -= now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
    fn zeros_take_no_memory() {
        let mut buffer = SendBuffer::new(Pos::FIRST_DATA, 1 << 30);
        assert_eq!(buffer.write_zeros(1 << 29), 1 << 29);
        assert_eq!(buffer.memory(), 0);
        let start = buffer.start() + 12_345;
        assert_eq!(buffer.slices(start..start + 1448), [&[0; 1448][..], &[]]);
        buffer.acknowledge(buffer.end());
        assert!(buffer.is_empty());
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
            steps in prop::collection::vec((1usize..50, 0u64..50, 0..3), 1..60),
            cut in (0u64..100, 0u64..100),
        ) {
            let mut buffer = SendBuffer::new(Pos::FIRST_DATA, 128);
            let mut written: Vec<u8> = Vec::new();
            for (len, acked, how) in steps {
                let byte = |i| if how == 0 { 0 } else { (written.len() + i) as u8 };
                let bytes: Vec<u8> = (0..len).map(byte).collect();
                let taken = match how {
                    0 => buffer.write_zeros(len),
                    1 => buffer.write(&bytes),
                    // More than it may.
                    _ => buffer.write_by(len.min(40), |end, _| end.extend_from_slice(&bytes)),
                };
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
