//! ICMP for IPv4 (RFC 792) and for IPv6 (RFC 4443).
//!
//! A message is four bytes (type, code, checksum) and a body. With the types known here the body
//! begins with a word of four bytes, and then come echoed data or a quoted packet. Both versions
//! say the same with it, so there is one [`IcmpMessage`]. The addresses tell which version it is
//! read or written for. That decides about the numbers of types and codes, and about the
//! checksum: only that of ICMPv6 covers a pseudo-header. It is verified when a message is read,
//! since nobody has a use for a broken one.
//!
//! Errors quote the packet they are about; [`QuotedPacket::parse`](crate::ip::QuotedPacket::parse)
//! reads the quote. Messages of other types, such as those of neighbour discovery, are kept as
//! [`IcmpMessage::Unknown`].

mod answerable;
#[cfg(test)]
mod tests;
mod version;

use crate::Error;
use crate::checksum::{self, Sum};
use crate::ip::{IpHeader, IpPacket};
use core::net::{IpAddr, Ipv4Addr};
use version::Version;

/// The offset of the checksum field, in bytes from the start of the message.
pub(crate) const CHECKSUM_OFFSET: usize = 2;
/// The length of the header of every message with a type known here, in bytes.
const HEADER_LEN: usize = 8;

/// A message of ICMP or ICMPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IcmpMessage<'a> {
    /// Echo request.
    EchoRequest {
        /// Identifies the sender's echo session.
        ident: u16,
        /// Counts the requests of a session.
        seq: u16,
        /// Arbitrary data to be sent back.
        data: &'a [u8],
    },
    /// Echo reply, with the request's fields.
    EchoReply {
        /// The request's identifier.
        ident: u16,
        /// The request's sequence number.
        seq: u16,
        /// The request's data.
        data: &'a [u8],
    },
    /// Destination unreachable.
    Unreachable {
        /// Why.
        code: UnreachableCode,
        /// The packet this is about: its IP header and at least eight bytes more.
        quoted: &'a [u8],
    },
    /// The packet is too big for the next link and may not be fragmented: in ICMP a code of
    /// *destination unreachable* (*fragmentation needed*), in ICMPv6 a type.
    PacketTooBig {
        /// The next link's MTU in bytes; zero from routers older than RFC 1191. ICMP has 16 bits
        /// for it.
        mtu: u32,
        /// The packet this is about.
        quoted: &'a [u8],
    },
    /// Redirect of ICMP. RFC 1122 3.2.2.2 lets a host act on it; it is read so that it can be
    /// reported.
    Redirect {
        /// 0 network, 1 host, 2 network and type of service, 3 host and type of service.
        code: u8,
        /// The gateway to use.
        gateway: Ipv4Addr,
        /// The packet this is about.
        quoted: &'a [u8],
    },
    /// Time exceeded.
    TimeExceeded {
        /// 0: the time to live ran out in transit. 1: reassembly took too long.
        code: u8,
        /// The packet this is about.
        quoted: &'a [u8],
    },
    /// Parameter problem.
    ParameterProblem {
        /// ICMP: 0, or 1 for a required option that is missing (RFC 1122 3.2.2.5). ICMPv6: 0
        /// erroneous field, 1 unrecognized next header, 2 unrecognized option, 3 a first fragment
        /// without all headers (RFC 7112).
        code: u8,
        /// The offset of the offending byte in the quoted packet. ICMP has 8 bits for it.
        pointer: u32,
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

/// Why a destination is unreachable (RFC 792; RFC 1122 3.2.2.1; RFC 1812 5.2.7.1; RFC 4443 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnreachableCode {
    /// There is no route to the network.
    Net,
    /// The host, or its address.
    Host,
    /// The host has no such transport protocol (ICMP only).
    Protocol,
    /// Nobody listens at the port.
    Port,
    /// ICMP only.
    SourceRouteFailed,
    /// The network is administratively prohibited (ICMP only).
    NetProhibited,
    /// The host is administratively prohibited (ICMP only).
    HostProhibited,
    /// The communication is administratively prohibited.
    CommunicationProhibited,
    /// Beyond the scope of the source address (ICMPv6 only).
    BeyondScope,
    /// Any other code.
    Other(u8),
}

/// A message in its parts, all but the checksum.
struct Parts<'a> {
    kind: u8,
    code: u8,
    /// The four bytes behind the checksum, if the type is known.
    word: Option<[u8; 4]>,
    rest: &'a [u8],
}

impl<'a> IcmpMessage<'a> {
    /// ICMPv6's code of a *parameter problem* about an erroneous field (RFC 4443 3.4).
    pub const ERRONEOUS_FIELD: u8 = 0;
    /// ICMPv6's code of a *parameter problem* about a next header that is not recognized (RFC 4443
    /// 3.4).
    pub const UNRECOGNIZED_NEXT_HEADER: u8 = 1;
    /// ICMPv6's code of a *parameter problem* about an option that is not recognized (RFC 4443 3.4).
    pub(crate) const UNRECOGNIZED_OPTION: u8 = 2;
    /// ICMPv6's code of a *parameter problem* about a first fragment without all headers (RFC 7112 5).
    pub const INCOMPLETE_CHAIN: u8 = 3;

