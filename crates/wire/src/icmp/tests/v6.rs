//! Messages of ICMPv6.

use crate::icmp::*;
use crate::ip::Protocol;
use crate::{Ipv6Header, Ipv6Packet, QuotedPacket};
use core::net::Ipv6Addr;
use proptest::prelude::*;
use std::vec;
use std::vec::Vec;

const HOST: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
const PEER: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2);
const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);

/// A message with its checksum filled in.
fn message(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    checksum::fill(HOST.into(), PEER.into(), Protocol::ICMPV6, &mut bytes, 2).unwrap();
    bytes
}

fn packet(src: Ipv6Addr, dst: Ipv6Addr, protocol: Protocol, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; 40];
    Ipv6Header::new(src, dst, protocol).emit(payload.len(), &mut bytes).unwrap();
    bytes.extend(payload);
    bytes
}

#[test]
fn an_echo_is_read_and_written() {
    // Pseudo-header: 2001 + 0db8 + 1 + 2001 + 0db8 + 2 + 000a + 003a = 5bb9; message 8000 + 0102 +
    // 0003 + 6162 = e267; together 13e20, that is 3e21; complement c1de.
    let bytes = [128, 0, 0xc1, 0xde, 0x01, 0x02, 0x00, 0x03, b'a', b'b'];
    let request = IcmpMessage::EchoRequest { ident: 0x0102, seq: 3, data: b"ab" };
    assert_eq!(IcmpMessage::parse(HOST, PEER, &bytes), Ok(request));
    let mut out = [0xee; 12];
    assert_eq!(request.emit(HOST, PEER, &mut out), Ok(10));
    assert_eq!(out[..10], bytes);
    assert_eq!(out[10..], [0xee; 2]);
    // The addresses are part of what is summed.
    assert_eq!(IcmpMessage::parse(HOST, ALL_NODES, &bytes), Err(Error::BadChecksum));
}

#[test]
fn every_type_is_read_and_written() {
    let quoted = &[9, 9][..];
    let unreachable = |code| IcmpMessage::Unreachable { code, quoted };
    for (head, expected) in [
        ([1, 0, 0, 0, 0, 0, 0, 0], unreachable(UnreachableCode::Net)),
        ([1, 1, 0, 0, 0, 0, 0, 0], unreachable(UnreachableCode::CommunicationProhibited)),
        ([1, 2, 0, 0, 0, 0, 0, 0], unreachable(UnreachableCode::BeyondScope)),
        ([1, 3, 0, 0, 0, 0, 0, 0], unreachable(UnreachableCode::Host)),
        ([1, 4, 0, 0, 0, 0, 0, 0], unreachable(UnreachableCode::Port)),
        ([1, 6, 0, 0, 0, 0, 0, 0], unreachable(UnreachableCode::Other(6))),
        ([2, 0, 0, 0, 0, 0, 5, 0], IcmpMessage::PacketTooBig { mtu: 1280, quoted }),
        ([3, 1, 0, 0, 0, 0, 0, 0], IcmpMessage::TimeExceeded { code: 1, quoted }),
        (
            [4, 1, 0, 0, 0, 1, 0, 6],
            IcmpMessage::ParameterProblem { code: 1, pointer: 0x1_0006, quoted },
        ),
        (
            [129, 0, 0, 0, 1, 2, 3, 4],
            IcmpMessage::EchoReply { ident: 0x102, seq: 0x304, data: quoted },
        ),
        // A neighbour solicitation.
        (
            [135, 0, 0, 0, 0, 0, 0, 0],
            IcmpMessage::Unknown { kind: 135, code: 0, body: &[0, 0, 0, 0, 9, 9] },
        ),
    ] {
        let bytes = message(&[&head[..], quoted].concat());
        assert_eq!(IcmpMessage::parse(HOST, PEER, &bytes), Ok(expected));
        let mut out = [0; 10];
        assert_eq!(expected.emit(HOST, PEER, &mut out), Ok(10));
        assert_eq!(out[..], bytes);
        assert_eq!(expected.quoted().is_some(), head[0] < 128);
        assert_eq!(expected.emit(HOST, PEER, &mut out[..9]), Err(Error::BufferTooSmall));
    }
}

