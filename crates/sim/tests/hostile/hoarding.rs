//! Connections kept open for nothing: sockstress, and peers that never say goodbye.
//!
//! A connection that the application holds lives as long as its peer answers, window closed or not MUST-37: how many of
//! those there are is bounded by `max_connections` and the backlog, and what each costs by its buffers. A connection that
//! the application has let go ends by itself, whatever the peer does short of taking the data.

use crate::harness::*;
use std::net::SocketAddr;
use transom_stack::ConnectionId;
use transom_tcp::State;
use transom_tcp::time::Duration;
use transom_wire::Flags;

fn from(port: u16) -> SocketAddr {
    SocketAddr::new(ATTACKER.ip(), port)
}

/// An hour is more than any connection without an owner needs.
const HOUR: u64 = 3_600;

fn assert_gone(victim: &Victim, held: i64, what: &str) {
    let stack = &victim.stack;
    let left = (stack.connection_count(), stack.half_open_count(), stack.time_wait_count());
    assert_eq!(left, (0, 0, 0), "{what}");
    // Tables that have grown stay so.
    assert!(
        victim.held() <= held + (16 << 10),
        "{what}: {} bytes are held, {held} before",
        victim.held()
    );
}

/// The victim has written, closed, and owes data to a peer that answers each packet in its own way.
fn orphan(answer: impl Fn(&mut Victim, &mut Peer, u64), most_packets: u64, what: &str) {
    let mut victim = Victim::new();
    let empty = victim.held();
    let (mut peer, id) = Peer::connect(&mut victim, ATTACKER, usual_options());
    peer.window = 0;
    victim.inject(&peer.segment(Flags::ACK, &[]));
    victim.write(id, &stream(16 << 10));
    victim.close(id);
    let mut packets = 0;
    for second in 0..HOUR {
        packets += victim.advance(Duration::from_secs(1));
        answer(&mut victim, &mut peer, second);
        packets += victim.sent().len() as u64;
        if victim.stack.connection_count() == 0 {
            break;
        }
    }
    assert_gone(&victim, empty, what);
    assert!(packets <= most_packets, "{what}: {packets} packets for a connection nobody wants");
}

#[test]
fn a_closed_window_does_not_hold_an_orphan() {
    let silent = |_: &mut Victim, _: &mut Peer, _| {};
    orphan(silent, 30, "silence");
    let zero = |victim: &mut Victim, peer: &mut Peer, _| {
        if !victim.sent().is_empty() {
            victim.inject(&peer.segment(Flags::ACK, &[]));
        }
    };
    orphan(zero, 40, "zero windows in answer to every probe");
    let chatter = |victim: &mut Victim, peer: &mut Peer, _| {
        victim.inject(&peer.segment(Flags::ACK, &[]));
    };
    orphan(chatter, 60, "zero windows all the time");
}

/// The window opens by a byte or by a lot, and closes again before anything of use can leave, or before it is acknowledged.
#[test]
fn a_window_that_flaps_does_not_hold_an_orphan() {
    for width in [1, 2, 40, 511] {
        let flap = move |victim: &mut Victim, peer: &mut Peer, _| {
            for window in [width, 0] {
                peer.window = window;
                victim.limits.packets = 100;
                victim.inject(&peer.segment(Flags::ACK, &[]));
            }
        };
        orphan(flap, 4_000, "a flapping window");
    }
}

/// The peer acknowledges the FIN and never sends its own.
#[test]
fn fin_wait_2_without_an_owner_ends() {
    for chatter in [false, true] {
        let mut victim = Victim::new();
        let empty = victim.held();
        let (mut peer, id) = Peer::connect(&mut victim, ATTACKER, usual_options());
        victim.close(id);
        peer.ack += 1;
        victim.inject(&peer.segment(Flags::ACK, &[]));
        assert_eq!(victim.state(id), State::FinWait2);
        for _ in 0..61 {
            victim.advance(Duration::from_secs(1));
            if chatter {
                // Keep-alives do not extend it.
                victim.inject(&peer.at(Flags::ACK, -1, 0, &[]));
            }
        }
        assert_gone(&victim, empty, "FIN-WAIT-2");
    }
}

/// Data for a connection that nobody reads any more resets it at once [SHLD-3].
#[test]
fn data_for_an_orphan_ends_it() {
    let mut victim = Victim::new();
    let empty = victim.held();
    let (peer, id) = Peer::connect(&mut victim, ATTACKER, usual_options());
    victim.close(id);
    victim.sent();
    victim.inject(&peer.segment(Flags::ACK, b"more"));
    assert!(victim.last().flags.contains(Flags::RST));
    assert_gone(&victim, empty, "data");
}

