//! Off the path: the attacker knows the addresses and ports, and has to guess the sequence numbers (RFC 5961).
//!
//! What holds: a reset counts at exactly RCV.NXT, data needs a plausible acknowledgement besides a place in the window, and
//! everything else is answered within the connection's challenge budget, or (data outside the window, which may be a
//! retransmission whose acknowledgement was lost) by one acknowledgement each.

use crate::harness::*;
use crate::states::{Scene, Stage};
use transom_tcp::State;
use transom_tcp::time::Duration;
use transom_wire::{Flags, Seq, TcpHeader, Timestamps};

/// Offsets from `RCV.NXT` around every edge there is, and all over the rest of the sequence space.
fn offsets(window: u64) -> impl Iterator<Item = i64> {
    let window = window as i64;
    let edges = [0, window, 1 << 31, -(1 << 31), window / 2, -window];
    let near = edges.into_iter().flat_map(|edge| {
        [0, 1, 2, 3, 536, 1459, 1460, 1461, 65_535]
            .into_iter()
            .flat_map(move |d| [edge + d, edge - d])
    });
    // A step without a factor in common with 2³².
    let everywhere = (-(1i64 << 31)..1 << 31).step_by(16_411);
    near.chain(everywhere).filter(|&offset| offset as u32 != 0)
}

fn established() -> Scene {
    Scene::at(Stage::In(State::Established))
}

#[test]
fn only_a_reset_at_exactly_the_next_position_resets() {
    for flags in [Flags::RST, Flags::RST | Flags::ACK] {
        let mut scene = established();
        let id = scene.id.unwrap();
        let window = scene.victim.info(id).rcv_wnd;
        let mut answers = 0;
        for offset in offsets(window) {
            answers += scene.victim.inject(&scene.peer.at(flags, offset, 0, &[]));
            assert_eq!(scene.victim.state(id), State::Established, "reset at {offset:+}");
        }
        // All within one second.
        assert_eq!(answers, CHALLENGES_PER_SECOND, "the budget is used, and not exceeded");
        scene.victim.sent();
        scene.peer.assert_alive(&mut scene.victim, id);
        scene.victim.inject(&scene.peer.at(flags, 0, 0, &[]));
        assert_eq!(scene.victim.state(id), State::Closed);
    }
}

#[test]
fn a_syn_anywhere_is_challenged_and_nothing_else() {
    for flags in [Flags::SYN, Flags::SYN | Flags::ACK] {
        let mut scene = established();
        let id = scene.id.unwrap();
        let window = scene.victim.info(id).rcv_wnd;
        let mut answers = 0;
        for offset in offsets(window).chain([0]) {
            answers += scene.victim.inject(&scene.peer.at(flags, offset, 0, b"x"));
        }
        assert_eq!(answers, CHALLENGES_PER_SECOND);
        for challenge in scene.victim.sent() {
            let header = challenge.tcp();
            // RFC 5961 section 4.2: what a peer that lost its state answers with a reset at the right place.
            assert_eq!(
                (header.flags, header.seq, header.ack),
                (Flags::ACK, scene.peer.ack, scene.peer.seq)
            );
        }
        scene.peer.assert_alive(&mut scene.victim, id);
    }
}

#[test]
fn an_acknowledgement_of_what_was_never_sent_does_nothing() {
    let mut scene = established();
    let id = scene.id.unwrap();
    scene.victim.write(id, &stream(1_000));
    scene.victim.sent();
    let before = scene.victim.info(id);
    let mut answers = 0;
    for offset in offsets(1_000) {
        // Between SND.UNA and SND.NXT it would be a right guess.
        if !(1..=1_000).contains(&offset) {
            answers += scene.victim.inject(&scene.peer.at(Flags::ACK, 0, offset, &[]));
        }
    }
    assert_eq!(answers, CHALLENGES_PER_SECOND);
    let after = scene.victim.info(id);
    assert_eq!(
        (after.snd_una, after.cwnd, after.in_flight),
        (before.snd_una, before.cwnd, before.in_flight)
    );
    scene.peer.ack += 1_000;
    scene.peer.assert_alive(&mut scene.victim, id);
}

#[test]
fn blind_data_needs_a_plausible_acknowledgement() {
    let mut scene = established();
    let id = scene.id.unwrap();
    let window = scene.victim.info(id).rcv_wnd as i64;
    let (mut inside, mut outside, mut outside_sent) = (0, 0, 0);
    for offset in offsets(window as u64).chain([0]) {
        let packet = scene.peer.at(Flags::ACK | Flags::FIN, offset, 1 << 30, b"forged");
        let answers = scene.victim.inject(&packet);
        let in_window = offset < window && offset + 7 > 0;
        if in_window {
            inside += answers;
        } else {
            outside += answers;
            outside_sent += 1;
        }
        assert_eq!(scene.victim.connection(id).readable(), 0, "data at {offset:+} was taken");
        assert_eq!(scene.victim.state(id), State::Established, "the FIN at {offset:+} was taken");
    }
    assert!(inside <= CHALLENGES_PER_SECOND, "{inside} answers");
    assert!(outside <= outside_sent);
    // Nothing of it stays behind where a gap could be filled later.
    assert_eq!(scene.victim.connection(id).info(scene.victim.now).counters.bytes_accepted, 0);
    scene.victim.sent();
    scene.victim.advance(Duration::from_secs(1));
    scene.peer.assert_alive(&mut scene.victim, id);
}

