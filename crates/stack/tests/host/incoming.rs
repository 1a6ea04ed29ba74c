//! Held SYNs: nothing is answered until the owner has decided, and what nobody decides ends by itself.

use crate::bytes::Script;
use crate::harness::*;
use crate::seeds::play_all;
use std::net::SocketAddr;
use transom_stack::{
    AdmitError, IncomingId, ListenConfig, ListenerId, Refusal, StackSignal, Unreachable,
};
use transom_tcp::time::Duration;
use transom_wire::ip::QuotedPacket;
use transom_wire::offload::RxOffload;
use transom_wire::tcp::QuotedTcp;
use transom_wire::{Flags, IcmpMessage, Options, Timestamps, UnreachableCode};

const LIMIT: Duration = Duration::from_secs(30);

fn config() -> ListenConfig {
    ListenConfig::default().with_hold_syns(Some(LIMIT))
}

/// A host with every address, and its listener for everything, which holds SYNs.
fn proxy() -> (Host, ListenerId) {
    let mut host = Host::with(|config, _| config.every_address = true);
    let listener = host.call(|stack, _| stack.listen_to_everything(config())).unwrap();
    (host, listener)
}

/// A peer whose SYN is held.
fn arrive(
    host: &mut Host,
    listener: ListenerId,
    from: SocketAddr,
    to: SocketAddr,
) -> (Peer, IncomingId) {
    let peer = Peer::new(from, to);
    assert!(host.inject(&peer.syn(usual_options())).is_empty());
    let id = host.stack.next_incoming(listener).expect("a SYN is held");
    assert_eq!(host.signals.pop(), Some(StackSignal::Incoming(listener, id)));
    (peer, id)
}

fn usual(host: &mut Host, listener: ListenerId) -> (Peer, IncomingId) {
    arrive(host, listener, at(PEER, 4000), at([198, 51, 100, 7], 80))
}

/// The decision, and what leaves because of it.
fn admit(host: &mut Host, id: IncomingId) -> (Result<(), AdmitError>, Vec<Sent>) {
    host.sent();
    (host.call(|stack, now| stack.admit(now, id)), host.sent())
}

fn refuse(host: &mut Host, id: IncomingId, refusal: Refusal) -> Vec<Sent> {
    host.sent();
    assert!(host.call(|stack, now| stack.refuse(now, id, refusal)));
    assert_eq!(host.stack.incoming(id), None);
    host.sent()
}

#[test]
fn a_held_syn_shows_what_it_asks_for() {
    let (mut host, listener) = proxy();
    let mut peer = Peer::new(at(PEER, 4000), at([198, 51, 100, 7], 80));
    peer.window = 777;
    let mut syn = peer.syn(usual_options());
    // The packet's type of service and time to live.
    (syn[1], syn[8]) = (0x2e << 2, 33);
    syn[10..12].fill(0);
    let sum = transom_wire::checksum::Sum::of(&syn[..20]).checksum();
    syn[10..12].copy_from_slice(&sum.to_be_bytes());
    assert!(host.inject(&syn).is_empty());
    assert_eq!((host.stack.incoming_count(listener), host.stack.held_count()), (1, 1));
    let id = host.stack.next_incoming(listener).unwrap();
    let incoming = host.stack.incoming(id).unwrap();
    assert_eq!((incoming.local, incoming.remote), (peer.to, peer.from));
    assert_eq!((incoming.dscp, incoming.hop_limit, incoming.window), (0x2e, 33, 777));
    assert_eq!(incoming.options.mss, usual_options().mss);
    assert_eq!(incoming.listener, listener);
    assert_eq!(
        (host.stack.incoming_count(listener), host.stack.next_incoming(listener)),
        (0, None)
    );
}

