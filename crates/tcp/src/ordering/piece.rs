//! A piece of received data: some of a packet's buffer, or of a block into which small payloads were copied.

use super::store::BLOCK;
use crate::packet::PacketBuf;
use alloc::vec::Vec;
use core::ops::Range;

/// Received data that the reader has taken out of the queue together with its memory.
///
/// The data counts as read from then on: the window opens, and the memory is the reader's.
#[derive(Debug)]
pub struct Taken(pub(super) Piece);

impl Taken {
    /// A copy, unless there are no bytes.
    pub(super) fn copy_of(bytes: &[u8]) -> Option<Taken> {
        (!bytes.is_empty()).then(|| Taken(Piece::sized(bytes)))
    }

    /// The bytes that are left.
    pub fn bytes(&self) -> &[u8] {
        self.0.bytes()
    }

    /// Removes this many bytes at the front, or all if there are fewer.
    pub fn advance(&mut self, bytes: usize) {
        self.0.advance(bytes);
    }

    /// The packet's buffer in which the data lay, for the device to use again, if it did.
    pub fn into_buffer(self) -> Option<PacketBuf> {
        match self.0 {
            Piece::Kept { buffer, .. } => Some(buffer),
            Piece::Gathered { .. } => None,
        }
    }
}

#[derive(Debug)]
pub(super) enum Piece {
    /// A packet's buffer. Until it is supplied, an empty one replaces it and the range starts at zero.
    Kept {
        buffer: PacketBuf,
        range: Range<usize>,
    },
    Gathered {
        block: Vec<u8>,
        start: usize,
    },
}

impl Piece {
    /// A copy of `bytes` with little room for more.
    pub(super) fn sized(bytes: &[u8]) -> Self {
        let len = bytes.len();
        let mut block = Vec::with_capacity(len.max(BLOCK.min(len.next_power_of_two().max(64))));
        block.extend_from_slice(bytes);
        Piece::Gathered { block, start: 0 }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Piece::Kept { buffer, range } => buffer.get(range.clone()).unwrap_or(&[]),
            Piece::Gathered { block, start } => block.get(*start..).unwrap_or(&[]),
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Piece::Kept { range, .. } => range.len(),
            Piece::Gathered { block, start } => block.len() - start,
        }
    }

    /// Supplies its buffer, in which the payload that it is a part of begins at `start`. Returns it if it is not needed.
    pub(super) fn supply(&mut self, supplied: PacketBuf, start: usize) -> Option<PacketBuf> {
        let Piece::Kept { buffer, range } = self else { return Some(supplied) };
        *range = start + range.start..start + range.end;
        *buffer = supplied;
        None
    }

    /// Removes this many bytes at its front, or all if there are fewer.
    pub(super) fn advance(&mut self, bytes: usize) {
        match self {
            Piece::Kept { range, .. } => range.start = (range.start + bytes).min(range.end),
            Piece::Gathered { block, start } => *start = (*start + bytes).min(block.len()),
        }
    }

    /// Copies `bytes` behind its own, if it is a block that has room for all of them.
    pub(super) fn extend(&mut self, bytes: &[u8]) -> bool {
        match self {
            Piece::Gathered { block, .. } if block.capacity() - block.len() >= bytes.len() => {
                block.extend_from_slice(bytes);
                true
            }
            _ => false,
        }
    }

    /// The memory that it occupies, in bytes.
    pub(super) fn memory(&self) -> usize {
        match self {
            Piece::Kept { buffer, .. } => buffer.len(),
            Piece::Gathered { block, .. } => block.capacity(),
        }
    }
}
