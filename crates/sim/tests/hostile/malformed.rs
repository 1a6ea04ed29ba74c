//! Packets that are wrong in themselves: options and offsets that lie, addresses that cannot be.

use crate::harness::*;
use crate::states::{Scene, Stage};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use transom_tcp::State;
use transom_wire::{Flags, Options, TcpHeader};

/// Option lists that end in a lie: the kind's length is 0, 1, or more than there is.
const LIES: [&[u8]; 12] = [
    &[2, 0, 5, 180],
    &[2, 1, 5, 180],
    &[3, 0],
    &[8, 1],
    &[5, 0],
    &[8, 11, 0, 0],
    &[2, 255, 0, 0],
    &[5, 200, 1, 2],
    &[1, 1, 1, 2],
    &[2, 4, 5, 180, 1, 1, 1, 77],
    &[77, 0, 0, 0],
    &[254, 1, 1, 1],
];

const STAGES: [Stage; 4] =
    [Stage::Listen, Stage::HalfOpen, Stage::In(State::SynSent), Stage::In(State::Established)];

#[test]
fn a_segment_whose_options_lie_is_dropped_whole() {
    for stage in STAGES {
        for lie in LIES {
            for flags in [Flags::SYN, Flags::ACK, Flags::SYN | Flags::ACK, Flags::RST | Flags::ACK]
            {
                let mut scene = Scene::at(stage);
                let before = scene.fingerprint();
                let header = TcpHeader { options: Options::default(), ..scene.peer.header(flags) };
                let Peer { from, to, .. } = scene.peer;
                let packet = packets::tcp_with_options(from, to, &header, lie, b"data");
                assert_eq!(scene.victim.inject(&packet), 0, "{stage:?} {lie:?} {flags:?}");
                assert_eq!(scene.fingerprint(), before, "{stage:?} {lie:?} {flags:?}");
                assert_eq!(scene.victim.stack.counters().bad_tcp, 1, "{stage:?} {lie:?} {flags:?}");
            }
        }
    }
}

/// Known kinds with lengths their kind does not have mean nothing, but the segment stands [MUST-7]: options are skipped by
/// their stated length.
#[test]
fn known_options_of_unknown_length_are_skipped() {
    for odd in [
        &[2, 3, 9][..],
        &[3, 4, 9, 9],
        &[4, 3, 0],
        &[8, 9, 0, 0, 0, 0, 0, 0, 0],
        &[5, 9, 0, 0, 0, 0, 0, 0, 0],
    ] {
        let mut scene = Scene::at(Stage::Listen);
        let Peer { from, to, .. } = scene.peer;
        let header = scene.peer.header(Flags::SYN);
        scene.victim.inject(&packets::tcp_with_options(from, to, &header, odd, &[]));
        let syn_ack = scene.victim.last();
        assert_eq!(syn_ack.flags, Flags::SYN | Flags::ACK, "{odd:?}");
        // Options that were not offered properly are not agreed.
        let Options { window_scale, sack_permitted, timestamps, .. } = syn_ack.options;
        assert_eq!((window_scale, sack_permitted, timestamps), (None, false, None), "{odd:?}");
    }
}

#[test]
fn a_data_offset_that_lies_is_found_out() {
    for stage in STAGES {
        for words in (0..5u8).chain(7..16) {
            let mut scene = Scene::at(stage);
            let before = scene.fingerprint();
            let mut header = [0; 60];
            let Peer { from, to, .. } = scene.peer;
            let flags = if stage == Stage::Listen { Flags::SYN } else { Flags::ACK };
            let plain = TcpHeader {
                src_port: from.port(),
                dst_port: to.port(),
                options: Options::default(),
                ..scene.peer.header(flags)
            };
            plain.emit(&mut header).unwrap();
            header[12] = words << 4;
            // Four bytes behind the fixed part: six words are the most there can be.
            let packet = packets::raw_tcp(
                from.ip(),
                to.ip(),
                &[&header[..20], b"\x01\x01\x01\x01"].concat(),
            );
            assert_eq!(scene.victim.inject(&packet), 0, "{stage:?} offset {words}");
            assert_eq!(scene.fingerprint(), before, "{stage:?} offset {words}");
            assert_eq!(scene.victim.stack.counters().bad_tcp, 1, "{stage:?} offset {words}");
        }
    }
}

