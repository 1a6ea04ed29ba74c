//! A peer that lies in its acknowledgements to be sent more, or sooner (Savage, Cardwell, Wetherall and Anderson, "TCP
//! Congestion Control with a Misbehaving Receiver", 1999).

use crate::harness::*;
use std::net::SocketAddr;
use transom_stack::ConnectionId;
use transom_tcp::compose::compose_classic as compose;
use transom_tcp::time::Duration;
use transom_tcp::{Phase, State};
use transom_wire::{Flags, Options, SackBlock};

const MSS: u64 = 1460;

/// A connection on which the victim has written more than it may send, and its first flight has left.
fn sending(options: Options) -> (Victim, Peer, ConnectionId) {
    sending_with("", options)
}

/// The same with other units.
fn sending_with(units: &str, options: Options) -> (Victim, Peer, ConnectionId) {
    let mut victim = Victim::with(|_, profile, _| {
        let chosen = compose(units).unwrap();
        if !units.is_empty() {
            profile.reduction = chosen.reduction;
        }
        profile.send_buffer = 1 << 20;
        profile.max_send_buffer = 4 << 20;
    });
    victim.limits.packets = 3_000;
    let (peer, id) = Peer::connect(&mut victim, ATTACKER, options);
    victim.write(id, &stream(1 << 20));
    (victim, peer, id)
}

/// Options without SACK, but with room for a large flight.
fn unsacked_options() -> Options {
    Options { window_scale: Some(7), ..bare_options() }
}

/// The bytes of payload that left since the last call.
fn bytes_sent(victim: &mut Victim) -> u64 {
    victim.sent().iter().map(|out| out.payload().len() as u64).sum()
}

#[test]
fn acknowledging_what_was_not_sent_gains_nothing() {
    let (mut victim, peer, id) = sending(bare_options());
    let flight = bytes_sent(&mut victim);
    assert_eq!(flight, 10 * MSS, "RFC 6928");
    let before = victim.info(id);
    let mut answers = 0;
    for beyond in 1..5_000i64 {
        answers += victim.inject(&peer.at(Flags::ACK, 0, flight as i64 + beyond, &[]));
    }
    assert_eq!(answers, CHALLENGES_PER_SECOND);
    assert_eq!(bytes_sent(&mut victim), 0);
    let after = victim.info(id);
    assert_eq!((after.cwnd, after.snd_una, after.srtt), (before.cwnd, before.snd_una, before.srtt));
}

/// An acknowledgement of what was sent and has not arrived cannot be told from an honest one, short of nonces nobody
/// deployed. What holds: it makes the window grow by the bytes it covers and no more, so a flight at most doubles; the
/// liar loses the reliability it gave up; and the round-trip time it feigns does not push the timer below its least.
#[test]
fn early_acknowledgements_gain_no_more_than_honest_ones() {
    let (mut victim, mut peer, id) = sending(bare_options());
    let mut flight = bytes_sent(&mut victim);
    for _ in 0..5 {
        let before = victim.info(id).cwnd;
        peer.ack += flight as u32;
        victim.inject(&peer.segment(Flags::ACK, &[]));
        let after = victim.info(id).cwnd;
        assert!(after <= before + flight, "{flight} bytes made cwnd grow from {before} to {after}");
        flight = bytes_sent(&mut victim);
        assert!(flight <= after);
    }
    assert!(victim.info(id).rto >= Duration::from_millis(200));
}

/// RFC 3465: the window grows by bytes, not by acknowledgements.
#[test]
fn dividing_acknowledgements_gains_nothing() {
    // Slow start.
    let (mut victim, mut peer, id) = sending(bare_options());
    let flight = bytes_sent(&mut victim);
    let before = victim.info(id).cwnd;
    for _ in 0..flight {
        peer.ack += 1;
        victim.inject(&peer.segment(Flags::ACK, &[]));
    }
    let (mut whole, mut honest, whole_id) = sending(bare_options());
    honest.ack += bytes_sent(&mut whole) as u32;
    whole.inject(&honest.segment(Flags::ACK, &[]));
    let (divided, undivided) = (victim.info(id).cwnd, whole.info(whole_id).cwnd);
    assert!(divided <= undivided, "{divided} from {flight} acknowledgements, {undivided} from one");
    assert_eq!(undivided, before + flight);

    // Congestion avoidance: one segment per window, however finely it is acknowledged.
    while victim.info(id).counters.timeouts == 0 {
        victim.advance(Duration::from_millis(10)); // a timeout sets ssthresh
    }
    let end = victim.info(id).snd_nxt;
    while victim.info(id).snd_una < end || victim.info(id).cwnd < victim.info(id).ssthresh {
        peer.acknowledge(&mut victim);
    }
    let before = victim.info(id);
    let flight = before.in_flight;
    for _ in 0..flight {
        peer.ack += 1;
        victim.inject(&peer.segment(Flags::ACK, &[]));
    }
    let grown = victim.info(id).cwnd - before.cwnd;
    assert!(grown <= MSS, "a window of {} grew by {grown}", before.cwnd);
}

