//! ICMPv6 (RFC 4443).
//!
//! Laid out as ICMP for IPv4 is, but the checksum covers the pseudo-header, so reading and writing
//! take the addresses. Types below 128 are errors. Neighbour discovery and multicast listener
//! messages are kept as [`Icmpv6Message::Unknown`].

#[cfg(test)]
mod tests;

use crate::checksum;
use crate::icmp_parts::{self, Parts, join_halves, split_halves};
use crate::ip::Protocol;
use crate::ipv6::{self, Ipv6Header};
use crate::{Error, Ipv6Packet};
use core::net::Ipv6Addr;

pub(crate) use crate::icmp_parts::CHECKSUM_OFFSET;

/// The longest error packet, IPv6 header included: the minimum MTU (RFC 4443 2.4 (c)).
pub const MAX_ERROR_LEN: usize = 1280;

const UNREACHABLE: u8 = 1;
const PACKET_TOO_BIG: u8 = 2;
const TIME_EXCEEDED: u8 = 3;
const PARAMETER_PROBLEM: u8 = 4;
const ECHO_REQUEST: u8 = 128;
const ECHO_REPLY: u8 = 129;
const REDIRECT: u8 = 137;

/// The code of a *parameter problem* about an erroneous field (RFC 4443 3.4).
pub const ERRONEOUS_FIELD: u8 = 0;
/// The code of a *parameter problem* about a next header that is not recognized (RFC 4443 3.4).
pub const UNRECOGNIZED_NEXT_HEADER: u8 = 1;
/// The code of a *parameter problem* about a first fragment without all headers (RFC 7112 5).
pub const INCOMPLETE_CHAIN: u8 = 3;
/// The code of *time exceeded* for a packet whose fragments did not all come (RFC 4443 3.3).
pub const REASSEMBLY_TIME: u8 = 1;

/// An ICMPv6 message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Icmpv6Message<'a> {
    /// Destination unreachable (type 1).
    Unreachable {
        /// Why.
        code: UnreachableCode,
        /// The packet this is about, as much of it as fits 1280 bytes.
        quoted: &'a [u8],
    },
    /// Packet too big (type 2).
    PacketTooBig {
        /// The next link's MTU in bytes.
        mtu: u32,
        /// The packet this is about.
        quoted: &'a [u8],
    },
    /// Time exceeded (type 3).
    TimeExceeded {
        /// 0: the hop limit ran out in transit. 1: reassembly took too long.
        code: u8,
        /// The packet this is about.
        quoted: &'a [u8],
    },
    /// Parameter problem (type 4).
    ParameterProblem {
        /// 0: erroneous field. 1: unrecognized next header. 2: unrecognized option. 3: a first
        /// fragment without all headers (RFC 7112).
        code: u8,
        /// The offset of the offending byte in the quoted packet.
        pointer: u32,
        /// The packet this is about.
        quoted: &'a [u8],
    },
    /// Echo request (type 128).
    EchoRequest {
        /// Identifies the sender's echo session.
        ident: u16,
        /// Counts the requests of a session.
        seq: u16,
        /// Arbitrary data to be sent back.
        data: &'a [u8],
    },
    /// Echo reply (type 129), with the request's fields.
    EchoReply {
        /// The request's identifier.
        ident: u16,
        /// The request's sequence number.
        seq: u16,
        /// The request's data.
        data: &'a [u8],
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

/// Why a destination is unreachable (RFC 4443 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnreachableCode {
    /// Code 0: no route to the destination.
    NoRoute,
    /// Code 1: administratively prohibited.
    Prohibited,
    /// Code 2: beyond the scope of the source address.
    BeyondScope,
    /// Code 3: the address is unreachable.
    Address,
    /// Code 4: nobody listens at the port.
    Port,
    /// Any other code.
    Other(u8),
}

impl UnreachableCode {
    fn from_wire(code: u8) -> Self {
        match code {
            0 => UnreachableCode::NoRoute,
            1 => UnreachableCode::Prohibited,
            2 => UnreachableCode::BeyondScope,
            3 => UnreachableCode::Address,
            4 => UnreachableCode::Port,
            other => UnreachableCode::Other(other),
        }
    }

