//! IPv6 extension headers (RFC 8200 4; the authentication header RFC 4302 2).
//!
//! All that are followed begin with the type of the next header, and all but the fragment header
//! state their length. Input decides how many there are, so the walk is bounded (RFC 8504 5.3
//! suggests limits). Hop-by-hop options count only right behind the fixed header; anywhere else
//! their type is not recognized (RFC 8200 4.1), as is any type not listed here: the walk ends at
//! it.

use super::HEADER_LEN;
use crate::ip::{Fragment, Protocol};
use crate::{Error, IcmpMessage};

/// How many extension headers are followed.
pub const MAX_EXTENSION_HEADERS: usize = 8;

/// The fragment header (RFC 8200 4.5), and its place, which reassembly needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FragmentHeader {
    /// Which piece this is.
    pub fragment: Fragment,
    /// The type of the original packet's header behind its per-fragment headers.
    pub next_header: Protocol,
    /// The offset of the fragment header, in bytes from the start of the packet: the length of the
    /// per-fragment headers.
    pub offset: u16,
    /// The offset of the byte that announces the fragment header; in the reassembled packet it
    /// becomes `next_header`.
    pub named_at: u16,
}

impl FragmentHeader {
    /// The fragment header's length in bytes.
    pub const LEN: usize = 8;

    /// Writes a fragment header and returns its length.
    ///
    /// # Errors
    /// [`Error::BadLength`] for an offset that is no multiple of eight, [`Error::BufferTooSmall`].
    pub fn emit(next_header: Protocol, fragment: Fragment, out: &mut [u8]) -> Result<usize, Error> {
        let Fragment { id, offset, more } = fragment;
        if !offset.is_multiple_of(8) {
            return Err(Error::BadLength);
        }
        let out = out.first_chunk_mut::<{ Self::LEN }>().ok_or(Error::BufferTooSmall)?;
        let [o0, o1] = (offset | u16::from(more)).to_be_bytes();
        let [i0, i1, i2, i3] = id.to_be_bytes();
        *out = [next_header.0, 0, o0, o1, i0, i1, i2, i3];
        Ok(Self::LEN)
    }

    /// Reads the fields of a fragment header.
    fn decode(bytes: &[u8]) -> Result<Fragment, Error> {
        let &[_, _, o0, o1, i0, i1, i2, i3] =
            bytes.first_chunk::<{ Self::LEN }>().ok_or(Error::Truncated)?;
        let field = u16::from_be_bytes([o0, o1]);
        let id = u32::from_be_bytes([i0, i1, i2, i3]);
        Ok(Fragment { id, offset: field & !7, more: field & 1 != 0 })
    }
}

/// The end of the walk over the extension headers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Walk {
    /// The protocol that was found there.
    pub(super) protocol: Protocol,
    /// The offset of the byte that announced it, from the start of the packet.
    pub(super) named_at: u16,
    /// Its offset, from the start of the packet.
    starts_at: u16,
    /// The fragment header that ended the walk, if one did.
    pub(super) fragment: Option<FragmentHeader>,
}

impl Walk {
    /// Walks the extension headers at the start of `bytes`, which follow the fixed header.
    #[inline]
    pub(super) fn over(first: Protocol, bytes: &[u8]) -> Result<Walk, Error> {
        const NEXT_HEADER_OFFSET: u16 = 6;
        let start = Walk {
            protocol: first,
            named_at: NEXT_HEADER_OFFSET,
            starts_at: HEADER_LEN as u16,
            fragment: None,
        };
        start.go_on(bytes, 0)
    }

    /// Walks on over `bytes`, which a first fragment has behind its fragment header. `before`
    /// extension headers have been walked, so hop-by-hop options would be out of place.
    pub(super) fn behind_fragment(
        header: &FragmentHeader,
        bytes: &[u8],
        before: usize,
    ) -> Result<Walk, Error> {
        let start = Walk {
            protocol: header.next_header,
            named_at: header.offset,
            starts_at: header.offset + FragmentHeader::LEN as u16,
            fragment: None,
        };
        start.go_on(bytes, before)
    }

    #[inline]
    fn go_on(self, bytes: &[u8], before: usize) -> Result<Walk, Error> {
        let mut walk = self;
        let mut rest = bytes;
        let mut count = before;
        while let Some(len) = extension_len(walk.protocol, count == 0, rest)? {
            if count == MAX_EXTENSION_HEADERS {
                return Err(Error::TooManyExtensionHeaders);
            }
            count += 1;
            let (header, behind) = rest.split_at_checked(len).ok_or(Error::Truncated)?;
            let fragment = match walk.protocol {
                Protocol::FRAGMENT => Some(FragmentHeader::decode(header)?),
                _ => None,
            };
            let [next, ..] = *header else { return Err(Error::Truncated) };
            let (offset, named_at) = (walk.starts_at, walk.named_at);
            let next = Protocol(next);
            walk.protocol = next;
            walk.named_at = offset;
            // Beyond 64 KiB, which only the quote of a forged jumbogram could reach, there is
            // nothing to find.
            let len = u16::try_from(len).map_err(|_| Error::BadLength)?;
            walk.starts_at = offset.checked_add(len).ok_or(Error::BadLength)?;
            // [RFC8200-4.5-8] An atomic fragment is gone through like any other header.
            if let Some(fragment) = fragment
                && (fragment.offset != 0 || fragment.more)
            {
                walk.fragment =
                    Some(FragmentHeader { fragment, next_header: next, offset, named_at });
                break;
            }
            rest = behind;
        }
        Ok(walk)
    }

