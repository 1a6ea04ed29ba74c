//! Blocks that no send buffer uses now.

use super::BLOCK;
use crate::time::{Duration, Instant};
use alloc::boxed::Box;
use alloc::vec::Vec;

/// The longest block that is small.
const SMALL: usize = 4096;
/// So many whole and small blocks are kept. More go back to the system.
const MOST_WHOLE: usize = 1024;
const MOST_SMALL: usize = 256;
/// Blocks that nobody took for so long go back too.
const UNUSED: Duration = Duration::from_secs(1);

/// Memory of blocks that are free.
///
/// A host has one of these for all of its connections, and lends it to the connection that it calls
/// ([`Connection::swap_spare_blocks`](crate::connection::Connection::swap_spare_blocks)). So a block that one connection has emptied is the next that any
/// connection fills, and only as much memory passes through the processor's caches as there are bytes in flight.
#[derive(Debug, Default)]
pub struct SpareBlocks(Option<Box<Free>>); // in a box: each connection has room for the host's

#[derive(Debug, Default)]
struct Free {
    whole: Vec<Vec<u8>>,
    small: Vec<Vec<u8>>,
    /// The fewest whole blocks there have been since `looked`: as many were not needed.
    least: usize,
    looked: Instant,
    /// They are a host's, and not one connection's.
    shared: bool,
}

impl SpareBlocks {
    /// Those of a host.
    pub fn of_a_host() -> Self {
        SpareBlocks(Some(Box::new(Free { shared: true, ..Free::default() })))
    }

    /// A connection is idle: gives all memory back that is its own.
    pub(super) fn on_idle(&mut self) {
        self.0 = self.0.take().filter(|free| free.shared);
    }

    /// Gives memory back that nobody has used for a second.
    pub fn release_unused(&mut self, now: Instant) {
        let Some(free) = &mut self.0 else { return };
        if now.since(free.looked) >= UNUSED {
            // The blocks at the bottom are those that were not taken.
            free.whole.drain(..free.least.min(free.whole.len()));
            (free.least, free.looked) = (free.whole.len(), now);
        }
    }

    /// An empty block for `bytes`, with or without memory.
    pub(super) fn take(&mut self, bytes: usize) -> Vec<u8> {
        let Some(free) = &mut self.0 else { return Vec::new() };
        if bytes <= SMALL {
            return free.small.pop().unwrap_or_default();
        }
        let block = free.whole.pop().unwrap_or_default();
        free.least = free.least.min(free.whole.len());
        block
    }

    /// Keeps the memory of a block, if its size is one of those that are kept.
    pub(super) fn put(&mut self, mut block: Vec<u8>) {
        let capacity = block.capacity();
        if capacity == 0 || capacity > SMALL && capacity != BLOCK {
            return;
        }
        let free = self.0.get_or_insert_default();
        let (to, most) = match capacity {
            BLOCK => (&mut free.whole, MOST_WHOLE),
            _ => (&mut free.small, MOST_SMALL),
        };
        if to.len() < most {
            block.clear();
            to.push(block);
        }
    }

    /// Bytes of memory.
    pub fn memory(&self) -> usize {
        let blocks = self.0.iter().flat_map(|free| free.whole.iter().chain(&free.small));
        blocks.map(Vec::capacity).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_block_that_was_given_back_last_is_taken_next() {
        let mut spare = SpareBlocks::default();
        let [first, second] = [(); 2].map(|()| Vec::with_capacity(BLOCK));
        let place = second.as_ptr();
        spare.put(first);
        spare.put(second);
        assert_eq!(spare.memory(), 2 * BLOCK);
        // A little takes no whole block.
        assert_eq!(spare.take(100).capacity(), 0);
        let taken = spare.take(BLOCK);
        assert_eq!(taken.as_ptr(), place);
    }

    #[test]
    fn what_nobody_takes_goes_back() {
        let mut spare = SpareBlocks::default();
        let at = |ms: u64| Instant::ZERO + Duration::from_millis(ms);
        (0..5).for_each(|_| spare.put(Vec::with_capacity(BLOCK)));
        spare.release_unused(at(1000));
        // In the next second two are in use at most, and come back.
        let two = [(); 2].map(|()| spare.take(BLOCK));
        two.into_iter().for_each(|block| spare.put(block));
        spare.release_unused(at(1999));
        assert_eq!(spare.memory(), 5 * BLOCK);
        spare.release_unused(at(2000));
        assert_eq!(spare.memory(), 2 * BLOCK);
        spare.release_unused(at(3000));
        assert_eq!(spare.memory(), 0);
    }

    #[test]
    fn its_memory_is_bounded() {
        let mut spare = SpareBlocks::default();
        for size in [512, SMALL, SMALL + 1, BLOCK - 1, BLOCK, BLOCK + 1] {
            for _ in 0..1000 {
                spare.put(Vec::with_capacity(size));
            }
        }
        assert!(spare.memory() <= MOST_WHOLE * BLOCK + MOST_SMALL * SMALL);
        assert!(spare.take(SMALL + 1).capacity() == BLOCK && spare.take(1).is_empty());
    }
}
