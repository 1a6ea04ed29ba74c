//! The common part of IPv4 and IPv6: one view of a packet of either version.
//!
//! [`IpPacket::parse`] trims the packet to the length its header states (buffers may be longer), so
//! that the payload is exactly the transport packet. IPv6 extension headers are walked; `protocol`
//! and `payload` are those of the upper layer, or of the piece if the packet is a fragment.

#[cfg(test)]
mod tests;

use crate::checksum;
use crate::{Error, Ipv4Header, Ipv4Packet, Ipv6Header, Ipv6Packet};
use core::fmt;
use core::net::IpAddr;

/// An IP protocol number: IPv4's protocol field, IPv6's next-header field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Protocol(pub u8);

impl Protocol {
    /// IPv6 hop-by-hop options.
    pub const HOP_BY_HOP: Protocol = Protocol(0);
    /// ICMP for IPv4.
    pub const ICMP: Protocol = Protocol(1);
    /// TCP.
    pub const TCP: Protocol = Protocol(6);
    /// UDP.
    pub const UDP: Protocol = Protocol(17);
    /// IPv6 routing header.
    pub const ROUTING: Protocol = Protocol(43);
    /// IPv6 fragment header.
    pub const FRAGMENT: Protocol = Protocol(44);
    /// Authentication header.
    pub(crate) const AUTHENTICATION: Protocol = Protocol(51);
    /// ICMPv6.
    pub const ICMPV6: Protocol = Protocol(58);
    /// Nothing follows an IPv6 header.
    pub const NO_NEXT_HEADER: Protocol = Protocol(59);
    /// IPv6 destination options.
    pub const DESTINATION_OPTIONS: Protocol = Protocol(60);
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Protocol::ICMP => f.write_str("ICMP"),
            Protocol::TCP => f.write_str("TCP"),
            Protocol::UDP => f.write_str("UDP"),
            Protocol::ICMPV6 => f.write_str("ICMPv6"),
            Protocol(number) => write!(f, "protocol {number}"),
        }
    }
}

/// The two ECN bits of the IP header (RFC 3168 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Ecn {
    /// The transport does not take part in ECN.
    #[default]
    NotEct,
    /// ECN-capable, codepoint ECT(1).
    Ect1,
    /// ECN-capable, codepoint ECT(0).
    Ect0,
    /// Congestion experienced.
    Ce,
}

impl Ecn {
    /// The codepoint in the lower two bits of a traffic class.
    #[inline]
    pub const fn from_traffic_class(traffic_class: u8) -> Ecn {
        match traffic_class & 3 {
            0 => Ecn::NotEct,
            1 => Ecn::Ect1,
            2 => Ecn::Ect0,
            _ => Ecn::Ce,
        }
    }

    /// The codepoint's two bits.
    #[inline]
    pub const fn bits(self) -> u8 {
        match self {
            Ecn::NotEct => 0,
            Ecn::Ect1 => 1,
            Ecn::Ect0 => 2,
            Ecn::Ce => 3,
        }
    }
}

/// Which piece of a larger packet a fragment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fragment {
    /// The identification all fragments of a packet share; 16 bits in IPv4.
    pub id: u32,
    /// The offset of the piece in the original payload, in bytes; a multiple of eight.
    pub offset: u16,
    /// Whether more pieces follow. In a piece that is not the last, a length that is no multiple
    /// of eight is an error.
    pub more: bool,
}

