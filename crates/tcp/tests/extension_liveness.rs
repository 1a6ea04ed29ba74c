//! What an extension cannot do: keep its host busy, take other extensions along when it fails, or keep a connection that its owner has given up.
//!
//! Segments are 1000 bytes, the initial window is 10 of them, SRTT is 100 ms, RTTVAR 50 and RTO 300 ms at the start.

use crate::common;

use common::puppet::{Puppet, acting, asking, puppet};
use common::{Peer, Setup, ms, secs, seg};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use transom_tcp::extension::{
    AttachError, DepartureReason, Extension, Fault, Limits, Occasion, Value, View, Wake,
};
use transom_tcp::time::{Duration, Instant};
use transom_tcp::{ConnectionError, State};

/// Calls on_timeout at each deadline until `until`. Returns how many there were.
fn run(peer: &mut Peer, until: Instant) -> usize {
    let mut calls = 0;
    while let Some(at) = peer.connection.next_timeout().filter(|&at| at <= until) {
        peer.now = peer.now.max(at);
        peer.connection.on_timeout(peer.now);
        peer.pump();
        calls += 1;
    }
    calls
}

/// The one call of on_timeout ends, and the layer is called again only after a while.
#[test]
fn a_wake_up_in_the_past_is_postponed() {
    let mut peer = Setup::newreno().active();
    let seen = Arc::default();
    peer.attach(Box::new(Puppet {
        first: Some(Box::new(|_, limits| limits.wake_at(Instant::ZERO))),
        then: Box::new(|_, _, limits| limits.wake_at(Instant::ZERO)),
        seen: Arc::clone(&seen),
        ..puppet()
    }));
    peer.connection.on_timeout(peer.now);
    assert_eq!(seen.lock().unwrap().len(), 1);
    assert_eq!(peer.connection.next_timeout(), Some(peer.now + Duration::from_micros(100)));
}

/// A layer that always asks for the present, or for the past, is detached.
#[test]
fn a_layer_that_never_catches_up_is_at_fault() {
    for ask in [|_: Instant| Instant::ZERO, |now| now] {
        let mut peer = Setup::newreno().active();
        let seen = Arc::default();
        peer.attach(Box::new(Puppet {
            first: Some(Box::new(move |view, limits| limits.wake_at(ask(view.now())))),
            then: Box::new(move |_, view, limits| limits.wake_at(ask(view.now()))),
            seen: Arc::clone(&seen),
            ..puppet()
        }));
        let end = peer.now + secs(1);
        run(&mut peer, end);
        assert_eq!(seen.lock().unwrap().len(), 102);
        let departure = peer.connection.poll_departure().unwrap();
        assert_eq!(departure.reason, Fault::Restless.into());
    }
}

/// A layer that keeps a beat of 10 ms falls behind by a minute, because its host stood still. It is woken for every beat it missed, and stays.
#[test]
fn a_layer_that_fell_behind_catches_up() {
    let mut peer = Setup::newreno().active();
    let seen = Arc::default();
    let mut beat = peer.now + ms(10);
    peer.attach(Box::new(Puppet {
        first: Some(Box::new(move |_, limits| limits.wake_at(beat))),
        then: Box::new(move |_, _, limits| {
            beat += ms(10);
            limits.wake_at(beat);
        }),
        seen: Arc::clone(&seen),
        ..puppet()
    }));
    let start = peer.now;
    peer.now = start + secs(60);
    let end = start + secs(70);
    run(&mut peer, end);
    assert_eq!(seen.lock().unwrap().len(), 7000);
    assert_eq!(peer.connection.layers().count(), 1);
}

/// A short wait is kept to, though packets arrive in the meantime.
#[test]
fn an_honest_short_wait_is_not_postponed() {
    let mut peer = Setup::newreno().active();
    let seen = Arc::default();
    let at = peer.now + Duration::from_micros(30);
    peer.attach(Box::new(Puppet {
        wakes: Wake::ACK,
        first: Some(Box::new(move |_, limits| limits.wake_at(at))),
        seen: Arc::clone(&seen),
        ..puppet()
    }));
    peer.write(1000).drain();
    peer.now += Duration::from_micros(20);
    peer.recv(seg().ack(501));
    assert_eq!(peer.connection.next_timeout(), Some(at));
}

#[derive(Debug)]
struct PanicsWhenAsked;

impl Extension for PanicsWhenAsked {
    fn name(&self) -> &str {
        "panics when asked"
    }

    fn wake_on(&self) -> Wake {
        panic!("on purpose")
    }

