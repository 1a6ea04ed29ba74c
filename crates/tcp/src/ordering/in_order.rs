//! The in-order byte stream of RFC 9293.
//!
//! Well-filled packet buffers are kept as they are (no copy until the application reads); small payloads are
//! gathered into blocks of our own. Bytes that arrived first win over later ones that claim the same positions, so
//! a retransmission with other content cannot change what was already accepted. Memory is bounded twice: by what
//! is held (each early piece is charged at least `PIECE_CHARGE`; ready ones are gathered) and by the number of gaps.

use super::piece::Piece;
use super::received::Received;
use super::store::{PIECE_CHARGE, SMALL_PAYLOAD, Store};
use super::{Accepted, Ordering, Taken};
use crate::packet::{PacketBuf, Payload};
use crate::pos::Pos;
use alloc::collections::VecDeque;
use core::ops::Range;

/// The position of a piece whose buffer has not been supplied yet.
#[derive(Clone, Copy, Debug)]
enum Awaiting {
    Ready(usize),
    Early(Pos),
}

/// The receive buffer of an ordinary TCP.
#[derive(Debug)]
pub(crate) struct InOrder {
    received: Received,
    ready: VecDeque<Piece>,
    ready_bytes: usize,
    /// Pieces beyond RCV.NXT, by position, never overlapping.
    early: VecDeque<(Pos, Piece)>,
    early_bytes: usize,
    store: Store,
    /// The piece whose buffer the caller will supply, and where in the segment's payload it begins.
    awaiting: Option<(Awaiting, usize)>,
}

impl InOrder {
    /// An empty buffer expecting `next`.
    pub(crate) fn new(next: Pos) -> Self {
        InOrder {
            received: Received::new(next),
            ready: VecDeque::new(),
            ready_bytes: 0,
            early: VecDeque::new(),
            early_bytes: 0,
            store: Store::default(),
            awaiting: None,
        }
    }

    /// A piece that will be the buffer of `payload`, from `offset` of the segment's payload on, if that is on offer; its place is
    /// `spot`. One buffer serves one piece.
    fn awaited(&mut self, payload: &Payload<'_>, offset: usize, spot: Awaiting) -> Option<Piece> {
        if !payload.is_on_offer() || self.awaiting.is_some() {
            return None;
        }
        self.awaiting = Some((spot, offset));
        Some(Piece::Kept { buffer: PacketBuf::default(), range: 0..payload.len() })
    }

    /// Appends the next data. A little of it is copied to free room; otherwise its buffer is kept, or it gets its own place. Two
    /// neighbours then never fit into one block, so blocks are half full at least, even with small segments.
    fn append(&mut self, payload: &Payload<'_>, offset: usize) {
        self.ready_bytes += payload.len();
        self.received.advance(payload.len() as u64);
        if payload.len() < SMALL_PAYLOAD && self.gather(payload.bytes()) {
            return;
        }
        let spot = Awaiting::Ready(self.ready.len());
        let piece = match self.awaited(payload, offset, spot) {
            Some(piece) => piece,
            None if self.gather(payload.bytes()) => return,
            None => self.store.gathered(payload.bytes()),
        };
        self.ready.push_back(piece);
    }

    /// Copies `bytes` behind what is ready, if the last block has room for them.
    fn gather(&mut self, bytes: &[u8]) -> bool {
        self.ready.back_mut().is_some_and(|piece| piece.extend(bytes))
    }

    /// Takes the piece at the front away, after it has been read.
    fn pop_ready(&mut self) {
        if let Some(piece) = self.take_ready() {
            self.store.recycle(piece);
        }
    }

    fn take_ready(&mut self) -> Option<Piece> {
        let piece = self.ready.pop_front()?;
        if let Some((Awaiting::Ready(index), _)) = &mut self.awaiting {
            match index.checked_sub(1) {
                Some(before) => *index = before,
                None => self.awaiting = None,
            }
        }
        Some(piece)
    }

