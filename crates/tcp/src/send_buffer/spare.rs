//! Blocks that no send buffer uses now.

use super::BLOCK;
use alloc::vec::Vec;

/// The longest block that is small.
const SMALL: usize = 4096;
/// So many whole and small blocks are kept. More go back to the system.
const MOST_WHOLE: usize = 64;
const MOST_SMALL: usize = 256;

/// Memory of blocks that are free.
///
/// A host has one of these for all of its connections, and lends it to the connection that it calls
/// ([`Connection::swap_spare_blocks`](crate::connection::Connection::swap_spare_blocks)). So a block that one connection has emptied is the next that any
/// connection fills, and only as much memory passes through the processor's caches as there are bytes in flight.
#[derive(Debug, Default)]
pub struct SpareBlocks {
    whole: Vec<Vec<u8>>,
    small: Vec<Vec<u8>>,
}

impl SpareBlocks {
    /// An empty block for `bytes`, with or without memory.
    pub(super) fn take(&mut self, bytes: usize) -> Vec<u8> {
        let from = if bytes > SMALL { &mut self.whole } else { &mut self.small };
        from.pop().unwrap_or_default()
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
