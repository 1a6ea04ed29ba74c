//! The IPv4 header (RFC 791 3.1).
//!
//! ```text
//! +-------+-------+---------------+-------------------------------+
//! |   4   |  IHL  |  DSCP   | ECN |         total length          |
//! +-------+-------+---------------+-----+-------------------------+
//! |        identification         |0 D M|     fragment offset     |
//! +---------------+---------------+-----+-------------------------+
//! | time to live  |   protocol    |        header checksum        |
//! +---------------+---------------+-------------------------------+
//! |            source address, destination address                |
//! +---------------------------------------------------------------+
//! |                     options (0–40 bytes)                      |
//! ```
//!
//! [`Ipv4Packet`] reads fields where they lie, those of both versions through
//! [`IpPacket`](crate::IpPacket); [`Ipv4Header`] is the value to build one from. Neither gives
//! options a meaning: they are kept.

#[cfg(test)]
mod tests;

use crate::Error;
use crate::checksum::Sum;
use crate::ip::{Fragment, Protocol, QuotedPacket};

use core::net::Ipv4Addr;

/// The header's length without options, in bytes.
const MIN_HEADER_LEN: usize = 20;
/// The longest header, in bytes.
const MAX_HEADER_LEN: usize = 60;

const DONT_FRAGMENT: u16 = 0x4000;
const MORE_FRAGMENTS: u16 = 0x2000;
const OFFSET_MASK: u16 = 0x1fff;

/// A received IPv4 packet whose lengths have been checked.
#[derive(Clone, Copy, Debug)]
pub struct Ipv4Packet<'a> {
    fixed: &'a [u8; MIN_HEADER_LEN],
    options: &'a [u8],
    payload: &'a [u8],
}

impl<'a> Ipv4Packet<'a> {
    /// Reads the packet at the start of `bytes`, which may be longer than the packet.
    ///
    /// The header checksum is not verified. [`Error::BadHeaderLength`] is for an IHL below five words,
    /// and [`Error::BadLength`] for a total length below the header's.
    #[inline]
    pub(crate) fn parse(bytes: &'a [u8]) -> Result<Self, Error> {
        let packet = Self::parse_header(bytes)?;
        let total_len = usize::from(u16::from_be_bytes([packet.fixed[2], packet.fixed[3]]));
        let payload_len = total_len.checked_sub(packet.header_len()).ok_or(Error::BadLength)?;
        let payload = packet.payload.get(..payload_len).ok_or(Error::Truncated)?;
        Ok(Ipv4Packet { payload, ..packet })
    }

    /// Reads the header, and takes all bytes behind it for the payload.
    #[inline]
    fn parse_header(bytes: &'a [u8]) -> Result<Self, Error> {
        let (fixed, rest) = bytes.split_first_chunk::<MIN_HEADER_LEN>().ok_or(Error::Truncated)?;
        if fixed[0] >> 4 != 4 {
            return Err(Error::BadVersion);
        }
        let header_len = usize::from(fixed[0] & 15) * 4;
        let options_len = header_len.checked_sub(MIN_HEADER_LEN).ok_or(Error::BadHeaderLength)?;
        // [MUST-50] Whatever the options are, the payload is behind them.
        let (options, payload) = rest.split_at_checked(options_len).ok_or(Error::Truncated)?;
        Ok(Ipv4Packet { fixed, options, payload })
    }

