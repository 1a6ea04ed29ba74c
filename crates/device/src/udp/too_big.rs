//! A router's message about a packet that is too long for the next link (RFC 1191 section 4, RFC 8201 section 4).
//!
//! A tunnel whose path takes less than before is such a router: its own stack is told, and sends shorter packets.

use transom_wire::offload::RxOffload;
use transom_wire::{IcmpMessage, IpPacket};

use crate::RxPacket;

/// The least MTU of a path of IPv6 (RFC 8200 section 5).
pub(super) const IPV6_LEAST: usize = 1280;

/// The error about `packet`, for its sender; `None` if there can be none.
pub(super) fn too_big(packet: &[u8], limit: usize) -> Option<RxPacket> {
    let ip = IpPacket::parse(packet).ok()?;
    // Nobody would act on less.
    if ip.src().is_ipv6() && limit < IPV6_LEAST {
        return None;
    }
    let message = IcmpMessage::PacketTooBig { mtu: u32::try_from(limit).ok()?, quoted: packet };
    let mut bytes = vec![0; message.packet_len(ip.dst())];
    let length = message.emit_packet(ip.dst(), ip.src(), &mut bytes).ok()?;
    Some(RxPacket { buffer: bytes.into(), range: 0..length, offload: RxOffload::default() })
}
