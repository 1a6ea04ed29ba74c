//! The parts of a packet that window control reads, and the one that it writes.
//!
//! Every packet of a queue comes through here, so it is read in place and only as far as needed. The buffer may have only
//! its headers (from a capture or the simulator). A super-segment counts as one packet with its whole length. A packet
//! without a whole, unfragmented TCP header over IPv4 or IPv6 gives `None`, and passes unchanged.

use transom_wire::checksum::update_u16;
use transom_wire::tcp::{Flags, Options};
use transom_wire::{Protocol, Seq};

use super::cover::Cover;

/// Why a packet cannot be read as a TCP segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unreadable {
    /// It carries something else, or is no IP packet.
    NotTcp,
    /// It is truncated, a fragment, on its way to an intermediate host, or inconsistent. A fragment over IPv6 hides its protocol.
    Broken,
}

/// The contents of a packet's checksum field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ChecksumState {
    /// The checksum of the packet: it has to follow a change.
    #[default]
    Complete,
    /// Something that a device further on replaces, such as the sum of the pseudo-header alone. The window is not part of
    /// it, so it stays.
    ToBeMade,
}

/// The TCP header of a packet, as far as window control needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Source address; IPv4 addresses are mapped (RFC 4291 2.5.5.2).
    pub src: u128,
    /// Destination address.
    pub dst: u128,
    /// Source port.
    pub src_port: u16,
    /// Destination port.
    pub dst_port: u16,
    /// Sequence number.
    pub seq: Seq,
    /// Acknowledgement number; means nothing without [`Flags::ACK`].
    pub ack: Seq,
    /// Flags.
    pub flags: Flags,
    /// The window field, unscaled.
    pub window: u16,
    /// Octets behind the TCP header.
    pub payload: u32,
    /// The offset of the TCP header.
    at: u16,
}

/// Addresses that are IPv4 inside IPv6.
const MAPPED: u128 = 0xffff << 32;

const fn mapped(address: [u8; 4]) -> u128 {
    MAPPED | u32::from_be_bytes(address) as u128
}

const fn is_mapped(address: u128) -> bool {
    address >> 32 == MAPPED >> 32
}

const WINDOW: usize = 14;
const CHECKSUM: usize = 16;

impl Segment {
    /// Reads a packet that begins with its IP header and is `len` bytes long, of which at least the headers are in `bytes`.
    pub fn peek(bytes: &[u8], len: usize) -> Option<Segment> {
        Segment::read(bytes, len).ok()
    }

    /// The same, with the reason why not.
    pub(crate) fn read(bytes: &[u8], len: usize) -> Result<Segment, Unreadable> {
        let (src, dst, at, end) = match bytes.first().map(|first| first >> 4) {
            Some(4) => ipv4(bytes, len)?,
            Some(6) => ipv6(bytes, len)?,
            _ => return Err(Unreadable::NotTcp),
        };
        let tcp: &[u8; 20] = chunk(bytes, at)?;
        let word = |at: usize| u16::from_be_bytes([tcp[at], tcp[at + 1]]);
        let long = |at: usize| u32::from_be_bytes([tcp[at], tcp[at + 1], tcp[at + 2], tcp[at + 3]]);
        let header = usize::from(tcp[12] >> 4) * 4;
        if header < 20 || bytes.len() < at + header {
            return Err(Unreadable::Broken);
        }
        Ok(Segment {
            src,
            dst,
            src_port: word(0),
            dst_port: word(2),
            seq: Seq::new(long(4)),
            ack: Seq::new(long(8)),
            flags: Flags::from_bits_truncate(word(12) & 0x1ff),
            window: word(WINDOW),
            payload: end.checked_sub(at + header).ok_or(Unreadable::Broken)? as u32,
            at: at as u16,
        })
    }

    /// Whether this begins a connection.
    pub fn is_syn(&self) -> bool {
        self.flags.contains(Flags::SYN)
    }

    /// The options, if they can be read.
    pub fn options(&self, bytes: &[u8]) -> Option<Options> {
        Options::parse(self.raw_options(bytes)?).ok()
    }

