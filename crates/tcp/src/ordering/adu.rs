//! Application data units instead of bytes: in the order in which they were sent, or each as soon as all of it has arrived.
//!
//! The bytes come through another ordering unit, in order or not, and go straight to the assembler. Its
//! contents count against the receive buffer until the application has taken the unit. Bytes between units, and malformed ones, are
//! freed at once.

use super::received::{MAX_HOLES, Received};
use super::{Accepted, Delivery, Ordering, OrderingUnit, UnitFaults};
use crate::adu::Assembler;
use crate::packet::{PacketBuf, Payload};
use crate::pos::Pos;
use crate::ranges::RangeSet;
use alloc::vec::Vec;
use core::ops::Range;

/// A receive buffer that gives units.
#[derive(Debug)]
pub(crate) struct Units {
    bytes: OrderingUnit,
    assembler: Assembler,
    /// Data that was given up and that the reader has not noted.
    holes: RangeSet,
}

impl Units {
    /// Units of at most `max` bytes out of `bytes`, which is new and empty.
    pub(crate) fn new(bytes: OrderingUnit, max: usize) -> Self {
        let assembler = Assembler::new(bytes.next(), max);
        Units { bytes, assembler, holes: RangeSet::default() }
    }

    /// Hands over what has come out of the bytes.
    fn drain(&mut self) {
        loop {
            let front = self.bytes.front();
            let len = front.len();
            if len > 0 {
                self.assembler.accept(self.bytes.front_pos(), front);
                self.bytes.discard(len);
            } else if let Some(hole) = self.bytes.take_hole() {
                self.assembler.give_up(hole.clone());
                self.holes.insert(hole);
            } else {
                return;
            }
        }
    }
}

impl Ordering for Units {
    fn name(&self) -> &'static str {
        match self.bytes.delivery() {
            Delivery::Stream => "adu",
            Delivery::Pieces | Delivery::Units => "adu-unordered",
        }
    }

    fn delivery(&self) -> Delivery {
        Delivery::Units
    }

    fn received(&self) -> &Received {
        self.bytes.received()
    }

    fn accept(&mut self, at: Pos, payload: Payload<'_>, limit: usize) -> Accepted {
        let charge = self.assembler.charge() + payload.len();
        if at > self.next() && charge > limit.saturating_mul(2) {
            return Accepted { refused: true, ..Accepted::default() };
        }
        // It does not stay in its buffer long enough for that to be worth keeping.
        let accepted = self.bytes.accept(at, payload.to_be_copied(), limit);
        self.drain();
        accepted
    }

    fn consume_fin(&mut self) {
        self.bytes.consume_fin();
        self.assembler.finish();
    }

    fn skip(&mut self, upto: Pos) -> u64 {
        // The data between the holes may have held no unit, and may be free already.
        if self.holes.len() >= MAX_HOLES {
            return 0;
        }
        let skipped = self.bytes.skip(upto);
        self.drain();
        skipped
    }

    fn hole(&self) -> Option<Range<Pos>> {
        let hole = self.holes.first()?;
        let first = match self.bytes.delivery() {
            Delivery::Stream => self.assembler.next_start().is_none_or(|unit| unit >= hole.start),
            Delivery::Pieces | Delivery::Units => true,
        };
        first.then_some(hole)
    }

    fn take_hole(&mut self) -> Option<Range<Pos>> {
        let hole = self.hole()?;
        self.holes.remove_below(hole.end);
        Some(hole)
    }

    fn readable(&self) -> usize {
        self.assembler.readable()
    }

    fn buffered(&self) -> usize {
        self.bytes.buffered() + self.assembler.held()
    }

    /// None: the bytes are not the application's, the units are.
    fn read(&mut self, _out: &mut [u8]) -> usize {
        0
    }

    fn peek(&self, _out: &mut [u8]) -> usize {
        0
    }

    /// Whole units, so that it may be more.
    fn discard(&mut self, bytes: usize) -> usize {
        self.assembler.discard(bytes)
    }

    fn supply(&mut self, buffer: PacketBuf, _start: usize) -> Option<PacketBuf> {
        Some(buffer)
    }

    fn reclaim(&mut self) -> Option<PacketBuf> {
        None
    }

    fn front(&self) -> &[u8] {
        &[]
    }

    fn read_pos(&self) -> Pos {
        self.assembler
            .front()
            .map_or(self.bytes.read_pos(), |front| front.min(self.bytes.read_pos()))
    }

    fn window_base(&self) -> Pos {
        self.bytes.window_base() - self.assembler.held() as u64
    }

    fn take_unit(&mut self, unit: &mut Vec<u8>) -> Option<Range<Pos>> {
        self.assembler.take(unit)
    }

    fn unit_faults(&self) -> UnitFaults {
        self.assembler.faults()
    }

    fn release(&mut self) {
        self.bytes.release();
        self.assembler.release();
        if self.holes.is_empty() {
            self.holes.shrink();
        }
    }

    fn memory(&self) -> usize {
        self.bytes.memory() + self.assembler.memory() + self.holes.memory()
    }
}

#[cfg(test)]
#[path = "adu/tests.rs"]
mod tests;
