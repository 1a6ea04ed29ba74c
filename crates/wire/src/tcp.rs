//! The TCP header (RFC 9293 3.1).
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-------------------------------+-------------------------------+
//! |          source port          |       destination port        |
//! +-------------------------------+-------------------------------+
//! |                        sequence number                        |
//! +---------------------------------------------------------------+
//! |                     acknowledgement number                    |
//! +-------+-----+-----------------+-------------------------------+
//! | offset|resvd|A C E U A P R S F|            window             |
//! +-------+-----+-----------------+-------------------------------+
//! |            checksum           |         urgent pointer        |
//! +-------------------------------+-------------------------------+
//! |                 options (0–40 bytes), payload                 |
//! ```
//!
//! [`TcpPacket::parse`] runs for every received packet: it checks the two lengths, decodes the
//! fixed part and walks the options once, with a short cut for the layout nearly all segments have.
//! The checksum is not looked at here, since a device may have done so already; see
//! [`crate::checksum`].

mod options;
#[cfg(test)]
mod tests;

pub use options::{
    AccEcn, AccEcnCounters, AccEcnOrder, FastOpen, Options, PartialReliability, SackBlock,
    SackBlocks, Timestamps, UserTimeout,
};

use crate::{Error, Seq};
use core::fmt;

/// The header's length without options, in bytes.
pub const MIN_HEADER_LEN: usize = 20;
/// The longest header, in bytes: a data offset of 15 words.
pub const MAX_HEADER_LEN: usize = 60;
/// The most bytes of options a header holds.
pub const MAX_OPTIONS_LEN: usize = MAX_HEADER_LEN - MIN_HEADER_LEN;
/// The offset of the checksum field, in bytes from the start of the header.
pub const CHECKSUM_OFFSET: usize = 16;

bitflags::bitflags! {
    /// The control bits (RFC 9293 3.1) with the AE bit above them (RFC 9768).
    ///
    /// The three bits that are still reserved are ignored when received and sent as zero.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
    pub struct Flags: u16 {
        /// No more data from the sender.
        const FIN = 1;
        /// Synchronise sequence numbers.
        const SYN = 2;
        /// Reset the connection.
        const RST = 4;
        /// Push: hand the data to the application.
        const PSH = 8;
        /// The acknowledgement field is significant.
        const ACK = 16;
        /// The urgent pointer is significant.
        const URG = 32;
        /// ECN echo (RFC 3168).
        const ECE = 64;
        /// Congestion window reduced (RFC 3168).
        const CWR = 128;
        /// Accurate ECN (RFC 9768); the nonce sum of the historic RFC 3540.
        const AE = 256;
    }
}

/// A TCP header as a value: every field except the data offset and the checksum, which follow from
/// the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct TcpHeader {
    /// Source port.
    pub src_port: u16,
    /// Destination port.
    pub dst_port: u16,
    /// Sequence number of the first payload octet, or of the SYN.
    pub seq: Seq,
    /// The next sequence number the sender expects; significant with [`Flags::ACK`].
    pub ack: Seq,
    /// Control bits.
    pub flags: Flags,
    /// The window field as sent, not scaled.
    pub window: u16,
    /// The urgent pointer; significant with [`Flags::URG`].
    pub urgent: u16,
    /// The options.
    pub options: Options,
}

impl TcpHeader {
    /// The length of the header that [`emit`](Self::emit) writes, in bytes: a multiple of four.
    /// Above `MAX_HEADER_LEN` the options do not fit and `emit` refuses them.
    #[inline]
    pub fn header_len(&self) -> usize {
        MIN_HEADER_LEN + self.options.encoded_len()
    }

    /// How many octets of sequence space a segment with this header and `payload_len` bytes of
    /// payload takes: SYN and FIN count for one each (SEG.LEN, RFC 9293 3.4).
    #[inline]
    pub fn segment_len(&self, payload_len: u32) -> u32 {
        payload_len
            .wrapping_add(u32::from(self.flags.contains(Flags::SYN)))
            .wrapping_add(u32::from(self.flags.contains(Flags::FIN)))
    }

    /// Writes the header with a checksum field of zero, and returns its length in bytes.
    ///
    /// Options come in the order and with the NOP alignment that RFC 7323 appendix A recommends and
    /// widespread stacks use; see [`Options::emit`].
    ///
    /// # Errors
    /// [`Error::TooLong`] if the options exceed 40 bytes, [`Error::BufferTooSmall`] if `out` is
    /// shorter than `header_len`.
    #[inline]
    pub fn emit(&self, out: &mut [u8]) -> Result<usize, Error> {
        let (fixed, rest) =
            out.split_first_chunk_mut::<MIN_HEADER_LEN>().ok_or(Error::BufferTooSmall)?;
        let len = MIN_HEADER_LEN + self.options.emit(rest)?;
        let offset_and_flags =
            (((len / 4) as u16) << 12) | (self.flags.bits() & Flags::all().bits());
        fixed[0..2].copy_from_slice(&self.src_port.to_be_bytes());
        fixed[2..4].copy_from_slice(&self.dst_port.to_be_bytes());
        fixed[4..8].copy_from_slice(&self.seq.get().to_be_bytes());
        fixed[8..12].copy_from_slice(&self.ack.get().to_be_bytes());
        fixed[12..14].copy_from_slice(&offset_and_flags.to_be_bytes());
        fixed[14..16].copy_from_slice(&self.window.to_be_bytes());
        fixed[16..18].copy_from_slice(&[0, 0]);
        fixed[18..20].copy_from_slice(&self.urgent.to_be_bytes());
        Ok(len)
    }
}

