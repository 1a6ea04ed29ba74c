//! SACK blocks (RFC 2018 3): at most four, kept in place.

use super::Writer;
use crate::{Error, Seq};
use core::ops::Deref;

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
// Most segments have none, and one is parsed for every packet: an absent array need not be zeroed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct SackBlocks(Option<Blocks>);

/// One to four blocks; those beyond `len` stay at their default, so that the derived comparison is
/// right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Blocks {
    blocks: [SackBlock; SackBlocks::MAX],
    len: u8,
}

impl SackBlocks {
    /// The most blocks that fit 40 bytes of options.
    pub(crate) const MAX: usize = 4;

    /// No blocks.
    #[inline]
    pub(crate) const fn new() -> Self {
        SackBlocks(None)
    }

    /// Adds a block at the end; `false` if there are `MAX` already.
    #[inline]
    pub fn push(&mut self, block: SackBlock) -> bool {
        let inner = self.0.get_or_insert(Blocks { blocks: Default::default(), len: 0 });
        match inner.blocks.get_mut(usize::from(inner.len)) {
            Some(place) => {
                *place = block;
                inner.len += 1;
                true
            }
            None => false,
        }
    }

    /// The option's length byte.
    pub(super) fn option_len(&self) -> u8 {
        2 + 8 * self.len() as u8
    }

    /// Reads one to four whole blocks; any other length is not a SACK option.
    #[inline(always)]
    pub(super) fn decode(data: &[u8]) -> Option<SackBlocks> {
        let (chunks, rest) = data.as_chunks::<8>();
        if !(1..=Self::MAX).contains(&chunks.len()) || !rest.is_empty() {
            return None;
        }
        let block = |index: usize| {
            let &[l0, l1, l2, l3, r0, r1, r2, r3] = chunks.get(index)?;
            let left = Seq::new(u32::from_be_bytes([l0, l1, l2, l3]));
            let right = Seq::new(u32::from_be_bytes([r0, r1, r2, r3]));
            Some(SackBlock { left, right })
        };
        let blocks = core::array::from_fn(|index| block(index).unwrap_or_default());
        Some(SackBlocks(Some(Blocks { blocks, len: chunks.len() as u8 })))
    }

    pub(super) fn write(&self, out: &mut Writer<'_>) -> Result<(), Error> {
        for block in self {
            out.put(block.left.get().to_be_bytes())?;
            out.put(block.right.get().to_be_bytes())?;
        }
        Ok(())
    }
}

impl Deref for SackBlocks {
    type Target = [SackBlock];

    #[inline]
    fn deref(&self) -> &[SackBlock] {
        match &self.0 {
            Some(inner) => inner.blocks.get(..usize::from(inner.len)).unwrap_or_default(),
            None => &[],
        }
    }
}

impl<'a> IntoIterator for &'a SackBlocks {
    type Item = &'a SackBlock;
    type IntoIter = core::slice::Iter<'a, SackBlock>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
