//! Answers that are no connection's: resets, other segments, and ICMP packets.

use super::Stack;
use super::transmit::IpFields;
use crate::flow::FlowKey;
use crate::fragments;
use alloc::vec::Vec;
use transom_tcp::time::Instant;
use transom_wire::{Ecn, TcpHeader};

/// Something to send that is not a connection's.
#[derive(Debug)]
pub(super) enum Reply {
    /// A TCP segment without payload, and its packet's codepoint.
    Segment(FlowKey, IpFields, TcpHeader, Ecn),
    /// A whole packet.
    Packet(Vec<u8>),
}

/// The most replies that may wait; more are dropped, because a peer can cause any number.
pub(super) const MAX_REPLIES: usize = 1024;

impl Stack {
    pub(super) fn reply(&mut self, reply: Reply) {
        if self.replies.len() < MAX_REPLIES {
            self.replies.push_back(reply);
        } else {
            self.counters.replies_dropped += 1;
        }
    }

    /// Sends a packet without options and extension headers, cut into fragments if it is too long for the interface or for what is known of its
    /// path.
    /// [RFC1122-3.3.3-3] [RFC8200-5-4]
    pub(crate) fn packet_reply(&mut self, now: Instant, packet: Vec<u8>) {
        let Ok(ip) = transom_wire::IpPacket::parse(&packet) else { return };
        let (local, remote) = (ip.src(), ip.dst());
        let key = FlowKey { local, remote, local_port: 0, remote_port: 0 };
        let path = self.path_mtus.get(remote, now).map_or(u32::MAX, |known| known.mtu);
        let mtu = self.mtu_from(&key).min(path) as usize;
        if packet.len() <= mtu || self.is_local(remote) {
            return self.reply(Reply::Packet(packet));
        }
        // [RFC8200-4.5-1]
        let id = self.idents.next(&self.secrets, &key);
        let pieces = fragments::cut(&packet, mtu, id).unwrap_or_default();
        // All of it or nothing: a part is of no use.
        if pieces.is_empty() || self.replies.len() + pieces.len() > MAX_REPLIES {
            self.counters.replies_dropped += 1;
            return;
        }
        self.replies.extend(pieces.into_iter().map(Reply::Packet));
    }
}
