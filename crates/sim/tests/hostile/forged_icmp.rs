//! ICMP errors that nobody on the path sent (RFC 5927). One counts only if it quotes a segment in flight; and even then none
//! ends a connection that is open.

use crate::harness::*;
use crate::states::{Scene, Stage};
use std::net::Ipv4Addr;
use transom_stack::ConnectionId;
use transom_tcp::State;
use transom_tcp::time::Duration;
use transom_wire::{Flags, IcmpMessage, Seq, TcpHeader, UnreachableCode};

const ROUTER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 254);

/// A segment of the victim's as the attacker would quote it.
fn quoted(peer: &Peer, seq: Seq) -> Vec<u8> {
    let header = TcpHeader { seq, ack: peer.seq, flags: Flags::ACK, ..TcpHeader::default() };
    let mut whole = packets::tcp(peer.to, peer.from, &header, &[0; 8]);
    // Large, as the network would say it was.
    whole[2..4].copy_from_slice(&1_500u16.to_be_bytes());
    whole
}

/// Every error there is about a packet.
fn errors(quote: &[u8]) -> Vec<Vec<u8>> {
    let codes = [
        UnreachableCode::Net,
        UnreachableCode::Host,
        UnreachableCode::Protocol,
        UnreachableCode::Port,
        UnreachableCode::HostProhibited,
        UnreachableCode::CommunicationProhibited,
    ];
    let unreachable = codes.map(|code| IcmpMessage::Unreachable { code, quoted: quote });
    let others = [
        IcmpMessage::PacketTooBig { mtu: 576, quoted: quote },
        IcmpMessage::PacketTooBig { mtu: 0, quoted: quote },
        IcmpMessage::TimeExceeded { code: 0, quoted: quote },
        IcmpMessage::TimeExceeded { code: 1, quoted: quote },
        IcmpMessage::ParameterProblem { code: 0, pointer: 9, quoted: quote },
        IcmpMessage::Redirect { code: 1, gateway: Ipv4Addr::new(10, 0, 0, 66), quoted: quote },
        // Source quench, long obsolete [MUST-55].
        IcmpMessage::Unknown { kind: 4, code: 0, body: quote },
    ];
    unreachable
        .iter()
        .chain(&others)
        .map(|message| packets::icmp(ROUTER, VICTIM, message))
        .collect()
}

/// A connection with 10,000 bytes in flight.
fn sending() -> (Victim, Peer, ConnectionId) {
    let mut victim = Victim::new();
    victim.limits.packets = 60;
    let (peer, id) = Peer::connect(&mut victim, ATTACKER, usual_options());
    victim.write(id, &stream(10_000));
    victim.sent();
    (victim, peer, id)
}

#[test]
fn errors_about_nothing_in_flight_are_ignored() {
    let (mut victim, mut peer, id) = sending();
    let before = victim.info(id);
    let flight = 10_000u32;
    let positions = (0..2_000u32)
        .map(|i| peer.ack + flight + i.wrapping_mul(2_146_000) % (u32::MAX - flight))
        .chain([peer.ack - 1, peer.ack + flight, peer.ack + flight + 1]);
    let mut rejected = 0;
    for seq in positions {
        for error in errors(&quoted(&peer, seq)) {
            assert_eq!(victim.inject(&error), 0, "{seq}");
        }
        rejected += 1;
    }
    let after = victim.info(id);
    assert!(after.counters.icmp_rejected >= 11 * rejected);
    assert_eq!(
        (after.state, after.path_mtu, after.cwnd),
        (before.state, before.path_mtu, before.cwnd)
    );
    assert_eq!(after.in_flight, before.in_flight);
    peer.ack += flight;
    peer.assert_alive(&mut victim, id);
}

#[test]
fn errors_about_other_flows_or_of_other_shapes_are_ignored() {
    let (mut victim, peer, id) = sending();
    let before = victim.info(id);
    let right = quoted(&peer, peer.ack);
    let mut others =
        vec![right[..19].to_vec(), right[..20].to_vec(), right[..27].to_vec(), Vec::new()];
    for (at, to) in [(9, 17), (12, 11), (16, 11), (20, 1), (22, 1), (0, 0x40), (0, 0x65), (6, 0x1f)]
    {
        let mut other = right.clone();
        other[at] = to;
        others.push(other);
    }
    for quote in &others {
        let message = IcmpMessage::PacketTooBig { mtu: 600, quoted: quote };
        victim.inject(&packets::icmp(ROUTER, VICTIM, &message));
        assert_eq!(victim.info(id).path_mtu, before.path_mtu, "{quote:02x?}");
    }
    // A wrong ICMP checksum.
    let mut bad = packets::too_big(ROUTER, &right, 600);
    bad[22] ^= 1;
    victim.inject(&bad);
    assert_eq!(victim.info(id).path_mtu, before.path_mtu);
    // Said rightly it is heard: the above was not vain.
    victim.inject(&packets::too_big(ROUTER, &right, 600));
    assert_eq!(victim.info(id).path_mtu, 600);
}