/// Spoofed duplicates. With SACK a duplicate counts only with news in its blocks; without any, by RFC 5681 for the fast
/// retransmission only. Without SACK each duplicate says that a segment has left the network, so RFC 5681 section 3.2 lets
/// the sender bound what they release by what was outstanding.
#[test]
fn spoofed_duplicates_release_no_more_than_was_outstanding() {
    for (name, units, options) in [
        ("NewReno", "", unsacked_options()),
        ("NewReno with PRR", "prr", unsacked_options()),
        ("SACK", "", usual_options()),
        ("SACK with PRR", "prr", usual_options()),
    ] {
        let (mut victim, mut peer, id) = sending_with(units, options);
        // A few honest round trips.
        for _ in 0..3 {
            peer.acknowledge(&mut victim);
        }
        victim.sent();
        let before = victim.info(id);
        let outstanding = before.snd_nxt.since(before.snd_una);
        for _ in 0..10_000 {
            victim.inject(&peer.segment(Flags::ACK, &[]));
        }
        let after = victim.info(id);
        let released = after.snd_nxt.since(before.snd_nxt);
        let retransmitted =
            after.counters.retransmitted_bytes - before.counters.retransmitted_bytes;
        assert!(
            released <= outstanding,
            "{name}: {released} bytes more, {outstanding} were outstanding"
        );
        assert!(retransmitted <= 2 * MSS, "{name}: {retransmitted} bytes again");
        assert!(after.cwnd <= before.cwnd, "{name}");
        assert!(after.counters.fast_recoveries <= 1, "{name}");
        assert!(released + retransmitted >= bytes_sent(&mut victim), "{name}: nothing else left");
    }
}

/// Duplicates in later recoveries, and after partial acknowledgements, which keep one going. Each advance can be followed
/// by duplicates for what was in the network then, so it releases no more than the window.
#[test]
fn duplicates_in_every_recovery_release_no_more_each_time() {
    for units in ["", "prr"] {
        let (mut victim, mut peer, id) = sending_with(units, unsacked_options());
        peer.acknowledge(&mut victim);
        for round in 0..5 {
            for advance in 0..5 {
                let before = victim.info(id);
                for _ in 0..500 {
                    victim.inject(&peer.segment(Flags::ACK, &[]));
                }
                let released = victim.info(id).snd_nxt.since(before.snd_nxt);
                let most = before.cwnd + 3 * MSS;
                assert!(released <= most, "{units} {round}.{advance}: {released} of {most}");
                // A partial acknowledgement of one segment.
                peer.ack += MSS as u32;
                victim.inject(&peer.segment(Flags::ACK, &[]));
            }
            assert!(
                victim.info(id).counters.fast_recoveries > round,
                "the duplicates start a recovery"
            );
            peer.acknowledge(&mut victim);
            peer.acknowledge(&mut victim);
        }
    }
}

#[test]
fn sacking_what_was_not_sent_is_not_believed() {
    let (mut victim, peer, id) = sending(usual_options());
    let flight = bytes_sent(&mut victim) as i64;
    let before = victim.info(id);
    for blocks in [
        &[(flight, flight + 1_448)][..],
        &[(flight - 1_448, flight + 1)],
        &[(1 << 20, 1 << 21), (1 << 22, 1 << 23)],
        &[(-5_000, -1_000), (flight, flight + 10), (flight + 20, flight + 30)],
        // Backwards, and empty.
        &[(2_896, 1_448), (1_448, 1_448)],
        &[(0, 1 << 31), (-(1 << 31), 0), (5, -5)],
    ] {
        victim.inject(&peer.sack(blocks));
        let after = victim.info(id);
        assert_eq!(
            (after.in_flight, after.phase, after.cwnd),
            (before.in_flight, Phase::Open, before.cwnd)
        );
        assert_eq!(after.delivered, before.delivered);
    }
    assert_eq!(bytes_sent(&mut victim), 0);
}

/// RFC 2018 section 8: what was selectively acknowledged may be thrown away by the receiver, and is then sent again after a
/// timeout.
#[test]
fn a_reneging_receiver_still_gets_every_byte() {
    let (mut victim, mut peer, id) = sending(usual_options());
    let mut received = std::collections::BTreeMap::new();
    let flight: u64 = bytes_sent(&mut victim);
    // Everything, the first segment too, but never cumulatively.
    victim.inject(&peer.sack(&[(0, flight as i64)]));
    victim.sent();
    for _ in 0..20 {
        victim.advance(Duration::from_secs(1));
        let mut next = peer.ack;
        for out in victim.sent() {
            received.insert(out.tcp().seq.distance_from(peer.ack), out.payload());
        }
        // It has thrown away what it sacked, and now takes what comes in order.
        while let Some(bytes) =
            received.remove(&next.distance_from(peer.ack)).filter(|b| !b.is_empty())
        {
            next += bytes.len() as u32;
        }
        if next != peer.ack {
            received.clear();
        }
        peer.ack = next;
        victim.inject(&peer.segment(Flags::ACK, &[]));
        if victim.info(id).snd_una.stream_offset() >= flight {
            return;
        }
    }
    panic!("only {} of {flight} bytes were sent again", victim.info(id).snd_una.stream_offset());
}

