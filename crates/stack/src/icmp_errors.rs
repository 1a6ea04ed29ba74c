//! ICMP and ICMPv6 errors that a host sends, to whoever sent what it cannot use.
//!
//! All of them pass the same gate. No error answers an error, or what was not sent from one host to this one. Their rate is bounded, all of
//! them together. On an address that is shared, the kernel sends them.

use crate::icmp::packet;
use crate::stack::Stack;
use transom_tcp::time::{Duration, Instant};
use transom_wire::{ExtensionProblem, IcmpMessage, IpPacket, Protocol, UnreachableCode};

/// The window in which ICMP errors are counted.
pub(crate) const ICMP_WINDOW: Duration = Duration::from_secs(1);

impl Stack {
    /// Answers a packet of a protocol that nobody here speaks. `bytes` begins with the packet.
    pub(crate) fn on_unknown_protocol(&mut self, now: Instant, ip: &IpPacket<'_>, bytes: &[u8]) {
        // The offending packet is quoted from its start to its end.
        let Some(quoted) = bytes.get(..ip.total_len()) else { return };
        let message = match (ip.protocol(), ip) {
            // [RFC8200-4.7-1] Nothing follows, so nothing is missing.
            (Protocol::NO_NEXT_HEADER, IpPacket::V6(_)) => return,
            // [RFC4443-3.1-3]
            (Protocol::UDP, _) => IcmpMessage::Unreachable { code: UnreachableCode::Port, quoted },
            // [RFC1122-3.2.2.1-1] [RFC792-4-1]
            (_, IpPacket::V4(_)) => {
                IcmpMessage::Unreachable { code: UnreachableCode::Protocol, quoted }
            }
            // [RFC8200-4-2] [RFC8200-4-3] [RFC4443-3.4-2]
            (_, IpPacket::V6(v6)) => IcmpMessage::ParameterProblem {
                code: IcmpMessage::UNRECOGNIZED_NEXT_HEADER,
                pointer: v6.protocol_offset() as u32,
                quoted,
            },
        };
        self.answer(now, ip, &message);
    }

    /// An extension header forbids to go on with a packet. Its sender is told, unless the header says that it is not to be.
    pub(crate) fn on_extension_problem(
        &mut self,
        now: Instant,
        packet: &IpPacket<'_>,
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

    /// Says which field of a packet is wrong.
    /// [RFC4443-3.4-1]
    pub(crate) fn report_field(
        &mut self,
        now: Instant,
        packet: &IpPacket<'_>,
        bytes: &[u8],
        code: u8,
        pointer: u32,
    ) {
        if let Some(quoted) = bytes.get(..packet.total_len()) {
            let message = IcmpMessage::ParameterProblem { code, pointer, quoted };
            self.answer(now, packet, &message);
        }
    }

    /// [RFC1122-3.3.2-5] [RFC8200-4.5-9] [RFC4443-3.3-2] [RFC792-6-2] [RFC792-6-3] The other fragments of a packet have not come in time. `first` is the one that begins it.
    pub(crate) fn on_reassembly_timeout(&mut self, now: Instant, first: &[u8]) {
        if let Ok(ip) = IpPacket::parse(first) {
            // Fragment reassembly time exceeded, in both versions.
            let code = 1;
            self.answer(now, &ip, &IcmpMessage::TimeExceeded { code, quoted: first });
        }
    }

    fn answer(&mut self, now: Instant, about: &IpPacket<'_>, message: &IcmpMessage<'_>) {
        // [RFC1122-3.2.2-6] [RFC1122-3.2.2-7] [RFC1122-3.2.2-9] [RFC1122-3.2.2-10] [RFC792-1-2] [RFC792-1-3]
        // [RFC4443-2.4-5] [RFC4443-2.4-6] [RFC4443-2.4-7] [RFC4443-2.4-9]
        if !message.may_answer(about)
            || !self.may_speak_for(about.dst())
            || !self.may_send_icmp_error(now)
        {
            return;
        }
        // [RFC1122-3.3.4.2-1] [RFC4443-2.2-1] with the address that the packet was for, and [RFC1122-3.2.2-5] no type of service.
        // [RFC1122-3.2.2-2] [RFC1122-3.2.2-3] [RFC1122-3.3.8-1] [RFC4443-2.4-3]
        if let Some(packet) = packet(about.dst(), about.src(), message) {
            self.packet_reply(now, packet);
        }
    }
}