/// The rest of the states a peer can leave an orphan in: FIN-WAIT-1, CLOSING, LAST-ACK, SYN-RECEIVED.
#[test]
fn every_orphan_ends() {
    use crate::states::{STAGES, Scene, Stage};
    for stage in STAGES {
        for probe in [false, true] {
            let mut scene = Scene::at(stage);
            if let Some(id) = scene.id {
                scene.victim.close(id);
            }
            for _ in 0..HOUR {
                scene.victim.advance(Duration::from_secs(1));
                if probe && !matches!(stage, Stage::Listen | Stage::ClosedPort) {
                    // An old segment, answered within the budget, and never taken for progress.
                    scene.victim.limits.packets = 2;
                    scene.victim.inject(&scene.peer.at(Flags::ACK, -1, -1, &[]));
                }
            }
            let (_, _, connections, half_open, time_wait) = scene.fingerprint();
            assert_eq!(
                (connections, half_open, time_wait),
                (0, 0, 0),
                "{stage:?}, probed: {probe}"
            );
        }
    }
}

/// An application that holds its connections is served as many as were configured, and no more.
#[test]
fn connections_are_bounded_and_cheap() {
    const MOST: usize = 100;
    let mut victim = Victim::with(|config, _, listen| {
        config.max_connections = MOST;
        listen.backlog = 1_000;
    });
    let empty = victim.held();
    let mut ids: Vec<ConnectionId> = Vec::new();
    for port in 1..=300 {
        let mut peer = Peer::new(from(port), SERVICE);
        victim.inject(&peer.syn(usual_options()));
        let out = victim.sent();
        let Some(syn_ack) = out.last().map(|out| out.tcp()) else { continue };
        let ack = peer.answer(&syn_ack, usual_options());
        // Sockstress: the window is closed from the start.
        peer.window = 0;
        victim.inject(&ack);
        victim.inject(&peer.segment(Flags::ACK, &[]));
        if victim.acceptable() > 0 {
            ids.push(victim.accept_next());
        }
    }
    assert_eq!(ids.len(), MOST);
    assert_eq!(victim.stack.connection_count(), MOST);
    let each = (victim.held() - empty) / MOST as i64;
    assert!(each < 4_096, "{each} bytes for an idle connection");
    assert!(victim.stack.half_open_count() <= 256);
    // They live on while they answer, and make room when they go.
    victim.advance(Duration::from_secs(HOUR));
    assert_eq!(victim.stack.connection_count(), MOST);
    for id in ids {
        victim.call(|stack, now| stack.abort(id, now));
    }
    // The tables for 300 attempts have grown.
    assert_gone(&victim, empty + (128 << 10), "aborted");
    Peer::connect(&mut victim, from(5_000), usual_options());
}

/// A listener whose application does not accept holds as many connections as its backlog, and half-open ones for as long as
/// they are tried.
#[test]
fn connections_never_accepted_are_bounded_by_the_backlog() {
    let mut victim = Victim::with(|_, _, listen| listen.backlog = 16);
    let empty = victim.held();
    for port in 1..=1_000 {
        let mut peer = Peer::new(from(port), SERVICE);
        victim.sent();
        victim.inject(&peer.syn(usual_options()));
        let out = victim.sent();
        let Some(syn_ack) = out.last().map(|out| out.tcp()) else { continue };
        let ack = peer.answer(&syn_ack, usual_options());
        victim.inject(&ack);
        // Data on top, which nobody will read.
        victim.inject(&peer.segment(Flags::ACK, &[0; 1_000]));
    }
    assert_eq!(victim.stack.connection_count(), 16);
    assert_eq!(victim.acceptable(), 16);
    assert!(victim.held() - empty < 16 * (8 << 10) + (256 << 10), "{}", victim.held() - empty);
}

/// TIME-WAIT is bounded; the oldest goes first.
#[test]
fn time_wait_is_bounded() {
    const MOST: usize = 50;
    let mut victim = Victim::with(|config, _, _| config.max_time_wait = MOST);
    let mut held = 0;
    for port in 1..=2_000 {
        let (mut peer, id) = Peer::connect(&mut victim, from(port), bare_options());
        victim.close(id);
        peer.ack += 1;
        victim.inject(&peer.at(Flags::ACK | Flags::FIN, 0, 0, &[]));
        assert!(victim.stack.time_wait_count() <= MOST);
        victim.sent();
        if port == 1_000 {
            held = victim.held();
        }
    }
    assert_eq!(victim.stack.time_wait_count(), MOST);
    assert!(victim.held() <= held + (64 << 10), "{} bytes, {held} at half-time", victim.held());
    victim.advance(Duration::from_secs(61));
    assert_eq!(victim.stack.time_wait_count(), 0);
}
