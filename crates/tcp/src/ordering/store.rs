//! Memory for received data: blocks for small payloads, and the packet buffers that were kept, on their way back.

use super::piece::Piece;
use crate::packet::PacketBuf;
use alloc::vec::Vec;

/// Small payloads are gathered into blocks of this size.
pub(super) const BLOCK: usize = 4096;
/// A payload shorter than this is copied into a block that has room for it, even if its buffer could be kept.
pub(super) const SMALL_PAYLOAD: usize = BLOCK / 2;
/// The least a piece is charged against the buffer, so that one-byte segments cannot buy memory cheaply.
pub(super) const PIECE_CHARGE: usize = 512;
/// Buffers that have been read are collected up to this number; more are freed.
const MAX_SPENT: usize = 64;

/// Memory of pieces that have been read, for reuse.
#[derive(Debug, Default)]
pub(super) struct Store {
    /// One emptied block kept for the next small payload.
    spare: Vec<u8>,
    /// Buffers that have been read and may go back to where they came from.
    spent: Vec<PacketBuf>,
}

impl Store {
    /// A block that begins with `bytes`, with room for more.
    pub(super) fn gathered(&mut self, bytes: &[u8]) -> Piece {
        let mut block = if bytes.len() <= self.spare.capacity() {
            core::mem::take(&mut self.spare)
        } else {
            Vec::with_capacity(bytes.len().max(BLOCK))
        };
        block.extend_from_slice(bytes);
        Piece::Gathered { block, start: 0 }
    }

    /// A piece has been read.
    pub(super) fn recycle(&mut self, piece: Piece) {
        match piece {
            Piece::Gathered { mut block, .. } => {
                if block.capacity() > self.spare.capacity() && block.capacity() <= 16 * BLOCK {
                    block.clear();
                    self.spare = block;
                }
            }
            Piece::Kept { buffer, .. } => {
                if !buffer.is_empty() && self.spent.len() < MAX_SPENT {
                    self.spent.push(buffer);
                }
            }
        }
    }

    /// A kept buffer that has been read.
    pub(super) fn reclaim(&mut self) -> Option<PacketBuf> {
        self.spent.pop()
    }

    /// Gives the memory back.
    pub(super) fn release(&mut self) {
        *self = Store::default();
    }

    /// Bytes of memory owned.
    pub(super) fn memory(&self) -> usize {
        self.spare.capacity() + self.spent.iter().map(|buffer| buffer.len()).sum::<usize>()
    }
}
