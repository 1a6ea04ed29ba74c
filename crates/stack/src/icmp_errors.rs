//! ICMP and ICMPv6 errors that a host sends, to whoever sent what it cannot use.
//!
//! All of them pass the same gate. No error answers an error, or what was not sent from one host to this one. Their rate is bounded, all of
//! them together. On an address that is shared, the kernel sends them.

use crate::fragments::Reassembly;
use crate::stack::Stack;
use alloc::vec;
use transom_tcp::time::{Duration, Instant};
use transom_wire::icmp::{self, IcmpMessage, UnreachableCode};
use transom_wire::icmpv6::{self, Icmpv6Message};
use transom_wire::ipv6::{ExtensionProblem, Ipv6Header, Ipv6Packet};
use transom_wire::{IpPacket, Ipv4Header, Ipv4Packet, Protocol};

/// The window in which ICMP errors are counted.
pub(crate) const ICMP_WINDOW: Duration = Duration::from_secs(1);

impl Stack {
    /// Answers a packet of a protocol that nobody here speaks. `bytes` begins with the packet.
    pub(crate) fn on_unknown_protocol(&mut self, now: Instant, ip: &IpPacket<'_>, bytes: &[u8]) {
        // The offending packet is quoted from its start to its end.
        let Some(quoted) = bytes.get(..ip.total_len()) else { return };
        match ip {
            IpPacket::V4(v4) => {
                let code = match v4.protocol() {
                    Protocol::UDP => UnreachableCode::Port,
                    // [RFC1122-3.2.2.1-1] [RFC792-4-1]
                    _ => UnreachableCode::Protocol,
                };
                self.answer_v4(now, v4, &IcmpMessage::Unreachable { code, quoted });
            }
            // [RFC8200-4.7-1] Nothing follows, so nothing is missing.
            IpPacket::V6(v6) if v6.protocol() == Protocol::NO_NEXT_HEADER => {}
            IpPacket::V6(v6) => {
                let message = match v6.protocol() {
                    // [RFC4443-3.1-3]
                    Protocol::UDP => {
                        Icmpv6Message::Unreachable { code: icmpv6::UnreachableCode::Port, quoted }
                    }
                    // [RFC8200-4-2] [RFC8200-4-3] [RFC4443-3.4-2]
                    _ => Icmpv6Message::ParameterProblem {
                        code: icmpv6::UNRECOGNIZED_NEXT_HEADER,
                        pointer: v6.protocol_offset() as u32,
                        quoted,
                    },
                };
                self.answer_v6(now, v6, &message);
            }
        }
    }

    /// An extension header forbids to go on with a packet. Its sender is told, unless the header says that it is not to be.
    pub(crate) fn on_extension_problem(
        &mut self,
        now: Instant,
        packet: &Ipv6Packet<'_>,
        bytes: &[u8],
        problem: ExtensionProblem,
    ) {
        self.count_refused_extension();
        let ExtensionProblem::ParameterProblem { code, pointer, unless_multicast } = problem else {
            return;
        };
        // [RFC8200-4.2-5]
        if !(unless_multicast && packet.dst().is_multicast()) {
            self.report_field(now, packet, bytes, code, pointer);
        }
    }

    /// A fragment arrived that can be part of nothing.
    pub(crate) fn on_wrong_fragment(
        &mut self,
        now: Instant,
        packet: &IpPacket<'_>,
        bytes: &[u8],
        outcome: &Reassembly,
    ) {
        if let (IpPacket::V6(v6), &Reassembly::Wrong { code, pointer }) = (packet, outcome) {
            self.report_field(now, v6, bytes, code, pointer);
        }
    }

    /// [RFC4443-3.4-1]
    fn report_field(
        &mut self,
        now: Instant,
        packet: &Ipv6Packet<'_>,
        bytes: &[u8],
        code: u8,
        pointer: u32,
    ) {
        let len = packet.header_len() + packet.payload().len();
        let Some(quoted) = bytes.get(..len) else { return };
        let message = Icmpv6Message::ParameterProblem { code, pointer, quoted };
        self.answer_v6(now, packet, &message);
    }

    /// [RFC1122-3.3.2-5] [RFC8200-4.5-9] [RFC4443-3.3-2] [RFC792-6-2] [RFC792-6-3] The other fragments of a packet have not come in time. `first` is the one that begins it.
    pub(crate) fn on_reassembly_timeout(&mut self, now: Instant, first: &[u8]) {
        match IpPacket::parse(first) {
            Ok(IpPacket::V4(v4)) => {
                let code = icmp::REASSEMBLY_TIME;
                self.answer_v4(now, &v4, &IcmpMessage::TimeExceeded { code, quoted: first });
            }
            Ok(IpPacket::V6(v6)) => {
                let code = icmpv6::REASSEMBLY_TIME;
                self.answer_v6(now, &v6, &Icmpv6Message::TimeExceeded { code, quoted: first });
            }
            Err(_) => {}
        }
    }

    fn answer_v4(&mut self, now: Instant, about: &Ipv4Packet<'_>, message: &IcmpMessage<'_>) {
        // [RFC1122-3.2.2-6] [RFC1122-3.2.2-7] [RFC1122-3.2.2-9] [RFC1122-3.2.2-10] [RFC792-1-2] [RFC792-1-3]
        if !icmp::may_answer_with_error(about)
            || !self.may_speak_for(about.dst().into())
            || !self.may_send_icmp_error(now)
        {
            return;
        }
        // [RFC1122-3.3.4.2-1] with the address that the packet was for, and [RFC1122-3.2.2-5] no type of service.
        let header = Ipv4Header::new(about.dst(), about.src(), Protocol::ICMP);
        // [RFC1122-3.2.2-2] [RFC1122-3.2.2-3] [RFC1122-3.3.8-1]
        let mut packet = vec![0; icmp::MAX_ERROR_LEN];
        if let Ok(len) = icmp::emit_packet(&header, message, &mut packet) {
            packet.truncate(len);
            self.packet_reply(now, packet);
        }
    }

    fn answer_v6(&mut self, now: Instant, about: &Ipv6Packet<'_>, message: &Icmpv6Message<'_>) {
        // [RFC4443-2.4-5] [RFC4443-2.4-6] [RFC4443-2.4-7] [RFC4443-2.4-9]
        if !icmpv6::may_answer_with_error(about, message)
            || !self.may_speak_for(about.dst().into())
            || !self.may_send_icmp_error(now)
        {
            return;
        }
        // [RFC4443-2.2-1] with the address that the packet was for.
        let header = Ipv6Header::new(about.dst(), about.src(), Protocol::ICMPV6);
        // [RFC4443-2.4-3]
        let mut packet = vec![0; icmpv6::MAX_ERROR_LEN];
        if let Ok(len) = icmpv6::emit_packet(&header, message, &mut packet) {
            packet.truncate(len);
            self.packet_reply(now, packet);
        }
    }
}