/// The budget is one connection's own, so that spending it tells nothing about another (the side channel of RFC 5961's
/// global limit), and it is renewed every second.
#[test]
fn budgets_are_per_connection_and_per_second() {
    let mut victim = Victim::new();
    let (first, _) = Peer::connect(&mut victim, ATTACKER, bare_options());
    let other = std::net::SocketAddr::new(ATTACKER.ip(), 4001);
    let (second, _) = Peer::connect(&mut victim, other, bare_options());
    victim.sent();
    for _ in 0..3 {
        let answers: u64 =
            (0..1_000).map(|_| victim.inject(&first.at(Flags::RST, 100, 0, &[]))).sum();
        assert_eq!(answers, CHALLENGES_PER_SECOND);
        assert_eq!(
            victim.inject(&second.at(Flags::RST, 100, 0, &[])),
            1,
            "the other's budget is whole"
        );
        victim.advance(Duration::from_secs(1));
    }
}

#[test]
fn a_half_open_connection_falls_to_an_exact_reset_only() {
    let mut scene = Scene::at(Stage::HalfOpen);
    let mut answers = 0;
    for offset in offsets(65_535) {
        for flags in [Flags::RST, Flags::SYN] {
            // The SYN of the connection itself, one before, has its answer repeated.
            answers += scene.victim.inject(&scene.peer.at(flags, offset, 0, &[]));
        }
        assert_eq!(scene.victim.stack.half_open_count(), 1, "{offset:+}");
    }
    assert!(answers <= 2, "{answers} answers in a second");
    scene.victim.inject(&scene.peer.at(Flags::RST, 0, 0, &[]));
    assert_eq!(scene.victim.stack.half_open_count(), 0);
}

#[test]
fn an_attempt_is_refused_only_by_who_saw_its_syn() {
    let mut scene = Scene::at(Stage::In(State::SynSent));
    let id = scene.id.unwrap();
    for (nth, offset) in offsets(65_535).enumerate() {
        scene.victim.inject(&scene.peer.at(Flags::RST | Flags::ACK, 0, offset, &[]));
        scene.victim.inject(&scene.peer.at(Flags::RST, offset, 0, &[]));
        // RFC 9293 section 3.10.7.3: answered by a reset, in vain. The first time the SYN leaves once more behind it, and never again.
        scene.victim.limits.packets = if nth == 0 { 2 } else { 1 };
        scene.victim.inject(&scene.peer.at(Flags::SYN | Flags::ACK, 0, offset, &[]));
        scene.victim.limits.packets = 1;
        assert_eq!(scene.victim.state(id), State::SynSent, "{offset:+}");
        scene.victim.sent();
    }
    scene.victim.inject(&scene.peer.at(Flags::RST | Flags::ACK, 0, 0, &[]));
    assert_eq!(scene.victim.state(id), State::Closed);
}

/// A blind SYN in SYN-SENT cannot be told from the other half of a simultaneous open [MUST-10]. The true SYN-ACK is then
/// refused, as its sequence number is not the one the forger chose. What holds: no connection to the forger comes about, the
/// attempt ends, and little is sent meanwhile.
#[test]
fn a_forged_simultaneous_open_leads_nowhere() {
    let mut scene = Scene::at(Stage::In(State::SynSent));
    let id = scene.id.unwrap();
    scene.victim.inject(&scene.peer.syn(usual_options()));
    assert_eq!(scene.victim.state(id), State::SynReceived);
    // The forger repeats itself with other numbers, and guesses acknowledgements.
    let mut answers = 0;
    for i in 1..20_000i64 {
        answers += scene.victim.inject(&scene.peer.at(Flags::SYN, i * 99_991, 0, b"data"));
        answers += scene.victim.inject(&scene.peer.at(Flags::SYN | Flags::ACK, i * 99_991, 0, &[]));
    }
    assert!(answers <= CHALLENGES_PER_SECOND, "{answers} answers");
    assert_eq!(scene.victim.state(id), State::SynReceived);
    scene.victim.sent();
    let sent = scene.victim.advance(Duration::from_secs(600));
    assert_eq!(scene.victim.state(id), State::Closed, "R2 ends it");
    assert!(sent <= 10, "{sent} packets");
}

