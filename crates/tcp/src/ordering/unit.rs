//! The ordering unit of a connection, whichever it is.

use super::adu::Units;
use super::holed::Holed;
use super::in_order::InOrder;
use super::unordered::Unordered;
use super::{Accepted, Arrived, Delivery, Ordering, Taken, UnitFaults};
use crate::adu::AduConfig;
use crate::packet::{PacketBuf, Payload};
use crate::pos::Pos;
use crate::profile::OrderingChoice;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::Range;
use transom_wire::SackBlocks;

/// One of the ordering units.
#[derive(Debug)]
pub(crate) enum OrderingUnit {
    /// The byte stream of RFC 9293.
    InOrder(InOrder),
    /// The stream with holes.
    Holed(Box<Holed>),
    /// Its bytes as they arrive.
    Unordered(Unordered),
    /// Application data units.
    Units(Box<Units>),
}

/// Calls whichever unit it is.
macro_rules! each {
    ($self:expr, $unit:ident => $call:expr) => {
        match $self {
            OrderingUnit::InOrder($unit) => $call,
            OrderingUnit::Holed($unit) => $call,
            OrderingUnit::Unordered($unit) => $call,
            OrderingUnit::Units($unit) => $call,
        }
    };
}

impl OrderingUnit {
    /// The unit of this choice for data from `next` on, where there may be holes or not.
    pub(crate) fn new(choice: OrderingChoice, holes: bool, next: Pos) -> Self {
        let stream = || match holes {
            true => OrderingUnit::Holed(Box::new(Holed::new(next))),
            false => OrderingUnit::InOrder(InOrder::new(next)),
        };
        match choice {
            OrderingChoice::InOrder => stream(),
            OrderingChoice::Unordered => OrderingUnit::Unordered(Unordered::new(next)),
            OrderingChoice::Units(AduConfig { max, ordered }) => {
                let bytes = match ordered {
                    true => stream(),
                    false => OrderingUnit::Unordered(Unordered::new(next)),
                };
                OrderingUnit::Units(Box::new(Units::new(bytes, max)))
            }
        }
    }
}

impl Ordering for OrderingUnit {
    #[inline]
    fn name(&self) -> &'static str {
        each!(self, one => one.name())
    }

    #[inline]
    fn delivery(&self) -> Delivery {
        each!(self, one => one.delivery())
    }

    #[inline]
    fn next(&self) -> Pos {
        each!(self, one => one.next())
    }

    #[inline]
    fn accept(&mut self, at: Pos, payload: Payload<'_>, limit: usize) -> Accepted {
        each!(self, one => one.accept(at, payload, limit))
    }

    #[inline]
    fn take_in(&mut self, at: Pos, payload: Payload<'_>, limit: usize) -> Arrived {
        each!(self, one => one.take_in(at, payload, limit))
    }

    #[inline]
    fn consume_fin(&mut self) {
        each!(self, one => one.consume_fin())
    }

    #[inline]
    fn skip(&mut self, upto: Pos) -> u64 {
        each!(self, one => one.skip(upto))
    }

    #[inline]
    fn hole(&self) -> Option<Range<Pos>> {
        each!(self, one => one.hole())
    }

    #[inline]
    fn take_hole(&mut self) -> Option<Range<Pos>> {
        each!(self, one => one.take_hole())
    }

    #[inline]
    fn readable(&self) -> usize {
        each!(self, one => one.readable())
    }

    #[inline]
    fn buffered(&self) -> usize {
        each!(self, one => one.buffered())
    }

    #[inline]
    fn read(&mut self, out: &mut [u8]) -> usize {
        each!(self, one => one.read(out))
    }

    #[inline]
    fn peek(&self, out: &mut [u8]) -> usize {
        each!(self, one => one.peek(out))
    }

    #[inline]
    fn discard(&mut self, bytes: usize) -> usize {
        each!(self, one => one.discard(bytes))
    }

    #[inline]
    fn supply(&mut self, buffer: PacketBuf, start: usize) -> Option<PacketBuf> {
        each!(self, one => one.supply(buffer, start))
    }

    #[inline]
    fn reclaim(&mut self) -> Option<PacketBuf> {
        each!(self, one => one.reclaim())
    }

    #[inline]
    fn reclaim_all(&mut self, spent: &mut Vec<PacketBuf>, most: usize) {
        each!(self, one => one.reclaim_all(spent, most))
    }

    #[inline]
    fn front(&self) -> &[u8] {
        each!(self, one => one.front())
    }

    #[inline]
    fn take_front(&mut self) -> Option<Taken> {
        each!(self, one => one.take_front())
    }

    #[inline]
    fn front_pos(&self) -> Pos {
        each!(self, one => one.front_pos())
    }

    #[inline]
    fn read_pos(&self) -> Pos {
        each!(self, one => one.read_pos())
    }

    #[inline]
    fn window_base(&self) -> Pos {
        each!(self, one => one.window_base())
    }

    #[inline]
    fn take_unit(&mut self, unit: &mut Vec<u8>) -> Option<Range<Pos>> {
        each!(self, one => one.take_unit(unit))
    }

    #[inline]
    fn unit_faults(&self) -> UnitFaults {
        each!(self, one => one.unit_faults())
    }

    #[inline]
    fn sack_blocks(
        &self,
        blocks: &mut SackBlocks,
        room: usize,
        to_wire: &dyn Fn(Pos) -> transom_wire::Seq,
    ) {
        each!(self, one => one.sack_blocks(blocks, room, to_wire))
    }

    #[inline]
    fn has_gap(&self) -> bool {
        each!(self, one => one.has_gap())
    }

    #[inline]
    fn out_of_order(&self, visit: &mut dyn FnMut(Range<Pos>)) {
        each!(self, one => one.out_of_order(visit))
    }

    #[inline]
    fn release(&mut self) {
        each!(self, one => one.release())
    }

    #[inline]
    fn memory(&self) -> usize {
        each!(self, one => one.memory())
    }

    #[inline]
    fn charge(&self) -> usize {
        each!(self, one => one.charge())
    }

    #[inline]
    fn prune(&mut self) {
        each!(self, one => one.prune())
    }
}
