//! Events: each once, to whom it belongs, and names that are never used twice.

use crate::harness::*;
use std::collections::BTreeSet;
use transom_stack::{SocketError, StackSignal};
use transom_tcp::time::Duration;
use transom_tcp::{Signal, State};
use transom_wire::Flags;

#[test]
fn each_signal_is_given_once_and_of_the_right_connection() {
    let mut host = Host::new();
    let first = host.connect(at(PEER, 80));
    let first_syn = host.sent_one();
    let second = host.connect(at(PEER, 81));
    let second_syn = host.sent_one();
    let mut second_peer = Peer::welcome(&mut host, &second_syn);
    assert_eq!(
        (host.count(first, Signal::Connected), host.count(second, Signal::Connected)),
        (0, 1)
    );
    let mut first_peer = Peer::welcome(&mut host, &first_syn);
    assert_eq!(
        (host.count(first, Signal::Connected), host.count(second, Signal::Connected)),
        (1, 1)
    );
    host.signals.clear();
    first_peer.send(&mut host, b"data");
    assert_eq!(host.signals, [StackSignal::Connection(first, Signal::Readable)]);
    // Nothing happens, nothing is told.
    host.signals.clear();
    host.read(first);
    host.advance(Duration::from_secs(100));
    assert_eq!(host.signals, []);
    second_peer.close_by_peer(&mut host);
    assert_eq!(host.signals, [StackSignal::Connection(second, Signal::Readable)]);
    host.signals.clear();
    host.inject(&first_peer.segment(Flags::RST, &[]));
    assert_eq!(host.count(first, Signal::Closed), 1);
    assert_eq!(
        host.signals
            .iter()
            .filter(|event| matches!(event, StackSignal::Connection(id, _) if *id == second))
            .count(),
        0
    );
}

/// While a connection waits to be accepted its events are nobody's; what holds then is told to who accepts it.
#[test]
fn events_before_accept_are_told_at_accept() {
    let mut host = Host::new();
    let listener = host.listen(service());
    let mut peer = Peer::new(at(PEER, 4000), service());
    peer.shake(&mut host, usual_options());
    peer.send(&mut host, b"early");
    assert_eq!(host.signals, [StackSignal::Acceptable(listener)]);
    host.signals.clear();
    let id = host.accept(listener);
    assert_eq!((host.count(id, Signal::Readable), host.count(id, Signal::Writable)), (1, 1));
    assert_eq!(host.signals.len(), 2);
    assert_eq!(host.read(id), b"early");
    host.signals.clear();
    // With nothing to read, only that it can be written to.
    let mut peer = Peer::new(at(PEER, 4001), service());
    peer.shake(&mut host, usual_options());
    host.signals.clear();
    let id = host.accept(listener);
    assert_eq!(host.signals, [StackSignal::Connection(id, Signal::Writable)]);
}

#[test]
fn room_to_write_is_told_to_who_was_cut_short() {
    let mut host = Host::new();
    let listener = host.listen(service());
    let (mut peer, id) = Peer::connect(&mut host, listener, at(PEER, 4000), service());
    let now = host.now;
    let mut written = 0;
    while let Ok(more) = host.stack.write(id, now, &stream(100_000)) {
        written += more;
    }
    assert!(written >= 100_000);
    host.call(|_, _| ());
    host.signals.clear();
    // Told once, when there is room worth a call; who is not cut short again hears no more of it.
    let mut sent = host.sent();
    while !sent.is_empty() {
        peer.receive(&sent);
        sent = host.inject(&peer.segment(Flags::ACK, &[]));
    }
    assert_eq!(host.count(id, Signal::Writable), 1);
}

/// After a connection is closed, its owner hears no more of it.
#[test]
fn nothing_is_told_of_a_connection_nobody_holds() {
    let mut host = Host::new();
    let listener = host.listen(service());
    let (mut peer, id) = Peer::connect(&mut host, listener, at(PEER, 4000), service());
    let (reset, other) = Peer::connect(&mut host, listener, at(PEER, 4001), service());
    host.signals.clear();
    peer.close_after(&mut host, id);
    assert!(host.stack.connection(id).is_none(), "what is over has no name");
    host.close(other);
    assert_eq!(host.state(other), State::FinWait1, "what is not can be looked at");
    host.inject(&reset.segment(Flags::RST, &[]));
    host.advance(Duration::from_secs(100));
    assert_eq!(host.signals, []);
    assert_eq!(host.stack.connection_count(), 0);
}

#[test]
fn a_name_is_never_used_twice() {
    let mut host = Host::new();
    let mut seen = BTreeSet::new();
    let mut last = None;
    for round in 0..100 {
        let id = host.connect_from(at(HOST, 5000), at(PEER, 80));
        assert!(seen.insert(id.as_u64()), "a name came again in round {round}");
        if let Some(old) = last {
            // The old name means nothing, although the new connection may be where the old one was.
            assert!(host.stack.connection(old).is_none());
            let now = host.now;
            assert_eq!(host.stack.write(old, now, b"x"), Err(SocketError::NotFound));
            assert_eq!(host.stack.read(old, now, &mut [0; 4]), Err(SocketError::NotFound));
            assert_eq!(host.stack.shutdown_write(old, now), Err(SocketError::NotFound));
            host.close(old);
            host.call(|stack, now| stack.abort(old, now));
            assert_eq!(
                (host.stack.local_address(old), host.stack.remote_address(old)),
                (None, None)
            );
            assert_eq!(host.state(id), State::SynSent);
        }
        host.call(|stack, now| stack.abort(id, now));
        last = Some(id);
    }
    assert_eq!(host.stack.connection_count(), 0);
}