    /// The length of all extension headers that were walked.
    #[inline]
    pub(super) fn extensions_len(&self) -> usize {
        usize::from(self.starts_at).saturating_sub(HEADER_LEN)
    }
}

/// The least that the header of an upper-layer protocol takes, in bytes. Of a protocol that is not
/// known here, one byte shows that the chain of headers ends.
pub(super) fn least_header(protocol: Protocol) -> usize {
    match protocol {
        Protocol::TCP => 20,
        Protocol::UDP => 8,
        Protocol::ICMPV6 => 4,
        Protocol::NO_NEXT_HEADER => 0,
        _ => 1,
    }
}

/// Whether a protocol number is that of an extension header, followed here or not: what comes
/// behind it is not known from the number alone (RFC 8200 4; RFC 7045 2).
pub(super) fn is_extension(protocol: Protocol) -> bool {
    const ESP: u8 = 50;
    const MOBILITY: u8 = 135;
    const HIP: u8 = 139;
    const SHIM6: u8 = 140;
    matches!(
        protocol,
        Protocol::HOP_BY_HOP
            | Protocol::ROUTING
            | Protocol::FRAGMENT
            | Protocol::AUTHENTICATION
            | Protocol::DESTINATION_OPTIONS
            | Protocol(ESP | MOBILITY | HIP | SHIM6 | 253 | 254)
    )
}

/// The length of an extension header of type `kind` at the start of `bytes`; `None` if that type is
/// not followed.
/// [RFC8200-4.1-2]
#[inline]
fn extension_len(kind: Protocol, is_first: bool, bytes: &[u8]) -> Result<Option<usize>, Error> {
    let len_byte = || bytes.get(1).map(|&len| usize::from(len)).ok_or(Error::Truncated);
    Ok(Some(match kind {
        Protocol::HOP_BY_HOP if is_first => (len_byte()? + 1) * 8,
        Protocol::ROUTING | Protocol::DESTINATION_OPTIONS => (len_byte()? + 1) * 8,
        // Counted in four-byte words, less two (RFC 4302 2.2).
        Protocol::AUTHENTICATION => (len_byte()? + 2) * 4,
        Protocol::FRAGMENT => FragmentHeader::LEN,
        _ => return Ok(None),
    }))
}

/// An extension header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ExtensionHeader<'a> {
    /// Its type.
    pub(crate) kind: Protocol,
    /// Its offset, in bytes from the start of the packet.
    pub(crate) offset: usize,
    /// Its bytes, from the next-header byte on.
    pub(crate) bytes: &'a [u8],
}

impl<'a> ExtensionHeader<'a> {
    /// The options of a hop-by-hop or destination options header; of any other header, none.
    fn options(&self) -> Ipv6OptionIter<'a> {
        let has_options = matches!(self.kind, Protocol::HOP_BY_HOP | Protocol::DESTINATION_OPTIONS);
        let rest = self.bytes.get(2..).filter(|_| has_options).unwrap_or_default();
        Ipv6OptionIter { rest, offset: self.offset + 2 }
    }
}

/// The extension headers of a packet.
#[derive(Clone, Debug)]
pub(crate) struct ExtensionHeaderIter<'a> {
    kind: Protocol,
    offset: usize,
    rest: &'a [u8],
}

impl<'a> ExtensionHeaderIter<'a> {
    pub(super) fn new(first: Protocol, bytes: &'a [u8]) -> Self {
        ExtensionHeaderIter { kind: first, offset: HEADER_LEN, rest: bytes }
    }
}

impl<'a> Iterator for ExtensionHeaderIter<'a> {
    type Item = ExtensionHeader<'a>;

    fn next(&mut self) -> Option<ExtensionHeader<'a>> {
        // The walk has ended at the end of these bytes, whatever the last header announces.
        if self.rest.is_empty() {
            return None;
        }
        let is_first = self.offset == HEADER_LEN;
        let len = extension_len(self.kind, is_first, self.rest).ok()??;
        let (bytes, rest) = self.rest.split_at_checked(len)?;
        let header = ExtensionHeader { kind: self.kind, offset: self.offset, bytes };
        self.kind = Protocol(*bytes.first()?);
        self.offset += bytes.len();
        self.rest = rest;
        Some(header)
    }
}