impl fmt::Display for TcpHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} > {} [", self.src_port, self.dst_port)?;
        bitflags::parser::to_writer(&self.flags, &mut *f)?;
        write!(f, "] seq {}", self.seq)?;
        if self.flags.contains(Flags::ACK) {
            write!(f, " ack {}", self.ack)?;
        }
        write!(f, " win {}", self.window)?;
        if self.flags.contains(Flags::URG) {
            write!(f, " urg {}", self.urgent)?;
        }
        write!(f, "{}", self.options)
    }
}

/// A received TCP segment whose lengths and options have been checked.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct TcpPacket<'a> {
    /// The header's fields and known options.
    pub header: TcpHeader,
    options: &'a [u8],
    /// The bytes after the header.
    pub payload: &'a [u8],
}

impl<'a> TcpPacket<'a> {
    /// Reads a segment: all of `bytes`, from the TCP header to the end of the payload.
    ///
    /// The checksum is not verified.
    ///
    /// # Errors
    /// [`Error::Truncated`] if `bytes` is shorter than the header, [`Error::BadHeaderLength`] for a
    /// data offset below five words, [`Error::BadOption`] for an option of illegal length.
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Error> {
        let (fixed, rest) = bytes.split_first_chunk::<MIN_HEADER_LEN>().ok_or(Error::Truncated)?;
        let options_len = (usize::from(fixed[12] >> 4) * 4)
            .checked_sub(MIN_HEADER_LEN)
            .ok_or(Error::BadHeaderLength)?;
        let (options, payload) = rest.split_at_checked(options_len).ok_or(Error::Truncated)?;
        // In the usual case the result is built in its place from values in registers; moving it there
        // would cost more than everything else.
        match Options::parse_usual(options) {
            Some(timestamps) => {
                let parsed = Options::only(timestamps);
                Ok(Self::assemble(fixed, parsed, options, payload))
            }
            None => Self::parse_unusual(fixed, options, payload),
        }
    }

    #[inline(never)]
    fn parse_unusual(
        fixed: &[u8; MIN_HEADER_LEN],
        options: &'a [u8],
        payload: &'a [u8],
    ) -> Result<Self, Error> {
        Ok(Self::assemble(fixed, Options::parse_each(options)?, options, payload))
    }

    #[inline(always)]
    fn assemble(
        fixed: &[u8; MIN_HEADER_LEN],
        parsed: Options,
        options: &'a [u8],
        payload: &'a [u8],
    ) -> Self {
        let &[s0, s1, d0, d1, q0, q1, q2, q3, a0, a1, a2, a3, o, f, w0, w1, _, _, u0, u1] = fixed;
        TcpPacket {
            header: TcpHeader {
                src_port: u16::from_be_bytes([s0, s1]),
                dst_port: u16::from_be_bytes([d0, d1]),
                seq: Seq::new(u32::from_be_bytes([q0, q1, q2, q3])),
                ack: Seq::new(u32::from_be_bytes([a0, a1, a2, a3])),
                flags: Flags::from_bits_truncate(u16::from_be_bytes([o, f])),
                window: u16::from_be_bytes([w0, w1]),
                urgent: u16::from_be_bytes([u0, u1]),
                options: parsed,
            },
            options,
            payload,
        }
    }

    /// The header's length in bytes as received, options and padding included.
    #[inline]
    pub fn header_len(&self) -> usize {
        MIN_HEADER_LEN + self.options.len()
    }
}

/// The part of a TCP header that every ICMP error quotes: ports and sequence number (RFC 792, RFC
/// 5927 4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct QuotedTcp {
    /// Source port of the segment the error is about.
    pub src_port: u16,
    /// Destination port of the segment the error is about.
    pub dst_port: u16,
    /// Its sequence number.
    pub seq: Seq,
}

impl QuotedTcp {
    /// Reads the first eight bytes of a quoted TCP header; more may follow.
    ///
    /// # Errors
    /// [`Error::Truncated`] with fewer than eight bytes.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        let (&[s0, s1, d0, d1, q0, q1, q2, q3], _) =
            bytes.split_first_chunk::<8>().ok_or(Error::Truncated)?;
        Ok(QuotedTcp {
            src_port: u16::from_be_bytes([s0, s1]),
            dst_port: u16::from_be_bytes([d0, d1]),
            seq: Seq::new(u32::from_be_bytes([q0, q1, q2, q3])),
        })
    }
}
