//! ICMP and ICMPv6 at a host: echo, errors about our segments, and errors we send.

use crate::flow::FlowKey;
use crate::stack::Stack;
use alloc::vec;
use transom_tcp::connection::IcmpError;
use transom_tcp::time::{Duration, Instant};
use transom_wire::icmp::{self, IcmpMessage, UnreachableCode};
use transom_wire::icmpv6::{self, Icmpv6Message};
use transom_wire::ip::QuotedPacket;
use transom_wire::ipv4::Ipv4Header;
use transom_wire::ipv6::Ipv6Header;
use transom_wire::tcp::QuotedTcp;
use transom_wire::{IpPacket, Protocol};

/// The meaning of an ICMP message for the connection that it names. `None`: none (source quench is dropped silently
/// [MUST-55]).
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
    pub(crate) fn on_icmp(&mut self, now: Instant, ip: &IpPacket<'_>) -> Option<FlowKey> {
        match ip {
            IpPacket::V4(v4) if v4.protocol() == Protocol::ICMP => {
                let Ok(message) = IcmpMessage::parse(v4.payload()) else {
                    self.count_bad_icmp();
                    return None;
                };
                if let IcmpMessage::EchoRequest { ident, seq, data } = message {
                    let most = self.echo_room(20 + icmp::HEADER_LEN)?;
                    // RFC 1122 section 3.2.2.6: without fragmentation the reply is cut to what may leave.
                    let data = data.get(..most).unwrap_or(data);
                    let reply = IcmpMessage::EchoReply { ident, seq, data };
                    let header = Ipv4Header::new(v4.dst(), v4.src(), Protocol::ICMP);
                    let mut packet = vec![0; 20 + reply.encoded_len()];
                    if icmp::emit_packet(&header, &reply, &mut packet).is_ok() {
                        self.packet_reply(packet);
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
                    let most = self.echo_room(40 + icmpv6::HEADER_LEN)?;
                    // RFC 4443 section 4.2 wants the data entire or not at all.
                    if data.len() > most {
                        return None;
                    }
                    let reply = Icmpv6Message::EchoReply { ident, seq, data };
                    let header = Ipv6Header::new(v6.dst(), v6.src(), Protocol::ICMPV6);
                    let mut packet = vec![0; 40 + reply.encoded_len()];
                    if icmpv6::emit_packet(&header, &reply, &mut packet).is_ok() {
                        self.packet_reply(packet);
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

    /// Answers a packet of an unsupported protocol, within the budget.
    pub(crate) fn on_unknown_protocol(&mut self, now: Instant, ip: &IpPacket<'_>, bytes: &[u8]) {
        // The offending packet is quoted from its start to its end.
        let Some(offending) = bytes.get(..ip.total_len()) else { return };
        let is_udp = ip.protocol() == Protocol::UDP;
        match ip {
            IpPacket::V4(v4) => {
                if !icmp::may_answer_with_error(v4) || !self.may_send_icmp_error(now) {
                    return;
                }
                let code = if is_udp { UnreachableCode::Port } else { UnreachableCode::Protocol };
                let message = IcmpMessage::Unreachable { code, quoted: offending };
                let header = Ipv4Header::new(v4.dst(), v4.src(), Protocol::ICMP);
                let mut packet = vec![0; 576];
                if let Ok(len) = icmp::emit_packet(&header, &message, &mut packet) {
                    packet.truncate(len);
                    self.packet_reply(packet);
                }
            }
            IpPacket::V6(v6) => {
                let message = if is_udp {
                    Icmpv6Message::Unreachable {
                        code: icmpv6::UnreachableCode::Port,
                        quoted: offending,
                    }
                } else {
                    Icmpv6Message::ParameterProblem {
                        code: 1,
                        pointer: v6.protocol_offset() as u32,
                        quoted: offending,
                    }
                };
                if !icmpv6::may_answer_with_error(v6, &message) || !self.may_send_icmp_error(now) {
                    return;
                }
                let header = Ipv6Header::new(v6.dst(), v6.src(), Protocol::ICMPV6);
                let mut packet = vec![0; 1280];
                if let Ok(len) = icmpv6::emit_packet(&header, &message, &mut packet) {
                    packet.truncate(len);
                    self.packet_reply(packet);
                }
            }
        }
    }
}

/// The window in which ICMP errors are counted.
pub(crate) const ICMP_WINDOW: Duration = Duration::from_secs(1);
