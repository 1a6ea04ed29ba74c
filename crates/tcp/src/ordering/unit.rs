//! The ordering unit of a connection, whichever it is.

use super::adu::Units;
use super::holed::Holed;
use super::in_order::InOrder;
use super::received::Received;
use super::unordered::Unordered;
use super::{Accepted, Arrived, Delivery, Ordering, Taken, UnitFaults};
use crate::adu::AduConfig;
use crate::one_of::one_of;
use crate::packet::{PacketBuf, Payload};
use crate::pos::Pos;
use crate::profile::OrderingChoice;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::Range;

one_of! {
    /// One of the ordering units.
    #[derive(Debug)]
    pub(crate) enum OrderingUnit as Ordering {
        /// The byte stream of RFC 9293.
        InOrder(InOrder),
        /// The stream with holes.
        Holed(Box<Holed>),
        /// Its bytes as they arrive.
        Unordered(Unordered),
        /// Application data units.
        Units(Box<Units>),
    }

    fn name(&self) -> &'static str;
    fn delivery(&self) -> Delivery;
    fn received(&self) -> &Received;
    fn accept(&mut self, at: Pos, payload: Payload<'_>, limit: usize) -> Accepted;
    fn take_in(&mut self, at: Pos, payload: Payload<'_>, limit: usize) -> Arrived;
    fn consume_fin(&mut self);
    fn skip(&mut self, upto: Pos) -> u64;
    fn hole(&self) -> Option<Range<Pos>>;
    fn take_hole(&mut self) -> Option<Range<Pos>>;
    fn readable(&self) -> usize;
    fn buffered(&self) -> usize;
    fn read(&mut self, out: &mut [u8]) -> usize;
    fn peek(&self, out: &mut [u8]) -> usize;
    fn discard(&mut self, bytes: usize) -> usize;
    fn supply(&mut self, buffer: PacketBuf, start: usize) -> Option<PacketBuf>;
    fn reclaim(&mut self) -> Option<PacketBuf>;
    fn reclaim_all(&mut self, spent: &mut Vec<PacketBuf>, most: usize);
    fn front(&self) -> &[u8];
    fn take_front(&mut self) -> Option<Taken>;
    fn front_pos(&self) -> Pos;
    fn read_pos(&self) -> Pos;
    fn window_base(&self) -> Pos;
    fn take_unit(&mut self, unit: &mut Vec<u8>) -> Option<Range<Pos>>;
    fn unit_faults(&self) -> UnitFaults;
    fn release(&mut self);
    fn memory(&self) -> usize;
    fn charge(&self) -> usize;
    fn prune(&mut self);
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
