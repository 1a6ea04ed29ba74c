//! The in-order byte stream of RFC 9293.
//!
//! Well-filled packet buffers are kept as they are (no copy until the application reads); small payloads are
//! gathered into blocks of our own. Bytes that arrived first win over later ones that claim the same positions, so
//! a retransmission with other content cannot change what was already accepted. Memory is bounded twice: by what
//! is held (each early piece is charged at least `PIECE_CHARGE`; ready ones are gathered) and by the number of gaps.

mod piece;

use super::{Accepted, Ordering};
use crate::packet::{PacketBuf, Payload};
use crate::pos::Pos;
use crate::ranges::RangeSet;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::ops::Range;
use piece::Piece;
use transom_wire::{SackBlock, SackBlocks, Seq};

/// The least a piece is charged against the buffer, so that one-byte segments cannot buy memory cheaply.
const PIECE_CHARGE: usize = 512;
/// The most disjoint ranges held beyond RCV.NXT.
const MAX_GAPS: usize = 1024;
/// Small payloads are gathered into blocks of this size.
const BLOCK: usize = 4096;
/// A payload shorter than this is copied into a block that has room for it, even if its buffer could be kept.
const CRUMB: usize = BLOCK / 2;

/// Where a piece stands whose buffer has not been supplied yet.
#[derive(Clone, Copy, Debug)]
enum Awaiting {
    Ready(usize),
    Early(Pos),
}

/// Buffers that have been read are collected up to this number; more are freed.
const MAX_SPENT: usize = 64;

/// The receive buffer of an ordinary TCP.
#[derive(Debug)]
pub struct InOrder {
    next: Pos,
    ready: VecDeque<Piece>,
    ready_bytes: usize,
    /// Pieces beyond RCV.NXT, by position, never overlapping.
    early: VecDeque<(Pos, Piece)>,
    early_bytes: usize,
    early_ranges: RangeSet,
    /// Places in the most recently changed early ranges, newest first (RFC 2018 section 4).
    recent: [Option<Pos>; 4],
    /// One emptied block kept for the next small payload.
    spare: Vec<u8>,
    /// The piece whose buffer the caller will supply, and where in the segment's payload it begins.
    awaiting: Option<(Awaiting, usize)>,
    /// Buffers that have been read and may go back to where they came from.
    spent: Vec<PacketBuf>,
}

impl InOrder {
    /// An empty buffer expecting `next`.
    pub fn new(next: Pos) -> Self {
        InOrder {
            next,
            ready: VecDeque::new(),
            ready_bytes: 0,
            early: VecDeque::new(),
            early_bytes: 0,
            early_ranges: RangeSet::new(),
            recent: [None; 4],
            spare: Vec::new(),
            awaiting: None,
            spent: Vec::new(),
        }
    }

    /// A block for data in order, with room for more.
    fn block(&mut self, len: usize) -> Vec<u8> {
        if len <= self.spare.capacity() {
            core::mem::take(&mut self.spare)
        } else {
            Vec::with_capacity(len.max(BLOCK))
        }
    }

    fn recycle(&mut self, piece: Piece) {
        match piece {
            Piece::Gathered { mut block, .. } => {
                if block.capacity() > self.spare.capacity() && block.capacity() <= 16 * BLOCK {
                    block.clear();
                    self.spare = block;
                }
            }
            Piece::Kept { buffer, .. } => self.spend(buffer),
        }
    }

    fn spend(&mut self, buffer: PacketBuf) {
        if buffer.capacity() > 0 && self.spent.len() < MAX_SPENT {
            self.spent.push(buffer);
        }
    }

    /// A piece that will be the buffer of `payload`, the part of the segment's payload that begins at `offset`, if that is on
    /// offer; it will stand at `spot`. One buffer serves one piece.
    fn awaited(&mut self, payload: &Payload<'_>, offset: usize, spot: Awaiting) -> Option<Piece> {
        if !payload.is_on_offer() || self.awaiting.is_some() {
            return None;
        }
        self.awaiting = Some((spot, offset));
        Some(Piece::Kept { buffer: PacketBuf::default(), range: 0..payload.len() })
    }

    /// The next data: if it is little it goes where there is room already; otherwise its buffer is kept, or it gets a place of
    /// its own. As two neighbours then never fit into one block, blocks are half full at least, however small the segments.
    fn append(&mut self, payload: &Payload<'_>, offset: usize) {
        self.ready_bytes += payload.len();
        self.next += payload.len() as u64;
        if payload.len() < CRUMB && self.gather(payload.bytes()) {
            return;
        }
        let spot = Awaiting::Ready(self.ready.len());
        let piece = match self.awaited(payload, offset, spot) {
            Some(piece) => piece,
            None if self.gather(payload.bytes()) => return,
            None => self.gathered(payload.bytes()),
        };
        self.ready.push_back(piece);
    }

    /// Copies `bytes` behind what is ready, if the last block has room for them.
    fn gather(&mut self, bytes: &[u8]) -> bool {
        self.ready.back_mut().is_some_and(|piece| piece.extend(bytes))
    }

