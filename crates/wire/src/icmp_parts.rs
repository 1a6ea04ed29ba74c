//! The parts of a message, which are the same in ICMP and ICMPv6 (RFC 792; RFC 4443 2.1).
//!
//! Type, code and checksum come first. With most types a word of four bytes follows, which is one
//! number, two halves or unused, and then echoed data or a quoted packet. Each protocol says what a
//! type means, and what the checksum covers.

use crate::Error;

/// The length of the header of every message with a type known here, in bytes.
pub(crate) const HEADER_LEN: usize = 8;
/// The offset of the checksum field, in bytes from the start of the message.
pub(crate) const CHECKSUM_OFFSET: usize = 2;

/// A message in its parts, all but the checksum.
pub(crate) struct Parts<'a> {
    pub(crate) kind: u8,
    pub(crate) code: u8,
    /// The four bytes behind the checksum, if the type has them.
    pub(crate) word: Option<[u8; 4]>,
    pub(crate) rest: &'a [u8],
}

impl Parts<'_> {
    /// The message's length in bytes.
    pub(crate) fn len(&self) -> usize {
        4 + self.word.map_or(0, |word| word.len()) + self.rest.len()
    }

    /// Writes the message with a checksum of zero and returns exactly the bytes that it takes.
    pub(crate) fn write<'o>(&self, out: &'o mut [u8]) -> Result<&'o mut [u8], Error> {
        let message = out.get_mut(..self.len()).ok_or(Error::BufferTooSmall)?;
        let (head, mut tail) = message.split_first_chunk_mut().ok_or(Error::BufferTooSmall)?;
        *head = [self.kind, self.code, 0, 0];
        if let Some(word) = self.word {
            let (place, behind) = tail.split_first_chunk_mut().ok_or(Error::BufferTooSmall)?;
            *place = word;
            tail = behind;
        }
        tail.copy_from_slice(self.rest);
        Ok(message)
    }
}

/// The word that two numbers make up.
pub(crate) fn join_halves(high: u16, low: u16) -> [u8; 4] {
    ((u32::from(high) << 16) | u32::from(low)).to_be_bytes()
}

/// The two numbers that make up a word.
pub(crate) fn split_halves([a, b, c, d]: [u8; 4]) -> (u16, u16) {
    (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]))
}

/// As much of `offending` as an error of at most `longest` bytes with an IP header of
/// `ip_header_len` may quote, without anything behind the end of the offending packet. `packet_len`
/// is where that is, if the packet can be understood.
pub(crate) fn quote(
    offending: &[u8],
    packet_len: Option<usize>,
    longest: usize,
    ip_header_len: usize,
) -> &[u8] {
    let room = longest.saturating_sub(ip_header_len + HEADER_LEN);
    let len = packet_len.unwrap_or(offending.len()).min(room);
    offending.get(..len).unwrap_or(offending)
}
