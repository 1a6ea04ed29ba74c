//! The byte order of words of 32 bits: the presentation layer of many programs of the nineties.

use super::Manipulation;

/// Reverses the bytes of each word of 32 bits. Bytes at the end that make no whole word stay as they are. It undoes itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SwapWords;

impl Manipulation for SwapWords {
    fn unit(&self) -> usize {
        4
    }

    fn change(&mut self, bytes: &mut [u8]) {
        let (words, _) = bytes.as_chunks_mut::<4>();
        for word in words {
            *word = u32::from_ne_bytes(*word).swap_bytes().to_ne_bytes();
        }
    }

    fn copy(&mut self, to: &mut [u8], from: &[u8]) {
        let ((to, to_end), (from, from_end)) = (to.as_chunks_mut::<4>(), from.as_chunks::<4>());
        for (to, from) in to.iter_mut().zip(from) {
            *to = u32::from_ne_bytes(*from).swap_bytes().to_ne_bytes();
        }
        for (to, from) in to_end.iter_mut().zip(from_end) {
            *to = *from;
        }
    }
}
