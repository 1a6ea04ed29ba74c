//! Reassembly of fragmented packets (RFC 791, RFC 815, RFC 8200 section 4.5), with hard bounds.
//!
//! Fragments are a common target of hostile input. So memory is bounded in bytes and in packets under reassembly.
//! An incomplete packet is dropped after a timeout, and the oldest makes room for a new one. A packet whose
//! fragments overlap is dropped whole (RFC 5722 for IPv6; honest senders never overlap them in IPv4 either).
//!
//! The caller answers: `Fragments::add` says what is wrong with a fragment, and `Fragments::expire` gives back the first fragment of a
//! packet whose time is over. `cut` is the other direction.

mod cut;

pub(crate) use cut::cut;

use alloc::vec::Vec;
use core::net::IpAddr;
use core::ops::Range;
use transom_tcp::time::{Duration, Instant};
use transom_wire::ip::set_ecn;
use transom_wire::{Ecn, FragmentHeader, IcmpMessage, IpPacket, Ipv6Packet};

/// The longest packet that the length fields can state.
// [RFC1122-3.3.2-2] [RFC1122-3.3.2-3] [RFC8200-5-5]
const MAX_PACKET: usize = 65_535;

/// Bounds on reassembly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FragmentLimits {
    /// Packets under reassembly.
    pub packets: usize,
    /// Bytes held for them in all.
    pub bytes: usize,
    /// Fragments of one packet.
    pub pieces: usize,
    /// How long an incomplete packet is kept: 60 s by default (RFC 8200, section 4.5; RFC 1122, section 3.3.2).
    // [RFC1122-3.3.2-6]
    pub lifetime: Duration,
}

transom_tcp::setters! {
    const FragmentLimits:
    with_packets = packets: usize,
    with_bytes = bytes: usize,
    with_pieces = pieces: usize,
    with_lifetime = lifetime: Duration,
}

