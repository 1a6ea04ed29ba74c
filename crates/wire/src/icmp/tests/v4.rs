//! Messages of ICMP for IPv4.

use crate::icmp::*;
use crate::ip::Protocol;
use crate::tcp::QuotedTcp;
use crate::{Ipv4Header, Ipv4Packet, QuotedPacket};
use proptest::prelude::*;
use std::vec;
use std::vec::Vec;

const HOST: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const PEER: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 2);

/// A message with its checksum filled in.
fn message(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[2..4].fill(0);
    let checksum = Sum::of(&bytes).checksum();
    bytes[2..4].copy_from_slice(&checksum.to_be_bytes());
    bytes
}

fn parse(bytes: &[u8]) -> Result<IcmpMessage<'_>, Error> {
    IcmpMessage::parse(HOST, PEER, bytes)
}

/// A packet from `src` to `dst` with `payload`.
fn packet(src: Ipv4Addr, dst: Ipv4Addr, protocol: Protocol, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; 20];
    Ipv4Header::new(src, dst, protocol).emit(payload.len(), &mut bytes).unwrap();
    bytes.extend(payload);
    bytes
}

#[test]
fn an_echo_is_read_and_written() {
    // 0800 + 0102 + 0003 + 6162 = 6a67; complement 9598.
    let bytes = [8, 0, 0x95, 0x98, 0x01, 0x02, 0x00, 0x03, b'a', b'b'];
    let request = IcmpMessage::EchoRequest { ident: 0x0102, seq: 3, data: b"ab" };
    assert_eq!(parse(&bytes), Ok(request));
    let mut out = [0xee; 12];
    assert_eq!(request.emit(HOST, PEER, &mut out), Ok(10));
    assert_eq!(out[..10], bytes);
    assert_eq!(out[10..], [0xee; 2]);
    let reply = IcmpMessage::EchoReply { ident: 0x0102, seq: 3, data: b"ab" };
    reply.emit(HOST, PEER, &mut out).unwrap();
    assert_eq!(out[..4], [0, 0, 0x9d, 0x98]);
    assert!(request.quoted().is_none());
}

#[test]
fn every_code_of_unreachable_is_kept() {
    let named = [
        (0, UnreachableCode::Net),
        (1, UnreachableCode::Host),
        (2, UnreachableCode::Protocol),
        (3, UnreachableCode::Port),
        (5, UnreachableCode::SourceRouteFailed),
        (9, UnreachableCode::NetProhibited),
        (10, UnreachableCode::HostProhibited),
        (13, UnreachableCode::CommunicationProhibited),
        (6, UnreachableCode::Other(6)),
        (255, UnreachableCode::Other(255)),
    ];
    for (number, code) in named {
        let bytes = message(&[3, number, 0, 0, 0, 0, 0, 0, 1, 2, 3]);
        let expected = IcmpMessage::Unreachable { code, quoted: &[1, 2, 3] };
        assert_eq!(parse(&bytes), Ok(expected));
        let mut out = [0; 11];
        assert_eq!(expected.emit(HOST, PEER, &mut out), Ok(11));
        assert_eq!(out[..], bytes);
        assert!(expected.quoted().is_some());
    }
}

/// [RFC792-2-1]
#[test]
fn the_other_types_are_read_and_written() {
    let gateway = Ipv4Addr::new(10, 1, 2, 3);
    let quoted = &[9, 9][..];
    for (bytes, expected) in [
        // RFC 1191 4: the next-hop MTU is in the second half of the word behind the checksum.
        ([3, 4, 0, 0, 0, 0, 5, 120, 9, 9], IcmpMessage::PacketTooBig { mtu: 1400, quoted }),
        ([11, 1, 0, 0, 0, 0, 0, 0, 9, 9], IcmpMessage::TimeExceeded { code: 1, quoted }),
        (
            [12, 0, 0, 0, 20, 0, 0, 0, 9, 9],
            IcmpMessage::ParameterProblem { code: 0, pointer: 20, quoted },
        ),
        ([5, 1, 0, 0, 10, 1, 2, 3, 9, 9], IcmpMessage::Redirect { code: 1, gateway, quoted }),
        (
            [13, 7, 0, 0, 1, 2, 3, 4, 5, 6],
            IcmpMessage::Unknown { kind: 13, code: 7, body: &[1, 2, 3, 4, 5, 6] },
        ),
        // An echo with a code that does not exist.
        (
            [8, 1, 0, 0, 1, 2, 3, 4, 5, 6],
            IcmpMessage::Unknown { kind: 8, code: 1, body: &[1, 2, 3, 4, 5, 6] },
        ),
    ] {
        let bytes = message(&bytes);
        assert_eq!(parse(&bytes), Ok(expected));
        let mut out = [0; 10];
        assert_eq!(expected.emit(HOST, PEER, &mut out), Ok(10));
        assert_eq!(out[..], bytes);
        assert_eq!(expected.emit(HOST, PEER, &mut out[..9]), Err(Error::BufferTooSmall));
    }
}

