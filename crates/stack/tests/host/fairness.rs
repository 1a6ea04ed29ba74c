//! Whose turn it is to send.

use crate::harness::*;
use std::collections::BTreeSet;
use transom_tcp::CongestionChoice;
use transom_testkit::packets::icmp;
use transom_wire::offload::RxOffload;
use transom_wire::{Flags, IcmpMessage, Protocol};

/// The most transmissions a connection has in a row while others wait.
const BURST: usize = 16;

/// The remote ports of what leaves, in order.
fn order(sent: &[Sent]) -> Vec<u16> {
    sent.iter().map(|sent| sent.ends().1.port()).collect()
}

#[test]
fn connections_with_much_to_send_take_turns() {
    let mut host = Host::with(|_, profile| profile.congestion = CongestionChoice::none());
    let listener = host.listen(service());
    let ids: Vec<_> = (4000..4003)
        .map(|port| {
            let (peer, id) = Peer::connect(&mut host, listener, at(PEER, port), service());
            host.inject(&peer.segment(Flags::ACK, &[]));
            id
        })
        .collect();
    let now = host.now;
    for &id in &ids {
        assert_eq!(host.stack.write(id, now, &stream(100 * 1448)), Ok(100 * 1448));
    }
    host.sent();
    host.call(|_, _| ());
    let sent = host.sent();
    assert_eq!(sent.len(), 300);
    let runs: Vec<(u16, usize)> =
        order(&sent).chunk_by(|a, b| a == b).map(|run| (run[0], run.len())).collect();
    // As long as all three have something to send, each has its burst in turn.
    for (n, &(port, len)) in runs.iter().take(18).enumerate() {
        assert_eq!((port, len), (4000 + n as u16 % 3, BURST));
    }
    assert!(runs.iter().all(|&(_, len)| len <= BURST));
}

#[test]
fn one_that_has_much_to_send_alone_is_not_interrupted() {
    let mut host = Host::with(|_, profile| profile.congestion = CongestionChoice::none());
    let listener = host.listen(service());
    let (peer, id) = Peer::connect(&mut host, listener, at(PEER, 4000), service());
    host.inject(&peer.segment(Flags::ACK, &[]));
    host.write_all(id, &stream(100 * 1448));
    assert_eq!(host.sent().len(), 100);
}

/// Answers that are no connection's go first: there are few, and they are bounded.
#[test]
fn an_answer_does_not_wait_for_bulk() {
    let mut host = Host::with(|_, profile| profile.congestion = CongestionChoice::none());
    let listener = host.listen(service());
    let (peer, id) = Peer::connect(&mut host, listener, at(PEER, 4000), service());
    host.inject(&peer.segment(Flags::ACK, &[]));
    let now = host.now;
    host.stack.write(id, now, &stream(100 * 1448)).unwrap();
    let echo = icmp(PEER, HOST, &IcmpMessage::EchoRequest { ident: 1, seq: 1, data: b"" });
    host.sent();
    host.stack.on_packet(now, &echo, RxOffload::default());
    host.call(|_, _| ());
    let sent = host.sent();
    assert_eq!((sent.len(), sent[0].ip().protocol()), (101, Protocol::ICMP));
}

/// Many with a little each: all of them are served in one go, once.
#[test]
fn nobody_is_forgotten() {
    let mut host = Host::new();
    let listener = host.listen(service());
    let ids: Vec<_> = (4000..4500)
        .map(|port| Peer::connect(&mut host, listener, at(PEER, port), service()).1)
        .collect();
    host.sent();
    let now = host.now;
    for &id in &ids {
        host.stack.write(id, now, b"hello").unwrap();
    }
    host.call(|_, _| ());
    let ports = order(&host.sent());
    assert_eq!(ports.len(), 500);
    assert_eq!(ports.into_iter().collect::<BTreeSet<_>>().len(), 500);
}
