//! Refusing a held SYN by an ICMP error: the error, and the packet that it quotes.

use super::{Reply, Stack};
use crate::icmp::packet;
use crate::incoming::{HeldSyn, Unreachable};
use alloc::vec;
use alloc::vec::Vec;
use transom_tcp::time::Instant;
use transom_wire::{IcmpMessage, IpHeader, Protocol, TcpHeader, UnreachableCode, checksum, tcp};

/// Headers without options of the IP layer, and the longest of TCP.
const MAX_QUOTE: usize = 40 + 60;

impl Unreachable {
    fn code(self) -> UnreachableCode {
        match self {
            Unreachable::Network => UnreachableCode::Net,
            Unreachable::Host => UnreachableCode::Host,
            Unreachable::Port => UnreachableCode::Port,
            Unreachable::Prohibited => UnreachableCode::CommunicationProhibited,
        }
    }
}

impl Stack {
    /// Sends the error within the budget, from the address that the peer wanted to reach.
    pub(super) fn refuse_by_icmp(&mut self, now: Instant, held: &HeldSyn, why: Unreachable) {
        if self.may_send_icmp_error(now)
            && let Some(quoted) = quote(held)
            && let message = (IcmpMessage::Unreachable { code: why.code(), quoted: &quoted })
            && let Some(packet) = packet(held.key.local, held.key.remote, &message)
        {
            self.reply(Reply::Packet(packet));
        }
    }
}

/// The packet of the SYN, made again of what is known of it. A receiver finds its connection by addresses, ports and sequence number; those are the
/// same.
fn quote(held: &HeldSyn) -> Option<Vec<u8>> {
    let HeldSyn { key, syn, ecn, marks, .. } = held;
    let tcp_len = TcpHeader::header_len(syn);
    let traffic_class = marks.dscp << 2 | ecn.bits();
    let mut packet = vec![0; MAX_QUOTE];
    let header = IpHeader::new(key.remote, key.local, Protocol::TCP);
    let header = IpHeader { traffic_class, hop_limit: marks.hop_limit, ..header };
    let ip_len = header.emit(tcp_len, &mut packet).ok()?;
    packet.truncate(ip_len + tcp_len);
    let segment = packet.get_mut(ip_len..)?;
    syn.emit(segment).ok()?;
    checksum::fill(key.remote, key.local, Protocol::TCP, segment, tcp::CHECKSUM_OFFSET).ok()?;
    Some(packet)
}
