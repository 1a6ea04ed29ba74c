//! A queue of bytes in blocks, most of which have one size.
//!
//! Bytes are appended at the end and dropped at the front. A used block is the first to be reused, so that only as much
//! memory passes through the processor's caches as there are bytes queued. (A ring uses its whole capacity even with little
//! data, and copying into memory that was last used megabytes ago costs several times as much.)
//!
//! A block may also be another owner's memory, which is kept and not copied. Such a block may be shorter than ours and stay so when something follows, if it is at least
//! half as long. A shorter one becomes one of ours then. So pieces that arrive in super-segments, which are a little shorter than blocks, are not copied on their way
//! out; and what has no room in two pieces is still half a block or more.

use super::spare::{SpareBlocks, size_for};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use bytes::Bytes;

#[derive(Debug)]
enum Block {
    Ours(Vec<u8>),
    Kept(Bytes),
}

impl Block {
    fn bytes(&self) -> &[u8] {
        match self {
            Block::Ours(block) => block,
            Block::Kept(block) => block,
        }
    }

    /// The memory that it takes.
    #[cfg(test)]
    fn memory(&self) -> usize {
        match self {
            Block::Ours(block) => block.capacity(),
            Block::Kept(block) => block.len(),
        }
    }
}

/// Bytes in blocks of `BLOCK`. Any half of `BLOCK` consecutive ones lie in at most two pieces; without shorter blocks any `BLOCK` do.
#[derive(Debug, Default)]
pub(super) struct Blocks<const BLOCK: usize> {
    /// All but the last one are full, or at least half as long and another's.
    used: VecDeque<Block>,
    /// How many before the last one are shorter.
    uneven: u32,
    /// None are to be.
    even: bool,
    spare: SpareBlocks,
    /// How much of the first block is forgotten already.
    head: usize,
    len: usize,
    memory: usize,
}

impl<const BLOCK: usize> Blocks<BLOCK> {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes of memory of the blocks in use.
    pub(super) fn memory(&self) -> usize {
        self.memory
    }

