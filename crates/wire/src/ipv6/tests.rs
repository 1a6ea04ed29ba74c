//! The IPv6 header and its extension headers against packets written by hand, and round trips.

use super::*;
use crate::ip::Fragment;
use proptest::prelude::*;
use std::vec;
use std::vec::Vec;

const SRC: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
const DST: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2);

/// A packet whose fixed header announces `first`, followed by `rest`.
fn packet(first: u8, rest: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x60, 0, 0, 0, 0, 0, first, 64];
    bytes[4..6].copy_from_slice(&(rest.len() as u16).to_be_bytes());
    bytes.extend(SRC.octets());
    bytes.extend(DST.octets());
    bytes.extend(rest);
    bytes
}

#[test]
fn a_header_is_read_and_written() {
    let mut bytes = packet(17, b"payload");
    bytes[0..4].copy_from_slice(&[0x6b, 0x9a, 0xbc, 0xde]);
    bytes.extend(b"trailer");
    let packet = Ipv6Packet::parse(&bytes).unwrap();
    let expected = Ipv6Header {
        src: SRC,
        dst: DST,
        traffic_class: 0xb9,
        flow_label: 0xa_bcde,
        next_header: Protocol::UDP,
        hop_limit: 64,
    };
    assert_eq!(packet.header(), expected);
    assert_eq!((packet.src(), packet.dst()), (SRC, DST));
    assert_eq!((packet.protocol(), packet.protocol_offset()), (Protocol::UDP, 6));
    assert_eq!((packet.payload(), packet.header_len()), (&b"payload"[..], 40));
    let mut out = [0xee; 41];
    assert_eq!(expected.emit(7, &mut out), Ok(40));
    assert_eq!(out[..40], bytes[..40]);
    assert_eq!(out[40], 0xee);
}

#[test]
fn lengths_that_lie_are_errors() {
    let bytes = packet(17, &[0; 8]);
    for len in 0..bytes.len() {
        assert_eq!(Ipv6Packet::parse(&bytes[..len]).unwrap_err(), Error::Truncated);
    }
    let header = Ipv6Header::new(SRC, DST, Protocol::TCP);
    assert_eq!(header.emit(65_536, &mut [0; 40]), Err(Error::TooLong));
    assert_eq!(header.emit(65_535, &mut [0; 40]), Ok(40));
    assert_eq!(header.emit(0, &mut [0; 39]), Err(Error::BufferTooSmall));
}

#[test]
fn extension_headers_are_walked() {
    let rest = [
        &[43, 0, 1, 4, 0, 0, 0, 0][..], // hop-by-hop, then routing: PadN of 4
        &[60, 0, 99, 0, 0, 0, 0, 0],    // routing type 99, no segments left
        &[51, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], // destination options, 16 bytes
        &[6, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2], // authentication: (1 + 2) · 4 bytes
        b"TCP",
    ]
    .concat();
    let bytes = packet(0, &rest);
    let packet = Ipv6Packet::parse(&bytes).unwrap();
    assert_eq!(packet.protocol(), Protocol::TCP);
    assert_eq!(packet.payload(), b"TCP");
    assert_eq!(packet.header_len(), 40 + 8 + 8 + 16 + 12);
    assert_eq!(packet.protocol_offset(), 40 + 8 + 8 + 16);
    assert_eq!(packet.extensions, &rest[..44]);
    let walked: Vec<_> = packet
        .extension_headers()
        .map(|header| (header.kind.0, header.offset, header.bytes.len()))
        .collect();
    assert_eq!(walked, [(0, 40, 8), (43, 48, 8), (60, 56, 16), (51, 72, 12)]);
    // The byte that announces the authentication header, which nobody here can verify.
    let expected =
        ExtensionProblem::ParameterProblem { code: 1, pointer: 56, unless_multicast: false };
    assert_eq!(packet.extension_problem(), Some(expected));
    assert_eq!(packet.header().next_header, Protocol::HOP_BY_HOP);
}

#[test]
fn headers_that_are_not_followed_are_reported() {
    // A type not known, hop-by-hop options out of place, and nothing at all.
    let bytes = packet(60, &[253, 0, 1, 4, 0, 0, 0, 0, 1, 2, 3]);
    let unknown = Ipv6Packet::parse(&bytes).unwrap();
    assert_eq!((unknown.protocol(), unknown.protocol_offset()), (Protocol(253), 40));
    assert_eq!(unknown.payload(), [1, 2, 3]);
    let bytes = packet(60, &[0, 0, 1, 4, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0]);
    let misplaced = Ipv6Packet::parse(&bytes).unwrap();
    assert_eq!((misplaced.protocol(), misplaced.header_len()), (Protocol::HOP_BY_HOP, 48));
    let bytes = packet(59, &[]);
    assert_eq!(Ipv6Packet::parse(&bytes).unwrap().protocol(), Protocol::NO_NEXT_HEADER);
}

