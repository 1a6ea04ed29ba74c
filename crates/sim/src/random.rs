//! Random numbers that are the same on every machine: one ChaCha stream per entity and purpose.
//!
//! A run has one seed. From it [`Streams`] derives a generator for each (entity, purpose) pair. So a
//! new link in a scenario, or a new effect of a link, does not change the numbers of any other. Seed
//! and entity make up the cipher's key and the purpose its stream number, hence the streams are as
//! independent as ChaCha with eight rounds makes them.
//!
//! Variates are computed in integers: normal ones by Marsaglia's polar method, Pareto ones by inversion,
//! on a binary logarithm and exponential of 48 fractional bits.

mod draw;
mod fixed;
mod variates;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};

use crate::units::Probability;

pub use draw::Draw;
pub use variates::Shape;

/// The source of all generators of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Streams {
    seed: u64,
}

impl Streams {
    /// The streams of the run with this seed.
    pub const fn new(seed: u64) -> Self {
        Streams { seed }
    }

    /// The generator that `entity` uses for `purpose`. Calling twice gives the same numbers twice.
    pub fn rng(self, entity: u64, purpose: u64) -> Rng {
        // Changing this derivation changes every recorded run: the tag carries its version.
        let mut key = *b"________________transom-sim rng1";
        key[..8].copy_from_slice(&self.seed.to_le_bytes());
        key[8..16].copy_from_slice(&entity.to_le_bytes());
        let mut cipher = ChaCha8Rng::from_seed(key);
        cipher.set_stream(purpose);
        Rng { cipher, skipped: 0 }
    }
}

/// One deterministic stream of random numbers.
#[derive(Clone, Debug)]
pub struct Rng {
    cipher: ChaCha8Rng,
    /// Numbers of 64 bits that were consumed, and that nobody had to compute yet.
    skipped: u64,
}

impl Rng {
    /// The generator at its place, behind the numbers that were skipped.
    fn cipher(&mut self) -> &mut ChaCha8Rng {
        if self.skipped > 0 {
            let words = 2 * u128::from(core::mem::take(&mut self.skipped));
            self.cipher.set_word_pos(self.cipher.get_word_pos().wrapping_add(words));
        }
        &mut self.cipher
    }

    /// 64 random bits.
    pub(crate) fn next_u64(&mut self) -> u64 {
        self.cipher().next_u64()
    }

    /// Consumes this many numbers of 64 bits. It costs next to nothing: the generator moves when a number is needed.
    pub(crate) fn skip(&mut self, numbers: u64) {
        self.skipped += numbers;
    }

    /// Fills `bytes` with random bytes.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        self.cipher().fill_bytes(bytes);
    }

    /// True with the given probability. Always consumes 64 bits, so that changing a probability does not
    /// shift later decisions.
    pub(crate) fn bernoulli(&mut self, probability: Probability) -> bool {
        if probability.is_zero() {
            self.skip(1);
            return false;
        }
        (self.next_u64() >> 1) < probability.parts()
    }

    /// A number below `bound`, every one equally likely; zero if `bound` is zero. (Lemire, "Fast Random
    /// Integer Generation in an Interval", 2019.)
    pub fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 {
            return 0;
        }
        loop {
            let product = u128::from(self.next_u64()) * u128::from(bound);
            let low = product as u64;
            // 2^64 mod bound of the low halves would make some results likelier than others.
            if low >= bound || low >= bound.wrapping_neg() % bound {
                return (product >> 64) as u64;
            }
        }
    }

    /// A number from `first` to `last`, both included, every one equally likely. The order of the two does
    /// not matter.
    pub fn between(&mut self, first: u64, last: u64) -> u64 {
        let (low, high) = (first.min(last), first.max(last));
        match (high - low).checked_add(1) {
            Some(count) => low + self.below(count),
            None => self.next_u64(),
        }
    }
}

#[cfg(test)]
mod tests;
