//! ICMP for IPv4 (RFC 792).
//!
//! A message is four bytes (type, code, checksum) and a body whose first four bytes depend on the
//! type. The checksum has no pseudo-header and is verified when a message is read: nobody has a use
//! for a broken one. Errors quote the packet they are about;
//! [`QuotedPacket::parse`](crate::ip::QuotedPacket::parse) reads the quote. Messages of other types
//! are kept as [`IcmpMessage::Unknown`].

#[cfg(test)]
mod tests;

use crate::checksum::{self, Sum};
use crate::icmp_parts::{self, Parts, join_halves, split_halves};
use crate::ip::Protocol;
use crate::ipv4::Ipv4Header;
use crate::{Error, Ipv4Packet};
use core::net::Ipv4Addr;

pub(crate) use crate::icmp_parts::CHECKSUM_OFFSET;

/// The longest error packet, IP header included (RFC 1812 4.3.2.3).
pub const MAX_ERROR_LEN: usize = 576;

const ECHO_REPLY: u8 = 0;
const UNREACHABLE: u8 = 3;
const REDIRECT: u8 = 5;
const ECHO_REQUEST: u8 = 8;
const TIME_EXCEEDED: u8 = 11;
const PARAMETER_PROBLEM: u8 = 12;

/// The code of *time exceeded* for a packet whose fragments did not all come (RFC 792).
pub const REASSEMBLY_TIME: u8 = 1;

/// An ICMP message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IcmpMessage<'a> {
    /// Echo request (type 8).
    EchoRequest {
        /// Identifies the sender's echo session.
        ident: u16,
        /// Counts the requests of a session.
        seq: u16,
        /// Arbitrary data to be sent back.
        data: &'a [u8],
    },
    /// Echo reply (type 0), with the request's fields.
    EchoReply {
        /// The request's identifier.
        ident: u16,
        /// The request's sequence number.
        seq: u16,
        /// The request's data.
        data: &'a [u8],
    },
    /// Destination unreachable (type 3).
    Unreachable {
        /// Why.
        code: UnreachableCode,
        /// The packet this is about: its IP header and at least eight bytes more.
        quoted: &'a [u8],
    },
    /// Redirect (type 5). RFC 1122 3.2.2.2 lets a host act on it; it is read so that it can be
    /// reported.
    Redirect {
        /// 0 network, 1 host, 2 network and type of service, 3 host and type of service.
        code: u8,
        /// The gateway to use.
        gateway: Ipv4Addr,
        /// The packet this is about.
        quoted: &'a [u8],
    },
    /// Time exceeded (type 11).
    TimeExceeded {
        /// 0: the time to live ran out in transit. 1: reassembly took too long.
        code: u8,
        /// The packet this is about.
        quoted: &'a [u8],
    },
    /// Parameter problem (type 12).
    ParameterProblem {
        /// 0: `pointer` tells where. 1: a required option is missing (RFC 1122 3.2.2.5).
        code: u8,
        /// The offset of the offending byte in the quoted packet.
        pointer: u8,
        /// The packet this is about.
        quoted: &'a [u8],
    },
    /// Any other type.
    Unknown {
        /// The message's type.
        kind: u8,
        /// The message's code.
        code: u8,
        /// Everything behind the checksum.
        body: &'a [u8],
    },
}

/// Why a destination is unreachable (RFC 792; RFC 1122 3.2.2.1; RFC 1812 5.2.7.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnreachableCode {
    /// Code 0.
    Net,
    /// Code 1.
    Host,
    /// Code 2: the host has no such transport protocol.
    Protocol,
    /// Code 3: nobody listens at the port.
    Port,
    /// Code 4: the packet is too big for the next link and may not be fragmented.
    FragmentationNeeded {
        /// The next link's MTU in bytes; zero from routers older than RFC 1191.
        next_hop_mtu: u16,
    },
    /// Code 5.
    SourceRouteFailed,
    /// Code 9: administratively prohibited.
    NetProhibited,
    /// Code 10: administratively prohibited.
    HostProhibited,
    /// Code 13: administratively prohibited.
    CommunicationProhibited,
    /// Any other code.
    Other(u8),
}