    /// Appends `bytes`.
    pub(super) fn push(&mut self, mut bytes: &[u8]) {
        self.len += bytes.len();
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(self.room_at_end()));
            if now.is_empty() {
                self.begin(bytes.len());
                continue;
            }
            let is_first = self.used.len() == 1;
            self.own_last();
            if let Some(Block::Ours(block)) = self.used.back_mut() {
                let before = block.capacity();
                let needed = block.len() + now.len();
                if needed > before {
                    // After a full block more data will follow; before that, a little may be all.
                    let wanted = if is_first { size_for(needed) } else { BLOCK };
                    block.reserve_exact(wanted.min(BLOCK) - block.len());
                    self.memory += block.capacity() - before;
                }
                block.extend_from_slice(now);
            }
            bytes = later;
        }
    }

    /// Lets `fill` append to the last block, which has memory for at least one more byte, and at most `most` of them. Returns how many it has appended.
    ///
    /// The queue stays sound for any `fill`: bytes that are too many are cut off, and zeros replace bytes that it has removed.
    pub(super) fn push_by(&mut self, most: usize, fill: impl FnOnce(&mut Vec<u8>, usize)) -> usize {
        if most == 0 {
            return 0;
        }
        if self.room_at_end() == 0 {
            self.begin(most);
        }
        let is_first = self.used.len() == 1;
        self.own_last();
        let most = most.min(self.room_at_end());
        let Some(Block::Ours(block)) = self.used.back_mut() else { return 0 };
        let (before, len) = (block.capacity(), block.len());
        let needed = len + most;
        if needed > before {
            let wanted = if is_first { size_for(needed) } else { BLOCK };
            block.reserve_exact(wanted.min(BLOCK) - len);
        }
        fill(block, most);
        let filled = block.len().saturating_sub(len).min(most);
        block.resize(len + filled, 0);
        self.memory = self.memory - before + block.capacity();
        self.len += filled;
        if block.is_empty()
            && let Some(Block::Ours(block)) = self.used.pop_back()
        {
            self.uneven -= u32::from(self.last_is_short());
            self.memory -= block.capacity();
            self.spare.put(block);
        }
        filled
    }

    /// Appends a block of our own for so many bytes and perhaps more.
    fn begin(&mut self, bytes: usize) {
        // After a full block more data will follow; before that, a little may be all.
        let bytes = if self.used.is_empty() { bytes } else { BLOCK };
        let block = self.spare.take(bytes);
        self.memory += block.capacity();
        self.add(Block::Ours(block));
    }

    /// Exchanges the blocks that are free for others.
    pub(super) fn swap_spare(&mut self, spare: &mut SpareBlocks) {
        core::mem::swap(&mut self.spare, spare);
    }

    /// Appends a block.
    fn add(&mut self, block: Block) {
        self.uneven += u32::from(self.last_is_short());
        self.used.push_back(block);
    }

    fn last_is_short(&self) -> bool {
        self.used.back().is_some_and(|last| last.bytes().len() < BLOCK)
    }

    /// Appends `bytes` without a copy, but for what fills the last block. They count as long as they are, whatever they are a part of.
    pub(super) fn keep(&mut self, mut bytes: Bytes) {
        let room = self.room_at_end();
        if room > 0 {
            let head = bytes.split_to(room.min(bytes.len()));
            self.push(&head);
        }
        self.len += bytes.len();
        self.memory += bytes.len();
        while !bytes.is_empty() {
            let block = bytes.split_to(bytes.len().min(BLOCK));
            self.add(Block::Kept(block));
        }
    }

    /// Makes the last block one that can be appended to.
    fn own_last(&mut self) {
        let Some(last) = self.used.back_mut() else { return };
        let Block::Kept(kept) = last else { return };
        let mut block = self.spare.take(BLOCK);
        self.memory -= kept.len();
        block.reserve_exact(BLOCK);
        block.extend_from_slice(kept);
        self.memory += block.capacity();
        *last = Block::Ours(block);
    }

    /// How many bytes the last block has room for.
    pub(super) fn room_at_end(&self) -> usize {
        match self.used.back() {
            Some(Block::Kept(block)) if block.len() >= BLOCK / 2 && !self.even => 0,
            last => last.map_or(0, |block| BLOCK - block.bytes().len()),
        }
    }

    /// From now on any `BLOCK` consecutive bytes lie in two pieces.
    pub(super) fn make_even(&mut self) {
        self.even = true;
        if self.uneven > 0 {
            let mut before = core::mem::take(self);
            self.even = true;
            self.swap_spare(&mut before.spare);
            let head = core::mem::take(&mut before.head);
            for (index, block) in before.used.iter().enumerate() {
                let skipped = if index == 0 { head } else { 0 };
                self.push(block.bytes().get(skipped..).unwrap_or_default());
            }
        }
    }

    /// Bytes of memory of the blocks that are free here.
    pub(super) fn spare_memory(&self) -> usize {
        self.spare.memory()
    }

    /// Forgets everything, and the memory too. The free blocks of a host stay.
    pub(super) fn release(&mut self) {
        let mut spare = core::mem::take(&mut self.spare);
        spare.on_idle();
        *self = Blocks { even: self.even, spare, ..Blocks::default() };
    }

    /// Forgets the first `count` bytes.
    pub(super) fn drop_front(&mut self, count: usize) {
        let count = count.min(self.len);
        self.len -= count;
        self.head += count;
        // An empty queue starts over, so that what comes next lies in one piece.
        while let Some(first) = self.used.front().map(|block| block.bytes().len())
            && (self.len == 0 || self.head >= first)
        {
            self.head = self.head.saturating_sub(first);
            match self.used.pop_front() {
                Some(Block::Ours(block)) => {
                    self.memory -= block.capacity();
                    self.spare.put(block);
                }
                Some(Block::Kept(block)) => self.memory -= block.len(),
                None => break,
            }
            self.uneven -= u32::from(first < BLOCK && !self.used.is_empty());
        }
        if self.len == 0 {
            self.head = 0;
        }
    }

    /// The block in which the byte at offset `from` lies, and its place there.
    fn place(&self, from: usize) -> (usize, usize) {
        let mut at = self.head + from;
        if self.uneven == 0 {
            return (at / BLOCK, at % BLOCK);
        }
        for (index, block) in self.used.iter().enumerate() {
            let len = block.bytes().len();
            if at < len {
                return (index, at);
            }
            at -= len;
        }
        (self.used.len(), 0)
    }

    /// How many bytes from offset `from` on [`Blocks::slices`] gives at most.
    pub(super) fn reach(&self, from: usize) -> usize {
        if self.uneven == 0 {
            return BLOCK;
        }
        let (block, at) = self.place(from);
        let len = |index| self.used.get(index).map_or(0, |block: &Block| block.bytes().len());
        match block + 2 < self.used.len() {
            true => (len(block) - at + len(block + 1)).min(BLOCK),
            // Whatever is appended lies in the second piece, or behind the end.
            false => BLOCK,
        }
    }

    /// The bytes from offset `from` up to `upto`, at most `BLOCK` of them, not beyond the end, and as many as lie in two pieces.
    pub(super) fn slices(&self, from: usize, upto: usize) -> [&[u8]; 2] {
        let upto = upto.min(self.len).min(from.saturating_add(BLOCK));
        if from >= upto {
            return [&[]; 2];
        }
        let len = upto - from;
        let (block, at) = self.place(from);
        let first = self
            .used
            .get(block)
            .map_or(&[][..], |block| &block.bytes()[at..block.bytes().len().min(at + len)]);
        let rest = len - first.len();
        let second = match rest {
            0 => &[][..],
            _ => self.used.get(block + 1).map_or(&[][..], |block| {
                let bytes = block.bytes();
                &bytes[..rest.min(bytes.len())]
            }),
        };
        [first, second]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use proptest::prelude::*;

    #[test]
    fn little_takes_little_and_more_takes_whole_blocks() {
        let mut blocks = Blocks::<4096>::default();
        blocks.push(&[1; 10]);
        assert_eq!(blocks.memory(), 512);
        blocks.push(&[1; 503]);
        assert_eq!(blocks.memory(), 1024);
        blocks.push(&[1; 4000]);
        assert_eq!(blocks.memory(), 2 * 4096);
    }

    #[test]
    fn a_little_that_is_written_in_place_takes_little() {
        let mut blocks = Blocks::<4096>::default();
        blocks.push_by(10, |end, _| end.extend_from_slice(&[1; 10]));
        assert_eq!(blocks.memory(), 512);
        blocks.push_by(600, |end, _| end.extend_from_slice(&[1; 600]));
        assert_eq!(blocks.memory(), 1024);
        blocks.push_by(9000, |end, most| end.resize(end.len() + most, 1));
        assert_eq!(blocks.memory(), 4096);
    }

    #[test]
    fn bytes_are_written_where_they_lie() {
        let mut blocks = Blocks::<16>::default();
        blocks.push(&[1; 10]);
        let mut place = None;
        let filled = blocks.push_by(4, |end, most| {
            assert_eq!((end.len(), most), (10, 4));
            assert!(end.capacity() >= 14);
            end.extend_from_slice(&[2; 4]);
            place = Some(end.as_ptr());
        });
        assert_eq!(filled, 4);
        assert_eq!(blocks.slices(8, 14).concat(), [1, 1, 2, 2, 2, 2]);
        assert_eq!(Some(blocks.slices(0, 14)[0].as_ptr()), place);
        // At most to the end of the block; nothing that is there is lost.
        assert_eq!(blocks.push_by(9, |end, most| end.resize(end.len() + most + 7, 3)), 2);
        assert_eq!(blocks.push_by(9, |end, _| end.clear()), 0);
        assert_eq!(blocks.push_by(0, |_, _| panic!("there is no room")), 0);
        assert_eq!((blocks.len(), blocks.slices(14, 17).concat()), (16, vec![3, 3]));
        // Bytes that a call must not touch, and has removed, are lost; nothing else breaks.
        blocks.push(&[4; 3]);
        assert_eq!(blocks.push_by(9, |end, _| end.clear()), 0);
        assert_eq!((blocks.len(), blocks.slices(16, 19).concat()), (19, vec![0; 3]));
    }

    #[test]
    fn the_block_used_last_is_used_next() {
        let mut blocks = Blocks::<16>::default();
        for _ in 0..100 {
            blocks.push(&[1; 24]);
            blocks.drop_front(24);
        }
        // Never more than what 24 bytes need from any place in a block.
        assert!(blocks.memory() <= 2 * 16, "{} bytes", blocks.memory());
        assert_eq!(blocks.used.len(), 0);
    }

    #[test]
    fn whole_blocks_are_kept_where_they_lie() {
        let theirs: Bytes = (0..100u8).collect::<Vec<_>>().into();
        let mut blocks = Blocks::<16>::default();
        blocks.push(&[9; 6]);
        blocks.keep(theirs.clone());
        // Ten bytes filled the first block.
        for at in (10..100).step_by(16) {
            let [kept, _] = blocks.slices(at + 6, at + 7);
            assert_eq!(kept.as_ptr(), theirs[at..].as_ptr());
        }
        // Nobody has it any more when it is gone from here.
        blocks.drop_front(106);
        assert!(theirs.is_unique());
        assert_eq!(blocks.memory(), 0);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn pushed_data_stays_until_it_is_dropped(
            steps in prop::collection::vec((0usize..60, 0usize..60, any::<bool>()), 1..60),
            cut in (0usize..80, 0usize..30),
            even_from in 0usize..60,
        ) {
            let mut blocks = Blocks::<16>::default();
            let mut model: VecDeque<u8> = VecDeque::new();
            let mut next = 0u8;
            for (step, (push, drop, keep)) in steps.into_iter().enumerate() {
                if step == even_from {
                    blocks.make_even();
                }
                let bytes: Vec<u8> = (0..push).map(|i| next.wrapping_add(i as u8)).collect();
                next = next.wrapping_add(push as u8);
                if keep {
                    blocks.keep(bytes.clone().into());
                } else {
                    blocks.push(&bytes);
                }
                model.extend(&bytes);
                prop_assert_eq!(blocks.len(), model.len());
                let (from, upto) = (cut.0, cut.0 + cut.1);
                let got: Vec<u8> = blocks.slices(from, upto).concat();
                let most = if from < model.len() { blocks.reach(from) } else { 16 };
                let least = if step < even_from { 8 } else { 16 };
                prop_assert!((least..=16).contains(&most), "{}", most);
                let wanted: Vec<u8> =
                    model.iter().copied().skip(from).take(cut.1.min(most)).collect();
                prop_assert_eq!(got, wanted);
                let short = blocks.used.iter().rev().skip(1);
                prop_assert_eq!(blocks.uneven as usize, short.filter(|b| b.bytes().len() < 16).count());
                blocks.drop_front(drop);
                model.drain(..drop.min(model.len()));
                let held = blocks.used.iter().map(Block::memory).sum::<usize>();
                prop_assert_eq!(blocks.memory(), held);
            }
        }
    }
}
