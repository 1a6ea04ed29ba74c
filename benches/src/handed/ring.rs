//! A queue of packets in memory that two processes share: one writes, the other reads.
//!
//! Positions count bytes for ever. A record is its length in eight bytes, and the packet, filled up to a multiple of eight. It lies in one piece: if
//! it does not fit before the end of the memory, it goes to the beginning.
#![allow(unsafe_code)]

use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use rustix::fs::MemfdFlags;
use rustix::mm::{MapFlags, ProtFlags};
use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

/// Bytes for records: twice the largest window of the profiles that are measured.
const ROOM: usize = 16 << 20;
/// Bytes before them.
const HEAD: usize = 4096;
/// In place of a length: the next record is at the beginning.
const WRAP: u64 = u64::MAX;
/// Bytes of a length.
const LENGTH: usize = 8;

/// What both look at; each field has a cache line.
#[repr(C, align(4096))]
struct Shared {
    written: Line<AtomicU64>,
    read: Line<AtomicU64>,
    /// Whether the reader waits for its bell.
    asleep: Line<AtomicU32>,
}

#[repr(C, align(128))]
struct Line<T>(T);

const _: () = assert!(size_of::<Shared>() == HEAD);

/// One end of the queue, or both while there is but one process.
#[derive(Debug)]
pub struct Ring {
    memory: NonNull<u8>,
    descriptor: OwnedFd,
    /// Rung when something has been written and the reader sleeps.
    bell: OwnedFd,
    /// The place of the record that is being written, and its room.
    reserved: Option<(usize, usize)>,
}

// SAFETY: the memory is shared with another process anyway; all that both change is atomic, and a record belongs to one end at a time.
unsafe impl Send for Ring {}

impl Ring {
    /// An empty one. Its descriptors are inherited by programs that are started.
    ///
    /// # Errors
    /// The system's.
    pub fn new() -> io::Result<Self> {
        let descriptor = rustix::fs::memfd_create("packets", MemfdFlags::empty())?;
        rustix::fs::ftruncate(&descriptor, (HEAD + ROOM) as u64)?;
        Self::map(descriptor, eventfd(0, EventfdFlags::NONBLOCK)?)
    }

    /// The other end of one whose descriptors were inherited.
    ///
    /// # Errors
    /// The system's.
    pub fn inherit([memory, bell]: [RawFd; 2]) -> io::Result<Self> {
        // SAFETY: the parent passed these descriptors to this process, which uses them here only.
        let [memory, bell] = [memory, bell].map(|number| unsafe { OwnedFd::from_raw_fd(number) });
        Self::map(memory, bell)
    }