#[test]
fn the_code_of_packet_too_big_is_ignored() {
    let bytes = message(&[2, 77, 0, 0, 0, 0, 5, 0]);
    let expected = IcmpMessage::PacketTooBig { mtu: 1280, quoted: &[] };
    assert_eq!(IcmpMessage::parse(HOST, PEER, &bytes), Ok(expected));
}

/// [RFC4443-2.3-1] [RFC8200-8.1-3]
#[test]
fn broken_messages_are_errors() {
    let bytes = message(&[1, 3, 0, 0, 0, 0, 0, 0]);
    for len in 0..4 {
        assert_eq!(IcmpMessage::parse(HOST, PEER, &bytes[..len]), Err(Error::Truncated));
    }
    let short = message(&[1, 3, 0, 0, 1, 2]);
    assert_eq!(IcmpMessage::parse(HOST, PEER, &short), Err(Error::Truncated));
    let mut flipped = bytes.clone();
    flipped[7] ^= 1;
    assert_eq!(IcmpMessage::parse(HOST, PEER, &flipped), Err(Error::BadChecksum));
}

#[test]
fn an_error_fits_the_minimum_mtu() {
    let offending = packet(PEER, HOST, Protocol::TCP, &[0xab; 1400]);
    let (src, dst) = (HOST.into(), PEER.into());
    let error = IcmpMessage::PacketTooBig { mtu: 1280, quoted: &offending };
    let mut out = [0; 1500];
    assert_eq!(error.emit_packet(src, dst, &mut out), Ok(1280));
    let sent = Ipv6Packet::parse(&out).unwrap();
    let message = IcmpMessage::parse(sent.src(), sent.dst(), sent.payload()).unwrap();
    assert_eq!(message.quoted(), Some(&offending[..1232]));
    let quoted = QuotedPacket::parse(message.quoted().unwrap()).unwrap();
    assert_eq!((quoted.src, quoted.transport.len()), (PEER.into(), 1192));
    let mut short = packet(PEER, HOST, Protocol::TCP, &[0xab; 10]);
    short.extend([0xee; 10]);
    let error = IcmpMessage::TimeExceeded { code: 0, quoted: &short };
    assert_eq!(error.packet_len(src), 98);
    assert_eq!(error.emit_packet(src, dst, &mut out), Ok(98));
    assert_eq!(error.emit_packet(src, dst, &mut out[..97]), Err(Error::BufferTooSmall));
}

/// [RFC4443-2.1-1] [RFC4443-2.4-7] [RFC4443-2.4-9]
#[test]
fn some_packets_are_never_answered() {
    let unreachable = IcmpMessage::Unreachable { code: UnreachableCode::Port, quoted: &[] };
    let too_big = IcmpMessage::PacketTooBig { mtu: 1280, quoted: &[] };
    let option = IcmpMessage::ParameterProblem { code: 2, pointer: 0, quoted: &[] };
    let field = IcmpMessage::ParameterProblem { code: 0, pointer: 0, quoted: &[] };
    let may = |src, dst, protocol, payload: &[u8], error: IcmpMessage<'_>| {
        let bytes = packet(src, dst, protocol, payload);
        error.may_answer(&IpPacket::parse(&bytes).unwrap())
    };
    let tcp = Protocol::TCP;
    assert!(may(PEER, HOST, tcp, &[], unreachable));
    assert!(!may(PEER, ALL_NODES, tcp, &[], unreachable));
    assert!(!may(PEER, ALL_NODES, tcp, &[], field));
    assert!(may(PEER, ALL_NODES, tcp, &[], too_big));
    assert!(may(PEER, ALL_NODES, tcp, &[], option));
    assert!(!may(Ipv6Addr::UNSPECIFIED, HOST, tcp, &[], too_big));
    assert!(!may(ALL_NODES, HOST, tcp, &[], unreachable));
    assert!(may(PEER, HOST, Protocol::ICMPV6, &[128], unreachable));
    for kind in [1, 4, 127, 137] {
        assert!(!may(PEER, HOST, Protocol::ICMPV6, &[kind], unreachable), "{kind}");
    }
    assert!(!may(PEER, HOST, Protocol::ICMPV6, &[], unreachable));
    let piece = [6, 0, 0, 8, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0];
    assert!(!may(PEER, HOST, Protocol::FRAGMENT, &piece, unreachable));
}