    /// Moves early pieces that have become in order.
    fn join(&mut self) {
        let next = self.received.join();
        while let Some((at, _)) = self.early.front()
            && *at < next
        {
            let Some((_, piece)) = self.early.pop_front() else { return };
            self.early_bytes -= piece.len();
            self.ready_bytes += piece.len();
            // Crumbs that came early are gathered, or get a block in which the next ones find room too.
            let small = piece.len() < SMALL_PAYLOAD;
            debug_assert_eq!(piece.bytes().len(), piece.len(), "its buffer has been supplied");
            if small && self.gather(piece.bytes()) {
                self.store.recycle(piece);
            } else if small && matches!(piece, Piece::Gathered { .. }) {
                let piece = self.store.gathered(piece.bytes());
                self.ready.push_back(piece);
            } else {
                self.ready.push_back(piece);
            }
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
            // Not the spare block: one early byte would pin all of it, and be charged for a fraction.
            None => Piece::sized(payload.bytes()),
        };
        self.early.insert(index, (at, piece));
    }

    /// RCV.NXT moves to `upto`, over what is missing before it, and on over what is held there. Says what was missing, in order, and
    /// asks for each whether to go on.
    pub(super) fn skip_to(&mut self, upto: Pos, mut give_up: impl FnMut(Range<Pos>) -> bool) {
        while let Some(gap) = self.received.missing(self.received.next..upto) {
            let len = gap.end.since(gap.start);
            if !give_up(gap) {
                return;
            }
            self.received.advance(len);
            self.join();
        }
    }

    fn charged(&self) -> usize {
        let early = self.early_bytes.max(self.early.len() * PIECE_CHARGE);
        self.ready_bytes + early
    }
}

impl Ordering for InOrder {
    fn name(&self) -> &'static str {
        "in-order"
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
        let at = at.max(next);
        let range = at..end;
        let had_gap = self.received.has_gap();
        if at == next && self.received.stands_alone(&range) {
            // The common case: the next data, overlapping nothing.
            accepted.new_bytes = payload.len() as u64;
            accepted.in_order = !had_gap && accepted.duplicate.is_none();
            if accepted.in_order && self.ready_bytes == 0 && payload.claim_in_place() {
                self.received.advance(accepted.new_bytes);
                return accepted;
            }
            self.append(&payload, fresh);
            if had_gap {
                self.join();
            }
            return accepted;
        }
        let full = at > next && self.charged() + payload.len() > limit.saturating_mul(2);
        if full || self.received.exceeds_gap_limit(&range) {
            accepted.refused = true;
            return accepted;
        }
        accepted.duplicate = accepted.duplicate.or_else(|| self.received.duplicate(&range));
        let mut from = at;
        while let Some((gap, part, offset)) = self.received.missing_part(from, at, &payload) {
            accepted.new_bytes += part.len() as u64;
            from = gap.end;
            if gap.start == self.received.next {
                self.append(&part, fresh + offset);
                self.join();
                from = from.max(self.received.next);
            } else {
                self.insert_early(gap.start, &part, fresh + offset);
                self.received.insert(gap);
            }
        }
        self.received.remember(at.max(self.received.next));
        accepted
    }

    fn consume_fin(&mut self) {
        self.received.end();
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
            Some(piece) => piece.supply(buffer, start + offset),
            None => Some(buffer),
        }
    }

    fn reclaim(&mut self) -> Option<PacketBuf> {
        self.store.reclaim()
    }

    fn front(&self) -> &[u8] {
        self.ready.front().map_or(&[], Piece::bytes)
    }

    fn take_front(&mut self) -> Option<Taken> {
        let piece = self.take_ready()?;
        self.ready_bytes -= piece.len();
        Some(Taken(piece))
    }

    fn read_pos(&self) -> Pos {
        self.received.data_end() - self.ready_bytes as u64
    }

    fn release(&mut self) {
        self.store.release();
        self.received.release();
        if self.ready.is_empty() {
            self.ready = VecDeque::new();
        }
        if self.early.is_empty() {
            self.early = VecDeque::new();
        }
    }

    fn memory(&self) -> usize {
        let pieces = self.ready.iter().chain(self.early.iter().map(|(_, piece)| piece));
        pieces.map(Piece::memory).sum::<usize>()
            + self.store.memory()
            + self.ready.capacity() * size_of::<Piece>()
            + self.early.capacity() * size_of::<(Pos, Piece)>()
            + self.received.memory()
    }

    fn charge(&self) -> usize {
        self.charged()
    }

    fn prune(&mut self) {
        // Memory is short: the buffers are freed, and not kept for others.
        self.early = VecDeque::new();
        self.early_bytes = 0;
        self.received.forget_early();
        if matches!(self.awaiting, Some((Awaiting::Early(_), _))) {
            self.awaiting = None;
        }
    }
}

#[cfg(test)]
#[path = "in_order/tests.rs"]
mod tests;