#[test]
fn an_extension_header_may_not_pass_the_end() {
    for rest in [&[][..], &[6], &[6, 0, 0, 0, 0, 0, 0], &[6, 1, 0, 0, 0, 0, 0, 0], &[6, 255]] {
        for kind in [0, 43, 44, 51, 60] {
            let fragment_fits = kind == 44 && rest.len() >= 8;
            if !fragment_fits {
                let bytes = packet(kind, rest);
                assert_eq!(Ipv6Packet::parse(&bytes).unwrap_err(), Error::Truncated, "{kind}");
            }
        }
    }
}

#[test]
fn the_walk_is_bounded() {
    let chain = |count: usize| {
        let mut rest = [60, 0, 1, 4, 0, 0, 0, 0].repeat(count);
        rest[8 * (count - 1)] = 6;
        packet(60, &rest)
    };
    let longest = chain(MAX_EXTENSION_HEADERS);
    assert_eq!(Ipv6Packet::parse(&longest).unwrap().protocol(), Protocol::TCP);
    let too_long = chain(MAX_EXTENSION_HEADERS + 1);
    assert_eq!(Ipv6Packet::parse(&too_long).unwrap_err(), Error::TooManyExtensionHeaders);
}

#[test]
fn a_fragment_ends_the_walk() {
    // Destination options, then a fragment at offset 8 · 0x123 with more to come, of a packet that
    // went on with destination options: those are data of the piece, whatever they look like.
    let rest =
        [&[44, 0, 1, 4, 0, 0, 0, 0][..], &[60, 0, 0x09, 0x19, 0xde, 0xad, 0xbe, 0xef], b"8 bytes."]
            .concat();
    let bytes = packet(60, &rest);
    let packet = Ipv6Packet::parse(&bytes).unwrap();
    let expected = FragmentHeader {
        fragment: Fragment { id: 0xdead_beef, offset: 0x123 * 8, more: true },
        next_header: Protocol::DESTINATION_OPTIONS,
        offset: 48,
        named_at: 40,
    };
    assert_eq!(packet.fragment(), Some(expected));
    assert_eq!(packet.payload(), b"8 bytes.");
    assert_eq!(packet.protocol(), Protocol::DESTINATION_OPTIONS);
    assert_eq!(packet.extension_headers().count(), 2);
    let mut out = [0; 8];
    FragmentHeader::emit(Protocol::DESTINATION_OPTIONS, expected.fragment, &mut out).unwrap();
    assert_eq!(out, rest[8..16]);
    let odd = Fragment { offset: 4, ..expected.fragment };
    assert_eq!(FragmentHeader::emit(Protocol::TCP, odd, &mut out), Err(Error::BadLength));
}

#[test]
fn an_atomic_fragment_is_a_whole_packet() {
    let bytes = packet(44, &[6, 0, 0, 0, 0, 0, 0, 1, 1, 2, 3]);
    let packet = Ipv6Packet::parse(&bytes).unwrap();
    assert_eq!(packet.fragment(), None);
    assert_eq!((packet.protocol(), packet.payload()), (Protocol::TCP, &[1, 2, 3][..]));
}

/// A destination options header with one option of `kind` behind a Pad1, and what is to be done
/// about it.
fn problem_with_option(kind: u8) -> Option<ExtensionProblem> {
    let bytes = packet(60, &[59, 0, 0, kind, 1, 0, 1, 0]);
    Ipv6Packet::parse(&bytes).unwrap().extension_problem()
}

#[test]
fn an_unrecognized_option_says_what_to_do() {
    // RFC 8200 4.2: skip, discard, report, report unless multicast.
    let report = |unless_multicast| {
        Some(ExtensionProblem::ParameterProblem { code: 2, pointer: 43, unless_multicast })
    };
    assert_eq!(problem_with_option(0x1e), None);
    assert_eq!(problem_with_option(0x5e), Some(ExtensionProblem::Discard));
    assert_eq!(problem_with_option(0x9e), report(false));
    assert_eq!(problem_with_option(0xde), report(true));
    assert_eq!(problem_with_option(5), None);
    // Behind options that may be skipped: PadN of 3, one of 2 bytes.
    let bytes = packet(60, &[59, 1, 1, 1, 0, 0x1e, 2, 0, 0, 0x9e, 5, 0, 0, 0, 0, 0]);
    let problem = Ipv6Packet::parse(&bytes).unwrap().extension_problem();
    let (code, pointer) = (2, 49);
    let expected = ExtensionProblem::ParameterProblem { code, pointer, unless_multicast: false };
    assert_eq!(problem, Some(expected));
    // An option that runs past its header.
    let bytes = packet(60, &[59, 0, 0x1e, 9, 0, 0, 0, 0]);
    let packet = Ipv6Packet::parse(&bytes).unwrap();
    assert_eq!(packet.extension_problem(), Some(ExtensionProblem::Discard));
}

#[test]
fn a_route_that_is_not_used_up_is_a_problem() {
    let bytes = packet(43, &[59, 0, 0, 1, 0, 0, 0, 0]);
    let expected =
        ExtensionProblem::ParameterProblem { code: 0, pointer: 42, unless_multicast: false };
    assert_eq!(Ipv6Packet::parse(&bytes).unwrap().extension_problem(), Some(expected));
}

