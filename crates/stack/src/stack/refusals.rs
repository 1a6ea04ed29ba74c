//! Refusing a held SYN by an ICMP error: the error, and the packet that it quotes.

use super::{Reply, Stack};
use crate::incoming::{HeldSyn, Unreachable};
use alloc::vec;
use alloc::vec::Vec;
use core::net::IpAddr;
use transom_tcp::time::Instant;
use transom_wire::icmp::{self, IcmpMessage, UnreachableCode};
use transom_wire::icmpv6::{self, Icmpv6Message};
use transom_wire::ipv6::Ipv6Header;
use transom_wire::{Ipv4Header, Protocol, TcpHeader, checksum, tcp};

/// Headers without options of the IP layer, and the longest of TCP.
const MAX_QUOTE: usize = 40 + 60;

impl Unreachable {
    fn v4(self) -> UnreachableCode {
        match self {
            Unreachable::Network => UnreachableCode::Net,
            Unreachable::Host => UnreachableCode::Host,
            Unreachable::Port => UnreachableCode::Port,
            Unreachable::Prohibited => UnreachableCode::CommunicationProhibited,
        }
    }

    fn v6(self) -> icmpv6::UnreachableCode {
        match self {
            Unreachable::Network => icmpv6::UnreachableCode::NoRoute,
            Unreachable::Host => icmpv6::UnreachableCode::Address,
            Unreachable::Port => icmpv6::UnreachableCode::Port,
            Unreachable::Prohibited => icmpv6::UnreachableCode::Prohibited,
        }
    }
}

impl Stack {
    /// Sends the error within the budget.
    pub(super) fn refuse_by_icmp(&mut self, now: Instant, held: &HeldSyn, why: Unreachable) {
        if self.may_send_icmp_error(now)
            && let Some(packet) = error_about(held, why)
        {
            self.reply(Reply::Packet(packet));
        }
    }
}

/// The error, from the address that the peer wanted to reach.
fn error_about(held: &HeldSyn, why: Unreachable) -> Option<Vec<u8>> {
    let mut packet = vec![0; icmp::MAX_ERROR_LEN];
    let quoted = &quote(held)?;
    let len = match (held.key.local, held.key.remote) {
        (IpAddr::V4(local), IpAddr::V4(remote)) => {
            let message = IcmpMessage::Unreachable { code: why.v4(), quoted };
            let header = Ipv4Header::new(local, remote, Protocol::ICMP);
            icmp::emit_packet(&header, &message, &mut packet).ok()?
        }
        (IpAddr::V6(local), IpAddr::V6(remote)) => {
            let message = Icmpv6Message::Unreachable { code: why.v6(), quoted };
            let header = Ipv6Header::new(local, remote, Protocol::ICMPV6);
            icmpv6::emit_packet(&header, &message, &mut packet).ok()?
        }
        _ => return None,
    };
    packet.truncate(len);
    Some(packet)
}

/// The packet of the SYN, made again of what is known of it. A receiver finds its connection by addresses, ports and sequence number; those are the
/// same.
fn quote(held: &HeldSyn) -> Option<Vec<u8>> {
    let HeldSyn { key, syn, ecn, marks, .. } = held;
    let tcp_len = TcpHeader::header_len(syn);
    let traffic_class = marks.dscp << 2 | ecn.bits();
    let mut packet = vec![0; MAX_QUOTE];
    let ip_len = match (key.remote, key.local) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => Ipv4Header {
            traffic_class,
            ttl: marks.hop_limit,
            ..Ipv4Header::new(src, dst, Protocol::TCP)
        }
        .emit(tcp_len, &mut packet)
        .ok()?,
        (IpAddr::V6(src), IpAddr::V6(dst)) => Ipv6Header {
            traffic_class,
            hop_limit: marks.hop_limit,
            ..Ipv6Header::new(src, dst, Protocol::TCP)
        }
        .emit(tcp_len, &mut packet)
        .ok()?,
        _ => return None,
    };
    packet.truncate(ip_len + tcp_len);
    let segment = packet.get_mut(ip_len..)?;
    syn.emit(segment).ok()?;
    checksum::fill(key.remote, key.local, Protocol::TCP, segment, tcp::CHECKSUM_OFFSET).ok()?;
    Some(packet)
}