#[test]
fn an_admitted_syn_becomes_a_connection_that_knows_where_it_came_from() {
    for (from, to) in [(at(PEER, 4000), at(HOST, 9)), (at(PEER6, 4000), at(HOST6, 9))] {
        let (mut host, listener) = proxy();
        let (mut peer, id) = arrive(&mut host, listener, from, to);
        assert!(host.advance(Duration::from_secs(10)).is_empty(), "nothing by itself");
        let (outcome, sent) = admit(&mut host, id);
        assert_eq!(outcome, Ok(()));
        let syn_ack = one(sent).tcp();
        assert_eq!(syn_ack.flags, Flags::SYN | Flags::ACK);
        assert_eq!((host.stack.held_count(), host.stack.half_open_count()), (0, 1));
        assert_eq!(host.stack.acceptable(listener), 0);
        let ack = peer.answer(&syn_ack, usual_options());
        assert!(host.inject(&ack).is_empty());
        let connection = host.accept(listener);
        assert_eq!(host.stack.incoming_of(connection), Some(id));
        peer.assert_alive(&mut host, connection);
        // The decision is taken once.
        assert_eq!(host.stack.admit(host.now, id), Err(AdmitError::Gone));
        assert!(!host.stack.refuse(host.now, id, Refusal::Reset));
    }
}

#[test]
fn a_refusal_is_what_the_peer_would_hear_from_the_destination() {
    let (mut host, listener) = proxy();
    let (peer, id) = usual(&mut host, listener);
    let reset = one(refuse(&mut host, id, Refusal::Reset));
    assert_eq!(reset.ends(), (peer.to, peer.from));
    let reset = reset.tcp();
    assert_eq!((reset.flags, reset.ack), (Flags::RST | Flags::ACK, peer.seq + 1));
    let (_, id) = usual(&mut host, listener);
    assert!(refuse(&mut host, id, Refusal::Silence).is_empty());
    // The peer asks again: that is a new one.
    usual(&mut host, listener);
}

#[test]
fn an_icmp_refusal_quotes_the_syn() {
    let kinds = [
        (Unreachable::Network, UnreachableCode::Net),
        (Unreachable::Host, UnreachableCode::Host),
        (Unreachable::Port, UnreachableCode::Port),
        (Unreachable::Prohibited, UnreachableCode::CommunicationProhibited),
    ];
    let (mut host, listener) = proxy();
    for (why, expected) in kinds {
        for (from, to) in [(at(PEER, 4000), at(HOST, 9)), (at(PEER6, 4000), at(HOST6, 9))] {
            let (peer, id) = arrive(&mut host, listener, from, to);
            let error = one(refuse(&mut host, id, Refusal::Unreachable(why)));
            let ip = error.ip();
            assert_eq!((ip.src(), ip.dst()), (to.ip(), from.ip()));
            let message = IcmpMessage::parse(ip.src(), ip.dst(), ip.payload());
            let Ok(IcmpMessage::Unreachable { code, quoted }) = message else { panic!("{why:?}") };
            assert_eq!(code, expected);
            let quote = QuotedPacket::parse(quoted).unwrap();
            let tcp = QuotedTcp::parse(quote.transport).unwrap();
            assert_eq!((quote.src, quote.dst), (from.ip(), to.ip()));
            assert_eq!((tcp.src_port, tcp.dst_port, tcp.seq), (from.port(), to.port(), peer.seq));
        }
    }
}

#[test]
fn icmp_refusals_are_limited_and_the_rest_is_silence() {
    let mut host = Host::with(|config, _| {
        config.every_address = true;
        config.icmp_errors_per_second = 3;
    });
    let listener = host.call(|stack, _| stack.listen_to_everything(config())).unwrap();
    let mut sent = 0;
    for port in 0..10 {
        let (_, id) = arrive(&mut host, listener, at(PEER, 4000 + port), at(HOST, 9));
        sent += refuse(&mut host, id, Refusal::Unreachable(Unreachable::Host)).len();
    }
    assert_eq!((sent, host.stack.held_count()), (3, 0));
}

#[test]
fn a_repeated_syn_is_the_same_and_its_newest_timestamp_is_echoed() {
    let (mut host, listener) = proxy();
    let stamped =
        |value| Options { timestamps: Some(Timestamps { value, echo: 0 }), ..usual_options() };
    let peer = Peer::new(at(PEER, 4000), at(HOST, 9));
    for value in [100, 1100, 3100] {
        assert!(host.inject(&peer.syn(stamped(value))).is_empty());
    }
    assert_eq!(host.signals.len(), 1);
    let id = host.stack.next_incoming(listener).unwrap();
    let (_, sent) = admit(&mut host, id);
    assert_eq!(one(sent).tcp().options.timestamps.unwrap().echo, 3100);
}

