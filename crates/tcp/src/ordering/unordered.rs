//! Data as it arrives, each piece with its place in the stream, beyond holes too.
//!
//! To the peer this is the in-order stream: the same code (`received.rs`) keeps RCV.NXT, SACK blocks and duplicates, so any TCP can send to it. The
//! difference is when the application gets the bytes, and so when their memory is free. A piece is kept only until it has been read. Of data that
//! was read beyond RCV.NXT only the range remains, so that nothing is delivered twice.
//!
//! The window. RCV.WND counts from RCV.NXT (RFC 9293 section 3.3.1), so it has to cover the bytes read beyond it as well as the free room. With `r`
//! such bytes, the right edge is RCV.NXT + free + r. So reading beyond a hole opens the window although RCV.NXT stays, and a lost segment stops
//! neither the reader nor the sender. Receiving does not move the edge, reading moves it right, and RCV.NXT passing over read data leaves it: it
//! never moves left (section 3.8.6). Two bounds limit how far it can run ahead of a hole: the largest window that the scale can express, and the
//! number of separate ranges.
//!
//! Memory is bounded as for the stream: by the bytes held, each piece charged at least `PIECE_CHARGE`, and by the number of ranges.
//! Since every piece that is held can be read, a refusal for lack of memory never outlasts the reader's absence.

use super::piece::Piece;
use super::received::{MAX_HOLES, Received};
use super::store::{PIECE_CHARGE, SMALL_PAYLOAD, Store};
use super::{Accepted, Delivery, Ordering};
use crate::packet::{PacketBuf, Payload};
use crate::pos::Pos;
use crate::ranges::RangeSet;
use alloc::collections::VecDeque;
use core::ops::Range;

/// A receive buffer without an order.
#[derive(Debug)]
pub(crate) struct Unordered {
    received: Received,
    /// Unread data in the order of arrival, each piece with its position.
    pieces: VecDeque<(Pos, Piece)>,
    bytes: usize,
    /// The position at which the receive buffer begins: it reaches from here to the end of the arrived data.
    base: Pos,
    /// Data that was given up and that the reader has not noted.
    holes: RangeSet,
    store: Store,
    /// The position of the piece whose buffer the caller will supply, and its offset in the segment's payload.
    awaiting: Option<(Pos, usize)>,
}

impl Unordered {
    /// An empty buffer expecting `next`.
    pub(crate) fn new(next: Pos) -> Self {
        Unordered {
            received: Received::new(next),
            pieces: VecDeque::new(),
            bytes: 0,
            base: next,
            holes: RangeSet::default(),
            store: Store::default(),
            awaiting: None,
        }
    }

    /// Keeps a new part of a segment at position `at`, from `offset` of the segment's payload.
    fn keep(&mut self, at: Pos, part: &Payload<'_>, offset: usize) {
        self.bytes += part.len();
        if part.len() < SMALL_PAYLOAD && self.gather(at, part.bytes()) {
            return;
        }
        let piece = if part.is_on_offer() && self.awaiting.is_none() {
            self.awaiting = Some((at, offset));
            Piece::Kept { buffer: PacketBuf::default(), range: 0..part.len() }
        } else if self.gather(at, part.bytes()) {
            return;
        } else if at == self.received.next {
            self.store.gathered(part.bytes())
        } else {
            // Not a block with room: one early byte would pin all of it, and be charged for a fraction.
            Piece::sized(part.bytes())
        };
        self.pieces.push_back((at, piece));
    }

    /// Copies `bytes` behind the last arrival, if they follow it in the stream too and there is room.
    fn gather(&mut self, at: Pos, bytes: &[u8]) -> bool {
        match self.pieces.back_mut() {
            Some((pos, piece)) if *pos + piece.len() as u64 == at => piece.extend(bytes),
            _ => false,
        }
    }

    /// Takes up to `most` bytes from the piece at the front, and says how many those were.
    fn take(&mut self, most: usize) -> usize {
        let Some((at, piece)) = self.pieces.front_mut() else { return 0 };
        let taken = piece.len().min(most);
        piece.advance(taken);
        *at += taken as u64;
        self.bytes -= taken;
        self.base += taken as u64;
        if piece.len() == 0
            && let Some((_, piece)) = self.pieces.pop_front()
        {
            self.store.recycle(piece);
        }
        taken
    }

    fn charge(&self) -> usize {
        self.bytes.max(self.pieces.len() * PIECE_CHARGE)
    }
}

