//! A router's message about a packet that is too long for the next link (RFC 1191 section 4, RFC 8201 section 4).
//!
//! A tunnel whose path takes less than before is such a router: its own stack is told, and sends shorter packets.

use transom_base::packet::PacketBuf;
use transom_wire::icmp::{self, IcmpMessage, UnreachableCode};
use transom_wire::icmpv6::{self, Icmpv6Message};
use transom_wire::offload::RxOffload;
use transom_wire::{IpPacket, Ipv4Header, Ipv6Header, Protocol};

use crate::RxPacket;

/// Enough for either error with what it quotes.
const LONGEST_ERROR: usize = 1280;
/// The least MTU of a path of IPv6 (RFC 8200 section 5).
pub(super) const IPV6_LEAST: usize = 1280;

/// The error about `packet`, for its sender; `None` if there can be none.
pub(super) fn too_big(packet: &[u8], limit: usize) -> Option<RxPacket> {
    let mut bytes = vec![0; LONGEST_ERROR];
    let length = match IpPacket::parse(packet).ok()? {
        IpPacket::V4(v4) => {
            let next_hop_mtu = u16::try_from(limit).unwrap_or(u16::MAX);
            let code = UnreachableCode::FragmentationNeeded { next_hop_mtu };
            let message = IcmpMessage::Unreachable { code, quoted: packet };
            let header = Ipv4Header::new(v4.dst(), v4.src(), Protocol::ICMP);
            icmp::emit_packet(&header, &message, &mut bytes).ok()?
        }
        IpPacket::V6(v6) => {
            // Nobody would act on less.
            let mtu = u32::try_from(limit).ok().filter(|_| limit >= IPV6_LEAST)?;
            let message = Icmpv6Message::PacketTooBig { mtu, quoted: packet };
            let header = Ipv6Header::new(v6.dst(), v6.src(), Protocol::ICMPV6);
            icmpv6::emit_packet(&header, &message, &mut bytes).ok()?
        }
    };
    let buffer = PacketBuf::copy_of(bytes.get(..length)?);
    Some(RxPacket { buffer, range: 0..length, offload: RxOffload::default() })
}
