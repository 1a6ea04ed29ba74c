//! Corruption: flipped bits.
//!
//! The link does not know what a packet looks like, so it only decides that one is damaged and how, and
//! the packet's receiver applies the damage to the bytes.

use core::fmt;
use core::str::FromStr;

use super::LinkConfigError;
use crate::random::Rng;
use crate::units::{Probability, serde_as_text};

/// The most bits that one packet's damage flips.
const MAX_BITS: u32 = 64;

/// How often packets are damaged, and how badly. Written "0.1%" (one bit) or "0.1% by 3 bits".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Corrupt {
    /// The probability that a packet is damaged.
    pub(crate) probability: Probability,
    /// The bits flipped in a damaged packet, from 1 to 64.
    pub(crate) bits: u32,
}

impl Default for Corrupt {
    fn default() -> Self {
        Corrupt { probability: Probability::ZERO, bits: 1 }
    }
}

impl Corrupt {
    /// The next packet's damage. Consumes the same amount of randomness whether or not there is any.
    pub(super) fn damage(&self, rng: &mut Rng) -> Option<Corruption> {
        if rng.bernoulli(self.probability) {
            return Some(Corruption { random: rng.next_u64(), bits: self.bits });
        }
        rng.skip(1);
        None
    }
}

/// The damage to one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Corruption {
    /// Decides which bits: 64 random bits, for callers that would rather damage packets their own way.
    pub(crate) random: u64,
    /// How many bits are flipped.
    pub(crate) bits: u32,
}

impl Corruption {
    /// Flips the bits: that many different ones, chosen by [`random`](Self::random), of `bytes`. Flips all
    /// of them if there are no more.
    pub(crate) fn apply(&self, bytes: &mut [u8]) {
        let total = bytes.len() as u64 * 8;
        let count = u64::from(self.bits.min(MAX_BITS)).min(total);
        let mut chosen = Vec::with_capacity(count as usize);
        let mut state = self.random;
        // Floyd's sampling: each step adds one bit that is not yet among the chosen.
        for last in total - count..total {
            let candidate = below(&mut state, last + 1);
            chosen.push(if chosen.contains(&candidate) { last } else { candidate });
        }
        for bit in chosen {
            if let Some(byte) = bytes.get_mut((bit / 8) as usize) {
                *byte ^= 1 << (bit % 8);
            }
        }
    }
}

/// A number below `bound` from the next output of SplitMix64 (Steele, Lea and Flood, "Fast Splittable
/// Pseudorandom Number Generators", 2014). The bias, below bound/2^64, does not matter here.
fn below(state: &mut u64, bound: u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^= z >> 31;
    ((u128::from(z) * u128::from(bound)) >> 64) as u64
}

impl FromStr for Corrupt {
    type Err = LinkConfigError;

    fn from_str(text: &str) -> Result<Corrupt, LinkConfigError> {
        let Some((probability, bits)) = text.split_once(" by ") else {
            return Ok(Corrupt { probability: text.parse()?, bits: 1 });
        };
        let probability = probability.parse()?;
        let bits = bits.trim();
        let number = bits.strip_suffix("bits").or_else(|| bits.strip_suffix("bit")).unwrap_or(bits);
        match number.trim().parse() {
            Ok(bits @ 1..=MAX_BITS) => Ok(Corrupt { probability, bits }),
            _ => Err(LinkConfigError::Form {
                what: "corruption",
                text: text.into(),
                forms: "PROBABILITY or PROBABILITY by N bits, N from 1 to 64",
            }),
        }
    }
}

impl fmt::Display for Corrupt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} by {} bits", self.probability, self.bits)
    }
}

serde_as_text!(Corrupt, "a corruption such as \"0.1%\" or \"0.1% by 3 bits\"");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_so_many_bits_are_flipped() {
        for random in 0..1000 {
            for bits in [1, 2, 3, 16, 64] {
                let mut bytes = [0u8; 9];
                Corruption { random, bits }.apply(&mut bytes);
                assert_eq!(bytes.iter().map(|byte| byte.count_ones()).sum::<u32>(), bits);
            }
        }
    }

    #[test]
    fn every_bit_is_hit_about_equally_often() {
        let mut hits = [0u32; 32];
        for random in 0..32_000u64 {
            let mut bytes = [0u8; 4];
            Corruption { random, bits: 1 }.apply(&mut bytes);
            hits[u32::from_le_bytes(bytes).trailing_zeros() as usize] += 1;
        }
        // Mean 1000, standard deviation 31.
        assert!(hits.iter().all(|count| (850..1150).contains(count)), "{hits:?}");
    }

    #[test]
    fn short_packets_do_not_panic() {
        Corruption { random: 3, bits: 64 }.apply(&mut []);
        let mut byte = [0u8];
        Corruption { random: 3, bits: u32::MAX }.apply(&mut byte);
        assert_eq!(byte, [0xff]);
    }
}