    /// Reads a message: all of `bytes`, the payload of an IP packet from `src` to `dst`.
    ///
    /// # Errors
    /// [`Error::Truncated`] if the header is incomplete, [`Error::BadChecksum`].
    pub fn parse(
        src: impl Into<IpAddr>,
        dst: impl Into<IpAddr>,
        bytes: &'a [u8],
    ) -> Result<Self, Error> {
        let (src, dst) = (src.into(), dst.into());
        let (&[kind, code, _, _], body) = bytes.split_first_chunk::<4>().ok_or(Error::Truncated)?;
        let version = Version::of(src);
        // [RFC792-2-2] [RFC4443-2.3-1] [RFC8200-8.1-3]
        let intact = if version.is_v4() {
            Sum::of(bytes).is_valid()
        } else {
            checksum::verify(src, dst, version.protocol, bytes)
        };
        if !intact {
            return Err(Error::BadChecksum);
        }
        let unknown = IcmpMessage::Unknown { kind, code, body };
        if !version.knows(kind) {
            return Ok(unknown);
        }
        let (&word, rest) = body.split_first_chunk::<4>().ok_or(Error::Truncated)?;
        Ok(version.read(kind, code, word, rest).unwrap_or(unknown))
    }

    /// The packet an error is about, as quoted.
    pub fn quoted(&self) -> Option<&'a [u8]> {
        let mut message = *self;
        message.quoted_mut().copied()
    }

    fn quoted_mut(&mut self) -> Option<&mut &'a [u8]> {
        match self {
            IcmpMessage::Unreachable { quoted, .. }
            | IcmpMessage::PacketTooBig { quoted, .. }
            | IcmpMessage::Redirect { quoted, .. }
            | IcmpMessage::TimeExceeded { quoted, .. }
            | IcmpMessage::ParameterProblem { quoted, .. } => Some(quoted),
            IcmpMessage::EchoRequest { .. }
            | IcmpMessage::EchoReply { .. }
            | IcmpMessage::Unknown { .. } => None,
        }
    }

    /// The length of the message that [`emit`](Self::emit) writes, in bytes.
    fn encoded_len(&self) -> usize {
        match *self {
            IcmpMessage::EchoRequest { data, .. } | IcmpMessage::EchoReply { data, .. } => {
                HEADER_LEN + data.len()
            }
            IcmpMessage::Unknown { body, .. } => 4 + body.len(),
            _ => HEADER_LEN + self.quoted().map_or(0, <[u8]>::len),
        }
    }

    /// Writes the message, with the checksum for a packet from `src` to `dst`, and returns its
    /// length.
    ///
    /// # Errors
    /// [`Error::BufferTooSmall`]; [`Error::BadVersion`] if this version of IP has no such message, or no room for its pointer.
    pub fn emit(
        &self,
        src: impl Into<IpAddr>,
        dst: impl Into<IpAddr>,
        out: &mut [u8],
    ) -> Result<usize, Error> {
        let (src, dst) = (src.into(), dst.into());
        let version = Version::of(src);
        let message = version.write(self).ok_or(Error::BadVersion)?.emit(out)?;
        if version.is_v4() {
            let checksum = Sum::of(message).checksum();
            checksum::store(message, CHECKSUM_OFFSET, checksum)?;
        } else {
            checksum::fill(src, dst, version.protocol, message, CHECKSUM_OFFSET)?;
        }
        Ok(message.len())
    }

    /// The length of the packet from `src` that [`emit_packet`](Self::emit_packet) writes, in bytes.
    pub fn packet_len(&self, src: IpAddr) -> usize {
        let version = Version::of(src);
        version.ip_header_len + self.fitted(version).encoded_len()
    }

    /// Writes an IP packet from `src` to `dst` with the message, and returns its length.
    ///
    /// The quote of an error is cut to what fits the longest error: 576 bytes in all for IPv4 (RFC
    /// 1812 4.3.2.3), and the minimum MTU for IPv6 (RFC 4443 2.4 (c)). It is best given as the whole
    /// offending packet.
    ///
    /// # Errors
    /// Those of [`emit`](Self::emit) and [`IpHeader::emit`].
    pub fn emit_packet(&self, src: IpAddr, dst: IpAddr, out: &mut [u8]) -> Result<usize, Error> {
        let version = Version::of(src);
        let message = self.fitted(version);
        let header = IpHeader::new(src, dst, version.protocol);
        let header_len = header.emit(message.encoded_len(), out)?;
        let body = out.get_mut(header_len..).ok_or(Error::BufferTooSmall)?;
        Ok(header_len + message.emit(src, dst, body)?)
    }

    /// The message with no more of the quoted packet than an error may have, and without anything
    /// behind the packet's end.
    fn fitted(mut self, version: &Version) -> Self {
        if let Some(quoted) = self.quoted_mut() {
            let room = version.longest_error - version.ip_header_len - HEADER_LEN;
            let packet_len = IpPacket::parse(quoted).map_or(quoted.len(), |ip| ip.total_len());
            *quoted = quoted.get(..packet_len.min(room)).unwrap_or(quoted);
        }
        self
    }
}

impl Parts<'_> {
    /// Writes the message with a checksum of zero and returns exactly the bytes that it takes.
    fn emit<'o>(&self, out: &'o mut [u8]) -> Result<&'o mut [u8], Error> {
        let len = 4 + self.word.map_or(0, |word| word.len()) + self.rest.len();
        let message = out.get_mut(..len).ok_or(Error::BufferTooSmall)?;
        let (head, mut tail) = message.split_first_chunk_mut().ok_or(Error::BufferTooSmall)?;
        *head = [self.kind, self.code, 0, 0];
        if let Some(word) = self.word {
            let (place, behind) = tail.split_first_chunk_mut().ok_or(Error::BufferTooSmall)?;
            *place = word;
            tail = behind;
        }
        tail.copy_from_slice(self.rest);
        Ok(message)
    }
}
