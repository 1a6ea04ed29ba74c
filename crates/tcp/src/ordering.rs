//! Ordering: in what order arriving data reaches the application.

mod adu;
mod holed;
mod in_order;
mod piece;
mod received;
mod store;
mod unit;
mod unordered;

pub use piece::Taken;

use crate::packet::{PacketBuf, Payload};
use crate::pos::Pos;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;
use received::Received;
pub(crate) use unit::OrderingUnit;

/// How an arriving payload was accepted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Accepted {
    /// Bytes that were new.
    pub(crate) new_bytes: u64,
    /// It was the next data expected and no gap was or remains open.
    pub(crate) in_order: bool,
    /// Some or all of it had arrived before: where (for DSACK, RFC 2883).
    pub(crate) duplicate: Option<(Pos, Pos)>,
    /// It was refused for lack of buffer space or because it would fragment the buffer beyond its bound; the
    /// sender keeps it.
    pub(crate) refused: bool,
}

/// How a payload was accepted, and the state of the receive buffer after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrived {
    /// How the payload was accepted.
    pub(crate) accepted: Accepted,
    /// Data beyond a gap was held before, or is now.
    pub(crate) gap: bool,
    /// There is more to be read than before.
    pub(crate) readable: bool,
}

/// Parts of the stream in the place of application data units that were not units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct UnitFaults {
    /// Data that no encoder produces.
    pub malformed: u64,
    /// Larger than agreed.
    pub oversized: u64,
    /// Cut off by the end of the stream.
    pub truncated: u64,
    /// Part of which was given up on the way ([`Ordering::skip`]).
    pub incomplete: u64,
}

impl UnitFaults {
    /// All of them.
    pub fn total(&self) -> u64 {
        let UnitFaults { malformed, oversized, truncated, incomplete } = *self;
        malformed + oversized + truncated + incomplete
    }
}

/// The form in which the application gets data, and the call for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Delivery {
    /// Bytes in order.
    Stream,
    /// Bytes with their places, in any order.
    Pieces,
    /// Application data units.
    Units,
}

/// An ordering unit: the receive buffer.
pub(crate) trait Ordering: fmt::Debug + Send {
    /// The name by which profiles and reports call it.
    fn name(&self) -> &'static str;

    /// The form in which the application gets data.
    fn delivery(&self) -> Delivery {
        Delivery::Stream
    }

    /// The arrived data.
    fn received(&self) -> &Received;

    /// RCV.NXT: everything before it has arrived.
    fn next(&self) -> Pos {
        self.received().next
    }

    /// Takes in `payload` standing at `at`, already trimmed to the window. `limit` is the receive buffer's size.
    fn accept(&mut self, at: Pos, payload: Payload<'_>, limit: usize) -> Accepted;

    /// [`Ordering::accept`], with the questions before and after it. The connection makes this one call for every segment. The calls in it are the
    /// unit's own, so that the compiler can inline them.
    fn take_in(&mut self, at: Pos, payload: Payload<'_>, limit: usize) -> Arrived {
        let (had_gap, before) = (self.has_gap(), self.readable());
        let accepted = self.accept(at, payload, limit);
        Arrived {
            accepted,
            // In order means that there neither was nor is one.
            gap: had_gap || (!accepted.in_order && self.has_gap()),
            readable: self.readable() > before,
        }
    }

    /// One unit of sequence space without data (the FIN) was consumed at [`Ordering::next`].
    fn consume_fin(&mut self);

    /// Gives up the missing data below `upto`: nobody will send it (again). RCV.NXT moves to `upto`, and further over data that is held. The reader
    /// gets the missing parts as holes ([`Ordering::hole`]). Returns the bytes given up; an ordering without holes returns zero and moves nothing.
    /// The caller ensures that `upto` is within the window and not beyond the FIN.
    fn skip(&mut self, upto: Pos) -> u64 {
        let _ = upto;
        0
    }

    /// The hole that the reader must note before it gets more data, if there is one: nothing of it was or will be delivered. A stream in order has
    /// it here when everything before it has been read; an unordered one at once.
    fn hole(&self) -> Option<Range<Pos>> {
        None
    }

    /// The reader has noted [`Ordering::hole`].
    fn take_hole(&mut self) -> Option<Range<Pos>> {
        None
    }

    /// Bytes the application could read now.
    fn readable(&self) -> usize;

    /// Bytes held in all, whether readable or not.
    fn buffered(&self) -> usize;

    /// Moves up to `out.len()` bytes that follow each other to the application: those from [`Ordering::front_pos`] on.
    fn read(&mut self, out: &mut [u8]) -> usize;

    /// Copies up to `out.len()` bytes without consuming them.
    fn peek(&self, out: &mut [u8]) -> usize;

    /// Forgets up to `bytes` readable bytes and returns how many those were. Units are forgotten whole.
    fn discard(&mut self, bytes: usize) -> usize;

    /// After [`Ordering::accept`] of a payload with a buffer on offer: supplies the buffer, in which the payload begins at `start`. Returns it if it
    /// is not needed.
    fn supply(&mut self, buffer: PacketBuf, start: usize) -> Option<PacketBuf>;

    /// A buffer that was supplied and has been read to its end.
    fn reclaim(&mut self) -> Option<PacketBuf>;

    /// Moves such buffers to `spent` until it holds `most` of them.
    fn reclaim_all(&mut self, spent: &mut Vec<PacketBuf>, most: usize) {
        while spent.len() < most
            && let Some(buffer) = self.reclaim()
        {
            spent.push(buffer);
        }
    }

    /// The next readable piece of memory, for reading without a copy.
    fn front(&self) -> &[u8];

    /// Takes [`Ordering::front`] out with its memory. Where that is not possible, with a copy.
    fn take_front(&mut self) -> Option<Taken> {
        let taken = Taken::copy_of(self.front())?;
        self.discard(taken.bytes().len());
        Some(taken)
    }

    /// The position of [`Ordering::front`].
    fn front_pos(&self) -> Pos {
        self.read_pos()
    }

    /// Everything before it has been read.
    fn read_pos(&self) -> Pos;

    /// The position at which the receive buffer begins: the window may reach from here as far as the buffer is large. It never moves left. For a
    /// stream it is the end of the data that was read; otherwise it is further, by the data read beyond it.
    fn window_base(&self) -> Pos {
        self.read_pos()
    }

    /// Moves the next application data unit to `unit`, whose contents it replaces, and says which part of the stream it took.
    fn take_unit(&mut self, unit: &mut Vec<u8>) -> Option<Range<Pos>> {
        let _ = unit;
        None
    }

    /// The pieces that were not application data units.
    fn unit_faults(&self) -> UnitFaults {
        UnitFaults::default()
    }

    /// Whether data beyond a gap is held.
    fn has_gap(&self) -> bool {
        self.received().has_gap()
    }

    /// Gives unused memory back.
    fn release(&mut self);

    /// Bytes of memory owned or pinned.
    fn memory(&self) -> usize;

    /// The charge to a host's memory: the held bytes, and more for small pieces. Unlike [`Ordering::memory`] it is cheap.
    fn charge(&self) -> usize {
        self.buffered()
    }

    /// Forgets what is held beyond a gap. An ordering that has given such data out, or is about to, keeps it.
    fn prune(&mut self) {}
}
