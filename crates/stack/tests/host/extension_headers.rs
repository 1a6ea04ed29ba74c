//! IPv6 extension headers in front of segments (RFC 8200 section 4): what may be skipped, what ends a packet, and who is told.

use crate::harness::*;
use transom_tcp::packet::PacketBuf;
use transom_testkit::packets::{icmp, ip, segment};
use transom_wire::offload::{RxChecksum, RxOffload, SegmentKind, Segmentation};
use transom_wire::{Flags, IcmpMessage, Protocol};

const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const AUTHENTICATION: u8 = 51;
const OPTIONS: u8 = 60;

/// An option that nobody knows, with each of the four actions (RFC 8200 section 4.2).
const SKIP: u8 = 0x1e;
const DROP: u8 = 0x5e;
const REPORT: u8 = 0x9e;
const REPORT_UNLESS_MULTICAST: u8 = 0xde;

/// Headers in front of a transport packet: their types, and their bytes without the next-header byte.
type Chain<'a> = &'a [(u8, &'a [u8])];

/// A header with one option behind a Pad1.
fn option(kind: u8) -> [u8; 7] {
    [0, 0, kind, 1, 0, 1, 0]
}

/// A packet from the neighbour with these headers in front of `transport`.
fn chained(chain: Chain<'_>, protocol: Protocol, transport: &[u8]) -> Vec<u8> {
    let types = chain.iter().map(|(kind, _)| *kind).chain([protocol.0]);
    let next: Vec<u8> = types.collect();
    let headers =
        chain.iter().zip(&next[1..]).map(|((_, bytes), next)| [&[*next], *bytes].concat());
    let behind = [headers.collect::<Vec<_>>().concat(), transport.to_vec()].concat();
    ip(PEER6.into(), HOST6.into(), Protocol(next[0]), &behind)
}

/// The neighbour's next segment, without IP header.
fn transport(peer: &Peer, flags: Flags, payload: &[u8]) -> Vec<u8> {
    segment(peer.from, peer.to, &peer.header(flags), payload)
}

/// Code and pointer of the parameter problem about `offending`, which it quotes.
fn problem(error: &Sent, offending: &[u8]) -> Problem {
    let ip = error.ip();
    assert_eq!((ip.src(), ip.dst()), (HOST6.into(), PEER6.into()));
    let message = IcmpMessage::parse(ip.src(), ip.dst(), ip.payload()).unwrap();
    let IcmpMessage::ParameterProblem { code, pointer, quoted } = message else {
        panic!("{message:?}")
    };
    assert_eq!(quoted, &offending[..offending.len().min(1280 - 48)]);
    (code, pointer)
}

/// A host that listens over IPv6.
fn listening() -> Host {
    let mut host = Host::new();
    host.listen(at(HOST6, 80));
    host
}

fn syn() -> Vec<u8> {
    let peer = Peer::new(at(PEER6, 4000), at(HOST6, 80));
    transport(&peer, Flags::SYN, &[])
}

/// Code and pointer of a parameter problem.
type Problem = (u8, u32);

/// Each chain that forbids to go on, with the error that it causes.
fn forbidden() -> Vec<(Vec<u8>, Option<Problem>)> {
    let route = |left: u8| [0, 253, left, 0, 0, 0, 0];
    let authentication = [1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2];
    let tcp = |chain: Chain<'_>| chained(chain, Protocol::TCP, &syn());
    let mut cases = vec![
        (tcp(&[(ROUTING, &route(1))]), Some((0, 42))),
        (tcp(&[(OPTIONS, &option(SKIP)), (ROUTING, &route(2))]), Some((0, 50))),
        (tcp(&[(AUTHENTICATION, &authentication)]), Some((1, 6))),
        (tcp(&[(OPTIONS, &option(SKIP)), (AUTHENTICATION, &authentication)]), Some((1, 40))),
        // The first problem counts.
        (tcp(&[(OPTIONS, &option(DROP)), (ROUTING, &route(1))]), None),
        (tcp(&[(ROUTING, &route(1)), (OPTIONS, &option(DROP))]), Some((0, 42))),
        // Hop-by-hop options behind another header are a header that nobody knows.
        (tcp(&[(OPTIONS, &option(SKIP)), (HOP_BY_HOP, &option(SKIP))]), Some((1, 40))),
        // The lower five bits are those of PadN and of the router alert, the type is not.
        (tcp(&[(OPTIONS, &option(0x81))]), Some((2, 43))),
        (tcp(&[(HOP_BY_HOP, &option(0x85))]), Some((2, 43))),
        // A jumbogram's option on a packet that is none.
        (tcp(&[(HOP_BY_HOP, &[0, 0xc2, 4, 0, 1, 0, 0])]), Some((2, 42))),
    ];
    for kind in [HOP_BY_HOP, OPTIONS] {
        cases.push((tcp(&[(kind, &option(DROP))]), None));
        cases.push((tcp(&[(kind, &option(REPORT))]), Some((2, 43))));
        cases.push((tcp(&[(kind, &option(REPORT_UNLESS_MULTICAST))]), Some((2, 43))));
    }
    cases
}

/// [RFC8200-4.2-1] [RFC8200-4.2-2] [RFC8200-4.2-3] [RFC8200-4.2-4] [RFC8200-4.2-5] [RFC8200-4.4-2] [RFC8200-4-1] [RFC8200-4-2] [RFC8200-4-3] [RFC4443-3.4-1] [RFC4443-3.4-2] [RFC4443-3.4-3]
/// A SYN behind what may not be skipped opens nothing.
#[test]
fn a_header_that_may_not_be_skipped_ends_a_packet() {
    for (packet, expected) in forbidden() {
        let mut host = listening();
        let sent = host.inject(&packet);
        assert_eq!(sent.first().map(|error| problem(error, &packet)), expected, "{packet:02x?}");
        assert!(sent.len() <= 1);
        assert_eq!(host.stack.half_open_count(), 0);
        assert_eq!(host.counters().icmp_errors_sent, u64::from(expected.is_some()));
    }
}

/// [RFC8200-4.2-2] [RFC8200-4.2-6] [RFC8200-4.4-1] [RFC8200-4.1-2] [RFC8200-8.4-1] Padding, options to be skipped, and routes that are used up change nothing.
#[test]
fn headers_that_may_be_skipped_are_skipped() {
    let chains: [Chain<'_>; 6] = [
        &[(OPTIONS, &[0, 1, 4, 0, 0, 0, 0])],
        &[(HOP_BY_HOP, &[0, 5, 2, 0, 0, 1, 0])],
        &[(OPTIONS, &[0, SKIP, 4, 9, 9, 9, 9])],
        &[(ROUTING, &[0, 253, 0, 0, 0, 0, 0])],
        &[(ROUTING, &[2, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16])],
        &[
            (HOP_BY_HOP, &[0, 0, 0, 0, 0, 0, 0]),
            (OPTIONS, &[0, 1, 4, 0, 0, 0, 0]),
            (ROUTING, &[0, 0, 0, 0, 0, 0, 0]),
            (OPTIONS, &[0, 1, 4, 0, 0, 0, 0]),
        ],
    ];
    for chain in chains {
        let mut host = listening();
        let sent = one(host.inject(&chained(chain, Protocol::TCP, &syn())));
        assert_eq!(sent.flags(), Flags::SYN | Flags::ACK, "{chain:?}");
        assert_eq!(sent.ip().header_len(), 40, "an answer carries no extension header");
        assert_eq!(host.counters().refused_extensions, 0);
    }
}

/// A connection's segments are held to the same rules by every entrance, super-segments and what a device vouches for included.
#[test]
fn no_entrance_overlooks_an_extension_header() {
    let mut host = Host::new();
    let listener = host.listen(at(HOST6, 80));
    let (mut peer, id) = Peer::connect(&mut host, listener, at(PEER6, 4000), at(HOST6, 80));
    let payload = stream(30_000);
    let segmentation =
        Segmentation { kind: SegmentKind::Tcp6, segment_size: 1_000, header_len: 80 };
    for merged in [None, Some(segmentation)] {
        let offload = RxOffload { checksum: RxChecksum::Valid, segmentation: merged };
        let payload = &payload[..if merged.is_some() { 30_000 } else { 500 }];
        let behind = |kind| {
            let segment = transport(&peer, Flags::ACK | Flags::PSH, payload);
            chained(&[(OPTIONS, &option(kind))], Protocol::TCP, &segment)
        };
        let refused = behind(REPORT);
        let now = host.now;
        let error = one(host.inject_with(&refused, offload));
        assert_eq!(problem(&error, &refused), (2, 43));
        let (len, buffer) = (refused.len(), PacketBuf::from(&refused[..]));
        assert!(host.stack.on_owned_packet(now, buffer, 0..len, offload).is_some());
        host.call(|_, _| ());
        assert_eq!(problem(&host.sent_one(), &refused), (2, 43));
        let head = host.stack.expected_headers(id).unwrap();
        let (head, body) = refused.split_at(head);
        assert_eq!(host.stack.on_expected(now, id, head, body, offload), None);
        assert_eq!(host.connection(id).readable(), 0);

        let accepted = behind(SKIP);
        host.call(|stack, now| stack.on_packet(now, &accepted, offload));
        assert_eq!(host.read(id), payload);
        peer.seq += payload.len() as u32;
    }
    assert_eq!(host.counters().refused_extensions, 4);
}

/// [RFC8200-4.7-1] Nothing follows, and nobody is told.
#[test]
fn nothing_follows_no_next_header() {
    let mut host = listening();
    for chain in [&[][..], &[(OPTIONS, &option(SKIP)[..])]] {
        for rest in [&b""[..], &syn()] {
            assert!(host.inject(&chained(chain, Protocol::NO_NEXT_HEADER, rest)).is_empty());
        }
    }
    assert_eq!((host.counters().icmp_errors_sent, host.stack.half_open_count()), (0, 0));
}

/// [RFC4443-2.4-5] [RFC4443-2.4-6] An error is not answered with an error, whatever is in front of it, nor is a redirect.
#[test]
fn extension_headers_of_errors_are_not_reported() {
    let mut host = Host::new();
    let code = transom_wire::UnreachableCode::Port;
    let error = icmp(PEER6, HOST6, &IcmpMessage::Unreachable { code, quoted: &[0; 48] });
    let redirect = icmp(PEER6, HOST6, &IcmpMessage::Unknown { kind: 137, code: 0, body: &[0; 36] });
    let echo = icmp(PEER6, HOST6, &IcmpMessage::EchoRequest { ident: 1, seq: 1, data: b"" });
    for (message, answered) in [(&error, false), (&redirect, false), (&echo, true)] {
        let packet = chained(&[(OPTIONS, &option(REPORT))], Protocol::ICMPV6, &message[40..]);
        let sent = host.inject(&packet);
        assert_eq!(sent.first().map(|sent| problem(sent, &packet)), answered.then_some((2, 43)));
    }
    assert_eq!(host.counters().refused_extensions, 3);
}

/// [RFC4443-2.4-10] They are as many as all other errors may be, and no more.
#[test]
fn errors_about_extension_headers_are_bounded_with_the_others() {
    let mut host = Host::with(|config, _| config.icmp_errors_per_second = 3);
    let packet = chained(&[(OPTIONS, &option(REPORT))], Protocol::TCP, &syn());
    let sent: usize = (0..10).map(|_| host.inject(&packet).len()).sum();
    assert_eq!(sent, 3);
}

/// On a shared address the kernel has seen the packet too, and tells its sender.
#[test]
fn on_a_shared_address_the_kernel_sends_the_errors() {
    let mut host = Host::with(|config, _| {
        config.shared = true;
        config.ports = transom_stack::PortSource::Caller;
    });
    host.listen(at(HOST6, 80));
    for (packet, _) in forbidden() {
        assert!(host.inject(&packet).is_empty());
    }
    assert_eq!((host.counters().icmp_errors_sent, host.stack.half_open_count()), (0, 0));
}
