//! SACK blocks (RFC 2018 3): at most four, kept in place.

use super::Writer;
use crate::{Error, Seq};

/// A range of octets that has arrived out of order (RFC 2018 3).
///
/// Nothing is checked on reception: `left` may come after `right` in what a hostile peer sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct SackBlock {
    /// The first sequence number of the block.
    pub left: Seq,
    /// The sequence number just after the block.
    pub right: Seq,
}

/// Up to four SACK blocks in the order sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct SackBlocks {
    // Blocks beyond `len` stay at their default, so that the derived comparison is right.
    blocks: [SackBlock; SackBlocks::MAX],
    len: u8,
}

impl SackBlocks {
    /// The most blocks that fit 40 bytes of options.
    pub const MAX: usize = 4;

    /// No blocks.
    #[inline]
    pub fn new() -> Self {
        SackBlocks::default()
    }

    /// Adds a block at the end; `false` if there are [`MAX`](Self::MAX) already.
    #[inline]
    pub fn push(&mut self, block: SackBlock) -> bool {
        match self.blocks.get_mut(usize::from(self.len)) {
            Some(place) => {
                *place = block;
                self.len += 1;
                true
            }
            None => false,
        }
    }

    /// The blocks in order.
    #[inline]
    pub fn as_slice(&self) -> &[SackBlock] {
        self.blocks.get(..self.len()).unwrap_or_default()
    }

    /// The blocks in order.
    #[inline]
    pub fn iter(&self) -> core::slice::Iter<'_, SackBlock> {
        self.as_slice().iter()
    }

    /// The number of blocks.
    #[inline]
    pub const fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether there are no blocks.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The option's length byte.
    pub(super) fn option_len(&self) -> u8 {
        2 + 8 * self.len
    }

    /// Reads one to four whole blocks; any other length is not a SACK option.
    pub(super) fn decode(data: &[u8]) -> Option<SackBlocks> {
        let (chunks, rest) = data.as_chunks::<8>();
        if chunks.is_empty() || !rest.is_empty() {
            return None;
        }
        let mut blocks = SackBlocks::new();
        for &[l0, l1, l2, l3, r0, r1, r2, r3] in chunks {
            let left = Seq::new(u32::from_be_bytes([l0, l1, l2, l3]));
            let right = Seq::new(u32::from_be_bytes([r0, r1, r2, r3]));
            if !blocks.push(SackBlock { left, right }) {
                return None;
            }
        }
        Some(blocks)
    }

    pub(super) fn write(&self, out: &mut Writer<'_>) -> Result<(), Error> {
        for block in self {
            out.put(block.left.get().to_be_bytes())?;
            out.put(block.right.get().to_be_bytes())?;
        }
        Ok(())
    }
}

impl<'a> IntoIterator for &'a SackBlocks {
    type Item = &'a SackBlock;
    type IntoIter = core::slice::Iter<'a, SackBlock>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
