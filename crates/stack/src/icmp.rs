//! ICMP and ICMPv6 at a host: echo, and errors about our segments. Errors that we send (`icmp_errors.rs`) have a module of their own.

use crate::flow::FlowKey;
use crate::stack::Stack;
use alloc::vec;
use transom_tcp::IcmpError;
use transom_tcp::time::Instant;
use transom_wire::icmp::{self, IcmpMessage, UnreachableCode};
use transom_wire::icmpv6::{self, Icmpv6Message};
use transom_wire::ip::QuotedPacket;
use transom_wire::ipv6::Ipv6Header;
use transom_wire::tcp::QuotedTcp;
use transom_wire::{IpPacket, Ipv4Header, Protocol};

/// The meaning of an ICMP message for the connection that it names. `None`: none (source quench is dropped silently
/// [MUST-55]).
/// [RFC1122-3.2.2.1-4] [RFC1122-3.2.2.4-1] [RFC1122-3.2.2.5-2] [RFC792-5-1]
fn meaning(message: &IcmpMessage<'_>) -> Option<IcmpError> {
    Some(match message {
        IcmpMessage::Unreachable { code, .. } => match code {
            UnreachableCode::Protocol => IcmpError::ProtocolUnreachable,
            UnreachableCode::Port => IcmpError::PortUnreachable,
            UnreachableCode::FragmentationNeeded { next_hop_mtu } => {
                IcmpError::TooBig(u32::from(*next_hop_mtu))
            }
            UnreachableCode::SourceRouteFailed => IcmpError::SourceRouteFailed,
            // Unknown, prohibited, and unreachable for a type of service (RFC 1122 section 3.2.2.1).
            UnreachableCode::Net
            | UnreachableCode::NetProhibited
            | UnreachableCode::Other(6 | 11) => IcmpError::NetworkUnreachable,
            UnreachableCode::Other(7) => IcmpError::HostUnknown,
            UnreachableCode::Other(8) => IcmpError::HostIsolated,
            // Precedence, by RFC 1812 section 5.2.7.1.
            UnreachableCode::HostProhibited
            | UnreachableCode::CommunicationProhibited
            | UnreachableCode::Other(14 | 15) => IcmpError::Prohibited,
            UnreachableCode::Host | UnreachableCode::Other(_) => IcmpError::HostUnreachable,
        },
        IcmpMessage::TimeExceeded { .. } => IcmpError::TimeExceeded,
        IcmpMessage::ParameterProblem { .. } => IcmpError::ParameterProblem,
        _ => return None,
    })
}

/// [RFC4443-3.1-2] [RFC4443-3.2-2] [RFC4443-3.3-3] [RFC4443-3.4-4]
fn meaning_v6(message: &Icmpv6Message<'_>) -> Option<IcmpError> {
    Some(match message {
        Icmpv6Message::Unreachable { code, .. } => match code {
            icmpv6::UnreachableCode::NoRoute => IcmpError::NetworkUnreachable,
            icmpv6::UnreachableCode::Port => IcmpError::PortUnreachable,
            // Also by an ingress or egress policy, and a route that rejects (RFC 4443 section 3.1).
            icmpv6::UnreachableCode::Prohibited | icmpv6::UnreachableCode::Other(5 | 6) => {
                IcmpError::Denied
            }
            icmpv6::UnreachableCode::BeyondScope
            | icmpv6::UnreachableCode::Address
            | icmpv6::UnreachableCode::Other(_) => IcmpError::HostUnreachable,
        },
        Icmpv6Message::PacketTooBig { mtu, .. } => IcmpError::TooBig(*mtu),
        Icmpv6Message::TimeExceeded { .. } => IcmpError::TimeExceeded,
        Icmpv6Message::ParameterProblem { .. } => IcmpError::ParameterProblem,
        _ => return None,
    })
}

impl Stack {
    /// Returns the flow of an error that no connection here has.
    /// [RFC1122-3.2.2-1] [RFC4443-2.4-2] [RFC1122-3.2.2.6-1] [RFC4443-4.2-1]
    pub(crate) fn on_icmp(&mut self, now: Instant, ip: &IpPacket<'_>) -> Option<FlowKey> {
        match ip {
            IpPacket::V4(v4) if v4.protocol() == Protocol::ICMP => {
                let Ok(message) = IcmpMessage::parse(v4.payload()) else {
                    self.count_bad_icmp();
                    return None;
                };
                if let IcmpMessage::EchoRequest { ident, seq, data } = message {
                    if !self.answers_echo() {
                        return None;
                    }
                    // [RFC1122-3.2.2.6-6] all of the data, in fragments if it must be.
                    // [RFC792-14-1] [RFC792-15-1]
                    let reply = IcmpMessage::EchoReply { ident, seq, data };
                    // [RFC1122-3.2.2.6-5] [RFC792-15-2]
                    let header = Ipv4Header::new(v4.dst(), v4.src(), Protocol::ICMP);
                    let mut packet = vec![0; 20 + reply.encoded_len()];
                    if icmp::emit_packet(&header, &reply, &mut packet).is_ok() {
                        self.packet_reply(now, packet);
                    }
                } else if let (Some(error), Some(quoted)) = (meaning(&message), message.quoted()) {
                    return self.on_icmp_error(now, error, quoted);
                }
            }
            IpPacket::V6(v6) if v6.protocol() == Protocol::ICMPV6 => {
                let Ok(message) = Icmpv6Message::parse(v6.src(), v6.dst(), v6.payload()) else {
                    self.count_bad_icmp();
                    return None;
                };
                if let Icmpv6Message::EchoRequest { ident, seq, data } = message {
                    if !self.answers_echo() {
                        return None;
                    }
                    // [RFC4443-4.2-3] all of the data, in fragments if it must be.
                    let reply = Icmpv6Message::EchoReply { ident, seq, data };
                    // [RFC4443-4.2-2]
                    let header = Ipv6Header::new(v6.dst(), v6.src(), Protocol::ICMPV6);
                    let mut packet = vec![0; 40 + reply.encoded_len()];
                    if icmpv6::emit_packet(&header, &reply, &mut packet).is_ok() {
                        self.packet_reply(now, packet);
                    }
                } else if let (Some(error), Some(quoted)) = (meaning_v6(&message), message.quoted())
                {
                    return self.on_icmp_error(now, error, quoted);
                }
            }
            _ => self.count_bad_icmp(),
        }
        None
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
