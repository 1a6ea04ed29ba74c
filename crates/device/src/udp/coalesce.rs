//! Datagrams that arrive together, put together.
//!
//! The kernel hands datagrams of one length that came in a row to us at once. When they carry successive segments of one flow, they become
//! one super-segment in place: the stack then does its work once for all of them.

use transom_wire::offload::{RxChecksum, RxOffload, SegmentKind, Segmentation};
use transom_wire::{Flags, IpPacket, Protocol, TcpPacket, checksum};

/// The longest packet that the length field of IPv4 can express (RFC 791 section 3.1).
const LONGEST: usize = 65_535;
/// Offsets of the total length and the header checksum of IPv4, and of the payload length of IPv6.
const V4_LENGTH: usize = 2;
const V4_CHECKSUM: usize = 10;
const V6_LENGTH: usize = 4;

/// The properties that a segment must share with the one before.
struct Segment {
    header_len: usize,
    tcp_at: usize,
    payload_len: usize,
    seq: u32,
    flags: Flags,
    kind: SegmentKind,
}

impl Segment {
    /// `None` for what is never put together.
    fn of(packet: &[u8]) -> Option<Segment> {
        let ip = IpPacket::parse(packet).ok()?;
        let (plain, kind) = match &ip {
            IpPacket::V4(_) => (ip.header_len() == 20, SegmentKind::Tcp4),
            IpPacket::V6(_) => (ip.header_len() == 40, SegmentKind::Tcp6),
        };
        let whole = ip.fragment().is_none() && ip.total_len() == packet.len();
        if !plain || !whole || ip.protocol() != Protocol::TCP {
            return None;
        }
        let tcp = TcpPacket::parse(ip.payload()).ok()?;
        let flags = tcp.header.flags;
        let ordinary = flags.contains(Flags::ACK)
            && !flags.intersects(Flags::SYN | Flags::RST | Flags::URG | Flags::CWR);
        let tcp_at = ip.header_len();
        let payload_len = tcp.payload.len();
        (ordinary && payload_len > 0).then(|| Segment {
            header_len: tcp_at + tcp.header_len(),
            tcp_at,
            payload_len,
            seq: tcp.header.seq.get(),
            flags,
            kind,
        })
    }

    /// Whether `next` goes on where `self` ends, and differs in nothing else that matters. `first` and `other` are the packets.
    fn is_followed_by(&self, next: &Segment, done: usize, first: &[u8], other: &[u8]) -> bool {
        let same = |from: usize, to: usize| first.get(from..to) == other.get(from..to);
        let ends = Flags::PSH | Flags::FIN;
        let ip_is_same = match self.kind {
            // But for lengths, identification and checksum.
            SegmentKind::Tcp4 => same(0, 2) && same(6, 10) && same(12, 20),
            SegmentKind::Tcp6 => same(0, 4) && same(6, 40),
        };
        self.kind == next.kind
            && self.header_len == next.header_len
            && next.payload_len <= self.payload_len
            && next.seq == self.seq.wrapping_add(done as u32)
            && self.flags - ends == next.flags - ends
            && ip_is_same
            // Ports; acknowledgement and data offset; window; options.
            && same(self.tcp_at, self.tcp_at + 4)
            && same(self.tcp_at + 8, self.tcp_at + 13)
            && same(self.tcp_at + 14, self.tcp_at + 16)
            && same(self.tcp_at + 20, self.header_len)
    }
}

/// Takes the first packet of `buffer`, whose packets lie at `front + n * stride` and are `stride - front` long, but for the last; `len` is
/// where they end. As many as possible of those behind it are put together with it, in place. Says where the packet ends, what it is, and how many
/// datagrams it was made of. `may_follow` says whether a datagram may be put behind the one before.
pub(super) fn take_first(
    buffer: &mut [u8],
    front: usize,
    stride: usize,
    len: usize,
    mut may_follow: impl FnMut(&[u8]) -> bool,
) -> (usize, RxOffload, usize) {
    let alone_end = stride.min(len);
    let alone = (alone_end, RxOffload { checksum: RxChecksum::Valid, segmentation: None }, 1);
    let Some(first) = buffer.get(front..alone_end).and_then(Segment::of) else { return alone };
    let (mut end, mut done, mut count, mut flags) = (alone_end, first.payload_len, 1, first.flags);
    let mut at = stride;
    while at < len && !flags.intersects(Flags::PSH | Flags::FIN) && stride > front {
        let next_end = (at + stride).min(len);
        let (before, datagram) = buffer.split_at_mut(at);
        let Some(datagram) = datagram.get(..next_end - at) else { break };
        if !may_follow(datagram) {
            break;
        }
        let Some(other) = datagram.get(front..) else { break };
        let Some(next) = Segment::of(other) else { break };
        let head = before.get(front..front + first.header_len).unwrap_or_default();
        let fits = end - front + next.payload_len <= LONGEST;
        // Behind a shorter one nothing is of the same flow's next full segment.
        let full = done == count * first.payload_len;
        if !fits || !full || !first.is_followed_by(&next, done, head, other) {
            break;
        }
        let payload = at + front + first.header_len..next_end;
        buffer.copy_within(payload, end);
        end += next.payload_len;
        done += next.payload_len;
        flags |= next.flags;
        count += 1;
        at += stride;
    }
    if count == 1 {
        return alone;
    }
    let packet = buffer.get_mut(front..end).unwrap_or_default();
    let (Some(()), Ok(segment_size), Ok(header_len)) = (
        finish(packet, &first, flags),
        u16::try_from(first.payload_len),
        u16::try_from(first.header_len),
    ) else {
        return alone;
    };
    let segmentation = Segmentation { kind: first.kind, segment_size, header_len };
    (end, RxOffload { checksum: RxChecksum::Valid, segmentation: Some(segmentation) }, count)
}

/// Writes the header of what was put together: its length, and the flags of its last segment.
fn finish(packet: &mut [u8], first: &Segment, flags: Flags) -> Option<()> {
    let length = packet.len();
    let store = |packet: &mut [u8], at: usize, value: u16| {
        packet.get_mut(at..at + 2)?.copy_from_slice(&value.to_be_bytes());
        Some(())
    };
    let load =
        |packet: &[u8], at: usize| Some(u16::from_be_bytes(*packet.get(at..)?.first_chunk()?));
    match first.kind {
        SegmentKind::Tcp4 => {
            let (old, new) = (load(packet, V4_LENGTH)?, u16::try_from(length).ok()?);
            let sum = checksum::update_u16(load(packet, V4_CHECKSUM)?, old, new);
            store(packet, V4_LENGTH, new)?;
            store(packet, V4_CHECKSUM, sum)?;
        }
        SegmentKind::Tcp6 => store(packet, V6_LENGTH, u16::try_from(length - 40).ok()?)?,
    }
    *packet.get_mut(first.tcp_at + 13)? |= (flags & (Flags::PSH | Flags::FIN)).bits() as u8;
    Some(())
}

#[cfg(test)]
mod tests;