/// The pieces of a packet, and what can be told of the whole.
#[test]
fn the_chain_of_a_first_fragment_goes_on_behind_its_header() {
    let tcp = [0; 20];
    let options = [6, 0, 1, 4, 0, 0, 0, 0];
    let upper = |next: u8, offset_and_more: [u8; 2], rest: &[u8]| {
        let [o0, o1] = offset_and_more;
        let bytes = packet(44, &[&[next, 0, o0, o1, 0, 0, 0, 1], rest].concat());
        let packet = Ipv6Packet::parse(&bytes).unwrap();
        let upper = packet.upper_layer().map(|(protocol, bytes)| (protocol.0, bytes.len()));
        (upper, packet.header_chain_is_cut())
    };
    let first = [0, 1];
    assert_eq!(upper(6, first, &tcp), (Ok((6, 20)), false));
    assert_eq!(upper(6, first, &tcp[..16]), (Ok((6, 16)), true));
    assert_eq!(upper(60, first, &[&options[..], &tcp].concat()), (Ok((6, 20)), false));
    assert_eq!(upper(60, first, &options), (Ok((6, 0)), true));
    assert_eq!(upper(60, first, &options[..7]), (Err(Error::Truncated), true));
    assert_eq!(upper(17, first, &[0; 8]), (Ok((17, 8)), false));
    assert_eq!(upper(58, first, &[128, 0, 0, 0, 0, 0, 0, 0]), (Ok((58, 8)), false));
    assert_eq!(upper(200, first, &[]), (Ok((200, 0)), true));
    assert_eq!(upper(59, first, &[]), (Ok((59, 0)), false));
    // Hop-by-hop options are out of place there, and end the chain.
    assert_eq!(upper(0, first, &options), (Ok((0, 8)), false));
    // A fragment of a fragment, and one that is not the first.
    assert_eq!(upper(44, first, &[6, 0, 0, 1, 0, 0, 0, 1]), (Err(Error::Truncated), true));
    assert_eq!(upper(6, [0, 9], &tcp), (Err(Error::Truncated), true));
    // The bound on headers holds for the whole chain.
    let mut many = [60, 0, 1, 4, 0, 0, 0, 0].repeat(MAX_EXTENSION_HEADERS);
    many[8 * (MAX_EXTENSION_HEADERS - 1)] = 6;
    assert_eq!(upper(60, first, &many), (Err(Error::TooManyExtensionHeaders), false));
}

#[test]
fn quotes_may_be_cut() {
    let bytes = packet(60, &[6, 0, 1, 4, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 9]);
    let quoted = QuotedPacket::parse(&bytes[..56]).unwrap();
    assert_eq!((quoted.src, quoted.dst), (SRC.into(), DST.into()));
    assert_eq!(quoted.protocol, Protocol::TCP);
    assert_eq!(quoted.transport, [1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(QuotedPacket::parse(&bytes[..47]), Err(Error::Truncated));
    // A later piece has no transport header to look at.
    let bytes = packet(44, &[6, 0, 0, 8, 0, 0, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8]);
    assert!(QuotedPacket::parse(&bytes).unwrap().transport.is_empty());
}

proptest! {
    #[test]
    fn written_headers_are_read_back(
        (src, dst, traffic_class, hop_limit) in any::<(u128, u128, u8, u8)>(),
        flow_label in 0u32..1 << 20,
        payload: Vec<u8>,
    ) {
        let header = Ipv6Header {
            src: src.into(),
            dst: dst.into(),
            traffic_class,
            flow_label,
            next_header: Protocol::TCP,
            hop_limit,
        };
        let mut bytes = vec![0; 40];
        prop_assert_eq!(header.emit(payload.len(), &mut bytes), Ok(40));
        bytes.extend(&payload);
        let packet = Ipv6Packet::parse(&bytes).unwrap();
        prop_assert_eq!(packet.header(), header);
        prop_assert_eq!(packet.payload(), &payload[..]);
    }

    #[test]
    fn arbitrary_extension_headers_never_panic(
        first in prop::sample::select(vec![0u8, 6, 43, 44, 51, 60]),
        mut rest in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        for header in rest.chunks_mut(8) {
            header[0] = [0, 6, 43, 44, 51, 60][usize::from(header[0]) % 6];
            if let Some(len) = header.get_mut(1) {
                *len %= 3;
            }
        }
        let bytes = packet(first, &rest);
        if let Ok(packet) = Ipv6Packet::parse(&bytes) {
            prop_assert_eq!(packet.header_len() + packet.payload().len(), bytes.len());
            let walked: usize = packet.extension_headers().map(|header| header.bytes.len()).sum();
            prop_assert_eq!(walked + 40, packet.header_len());
            prop_assert_eq!(bytes[packet.protocol_offset()], packet.protocol().0);
            _ = packet.extension_problem();
            _ = (packet.upper_layer(), packet.header_chain_is_cut());
        }
        _ = QuotedPacket::parse(&bytes);
    }
}
