//! Buffers that received packets live in.
//!
//! A device reads a packet into a [`PacketBuf`] and hands it upwards. When a segment fills a good part of
//! its buffer, the receive queue keeps the buffer itself instead of copying the payload out of it; the
//! application's `read` is then the first and only copy. Small payloads are copied, so that a peer who
//! sends one byte per packet cannot pin 64 KB for each of them.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cell::Cell;
use core::ops::Range;

/// A reference-counted packet buffer: written while it has one owner, read-only once shared.
#[derive(Clone, Debug)]
pub struct PacketBuf(Arc<[u8]>);

impl PacketBuf {
    /// A zeroed buffer of `capacity` bytes.
    pub fn with_capacity(capacity: usize) -> Self {
        PacketBuf(core::iter::repeat_n(0, capacity).collect())
    }

    /// A buffer holding a copy of `bytes`.
    pub fn copy_of(bytes: &[u8]) -> Self {
        PacketBuf(Arc::from(bytes))
    }

    /// The buffer's size in bytes, whatever part of it is used.
    pub fn capacity(&self) -> usize {
        self.0.len()
    }

    /// All bytes of the buffer.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Write access, while nobody else holds the buffer.
    pub fn get_mut(&mut self) -> Option<&mut [u8]> {
        Arc::get_mut(&mut self.0)
    }
}

/// A set of buffers that are reused once the last reader lets go of them.
///
/// In steady state [`BufferPool::take`] allocates nothing. The pool never holds more than `keep` idle buffers.
#[derive(Debug)]
pub struct BufferPool {
    capacity: usize,
    keep: usize,
    buffers: Vec<PacketBuf>,
    next: usize,
}

impl BufferPool {
    /// A pool of buffers of `capacity` bytes each that keeps up to `keep` of them for reuse.
    pub fn new(capacity: usize, keep: usize) -> Self {
        BufferPool { capacity, keep, buffers: Vec::new(), next: 0 }
    }

    /// A buffer nobody else holds. Give it back with [`BufferPool::put`] after sharing clones of it.
    pub fn take(&mut self) -> PacketBuf {
        // The buffer that came back last is the one most likely still in the processor's cache, unless its reader
        // has not finished; a few attempts from there, and a few among the older ones, bound the work.
        const RECENT: usize = 24;
        const OLDER: usize = 4;
        let len = self.buffers.len();
        for index in (len.saturating_sub(RECENT)..len).rev() {
            if self.buffers[index].get_mut().is_some() {
                return self.buffers.swap_remove(index);
            }
        }
        for _ in 0..OLDER.min(len) {
            let index = self.next % len;
            if self.buffers[index].get_mut().is_some() {
                return self.buffers.swap_remove(index);
            }
            self.next = self.next.wrapping_add(1);
        }
        PacketBuf::with_capacity(self.capacity)
    }

    /// Returns a buffer (or the pool's share of it) for later reuse.
    pub fn put(&mut self, buffer: PacketBuf) {
        if buffer.capacity() == self.capacity && self.buffers.len() < self.keep {
            self.buffers.push(buffer);
        }
    }
}

/// A received segment's payload: bytes, and the buffer that owns them if it may be kept.
#[derive(Clone, Copy, Debug)]
pub struct Payload<'a> {
    bytes: &'a [u8],
    owner: Option<(&'a PacketBuf, usize)>,
    in_place: Option<&'a Cell<usize>>,
}

impl<'a> Payload<'a> {
    /// No payload.
    pub const EMPTY: Payload<'static> = Payload { bytes: &[], owner: None, in_place: None };

    /// A payload that must be copied if it is to be kept.
    pub const fn borrowed(bytes: &'a [u8]) -> Self {
        Payload { bytes, owner: None, in_place: None }
    }

    /// The payload at `range` of a shared buffer. A range outside the buffer gives an empty payload.
    pub fn shared(buffer: &'a PacketBuf, range: Range<usize>) -> Self {
        match buffer.bytes().get(range.clone()) {
            Some(bytes) => Payload { bytes, owner: Some((buffer, range.start)), in_place: None },
            None => Payload { bytes: &[], owner: None, in_place: None },
        }
    }

    /// The payload's bytes.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The payload's length in bytes.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether there is no payload.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The part of the payload at `range`, clamped to what there is.
    pub fn slice(&self, range: Range<usize>) -> Payload<'a> {
        let end = range.end.min(self.bytes.len());
        let start = range.start.min(end);
        Payload {
            bytes: &self.bytes[start..end],
            owner: self.owner.map(|(buffer, offset)| (buffer, offset + start)),
            // What does not begin where the reader's memory begins is not where the reader expects it.
            in_place: self.in_place.filter(|_| start == 0),
        }
    }

    /// A payload that lies already in the memory of the application, which is waiting for the next data of exactly this
    /// connection. If it is that data, the receive queue takes nothing and says in `claimed` how many bytes the
    /// application may keep; otherwise it copies what it needs.
    pub const fn in_place(bytes: &'a [u8], claimed: &'a Cell<usize>) -> Self {
        Payload { bytes, owner: None, in_place: Some(claimed) }
    }

    /// Leaves the payload where it is, if it lies in the application's memory; see [`Payload::in_place`].
    pub fn claim_in_place(&self) -> bool {
        match self.in_place {
            Some(claimed) => {
                claimed.set(self.bytes.len());
                true
            }
            None => false,
        }
    }

    /// The buffer to keep, with the payload's place in it, when keeping it wastes at most half of it.
    pub fn worth_keeping(&self) -> Option<(PacketBuf, Range<usize>)> {
        let (buffer, offset) = self.owner?;
        (self.bytes.len() * 2 >= buffer.capacity())
            .then(|| (buffer.clone(), offset..offset + self.bytes.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_reuses_what_nobody_holds() {
        let mut pool = BufferPool::new(100, 8);
        let first = pool.take();
        let address = first.bytes().as_ptr();
        let held = first.clone();
        pool.put(first);
        let second = pool.take();
        assert_ne!(second.bytes().as_ptr(), address, "a held buffer is not handed out again");
        drop(held);
        let third = pool.take();
        assert_eq!(third.bytes().as_ptr(), address);
    }

    #[test]
    fn only_well_filled_buffers_are_kept() {
        let buffer = PacketBuf::with_capacity(100);
        assert!(Payload::shared(&buffer, 40..100).worth_keeping().is_some());
        assert!(Payload::shared(&buffer, 90..100).worth_keeping().is_none());
        assert!(Payload::borrowed(&[1; 100]).worth_keeping().is_none());
        assert!(Payload::shared(&buffer, 90..101).is_empty());
    }

    #[test]
    fn slices_keep_track_of_their_place() {
        let buffer = PacketBuf::copy_of(b"0123456789");
        let payload = Payload::shared(&buffer, 2..10).slice(1..99);
        assert_eq!(payload.bytes(), b"3456789");
        let (kept, range) = payload.worth_keeping().unwrap();
        assert_eq!(&kept.bytes()[range], b"3456789");
    }
}