/// RFC 7323 section 5.3: a far-future timestamp in TS.Recent would make PAWS reject the true peer. It must not get there
/// from a segment outside the window, nor from one with an acknowledgement nobody could have sent.
#[test]
fn paws_is_not_poisoned_from_off_the_path() {
    let mut victim = Victim::new();
    let (mut peer, id) = Peer::connect(&mut victim, ATTACKER, usual_options());
    let honest = peer.timestamps.unwrap();
    let future = Timestamps { value: honest.value.wrapping_add(1 << 30), echo: honest.echo };
    let forger = Peer { timestamps: Some(future), ..peer };
    let window = victim.info(id).rcv_wnd as i64;
    for payload in [&b""[..], b"forged"] {
        for offset in offsets(window as u64) {
            if offset >= -7 && offset <= window {
                continue;
            }
            victim.inject(&forger.at(Flags::ACK, offset, 0, payload));
            victim.inject(&forger.at(Flags::SYN, offset, 0, payload));
            victim.inject(&forger.at(Flags::RST, offset, 0, payload));
        }
        for ack in [1i64, 2, 1_000, 1 << 20, 1 << 30, -(1 << 30), -(1 << 20)] {
            victim.inject(&forger.at(Flags::ACK, 0, ack, payload));
        }
        // Without an acknowledgement at all.
        victim.inject(&forger.at(Flags::PSH, 0, 0, payload));
    }
    victim.sent();
    assert_eq!(victim.info(id).counters.paws_rejected, 0);
    peer.assert_alive(&mut victim, id);
    assert_eq!(victim.info(id).counters.paws_rejected, 0, "the peer's own segments pass");
}

/// After data has arrived, a retransmission of it sets TS.Recent (section 4.3). A forged one, though it has the right acknowledgement and lies
/// in the last window, does not. Nobody off the path knows what we have sent for it to echo.
#[test]
fn paws_is_not_poisoned_by_a_forged_retransmission() {
    let mut victim = Victim::new();
    let (mut peer, id) = Peer::connect(&mut victim, ATTACKER, usual_options());
    for _ in 0..20 {
        victim.inject(&peer.data(&[0; 1000]));
    }
    let honest = peer.timestamps.unwrap();
    for guess in [0, 1, 1 << 20, 1 << 28, 1 << 31] {
        let value = honest.value.wrapping_add(1 << 30);
        let echo = if guess == 0 { 0 } else { honest.echo.wrapping_add(guess) };
        let forger = Peer { timestamps: Some(Timestamps { value, echo }), ..peer };
        for offset in [-7, -1_000, -2_000, -20_000] {
            victim.inject(&forger.at(Flags::ACK, offset, 0, b"forged"));
        }
    }
    victim.sent();
    assert_eq!(victim.info(id).counters.paws_rejected, 0);
    assert_eq!(victim.read(id).len(), 20_000);
    peer.assert_alive(&mut victim, id);
    assert_eq!(victim.info(id).counters.paws_rejected, 0, "the peer's own segments pass");
}

/// The other way round: segments with timestamps of the past are rejected and answered, but within the budget unless they
/// carry data.
#[test]
fn rejected_timestamps_are_answered_within_the_budget() {
    let mut victim = Victim::new();
    let (mut peer, id) = Peer::connect(&mut victim, ATTACKER, usual_options());
    let honest = peer.timestamps.unwrap();
    let old = Timestamps { value: honest.value.wrapping_sub(1_000), echo: honest.echo };
    let forger = Peer { timestamps: Some(old), ..peer };
    let answers: u64 = (0..10_000).map(|i| victim.inject(&forger.at(Flags::ACK, i, 0, &[]))).sum();
    assert_eq!(answers, CHALLENGES_PER_SECOND);
    assert_eq!(victim.info(id).counters.paws_rejected, 10_000);
    peer.assert_alive(&mut victim, id);
}

/// Segments without the agreed timestamps (RFC 7323 section 3.2) are dropped in silence, resets excepted.
#[test]
fn segments_without_the_agreed_option_do_nothing() {
    let mut victim = Victim::new();
    let (mut peer, id) = Peer::connect(&mut victim, ATTACKER, usual_options());
    let forger = Peer { timestamps: None, ..peer };
    for flags in [Flags::ACK, Flags::ACK | Flags::FIN, Flags::SYN, Flags::SYN | Flags::ACK] {
        assert_eq!(victim.inject(&forger.at(flags, 0, 0, b"x")), 0);
    }
    peer.assert_alive(&mut victim, id);
}

/// Where the sequence space wraps is no weak spot.
#[test]
fn the_wrap_is_no_weak_spot() {
    for start in [0u32, 1, u32::MAX, u32::MAX - 1, 1 << 31, (1 << 31) - 1] {
        let mut victim = Victim::new();
        let mut peer = Peer { seq: Seq::new(start), ..Peer::new(ATTACKER, SERVICE) };
        victim.inject(&peer.syn(bare_options()));
        let ack = peer.answer(&victim.last(), bare_options());
        victim.inject(&ack);
        let id = victim.accept_next();
        for seq in [0u32, 1, u32::MAX, 1 << 31] {
            if Seq::new(seq) == peer.seq {
                continue;
            }
            let header = TcpHeader { seq: Seq::new(seq), ..peer.header(Flags::RST) };
            victim.inject(&peer.packet(&header, b""));
            assert_eq!(victim.state(id), State::Established, "peer at {start}, reset at {seq}");
        }
        peer.assert_alive(&mut victim, id);
    }
}