impl Ordering for Unordered {
    fn name(&self) -> &'static str {
        "unordered"
    }

    fn delivery(&self) -> Delivery {
        Delivery::Pieces
    }

    fn received(&self) -> &Received {
        &self.received
    }

    fn accept(&mut self, at: Pos, payload: Payload<'_>, limit: usize) -> Accepted {
        let end = at + payload.len() as u64;
        let next = self.received.next;
        let mut accepted =
            Accepted { duplicate: self.received.behind(at, end), ..Accepted::default() };
        if end <= next || payload.is_empty() {
            return accepted;
        }
        let fresh = next.since(at) as usize;
        let payload = payload.slice(fresh..payload.len());
        let range = at.max(next)..end;
        let had_gap = self.received.has_gap();
        // Also of what comes next: it can wait, for whatever is held can be read meanwhile.
        let full = self.charge() + payload.len() > limit.saturating_mul(2);
        if full || self.received.exceeds_gap_limit(&range) {
            return Accepted { refused: true, ..Accepted::default() };
        }
        accepted.duplicate = accepted.duplicate.or_else(|| self.received.duplicate(&range));
        let (at, mut from) = (range.start, range.start);
        while let Some((gap, part, offset)) = self.received.missing_part(from, at, &payload) {
            accepted.new_bytes += part.len() as u64;
            from = gap.end;
            self.keep(gap.start, &part, fresh + offset);
            if gap.start == self.received.next {
                self.received.advance(part.len() as u64);
                from = from.max(self.received.join());
            } else {
                self.received.insert(gap);
            }
        }
        self.received.remember(range.start.max(self.received.next));
        accepted.in_order = !had_gap && range.start == next && accepted.duplicate.is_none();
        accepted
    }

    fn consume_fin(&mut self) {
        self.received.end();
    }

    fn skip(&mut self, upto: Pos) -> u64 {
        let mut skipped = 0;
        while self.received.next < upto && self.holes.len() < MAX_HOLES {
            let next = self.received.next;
            let Some(gap) = self.received.missing(next..upto) else { break };
            skipped += gap.end.since(gap.start);
            self.received.advance(gap.end.since(next));
            self.holes.insert(gap);
            self.received.join();
        }
        self.base += skipped;
        skipped
    }

    fn hole(&self) -> Option<Range<Pos>> {
        self.holes.first()
    }

    fn take_hole(&mut self) -> Option<Range<Pos>> {
        let hole = self.holes.first()?;
        self.holes.remove_below(hole.end);
        Some(hole)
    }

    fn readable(&self) -> usize {
        self.bytes
    }

    fn buffered(&self) -> usize {
        self.bytes
    }

    fn read(&mut self, out: &mut [u8]) -> usize {
        let start = self.front_pos();
        let mut done = 0;
        while done < out.len() && self.front_pos() == start + done as u64 {
            let front = self.front();
            let n = front.len().min(out.len() - done);
            if n == 0 {
                break;
            }
            out[done..done + n].copy_from_slice(&front[..n]);
            done += self.take(n);
        }
        done
    }

    fn peek(&self, out: &mut [u8]) -> usize {
        let n = self.front().len().min(out.len());
        out[..n].copy_from_slice(&self.front()[..n]);
        n
    }

    fn discard(&mut self, bytes: usize) -> usize {
        let mut left = bytes;
        while left > 0 && !self.pieces.is_empty() {
            left -= self.take(left);
        }
        bytes - left
    }

    fn supply(&mut self, buffer: PacketBuf, start: usize) -> Option<PacketBuf> {
        let Some((pos, offset)) = self.awaiting.take() else { return Some(buffer) };
        match self.pieces.iter_mut().rev().find(|(at, _)| *at == pos) {
            Some((_, piece)) => piece.supply(buffer, start + offset),
            None => Some(buffer),
        }
    }

    fn reclaim(&mut self) -> Option<PacketBuf> {
        self.store.reclaim()
    }

    fn front(&self) -> &[u8] {
        self.pieces.front().map_or(&[], |(_, piece)| piece.bytes())
    }

    fn front_pos(&self) -> Pos {
        self.pieces.front().map_or(self.received.next, |&(at, _)| at)
    }

    fn read_pos(&self) -> Pos {
        let unread = self.pieces.iter().map(|&(at, _)| at);
        unread.fold(self.received.data_end(), Pos::min)
    }

    fn window_base(&self) -> Pos {
        self.base
    }

    fn release(&mut self) {
        self.store.release();
        self.received.release();
        if self.holes.is_empty() {
            self.holes.shrink();
        }
        if self.pieces.is_empty() {
            self.pieces = VecDeque::new();
        }
    }

    fn memory(&self) -> usize {
        self.pieces.iter().map(|(_, piece)| piece.memory()).sum::<usize>()
            + self.pieces.capacity() * size_of::<(Pos, Piece)>()
            + self.store.memory()
            + self.received.memory()
            + self.holes.memory()
    }
}

#[cfg(test)]
#[path = "unordered/tests.rs"]
mod tests;
