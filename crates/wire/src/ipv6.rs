//! The IPv6 header (RFC 8200 3) and what follows it up to the transport packet.
//!
//! ```text
//! +-------+---------------+---------------------------------------+
//! |   6   | traffic class |              flow label               |
//! +-------+---------------+-------+---------------+---------------+
//! |        payload length         |  next header  |   hop limit   |
//! +-------------------------------+---------------+---------------+
//! |      source address, destination address (16 bytes each)      |
//! +---------------------------------------------------------------+
//! |          extension headers, transport packet                  |
//! ```
//!
//! Parsing walks the extension headers once, at most [`MAX_EXTENSION_HEADERS`] of them. It
//! remembers where the walk ended, and which byte named the header there, because an ICMPv6 error
//! has to point at that byte. A fragment ends the walk: what follows its header is a piece,
//! whatever protocol it is of. Jumbograms are not supported.

mod extensions;
#[cfg(test)]
mod tests;

pub use extensions::{ExtensionProblem, FragmentHeader, MAX_EXTENSION_HEADERS};

use crate::Error;
use crate::ip::{Protocol, QuotedPacket};
use core::net::Ipv6Addr;
use extensions::{ExtensionHeaderIter, Walk};

/// The fixed header's length in bytes.
const HEADER_LEN: usize = Ipv6Header::LEN;

/// A received IPv6 packet whose lengths have been checked.
#[derive(Clone, Copy, Debug)]
pub struct Ipv6Packet<'a> {
    fixed: &'a [u8; HEADER_LEN],
    extensions: &'a [u8],
    payload: &'a [u8],
    walk: Walk,
}

impl<'a> Ipv6Packet<'a> {
    /// Reads the packet at the start of `bytes`, which may be longer than the packet, and walks its
    /// extension headers. [`Error::Truncated`] also stands for an extension header that is longer than the packet.
    #[inline]
    pub(crate) fn parse(bytes: &'a [u8]) -> Result<Self, Error> {
        let (fixed, rest) = bytes.split_first_chunk::<HEADER_LEN>().ok_or(Error::Truncated)?;
        let payload_len = usize::from(u16::from_be_bytes([fixed[4], fixed[5]]));
        Self::read(fixed, rest.get(..payload_len).ok_or(Error::Truncated)?)
    }

    pub(crate) fn parse_quoted(bytes: &'a [u8]) -> Result<QuotedPacket<'a>, Error> {
        let (fixed, rest) = bytes.split_first_chunk::<HEADER_LEN>().ok_or(Error::Truncated)?;
        let packet = Self::read(fixed, rest)?;
        let later_piece = packet.fragment().is_some_and(|header| header.fragment.offset != 0);
        Ok(QuotedPacket {
            src: packet.src().into(),
            dst: packet.dst().into(),
            protocol: packet.protocol(),
            transport: if later_piece { &[] } else { packet.payload() },
        })
    }

    #[inline]
    fn read(fixed: &'a [u8; HEADER_LEN], rest: &'a [u8]) -> Result<Self, Error> {
        if fixed[0] >> 4 != 6 {
            return Err(Error::BadVersion);
        }
        let walk = Walk::over(Protocol(fixed[6]), rest)?;
        let (extensions, payload) =
            rest.split_at_checked(walk.extensions_len()).ok_or(Error::Truncated)?;
        Ok(Ipv6Packet { fixed, extensions, payload, walk })
    }

    /// Source address.
    #[inline]
    pub(crate) fn src(&self) -> Ipv6Addr {
        let (_, addresses) = self.fixed.split_at(8);
        addresses.first_chunk::<16>().map_or(Ipv6Addr::UNSPECIFIED, |a| Ipv6Addr::from(*a))
    }

    /// Destination address.
    #[inline]
    pub(crate) fn dst(&self) -> Ipv6Addr {
        self.fixed.last_chunk::<16>().map_or(Ipv6Addr::UNSPECIFIED, |a| Ipv6Addr::from(*a))
    }

    /// The protocol of the payload: the upper-layer protocol, or a header type that is not followed.
    #[inline]
    pub(crate) fn protocol(&self) -> Protocol {
        self.walk.protocol
    }

    /// The offset of the byte that names `protocol`, in bytes from the start of the
    /// packet: what an ICMPv6 *unrecognized next header* points at (RFC 4443 3.4).
    #[inline]
    pub fn protocol_offset(&self) -> usize {
        usize::from(self.walk.named_at)
    }

    /// The bytes behind all extension headers, up to the packet's end.
    #[inline]
    pub(crate) fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// The length of the fixed header and all extension headers, in bytes.
    #[inline]
    pub(crate) fn header_len(&self) -> usize {
        HEADER_LEN + self.extensions.len()
    }

    /// Hop limit.
    #[inline]
    pub(crate) fn hop_limit(&self) -> u8 {
        self.fixed[7]
    }

    /// DSCP (upper six bits) and ECN (lower two).
    #[inline]
    pub(crate) fn traffic_class(&self) -> u8 {
        self.fixed[0] << 4 | self.fixed[1] >> 4
    }

    /// The flow label, 20 bits (RFC 6437).
    #[inline]
    fn flow_label(&self) -> u32 {
        u32::from_be_bytes([0, self.fixed[1] & 15, self.fixed[2], self.fixed[3]])
    }

    /// The fragment header, unless there is none or the fragment is atomic (RFC 6946): offset 0 and
    /// no more to come.
    #[inline]
    pub fn fragment(&self) -> Option<FragmentHeader> {
        self.walk.fragment
    }

    /// The fixed header as a value; its next header is the first extension header's type if there
    /// is one.
    pub fn header(&self) -> Ipv6Header {
        Ipv6Header {
            src: self.src(),
            dst: self.dst(),
            traffic_class: self.traffic_class(),
            flow_label: self.flow_label(),
            next_header: Protocol(self.fixed[6]),
            hop_limit: self.hop_limit(),
        }
    }

    /// The extension headers that were walked, in order.
    pub(crate) fn extension_headers(&self) -> ExtensionHeaderIter<'a> {
        ExtensionHeaderIter::new(Protocol(self.fixed[6]), self.extensions)
    }

