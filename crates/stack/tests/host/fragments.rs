//! Segments that arrive in pieces (RFC 791, RFC 8200 section 4.5), and IP options in front of them.

use crate::harness::*;
use transom_stack::ConnectionId;
use transom_tcp::time::Duration;
use transom_testkit::packets::{fragment4, fragment6, icmp, ip, segment, with_ip_options};
use transom_wire::{Flags, IcmpMessage, IpPacket, Protocol};

struct Scene {
    host: Host,
    peer: Peer,
    id: ConnectionId,
    v6: bool,
}

fn scene(v6: bool) -> Scene {
    let mut host = Host::new();
    let (from, to) =
        if v6 { (at(PEER6, 4000), at(HOST6, 80)) } else { (at(PEER, 4000), service()) };
    let listener = host.listen(to);
    let (peer, id) = Peer::connect(&mut host, listener, from, to);
    Scene { host, peer, id, v6 }
}

impl Scene {
    /// The next segment of the connection, without IP header.
    fn next(&mut self, payload: &[u8]) -> Vec<u8> {
        let header = self.peer.header(Flags::ACK | Flags::PSH);
        let bytes = segment(self.peer.from, self.peer.to, &header, payload);
        self.peer.seq += payload.len() as u32;
        bytes
    }

    fn piece(&self, id: u32, bytes: &[u8], from: usize, to: usize) -> Vec<u8> {
        let more = to < bytes.len();
        if self.v6 {
            fragment6(PEER6, HOST6, Protocol::TCP, id, from as u16, more, &bytes[from..to])
        } else {
            fragment4(PEER, HOST, Protocol::TCP, id as u16, from as u16, more, &bytes[from..to])
        }
    }
}

/// [RFC1122-3.2.1.4-1] [RFC1122-3.3.2-1] [RFC1122-3.3.2-2] [RFC1122-3.3.2-3] [RFC8200-5-5]
#[test]
fn a_segment_in_pieces_arrives_whole_in_whatever_order_they_come() {
    let cuts = [(0, 800), (800, 1_600), (1_600, 2_432)];
    for v6 in [false, true] {
        let mut scene = scene(v6);
        for (n, order) in [[0, 1, 2], [2, 1, 0], [1, 2, 0], [2, 0, 1]].into_iter().enumerate() {
            let payload = stream(2_400);
            let bytes = scene.next(&payload);
            assert_eq!(bytes.len(), 2_432);
            for &place in &order[..2] {
                let (from, to) = cuts[place];
                let piece = scene.piece(n as u32, &bytes, from, to);
                assert!(scene.host.inject(&piece).is_empty());
                // The same piece again is harmless.
                scene.host.inject(&piece);
                assert!(scene.host.read(scene.id).is_empty());
            }
            let (from, to) = cuts[order[2]];
            scene.host.inject(&scene.piece(n as u32, &bytes, from, to));
            assert_eq!(scene.host.read(scene.id), payload);
        }
        assert_eq!(scene.host.counters().fragments_dropped, 0);
        assert_eq!(scene.host.counters().bad_checksum, 0);
        scene.peer.assert_alive(&mut scene.host, scene.id);
    }
}

/// The checksum is that of the whole: damage in any piece is noticed.
#[test]
fn a_damaged_piece_spoils_the_segment() {
    for v6 in [false, true] {
        let mut scene = scene(v6);
        let bytes = scene.next(&stream(1_000));
        scene.host.inject(&scene.piece(1, &bytes, 0, 800));
        let mut damaged = scene.piece(1, &bytes, 800, bytes.len());
        *damaged.last_mut().unwrap() ^= 1;
        scene.host.inject(&damaged);
        assert_eq!(scene.host.counters().bad_checksum, 1);
        assert!(scene.host.read(scene.id).is_empty());
        // Sent again, under another identification.
        scene.host.inject(&scene.piece(2, &bytes, 0, 800));
        scene.host.inject(&scene.piece(2, &bytes, 800, bytes.len()));
        assert_eq!(scene.host.read(scene.id), stream(1_000));
    }
}

/// [RFC1122-3.3.2-6]
#[test]
fn pieces_that_stay_alone_are_forgotten_in_time() {
    for v6 in [false, true] {
        let mut scene = scene(v6);
        let bytes = scene.next(&stream(1_000));
        scene.host.advance(Duration::from_secs(5));
        scene.host.inject(&scene.piece(1, &bytes, 0, 800));
        let deadline = scene.host.now + Duration::from_secs(60);
        assert_eq!(scene.host.stack.next_timeout(), Some(deadline));
        scene.host.advance(Duration::from_secs(60));
        assert_eq!(
            (scene.host.stack.next_timeout(), scene.host.counters().fragments_dropped),
            (None, 1)
        );
        // The other piece comes too late.
        scene.host.inject(&scene.piece(1, &bytes, 800, bytes.len()));
        assert!(scene.host.read(scene.id).is_empty());
    }
}