impl UnreachableCode {
    fn from_wire(code: u8, next_hop_mtu: u16) -> Self {
        match code {
            0 => UnreachableCode::Net,
            1 => UnreachableCode::Host,
            2 => UnreachableCode::Protocol,
            3 => UnreachableCode::Port,
            4 => UnreachableCode::FragmentationNeeded { next_hop_mtu },
            5 => UnreachableCode::SourceRouteFailed,
            9 => UnreachableCode::NetProhibited,
            10 => UnreachableCode::HostProhibited,
            13 => UnreachableCode::CommunicationProhibited,
            other => UnreachableCode::Other(other),
        }
    }

    /// The code and the next-hop MTU field as they travel.
    fn to_wire(self) -> (u8, u16) {
        match self {
            UnreachableCode::Net => (0, 0),
            UnreachableCode::Host => (1, 0),
            UnreachableCode::Protocol => (2, 0),
            UnreachableCode::Port => (3, 0),
            UnreachableCode::FragmentationNeeded { next_hop_mtu } => (4, next_hop_mtu),
            UnreachableCode::SourceRouteFailed => (5, 0),
            UnreachableCode::NetProhibited => (9, 0),
            UnreachableCode::HostProhibited => (10, 0),
            UnreachableCode::CommunicationProhibited => (13, 0),
            UnreachableCode::Other(code) => (code, 0),
        }
    }
}

impl<'a> IcmpMessage<'a> {
    /// Reads a message: all of `bytes`, an IPv4 packet's payload.
    ///
    /// # Errors
    /// [`Error::Truncated`] if the header is incomplete, [`Error::BadChecksum`].
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Error> {
        let (&[kind, code, _, _], body) = bytes.split_first_chunk::<4>().ok_or(Error::Truncated)?;
        // [RFC792-2-2]
        if !Sum::of(bytes).is_valid() {
            return Err(Error::BadChecksum);
        }
        if !matches!(
            kind,
            ECHO_REPLY | UNREACHABLE | REDIRECT | ECHO_REQUEST | TIME_EXCEEDED | PARAMETER_PROBLEM
        ) {
            return Ok(IcmpMessage::Unknown { kind, code, body });
        }
        let (&word, rest) = body.split_first_chunk::<4>().ok_or(Error::Truncated)?;
        let (high, low) = split_halves(word);
        Ok(match kind {
            ECHO_REQUEST if code == 0 => {
                IcmpMessage::EchoRequest { ident: high, seq: low, data: rest }
            }
            ECHO_REPLY if code == 0 => IcmpMessage::EchoReply { ident: high, seq: low, data: rest },
            UNREACHABLE => IcmpMessage::Unreachable {
                code: UnreachableCode::from_wire(code, low),
                quoted: rest,
            },
            REDIRECT => {
                IcmpMessage::Redirect { code, gateway: Ipv4Addr::from_octets(word), quoted: rest }
            }
            TIME_EXCEEDED => IcmpMessage::TimeExceeded { code, quoted: rest },
            PARAMETER_PROBLEM => {
                IcmpMessage::ParameterProblem { code, pointer: word[0], quoted: rest }
            }
            _ => IcmpMessage::Unknown { kind, code, body },
        })
    }