#[test]
fn a_packet_cut_anywhere_changes_nothing() {
    let scene = Scene::at(Stage::In(State::Established));
    let packet = scene.peer.at(Flags::ACK | Flags::FIN, 0, 0, b"some data to cut");
    for len in 0..packet.len() {
        let mut scene = Scene::at(Stage::In(State::Established));
        let before = scene.fingerprint();
        assert_eq!(scene.victim.inject(&packet[..len]), 0, "{len} bytes");
        assert_eq!(scene.fingerprint(), before, "{len} bytes");
    }
}

#[test]
fn port_zero_is_nobody() {
    let mut victim = Victim::new();
    let zero = |address: SocketAddr| SocketAddr::new(address.ip(), 0);
    for (from, to) in
        [(zero(ATTACKER), SERVICE), (ATTACKER, zero(SERVICE)), (zero(ATTACKER), zero(SERVICE))]
    {
        for flags in [Flags::SYN, Flags::ACK, Flags::RST, Flags::SYN | Flags::ACK, Flags::FIN] {
            let peer = Peer::new(from, to);
            assert_eq!(victim.inject(&peer.packet(&peer.header(flags), b"")), 0);
        }
    }
    assert_eq!(victim.stack.half_open_count(), 0);
}

/// [MUST-46] [MUST-57] [MUST-63] Nothing from an address that is not one other host's is looked at: answered, such packets
/// would turn the victim on whoever the address means.
#[test]
fn impossible_sources_and_destinations_are_ignored() {
    let mut victim = Victim::new();
    let sources = [
        "0.0.0.0",
        "0.1.2.3",
        "255.255.255.255",
        "224.0.0.1",
        "239.1.2.3",
        "240.0.0.1",
        "10.0.0.255",
        "127.0.0.1",
        // LAND, and whatever else claims to come from the victim itself.
        "10.0.0.2",
    ];
    for source in sources {
        let source: IpAddr = source.parse().unwrap();
        for port in [80, 4000] {
            let peer = Peer::new(SocketAddr::new(source, port), SERVICE);
            for flags in [Flags::SYN, Flags::ACK, Flags::SYN | Flags::ACK, Flags::FIN] {
                let packet = peer.packet(&peer.header(flags), b"x");
                assert_eq!(victim.inject(&packet), 0, "{source} {flags:?}");
            }
        }
        let echo = transom_wire::IcmpMessage::EchoRequest { ident: 1, seq: 1, data: b"ping" };
        let IpAddr::V4(v4) = source else { continue };
        assert_eq!(victim.inject(&packets::icmp(v4, VICTIM, &echo)), 0, "echo from {source}");
        let datagram = packets::udp(SocketAddr::new(source, 9), SERVICE, b"x");
        assert_eq!(victim.inject(&datagram), 0, "UDP from {source}");
    }
    for destination in ["10.0.0.255", "255.255.255.255", "224.0.0.1", "10.0.0.3"] {
        let destination: Ipv4Addr = destination.parse().unwrap();
        let to = SocketAddr::new(destination.into(), 80);
        let peer = Peer::new(ATTACKER, to);
        assert_eq!(
            victim.inject(&peer.packet(&peer.header(Flags::SYN), b"")),
            0,
            "to {destination}"
        );
        let datagram = packets::udp(ATTACKER, to, b"x");
        assert_eq!(victim.inject(&datagram), 0, "UDP to {destination}");
    }
    for source in ["::", "::1", "ff02::1", "fd00::2", "::ffff:10.0.0.1"] {
        let from = SocketAddr::new(source.parse().unwrap(), 4000);
        let peer = Peer::new(from, "[fd00::2]:80".parse().unwrap());
        assert_eq!(victim.inject(&peer.packet(&peer.header(Flags::SYN), b"")), 0, "from {source}");
    }
    let stack = &victim.stack;
    assert_eq!((stack.half_open_count(), stack.connection_count()), (0, 0));
    assert_eq!(victim.advance(transom_tcp::time::Duration::from_secs(300)), 0);
}

#[test]
fn a_wrong_checksum_is_no_segment_at_all() {
    let mut scene = Scene::at(Stage::In(State::Established));
    let before = scene.fingerprint();
    let packet = scene.peer.at(Flags::ACK | Flags::RST, 0, 0, b"bytes");
    for at in 0..packet.len() {
        for bit in 0..8 {
            let mut flipped = packet.clone();
            flipped[at] ^= 1 << bit;
            assert_eq!(scene.victim.inject(&flipped), 0, "bit {bit} of byte {at}");
            assert_eq!(scene.fingerprint(), before, "bit {bit} of byte {at}");
        }
    }
    // As it was it does reset: the loop above was not vain.
    scene.victim.inject(&packet);
    assert_ne!(scene.fingerprint(), before);
}
