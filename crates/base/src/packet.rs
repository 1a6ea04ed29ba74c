//! Buffers of received packets, and their owners.
//!
//! A device reads a packet into a [`PacketBuf`] and passes it up with its ownership. When a segment fills a large part of its
//! buffer, the receive queue keeps the buffer instead of copying the payload. Then the application's `read` is the first and only
//! copy, and the buffer returns to the device afterwards. Small payloads are copied, so that a peer who sends one byte per packet
//! cannot pin 64 KB for each of them.
//!
//! A buffer always has exactly one owner. Nothing is counted, and the buffer used last is the one used next, while it is still in
//! the processor's cache.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::cell::Cell;
use core::ops::{Deref, Range};

/// A packet buffer, whatever part of it is used.
pub type PacketBuf = Box<[u8]>;

/// Buffers waiting to be used again. In steady state [`BufferPool::take`] allocates nothing.
#[derive(Debug)]
pub struct BufferPool {
    capacity: usize,
    keep: usize,
    idle: Vec<PacketBuf>,
}

impl BufferPool {
    /// A pool of buffers of `capacity` bytes each that keeps up to `keep` idle ones.
    pub fn new(capacity: usize, keep: usize) -> Self {
        BufferPool { capacity, keep, idle: Vec::new() }
    }

    /// A buffer: the one that came back last, or a new one.
    pub fn take(&mut self) -> PacketBuf {
        self.idle.pop().unwrap_or_else(|| vec![0; self.capacity].into())
    }

    /// Takes a buffer back, for later. One of another size, or too many, is freed.
    pub fn put(&mut self, buffer: PacketBuf) {
        if buffer.len() == self.capacity && self.idle.len() < self.keep {
            self.idle.push(buffer);
        }
    }
}

/// A received segment's payload, and the permitted uses of its memory.
#[derive(Clone, Copy, Debug)]
pub struct Payload<'a> {
    bytes: &'a [u8],
    place: Place<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Place<'a> {
    /// Borrowed memory: data to keep must be copied.
    Borrowed,
    /// A buffer that the receive queue can have.
    OnOffer,
    /// The waiting application's own memory.
    Reader(&'a Cell<usize>),
}

impl<'a> Payload<'a> {
    /// No payload.
    pub const EMPTY: Payload<'static> = Payload::borrowed(&[]);

    /// A payload that must be copied to be kept.
    pub const fn borrowed(bytes: &'a [u8]) -> Self {
        Payload { bytes, place: Place::Borrowed }
    }

    /// A payload that lies already in the memory of the application, which is waiting for the next data of exactly this
    /// connection. If it is that data, the receive queue takes nothing and says in `claimed` how many bytes the
    /// application may keep. Otherwise it copies what it needs.
    pub const fn in_place(bytes: &'a [u8], claimed: &'a Cell<usize>) -> Self {
        Payload { bytes, place: Place::Reader(claimed) }
    }

    /// A payload in a buffer of `capacity` bytes that is handed over if the receive queue asks for it. It is on offer only
    /// when keeping it wastes at most half of it.
    pub const fn on_offer(bytes: &'a [u8], capacity: usize) -> Self {
        let place = if bytes.len() * 2 >= capacity { Place::OnOffer } else { Place::Borrowed };
        Payload { bytes, place }
    }

    /// The payload's bytes.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The part of the payload at `range`, clamped to its length.
    pub fn slice(&self, range: Range<usize>) -> Payload<'a> {
        let end = range.end.min(self.bytes.len());
        let start = range.start.min(end);
        let place = match self.place {
            // A part that does not begin where the reader's memory begins is not where the reader expects it.
            Place::Reader(_) if start > 0 => Place::Borrowed,
            place => place,
        };
        Payload { bytes: &self.bytes[start..end], place }
    }

    /// The same payload, to be copied.
    pub const fn to_be_copied(self) -> Self {
        Payload { place: Place::Borrowed, ..self }
    }

    /// Whether the buffer is available instead of a copy.
    pub const fn is_on_offer(&self) -> bool {
        matches!(self.place, Place::OnOffer)
    }

    /// Leaves the payload where it is, if it lies in the application's memory; see [`Payload::in_place`].
    pub fn claim_in_place(&self) -> bool {
        match self.place {
            Place::Reader(claimed) => {
                claimed.set(self.bytes.len());
                true
            }
            _ => false,
        }
    }
}

impl Deref for Payload<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_gives_back_what_it_got_last() {
        let mut pool = BufferPool::new(100, 2);
        let [first, second, third] = [pool.take(), pool.take(), pool.take()];
        let address = second.as_ptr();
        pool.put(first);
        pool.put(second);
        pool.put(third); // too many
        pool.put(vec![0; 7].into()); // not one of its own
        let again = pool.take();
        assert_eq!(again.as_ptr(), address);
        assert_eq!(pool.take().len(), 100);
        assert_eq!(pool.idle.len(), 0);
    }

    #[test]
    fn only_well_filled_buffers_are_on_offer() {
        assert!(Payload::on_offer(&[0; 60], 100).is_on_offer());
        assert!(!Payload::on_offer(&[0; 10], 100).is_on_offer());
        assert!(!Payload::borrowed(&[0; 100]).is_on_offer());
    }

    #[test]
    fn a_slice_stays_in_the_readers_memory_only_if_it_begins_there() {
        let claimed = Cell::new(0);
        let payload = Payload::in_place(b"0123456789", &claimed);
        assert!(!payload.slice(1..9).claim_in_place());
        assert!(payload.slice(0..4).claim_in_place());
        assert_eq!(claimed.get(), 4);
        assert_eq!(payload.slice(7..99).bytes(), b"789");
    }
}