/// A checked view of an IP packet of either version.
#[derive(Clone, Copy, Debug)]
pub enum IpPacket<'a> {
    /// An IPv4 packet.
    V4(Ipv4Packet<'a>),
    /// An IPv6 packet.
    V6(Ipv6Packet<'a>),
}

impl<'a> IpPacket<'a> {
    /// Reads the packet at the start of `bytes`, which may be longer than the packet.
    ///
    /// The IPv4 header checksum is not verified; see [`Ipv4Packet::checksum_ok`].
    ///
    /// # Errors
    /// [`Error::BadVersion`] unless the version is 4 or 6, [`Error::Truncated`] if a header or the
    /// packet is longer than `bytes`, [`Error::BadHeaderLength`] and [`Error::BadLength`] for lengths
    /// of IPv4 that contradict each other, [`Error::TooManyExtensionHeaders`].
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Error> {
        match bytes.first().ok_or(Error::Truncated)? >> 4 {
            4 => Ipv4Packet::parse(bytes).map(IpPacket::V4),
            6 => Ipv6Packet::parse(bytes).map(IpPacket::V6),
            _ => Err(Error::BadVersion),
        }
    }

    /// Source address.
    #[inline]
    pub fn src(&self) -> IpAddr {
        match self {
            IpPacket::V4(packet) => packet.src().into(),
            IpPacket::V6(packet) => packet.src().into(),
        }
    }

    /// Destination address.
    #[inline]
    pub fn dst(&self) -> IpAddr {
        match self {
            IpPacket::V4(packet) => packet.dst().into(),
            IpPacket::V6(packet) => packet.dst().into(),
        }
    }

    /// The protocol of the payload.
    #[inline]
    pub fn protocol(&self) -> Protocol {
        match self {
            IpPacket::V4(packet) => packet.protocol(),
            IpPacket::V6(packet) => packet.protocol(),
        }
    }

    /// The payload, behind all headers and options of the IP layer and without any bytes behind the
    /// packet.
    #[inline]
    pub fn payload(&self) -> &'a [u8] {
        match self {
            IpPacket::V4(packet) => packet.payload(),
            IpPacket::V6(packet) => packet.payload(),
        }
    }

    /// The bytes in front of the payload: options and extension headers included.
    #[inline]
    pub fn header_len(&self) -> usize {
        match self {
            IpPacket::V4(packet) => packet.header_len(),
            IpPacket::V6(packet) => packet.header_len(),
        }
    }

    /// The packet's length in bytes, headers included.
    #[inline]
    pub fn total_len(&self) -> usize {
        self.header_len() + self.payload().len()
    }

    /// Time to live, or hop limit.
    #[inline]
    pub fn hop_limit(&self) -> u8 {
        match self {
            IpPacket::V4(packet) => packet.ttl(),
            IpPacket::V6(packet) => packet.hop_limit(),
        }
    }

    /// DSCP (upper six bits) and ECN (lower two).
    #[inline]
    pub fn traffic_class(&self) -> u8 {
        match self {
            IpPacket::V4(packet) => packet.traffic_class(),
            IpPacket::V6(packet) => packet.traffic_class(),
        }
    }

    /// The ECN codepoint.
    #[inline]
    pub fn ecn(&self) -> Ecn {
        Ecn::from_traffic_class(self.traffic_class())
    }

    /// Which fragment the packet is; `None` for a whole packet, also one with a fragment header
    /// that says so (an atomic fragment, RFC 6946).
    #[inline]
    pub fn fragment(&self) -> Option<Fragment> {
        match self {
            IpPacket::V4(packet) => packet.fragment(),
            IpPacket::V6(packet) => packet.fragment().map(|header| header.fragment),
        }
    }

    /// Whether the payload's checksum with pseudo-header is right, for a TCP, UDP or ICMPv6
    /// payload.
    ///
    /// A UDP checksum of zero is not treated apart here.
    #[inline]
    pub fn transport_checksum_ok(&self) -> bool {
        checksum::verify(self.src(), self.dst(), self.protocol(), self.payload())
    }
}

/// The header of a packet of either version as a value, without options or extension headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpHeader {
    /// Source address.
    pub src: IpAddr,
    /// Destination address.
    pub dst: IpAddr,
    /// The protocol of the payload.
    pub protocol: Protocol,
    /// DSCP (upper six bits) and ECN (lower two).
    pub traffic_class: u8,
    /// Time to live, or hop limit.
    pub hop_limit: u8,
}

impl IpHeader {
    /// A header with a hop limit of 64 and no traffic class.
    pub const fn new(src: IpAddr, dst: IpAddr, protocol: Protocol) -> Self {
        IpHeader { src, dst, protocol, traffic_class: 0, hop_limit: 64 }
    }

    /// Writes the header of a packet with `payload_len` bytes of payload, and returns its length.
    ///
    /// # Errors
    /// [`Error::BadVersion`] if the addresses are not of one version; otherwise those of
    /// [`Ipv4Header::emit`] and [`Ipv6Header::emit`].
    #[inline]
    pub fn emit(&self, payload_len: usize, out: &mut [u8]) -> Result<usize, Error> {
        let &IpHeader { protocol, traffic_class, hop_limit, .. } = self;
        match (self.src, self.dst) {
            (IpAddr::V4(src), IpAddr::V4(dst)) => {
                let header = Ipv4Header::new(src, dst, protocol);
                Ipv4Header { traffic_class, ttl: hop_limit, ..header }.emit(payload_len, out)
            }
            (IpAddr::V6(src), IpAddr::V6(dst)) => {
                let header = Ipv6Header::new(src, dst, protocol);
                Ipv6Header { traffic_class, hop_limit, ..header }.emit(payload_len, out)
            }
            _ => Err(Error::BadVersion),
        }
    }
}