/// An option in a hop-by-hop or destination options header (RFC 8200 4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ipv6Option<'a> {
    /// The option's type; its upper two bits say what to do if it is not recognized.
    pub(crate) kind: u8,
    /// The offset of its type byte, in bytes from the start of the packet.
    pub(crate) offset: usize,
    /// The data behind type and length.
    pub(crate) data: &'a [u8],
}

/// The options of an extension header, padding left out; an item is an error if an option runs past
/// the header's end.
/// [RFC8200-4.2-6]
#[derive(Clone, Debug)]
pub(crate) struct Ipv6OptionIter<'a> {
    rest: &'a [u8],
    offset: usize,
}

impl<'a> Iterator for Ipv6OptionIter<'a> {
    type Item = Result<Ipv6Option<'a>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        const PAD_1: u8 = 0;
        const PAD_N: u8 = 1;
        loop {
            let bytes = core::mem::take(&mut self.rest);
            let offset = self.offset;
            match *bytes {
                [] => return None,
                [PAD_1, ref rest @ ..] => {
                    self.offset += 1;
                    self.rest = rest;
                }
                [_] => return Some(Err(Error::BadOption)),
                [kind, len, ref rest @ ..] => {
                    let Some((data, rest)) = rest.split_at_checked(len.into()) else {
                        return Some(Err(Error::BadOption));
                    };
                    self.offset += 2 + data.len();
                    self.rest = rest;
                    if kind != PAD_N {
                        return Some(Ok(Ipv6Option { kind, offset, data }));
                    }
                }
            }
        }
    }
}

/// Why a packet's destination must discard it, for the sake of an extension header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExtensionProblem {
    /// Silently.
    Discard,
    /// With an ICMPv6 *parameter problem*.
    ParameterProblem {
        /// The ICMPv6 code: 0 for an erroneous header field, 1 for an unrecognized next header, 2
        /// for an unrecognized option.
        code: u8,
        /// The offset that the error points at, in bytes from the start of the packet.
        pointer: u32,
        /// The error is only sent if the packet's destination was not a multicast address.
        unless_multicast: bool,
    },
}

/// The first reason not to go on with a packet, in the order of its headers.
pub(super) fn first_problem<'a>(
    mut headers: impl Iterator<Item = ExtensionHeader<'a>>,
) -> Option<ExtensionProblem> {
    const NEXT_HEADER_OFFSET: usize = 6;
    let mut named_at = NEXT_HEADER_OFFSET;
    headers.find_map(|header| {
        let announced_at = core::mem::replace(&mut named_at, header.offset);
        match header.kind {
            Protocol::ROUTING => routing_problem(&header),
            // There is no security association that could verify it, and a host that skipped it
            // would take what was forged for what was authenticated (RFC 4302 3.4.2).
            Protocol::AUTHENTICATION => unrecognized_header(announced_at),
            _ => header.options().find_map(option_problem),
        }
    })
}

/// RFC 8200 4: the header that the byte at this offset announces is not recognized.
fn unrecognized_header(announced_at: usize) -> Option<ExtensionProblem> {
    let (code, pointer) =
        (IcmpMessage::UNRECOGNIZED_NEXT_HEADER, u32::try_from(announced_at).ok()?);
    Some(ExtensionProblem::ParameterProblem { code, pointer, unless_multicast: false })
}

/// No routing type is supported: fine once the route is used up, a parameter problem before (RFC
/// 8200 4.4).
/// [RFC8200-4.4-1] [RFC8200-4.4-2]
fn routing_problem(header: &ExtensionHeader<'_>) -> Option<ExtensionProblem> {
    const TYPE_OFFSET: usize = 2;
    match header.bytes {
        [_, _, _, 0, ..] => None,
        _ => {
            let pointer = u32::try_from(header.offset + TYPE_OFFSET).ok()?;
            let code = IcmpMessage::ERRONEOUS_FIELD;
            Some(ExtensionProblem::ParameterProblem { code, pointer, unless_multicast: false })
        }
    }
}

/// The demand of an option's type on a host that knows none but padding and the router alert.
/// [RFC8200-4.2-1] [RFC8200-4.2-2] [RFC8200-4.2-3] [RFC8200-4.2-4] [RFC4443-3.4-3]
fn option_problem(option: Result<Ipv6Option<'_>, Error>) -> Option<ExtensionProblem> {
    const ROUTER_ALERT: u8 = 5;
    let Ok(option) = option else { return Some(ExtensionProblem::Discard) };
    if option.kind == ROUTER_ALERT {
        return None;
    }
    let pointer = u32::try_from(option.offset).ok()?;
    let problem = |unless_multicast| {
        let code = IcmpMessage::UNRECOGNIZED_OPTION;
        Some(ExtensionProblem::ParameterProblem { code, pointer, unless_multicast })
    };
    match option.kind >> 6 {
        0 => None,
        1 => Some(ExtensionProblem::Discard),
        2 => problem(false),
        _ => problem(true),
    }
}