impl Default for FragmentLimits {
    fn default() -> Self {
        FragmentLimits {
            packets: 64,
            bytes: 512 * 1024,
            pieces: 64,
            lifetime: Duration::from_secs(60),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Name {
    src: IpAddr,
    dst: IpAddr,
    id: u32,
    /// Only in IPv4: fragments of an IPv6 packet may differ in what they name as next header [RFC8200-4.5-5].
    protocol: Option<u8>,
}

/// The outcome of a fragment's arrival.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reassembly {
    /// Nothing yet, or nothing at all.
    Waiting,
    /// The whole packet: this fragment was the last that was missing.
    Whole(Vec<u8>),
    /// The fragment is wrong, and its sender is to be told with an ICMPv6 *parameter problem* (RFC 8200, section 4.5).
    Wrong {
        /// The code of that message.
        code: u8,
        /// The offset of the field that is wrong, in bytes from the start of the fragment's packet.
        pointer: u32,
    },
}

#[derive(Debug)]
struct Partial {
    name: Name,
    expires: Instant,
    /// The header of the first fragment, up to its payload.
    header: Vec<u8>,
    /// The place of the fragment header in that, if the packet is an IPv6 one.
    place: Option<FragmentHeader>,
    payload: Vec<u8>,
    /// The ECN codepoints of the fragments, a bit for each.
    codepoints: u8,
    /// The arrived ranges, sorted and disjoint.
    pieces: Vec<Range<usize>>,
    total: Option<usize>,
    /// Fragments overlapped: no more are accepted, and nothing is delivered.
    poisoned: bool,
}

/// Packets under reassembly.
#[derive(Debug)]
pub(crate) struct Fragments {
    limits: FragmentLimits,
    partial: Vec<Partial>,
    bytes: usize,
    /// Packets given up, for whatever reason.
    pub(crate) dropped: u64,
}

impl Fragments {
    /// None yet.
    pub(crate) fn new(limits: FragmentLimits) -> Self {
        Fragments { limits, partial: Vec::new(), bytes: 0, dropped: 0 }
    }

    /// When the oldest incomplete packet expires.
    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        self.partial.iter().map(|partial| partial.expires).min()
    }

    /// Forgets what has expired by `now`. Returns the first fragment of each such packet, as it arrived, if it did [RFC1122-3.3.2-5].
    pub(crate) fn expire(&mut self, now: Instant) -> Vec<Vec<u8>> {
        let mut first_fragments = Vec::new();
        while let Some(index) = self.partial.iter().position(|partial| partial.expires <= now) {
            let partial = self.forget(index);
            self.dropped += 1;
            first_fragments.extend(partial.first_fragment());
        }
        first_fragments
    }

    fn forget(&mut self, index: usize) -> Partial {
        let partial = self.partial.remove(index);
        self.bytes -= partial.payload.len() + partial.header.len();
        partial
    }

    /// Takes in a fragment. What has expired must be gone.
    pub(crate) fn add(&mut self, packet: &IpPacket<'_>, bytes: &[u8], now: Instant) -> Reassembly {
        let Some((name, header, place)) = head(packet, bytes) else { return Reassembly::Waiting };
        let Some(fragment) = packet.fragment() else { return Reassembly::Waiting };
        let payload = packet.payload();
        let start = usize::from(fragment.offset);
        let range = start..start + payload.len();
        if let IpPacket::V6(v6) = packet
            && let Some(wrong) = wrong(v6, &range)
        {
            self.dropped += 1;
            return wrong;
        }
        // In IPv4 nobody is told of these. A fragment of nothing is of no use.
        if payload.is_empty()
            || (fragment.more && !payload.len().is_multiple_of(8))
            || (place.is_none() && header.len() + range.end > MAX_PACKET)
        {
            self.dropped += 1;
            return Reassembly::Waiting;
        }
        let index = match self.partial.iter().position(|partial| partial.name == name) {
            Some(index) => index,
            None => {
                while self.partial.len() >= self.limits.packets.max(1) {
                    self.forget(0);
                    self.dropped += 1;
                }
                self.partial.push(Partial {
                    name,
                    expires: now + self.limits.lifetime,
                    header: Vec::new(),
                    place,
                    payload: Vec::new(),
                    codepoints: 0,
                    pieces: Vec::new(),
                    total: None,
                    poisoned: false,
                });
                self.partial.len() - 1
            }
        };
        if let Some(partial) = self.partial.get_mut(index) {
            partial.codepoints |= 1 << packet.ecn().bits();
        }
        if self.keep(index, (header, place), payload, range, fragment.more) {
            if let Some(whole) = self.forget(index).rebuild() {
                return Reassembly::Whole(whole);
            }
            self.dropped += 1;
            return Reassembly::Waiting;
        }
        // The oldest packets make room, in the end the one just served.
        while self.bytes > self.limits.bytes && !self.partial.is_empty() {
            self.forget(0);
            self.dropped += 1;
        }
        Reassembly::Waiting
    }

    /// Puts a fragment where it belongs and says whether its packet is complete.
    fn keep(
        &mut self,
        index: usize,
        (header, place): (&[u8], Option<FragmentHeader>),
        payload: &[u8],
        range: Range<usize>,
        more: bool,
    ) -> bool {
        let max_pieces = self.limits.pieces;
        let Some(partial) = self.partial.get_mut(index) else { return false };
        if partial.poisoned {
            return false;
        }
        if partial.pieces.contains(&range) && partial.payload.get(range.clone()) == Some(payload) {
            return false; // the same fragment twice is harmless [RFC8200-4.5-13]
        }
        let at = partial.pieces.partition_point(|piece| piece.start < range.start);
        let overlaps =
            at.checked_sub(1).is_some_and(|before| partial.pieces[before].end > range.start)
                || partial.pieces.get(at).is_some_and(|after| after.start < range.end);
        let beyond = partial.total.is_some_and(|total| range.end > total)
            || (!more && partial.pieces.last().is_some_and(|last| last.end > range.end))
            || (!more && partial.total.is_some_and(|total| total != range.end));
        // [RFC8200-4.5-12] dropped in silence, with the fragments that are still to come.
        if overlaps || beyond || partial.pieces.len() >= max_pieces {
            self.bytes -= partial.payload.len() + partial.header.len();
            partial.poisoned = true;
            partial.payload = Vec::new();
            partial.header = Vec::new();
            partial.pieces = Vec::new();
            return false;
        }
        if !more {
            partial.total = Some(range.end);
        }
        if range.start == 0 {
            // [RFC8200-4.5-6]
            partial.header = header.to_vec();
            partial.place = place;
            self.bytes += header.len();
        }
        if partial.payload.len() < range.end {
            self.bytes += range.end - partial.payload.len();
            partial.payload.resize(range.end, 0);
        }
        if let Some(place) = partial.payload.get_mut(range.clone()) {
            place.copy_from_slice(payload);
        }
        partial.pieces.insert(at, range);
        let Some(total) = partial.total else { return false };
        let mut covered = 0;
        for piece in &partial.pieces {
            if piece.start != covered {
                return false;
            }
            covered = piece.end;
        }
        covered == total && !partial.header.is_empty()
    }
}

impl Partial {
    /// The first fragment as it arrived.
    fn first_fragment(&self) -> Option<Vec<u8>> {
        let first = self.pieces.first().filter(|piece| piece.start == 0)?;
        Some([self.header.as_slice(), self.payload.get(first.clone())?].concat())
    }