/// What only one version says cannot be written in the other.
#[test]
fn messages_of_the_other_version_are_refused() {
    let code = UnreachableCode::SourceRouteFailed;
    let here_only = IcmpMessage::Unreachable { code: UnreachableCode::BeyondScope, quoted: &[] };
    let there_only = [
        IcmpMessage::Unreachable { code, quoted: &[] },
        IcmpMessage::Redirect { code: 0, gateway: Ipv4Addr::LOCALHOST, quoted: &[] },
    ];
    let mut out = [0; 8];
    for message in there_only {
        assert_eq!(message.emit(HOST, PEER, &mut out), Err(Error::BadVersion));
    }
    let here = Ipv4Addr::LOCALHOST;
    assert_eq!(here_only.emit(here, here, &mut out), Err(Error::BadVersion));
    let pointer = |pointer| IcmpMessage::ParameterProblem { code: 0, pointer, quoted: &[] };
    assert_eq!(pointer(256).emit(here, here, &mut out), Err(Error::BadVersion));
    assert_eq!(pointer(255).emit(here, here, &mut out), Ok(8));
}

/// What hides in fragments: an error may not be answered, however its headers are cut.
#[test]
fn fragments_of_errors_are_never_answered() {
    let late = IcmpMessage::TimeExceeded { code: 1, quoted: &[] };
    let field = IcmpMessage::ParameterProblem {
        code: IcmpMessage::ERRONEOUS_FIELD,
        pointer: 4,
        quoted: &[],
    };
    let cut = IcmpMessage::ParameterProblem {
        code: IcmpMessage::INCOMPLETE_CHAIN,
        pointer: 0,
        quoted: &[],
    };
    let may = |next: u8, offset: u8, rest: &[u8], error: IcmpMessage<'_>| {
        let payload = [&[next, 0, 0, offset | 1, 0, 0, 0, 1], rest].concat();
        let bytes = packet(PEER, HOST, Protocol::FRAGMENT, &payload);
        error.may_answer(&IpPacket::parse(&bytes).unwrap())
    };
    let options = |next: u8| [next, 0, 1, 4, 0, 0, 0, 0];
    let [echo, unreachable] = [[128, 0, 0, 0], [1, 0, 0, 0]];
    for (allowed, message) in [(true, echo), (false, unreachable)] {
        assert_eq!(may(58, 0, &message, late), allowed);
        assert_eq!(may(60, 0, &[&options(58)[..], &message].concat(), late), allowed);
    }
    // The type is missing, or what comes next is.
    assert!(!may(58, 0, &[], cut) && !may(60, 0, &options(58), cut));
    assert!(!may(60, 0, &options(6)[..7], late));
    assert!(may(60, 0, &options(6)[..7], cut));
    // Later fragments: only about their own fields, and only if they say that they are of no error.
    assert!(may(6, 8, &[0; 7], field));
    assert!(!may(6, 8, &[0; 7], late));
    for next in [58, 60, 43, 51, 44, 0] {
        assert!(!may(next, 8, &[0; 7], field), "{next}");
    }
}

proptest! {
    #[test]
    fn arbitrary_messages_survive_a_round_trip(
        mut bytes in prop::collection::vec(any::<u8>(), 4..64),
        known in prop::option::of(prop::sample::select(vec![1u8, 2, 3, 4, 128, 129])),
    ) {
        bytes[0] = known.unwrap_or(bytes[0]);
        let bytes = message(&bytes);
        if let Ok(parsed) = IcmpMessage::parse(HOST, PEER, &bytes) {
            let mut out = vec![0; bytes.len()];
            prop_assert_eq!(parsed.emit(HOST, PEER, &mut out), Ok(bytes.len()));
            prop_assert_eq!(IcmpMessage::parse(HOST, PEER, &out), Ok(parsed));
        } else {
            prop_assert!(bytes.len() < HEADER_LEN);
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        _ = IcmpMessage::parse(HOST, PEER, &bytes);
    }
}