    /// A block that begins with `bytes`.
    fn gathered(&mut self, bytes: &[u8]) -> Piece {
        let mut block = self.block(bytes.len());
        block.extend_from_slice(bytes);
        Piece::Gathered { block, start: 0 }
    }

    /// Takes the piece at the front away, after it has been read.
    fn pop_ready(&mut self) {
        let Some(piece) = self.ready.pop_front() else { return };
        if let Some((Awaiting::Ready(index), _)) = &mut self.awaiting {
            match index.checked_sub(1) {
                Some(before) => *index = before,
                None => self.awaiting = None,
            }
        }
        self.recycle(piece);
    }

    /// Moves early pieces that have become in order.
    fn join(&mut self) {
        while let Some((at, _)) = self.early.front()
            && *at <= self.next
        {
            let Some((_, piece)) = self.early.pop_front() else { return };
            self.early_bytes -= piece.len();
            self.ready_bytes += piece.len();
            self.next += piece.len() as u64;
            // Crumbs that came early are gathered, or get a block in which the next ones find room too.
            let crumb = piece.len() < CRUMB;
            debug_assert_eq!(piece.bytes().len(), piece.len(), "its buffer has been supplied");
            if crumb && self.gather(piece.bytes()) {
                self.recycle(piece);
            } else if crumb && matches!(piece, Piece::Gathered { .. }) {
                let piece = self.gathered(piece.bytes());
                self.ready.push_back(piece);
            } else {
                self.ready.push_back(piece);
            }
        }
        self.early_ranges.remove_below(self.next);
        let next = self.next;
        for slot in &mut self.recent {
            *slot = slot.filter(|&pos| pos >= next);
        }
    }

    /// Keeps what cannot be delivered yet [SHLD-31].
    fn insert_early(&mut self, at: Pos, payload: &Payload<'_>, offset: usize) {
        let index = self.early.partition_point(|&(pos, _)| pos < at);
        self.early_bytes += payload.len();
        if let Some((pos, piece)) = index.checked_sub(1).and_then(|i| self.early.get_mut(i))
            && *pos + piece.len() as u64 == at
            && piece.extend(payload.bytes())
        {
            return;
        }
        let piece = match self.awaited(payload, offset, Awaiting::Early(at)) {
            Some(piece) => piece,
            None => {
                // Not the spare block: one early byte would pin all of it, and be charged for a fraction.
                let len = payload.len();
                let capacity = len.max(BLOCK.min(len.next_power_of_two().max(64)));
                let mut block = Vec::with_capacity(capacity);
                block.extend_from_slice(payload.bytes());
                Piece::Gathered { block, start: 0 }
            }
        };
        self.early.insert(index, (at, piece));
    }

    fn remember(&mut self, pos: Pos) {
        let Some(range) = self.early_ranges.containing(pos) else { return };
        let mut rest = self.recent;
        for slot in &mut rest {
            *slot = slot.filter(|&other| !range.contains(&other));
        }
        let mut kept = rest.into_iter().flatten();
        self.recent = [Some(pos), kept.next(), kept.next(), kept.next()];
    }

    fn charge(&self) -> usize {
        let early = self.early_bytes.max(self.early.len() * PIECE_CHARGE);
        self.ready_bytes + early
    }
}

