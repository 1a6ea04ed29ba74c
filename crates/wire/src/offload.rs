//! Work that a packet's sender has left to the device, and work the device has done.
//!
//! A stack may hand 64 KB at a time to a device, with one header in front and the checksum left
//! open. Then it works once per 64 KB instead of once per segment. The work that is left must
//! travel beside the packet: [`TxOffload`] on the way out, [`RxOffload`] on the way in. Both are
//! plain data. [`VirtioNetHdr`] is how they cross the border to a kernel; [`Segmenter`] and
//! [`complete_checksum`] do the same work in software, for a device without the offload and for
//! captures.

mod segmenter;
#[cfg(test)]
mod tests;
mod virtio;

pub use segmenter::{Segment, Segmenter};
pub use virtio::VirtioNetHdr;

use crate::checksum::{self, Sum};
use crate::ip::{IpPacket, Protocol};
use crate::{Error, UdpHeader, icmp, tcp};

/// The state of the transport checksum in a packet to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum TxChecksum {
    /// The checksum field is final.
    #[default]
    Complete,
    /// The device completes the checksum. The checksum field holds the folded, *not* complemented
    /// sum of the pseudo-header. The device sums from `start` to the end of the packet, field
    /// included, and stores the complement at `start + offset`.
    Partial {
        /// The start of the sum: the transport header's offset in the packet, in bytes.
        start: u16,
        /// The offset of the checksum field, in bytes from `start`.
        offset: u16,
    },
}

/// The protocols a super-segment can be of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SegmentKind {
    /// TCP over IPv4.
    Tcp4,
    /// TCP over IPv6.
    Tcp6,
}

/// A packet that stands for several segments of one flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Segmentation {
    /// The kind of packets to cut it into.
    pub kind: SegmentKind,
    /// Payload bytes in each segment but the last, which may have fewer.
    pub segment_size: u16,
    /// Bytes of IP and TCP header in front of the payload.
    pub header_len: u16,
}

/// The work that the device has to do before a packet is on the wire; the default is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct TxOffload {
    /// The transport checksum's state.
    pub checksum: TxChecksum,
    /// How to cut the packet into segments, if it is a super-segment.
    pub segmentation: Option<Segmentation>,
}

/// The state of the transport checksum of a received packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum RxChecksum {
    /// Nothing: the receiver must verify it.
    #[default]
    Unverified,
    /// The payload is as it was sent, and the checksum field must not be read. The device has
    /// verified it, or the packet never left the machine and the field was never completed.
    Valid,
}

/// The work that the device has done to a received packet; the default is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct RxOffload {
    /// The state of the transport checksum.
    pub checksum: RxChecksum,
    /// How the packet was put together, if it is a super-segment.
    pub segmentation: Option<Segmentation>,
}

/// Completes a partial checksum in place, as the device would have done.
///
/// # Errors
/// [`Error::BadOffload`] if the field is not inside the packet.
pub fn complete_checksum(packet: &mut [u8], checksum: TxChecksum) -> Result<(), Error> {
    let TxChecksum::Partial { start, offset } = checksum else { return Ok(()) };
    let summed = packet.get_mut(usize::from(start)..).ok_or(Error::BadOffload)?;
    let sum = Sum::of(summed);
    checksum::store(summed, usize::from(offset), transmitted(sum, usize::from(offset)))
        .map_err(|_| Error::BadOffload)
}

/// Computes a packet's transport checksum anew, whatever its field holds: for packets whose
/// checksum is known to be [`Valid`](RxChecksum::Valid) and need not be in the field.
///
/// TCP, UDP and ICMPv6 have one with a pseudo-header; any other protocol, fragments, and UDP over
/// IPv4 without a checksum are left alone.
///
/// # Errors
/// Those of [`IpPacket::parse`], and [`Error::Truncated`] if the transport header is incomplete.
pub fn recompute_checksum(packet: &mut [u8]) -> Result<(), Error> {
    let view = IpPacket::parse(packet)?;
    let (src, dst, protocol) = (view.src(), view.dst(), view.protocol());
    let range = view.header_len()..view.total_len();
    let Some(offset) = checksum_offset(&view) else { return Ok(()) };
    let transport = packet.get_mut(range).ok_or(Error::Truncated)?;
    checksum::fill(src, dst, protocol, transport, offset)
}

/// The offset of the checksum field in the payload of `packet`, in bytes from the payload's start, if it has one.
fn checksum_offset(packet: &IpPacket<'_>) -> Option<usize> {
    if packet.fragment().is_some() {
        return None;
    }
    match (packet.protocol(), packet) {
        (Protocol::TCP, _) => Some(tcp::CHECKSUM_OFFSET),
        (Protocol::UDP, IpPacket::V4(ip)) if ip.payload().get(6..8) == Some(&[0, 0]) => None,
        (Protocol::UDP, _) => Some(UdpHeader::CHECKSUM_OFFSET),
        (Protocol::ICMPV6, _) => Some(icmp::CHECKSUM_OFFSET),
        _ => None,
    }
}

/// The contents of the field, if the data (with the pseudo-header) sum to `sum`.
///
/// A UDP checksum is recognized by its place, as the kernel does not name the protocol either: a
/// zero would mean that there is none.
fn transmitted(sum: Sum, field_offset: usize) -> u16 {
    match sum.checksum() {
        0 if field_offset == UdpHeader::CHECKSUM_OFFSET => 0xffff,
        checksum => checksum,
    }
}