#[test]
fn the_peer_can_take_its_syn_back_or_send_another() {
    let (mut host, listener) = proxy();
    let (peer, id) = usual(&mut host, listener);
    // Not by a reset of somewhere else, nor by a segment that is neither.
    for (flags, seq) in [(Flags::RST, 5), (Flags::RST, -1), (Flags::ACK, 1), (Flags::FIN, 1)] {
        assert!(host.inject(&peer.at(flags, seq, 0, &[])).is_empty());
    }
    assert!(host.inject(&peer.at(Flags::SYN | Flags::ACK, 0, 0, &[])).is_empty());
    assert!(host.signals.is_empty() && host.stack.incoming(id).is_some());
    host.inject(&peer.at(Flags::RST, 1, 0, &[]));
    assert_eq!(host.signals, [StackSignal::IncomingGone(listener, id)]);
    assert_eq!(host.stack.admit(host.now, id), Err(AdmitError::Gone));
    host.signals.clear();
    // Another initial sequence number is another connection.
    let (peer, first) = usual(&mut host, listener);
    let other = Peer { seq: peer.seq + 77, ..peer };
    assert!(host.inject(&other.syn(usual_options())).is_empty());
    let second = host.stack.next_incoming(listener).unwrap();
    let expected =
        [StackSignal::IncomingGone(listener, first), StackSignal::Incoming(listener, second)];
    assert_eq!(host.signals, expected);
    let (_, sent) = admit(&mut host, second);
    assert_eq!(one(sent).tcp().ack, other.seq + 1);
}

#[test]
fn a_syn_that_nobody_decides_on_is_forgotten() {
    let (mut host, listener) = proxy();
    let (_, id) = usual(&mut host, listener);
    assert!(host.advance(LIMIT - Duration::from_millis(1)).is_empty());
    assert!(host.stack.incoming(id).is_some());
    assert!(host.advance(Duration::from_millis(1)).is_empty());
    assert_eq!(host.signals, [StackSignal::IncomingGone(listener, id)]);
    assert_eq!((host.stack.held_count(), host.stack.next_timeout()), (0, None));
}

/// The owner has a connection of its own behind each, so it has to hear.
#[test]
fn a_handshake_that_is_not_completed_is_told() {
    for silent in [true, false] {
        let (mut host, listener) = proxy();
        let (peer, id) = usual(&mut host, listener);
        admit(&mut host, id).0.unwrap();
        if silent {
            host.advance(Duration::from_secs(600));
        } else {
            host.inject(&peer.at(Flags::RST, 1, 0, &[]));
        }
        assert_eq!(host.signals, [StackSignal::IncomingGone(listener, id)]);
        assert_eq!(host.stack.half_open_count(), 0);
    }
}

#[test]
fn a_closed_listener_refuses_what_it_holds() {
    let (mut host, listener) = proxy();
    let ports = 4000..4005;
    for port in ports.clone() {
        arrive(&mut host, listener, at(PEER, port), at(HOST, 9));
    }
    host.call(|stack, now| stack.close_listener(listener, now));
    let resets = host.sent();
    let refused: Vec<_> = resets.iter().map(|sent| (sent.flags(), sent.ends().1.port())).collect();
    assert_eq!(refused, ports.map(|port| (Flags::RST | Flags::ACK, port)).collect::<Vec<_>>());
    assert_eq!((host.stack.held_count(), host.stack.incoming_count(listener)), (0, 0));
    assert_eq!(host.stack.next_incoming(listener), None);
    assert_eq!(host.stack.next_timeout(), None);
}

#[test]
fn a_full_accept_queue_leaves_the_syn_held() {
    let mut host = Host::with(|config, _| config.every_address = true);
    let config = config().with_backlog(1);
    let listener = host.call(|stack, _| stack.listen_to_everything(config)).unwrap();
    let (mut first, one_id) = arrive(&mut host, listener, at(PEER, 4000), at(HOST, 9));
    let (_, two) = arrive(&mut host, listener, at(PEER, 4001), at(HOST, 9));
    let (_, sent) = admit(&mut host, one_id);
    let ack = first.answer(&one(sent).tcp(), usual_options());
    host.inject(&ack);
    let (outcome, sent) = admit(&mut host, two);
    assert_eq!((outcome, sent.len()), (Err(AdmitError::Full), 0));
    host.accept(listener);
    assert_eq!(admit(&mut host, two).0, Ok(()));
}

