//! Deadlines: when the owner has to come back, and what happens if it comes early or late.

use crate::harness::*;
use transom_tcp::time::{Duration, Instant};
use transom_tcp::{KeepAlive, Profile, State};
use transom_wire::Flags;
use transom_wire::offload::RxOffload;

#[test]
fn waiting_segments_are_due_at_once() {
    let mut host = Host::new();
    assert_eq!(host.stack.next_timeout(), None);
    let now = host.now;
    // An answer of nobody's, and a connection's segment.
    let stray = Peer::new(at(PEER, 9), at(HOST, 99)).segment(Flags::ACK, &[]);
    host.stack.on_packet(now, &stray, RxOffload::default());
    assert_eq!(host.stack.next_timeout(), Some(Instant::ZERO));
    assert!(host.stack.poll_transmit(now).is_some());
    assert!(host.stack.poll_transmit(now).is_none());
    assert_eq!(host.stack.next_timeout(), None);
    host.stack.connect(now, None, at(PEER, 80), None).unwrap();
    assert_eq!(host.stack.next_timeout(), Some(Instant::ZERO));
    while host.stack.poll_transmit(now).is_some() {}
    // RFC 6298 section 2.1: a second for the first SYN. The time named may be a little earlier, never later.
    let due = host.stack.next_timeout().unwrap();
    let deadline = now + Duration::from_secs(1);
    assert!(due > now && due <= deadline && deadline.since(due) < Duration::from_millis(300));
}

#[test]
fn coming_early_does_nothing_and_coming_late_does_it_once() {
    let mut host = Host::new();
    host.connect(at(PEER, 80));
    host.sent();
    for millis in [1, 500, 498] {
        host.now += Duration::from_millis(millis);
        host.call(|stack, now| stack.on_timeout(now));
        assert!(host.sent().is_empty());
    }
    // Ten seconds late: one SYN, not the three that would have left in time.
    host.now += Duration::from_secs(10);
    host.call(|stack, now| stack.on_timeout(now));
    assert_eq!(host.sent_one().flags(), Flags::SYN);
    let late = host.now;
    let next = host.advance(Duration::from_secs(5)).remove(0).0;
    assert_eq!(next.since(late), Duration::from_secs(2));
}

/// A deadline that moves later may name the old time once more, but nothing happens then, and it is not repeated.
#[test]
fn a_deadline_that_has_moved_costs_a_visit_and_nothing_else() {
    let keep_alive = KeepAlive::default()
        .with_idle(Duration::from_secs(100))
        .with_interval(Duration::from_secs(10))
        .with_probes(3);
    let mut host = Host::with(|_, profile: &mut Profile| profile.keep_alive = Some(keep_alive));
    let listener = host.listen(service());
    let (mut peer, id) = Peer::connect(&mut host, listener, at(PEER, 4000), service());
    // Every twenty seconds something is heard: the probe is never due.
    for _ in 0..20 {
        let left = host.advance(Duration::from_secs(20));
        assert!(left.iter().all(|(_, sent)| sent.tcp().seq == peer.ack), "a probe");
        peer.send(&mut host, b"x");
        host.read(id);
    }
    let heard = host.now;
    // Silence: three probes, then the connection is given up.
    let left = host.advance(Duration::from_secs(200));
    let probes: Vec<u64> = left
        .iter()
        .filter(|(_, sent)| sent.tcp().seq == peer.ack - 1)
        .map(|(when, _)| when.since(heard).as_millis() / 1_000)
        .collect();
    assert_eq!(probes, [100, 110, 120]);
    assert_eq!(host.state(id), State::Closed);
    host.close(id);
    assert_eq!((host.stack.connection_count(), host.stack.next_timeout()), (0, None));
}

/// Many deadlines at many distances: each is met at its time, none is lost.
#[test]
fn every_connection_meets_its_own_deadline() {
    let mut host = Host::new();
    let mut due = Vec::new();
    for n in 0..200u16 {
        host.now += Duration::from_micros(u64::from(n) * 13 + 1);
        host.connect(at(PEER, 1_000 + n));
        due.push((host.now + Duration::from_secs(1), 1_000 + n));
    }
    host.sent();
    let left = host.advance(Duration::from_millis(1_005));
    let seen: Vec<(Instant, u16)> =
        left.iter().map(|(when, sent)| (*when, sent.ends().1.port())).collect();
    for &(at, port) in &due {
        let again: Vec<Instant> =
            seen.iter().filter(|&&(_, seen)| seen == port).map(|&(when, _)| when).collect();
        assert_eq!(again, [at], "port {port}");
    }
}
