//! The TCP segment in a frame of a capture, also where the capture kept only its beginning.

use std::net::SocketAddr;

use transom_tcp::time::Instant;
use transom_wire::tcp::{MAX_HEADER_LEN, MIN_HEADER_LEN};
use transom_wire::{IpPacket, Protocol, TcpHeader, TcpPacket};

use crate::file::Frame;
use crate::link::{self, NoIp};

/// The length of the fixed header of IPv6.
const IPV6_HEADER: usize = 40;
/// As far as headers are looked for: more than all extension headers that are followed.
const MOST_HEADERS: usize = 20_000;

/// A TCP segment of a capture. Its checksum is not looked at: with offloads it is often still open.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    /// When it was captured, since 1970.
    pub(crate) at: Instant,
    /// From where.
    pub(crate) source: SocketAddr,
    /// To where.
    pub(crate) destination: SocketAddr,
    /// Its header. Options that the capture did not keep are missing in it.
    pub(crate) header: TcpHeader,
    /// How many bytes of data it carried, whether the capture kept them or not.
    pub(crate) length: u32,
    /// Whether the capture kept all of its options.
    pub(crate) has_options: bool,
    /// Whether its IP header states a length beyond the end of the frame. [`length`](Self::length) ends with the frame.
    pub(crate) is_cut: bool,
}

/// Why a frame has no TCP segment that can be followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Skipped {
    /// It carries something else.
    NotTcp,
    /// It is a fragment of an IP packet.
    Fragment,
    /// The capture kept too little of it.
    Short,
    /// Its headers contradict themselves.
    Malformed,
    /// Its kind of link is not known here.
    Link(u16),
}

impl std::fmt::Display for Skipped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Skipped::NotTcp => f.write_str("carry something else than TCP"),
            Skipped::Fragment => f.write_str("are fragments of IP packets"),
            Skipped::Short => f.write_str("were cut before the end of the TCP header"),
            Skipped::Malformed => f.write_str("have headers that make no sense"),
            Skipped::Link(kind) => write!(f, "are of the link type {kind}, which is not known"),
        }
    }
}

impl Segment {
    /// Finds the segment. `scratch` is memory for packets that the capture did not keep whole.
    pub(crate) fn of(frame: &Frame<'_>, scratch: &mut Vec<u8>) -> Result<Segment, Skipped> {
        let start = link::ip(frame.link, frame.bytes).map_err(|none| match none {
            NoIp::Other => Skipped::NotTcp,
            NoIp::Short => Skipped::Short,
            NoIp::Link => Skipped::Link(frame.link),
        })?;
        let bytes = frame.bytes.get(start..).ok_or(Skipped::Short)?;
        let original = (frame.original as usize).saturating_sub(start);
        let Length { length, is_cut } = length(bytes, original)?;
        let packet = IpPacket::parse(headers(bytes, length, scratch)).map_err(|error| {
            // What is missing behind the kept bytes is the capture's doing.
            let is_short = error == transom_wire::Error::Truncated && bytes.len() < length;
            if is_short { Skipped::Short } else { Skipped::Malformed }
        })?;
        if packet.protocol() != Protocol::TCP {
            return Err(Skipped::NotTcp);
        }
        if packet.fragment().is_some() {
            return Err(Skipped::Fragment);
        }
        let kept = packet.payload();
        if kept.len() < MIN_HEADER_LEN {
            let is_short = length >= packet.header_len() + MIN_HEADER_LEN;
            return Err(if is_short { Skipped::Short } else { Skipped::Malformed });
        }
        // Options that were not kept are zero: that is the end of their list.
        let mut bytes = [0; MAX_HEADER_LEN];
        let among = kept.len().min(MAX_HEADER_LEN);
        if let (Some(there), Some(here)) = (bytes.get_mut(..among), kept.get(..among)) {
            there.copy_from_slice(here);
        }
        let header_len = usize::from(bytes[12] >> 4) * 4;
        let segment = bytes.get(..header_len).ok_or(Skipped::Malformed)?;
        let header = TcpPacket::parse(segment).map_err(|_| Skipped::Malformed)?.header;
        let data = length.checked_sub(packet.header_len() + header_len);
        let data = data.ok_or(Skipped::Malformed)?;
        Ok(Segment {
            at: frame.at,
            source: SocketAddr::new(packet.src(), header.src_port),
            destination: SocketAddr::new(packet.dst(), header.dst_port),
            header,
            length: u32::try_from(data).unwrap_or(u32::MAX),
            has_options: kept.len() >= header_len,
            is_cut,
        })
    }
}

/// The length of an IP packet.
struct Length {
    /// Bytes, with the IP header.
    length: usize,
    /// Whether its header states more than the frame had.
    is_cut: bool,
}

/// The length that the header states, as far as the frame can have had so much.
///
/// A length of zero is that of a packet which the sender's device is to cut, or its receiver's has merged. It means the whole frame, or what
/// the option for jumbograms says.
fn length(bytes: &[u8], original: usize) -> Result<Length, Skipped> {
    let number = |at: usize| {
        let bytes = bytes.get(at..).and_then(|bytes| bytes.first_chunk().copied());
        bytes.map(|bytes| usize::from(u16::from_be_bytes(bytes))).ok_or(Skipped::Short)
    };
    let stated = match bytes.first().ok_or(Skipped::Short)? >> 4 {
        4 => Some(number(2)?).filter(|length| *length > 0),
        6 => match number(4)? {
            0 => jumbo(bytes).map(|payload| IPV6_HEADER.saturating_add(payload)),
            payload => Some(IPV6_HEADER + payload),
        },
        _ => return Err(Skipped::NotTcp),
    };
    let original = original.max(bytes.len());
    let stated = stated.unwrap_or(original);
    Ok(Length { length: stated.min(original), is_cut: stated > original })
}

/// The payload's length of a jumbogram: the first hop-by-hop options have it (RFC 2675 section 2).
fn jumbo(bytes: &[u8]) -> Option<usize> {
    const HOP_BY_HOP: u8 = 0;
    const PAD: u8 = 0;
    const JUMBO: u8 = 0xc2;
    let (fixed, rest) = bytes.split_at_checked(IPV6_HEADER)?;
    if fixed.get(6) != Some(&HOP_BY_HOP) {
        return None;
    }
    let length = (usize::from(*rest.get(1)?) + 1) * 8;
    let mut options = rest.get(2..length)?;
    loop {
        options = match options {
            [PAD, rest @ ..] => rest,
            [JUMBO, 4, a, b, c, d, ..] => {
                return Some(u32::from_be_bytes([*a, *b, *c, *d]) as usize);
            }
            [_, length, rest @ ..] => rest.get(usize::from(*length)..)?,
            _ => return None,
        };
    }
}

/// The kept bytes of a packet of this length, as a packet that states no more than them.
fn headers<'a>(bytes: &'a [u8], length: usize, scratch: &'a mut Vec<u8>) -> &'a [u8] {
    let kept = bytes.get(..length).unwrap_or(bytes);
    // The length field, and how much it does not count.
    let (place, fixed) =
        if kept.first().is_some_and(|first| first >> 4 == 4) { (2, 0) } else { (4, IPV6_HEADER) };
    let kept = kept.get(..fixed + MOST_HEADERS).unwrap_or(kept);
    let field = (kept.len().saturating_sub(fixed) as u16).to_be_bytes();
    if kept.get(place..place + 2) == Some(&field) {
        return kept;
    }
    scratch.clear();
    scratch.extend_from_slice(kept);
    if let Some(there) = scratch.get_mut(place..place + 2) {
        there.copy_from_slice(&field);
    }
    scratch
}
