//! The TCP segment in a frame of a capture, also where the capture kept only its beginning.

use std::net::SocketAddr;

use transom_tcp::time::Instant;
use transom_wire::tcp::MIN_HEADER_LEN;
use transom_wire::{IpPacket, Protocol, TcpHeader, TcpPacket};

use crate::file::Frame;
use crate::link::{self, NoIp};

/// The longest IPv4 packet; nothing longer is read as one.
const LONGEST: usize = 65_535;

/// A TCP segment of a capture. Its checksum is not looked at: with offloads it is often still open.
#[derive(Clone, Copy, Debug)]
pub struct Segment {
    /// When it was captured, since 1970.
    pub at: Instant,
    /// From where.
    pub source: SocketAddr,
    /// To where.
    pub destination: SocketAddr,
    /// Its header. Options that the capture did not keep are missing in it.
    pub header: TcpHeader,
    /// How many bytes of data it carried, whether the capture kept them or not.
    pub length: u32,
    /// Whether the capture kept all of its options.
    pub has_options: bool,
}

/// Why a frame has no TCP segment that can be followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Skipped {
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
    ///
    /// # Errors
    /// Why there is none.
    pub fn of(frame: &Frame<'_>, scratch: &mut Vec<u8>) -> Result<Segment, Skipped> {
        let start = link::ip(frame.link, frame.bytes).map_err(|none| match none {
            NoIp::Other => Skipped::NotTcp,
            NoIp::Short => Skipped::Short,
            NoIp::Link => Skipped::Link(frame.link),
        })?;
        let bytes = frame.bytes.get(start..).ok_or(Skipped::Short)?;
        let original = (frame.original as usize).saturating_sub(start);
        let packet = whole(bytes, original, scratch)?;
        let packet = IpPacket::parse(packet).map_err(|_| Skipped::Malformed)?;
        if packet.protocol() != Protocol::TCP {
            return Err(Skipped::NotTcp);
        }
        if packet.fragment().is_some() {
            return Err(Skipped::Fragment);
        }
        let kept = bytes.len().saturating_sub(packet.header_len());
        if kept < MIN_HEADER_LEN {
            return Err(Skipped::Short);
        }
        let segment = TcpPacket::parse(packet.payload()).map_err(|_| Skipped::Malformed)?;
        let header = *segment.header();
        Ok(Segment {
            at: frame.at,
            source: SocketAddr::new(packet.src(), header.src_port),
            destination: SocketAddr::new(packet.dst(), header.dst_port),
            header,
            length: u32::try_from(segment.payload().len()).unwrap_or(u32::MAX),
            has_options: kept >= segment.header_len(),
        })
    }
}

/// The packet in the length that its header states. What the capture did not keep is zero: as options that is the end of their list.
///
/// A length of zero is that of a packet which the sender's device is to cut, or its receiver's has merged, and means the whole frame.
fn whole<'a>(
    bytes: &'a [u8],
    original: usize,
    scratch: &'a mut Vec<u8>,
) -> Result<&'a [u8], Skipped> {
    let number = |at: usize| {
        let bytes = bytes.get(at..).and_then(|bytes| bytes.first_chunk().copied());
        bytes.map(|bytes| usize::from(u16::from_be_bytes(bytes))).ok_or(Skipped::Short)
    };
    // Where the length stands, and how much it does not count.
    let (place, header) = match bytes.first().ok_or(Skipped::Short)? >> 4 {
        4 => (2, 0),
        6 => (4, 40),
        _ => return Err(Skipped::NotTcp),
    };
    let stated = number(place)?;
    let length = if stated == 0 { original.min(LONGEST) } else { header + stated };
    if stated != 0 && bytes.len() >= length {
        return Ok(bytes);
    }
    scratch.clear();
    scratch.extend_from_slice(bytes.get(..length).unwrap_or(bytes));
    scratch.resize(length, 0);
    let field = (length.saturating_sub(header) as u16).to_be_bytes();
    if let Some(there) = scratch.get_mut(place..place + 2) {
        there.copy_from_slice(&field);
    }
    Ok(scratch)
}
