//! A key stream that repeats: the "encryption" of the experiments of the nineties. It keeps nothing secret.

use super::Manipulation;

/// The bytes of a key.
const KEY: usize = 32;

/// Combines the data with a key that repeats, by exclusive or. It undoes itself, from the same place in the data on.
///
/// It is cheap, as a manipulation for measurements should be that computes next to nothing. It is no cipher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Xor {
    /// Turned, so that the next byte of the data meets the first one.
    key: [u8; KEY],
}

impl Xor {
    /// From the beginning of the key on.
    pub const fn new(key: [u8; KEY]) -> Self {
        Xor { key }
    }

    /// So many bytes of the data are done.
    fn advance(&mut self, len: usize) {
        self.key.rotate_left(len % KEY);
    }
}

impl Manipulation for Xor {
    fn change(&mut self, bytes: &mut [u8]) {
        let (whole, end) = bytes.as_chunks_mut::<KEY>();
        for piece in whole {
            for (byte, key) in piece.iter_mut().zip(&self.key) {
                *byte ^= key;
            }
        }
        for (byte, key) in end.iter_mut().zip(&self.key) {
            *byte ^= key;
        }
        let len = bytes.len();
        self.advance(len);
    }

    fn copy(&mut self, to: &mut [u8], from: &[u8]) {
        let len = to.len().min(from.len());
        let (Some(to), Some(from)) = (to.get_mut(..len), from.get(..len)) else { return };
        let ((to, to_end), (from, from_end)) = (to.as_chunks_mut::<KEY>(), from.as_chunks::<KEY>());
        for (to, from) in to.iter_mut().zip(from) {
            for ((to, from), key) in to.iter_mut().zip(from).zip(&self.key) {
                *to = from ^ key;
            }
        }
        for ((to, from), key) in to_end.iter_mut().zip(from_end).zip(&self.key) {
            *to = from ^ key;
        }
        self.advance(len);
    }
}
