//! An allocator that counts for whoever asks.
//!
//! Each thread counts its own allocations, and only while it wants to know. Otherwise an allocation costs one look at a
//! thread-local flag more than it would without. Bytes are those that were asked for, without the system allocator's
//! own overhead.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// Install it with `#[global_allocator]`.
#[derive(Clone, Copy, Debug)]
pub struct CountingAllocator;

/// What a thread has done while it was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Calls that allocated or changed an allocation's size.
    pub allocations: u64,
    /// Bytes allocated less bytes freed.
    pub live_bytes: i64,
}

thread_local! {
    // Constant initialisers and no destructors: using these does not allocate.
    static COUNTING: Cell<bool> = const { Cell::new(false) };
    static COUNTS: Cell<Counts> = const { Cell::new(Counts { allocations: 0, live_bytes: 0 }) };
}

/// Counts what `work` allocates on this thread.
pub fn count<T>(work: impl FnOnce() -> T) -> (T, Counts) {
    struct Restore(bool, Counts);
    impl Drop for Restore {
        fn drop(&mut self) {
            COUNTING.set(self.0);
            COUNTS.set(self.1);
        }
    }
    let restore = Restore(COUNTING.replace(true), COUNTS.take());
    let result = work();
    let counts = COUNTS.get();
    drop(restore);
    (result, counts)
}

/// Whether this program's allocator is the counting one.
pub fn is_installed() -> bool {
    count(|| std::hint::black_box(Box::new(0u64))).1.allocations == 1
}

fn note(allocations: u64, bytes: i64) {
    if COUNTING.get() {
        let counts = COUNTS.get();
        COUNTS.set(Counts {
            allocations: counts.allocations + allocations,
            live_bytes: counts.live_bytes + bytes,
        });
    }
}

// SAFETY: every call is passed on to the system's allocator as it is; counting neither allocates nor panics (the sums are
// of what fits into memory).
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(1, layout.size() as i64);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note(1, layout.size() as i64);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note(1, size as i64 - layout.size() as i64);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        note(0, -(layout.size() as i64));
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}