impl Ordering for InOrder {
    fn name(&self) -> &'static str {
        "in-order"
    }

    fn next(&self) -> Pos {
        self.next
    }

    fn accept(&mut self, at: Pos, payload: Payload<'_>, limit: usize) -> Accepted {
        let end = at + payload.len() as u64;
        let mut accepted = Accepted::default();
        if payload.is_empty() {
            return accepted;
        }
        if end <= self.next {
            accepted.duplicate = Some((at, end));
            return accepted;
        }
        let fresh = self.next.since(at) as usize;
        if fresh > 0 {
            accepted.duplicate = Some((at, self.next));
        }
        let payload = payload.slice(fresh..payload.len());
        let at = at.max(self.next);
        let had_gap = self.has_gap();
        if at == self.next
            && (!had_gap || self.early_ranges.first().is_some_and(|r| r.start >= end))
        {
            // The common case: the next data, overlapping nothing.
            accepted.new_bytes = payload.len() as u64;
            accepted.in_order = !had_gap && accepted.duplicate.is_none();
            if accepted.in_order && self.ready_bytes == 0 && payload.claim_in_place() {
                self.next = end;
                return accepted;
            }
            self.append(&payload, fresh);
            if had_gap {
                self.join();
            }
            return accepted;
        }
        let range = at..end;
        let crumbs = at > self.next
            && self.early_ranges.would_add_a_range(&range)
            && self.early_ranges.len() >= MAX_GAPS;
        if crumbs || (at > self.next && self.charge() + payload.len() > limit.saturating_mul(2)) {
            accepted.refused = true;
            return accepted;
        }
        if accepted.duplicate.is_none() {
            accepted.duplicate = self
                .early_ranges
                .overlapping(&range)
                .map(|held| (at.max(held.start), end.min(held.end)));
        }
        // Only what is missing is taken, gap by gap, so that bytes already held stay as they are.
        let mut from = at;
        while from < end {
            let Some(gap) = self.early_ranges.gaps(from..end).next() else { break };
            let lo = gap.start.since(at) as usize;
            let hi = gap.end.since(at) as usize;
            let part = payload.slice(lo..hi);
            accepted.new_bytes += part.len() as u64;
            from = gap.end;
            // A part that is small against the whole is not worth the whole's buffer.
            let part = if part.len() * 2 < payload.len() { part.to_be_copied() } else { part };
            if gap.start == self.next {
                self.append(&part, fresh + lo);
                self.join();
                from = from.max(self.next);
            } else {
                self.insert_early(gap.start, &part, fresh + lo);
                self.early_ranges.insert(gap.clone());
            }
        }
        if at >= self.next {
            self.remember(at);
        } else if end > self.next {
            self.remember(self.next);
        }
        accepted
    }

    fn consume_fin(&mut self) {
        self.next += 1;
    }

    fn readable(&self) -> usize {
        self.ready_bytes
    }

    fn buffered(&self) -> usize {
        self.ready_bytes + self.early_bytes
    }

    fn read(&mut self, out: &mut [u8]) -> usize {
        let mut done = 0;
        while done < out.len()
            && let Some(piece) = self.ready.front_mut()
        {
            let bytes = piece.bytes();
            let n = bytes.len().min(out.len() - done);
            out[done..done + n].copy_from_slice(&bytes[..n]);
            done += n;
            piece.advance(n);
            if piece.len() == 0 {
                self.pop_ready();
            }
        }
        self.ready_bytes -= done;
        done
    }

    fn peek(&self, out: &mut [u8]) -> usize {
        let mut done = 0;
        for piece in &self.ready {
            let bytes = piece.bytes();
            let n = bytes.len().min(out.len() - done);
            out[done..done + n].copy_from_slice(&bytes[..n]);
            done += n;
            if done == out.len() {
                break;
            }
        }
        done
    }

    fn discard(&mut self, bytes: usize) -> usize {
        let mut left = bytes;
        while left > 0
            && let Some(piece) = self.ready.front_mut()
        {
            let n = piece.len().min(left);
            piece.advance(n);
            left -= n;
            if piece.len() == 0 {
                self.pop_ready();
            }
        }
        let done = bytes - left;
        self.ready_bytes -= done;
        done
    }

    fn supply(&mut self, buffer: PacketBuf, start: usize) -> Option<PacketBuf> {
        let Some((spot, offset)) = self.awaiting.take() else { return Some(buffer) };
        let piece = match spot {
            Awaiting::Ready(index) => self.ready.get_mut(index),
            Awaiting::Early(pos) => {
                let index = self.early.partition_point(|&(at, _)| at < pos);
                self.early.get_mut(index).filter(|(at, _)| *at == pos).map(|(_, piece)| piece)
            }
        };
        match piece {
            Some(Piece::Kept { buffer: place, range }) => {
                let from = start + offset;
                *range = from + range.start..from + range.end;
                *place = buffer;
                None
            }
            _ => Some(buffer),
        }
    }

    fn reclaim(&mut self) -> Option<PacketBuf> {
        self.spent.pop()
    }

    fn front(&self) -> &[u8] {
        self.ready.front().map_or(&[], Piece::bytes)
    }

    fn read_pos(&self) -> Pos {
        self.next - self.ready_bytes as u64
    }

    fn sack_blocks(&self, blocks: &mut SackBlocks, room: usize, to_wire: &dyn Fn(Pos) -> Seq) {
        let mut reported: [Option<Pos>; 4] = [None; 4];
        let older = self.early_ranges.iter().rev().map(|range| range.start);
        for pos in self.recent.into_iter().flatten().chain(older) {
            if blocks.len() >= room {
                return;
            }
            let Some(range) = self.early_ranges.containing(pos) else { continue };
            if reported.contains(&Some(range.start)) {
                continue;
            }
            if let Some(slot) = reported.iter_mut().find(|slot| slot.is_none()) {
                *slot = Some(range.start);
            }
            blocks.push(SackBlock { left: to_wire(range.start), right: to_wire(range.end) });
        }
    }

    fn has_gap(&self) -> bool {
        !self.early_ranges.is_empty()
    }

    fn out_of_order(&self, visit: &mut dyn FnMut(Range<Pos>)) {
        self.early_ranges.iter().for_each(visit);
    }

    fn release(&mut self) {
        self.spare = Vec::new();
        self.spent = Vec::new();
        if self.ready.is_empty() {
            self.ready = VecDeque::new();
        }
        if self.early.is_empty() {
            self.early = VecDeque::new();
            self.early_ranges.shrink();
        }
    }

    fn memory(&self) -> usize {
        let pieces = self.ready.iter().chain(self.early.iter().map(|(_, piece)| piece));
        pieces.map(Piece::memory).sum::<usize>()
            + self.spare.capacity()
            + self.spent.iter().map(PacketBuf::capacity).sum::<usize>()
            + self.ready.capacity() * size_of::<Piece>()
            + self.early.capacity() * size_of::<(Pos, Piece)>()
            + self.early_ranges.memory()
    }
}

#[cfg(test)]
#[path = "in_order/tests.rs"]
mod tests;
