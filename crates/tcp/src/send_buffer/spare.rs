//! Blocks that no send buffer uses now.

use super::BLOCK;
use crate::time::{Duration, Instant};
use alloc::boxed::Box;
use alloc::vec::Vec;

/// The least a block is given memory for.
pub(super) const LEAST: usize = 512;
/// Blocks have one of so many sizes, each twice as long as the one before.
const SIZES: usize = BLOCK.trailing_zeros() as usize - LEAST.trailing_zeros() as usize + 1;
/// So many whole blocks are kept, and so many bytes of each smaller size. More go back to the system. The whole blocks are 256 MB, which is what a host's
/// connections hold before it is short of memory. With fewer, hundreds of busy connections return blocks and ask for them again all the time.
const MOST_WHOLE: usize = 4096;
const MOST_BYTES: usize = 2 << 20;
/// Blocks that nobody took for so long go back too.
const UNUSED: Duration = Duration::from_secs(1);

/// How long a block for `bytes` is.
pub(super) fn size_for(bytes: usize) -> usize {
    bytes.clamp(LEAST, BLOCK).next_power_of_two()
}

/// Memory of blocks that are free.
///
/// A host has one of these for all of its connections, and lends it to the connection that it calls
/// ([`Connection::swap_memory`](crate::connection::Connection::swap_memory)). So a block that one connection has emptied is the next that any
/// connection fills, and only as much memory passes through the processor's caches as there are bytes in flight.
#[derive(Debug, Default)]
pub struct SpareBlocks(Option<Box<Free>>); // in a box: each connection has room for the host's

#[derive(Debug, Default)]
struct Free {
    /// The shortest first.
    sizes: [Blocks; SIZES],
    looked: Instant,
    /// They are a host's, and not one connection's.
    shared: bool,
}

/// Free blocks of one size.
#[derive(Debug, Default)]
struct Blocks {
    blocks: Vec<Vec<u8>>,
    /// The fewest there have been since the last look: as many were not needed.
    least: usize,
}

impl Free {
    /// The blocks of this size, which is one of those there are.
    fn of_size(&mut self, size: usize) -> &mut Blocks {
        let place = size.trailing_zeros().saturating_sub(LEAST.trailing_zeros()) as usize;
        &mut self.sizes[place.min(SIZES - 1)]
    }
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
            for Blocks { blocks, least } in &mut free.sizes {
                // Those at the bottom were not taken.
                blocks.drain(..(*least).min(blocks.len()));
                *least = blocks.len();
            }
            free.looked = now;
        }
    }

    /// When [`SpareBlocks::release_unused`] has something to do.
    pub fn next_release(&self) -> Option<Instant> {
        let free = self.0.as_ref()?;
        let some = free.sizes.iter().any(|size| !size.blocks.is_empty());
        some.then(|| free.looked + UNUSED)
    }

    /// Gives all memory back.
    pub fn clear(&mut self) {
        if let Some(free) = &mut self.0 {
            free.sizes = Default::default();
        }
    }

    /// An empty block for `bytes`, with or without memory.
    pub(super) fn take(&mut self, bytes: usize) -> Vec<u8> {
        let Some(free) = &mut self.0 else { return Vec::new() };
        let Blocks { blocks, least } = free.of_size(size_for(bytes));
        let block = blocks.pop().unwrap_or_default();
        *least = (*least).min(blocks.len());
        block
    }

    /// Keeps the memory of a block, if its size is one of those that are kept.
    pub(super) fn put(&mut self, mut block: Vec<u8>) {
        let size = block.capacity();
        if size != size_for(size) {
            return;
        }
        let most = if size == BLOCK { MOST_WHOLE } else { MOST_BYTES / size };
        let Blocks { blocks, .. } = self.0.get_or_insert_default().of_size(size);
        if blocks.len() < most {
            block.clear();
            blocks.push(block);
        }
    }

    /// Bytes of memory.
    pub fn memory(&self) -> usize {
        let sizes = self.0.iter().flat_map(|free| &free.sizes);
        sizes.flat_map(|size| &size.blocks).map(Vec::capacity).sum()
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
    fn an_unused_spare_block_goes_back() {
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
        for size in [0, 1, LEAST, 4096, 4097, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK] {
            for _ in 0..MOST_WHOLE + 1000 {
                spare.put(Vec::with_capacity(size));
            }
        }
        assert_eq!(spare.memory(), MOST_WHOLE * BLOCK + 2 * MOST_BYTES);
        assert_eq!(
            [1, 4000, 4097, BLOCK].map(|bytes| spare.take(bytes).capacity()),
            [LEAST, 4096, 0, BLOCK]
        );
    }
}