/// [RFC1122-3.3.2-5] [RFC8200-4.5-9] [RFC4443-3.3-2] [RFC792-6-2] [RFC792-6-3] Who sent the first fragment is told that the others did not come, and sees it quoted.
#[test]
fn whoever_sent_the_first_piece_hears_that_the_others_are_late() {
    for v6 in [false, true] {
        for (first, second) in [(true, false), (true, true), (false, true)] {
            let mut scene = scene(v6);
            let seq = scene.peer.seq;
            let bytes = scene.next(&stream(2_000));
            let pieces = [scene.piece(1, &bytes, 0, 800), scene.piece(1, &bytes, 800, 1_600)];
            // Behind each other, and in the other order.
            let wanted = pieces.iter().zip([first, second]).rev().filter(|(_, wanted)| *wanted);
            for (piece, _) in wanted {
                assert!(scene.host.inject(piece).is_empty());
            }
            let before = scene.host.advance(Duration::from_millis(59_999));
            assert_eq!(before.len(), 0);
            let after = scene.host.advance(Duration::from_millis(1));
            assert_eq!(after.len(), usize::from(first), "{first} {second}");
            for (_, sent) in &after {
                assert_eq!(
                    late(sent),
                    &pieces[0][..pieces[0].len().min(if v6 { 1232 } else { 548 })]
                );
            }
            assert_eq!(scene.host.counters().icmp_errors_sent, u64::from(first));
            scene.peer.seq = seq;
            scene.peer.assert_alive(&mut scene.host, scene.id);
        }
    }
}

/// The quote in a "time exceeded" about reassembly.
fn late(sent: &Sent) -> Vec<u8> {
    let ip = sent.ip();
    match ip {
        IpPacket::V4(_) => assert_eq!((ip.src(), ip.dst()), (HOST.into(), PEER.into())),
        IpPacket::V6(_) => assert_eq!((ip.src(), ip.dst()), (HOST6.into(), PEER6.into())),
    }
    let message = IcmpMessage::parse(ip.src(), ip.dst(), ip.payload()).unwrap();
    let IcmpMessage::TimeExceeded { code: 1, quoted } = message else { panic!("{message:?}") };
    quoted.to_vec()
}

/// Time is up even if the next thing that happens is another fragment, and no timer ran.
#[test]
fn a_late_piece_completes_nothing() {
    let mut scene = scene(true);
    let bytes = scene.next(&stream(1_000));
    let first = scene.piece(1, &bytes, 0, 800);
    scene.host.inject(&first);
    scene.host.now += Duration::from_secs(60);
    let sent = one(scene.host.inject(&scene.piece(1, &bytes, 800, bytes.len())));
    assert_eq!(late(&sent), first);
    assert!(scene.host.read(scene.id).is_empty());
}

/// [RFC1122-3.2.2-6] [RFC4443-2.4-5] [RFC4443-2.4-10] Not about an error, and within the bound on errors.
#[test]
fn late_pieces_of_errors_are_not_reported() {
    let quoted = stream(1_000);
    let code = transom_wire::UnreachableCode::Port;
    let error = IcmpMessage::Unreachable { code, quoted: &quoted };
    let echo = IcmpMessage::EchoRequest { ident: 1, seq: 1, data: &quoted };
    let [error4, echo4] = [&error, &echo].map(|message| icmp(PEER, HOST, message));
    let [error6, echo6] = [&error, &echo].map(|message| icmp(PEER6, HOST6, message));
    for (message, answers) in [(&error4, 0), (&echo4, 1)] {
        let mut host = Host::new();
        host.inject(&fragment4(PEER, HOST, Protocol::ICMP, 1, 0, true, &message[20..420]));
        assert_eq!(host.advance(Duration::from_secs(60)).len(), answers);
    }
    for (message, answers) in [(&error6, 0), (&echo6, 1)] {
        let mut host = Host::new();
        host.inject(&fragment6(PEER6, HOST6, Protocol::ICMPV6, 1, 0, true, &message[40..440]));
        assert_eq!(host.advance(Duration::from_secs(60)).len(), answers);
    }
    let mut host = Host::with(|config, _| config.icmp_errors_per_second = 2);
    for id in 0..5 {
        host.inject(&fragment4(PEER, HOST, Protocol::UDP, id, 0, true, &[0; 400]));
    }
    assert_eq!(host.advance(Duration::from_secs(60)).len(), 2);
}