/// [MUST-56] RFC 5927 section 5.2.
#[test]
fn no_error_ends_an_open_connection() {
    for state in
        [State::Established, State::FinWait1, State::CloseWait, State::LastAck, State::Closing]
    {
        let mut scene = Scene::at(Stage::In(state));
        let id = scene.id.unwrap();
        if let State::Established | State::CloseWait = state {
            scene.victim.limits.packets = 10;
            scene.victim.write(id, b"something in flight");
        }
        let una = scene.victim.info(id).snd_nxt.since(scene.victim.info(id).snd_una);
        assert!(una > 0, "{state:?}: something is in flight");
        let seq = scene.victim.last_or(scene.peer.ack - 1);
        for _ in 0..100 {
            for error in errors(&quoted(&scene.peer, seq)) {
                scene.victim.inject(&error);
                assert_eq!(scene.victim.state(id), state);
            }
        }
    }
}

/// While our SYN is out an error may end the attempt [RFC 9293 section 3.9.2.2], but only a hard one that quotes it.
#[test]
fn an_attempt_ends_by_a_hard_error_about_its_syn_only() {
    let mut scene = Scene::at(Stage::In(State::SynSent));
    let id = scene.id.unwrap();
    for offset in [1u32, 2, 100, 1 << 31, u32::MAX] {
        for error in errors(&quoted(&scene.peer, scene.peer.ack - 1 + offset)) {
            scene.victim.inject(&error);
            assert_eq!(scene.victim.state(id), State::SynSent);
        }
    }
    let quote = quoted(&scene.peer, scene.peer.ack - 1);
    let soft = IcmpMessage::Unreachable { code: UnreachableCode::Net, quoted: &quote };
    scene.victim.inject(&packets::icmp(ROUTER, VICTIM, &soft));
    assert_eq!(scene.victim.state(id), State::SynSent);
    let hard = IcmpMessage::Unreachable { code: UnreachableCode::Port, quoted: &quote };
    scene.victim.inject(&packets::icmp(ROUTER, VICTIM, &hard));
    assert_eq!(scene.victim.state(id), State::Closed);
}

/// RFC 1191 section 3: never upwards, and never below the floor of 552 bytes. Each step down is believed once, so the retransmissions that a
/// forger who does know what is in flight can cause are bounded by the steps there are.
#[test]
fn the_path_mtu_goes_down_to_the_minimum_and_never_up() {
    let (mut victim, peer, id) = sending();
    victim.limits.packets = 1_000;
    let quote = quoted(&peer, peer.ack);
    let mut mtu = 1_500;
    for claimed in [9_000u16, 1_500, 1_499, 1_400, 1_450, 600, 0, 300, 100, 68, 67, 20, 1, 0] {
        victim.inject(&packets::too_big(ROUTER, &quote, claimed));
        let now = victim.info(id).path_mtu;
        assert!(now <= mtu && now >= 552, "{claimed} made {now} of {mtu}");
        mtu = now;
        // Packets that leave keep to it.
        for out in victim.sent() {
            assert!(
                out.bytes.len() <= now as usize,
                "{} bytes with an MTU of {now}",
                out.bytes.len()
            );
        }
    }
    assert_eq!(mtu, 552);
}

#[test]
fn a_flood_of_shrinking_mtus_is_bounded_in_what_it_makes_leave() {
    let (mut victim, peer, id) = sending();
    victim.limits.packets = 1_000;
    let cwnd = victim.info(id).cwnd;
    let quote = quoted(&peer, peer.ack);
    let mut bytes = 0;
    for round in 0..3 {
        for mtu in (68..1_500u16).rev() {
            victim.inject(&packets::too_big(ROUTER, &quote, mtu));
            let burst: usize = victim.sent().iter().map(|out| out.payload().len()).sum();
            assert!(burst as u64 <= cwnd, "one message released {burst} bytes, cwnd is {cwnd}");
            bytes += burst;
        }
        if round == 0 {
            assert!(bytes > 0);
            bytes = 0;
        }
    }
    assert_eq!(bytes, 0, "no step is believed twice");
    assert_eq!(victim.info(id).cwnd, cwnd, "RFC 1191 section 6.5");
}

/// IPv6 (RFC 8201 section 4): never below 1280.
#[test]
fn the_ipv6_path_mtu_never_falls_below_1280() {
    let mut victim = Victim::new();
    victim.limits.packets = 60;
    victim
        .call(|stack, _| stack.listen("[fd00::2]:80".parse().unwrap(), Default::default()))
        .unwrap();
    let from = "[fd00::1]:4000".parse().unwrap();
    let mut peer = Peer::new(from, "[fd00::2]:80".parse().unwrap());
    victim.inject(&peer.syn(usual_options()));
    let ack = peer.answer(&victim.last(), usual_options());
    victim.inject(&ack);
    let id = match victim.signals.iter().rev().find_map(|event| match event {
        transom_stack::StackSignal::Acceptable(listener) => Some(*listener),
        _ => None,
    }) {
        Some(listener) => victim.call(|stack, _| stack.accept(listener)).unwrap().0,
        None => panic!("nothing to accept"),
    };
    victim.write(id, &stream(10_000));
    let offending = victim.sent().remove(0).bytes;
    for mtu in [0u32, 1, 68, 1_279, 1_280, 100_000, u32::MAX] {
        let quoted = &offending[..];
        let message = IcmpMessage::PacketTooBig { mtu, quoted };
        victim.inject(&packets::icmp(peer.from.ip(), peer.to.ip(), &message));
        let now = victim.info(id).path_mtu;
        assert!((1_280..=1_500).contains(&now), "{mtu} made {now}");
    }
    victim.advance(Duration::from_secs(1));
}
