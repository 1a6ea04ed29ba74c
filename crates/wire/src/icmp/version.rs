//! The two versions of ICMP: what is different between them.

use super::{IcmpMessage, Parts, UnreachableCode};
use crate::ip::Protocol;
use core::net::{IpAddr, Ipv4Addr};

/// The numbers of one version.
pub(super) struct Version {
    pub(super) protocol: Protocol,
    /// The length of the header of IP in front of a message that we write.
    pub(super) ip_header_len: usize,
    /// The longest error packet, IP header included.
    pub(super) longest_error: usize,
    echo_request: u8,
    echo_reply: u8,
    unreachable: u8,
    time_exceeded: u8,
    parameter_problem: u8,
    /// The type that only this version has.
    own: u8,
    codes: &'static [(UnreachableCode, u8)],
}

/// RFC 792. The longest error is that of RFC 1812 4.3.2.3.
const V4: Version = Version {
    protocol: Protocol::ICMP,
    ip_header_len: 20,
    longest_error: 576,
    echo_request: 8,
    echo_reply: 0,
    unreachable: 3,
    time_exceeded: 11,
    parameter_problem: 12,
    own: REDIRECT,
    codes: &[
        (UnreachableCode::Net, 0),
        (UnreachableCode::Host, 1),
        (UnreachableCode::Protocol, 2),
        (UnreachableCode::Port, 3),
        (UnreachableCode::SourceRouteFailed, 5),
        (UnreachableCode::NetProhibited, 9),
        (UnreachableCode::HostProhibited, 10),
        (UnreachableCode::CommunicationProhibited, 13),
    ],
};

/// RFC 4443. The longest error is the minimum MTU (2.4 (c)).
const V6: Version = Version {
    protocol: Protocol::ICMPV6,
    ip_header_len: 40,
    longest_error: 1280,
    echo_request: 128,
    echo_reply: 129,
    unreachable: 1,
    time_exceeded: 3,
    parameter_problem: 4,
    own: PACKET_TOO_BIG,
    codes: &[
        (UnreachableCode::Net, 0),
        (UnreachableCode::CommunicationProhibited, 1),
        (UnreachableCode::BeyondScope, 2),
        (UnreachableCode::Host, 3),
        (UnreachableCode::Port, 4),
    ],
};

const REDIRECT: u8 = 5;
const PACKET_TOO_BIG: u8 = 2;
/// ICMP's code of *destination unreachable* whose word has the next link's MTU in its second half
/// (RFC 1191 4).
const FRAGMENTATION_NEEDED: u8 = 4;

impl Version {
    /// The version for packets from `address`.
    pub(super) fn of(address: IpAddr) -> &'static Version {
        if address.is_ipv4() { &V4 } else { &V6 }
    }

    pub(super) fn is_v4(&self) -> bool {
        self.protocol == Protocol::ICMP
    }

    /// Whether messages of a type have a word behind the checksum that is read here.
    pub(super) fn knows(&self, kind: u8) -> bool {
        let errors = [self.unreachable, self.time_exceeded, self.parameter_problem, self.own];
        errors.contains(&kind) || [self.echo_request, self.echo_reply].contains(&kind)
    }

    fn read_code(&self, number: u8) -> UnreachableCode {
        let entry = self.codes.iter().find(|entry| entry.1 == number);
        entry.map_or(UnreachableCode::Other(number), |entry| entry.0)
    }

    fn write_code(&self, code: UnreachableCode) -> Option<u8> {
        match code {
            UnreachableCode::Other(number) => Some(number),
            code => self.codes.iter().find(|entry| entry.0 == code).map(|entry| entry.1),
        }
    }

    /// The message with this type and code, the word behind the checksum, and what follows it.
    /// `None`: it is none of those known here.
    pub(super) fn read<'a>(
        &self,
        kind: u8,
        code: u8,
        word: [u8; 4],
        rest: &'a [u8],
    ) -> Option<IcmpMessage<'a>> {
        let number = u32::from_be_bytes(word);
        let (high, low) = ((number >> 16) as u16, number as u16);
        Some(if kind == self.own && self.is_v4() {
            IcmpMessage::Redirect { code, gateway: Ipv4Addr::from_octets(word), quoted: rest }
        } else if kind == self.own {
            // RFC 4443 3.2: the code is ignored by the receiver.
            IcmpMessage::PacketTooBig { mtu: number, quoted: rest }
        } else if kind == self.unreachable && code == FRAGMENTATION_NEEDED && self.is_v4() {
            IcmpMessage::PacketTooBig { mtu: low.into(), quoted: rest }
        } else if kind == self.unreachable {
            IcmpMessage::Unreachable { code: self.read_code(code), quoted: rest }
        } else if kind == self.time_exceeded {
            IcmpMessage::TimeExceeded { code, quoted: rest }
        } else if kind == self.parameter_problem {
            let pointer = if self.is_v4() { word[0].into() } else { number };
            IcmpMessage::ParameterProblem { code, pointer, quoted: rest }
        } else if kind == self.echo_request && code == 0 {
            IcmpMessage::EchoRequest { ident: high, seq: low, data: rest }
        } else if kind == self.echo_reply && code == 0 {
            IcmpMessage::EchoReply { ident: high, seq: low, data: rest }
        } else {
            return None;
        })
    }

    /// The parts of a message; `None` if this version has no such message.
    /// [RFC792-2-1]
    pub(super) fn write<'a>(&self, message: &IcmpMessage<'a>) -> Option<Parts<'a>> {
        let echo = |ident, seq| (u32::from(ident) << 16 | u32::from(seq)).to_be_bytes();
        let (kind, code, word, rest) = match *message {
            IcmpMessage::EchoRequest { ident, seq, data } => {
                (self.echo_request, 0, echo(ident, seq), data)
            }
            IcmpMessage::EchoReply { ident, seq, data } => {
                (self.echo_reply, 0, echo(ident, seq), data)
            }
            IcmpMessage::Unreachable { code, quoted } => {
                (self.unreachable, self.write_code(code)?, [0; 4], quoted)
            }
            IcmpMessage::PacketTooBig { mtu, quoted } if self.is_v4() => {
                let mtu = u32::from(u16::try_from(mtu).unwrap_or(u16::MAX));
                (self.unreachable, FRAGMENTATION_NEEDED, mtu.to_be_bytes(), quoted)
            }
            IcmpMessage::PacketTooBig { mtu, quoted } => (self.own, 0, mtu.to_be_bytes(), quoted),
            IcmpMessage::Redirect { code, gateway, quoted } if self.is_v4() => {
                (self.own, code, gateway.octets(), quoted)
            }
            IcmpMessage::Redirect { .. } => return None,
            IcmpMessage::TimeExceeded { code, quoted } => {
                (self.time_exceeded, code, [0; 4], quoted)
            }
            IcmpMessage::ParameterProblem { code, pointer, quoted } => {
                let short = u8::try_from(pointer);
                let word =
                    if self.is_v4() { [short.ok()?, 0, 0, 0] } else { pointer.to_be_bytes() };
                (self.parameter_problem, code, word, quoted)
            }
            IcmpMessage::Unknown { kind, code, body } => {
                return Some(Parts { kind, code, word: None, rest: body });
            }
        };
        Some(Parts { kind, code, word: Some(word), rest })
    }
}