    fn to_wire(self) -> u8 {
        match self {
            UnreachableCode::NoRoute => 0,
            UnreachableCode::Prohibited => 1,
            UnreachableCode::BeyondScope => 2,
            UnreachableCode::Address => 3,
            UnreachableCode::Port => 4,
            UnreachableCode::Other(code) => code,
        }
    }
}

impl<'a> Icmpv6Message<'a> {
    /// Reads a message: all of `bytes`, the payload of an IPv6 packet from `src` to `dst`.
    ///
    /// # Errors
    /// [`Error::Truncated`] if the header is incomplete, [`Error::BadChecksum`].
    pub fn parse(src: Ipv6Addr, dst: Ipv6Addr, bytes: &'a [u8]) -> Result<Self, Error> {
        let (&[kind, code, _, _], body) = bytes.split_first_chunk::<4>().ok_or(Error::Truncated)?;
        // [RFC4443-2.3-1] [RFC8200-8.1-3]
        if !checksum::verify(src.into(), dst.into(), Protocol::ICMPV6, bytes) {
            return Err(Error::BadChecksum);
        }
        if !matches!(kind, UNREACHABLE..=PARAMETER_PROBLEM | ECHO_REQUEST | ECHO_REPLY) {
            return Ok(Icmpv6Message::Unknown { kind, code, body });
        }
        let (&word, rest) = body.split_first_chunk::<4>().ok_or(Error::Truncated)?;
        let (ident, seq) = split_halves(word);
        let word = u32::from_be_bytes(word);
        Ok(match kind {
            UNREACHABLE => {
                Icmpv6Message::Unreachable { code: UnreachableCode::from_wire(code), quoted: rest }
            }
            // RFC 4443 3.2: the code is ignored by the receiver.
            PACKET_TOO_BIG => Icmpv6Message::PacketTooBig { mtu: word, quoted: rest },
            TIME_EXCEEDED => Icmpv6Message::TimeExceeded { code, quoted: rest },
            PARAMETER_PROBLEM => {
                Icmpv6Message::ParameterProblem { code, pointer: word, quoted: rest }
            }
            ECHO_REQUEST if code == 0 => Icmpv6Message::EchoRequest { ident, seq, data: rest },
            ECHO_REPLY if code == 0 => Icmpv6Message::EchoReply { ident, seq, data: rest },
            _ => Icmpv6Message::Unknown { kind, code, body },
        })
    }

    fn parts(&self) -> Parts<'a> {
        let (kind, code, word, rest) = match *self {
            Icmpv6Message::Unreachable { code, quoted } => {
                (UNREACHABLE, code.to_wire(), Some([0; 4]), quoted)
            }
            Icmpv6Message::PacketTooBig { mtu, quoted } => {
                (PACKET_TOO_BIG, 0, Some(mtu.to_be_bytes()), quoted)
            }
            Icmpv6Message::TimeExceeded { code, quoted } => {
                (TIME_EXCEEDED, code, Some([0; 4]), quoted)
            }
            Icmpv6Message::ParameterProblem { code, pointer, quoted } => {
                (PARAMETER_PROBLEM, code, Some(pointer.to_be_bytes()), quoted)
            }
            Icmpv6Message::EchoRequest { ident, seq, data } => {
                (ECHO_REQUEST, 0, Some(join_halves(ident, seq)), data)
            }
            Icmpv6Message::EchoReply { ident, seq, data } => {
                (ECHO_REPLY, 0, Some(join_halves(ident, seq)), data)
            }
            Icmpv6Message::Unknown { kind, code, body } => (kind, code, None, body),
        };
        Parts { kind, code, word, rest }
    }

    /// Whether the message is an error (RFC 4443 2.1): one that must never be answered with
    /// another.
    /// [RFC4443-2.1-1]
    pub fn is_error(&self) -> bool {
        match *self {
            Icmpv6Message::Unknown { kind, .. } => kind < 128,
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
            Icmpv6Message::Unreachable { quoted, .. }
            | Icmpv6Message::PacketTooBig { quoted, .. }
            | Icmpv6Message::TimeExceeded { quoted, .. }
            | Icmpv6Message::ParameterProblem { quoted, .. } => Some(quoted),
            Icmpv6Message::EchoRequest { .. }
            | Icmpv6Message::EchoReply { .. }
            | Icmpv6Message::Unknown { .. } => None,
        }
    }

    /// The length of the message that [`emit`](Self::emit) writes, in bytes.
    pub fn encoded_len(&self) -> usize {
        self.parts().len()
    }

    /// Writes the message, with the checksum for a packet from `src` to `dst`, and returns its
    /// length.
    ///
    /// # Errors
    /// [`Error::BufferTooSmall`].
    pub fn emit(&self, src: Ipv6Addr, dst: Ipv6Addr, out: &mut [u8]) -> Result<usize, Error> {
        let message = self.parts().write(out)?;
        checksum::fill(src.into(), dst.into(), Protocol::ICMPV6, message, CHECKSUM_OFFSET)?;
        Ok(message.len())
    }
}

