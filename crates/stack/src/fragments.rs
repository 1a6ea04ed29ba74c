//! Reassembly of fragmented packets (RFC 791, RFC 815, RFC 8200 section 4.5), with hard bounds.
//!
//! Fragments are a common target of hostile input. So memory is bounded in bytes and in packets under reassembly.
//! An incomplete packet is dropped after a timeout, and the oldest makes room for a new one. A packet whose
//! fragments overlap is dropped whole (RFC 5722 for IPv6; honest senders never overlap them in IPv4 either).

use alloc::vec::Vec;
use core::net::IpAddr;
use core::ops::Range;
use transom_tcp::time::{Duration, Instant};
use transom_wire::IpPacket;

/// Bounds on reassembly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FragmentLimits {
    /// Packets under reassembly.
    pub packets: usize,
    /// Bytes held for them in all.
    pub bytes: usize,
    /// Fragments of one packet.
    pub pieces: usize,
    /// How long an incomplete packet is kept: 60 s by default (RFC 8200, section 4.5; RFC 1122, section 3.3.2).
    pub lifetime: Duration,
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
    protocol: u8,
}

#[derive(Debug)]
struct Partial {
    name: Name,
    expires: Instant,
    /// The header of the first fragment.
    header: Vec<u8>,
    payload: Vec<u8>,
    /// The arrived ranges, sorted and disjoint.
    pieces: Vec<Range<usize>>,
    total: Option<usize>,
    /// Fragments overlapped: no more are accepted, and nothing is delivered.
    poisoned: bool,
}

/// Packets under reassembly.
#[derive(Debug)]
pub struct Fragments {
    limits: FragmentLimits,
    partial: Vec<Partial>,
    bytes: usize,
    /// Packets given up, for whatever reason.
    pub dropped: u64,
}

impl Fragments {
    /// None yet.
    pub fn new(limits: FragmentLimits) -> Self {
        Fragments { limits, partial: Vec::new(), bytes: 0, dropped: 0 }
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// When the oldest incomplete packet expires.
    pub fn next_timeout(&self) -> Option<Instant> {
        self.partial.iter().map(|partial| partial.expires).min()
    }

    /// Forgets what has expired by `now`.
    pub fn expire(&mut self, now: Instant) {
        while let Some(index) = self.partial.iter().position(|partial| partial.expires <= now) {
            self.forget(index);
            self.dropped += 1;
        }
    }

    fn forget(&mut self, index: usize) -> Partial {
        let partial = self.partial.remove(index);
        self.bytes -= partial.payload.len() + partial.header.len();
        partial
    }

    /// Takes in a fragment; returns the whole packet if this completes it.
    pub fn add(&mut self, packet: &IpPacket<'_>, bytes: &[u8], now: Instant) -> Option<Vec<u8>> {
        self.expire(now);
        let fragment = packet.fragment()?;
        let (id, header) = match packet {
            IpPacket::V4(v4) => (u32::from(v4.id()), bytes.get(..v4.header_len())?),
            IpPacket::V6(v6) => (v6.fragment()?.fragment.id, bytes.get(..v6.header_len())?),
        };
        let name = Name { src: packet.src(), dst: packet.dst(), id, protocol: packet.protocol().0 };
        let payload = packet.payload();
        let start = usize::from(fragment.offset);
        let range = start..start + payload.len();
        // Every fragment but the last carries a multiple of eight bytes, and no packet is longer than 65,535.
        if payload.is_empty()
            || (fragment.more && !payload.len().is_multiple_of(8))
            || header.len() + range.end > 65_535
        {
            self.dropped += 1;
            return None;
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
                    payload: Vec::new(),
                    pieces: Vec::new(),
                    total: None,
                    poisoned: false,
                });
                self.partial.len() - 1
            }
        };
        if self.place(index, header, payload, range, fragment.more) {
            let partial = self.forget(index);
            return rebuild(partial.header, &partial.payload);
        }
        // The oldest packets make room, in the end the one just served.
        while self.bytes > self.limits.bytes && !self.partial.is_empty() {
            self.forget(0);
            self.dropped += 1;
        }
        None
    }

    /// Puts a fragment where it belongs and says whether its packet is complete.
    fn place(
        &mut self,
        index: usize,
        header: &[u8],
        payload: &[u8],
        range: Range<usize>,
        more: bool,
    ) -> bool {
        let max_pieces = self.limits.pieces;
        let Some(partial) = self.partial.get_mut(index) else { return false };
        if partial.poisoned {
            return false;
        }
        if partial.pieces.contains(&range) {
            return false; // the same fragment twice is harmless
        }
        let at = partial.pieces.partition_point(|piece| piece.start < range.start);
        let overlaps =
            at.checked_sub(1).is_some_and(|before| partial.pieces[before].end > range.start)
                || partial.pieces.get(at).is_some_and(|after| after.start < range.end);
        let beyond = partial.total.is_some_and(|total| range.end > total)
            || (!more && partial.pieces.last().is_some_and(|last| last.end > range.end))
            || (!more && partial.total.is_some_and(|total| total != range.end));
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
            partial.header = header.to_vec();
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

/// Puts the first fragment's header in front of the payload and makes it that of a whole packet.
fn rebuild(header: Vec<u8>, payload: &[u8]) -> Option<Vec<u8>> {
    let mut packet = header;
    match packet.first()? >> 4 {
        4 => {
            let total = u16::try_from(packet.len() + payload.len()).ok()?;
            packet.get_mut(2..4)?.copy_from_slice(&total.to_be_bytes());
            // No more fragments, offset zero.
            packet.get_mut(6..8)?.copy_from_slice(&[0, 0]);
            packet.get_mut(10..12)?.copy_from_slice(&[0, 0]);
            let sum = transom_wire::checksum::Sum::of(&packet).checksum();
            packet.get_mut(10..12)?.copy_from_slice(&sum.to_be_bytes());
        }
        _ => {
            // The fragment header stays and says what it now is: an atomic fragment (RFC 6946).
            let len = u16::try_from(packet.len().checked_sub(40)? + payload.len()).ok()?;
            packet.get_mut(4..6)?.copy_from_slice(&len.to_be_bytes());
            let offset = fragment_header(&packet)?;
            packet.get_mut(offset + 2..offset + 4)?.copy_from_slice(&[0, 0]);
        }
    }
    packet.extend_from_slice(payload);
    Some(packet)
}

/// The offset of the IPv6 fragment header.
fn fragment_header(packet: &[u8]) -> Option<usize> {
    let mut next = *packet.get(6)?;
    let mut at = 40;
    for _ in 0..16 {
        if next == 44 {
            return Some(at);
        }
        let len = usize::from(*packet.get(at + 1)?);
        next = *packet.get(at)?;
        at += (len + 1) * 8;
    }
    None
}

#[cfg(test)]
#[path = "fragments/tests.rs"]
mod tests;
