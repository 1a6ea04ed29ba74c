//! The Internet checksum (RFC 1071): sums, their combination, and their update in place (RFC 1624).
//!
//! A [`Sum`] is the ones-complement sum of 16-bit big-endian words. Addition of such words is associative and
//! independent of byte order and word size. So the sum of 64-bit words in the machine's order, folded to 16 bits at
//! the end, is the same after one swap of bytes (RFC 1071 2 (B), (C)). A slice that begins at an odd offset only swaps
//! its sum's bytes. So headers, pseudo-header and payload are summed where they lie, and the results put together
//! afterwards.
//!
//! The inner loop adds 8-byte words to four independent 128-bit accumulators. That compiles to
//! pairs of add and add-with-carry, so that its speed does not depend on which vector extensions a
//! build targets or on how well the compiler uses them.

#[cfg(test)]
mod tests;

use crate::{Error, ip::Protocol};
use core::net::IpAddr;
use core::ops::{Add, AddAssign};

/// A ones-complement sum of 16-bit words, folded and not complemented.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Sum(
    /// In a checksum field that the device is to complete this is what the pseudo-header's sum is left as; see
    /// [`TxChecksum::Partial`](crate::offload::TxChecksum::Partial).
    pub u16,
);

impl Sum {
    /// The sum of `bytes`, padded with a zero byte if there is an odd number of them.
    #[inline]
    pub fn of(bytes: &[u8]) -> Sum {
        let (chunks, tail) = bytes.as_chunks::<32>();
        let mut lanes = [0u128; 4];
        for chunk in chunks {
            add_lanes(&mut lanes, chunk);
        }
        // No overflow: a lane gains less than 2^64 per 32 bytes, and no slice has 2^63 bytes.
        let mut total = lanes.iter().sum::<u128>();
        let (words, last) = tail.as_chunks::<8>();
        for word in words {
            total += u128::from(u64::from_ne_bytes(*word));
        }
        fold(total + u128::from(tail_word(last)))
    }

    /// The sum of the 16-bit words that make up a larger number. A sum of several such numbers, as long as it does not
    /// overflow, stands for all their words.
    #[inline]
    pub const fn of_value(value: u64) -> Sum {
        let value = (value >> 32) + (value & 0xffff_ffff);
        let value = (value >> 16) + (value & 0xffff);
        let value = (value >> 16) + (value & 0xffff);
        Sum(((value >> 16) + (value & 0xffff)) as u16)
    }

    /// The sum of a few words.
    #[inline]
    pub(crate) fn of_words<const N: usize>(words: [u16; N]) -> Sum {
        words.into_iter().fold(Sum(0), |sum, word| sum + Sum(word))
    }

    /// The complement: what a checksum field holds.
    #[inline]
    pub const fn checksum(self) -> u16 {
        !self.0
    }

    /// Whether data that included its checksum field is intact.
    #[inline]
    pub const fn is_valid(self) -> bool {
        self.0 == 0xffff
    }

    /// The sum of some `len` bytes summing to `self` followed by bytes summing to `next`.
    #[inline]
    pub fn followed_by(self, len: usize, next: Sum) -> Sum {
        // After an odd number of bytes, high and low byte of the rest are swapped (RFC 1071 2 (B)).
        self + if len % 2 == 1 { Sum(next.0.swap_bytes()) } else { next }
    }

    /// The sum of slices that follow one another, of any lengths.
    #[inline]
    pub fn of_slices(slices: &[&[u8]]) -> Sum {
        let mut sum = Sum(0);
        let mut len = 0usize;
        for slice in slices {
            sum = sum.followed_by(len, Sum::of(slice));
            len = len.wrapping_add(slice.len());
        }
        sum
    }
}

impl Add for Sum {
    type Output = Sum;

    /// Ones-complement addition: the sum of two pieces that both begin at even offsets.
    #[inline]
    fn add(self, other: Sum) -> Sum {
        let (sum, carry) = self.0.overflowing_add(other.0);
        Sum(sum + u16::from(carry))
    }
}

impl AddAssign for Sum {
    #[inline]
    fn add_assign(&mut self, other: Sum) {
        *self = *self + other;
    }
}

/// Adds 32 bytes, eight to each lane.
#[inline(always)]
fn add_lanes(lanes: &mut [u128; 4], chunk: &[u8; 32]) {
    let (words, _) = chunk.as_chunks::<8>();
    for (lane, word) in lanes.iter_mut().zip(words) {
        *lane += u128::from(u64::from_ne_bytes(*word));
    }
}

