//! Which packets may be answered with an error.

use super::IcmpMessage;
use crate::ip::{IpPacket, Protocol};
use crate::{Ipv4Packet, Ipv6Packet};
use core::net::Ipv4Addr;

impl IcmpMessage<'_> {
    /// Whether this error may answer `packet` (RFC 1122 3.2.2; RFC 4443 2.4 (e)). It may not if that
    /// is itself an error or a redirect, or not from one host. Only a few errors are about packets
    /// to many hosts, or about fragments other than the first.
    ///
    /// Directed broadcasts are the caller's to know.
    pub fn may_answer(&self, packet: &IpPacket<'_>) -> bool {
        match packet {
            IpPacket::V4(packet) => may_answer_v4(packet),
            IpPacket::V6(packet) => may_answer_v6(packet, self),
        }
    }
}

/// Not if the packet was sent to a multicast or broadcast address, or from an address that is not
/// a single host's, and no fragment but the first.
fn may_answer_v4(packet: &Ipv4Packet<'_>) -> bool {
    let (src, dst) = (packet.src(), packet.dst());
    let class_e = |address: Ipv4Addr| address.octets()[0] >= 240;
    let source_is_one_host = !(src.is_multicast()
        || class_e(src)
        || src.octets()[0] == 0
        || (src.is_loopback() && !dst.is_loopback()));
    let destination_is_one_host = !(dst.is_multicast() || dst.is_broadcast());
    let is_later_piece = packet.fragment().is_some_and(|fragment| fragment.offset != 0);
    source_is_one_host && destination_is_one_host && !is_later_piece && !carries_error(packet)
}

/// Whether the payload is an ICMP error, or cannot be told not to be one.
fn carries_error(packet: &Ipv4Packet<'_>) -> bool {
    const INFORMATIONAL: [u8; 11] = [0, 8, 9, 10, 13, 14, 15, 16, 17, 18, 30];
    packet.protocol() == Protocol::ICMP
        && !packet.payload().first().is_some_and(|kind| INFORMATIONAL.contains(kind))
}

/// A packet to a multicast address may only get *packet too big* or *unrecognized option*. A
/// fragment other than the first only gets the errors about fields of that fragment (RFC 8200 4.5).
///
/// A packet that cannot be told not to be an error gets none, except the one which says that its
/// chain of headers is cut (RFC 7112 5).
/// [RFC4443-2.1-1]
fn may_answer_v6(packet: &Ipv6Packet<'_>, error: &IcmpMessage<'_>) -> bool {
    const REDIRECT: u8 = 137;
    let about =
        |wanted| matches!(error, IcmpMessage::ParameterProblem { code, .. } if *code == wanted);
    let also_about_multicast = matches!(error, IcmpMessage::PacketTooBig { .. })
        || about(IcmpMessage::UNRECOGNIZED_OPTION);
    let source_is_one_node = !(packet.src().is_unspecified() || packet.src().is_multicast());
    let destination_allows = also_about_multicast || !packet.dst().is_multicast();
    let is_later_piece = packet.fragment().is_some_and(|header| header.fragment.offset != 0);
    let chain_may_hide_it = about(IcmpMessage::INCOMPLETE_CHAIN) && packet.upper_layer().is_err();
    let carries_no_error =
        chain_may_hide_it || !packet.may_be_icmp_error(|kind| kind < 128 || kind == REDIRECT);
    source_is_one_node
        && destination_allows
        && (!is_later_piece || about(IcmpMessage::ERRONEOUS_FIELD))
        && carries_no_error
}
