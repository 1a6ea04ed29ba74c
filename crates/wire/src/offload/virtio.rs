//! The virtio network header: offload states as a TUN device or a hypervisor understands them.
//!
//! It precedes each packet (virtio 1.2, 5.1.6; Linux `IFF_VNET_HDR`, in its ten-byte form without a
//! buffer count). All fields are little-endian. Both sides must distrust it: what a header claims
//! is checked against the packet it came with before anything relies on it. `hdr_len` is only a
//! hint (virtio 1.2, 5.1.6.4.2): a kernel states how much of the packet lies in its first buffer.
//! So the length of the headers is read from the headers.

use super::{RxChecksum, RxOffload, SegmentKind, Segmentation, TxChecksum, TxOffload};
use crate::tcp::{self, Flags};
use crate::{Error, IpPacket, Protocol};

/// The header as it precedes a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub struct VirtioNetHdr {
    /// [`NEEDS_CSUM`](Self::NEEDS_CSUM), `DATA_VALID`.
    pub flags: u8,
    /// The kind of super-segment, and `GSO_ECN`.
    pub gso_type: u8,
    /// The length of the headers in bytes; a hint.
    pub hdr_len: u16,
    /// Payload bytes per segment.
    pub gso_size: u16,
    /// The start of the checksum's sum, in bytes from the start of the packet.
    pub csum_start: u16,
    /// The offset of the checksum field, in bytes from `csum_start`.
    pub csum_offset: u16,
}

impl VirtioNetHdr {
    /// The header's length in bytes.
    pub const LEN: usize = 10;

    /// Flag: the checksum is partial, `csum_start` and `csum_offset` say where.
    pub const NEEDS_CSUM: u8 = 1;
    /// Flag: the checksum has been verified.
    pub(crate) const DATA_VALID: u8 = 2;

    /// Not a super-segment.
    const GSO_NONE: u8 = 0;
    /// A super-segment of TCP over IPv4.
    const GSO_TCPV4: u8 = 1;
    /// A super-segment of TCP over IPv6.
    const GSO_TCPV6: u8 = 4;
    /// Added to the kind: the TCP header has CWR set, which belongs to the first segment alone.
    const GSO_ECN: u8 = 0x80;

    /// The header's bytes.
    #[inline]
    pub const fn encode(self) -> [u8; Self::LEN] {
        let [l0, l1] = self.hdr_len.to_le_bytes();
        let [g0, g1] = self.gso_size.to_le_bytes();
        let [s0, s1] = self.csum_start.to_le_bytes();
        let [o0, o1] = self.csum_offset.to_le_bytes();
        [self.flags, self.gso_type, l0, l1, g0, g1, s0, s1, o0, o1]
    }