/// TIME-WAIT is left for a newer SYN as ever; our numbers lie beyond the old ones.
#[test]
fn a_held_syn_may_follow_time_wait() {
    let (mut host, listener) = proxy();
    let (mut peer, id) = usual(&mut host, listener);
    let (_, sent) = admit(&mut host, id);
    let first = one(sent).tcp();
    let ack = peer.answer(&first, usual_options());
    host.inject(&ack);
    let connection = host.accept(listener);
    peer.close_after(&mut host, connection);
    assert_eq!(host.stack.time_wait_count(), 1);
    host.signals.clear();
    let again = Peer { seq: peer.seq + 1_000, ..Peer::new(peer.from, peer.to) };
    let options =
        Options { timestamps: Some(Timestamps { value: 4_000_000, echo: 0 }), ..usual_options() };
    assert!(host.inject(&again.syn(options)).is_empty());
    let id = host.stack.next_incoming(listener).expect("it is held");
    let (_, sent) = admit(&mut host, id);
    assert!(one(sent).tcp().seq.after(first.seq));
}

/// A flood of SYNs: the bound holds, nothing leaves, and those who were first are served.
#[test]
fn a_flood_is_dropped_beyond_the_bound() {
    let (mut host, listener) = proxy();
    let (mut early, id) = usual(&mut host, listener);
    let backlog = ListenConfig::default().syn_backlog;
    for n in 0..20_000_u32 {
        let from = at([10, 1, (n >> 8) as u8, n as u8], 1024 + (n >> 16) as u16);
        let flood = Peer::new(from, at(HOST, 9));
        assert!(host.inject(&flood.syn(usual_options())).is_empty());
        assert!(host.stack.held_count() <= backlog);
    }
    assert_eq!(host.counters().syns_dropped, 20_000 - (backlog as u64 - 1));
    assert_eq!(host.counters().cookies_sent, 0);
    let (outcome, sent) = admit(&mut host, id);
    assert_eq!(outcome, Ok(()));
    let ack = early.answer(&one(sent).tcp(), usual_options());
    host.inject(&ack);
    host.accept(listener);
    host.run_for(LIMIT);
    assert_eq!((host.stack.held_count(), host.stack.incoming_count(listener)), (0, 0));
}

/// SYNs that are taken back at once, or replaced, leave nothing behind in the queues, though nobody looks at these.
#[test]
fn a_flood_of_withdrawn_syns_leaves_nothing() {
    let (mut host, listener) = proxy();
    for n in 0..10_000_u32 {
        let peer = Peer::new(at(PEER, 4000 + (n % 7) as u16), at(HOST, 9));
        let peer = Peer { seq: peer.seq + n, ..peer };
        host.inject(&peer.syn(usual_options()));
        if n % 3 == 0 {
            host.inject(&peer.at(Flags::RST, 1, 0, &[]));
        }
        host.signals.clear();
        assert!(host.stack.held_count() <= 7);
        assert_eq!(host.stack.incoming_count(listener), host.stack.held_count());
    }
    let mut left = 0;
    while host.stack.next_incoming(listener).is_some() {
        left += 1;
    }
    assert_eq!(left, host.stack.held_count());
}

/// Held SYNs and half-open connections share the bounds, so that none of the first has to be admitted by a cookie.
#[test]
fn the_bound_of_the_host_is_shared_with_other_listeners() {
    let mut host = Host::with(|config, _| config.max_half_open = 4);
    let holding = host.listen_with(at(HOST, 80), config());
    host.listen(at(HOST, 81));
    let (_, id) = arrive(&mut host, holding, at(PEER, 4000), at(HOST, 80));
    for port in 4001..4010 {
        host.inject(&Peer::new(at(PEER, port), at(HOST, 81)).syn(usual_options()));
    }
    assert_eq!((host.stack.held_count(), host.stack.half_open_count()), (1, 3));
    assert_eq!(host.counters().cookies_sent, 6, "the ordinary listener has its cookies");
    assert_eq!(admit(&mut host, id).0, Ok(()));
    assert_eq!(host.counters().cookies_sent, 6);
}