    pub(crate) fn parse_quoted(bytes: &'a [u8]) -> Result<QuotedPacket<'a>, Error> {
        let packet = Self::parse_header(bytes)?;
        let later_piece = packet.fragment().is_some_and(|fragment| fragment.offset != 0);
        Ok(QuotedPacket {
            src: packet.src().into(),
            dst: packet.dst().into(),
            protocol: packet.protocol(),
            transport: if later_piece { &[] } else { packet.payload },
        })
    }

    /// Source address.
    #[inline]
    pub(crate) fn src(&self) -> Ipv4Addr {
        let &[.., a, b, c, d, _, _, _, _] = self.fixed;
        Ipv4Addr::new(a, b, c, d)
    }

    /// Destination address.
    #[inline]
    pub(crate) fn dst(&self) -> Ipv4Addr {
        let &[.., a, b, c, d] = self.fixed;
        Ipv4Addr::new(a, b, c, d)
    }

    /// The protocol of the payload.
    #[inline]
    pub(crate) fn protocol(&self) -> Protocol {
        Protocol(self.fixed[9])
    }

    /// The bytes behind the header, up to the packet's end.
    /// [RFC1122-3.2.1.8-3] [RFC1122-3.2.1.8-6]
    #[inline]
    pub(crate) fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// The header's length in bytes, options included.
    #[inline]
    pub(crate) fn header_len(&self) -> usize {
        MIN_HEADER_LEN + self.options.len()
    }

    /// Time to live.
    #[inline]
    pub(crate) fn ttl(&self) -> u8 {
        self.fixed[8]
    }

    /// DSCP (upper six bits) and ECN (lower two).
    #[inline]
    pub(crate) fn traffic_class(&self) -> u8 {
        self.fixed[1]
    }

    /// The identification field.
    #[inline]
    pub(crate) fn id(&self) -> u16 {
        u16::from_be_bytes([self.fixed[4], self.fixed[5]])
    }

    /// Which fragment the packet is, if it is one.
    #[inline]
    pub(crate) fn fragment(&self) -> Option<Fragment> {
        let field = self.flags_and_offset();
        let offset = (field & OFFSET_MASK) * 8;
        let more = field & MORE_FRAGMENTS != 0;
        (more || offset != 0).then(|| Fragment { id: self.id().into(), offset, more })
    }

    /// Whether the header checksum is right. A host must silently discard the packet if not (RFC
    /// 1122 3.2.1.2).
    #[inline]
    pub fn checksum_ok(&self) -> bool {
        (Sum::of(self.fixed) + Sum::of(self.options)).is_valid()
    }

    /// The header as a value.
    pub fn header(&self) -> Ipv4Header {
        let field = self.flags_and_offset();
        Ipv4Header {
            src: self.src(),
            dst: self.dst(),
            traffic_class: self.traffic_class(),
            id: self.id(),
            dont_fragment: field & DONT_FRAGMENT != 0,
            more_fragments: field & MORE_FRAGMENTS != 0,
            fragment_offset: (field & OFFSET_MASK) * 8,
            ttl: self.ttl(),
            protocol: self.protocol(),
            options: Ipv4Options::new(self.options).unwrap_or(Ipv4Options::NONE),
        }
    }

    #[inline]
    fn flags_and_offset(&self) -> u16 {
        u16::from_be_bytes([self.fixed[6], self.fixed[7]])
    }
}

/// An IPv4 header as a value: every field except those that follow from the rest (lengths and
/// checksum).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv4Header {
    /// Source address.
    pub src: Ipv4Addr,
    /// Destination address.
    pub dst: Ipv4Addr,
    /// DSCP (upper six bits) and ECN (lower two).
    pub traffic_class: u8,
    /// Identification; only significant for packets that are or may be fragmented (RFC 6864).
    pub id: u16,
    /// Routers may not fragment the packet.
    pub dont_fragment: bool,
    /// The packet is a fragment and not the last.
    pub more_fragments: bool,
    /// The offset of the payload in the original packet, in bytes: a multiple of eight.
    pub fragment_offset: u16,
    /// Time to live.
    pub ttl: u8,
    /// The protocol of the payload.
    pub protocol: Protocol,
    /// The options.
    pub options: Ipv4Options,
}

impl Ipv4Header {
    /// A header for a packet that is not to be fragmented, with a time to live of 64 and no
    /// options.
    pub const fn new(src: Ipv4Addr, dst: Ipv4Addr, protocol: Protocol) -> Self {
        Ipv4Header {
            src,
            dst,
            traffic_class: 0,
            // [MAY-4] [RFC1122-3.2.1.5-1] RFC 6864 4.1: what is never fragmented needs no identification of its own.
            id: 0,
            dont_fragment: true,
            more_fragments: false,
            fragment_offset: 0,
            ttl: 64,
            protocol,
            options: Ipv4Options::NONE,
        }
    }