    /// Puts the first fragment's header in front of the payload and makes it that of a whole packet. `None` if there can be no such packet.
    fn rebuild(self) -> Option<Vec<u8>> {
        let Partial { mut header, payload, place, codepoints, .. } = self;
        match place {
            None => {
                let total = u16::try_from(header.len() + payload.len()).ok()?;
                header.get_mut(2..4)?.copy_from_slice(&total.to_be_bytes());
                // No more fragments, offset zero.
                header.get_mut(6..8)?.copy_from_slice(&[0, 0]);
                header.get_mut(10..12)?.copy_from_slice(&[0, 0]);
                let sum = transom_wire::checksum::Sum::of(&header).checksum();
                header.get_mut(10..12)?.copy_from_slice(&sum.to_be_bytes());
            }
            // [RFC8200-4.5-7] What the first fragment names as next header is announced in the place of the fragment header, which goes.
            Some(FragmentHeader { next_header, offset, named_at, .. }) => {
                header.truncate(usize::from(offset));
                *header.get_mut(usize::from(named_at))? = next_header.0;
                let len = header.len().checked_sub(transom_wire::Ipv6Header::LEN)? + payload.len();
                let len = u16::try_from(len).ok()?;
                header.get_mut(4..6)?.copy_from_slice(&len.to_be_bytes());
            }
        }
        // [RFC8200-4.5-16] A mark on any fragment is one on the packet. Beside a fragment of a sender without ECN it is a fault or a forgery.
        let had = |ecn: Ecn| codepoints & (1 << ecn.bits()) != 0;
        if had(Ecn::Ce) {
            if had(Ecn::NotEct) {
                return None;
            }
            set_ecn(&mut header, Ecn::Ce).ok()?;
        }
        header.extend_from_slice(&payload);
        Some(header)
    }
}

/// The name of the packet that a fragment belongs to, its header, and in IPv6 the place of the fragment header.
fn head<'a>(
    packet: &IpPacket<'_>,
    bytes: &'a [u8],
) -> Option<(Name, &'a [u8], Option<FragmentHeader>)> {
    let (protocol, place) = match packet {
        IpPacket::V4(_) => (Some(packet.protocol().0), None),
        IpPacket::V6(v6) => (None, v6.fragment()),
    };
    let id = packet.fragment()?.id;
    let name = Name { src: packet.src(), dst: packet.dst(), id, protocol };
    Some((name, bytes.get(..packet.header_len())?, place))
}

/// What RFC 8200 section 4.5 wants the sender of an IPv6 fragment to be told, if anything.
fn wrong(packet: &Ipv6Packet<'_>, range: &Range<usize>) -> Option<Reassembly> {
    const PAYLOAD_LENGTH_OFFSET: u32 = 4;
    const OFFSET_IN_FRAGMENT_HEADER: u32 = 2;
    let header = packet.fragment()?;
    // [RFC8200-4.5-10] every fragment but the last carries a multiple of eight bytes.
    if header.fragment.more && !range.len().is_multiple_of(8) {
        return Some(Reassembly::Wrong {
            code: IcmpMessage::ERRONEOUS_FIELD,
            pointer: PAYLOAD_LENGTH_OFFSET,
        });
    }
    // [RFC8200-4.5-11] no payload is longer than its length field can state, other extension headers included.
    let others = usize::from(header.offset).saturating_sub(transom_wire::Ipv6Header::LEN);
    if others + range.end > MAX_PACKET {
        let pointer = u32::from(header.offset) + OFFSET_IN_FRAGMENT_HEADER;
        return Some(Reassembly::Wrong { code: IcmpMessage::ERRONEOUS_FIELD, pointer });
    }
    // [RFC8200-4.5-14] the first fragment has the whole chain of headers (RFC 7112).
    if header.fragment.offset == 0 && packet.header_chain_is_cut() {
        return Some(Reassembly::Wrong { code: IcmpMessage::INCOMPLETE_CHAIN, pointer: 0 });
    }
    None
}

#[cfg(test)]
#[path = "fragments/tests.rs"]
mod tests;