    /// The upper-layer protocol that the chain of headers leads to, and the bytes there are of it.
    /// The chain of a first fragment goes on behind its fragment header (RFC 7112 3).
    pub(crate) fn upper_layer(&self) -> Result<(Protocol, &'a [u8]), Error> {
        let Some(header) = self.fragment() else { return Ok((self.protocol(), self.payload)) };
        if header.fragment.offset != 0 {
            return Err(Error::Truncated);
        }
        let before = self.extension_headers().count();
        let walk = Walk::behind_fragment(&header, self.payload, before)?;
        if walk.fragment.is_some() {
            return Err(Error::Truncated);
        }
        let passed = walk.extensions_len().saturating_sub(self.extensions.len());
        Ok((walk.protocol, self.payload.get(passed..).ok_or(Error::Truncated)?))
    }

    /// Whether the packet ends before its chain of headers does. The first fragment of a packet must
    /// have all headers, the upper layer's included (RFC 8200 4.5; RFC 7112 5).
    pub fn header_chain_is_cut(&self) -> bool {
        match self.upper_layer() {
            Ok((protocol, bytes)) => bytes.len() < extensions::least_header(protocol),
            Err(error) => error == Error::Truncated,
        }
    }

    /// Whether the packet may be an ICMPv6 error or a redirect, as far as it tells: neither may be
    /// answered with an error (RFC 4443 2.4 (e.1), (e.2)).
    pub(crate) fn may_be_icmp_error(&self, is_error: impl Fn(u8) -> bool) -> bool {
        match (self.upper_layer(), self.fragment()) {
            (Ok((protocol, bytes)), _) => {
                protocol == Protocol::ICMPV6 && bytes.first().is_none_or(|kind| is_error(*kind))
            }
            // Of a later fragment, the fragment header says what the whole begins with.
            (Err(_), Some(header)) if header.fragment.offset != 0 => {
                header.next_header == Protocol::ICMPV6
                    || extensions::is_extension(header.next_header)
            }
            (Err(_), _) => true,
        }
    }

    /// The reason not to go on with the packet, if there is one. It is an option or a routing header
    /// that the destination does not understand and may not skip (RFC 8200 4.2, 4.4). An
    /// authentication header is one too, since nobody here can verify it.
    pub fn extension_problem(&self) -> Option<ExtensionProblem> {
        extensions::first_problem(self.extension_headers())
    }
}

/// A fixed IPv6 header as a value; the payload length is not part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv6Header {
    /// Source address.
    pub src: Ipv6Addr,
    /// Destination address.
    pub dst: Ipv6Addr,
    /// DSCP (upper six bits) and ECN (lower two).
    pub traffic_class: u8,
    /// Flow label; the lower 20 bits are sent.
    pub flow_label: u32,
    /// The type of the header behind the fixed one.
    pub next_header: Protocol,
    /// Hop limit.
    pub hop_limit: u8,
}

impl Ipv6Header {
    /// The header's length in bytes.
    pub const LEN: usize = 40;

    /// A header with a hop limit of 64, no flow label and no traffic class.
    pub const fn new(src: Ipv6Addr, dst: Ipv6Addr, next_header: Protocol) -> Self {
        Ipv6Header { src, dst, traffic_class: 0, flow_label: 0, next_header, hop_limit: 64 }
    }

    /// Writes the header of a packet with `payload_len` bytes behind the fixed header, extension
    /// headers included, and returns its length.
    ///
    /// # Errors
    /// [`Error::TooLong`] for a payload above 65,535 bytes, [`Error::BufferTooSmall`].
    #[inline]
    pub fn emit(&self, payload_len: usize, out: &mut [u8]) -> Result<usize, Error> {
        let payload_len = u16::try_from(payload_len).map_err(|_| Error::TooLong)?;
        let out = out.first_chunk_mut::<HEADER_LEN>().ok_or(Error::BufferTooSmall)?;
        let first_word =
            6 << 28 | u32::from(self.traffic_class) << 20 | self.flow_label & 0x000f_ffff;
        out[0..4].copy_from_slice(&first_word.to_be_bytes());
        out[4..6].copy_from_slice(&payload_len.to_be_bytes());
        out[6] = self.next_header.0;
        out[7] = self.hop_limit;
        out[8..24].copy_from_slice(&self.src.octets());
        out[24..40].copy_from_slice(&self.dst.octets());
        Ok(HEADER_LEN)
    }
}