/// [RFC8200-4.5-5] In IPv6 the next header of a fragment says nothing but what the first one begins with.
#[test]
fn ipv6_fragments_may_disagree_about_the_next_header() {
    let mut scene = scene(true);
    let payload = stream(1_000);
    let bytes = scene.next(&payload);
    scene.host.inject(&fragment6(PEER6, HOST6, Protocol::UDP, 1, 800, false, &bytes[800..]));
    scene.host.inject(&scene.piece(1, &bytes, 0, 800));
    assert_eq!(scene.host.read(scene.id), payload);
    // In IPv4 the protocol belongs to the packet's name (RFC 791 section 3.2).
    let mut scene = self::scene(false);
    let bytes = scene.next(&payload);
    scene.host.inject(&fragment4(PEER, HOST, Protocol::UDP, 1, 800, false, &bytes[800..]));
    scene.host.inject(&scene.piece(1, &bytes, 0, 800));
    assert!(scene.host.read(scene.id).is_empty());
}

/// [RFC8200-4.5-7] [RFC8200-4.5-15] Headers on both sides of the fragment header stay; those of later fragments count for nothing [RFC8200-4.5-6].
#[test]
fn extension_headers_around_a_fragment_header() {
    let options = |next: u8, kind: u8| [next, 0, 0, 0, kind, 0, 0, 0];
    let (skip, report) = (0x1e, 0x9e);
    let run = |before: u8, behind: u8| {
        let mut scene = scene(true);
        let bytes = [&options(6, behind)[..], &scene.next(&stream(1_000))].concat();
        let piece = |option: u8, from: usize, to: usize| {
            let fragment = fragment6(
                PEER6,
                HOST6,
                Protocol(60),
                1,
                from as u16,
                to < bytes.len(),
                &bytes[from..to],
            );
            let rest = [&options(44, option)[..], &fragment[40..]].concat();
            ip(PEER6.into(), HOST6.into(), Protocol(60), &rest)
        };
        let [first, last] = [piece(before, 0, 800), piece(skip, 800, bytes.len())];
        let mut sent = scene.host.inject(&first);
        sent.extend(scene.host.inject(&last));
        let pointer = sent.iter().find_map(|sent| {
            let ip = sent.ip();
            match IcmpMessage::parse(ip.src(), ip.dst(), ip.payload()) {
                Ok(IcmpMessage::ParameterProblem { code: 2, pointer, quoted }) => {
                    Some((pointer, quoted.len()))
                }
                _ => None,
            }
        });
        (scene.host.read(scene.id).len(), pointer)
    };
    assert_eq!(run(skip, skip), (1_000, None));
    // In front: the fragment itself is refused. Behind: the whole packet, in which there is no fragment header.
    assert_eq!(run(report, skip), (0, Some((44, 856))));
    assert_eq!(run(skip, report), (0, Some((52, 40 + 8 + 8 + 1_032))));
}

/// [RFC8200-4.5-10] [RFC8200-4.5-11] [RFC8200-4.5-14] [RFC4443-3.4-1] Fragments that can be part of nothing, and what their sender is told: code and pointer.
#[test]
fn senders_of_impossible_ipv6_fragments_are_told() {
    let udp = Protocol::UDP;
    let fragment = |next: Protocol, offset: u16, more: bool, len: usize| {
        fragment6(PEER6, HOST6, next, 1, offset, more, &vec![0; len])
    };
    let options = ip(
        PEER6.into(),
        HOST6.into(),
        Protocol(60),
        &[&[44, 0, 1, 4, 0, 0, 0, 0][..], &fragment(udp, 65_528, false, 7)[40..]].concat(),
    );
    let cases = [
        (fragment(udp, 0, true, 801), Some((0, 4))),
        (fragment(udp, 800, true, 7), Some((0, 4))),
        (fragment(udp, 65_528, false, 8), Some((0, 42))),
        (fragment(udp, 65_528, false, 7), None),
        (options, Some((0, 50))),
        (fragment(Protocol::TCP, 0, true, 16), Some((3, 0))),
        (fragment(Protocol(60), 0, true, 8), Some((3, 0))),
        (
            fragment6(PEER6, HOST6, Protocol::FRAGMENT, 1, 0, true, &[17, 0, 0, 1, 0, 0, 0, 2]),
            Some((3, 0)),
        ),
        // What may be an error is not answered with one.
        (fragment(Protocol::ICMPV6, 800, true, 7), None),
        (fragment(Protocol(60), 800, true, 7), None),
        (fragment(Protocol::ICMPV6, 0, true, 801), None),
    ];
    for (packet, expected) in cases {
        let mut host = Host::new();
        let sent = host.inject(&packet);
        let told = sent.first().map(|sent| {
            let ip = sent.ip();
            let message = IcmpMessage::parse(ip.src(), ip.dst(), ip.payload()).unwrap();
            let IcmpMessage::ParameterProblem { code, pointer, quoted } = message else {
                panic!("{message:?}")
            };
            assert_eq!(quoted, &packet[..packet.len().min(1232)]);
            (code, pointer)
        });
        assert_eq!(told, expected, "{:02x?}", &packet[..packet.len().min(64)]);
        // Nothing of it is kept, and nothing is said later, but of the one that is no more than the last of a packet.
        assert_eq!(host.advance(Duration::from_secs(61)).len(), 0);
    }
}