    /// Writes the header of a packet with `payload_len` bytes of payload, checksum included, and
    /// returns its length.
    ///
    /// # Errors
    /// [`Error::TooLong`] if the packet exceeds 65,535 bytes, [`Error::BadLength`] for a fragment
    /// offset that is no multiple of eight, [`Error::BufferTooSmall`].
    #[inline]
    pub fn emit(&self, payload_len: usize, out: &mut [u8]) -> Result<usize, Error> {
        let options = self.options.as_slice();
        let header_len = MIN_HEADER_LEN + options.len();
        let total_len = header_len.checked_add(payload_len).ok_or(Error::TooLong)?;
        let total_len = u16::try_from(total_len).map_err(|_| Error::TooLong)?;
        if !self.fragment_offset.is_multiple_of(8) {
            return Err(Error::BadLength);
        }
        let out = out.get_mut(..header_len).ok_or(Error::BufferTooSmall)?;
        let (fixed, rest) =
            out.split_first_chunk_mut::<MIN_HEADER_LEN>().ok_or(Error::BufferTooSmall)?;
        let flags_and_offset = (if self.dont_fragment { DONT_FRAGMENT } else { 0 })
            | (if self.more_fragments { MORE_FRAGMENTS } else { 0 })
            | (self.fragment_offset / 8);
        let version_and_class =
            0x4000 | ((header_len / 4) << 8) as u16 | u16::from(self.traffic_class);
        let ttl_and_protocol = u16::from_be_bytes([self.ttl, self.protocol.0]);
        let [[s0, s1], [d0, d1]] = [self.src, self.dst].map(|address| {
            let bits = address.to_bits();
            [(bits >> 16) as u16, bits as u16]
        });
        // Summed from the values: reading back what was just written would wait for the stores.
        let words = [version_and_class, total_len, self.id, flags_and_offset, ttl_and_protocol];
        let sum = Sum::of_words(words) + Sum::of_words([s0, s1, d0, d1]) + Sum::of(options);
        fixed[0..2].copy_from_slice(&version_and_class.to_be_bytes());
        fixed[2..4].copy_from_slice(&total_len.to_be_bytes());
        fixed[4..6].copy_from_slice(&self.id.to_be_bytes());
        fixed[6..8].copy_from_slice(&flags_and_offset.to_be_bytes());
        fixed[8..10].copy_from_slice(&ttl_and_protocol.to_be_bytes());
        fixed[10..12].copy_from_slice(&sum.checksum().to_be_bytes());
        fixed[12..16].copy_from_slice(&self.src.octets());
        fixed[16..20].copy_from_slice(&self.dst.octets());
        rest.copy_from_slice(options);
        Ok(header_len)
    }
}

/// Up to 40 bytes of IPv4 options, padded with zeros to a multiple of four.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ipv4Options {
    // Bytes beyond `len` stay zero, so that the derived comparison is right.
    bytes: [u8; MAX_HEADER_LEN - MIN_HEADER_LEN],
    len: u8,
}

impl Ipv4Options {
    /// No options.
    const NONE: Ipv4Options = Ipv4Options { bytes: [0; MAX_HEADER_LEN - MIN_HEADER_LEN], len: 0 };

    /// Options in wire format, which are not checked; `None` above 40 bytes.
    fn new(bytes: &[u8]) -> Option<Self> {
        let mut options = Self::NONE;
        options.bytes.get_mut(..bytes.len())?.copy_from_slice(bytes);
        options.len = u8::try_from(bytes.len().next_multiple_of(4)).ok()?;
        Some(options)
    }

    /// The options' bytes, padding included.
    #[inline]
    fn as_slice(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or_default()
    }
}
