//! The byte stream in order, with holes in it.
//!
//! A hole takes its place in the queue between the data before and after it. The reader gets the bytes up to a hole, then nothing more
//! until it has noted the hole ([`Ordering::take_hole`]): bytes from both sides of a hole are never joined. A hole that was not noted
//! counts against the receive window like unread data.
//!
//! Memory stays bounded: next to the buffer's own bounds there are at most 1024 holes that the reader has not passed. With that
//! many RCV.NXT does not move over a further one until it has.

use super::in_order::InOrder;
use super::received::{MAX_HOLES, Received};
use super::{Accepted, Ordering, Taken};
use crate::packet::{PacketBuf, Payload};
use crate::pos::Pos;
use alloc::collections::VecDeque;
use core::ops::Range;

/// The receive buffer of a TCP that can do without some of the data.
#[derive(Debug)]
pub(crate) struct Holed {
    /// The bytes there are.
    stream: InOrder,
    /// The missing ranges between the next byte to read and RCV.NXT.
    holes: VecDeque<Range<Pos>>,
    /// The length of all of them.
    hole_bytes: u64,
}

impl Holed {
    /// An empty buffer expecting `next`.
    pub(crate) fn new(next: Pos) -> Self {
        Holed { stream: InOrder::new(next), holes: VecDeque::new(), hole_bytes: 0 }
    }

    /// Bytes before the first hole, at most `most`.
    fn clear_run(&self, most: usize) -> usize {
        match self.holes.front() {
            None => most,
            Some(hole) => {
                let run = hole.start.since(self.read_pos());
                usize::try_from(run).map_or(most, |run| most.min(run))
            }
        }
    }
}

impl Ordering for Holed {
    fn name(&self) -> &'static str {
        self.stream.name()
    }

    fn received(&self) -> &Received {
        self.stream.received()
    }

    fn accept(&mut self, at: Pos, payload: Payload<'_>, limit: usize) -> Accepted {
        // A reader that waits has not passed the hole yet.
        let payload = if self.holes.is_empty() { payload } else { payload.to_be_copied() };
        self.stream.accept(at, payload, limit)
    }

    fn consume_fin(&mut self) {
        self.stream.consume_fin();
    }

    fn skip(&mut self, upto: Pos) -> u64 {
        let Holed { stream, holes, hole_bytes } = self;
        let before = *hole_bytes;
        stream.skip_to(upto, |missing| {
            let len = missing.end.since(missing.start);
            let full = holes.len() >= MAX_HOLES;
            match holes.back_mut() {
                Some(last) if last.end == missing.start => last.end = missing.end,
                _ if full => return false,
                _ => holes.push_back(missing),
            }
            *hole_bytes += len;
            true
        });
        *hole_bytes - before
    }

    fn hole(&self) -> Option<Range<Pos>> {
        self.holes.front().filter(|hole| hole.start == self.read_pos()).cloned()
    }

    fn take_hole(&mut self) -> Option<Range<Pos>> {
        let hole = self.hole()?;
        self.holes.pop_front();
        self.hole_bytes -= hole.end.since(hole.start);
        Some(hole)
    }

    fn readable(&self) -> usize {
        self.clear_run(self.stream.readable())
    }

    fn buffered(&self) -> usize {
        self.stream.buffered()
    }

    fn read(&mut self, out: &mut [u8]) -> usize {
        let run = self.clear_run(out.len());
        self.stream.read(&mut out[..run])
    }

    fn peek(&self, out: &mut [u8]) -> usize {
        let run = self.clear_run(out.len());
        self.stream.peek(&mut out[..run])
    }

    fn discard(&mut self, bytes: usize) -> usize {
        let run = self.clear_run(bytes);
        self.stream.discard(run)
    }

    fn supply(&mut self, buffer: PacketBuf, start: usize) -> Option<PacketBuf> {
        self.stream.supply(buffer, start)
    }

    fn reclaim(&mut self) -> Option<PacketBuf> {
        self.stream.reclaim()
    }

    fn front(&self) -> &[u8] {
        let front = self.stream.front();
        &front[..self.clear_run(front.len())]
    }

    fn take_front(&mut self) -> Option<Taken> {
        let run = self.front().len();
        if run > 0 && run == self.stream.front().len() {
            return self.stream.take_front();
        }
        // The piece goes on behind a hole.
        let copy = Taken::copy_of(self.front())?;
        self.discard(copy.bytes().len());
        Some(copy)
    }

    fn read_pos(&self) -> Pos {
        self.stream.read_pos() - self.hole_bytes
    }

    fn release(&mut self) {
        self.stream.release();
        if self.holes.is_empty() {
            self.holes = VecDeque::new();
        }
    }

    fn memory(&self) -> usize {
        self.stream.memory() + self.holes.capacity() * size_of::<Range<Pos>>()
    }

    fn charge(&self) -> usize {
        self.stream.charge()
    }

    fn prune(&mut self) {
        self.stream.prune();
    }
}

#[cfg(test)]
#[path = "holed/tests.rs"]
mod tests;
