//! Ordering: in what order arriving data reaches the application.

pub mod in_order;

use crate::packet::{PacketBuf, Payload};
use crate::pos::Pos;
use core::fmt;
use core::ops::Range;
use transom_wire::SackBlocks;

/// What became of an arriving segment's payload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Accepted {
    /// Bytes that were new.
    pub new_bytes: u64,
    /// It was the next data expected and no gap was or remains open.
    pub in_order: bool,
    /// Some or all of it had arrived before: where (for DSACK, RFC 2883).
    pub duplicate: Option<(Pos, Pos)>,
    /// It was refused for lack of buffer space or because it would fragment the buffer beyond its bound; the
    /// sender keeps it.
    pub refused: bool,
}

/// An ordering unit: the receive buffer.
pub trait Ordering: fmt::Debug + Send {
    /// The name by which profiles and reports call it.
    fn name(&self) -> &'static str;

    /// RCV.NXT: everything before it has arrived.
    fn next(&self) -> Pos;

    /// Takes in `payload` standing at `at`, already trimmed to the window. `limit` is the receive buffer's size.
    fn accept(&mut self, at: Pos, payload: Payload<'_>, limit: usize) -> Accepted;

    /// One unit of sequence space without data (the FIN) was consumed at [`Ordering::next`].
    fn consume_fin(&mut self);

    /// Bytes the application could read now.
    fn readable(&self) -> usize;

    /// Bytes held in all, whether readable or not.
    fn buffered(&self) -> usize;

    /// Moves up to `out.len()` bytes to the application.
    fn read(&mut self, out: &mut [u8]) -> usize;

    /// Copies up to `out.len()` bytes without consuming them.
    fn peek(&self, out: &mut [u8]) -> usize;

    /// Forgets up to `bytes` readable bytes and returns how many those were.
    fn discard(&mut self, bytes: usize) -> usize;

    /// After [`Ordering::accept`] of a payload whose buffer was on offer: here is the buffer, in which the payload begins at
    /// `start`. Returns it if it is not wanted.
    fn supply(&mut self, buffer: PacketBuf, start: usize) -> Option<PacketBuf>;

    /// A buffer that was supplied and has been read to its end.
    fn reclaim(&mut self) -> Option<PacketBuf>;

    /// The next readable piece of memory, for reading without a copy.
    fn front(&self) -> &[u8];

    /// Position of the next byte the application will read.
    fn read_pos(&self) -> Pos;

    /// What to report as SACK blocks (RFC 2018 section 4): most recent first, at most as many as fit.
    fn sack_blocks(
        &self,
        blocks: &mut SackBlocks,
        room: usize,
        to_wire: &dyn Fn(Pos) -> transom_wire::Seq,
    );

    /// Whether data beyond a gap is held.
    fn has_gap(&self) -> bool;

    /// Ranges held beyond a gap, for tests and information.
    fn out_of_order(&self, visit: &mut dyn FnMut(Range<Pos>));

    /// Gives unused memory back.
    fn release(&mut self);

    /// Bytes of memory owned or pinned.
    fn memory(&self) -> usize;
}
