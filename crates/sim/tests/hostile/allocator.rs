//! Counts what the current thread allocates, so that tests running beside each other do not disturb the count.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    static LIVE: Cell<i64> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: every call is passed on to the system's allocator as it is; counting touches thread-locals without a destructor
// and without lazy initialisation, which does not allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        LIVE.set(LIVE.get() + layout.size() as i64);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.set(LIVE.get() - layout.size() as i64);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What a piece of work allocated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Calls of the allocator.
    pub allocations: u64,
    /// Bytes more (or less) that are held now than before.
    pub held: i64,
}

/// Runs `work` and says what it allocated.
pub fn measure<T>(work: impl FnOnce() -> T) -> (T, Usage) {
    let before = (ALLOCATIONS.get(), LIVE.get());
    let result = work();
    let usage = Usage { allocations: ALLOCATIONS.get() - before.0, held: LIVE.get() - before.1 };
    (result, usage)
}

#[test]
fn the_count_counts() {
    let (kept, usage) = measure(|| std::hint::black_box(Box::new([1u8; 100])));
    assert_eq!(usage, Usage { allocations: 1, held: 100 });
    let ((), usage) = measure(|| drop(kept));
    assert_eq!(usage, Usage { allocations: 0, held: -100 });
    // Growing counts as what it is, another allocation.
    let mut bytes = Vec::with_capacity(10);
    let ((), usage) = measure(|| bytes.extend_from_slice(&[0u8; 1000]));
    assert_eq!(usage.allocations, 1);
    assert!(usage.held >= 990);
}