/// As much of `offending` as an error may quote ([`MAX_ERROR_LEN`]), without anything behind the
/// packet's end.
fn quote(offending: &[u8]) -> &[u8] {
    let packet = Ipv6Packet::parse(offending).ok();
    let packet_len = packet.map(|packet| packet.header_len() + packet.payload().len());
    icmp_parts::quote(offending, packet_len, MAX_ERROR_LEN, ipv6::HEADER_LEN)
}

/// Writes an IPv6 packet with `message`, whose quote is cut to what fits (`quote`), and returns
/// its length.
///
/// The message's quote is best given as the whole offending packet. The header's next header is set
/// to ICMPv6.
///
/// # Errors
/// [`Error::BufferTooSmall`], and those of [`Ipv6Header::emit`].
pub fn emit_packet(
    header: &Ipv6Header,
    message: &Icmpv6Message<'_>,
    out: &mut [u8],
) -> Result<usize, Error> {
    let mut message = *message;
    if let Some(quoted) = message.quoted_mut() {
        *quoted = quote(quoted);
    }
    let header = Ipv6Header { next_header: Protocol::ICMPV6, ..*header };
    let header_len = header.emit(message.encoded_len(), out)?;
    let body = out.get_mut(header_len..).ok_or(Error::BufferTooSmall)?;
    Ok(header_len + message.emit(header.src, header.dst, body)?)
}

/// Whether `packet` may be answered with `error` (RFC 4443 2.4 (e)). It may not if it is itself an
/// ICMPv6 error or a redirect, or its source is not a single node's address. A packet to a
/// multicast address may only get *packet too big* or *unrecognized option*. A fragment other than
/// the first only gets the errors about fields of that fragment (RFC 8200 4.5).
///
/// A packet that cannot be told not to be an error gets none, except the one which says that its
/// chain of headers is cut (RFC 7112 5).
pub fn may_answer_with_error(packet: &Ipv6Packet<'_>, error: &Icmpv6Message<'_>) -> bool {
    const UNRECOGNIZED_OPTION: u8 = 2;
    let also_about_multicast = matches!(
        error,
        Icmpv6Message::PacketTooBig { .. }
            | Icmpv6Message::ParameterProblem { code: UNRECOGNIZED_OPTION, .. }
    );
    let about_field =
        matches!(error, Icmpv6Message::ParameterProblem { code: ERRONEOUS_FIELD, .. });
    let about_chain =
        matches!(error, Icmpv6Message::ParameterProblem { code: INCOMPLETE_CHAIN, .. });
    let source_is_one_node = !(packet.src().is_unspecified() || packet.src().is_multicast());
    let destination_allows = also_about_multicast || !packet.dst().is_multicast();
    let is_later_piece = packet.fragment().is_some_and(|header| header.fragment.offset != 0);
    let chain_may_hide_it = about_chain && packet.upper_layer().is_err();
    let carries_no_error =
        chain_may_hide_it || !packet.may_be_icmp_error(|kind| kind < 128 || kind == REDIRECT);
    source_is_one_node && destination_allows && (!is_later_piece || about_field) && carries_no_error
}