/// Up to seven bytes as a native-endian word, with zeros behind them.
///
/// Read in pieces: copying bytes to a buffer and loading it as a word would wait for the copies.
#[inline(always)]
fn tail_word(bytes: &[u8]) -> u64 {
    let (fours, rest) = bytes.as_chunks::<4>();
    let (twos, one) = rest.as_chunks::<2>();
    // Even offsets all, so that where in the word a piece stands does not matter to the sum.
    let four = fours.first().map_or(0, |four| u32::from_ne_bytes(*four));
    let two = twos.first().map_or(0, |two| u16::from_ne_bytes(*two));
    let one = one.first().map_or(0, |&one| u16::from_ne_bytes([one, 0]));
    u64::from(four) + u64::from(two) + u64::from(one)
}

/// Folds a sum of native-endian words to 16 bits and puts it into big-endian order.
#[inline]
fn fold(sum: u128) -> Sum {
    // Each step adds the upper part to the lower; the second fold of a size takes up the first
    // one's carry.
    let low_64 = u128::from(u64::MAX);
    let sum = (sum & low_64) + (sum >> 64);
    let sum = ((sum & low_64) + (sum >> 64)) as u64;
    let sum = (sum & 0xffff_ffff) + (sum >> 32);
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    Sum(u16::from_be(sum as u16))
}

/// The sum of the pseudo-header of a transport packet of `len` bytes, header included.
///
/// RFC 9293 3.1 for IPv4 and RFC 8200 8.1 for IPv6: addresses, protocol and length. The fields are
/// the same, only their widths differ, and that does not show in the sum.
/// [RFC8200-8.1-1]
#[inline]
pub fn pseudo_header(src: IpAddr, dst: IpAddr, protocol: Protocol, len: u32) -> Sum {
    let words = [protocol.0.into(), (len >> 16) as u16, len as u16];
    address(src) + address(dst) + Sum::of_words(words)
}

/// The sum of an address.
#[inline]
fn address(address: IpAddr) -> Sum {
    match address {
        IpAddr::V4(v4) => fold(u128::from(u32::from_ne_bytes(v4.octets()))),
        IpAddr::V6(v6) => {
            let native = u128::from_ne_bytes(v6.octets());
            fold((native & u128::from(u64::MAX)) + (native >> 64))
        }
    }
}

/// Whether a whole transport packet, checksum field included, is intact.
///
/// A UDP checksum of zero, which means none, is not treated apart here; see
/// [`UdpPacket::checksum_ok`](crate::UdpPacket::checksum_ok).
#[inline]
pub(crate) fn verify(src: IpAddr, dst: IpAddr, protocol: Protocol, packet: &[u8]) -> bool {
    let Ok(len) = u32::try_from(packet.len()) else { return false };
    (pseudo_header(src, dst, protocol, len) + Sum::of(packet)).is_valid()
}

/// Computes the checksum of a whole transport packet and stores it at `offset`, whatever that field
/// held before.
///
/// # Errors
/// [`Error::Truncated`] if the field is not inside `packet`, [`Error::TooLong`] above 4 GiB.
pub fn fill(
    src: IpAddr,
    dst: IpAddr,
    protocol: Protocol,
    packet: &mut [u8],
    offset: usize,
) -> Result<(), Error> {
    let len = u32::try_from(packet.len()).map_err(|_| Error::TooLong)?;
    store(packet, offset, 0)?;
    let sum = pseudo_header(src, dst, protocol, len) + Sum::of(packet);
    // A computed UDP checksum of zero travels as 0xffff, since zero means none (RFC 768).
    let checksum = match sum.checksum() {
        0 if protocol == Protocol::UDP => 0xffff,
        checksum => checksum,
    };
    store(packet, offset, checksum)
}

/// Stores a 16-bit field.
pub(crate) fn store(packet: &mut [u8], offset: usize, value: u16) -> Result<(), Error> {
    let field = packet.get_mut(offset..).and_then(|rest| rest.first_chunk_mut::<2>());
    *field.ok_or(Error::Truncated)? = value.to_be_bytes();
    Ok(())
}

/// The checksum after a 16-bit field at an even offset changed from `old` to `new` (RFC 1624 3,
/// equation 3).
#[inline]
pub fn update_u16(checksum: u16, old: u16, new: u16) -> u16 {
    (Sum(!checksum) + Sum(!old) + Sum(new)).checksum()
}