/// [RFC792-2-2]
#[test]
fn broken_messages_are_errors() {
    let bytes = message(&[3, 3, 0, 0, 0, 0, 0, 0]);
    for len in 0..4 {
        assert_eq!(parse(&bytes[..len]), Err(Error::Truncated));
    }
    assert_eq!(parse(&message(&[3, 3, 0, 0, 1, 2])), Err(Error::Truncated));
    let mut flipped = bytes.clone();
    flipped[7] ^= 1;
    assert_eq!(parse(&flipped), Err(Error::BadChecksum));
}

#[test]
fn an_error_quotes_up_to_576_bytes_in_all() {
    let offending = packet(PEER, HOST, Protocol::UDP, &[0xab; 1400]);
    let (src, dst) = (HOST.into(), PEER.into());
    let error = IcmpMessage::Unreachable { code: UnreachableCode::Port, quoted: &offending };
    let mut out = [0; 1500];
    assert_eq!(error.emit_packet(src, dst, &mut out), Ok(576));
    let sent = Ipv4Packet::parse(&out).unwrap();
    assert!(sent.checksum_ok());
    assert_eq!((sent.protocol(), sent.payload().len()), (Protocol::ICMP, 556));
    let message = parse(sent.payload()).unwrap();
    assert_eq!(message.quoted(), Some(&offending[..548]));
    // A short packet is quoted whole, without what lies behind it in its buffer.
    let mut short = packet(PEER, HOST, Protocol::UDP, &[0xab; 10]);
    short.extend([0xee; 10]);
    let error = IcmpMessage::TimeExceeded { code: 0, quoted: &short };
    assert_eq!(error.packet_len(src), 58);
    assert_eq!(error.emit_packet(src, dst, &mut out), Ok(58));
    assert_eq!(error.emit_packet(src, dst, &mut out[..57]), Err(Error::BufferTooSmall));
}

#[test]
fn an_error_leads_back_to_the_segment() {
    let segment = [0x30, 0x39, 0x00, 0x50, 0x00, 0x00, 0x10, 0x00];
    let offending = packet(HOST, PEER, Protocol::TCP, &segment);
    let quoted = QuotedPacket::parse(&offending).unwrap();
    assert_eq!((quoted.src, quoted.dst), (HOST.into(), PEER.into()));
    assert_eq!(quoted.protocol, Protocol::TCP);
    let tcp = QuotedTcp::parse(quoted.transport).unwrap();
    assert_eq!((tcp.src_port, tcp.dst_port, tcp.seq.get()), (12345, 80, 0x1000));
    // The total length describes the original packet; routers cut the quote, and some change the
    // length.
    let mut cut = offending.clone();
    cut[2..4].copy_from_slice(&[0xff, 0xff]);
    assert_eq!(QuotedPacket::parse(&cut).unwrap().transport, segment);
    assert_eq!(QuotedPacket::parse(&offending[..19]), Err(Error::Truncated));
}

fn may_answer(bytes: &[u8]) -> bool {
    let error = IcmpMessage::Unreachable { code: UnreachableCode::Port, quoted: bytes };
    error.may_answer(&IpPacket::parse(bytes).unwrap())
}

/// [RFC1122-3.2.2-9] [RFC792-1-2] [RFC792-1-3]
#[test]
fn some_packets_are_never_answered() {
    let may = |src, dst, protocol, payload: &[u8]| {
        let bytes = packet(src, dst, protocol, payload);
        may_answer(&bytes)
    };
    let udp = Protocol::UDP;
    assert!(may(PEER, HOST, udp, &[]));
    assert!(may(PEER, HOST, Protocol::ICMP, &[8, 0, 0, 0]));
    for kind in [3, 4, 5, 11, 12, 200] {
        assert!(!may(PEER, HOST, Protocol::ICMP, &[kind, 0, 0, 0]), "{kind}");
    }
    assert!(!may(PEER, HOST, Protocol::ICMP, &[]));
    assert!(!may(PEER, Ipv4Addr::BROADCAST, udp, &[]));
    assert!(!may(PEER, Ipv4Addr::new(224, 0, 0, 1), udp, &[]));
    for src in [[0, 0, 0, 0], [224, 0, 0, 1], [240, 0, 0, 1], [255, 255, 255, 255], [127, 0, 0, 1]]
    {
        assert!(!may(src.into(), HOST, udp, &[]), "{src:?}");
    }
    assert!(may(Ipv4Addr::LOCALHOST, Ipv4Addr::LOCALHOST, udp, &[]));
    let mut piece = packet(PEER, HOST, udp, &[0; 8]);
    piece[6] = 0x20;
    assert!(may_answer(&piece));
    piece[7] = 1;
    assert!(!may_answer(&piece));
}

proptest! {
    #[test]
    fn arbitrary_messages_survive_a_round_trip(
        mut bytes in prop::collection::vec(any::<u8>(), 4..64),
        known in prop::option::of(prop::sample::select(vec![0u8, 3, 5, 8, 11, 12])),
    ) {
        bytes[0] = known.unwrap_or(bytes[0]);
        let bytes = message(&bytes);
        if let Ok(parsed) = parse(&bytes) {
            let mut out = vec![0; bytes.len()];
            prop_assert_eq!(parsed.emit(HOST, PEER, &mut out), Ok(bytes.len()));
            prop_assert_eq!(parse(&out), Ok(parsed));
        } else {
            prop_assert!(bytes.len() < HEADER_LEN);
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        _ = parse(&bytes);
    }
}