    fn map(descriptor: OwnedFd, bell: OwnedFd) -> io::Result<Self> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // All of it at once: what comes first is not to pay for the pages.
        let flags = MapFlags::SHARED | MapFlags::POPULATE;
        let length = HEAD + ROOM;
        // SAFETY: a new mapping, which nothing else in this process refers to.
        let memory = unsafe {
            rustix::mm::mmap(std::ptr::null_mut(), length, protection, flags, &descriptor, 0)?
        };
        let memory = NonNull::new(memory.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Ring { memory, descriptor, bell, reserved: None })
    }

    /// The numbers of its descriptors, for [`Ring::inherit`].
    pub fn descriptors(&self) -> [RawFd; 2] {
        [self.descriptor.as_raw_fd(), self.bell.as_raw_fd()]
    }

    fn shared(&self) -> &Shared {
        // SAFETY: the mapping begins with it, is aligned to pages, and is all zeros at first, which atomic numbers may be.
        unsafe { self.memory.cast().as_ref() }
    }

    /// The bytes at a position of the room.
    fn bytes(&self, at: usize, length: usize) -> *mut u8 {
        assert!(at + length <= ROOM, "a record beyond the end");
        // SAFETY: it lies within the mapping, as just looked at.
        unsafe { self.memory.as_ptr().add(HEAD + at) }
    }

    fn length_at(&self, at: usize) -> u64 {
        // SAFETY: `at` is a multiple of eight, and eight bytes of the room begin there. The other end has published them.
        unsafe { self.bytes(at, LENGTH).cast::<u64>().read() }
    }

    fn set_length(&self, at: usize, length: u64) {
        // SAFETY: as in length_at(); the reader has been over this place.
        unsafe { self.bytes(at, LENGTH).cast::<u64>().write(length) }
    }

    /// Room for a packet of so many bytes. `None`: there is no place.
    pub fn reserve(&mut self, length: usize) -> Option<&mut [u8]> {
        let needed = LENGTH + length.next_multiple_of(LENGTH);
        let shared = self.shared();
        let written = shared.written.0.load(Ordering::Relaxed);
        let free = ROOM as u64 - (written - shared.read.0.load(Ordering::Acquire));
        let at = (written % ROOM as u64) as usize;
        // What cannot be used at the end.
        let waste = if ROOM - at < needed { ROOM - at } else { 0 };
        if free < (waste + needed) as u64 {
            return None;
        }
        let mut at = at;
        if waste > 0 {
            self.set_length(at, WRAP);
            shared.written.0.store(written + waste as u64, Ordering::Release);
            at = 0;
        }
        self.reserved = Some((at, length));
        let place = self.bytes(at + LENGTH, length);
        // SAFETY: the bytes are in the room, the reader does not look at them before they are published, and `self` is borrowed.
        Some(unsafe { std::slice::from_raw_parts_mut(place, length) })
    }

    /// Publishes the packet in the room reserved last, and wakes the reader if it sleeps.
    pub fn commit(&mut self) {
        let Some((at, length)) = self.reserved.take() else { return };
        self.set_length(at, length as u64);
        let shared = self.shared();
        let written = shared.written.0.load(Ordering::Relaxed);
        let needed = LENGTH + length.next_multiple_of(LENGTH);
        shared.written.0.store(written + needed as u64, Ordering::Release);
        // Either we see that the reader sleeps, or it sees what was written.
        fence(Ordering::SeqCst);
        if shared.asleep.0.load(Ordering::Relaxed) != 0
            && shared.asleep.0.swap(0, Ordering::SeqCst) != 0
        {
            self.ring();
        }
    }

    fn ring(&self) {
        // A bell that is rung already stays so.
        let _ = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
    }

    /// The next packet.
    pub fn front(&self) -> Option<&[u8]> {
        let shared = self.shared();
        loop {
            let read = shared.read.0.load(Ordering::Relaxed);
            if read == shared.written.0.load(Ordering::Acquire) {
                return None;
            }
            let at = (read % ROOM as u64) as usize;
            match self.length_at(at) {
                WRAP => shared.read.0.store(read + (ROOM - at) as u64, Ordering::Release),
                length => {
                    let length = length as usize;
                    let place = self.bytes(at + LENGTH, length);
                    // SAFETY: a published record, which the writer leaves alone until pop().
                    return Some(unsafe { std::slice::from_raw_parts(place, length) });
                }
            }
        }
    }

    /// Gives the next packet's place back.
    pub fn pop(&mut self) {
        let Some(packet) = self.front() else { return };
        let needed = LENGTH + packet.len().next_multiple_of(LENGTH);
        let read = &self.shared().read.0;
        read.store(read.load(Ordering::Relaxed) + needed as u64, Ordering::Release);
    }

    /// Whether the reader has taken everything.
    pub fn is_empty(&self) -> bool {
        let shared = self.shared();
        shared.read.0.load(Ordering::Acquire) == shared.written.0.load(Ordering::Relaxed)
    }

    /// Has the writer ring the bell from now on. Whether there is nothing to read: only then is it time to sleep.
    pub fn prepare_to_sleep(&self) -> bool {
        // Earlier rings have been heard.
        let _ = rustix::io::read(&self.bell, &mut [0; 8]);
        self.shared().asleep.0.store(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        if self.front().is_none() {
            return true;
        }
        // The bell stays audible while there is something to read.
        if self.shared().asleep.0.swap(0, Ordering::SeqCst) != 0 {
            self.ring();
        }
        false
    }
}

impl AsFd for Ring {
    /// The bell: readable when there is something to read after [`Ring::prepare_to_sleep`].
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: nobody has a reference into the mapping any more: all of them borrow `self`.
        let _ = unsafe { rustix::mm::munmap(self.memory.as_ptr().cast(), HEAD + ROOM) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(ring: &mut Ring, packet: &[u8]) -> bool {
        let Some(place) = ring.reserve(packet.len()) else { return false };
        place.copy_from_slice(packet);
        ring.commit();
        true
    }

    #[test]
    fn packets_come_out_as_they_went_in_also_around_the_end() {
        let mut ring = Ring::new().unwrap();
        let packet = |number: usize| vec![number as u8; 1 + number * 7919 % 65_000];
        let (mut written, mut read) = (0, 0);
        // Many times around.
        while read < 5000 {
            while write(&mut ring, &packet(written)) {
                written += 1;
            }
            for _ in 0..written - read {
                assert_eq!(ring.front().unwrap(), packet(read));
                ring.pop();
                read += 1;
            }
            assert!(ring.is_empty() && ring.front().is_none());
        }
    }

    #[test]
    fn the_bell_is_rung_for_who_sleeps() {
        let mut ring = Ring::new().unwrap();
        let is_audible = |ring: &Ring| {
            use rustix::event::{PollFd, PollFlags, Timespec, poll};
            let mut fds = [PollFd::new(ring, PollFlags::IN)];
            poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).unwrap() == 1
        };
        write(&mut ring, b"nobody sleeps");
        assert!(!is_audible(&ring));
        assert!(!ring.prepare_to_sleep());
        assert!(is_audible(&ring));
        ring.pop();
        assert!(ring.prepare_to_sleep() && !is_audible(&ring));
        write(&mut ring, b"wake up");
        assert!(is_audible(&ring));
    }
}
