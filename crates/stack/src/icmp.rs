//! ICMP and ICMPv6 at a host: echo, and errors about our segments. Errors that we send (`icmp_errors.rs`) have a module of their own.

use crate::flow::FlowKey;
use crate::stack::Stack;
use alloc::vec;
use alloc::vec::Vec;
use core::net::IpAddr;
use transom_tcp::IcmpError;
use transom_tcp::time::Instant;
use transom_wire::ip::QuotedPacket;
use transom_wire::tcp::QuotedTcp;
use transom_wire::{IcmpMessage, IpPacket, Protocol, UnreachableCode};

/// The meaning of an error for the connection that it names. `None`: none (source quench is dropped silently [MUST-55]).
/// [RFC1122-3.2.2.1-4] [RFC1122-3.2.2.4-1] [RFC1122-3.2.2.5-2] [RFC792-5-1]
/// [RFC4443-3.1-2] [RFC4443-3.2-2] [RFC4443-3.3-3] [RFC4443-3.4-4]
fn meaning(message: &IcmpMessage<'_>, is_v4: bool) -> Option<IcmpError> {
    use UnreachableCode::{
        BeyondScope, CommunicationProhibited, Host, HostProhibited, Net, NetProhibited, Other,
        Port, Protocol, SourceRouteFailed,
    };
    Some(match message {
        IcmpMessage::Unreachable { code, .. } => match (code, is_v4) {
            (Protocol, _) => IcmpError::ProtocolUnreachable,
            (Port, _) => IcmpError::PortUnreachable,
            (SourceRouteFailed, _) => IcmpError::SourceRouteFailed,
            // Unknown, prohibited, and unreachable for a type of service (RFC 1122 section 3.2.2.1).
            (Net | NetProhibited, _) | (Other(6 | 11), true) => IcmpError::NetworkUnreachable,
            (Other(7), true) => IcmpError::HostUnknown,
            (Other(8), true) => IcmpError::HostIsolated,
            // Precedence, by RFC 1812 section 5.2.7.1.
            (HostProhibited | CommunicationProhibited | Other(14 | 15), true) => {
                IcmpError::Prohibited
            }
            // Also by an ingress or egress policy, and a route that rejects (RFC 4443 section 3.1).
            (HostProhibited | CommunicationProhibited | Other(5 | 6), false) => IcmpError::Denied,
            (Host | BeyondScope | Other(_), _) => IcmpError::HostUnreachable,
        },
        IcmpMessage::PacketTooBig { mtu, .. } => IcmpError::TooBig(*mtu),
        IcmpMessage::TimeExceeded { .. } => IcmpError::TimeExceeded,
        IcmpMessage::ParameterProblem { .. } => IcmpError::ParameterProblem,
        _ => return None,
    })
}

/// The packet of a message; `None` if this version has no such message.
pub(crate) fn packet(src: IpAddr, dst: IpAddr, message: &IcmpMessage<'_>) -> Option<Vec<u8>> {
    let mut packet = vec![0; message.packet_len(src)];
    message.emit_packet(src, dst, &mut packet).ok()?;
    Some(packet)
}

impl Stack {
    /// Returns the flow of an error that no connection here has.
    /// [RFC1122-3.2.2-1] [RFC4443-2.4-2] [RFC1122-3.2.2.6-1] [RFC4443-4.2-1]
    pub(crate) fn on_icmp(&mut self, now: Instant, ip: &IpPacket<'_>) -> Option<FlowKey> {
        let is_v4 = ip.src().is_ipv4();
        let expected = if is_v4 { Protocol::ICMP } else { Protocol::ICMPV6 };
        let message = IcmpMessage::parse(ip.src(), ip.dst(), ip.payload());
        let Some(message) = message.ok().filter(|_| ip.protocol() == expected) else {
            self.count_bad_icmp();
            return None;
        };
        if let IcmpMessage::EchoRequest { ident, seq, data } = message {
            // [RFC1122-3.2.2.6-6] [RFC4443-4.2-3] all of the data, in fragments if it must be.
            // [RFC792-14-1] [RFC792-15-1]
            let reply = IcmpMessage::EchoReply { ident, seq, data };
            // [RFC1122-3.2.2.6-5] [RFC792-15-2] [RFC4443-4.2-2]
            if self.answers_echo()
                && let Some(packet) = packet(ip.dst(), ip.src(), &reply)
            {
                self.packet_reply(now, packet);
            }
            return None;
        }
        self.on_icmp_error(now, meaning(&message, is_v4)?, message.quoted()?)
    }

    /// [MUST-54] An error goes to the connection whose segment it quotes.
    /// [RFC1122-3.2.2-4] [RFC4443-2.4-4] [RFC1122-3.4-5] [RFC1122-3.4-6]
    fn on_icmp_error(&mut self, now: Instant, error: IcmpError, quoted: &[u8]) -> Option<FlowKey> {
        let quote = QuotedPacket::parse(quoted).ok()?;
        if quote.protocol != Protocol::TCP {
            return None;
        }
        let tcp = QuotedTcp::parse(quote.transport).ok()?;
        let key = FlowKey {
            local: quote.src,
            remote: quote.dst,
            local_port: tcp.src_port,
            remote_port: tcp.dst_port,
        };
        let delivered = self.deliver_icmp(now, &key, error, tcp.seq);
        (!delivered).then_some(key)
    }
}