/// The quotation in an ICMP error of the packet it is about: the IP header and as much behind it as
/// fitted.
///
/// The lengths in the quoted header describe the original packet and are not checked against the
/// quote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuotedPacket<'a> {
    /// The original packet's source: this host, unless the error is forged or misdelivered.
    pub src: IpAddr,
    /// The original packet's destination.
    pub dst: IpAddr,
    /// The protocol of `transport`.
    pub protocol: Protocol,
    /// The beginning of the transport packet; empty if a fragment other than the first is quoted.
    pub transport: &'a [u8],
}

impl<'a> QuotedPacket<'a> {
    /// Reads the quote in an ICMP or ICMPv6 error.
    ///
    /// # Errors
    /// [`Error::Truncated`] if the quote ends within the IP header or an extension header,
    /// otherwise as [`IpPacket::parse`].
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Error> {
        match bytes.first().ok_or(Error::Truncated)? >> 4 {
            4 => Ipv4Packet::parse_quoted(bytes),
            6 => Ipv6Packet::parse_quoted(bytes),
            _ => Err(Error::BadVersion),
        }
    }
}

/// The ECN codepoint of an IP packet of which only the first two bytes are looked at. Bytes that are no IP packet have none.
pub fn peek_ecn(packet: &[u8]) -> Ecn {
    match *packet {
        [first, second, ..] if first >> 4 == 4 => Ecn::from_traffic_class(second),
        // The traffic class of IPv6 lies across the two bytes, the codepoint in the upper half of the second.
        [first, second, ..] if first >> 4 == 6 => Ecn::from_traffic_class(second >> 4),
        _ => Ecn::NotEct,
    }
}

/// Sets the ECN codepoint of a packet in place, as a router does to mark it, and corrects the IPv4
/// header checksum: by the difference, so that one that was wrong stays wrong.
///
/// # Errors
/// [`Error::Truncated`] or [`Error::BadVersion`] if there is no IP header at the start of `packet`.
pub fn set_ecn(packet: &mut [u8], ecn: Ecn) -> Result<(), Error> {
    match packet {
        [first, traffic_class, _, _, _, _, _, _, _, _, c0, c1, ..] if *first >> 4 == 4 => {
            if Ecn::from_traffic_class(*traffic_class) == ecn {
                return Ok(());
            }
            let old = u16::from_be_bytes([*first, *traffic_class]);
            *traffic_class = *traffic_class & !3 | ecn.bits();
            let new = u16::from_be_bytes([*first, *traffic_class]);
            let checksum = u16::from_be_bytes([*c0, *c1]);
            [*c0, *c1] = checksum::update_u16(checksum, old, new).to_be_bytes();
            Ok(())
        }
        [first, second, ..] if *first >> 4 == 6 => {
            *second = *second & !0x30 | ecn.bits() << 4;
            Ok(())
        }
        [first, _, ..] if *first >> 4 != 4 => Err(Error::BadVersion),
        _ => Err(Error::Truncated),
    }
}

/// Counts the hop limit of a packet down in place, as a router does, and corrects the IPv4 header
/// checksum as [`set_ecn`] does.
///
/// Returns the new value; a packet whose hop limit is 0 or becomes 0 must not be forwarded.
///
/// # Errors
/// [`Error::Truncated`] or [`Error::BadVersion`] if there is no IP header at the start of `packet`.
pub fn decrement_hop_limit(packet: &mut [u8]) -> Result<u8, Error> {
    match packet {
        [first, _, _, _, _, _, _, _, ttl, protocol, c0, c1, ..] if *first >> 4 == 4 => {
            let old = u16::from_be_bytes([*ttl, *protocol]);
            *ttl = ttl.saturating_sub(1);
            let new = u16::from_be_bytes([*ttl, *protocol]);
            let checksum = u16::from_be_bytes([*c0, *c1]);
            [*c0, *c1] = checksum::update_u16(checksum, old, new).to_be_bytes();
            Ok(*ttl)
        }
        [first, _, _, _, _, _, _, hop_limit, ..] if *first >> 4 == 6 => {
            *hop_limit = hop_limit.saturating_sub(1);
            Ok(*hop_limit)
        }
        [first, ..] if !matches!(*first >> 4, 4 | 6) => Err(Error::BadVersion),
        _ => Err(Error::Truncated),
    }
}