    /// [RFC792-2-1]
    fn parts(&self) -> Parts<'a> {
        let (kind, code, word, rest) = match *self {
            IcmpMessage::EchoRequest { ident, seq, data } => {
                (ECHO_REQUEST, 0, Some(join_halves(ident, seq)), data)
            }
            IcmpMessage::EchoReply { ident, seq, data } => {
                (ECHO_REPLY, 0, Some(join_halves(ident, seq)), data)
            }
            IcmpMessage::Unreachable { code, quoted } => {
                let (code, mtu) = code.to_wire();
                (UNREACHABLE, code, Some(join_halves(0, mtu)), quoted)
            }
            IcmpMessage::Redirect { code, gateway, quoted } => {
                (REDIRECT, code, Some(gateway.octets()), quoted)
            }
            IcmpMessage::TimeExceeded { code, quoted } => {
                (TIME_EXCEEDED, code, Some([0; 4]), quoted)
            }
            IcmpMessage::ParameterProblem { code, pointer, quoted } => {
                (PARAMETER_PROBLEM, code, Some([pointer, 0, 0, 0]), quoted)
            }
            IcmpMessage::Unknown { kind, code, body } => (kind, code, None, body),
        };
        Parts { kind, code, word, rest }
    }

    /// Whether the message is an error (RFC 1122 3.2.2): one that must never be answered with
    /// another.
    pub fn is_error(&self) -> bool {
        const SOURCE_QUENCH: u8 = 4;
        match *self {
            IcmpMessage::Unknown { kind, .. } => kind == SOURCE_QUENCH,
            _ => self.quoted().is_some(),
        }
    }

    /// The packet an error is about, as quoted.
    pub fn quoted(&self) -> Option<&'a [u8]> {
        let mut message = *self;
        message.quoted_mut().copied()
    }

    fn quoted_mut(&mut self) -> Option<&mut &'a [u8]> {
        match self {
            IcmpMessage::Unreachable { quoted, .. }
            | IcmpMessage::Redirect { quoted, .. }
            | IcmpMessage::TimeExceeded { quoted, .. }
            | IcmpMessage::ParameterProblem { quoted, .. } => Some(quoted),
            IcmpMessage::EchoRequest { .. }
            | IcmpMessage::EchoReply { .. }
            | IcmpMessage::Unknown { .. } => None,
        }
    }

    /// The length of the message that [`emit`](Self::emit) writes, in bytes.
    pub fn encoded_len(&self) -> usize {
        self.parts().len()
    }

    /// Writes the message, checksum included, and returns its length.
    ///
    /// # Errors
    /// [`Error::BufferTooSmall`].
    pub fn emit(&self, out: &mut [u8]) -> Result<usize, Error> {
        let message = self.parts().write(out)?;
        let checksum = Sum::of(message).checksum();
        checksum::store(message, CHECKSUM_OFFSET, checksum)?;
        Ok(message.len())
    }
}

/// As much of `offending` as an error sent with an IP header of `ip_header_len` bytes may quote
/// ([`MAX_ERROR_LEN`]), without anything behind the packet's end.
fn quote(offending: &[u8], ip_header_len: usize) -> &[u8] {
    let packet = Ipv4Packet::parse(offending).ok();
    let packet_len = packet.map(|packet| packet.header_len() + packet.payload().len());
    icmp_parts::quote(offending, packet_len, MAX_ERROR_LEN, ip_header_len)
}

/// Writes an IPv4 packet with `message`, whose quote is cut to what fits (`quote`), and returns
/// its length.
///
/// The message's quote is best given as the whole offending packet. The header's protocol is set to
/// ICMP.
///
/// # Errors
/// [`Error::BufferTooSmall`], and those of [`Ipv4Header::emit`].
pub fn emit_packet(
    header: &Ipv4Header,
    message: &IcmpMessage<'_>,
    out: &mut [u8],
) -> Result<usize, Error> {
    let mut message = *message;
    if let Some(quoted) = message.quoted_mut() {
        *quoted = quote(quoted, header.header_len());
    }
    let header = Ipv4Header { protocol: Protocol::ICMP, ..*header };
    let header_len = header.emit(message.encoded_len(), out)?;
    let len = message.emit(out.get_mut(header_len..).ok_or(Error::BufferTooSmall)?)?;
    Ok(header_len + len)
}

/// Whether a packet may be answered with an ICMP error (RFC 1122 3.2.2). It may not if it is
/// itself an ICMP error, a fragment other than the first, sent to a multicast or broadcast address,
/// or from an address that is not a single host's.
///
/// Directed broadcasts are the caller's to know.
pub fn may_answer_with_error(packet: &Ipv4Packet<'_>) -> bool {
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