/// [RFC8200-4.5-12] [RFC8200-4.5-13] RFC 5722: not a word about a packet whose fragments overlap, now or later.
#[test]
fn overlapping_pieces_are_dropped_in_silence() {
    for v6 in [false, true] {
        let mut scene = scene(v6);
        let bytes = scene.next(&stream(2_000));
        let mut forged = bytes.clone();
        forged[100] ^= 1;
        let overlaps = [scene.piece(1, &bytes, 792, 1_600), scene.piece(1, &forged, 0, 800)];
        for (id, overlap) in overlaps.iter().enumerate() {
            let again = |piece: Vec<u8>| {
                let mut piece = piece;
                // Under the identification of this round.
                let field = if v6 { 47 } else { 5 };
                piece[field] = id as u8 + 1;
                if !v6 {
                    piece[10..12].fill(0);
                    let sum = transom_wire::checksum::Sum::of(&piece[..20]).checksum();
                    piece[10..12].copy_from_slice(&sum.to_be_bytes());
                }
                piece
            };
            assert!(scene.host.inject(&again(scene.piece(1, &bytes, 0, 800))).is_empty());
            assert!(scene.host.inject(&again(overlap.clone())).is_empty());
            for (from, to) in [(800, 1_600), (1_600, bytes.len())] {
                assert!(scene.host.inject(&again(scene.piece(1, &bytes, from, to))).is_empty());
            }
            assert!(scene.host.read(scene.id).is_empty());
        }
        assert_eq!(scene.host.advance(Duration::from_secs(61)).len(), 0);
        assert_eq!(scene.host.counters().icmp_errors_sent, 0);
    }
}

/// A packet that is cut twice is none that a host sends.
#[test]
fn fragments_of_fragments_are_dropped() {
    let mut scene = scene(true);
    let bytes = scene.next(&stream(1_000));
    let inner = scene.piece(9, &bytes, 800, bytes.len());
    let outer = |from: usize, to: usize, more: bool| {
        // A first fragment needs a whole chain, so the outer one begins with a later piece of another.
        let payload = &inner[40..];
        fragment6(PEER6, HOST6, Protocol::FRAGMENT, 5, from as u16, more, &payload[from..to])
    };
    scene.host.inject(&outer(0, 16, true));
    scene.host.inject(&outer(16, inner.len() - 40, false));
    scene.host.inject(&scene.piece(9, &bytes, 0, 800));
    assert!(scene.host.read(scene.id).is_empty());
}

/// RFC 6946: an IPv6 packet with a fragment header that is nevertheless whole.
/// [RFC8200-4.5-8]
#[test]
fn an_atomic_fragment_is_a_whole_packet() {
    let mut scene = scene(true);
    let bytes = scene.next(b"whole");
    scene.host.inject(&scene.piece(1, &bytes, 0, bytes.len()));
    assert_eq!(scene.host.read(scene.id), b"whole");
    scene.host.advance(Duration::from_secs(100));
    assert_eq!(scene.host.counters().fragments_dropped, 0, "nothing waited for more");
}

/// [MUST-50] IP options mean nothing to TCP: whatever they are, the segment behind them counts.
/// [RFC1122-3.2.1.8-3] [RFC1122-3.2.1.8-6]
#[test]
fn ip_options_are_ignored() {
    let options: [&[u8]; 6] = [
        &[1, 1, 1, 0],                            // no-operation, end of list
        &[7, 7, 4, 0, 0, 0, 0, 0],                // record route
        &[68, 12, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0],  // timestamps
        &[0x88, 4, 0, 1],                         // stream identifier
        &[0x9e, 4, 0xab, 0xcd],                   // experimental
        &[130, 11, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], // security
    ];
    let mut scene = scene(false);
    for options in options {
        let packet = scene.peer.segment(Flags::ACK | Flags::PSH, b"data");
        scene.peer.seq += 4;
        scene.host.inject(&with_ip_options(&packet, options));
        assert_eq!(scene.host.read(scene.id), b"data", "{options:?}");
    }
    // An answer carries none.
    let syn =
        with_ip_options(&Peer::new(at(PEER, 4001), service()).syn(usual_options()), options[1]);
    let answer = one(scene.host.inject(&syn));
    assert_eq!(answer.ip().header_len(), 20);
    assert_eq!(answer.flags(), Flags::SYN | Flags::ACK);
    scene.peer.assert_alive(&mut scene.host, scene.id);
}
