//! Blocks that no send buffer uses now.

use super::BLOCK;
use crate::time::{Duration, Instant};
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
pub struct SpareBlocks {
    whole: Vec<Vec<u8>>,
    small: Vec<Vec<u8>>,
    /// The fewest whole blocks there have been since `looked`: as many were not needed.
    least: usize,
    looked: Instant,
}

impl SpareBlocks {
    /// Gives memory back that nobody has used for a second.
    pub fn release_unused(&mut self, now: Instant) {
        if now.since(self.looked) >= UNUSED {
            // The blocks at the bottom are those that were not taken.
            self.whole.drain(..self.least.min(self.whole.len()));
            (self.least, self.looked) = (self.whole.len(), now);
        }
    }

    /// An empty block for `bytes`, with or without memory.
    pub(super) fn take(&mut self, bytes: usize) -> Vec<u8> {
        if bytes <= SMALL {
            return self.small.pop().unwrap_or_default();
        }
        let block = self.whole.pop().unwrap_or_default();
        self.least = self.least.min(self.whole.len());
        block
    }

    /// Keeps the memory of a block, if its size is one of those that are kept.
    pub(super) fn put(&mut self, mut block: Vec<u8>) {
        let (to, most) = match block.capacity() {
            1..=SMALL => (&mut self.small, MOST_SMALL),
            BLOCK => (&mut self.whole, MOST_WHOLE),
            _ => return,
        };
        if to.len() < most {
            block.clear();
            to.push(block);
        }
    }

    /// Bytes of memory.
    pub fn memory(&self) -> usize {
        self.whole.iter().chain(&self.small).map(Vec::capacity).sum()
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