    /// Whether its options cover its header.
    pub(crate) fn cover(&self, bytes: &[u8]) -> Cover {
        self.raw_options(bytes).map_or(Cover::Possible, Cover::of)
    }

    fn raw_options<'a>(&self, bytes: &'a [u8]) -> Option<&'a [u8]> {
        let tcp = bytes.get(self.at.into()..)?;
        let header = usize::from(tcp.get(12)? >> 4) * 4;
        tcp.get(20..header)
    }

    /// Writes another window into the packet that was read.
    pub(crate) fn set_window(&self, bytes: &mut [u8], window: u16, checksum: ChecksumState) {
        let at = usize::from(self.at);
        let Some(tcp) = bytes.get_mut(at..).and_then(|tcp| tcp.first_chunk_mut::<20>()) else {
            return;
        };
        tcp[WINDOW..CHECKSUM].copy_from_slice(&window.to_be_bytes());
        if checksum == ChecksumState::Complete {
            let sum = u16::from_be_bytes([tcp[CHECKSUM], tcp[CHECKSUM + 1]]);
            let sum = update_u16(sum, self.window, window);
            tcp[CHECKSUM..CHECKSUM + 2].copy_from_slice(&sum.to_be_bytes());
        }
    }
}

/// Addresses, where TCP begins and where the packet ends.
type Network = (u128, u128, usize, usize);

/// This many bytes from there on.
fn chunk<const N: usize>(bytes: &[u8], at: usize) -> Result<&[u8; N], Unreadable> {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).ok_or(Unreadable::Broken)
}

fn ipv4(bytes: &[u8], len: usize) -> Result<Network, Unreadable> {
    let ip: &[u8; 20] = chunk(bytes, 0)?;
    if Protocol(ip[9]) != Protocol::TCP {
        return Err(Unreadable::NotTcp);
    }
    let header = usize::from(ip[0] & 15) * 4;
    let total = usize::from(u16::from_be_bytes([ip[2], ip[3]]));
    // More fragments, or not the first one.
    let fragment = u16::from_be_bytes([ip[6], ip[7]]) & 0x3fff != 0;
    // A length of zero is that of a super-segment longer than the field can say.
    let end = if total == 0 { len } else { total };
    if header < 20 || fragment || end > len {
        return Err(Unreadable::Broken);
    }
    let src = mapped([ip[12], ip[13], ip[14], ip[15]]);
    let dst = mapped([ip[16], ip[17], ip[18], ip[19]]);
    Ok((src, dst, header, end))
}

fn ipv6(bytes: &[u8], len: usize) -> Result<Network, Unreadable> {
    let ip: &[u8; 40] = chunk(bytes, 0)?;
    let mut at = 40;
    let mut next = Protocol(ip[6]);
    // As many as this crate's neighbours accept. An authentication header is not among them: it covers the segment (RFC 4302).
    for number in 0..transom_wire::MAX_EXTENSION_HEADERS {
        match next {
            // Anywhere else it is not recognized (RFC 8200 4.1).
            Protocol::HOP_BY_HOP if number == 0 => {}
            Protocol::ROUTING | Protocol::DESTINATION_OPTIONS => {}
            _ => break,
        }
        let header: &[u8; 8] = chunk(bytes, at)?;
        // While segments are left, the destination is not the receiver (RFC 8200 4.4).
        if next == Protocol::ROUTING && header[3] > 0 {
            return Err(Unreadable::Broken);
        }
        next = Protocol(header[0]);
        at += (usize::from(header[1]) + 1) * 8;
    }
    match next {
        Protocol::TCP => {}
        Protocol::FRAGMENT => return Err(Unreadable::Broken),
        _ => return Err(Unreadable::NotTcp),
    }
    let payload = usize::from(u16::from_be_bytes([ip[4], ip[5]]));
    let end = if payload == 0 { len } else { 40 + payload };
    let src = u128::from_be_bytes(*chunk(ip, 8)?);
    let dst = u128::from_be_bytes(*chunk(ip, 24)?);
    // Mapped addresses are on no wire (RFC 4291 2.5.5.2), and here they would be taken for IPv4.
    if end > len || is_mapped(src) || is_mapped(dst) {
        return Err(Unreadable::Broken);
    }
    Ok((src, dst, at, end))
}