    /// Reads the header at the start of `bytes`; nothing is checked but the length.
    ///
    /// # Errors
    /// [`Error::Truncated`].
    #[inline]
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let &[flags, gso_type, l0, l1, g0, g1, s0, s1, o0, o1] =
            bytes.first_chunk::<{ Self::LEN }>().ok_or(Error::Truncated)?;
        Ok(VirtioNetHdr {
            flags,
            gso_type,
            hdr_len: u16::from_le_bytes([l0, l1]),
            gso_size: u16::from_le_bytes([g0, g1]),
            csum_start: u16::from_le_bytes([s0, s1]),
            csum_offset: u16::from_le_bytes([o0, o1]),
        })
    }

    /// The header for a packet to be sent, which begins with `headers` and is `packet_len` bytes
    /// long.
    ///
    /// `headers` must reach to the end of the TCP header for a super-segment; of others nothing is
    /// read.
    ///
    /// # Errors
    /// [`Error::BadOffload`] if the request is impossible for the packet: the checksum field or the
    /// headers outside it, segments of no payload, a super-segment whose checksum is complete
    /// (it could not be right for the parts).
    #[inline]
    pub fn for_packet(
        offload: &TxOffload,
        headers: &[u8],
        packet_len: usize,
    ) -> Result<Self, Error> {
        let TxOffload { checksum, segmentation } = *offload;
        let mut header = VirtioNetHdr::default();
        if let TxChecksum::Partial { start, offset } = checksum {
            check_field(start, offset, packet_len)?;
            header.flags = Self::NEEDS_CSUM;
            header.csum_start = start;
            header.csum_offset = offset;
        }
        if let Some(Segmentation { kind, segment_size, header_len }) = segmentation {
            let TxChecksum::Partial { start, offset } = checksum else {
                return Err(Error::BadOffload);
            };
            let tcp_flags = headers.get(usize::from(start) + 13).ok_or(Error::BadOffload)?;
            let headers_fit = usize::from(offset) == tcp::CHECKSUM_OFFSET
                && usize::from(header_len) >= usize::from(start) + tcp::MIN_HEADER_LEN
                && usize::from(header_len) <= packet_len;
            if !headers_fit || segment_size == 0 {
                return Err(Error::BadOffload);
            }
            header.gso_type = match kind {
                SegmentKind::Tcp4 => Self::GSO_TCPV4,
                SegmentKind::Tcp6 => Self::GSO_TCPV6,
            };
            if Flags::from_bits_truncate(u16::from(*tcp_flags)).contains(Flags::CWR) {
                header.gso_type |= Self::GSO_ECN;
            }
            header.gso_size = segment_size;
            header.hdr_len = header_len;
        }
        Ok(header)
    }

    /// The state of a received packet by the header, once it has been checked against it.
    ///
    /// A partial checksum counts as valid: such a packet has not left the machine. A super-segment
    /// that is no longer than one segment is reported as an ordinary packet.
    ///
    /// # Errors
    /// [`Error::BadOffload`] if the checksum's place is outside the packet, or the packet is not
    /// what its kind of super-segment says, or the kind is not supported.
    #[inline]
    pub fn rx_offload(&self, packet: &[u8]) -> Result<RxOffload, Error> {
        if self.flags & Self::NEEDS_CSUM != 0 {
            check_field(self.csum_start, self.csum_offset, packet.len())?;
        }
        let claimed = self.claimed_offload(0)?;
        let Some(claim) = claimed.segmentation else { return Ok(claimed) };
        let (header_len, payload_len) = super_segment(claim.kind, packet)?;
        let header_len = u16::try_from(header_len).map_err(|_| Error::BadOffload)?;
        let is_several = payload_len > usize::from(claim.segment_size);
        let segmentation = is_several.then_some(Segmentation { header_len, ..claim });
        Ok(RxOffload { segmentation, ..claimed })
    }

    /// The header's claims about a packet whose own headers (`header_len` bytes) the caller has not checked yet. For
    /// callers that compare the packet with what they expect before they believe it.
    ///
    /// # Errors
    /// [`Error::BadOffload`] for a kind of super-segment that is not supported, or segments of no size.
    #[inline]
    pub fn claimed_offload(&self, header_len: u16) -> Result<RxOffload, Error> {
        let vouched = self.flags & (Self::NEEDS_CSUM | Self::DATA_VALID) != 0;
        let checksum = if vouched { RxChecksum::Valid } else { RxChecksum::Unverified };
        let kind = match self.gso_type & !Self::GSO_ECN {
            Self::GSO_NONE => return Ok(RxOffload { checksum, segmentation: None }),
            Self::GSO_TCPV4 => SegmentKind::Tcp4,
            Self::GSO_TCPV6 => SegmentKind::Tcp6,
            _ => return Err(Error::BadOffload),
        };
        if self.gso_size == 0 {
            return Err(Error::BadOffload);
        }
        let segmentation = Segmentation { kind, segment_size: self.gso_size, header_len };
        Ok(RxOffload { checksum, segmentation: Some(segmentation) })
    }
}

/// Whether a partial checksum's field lies inside the packet.
#[inline]
fn check_field(start: u16, offset: u16, packet_len: usize) -> Result<(), Error> {
    if usize::from(start) + usize::from(offset) + 2 > packet_len {
        return Err(Error::BadOffload);
    }
    Ok(())
}

/// The lengths of headers and payload of a whole TCP packet of the version that `kind` says.
#[inline]
fn super_segment(kind: SegmentKind, packet: &[u8]) -> Result<(usize, usize), Error> {
    let ip = IpPacket::parse(packet).map_err(|_| Error::BadOffload)?;
    let version_fits = matches!(
        (kind, &ip),
        (SegmentKind::Tcp4, IpPacket::V4(_)) | (SegmentKind::Tcp6, IpPacket::V6(_))
    );
    if !version_fits || ip.protocol() != Protocol::TCP || ip.fragment().is_some() {
        return Err(Error::BadOffload);
    }
    // Only the length: what else is in the TCP header is for the receiver to judge.
    let offset_byte = ip.payload().get(12).ok_or(Error::BadOffload)?;
    let tcp_len = usize::from(offset_byte >> 4) * 4;
    let payload_len = ip.payload().len().checked_sub(tcp_len).ok_or(Error::BadOffload)?;
    if tcp_len < tcp::MIN_HEADER_LEN {
        return Err(Error::BadOffload);
    }
    Ok((ip.header_len() + tcp_len, payload_len))
}