/// Plays a script of what peers and the owner do, and checks that the names of which the owner has heard are exactly those that live. Returns how many
/// connections were accepted.
fn play(bytes: &[u8]) -> u64 {
    let mut script = Script::new(bytes);
    let mut host = Host::with(|config, _| {
        config.every_address = true;
        config.max_half_open = 6;
    });
    let config = config().with_syn_backlog(5).with_backlog(3);
    let listener = host.call(|stack, _| stack.listen_to_everything(config)).unwrap();
    // Each name, and whether it was admitted.
    let mut known: Vec<(IncomingId, bool)> = Vec::new();
    let mut accepted = 0;
    while !script.is_empty() {
        let peer = Peer::new(at(PEER, 4000 + script.below(6) as u16), at(HOST, 9));
        let peer = Peer { seq: peer.seq + 1000 * script.below(2) as u32, ..peer };
        let chosen = known.get(script.below(4)).map(|&(id, _)| id);
        match (script.below(6), chosen) {
            (0 | 1, _) => drop(host.inject(&peer.syn(usual_options()))),
            (2, _) => drop(host.inject(&peer.at(Flags::RST, 1, 0, &[]))),
            (3, _) => host.run_for(Duration::from_millis(u64::from(script.word()) / 8)),
            (4, Some(id)) => {
                let held = host.stack.incoming(id).is_some();
                let outcome = host.call(|stack, now| stack.admit(now, id));
                assert_eq!(outcome == Err(AdmitError::Gone), !held);
                for (_, admitted) in known.iter_mut().filter(|(known, _)| *known == id) {
                    *admitted |= outcome.is_ok();
                }
            }
            (5, Some(id)) => {
                let refusal = [Refusal::Reset, Refusal::Silence][script.below(2)];
                if host.call(|stack, now| stack.refuse(now, id, refusal)) {
                    known.retain(|(known, _)| *known != id);
                }
            }
            _ => {}
        }
        if script.flag() {
            accepted += complete(&mut host, listener, &mut known);
        }
        for event in std::mem::take(&mut host.signals) {
            match event {
                StackSignal::Incoming(_, id) => known.push((id, false)),
                StackSignal::IncomingGone(_, id) => {
                    let before = known.len();
                    known.retain(|(known, _)| *known != id);
                    assert_eq!(known.len() + 1, before, "a name that was known");
                }
                _ => {}
            }
        }
        let held = known.iter().filter(|(_, admitted)| !admitted);
        assert_eq!(held.clone().count(), host.stack.held_count());
        assert!(held.clone().all(|(id, _)| host.stack.incoming(*id).is_some()));
        assert!(host.stack.held_count() + host.stack.half_open_count() <= 5);
        assert_eq!(host.counters().cookies_sent, 0);
    }
    host.call(|stack, now| stack.close_listener(listener, now));
    host.run_for(Duration::from_secs(700));
    assert_eq!((host.stack.held_count(), host.stack.half_open_count()), (0, 0));
    assert_eq!(host.stack.connection_count(), 0);
    accepted
}

/// Peers complete the handshakes that were admitted; the owner accepts, and ends, what came of them.
fn complete(host: &mut Host, listener: ListenerId, known: &mut Vec<(IncomingId, bool)>) -> u64 {
    for sent in host.sent().into_iter().filter(Sent::is_tcp) {
        let ((from, to), syn_ack) = (sent.ends(), sent.tcp());
        if syn_ack.flags == Flags::SYN | Flags::ACK {
            let mut peer = Peer { seq: syn_ack.ack - 1, ..Peer::new(to, from) };
            let ack = peer.answer(&syn_ack, usual_options());
            host.call(|stack, now| stack.on_packet(now, &ack, RxOffload::default()));
        }
    }
    let mut accepted = 0;
    while let Some((id, _)) = host.call(|stack, _| stack.accept(listener)) {
        let incoming = host.stack.incoming_of(id).expect("it was held");
        let before = known.len();
        known.retain(|entry| *entry != (incoming, true));
        assert_eq!(known.len() + 1, before, "a name that was admitted");
        host.call(|stack, now| stack.abort(id, now));
        accepted += 1;
    }
    accepted
}

#[test]
fn any_sequence_leaves_the_owner_with_a_true_picture() {
    assert!(play_all(400, play) > 1_000);
}