/// RFC 2883 reports that report nothing that can have happened: no state of the sender's moves.
#[test]
fn invalid_duplicate_reports_move_nothing() {
    let (mut victim, mut peer, id) = sending(usual_options());
    peer.acknowledge(&mut victim);
    victim.sent();
    let before = victim.info(id);
    let flight = before.in_flight as i64;
    for blocks in [
        // Below what was ever sent, all of the sequence space, half inside and half outside, backwards.
        &[(-(1 << 20), -(1 << 19))][..],
        &[(-(1 << 31) + 1, -1)],
        &[(-100, 100)],
        &[(-1, -100)],
        // "Inside the second block", which is nothing that was sent.
        &[(flight + 10, flight + 20), (flight, flight + 30)],
        &[(0, 0), (0, 0)],
    ] {
        for _ in 0..100 {
            victim.inject(&peer.sack(blocks));
        }
        let after = victim.info(id);
        assert_eq!((after.cwnd, after.ssthresh), (before.cwnd, before.ssthresh), "{blocks:?}");
        assert_eq!((after.in_flight, after.phase), (before.in_flight, Phase::Open), "{blocks:?}");
        assert_eq!(after.counters.retransmitted_bytes, before.counters.retransmitted_bytes);
    }
    assert_eq!(bytes_sent(&mut victim), 0);
}

/// Every lie at once, at random, by a peer that also tells the truth now and then. The flight keeps to the windows (the
/// connection asserts it at each transmission), and the data arrives.
#[test]
fn a_compulsive_liar_is_served_within_the_windows() {
    for seed in 0..200u64 {
        let mut rng = transom_sim::Streams::new(seed).rng(7, 0);
        let options = if rng.below(2) == 0 { usual_options() } else { bare_options() };
        let (mut victim, mut peer, id) = sending(options);
        victim.call(|stack, now| stack.shutdown_write(id, now)).unwrap();
        let mut seen: Vec<u8> = Vec::new();
        let start = peer.ack;
        for step in 0.. {
            assert!(step < 20_000, "seed {seed} does not end");
            for out in victim.sent() {
                let at = out.tcp().seq.distance_from(start) as usize;
                let payload = out.payload();
                if at <= seen.len() && at + payload.len() > seen.len() {
                    seen.extend_from_slice(&payload[seen.len() - at..]);
                }
            }
            let truth = start + seen.len() as u32;
            let info = victim.stack.connection(id).map(|c| c.info(victim.now));
            let Some(info) = info.filter(|info| info.state == State::FinWait1) else { break };
            if info.snd_una.stream_offset() >= 1 << 20 {
                break;
            }
            let flight = info.snd_nxt.since(info.snd_una).max(1);
            match rng.below(8) {
                0 | 1 => peer.ack = truth,
                // Never below the truth for good: what is acknowledged early is lost to the liar.
                2 => {
                    _ = victim.inject(&peer.at(
                        Flags::ACK,
                        0,
                        rng.below(2 * flight) as i64 - flight as i64,
                        &[],
                    ))
                }
                3 => {
                    let mut header = peer.header(Flags::ACK);
                    for _ in 0..rng.below(4) {
                        let left = peer.ack + rng.below(2 * flight) as u32;
                        header
                            .options
                            .sack
                            .push(SackBlock { left, right: left + rng.below(flight) as u32 });
                    }
                    victim.inject(&peer.packet(&header, &[]));
                }
                4 => _ = victim.inject(&peer.segment(Flags::ACK, &[])),
                5 => peer.window = [0, 1, 100, 65_535][rng.below(4) as usize],
                _ => _ = victim.advance(Duration::from_millis(rng.below(700))),
            }
            if rng.below(3) == 0 {
                peer.window = 65_535;
                peer.ack = truth;
                victim.inject(&peer.segment(Flags::ACK, &[]));
            }
        }
        // Data that it acknowledged too early is lost to it; the bytes in a row are the right ones.
        assert_eq!(seen, stream(seen.len()), "seed {seed}");
    }
}

/// Two peers on two connections: one's lies do not touch the other's window.
#[test]
fn one_connection_does_not_pay_for_another() {
    let (mut victim, liar, liar_id) = sending(bare_options());
    let other = SocketAddr::new(ATTACKER.ip(), 4001);
    let (_, id) = Peer::connect(&mut victim, other, usual_options());
    let before = victim.info(id);
    for i in 0..1_000 {
        victim.inject(&liar.at(Flags::ACK, 0, i * 31 - 15_000, &[]));
    }
    let after = victim.info(id);
    assert_eq!(
        (after.cwnd, after.ssthresh, after.srtt),
        (before.cwnd, before.ssthresh, before.srtt)
    );
    assert_ne!(victim.state(liar_id), State::Closed);
}