    fn on_wake(&mut self, _occasion: &Occasion, _view: &View<'_>, _limits: &mut Limits) {}
}

#[test]
fn a_panic_in_wake_on_leaves_the_other_layers_where_they_are() {
    let mut peer = Setup::newreno().active();
    peer.attach(asking(|_, limits| limits.at_most(Value::Cwnd(2000))));
    let (connection, now) = (&mut peer.connection, peer.now);
    let attach = AssertUnwindSafe(|| connection.attach(now, Box::new(PanicsWhenAsked)));
    assert!(catch_unwind(attach).is_err());
    assert_eq!(peer.connection.layers().count(), 1);
    assert_eq!(peer.write(10_000).ranges().len(), 2);
}

type Holds = (&'static str, fn(&View<'_>, &mut Limits));

/// Each of these keeps a connection from doing anything any more.
const HOLDS: [Holds; 4] = [
    ("cwnd = 0", |_, limits| limits.at_most(Value::Cwnd(0))),
    ("rto = max", |_, limits| limits.exactly(Value::Rto(Duration::MAX))),
    ("retransmits = 0", |_, limits| {
        limits.exactly(Value::Rto(Duration::MAX));
        limits.at_most(Value::Retransmits(0));
    }),
    ("snd_una = snd_nxt", |view, limits| {
        limits.at_least(Value::SndUna(view.snd_nxt()));
        limits.exactly(Value::Rto(Duration::MAX));
    }),
];

/// After close() an extension has two minutes. Then the connection is plain TCP: it sends what is left, to a peer that does not answer any more, and
/// gives up after eight retransmissions: 0.3, 0.6, 1.2 seconds and so on.
#[test]
fn a_connection_that_is_closed_ends_whatever_an_extension_asks_for() {
    for (name, hold) in HOLDS {
        let mut peer = Setup::newreno().active();
        peer.write(20_000).drain();
        peer.attach(acting(Wake::all(), move |_, view, limits| hold(view, limits)));
        peer.recv(seg().ack(1001)).close();
        let closed = peer.now;
        run(&mut peer, closed + secs(119));
        assert_eq!(peer.state(), State::FinWait1, "{name}");
        run(&mut peer, closed + secs(120) + secs(200));
        assert_eq!(peer.state(), State::Closed, "{name}");
        assert_eq!(peer.connection.error(), Some(ConnectionError::TimedOut), "{name}");
        let reason = peer.connection.poll_departure().map(|departure| departure.reason);
        assert_eq!(reason, Some(DepartureReason::Orphaned), "{name}");
    }
}

/// A peer that is there gets every byte, after those two minutes.
#[test]
fn data_that_an_extension_held_back_arrives_after_close() {
    let mut peer = Setup::newreno().active();
    peer.attach(asking(|_, limits| limits.at_most(Value::Cwnd(0))));
    peer.write(5_000).close().silent();
    let closed = peer.now;
    run(&mut peer, closed + secs(120));
    assert_eq!(peer.ranges(), [(1, 1001), (1001, 2001), (2001, 3001), (3001, 4001), (4001, 5002)]);
    peer.recv(seg().ack(5002)).expect_state(State::FinWait2);
    peer.recv(seg().ack(5002).fin()).expect_state(State::TimeWait);
}

/// Data that never was sent counts for the user timeout too.
#[test]
fn the_user_timeout_ends_a_connection_whatever_an_extension_asks_for() {
    for (name, hold) in HOLDS {
        let mut peer = Setup::newreno().profile(|p| p.user_timeout = Some(secs(5))).active();
        peer.attach(acting(Wake::all(), move |_, view, limits| hold(view, limits)));
        peer.wait(60_000);
        // The extension hears of an acknowledgement first.
        peer.write(1000).recv(seg().ack(1001)).write(20_000).drain();
        peer.wait(4_999).expect_state(State::Established);
        peer.wait(1).expect_state(State::Closed);
        assert_eq!(peer.connection.error(), Some(ConnectionError::TimedOut), "{name}");
    }
}

/// Layers attached after close() have two minutes too. After these, nothing can be attached.
#[test]
fn a_closed_connection_takes_extensions_for_two_minutes() {
    let mut peer = Setup::newreno().active();
    peer.write(1000).close();
    let hold = || asking(|_, limits| limits.exactly(Value::Rto(Duration::MAX)));
    peer.attach(hold());
    let closed = peer.now;
    run(&mut peer, closed + secs(100));
    peer.attach(hold());
    run(&mut peer, closed + secs(120));
    assert_eq!(peer.connection.layers().count(), 0);
    let refused = peer.connection.attach(peer.now, hold());
    assert_eq!(refused, Err(AttachError::NotEstablished));
}
