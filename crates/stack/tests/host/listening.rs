//! Listeners: which of them a SYN is for, how many connections may queue, and what ends with them.

use crate::harness::*;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use transom_stack::mapped::Bound;
use transom_stack::{ListenConfig, ListenError, StackConfig, StackSignal};
use transom_tcp::time::Duration;
use transom_tcp::{Profile, ProfileError, State};
use transom_wire::Flags;

const ANY: [u8; 4] = [0; 4];

fn another() -> IpAddr {
    IpAddr::from([10, 0, 0, 3])
}

/// A host with a second IPv4 address.
fn two_addresses() -> Host {
    Host::with(|config: &mut StackConfig, _| config.addresses.push((another(), 24)))
}

#[test]
fn an_exact_address_wins_over_the_unspecified_one() {
    let mut host = two_addresses();
    let everywhere = host.listen(at(ANY, 80));
    let exact = host.listen(at(HOST, 80));
    let mut to_exact = Peer::new(at(PEER, 4000), at(HOST, 80));
    to_exact.shake(&mut host, usual_options());
    let mut to_other = Peer::new(at(PEER, 4000), at(another(), 80));
    to_other.shake(&mut host, usual_options());
    assert_eq!((host.stack.acceptable(exact), host.stack.acceptable(everywhere)), (1, 1));
    let id = host.accept(everywhere);
    assert_eq!(host.stack.local_address(id), Some(at(another(), 80)));
    assert_eq!(host.stack.remote_address(id), Some(at(PEER, 4000)));
}

#[test]
fn the_unspecified_address_means_those_of_its_version() {
    let mut host = Host::new();
    host.listen(at(ANY, 80));
    let v6 = Peer::new(at(PEER6, 4000), at(HOST6, 80));
    assert_eq!(one(host.inject(&v6.syn(usual_options()))).flags(), Flags::RST | Flags::ACK);
    let config = ListenConfig::default().with_v6_only(true);
    let listener = host.listen_with(at(Ipv6Addr::UNSPECIFIED, 80), config);
    let (mut v6, id) = Peer::connect(&mut host, listener, v6.from, v6.to);
    v6.assert_alive(&mut host, id);
}

#[test]
fn an_address_can_be_listened_at_once() {
    let mut host = Host::new();
    let first = host.listen(service());
    let again = host.stack.listen(service(), ListenConfig::default());
    assert_eq!(again, Err(ListenError::InUse(service())));
    // Another port, another version and the unspecified address are other places.
    host.listen(at(HOST, 81));
    host.listen(at(HOST6, 80));
    host.listen(at(ANY, 80));
    let now = host.now;
    host.stack.close_listener(first, now);
    assert_eq!(host.stack.listener_address(first), None);
    let second = host.listen(service());
    assert_ne!(first, second);
    // The old name does nothing to the new listener.
    host.stack.close_listener(first, now);
    assert_eq!(host.stack.listener_address(second), Some(service()));
    let foreign = at([10, 0, 0, 77], 80);
    let refused = host.stack.listen(foreign, ListenConfig::default());
    assert_eq!(refused, Err(ListenError::NotLocal(foreign.ip())));
}

#[test]
fn port_0_is_any_free_port_until_there_is_none() {
    let mut host = Host::with(|config, _| config.ephemeral_ports = 40_000..=40_002);
    host.listen(at(HOST, 40_001));
    let mut given: Vec<u16> = (0..2)
        .map(|_| {
            let listener = host.listen(at(HOST, 0));
            host.stack.listener_address(listener).unwrap().port()
        })
        .collect();
    given.sort();
    assert_eq!(given, [40_000, 40_002]);
    let refused = host.stack.listen(at(HOST, 0), ListenConfig::default());
    assert_eq!(refused, Err(ListenError::NoPort));
}

#[test]
fn connections_are_accepted_in_the_order_in_which_they_were_complete() {
    let mut host = Host::new();
    let listener = host.listen(service());
    // The first to ask is the last to finish.
    let mut peers = [1, 2, 3].map(|n| Peer::new(at(PEER, 4000 + n), service()));
    let answers = peers.map(|peer| one(host.inject(&peer.syn(usual_options()))).tcp());
    for n in [2, 0, 1] {
        let ack = peers[n].answer(&answers[n], usual_options());
        host.inject(&ack);
    }
    let order: Vec<u16> = (0..3).map(|_| host.stack.accept(listener).unwrap().1.port()).collect();
    assert_eq!(order, [4003, 4001, 4002]);
    assert!(host.stack.accept(listener).is_none());
    let told = host.signals.iter().filter(|&&event| event == StackSignal::Acceptable(listener));
    assert_eq!(told.count(), 3);
}

#[test]
fn a_full_accept_queue_is_silent_and_lets_the_handshake_be_repeated() {
    let mut host = Host::new();
    let config = ListenConfig::default().with_backlog(1);
    let listener = host.listen_with(service(), config);
    // Both have their SYN answered while there is room.
    let mut early = Peer::new(at(PEER, 4001), service());
    let mut late = Peer::new(at(PEER, 4002), service());
    let answer = one(host.inject(&late.syn(usual_options()))).tcp();
    early.shake(&mut host, usual_options());
    // The queue is full: the acknowledgement is as good as lost, and a new SYN too.
    let ack = late.answer(&answer, usual_options());
    assert!(host.inject(&ack).is_empty());
    assert!(host.inject(&Peer::new(at(PEER, 4003), service()).syn(usual_options())).is_empty());
    assert_eq!(host.counters().syns_dropped, 1);
    assert_eq!((host.stack.acceptable(listener), host.stack.half_open_count()), (1, 1));
    host.accept(listener);
    // The SYN-ACK is repeated, the acknowledgement too, and now there is room.
    let repeated = host.advance(Duration::from_secs(2));
    assert!(repeated.iter().any(|(_, sent)| sent.tcp().seq == answer.seq));
    assert!(host.inject(&ack).is_empty());
    let id = host.accept(listener);
    late.assert_alive(&mut host, id);
}

#[test]
fn a_listener_that_closes_resets_what_was_not_accepted_and_forgets_what_was_not_complete() {
    let mut host = Host::new();
    let listener = host.listen(service());
    let (mut kept, id) = Peer::connect(&mut host, listener, at(PEER, 4000), service());
    let mut waiting = Peer::new(at(PEER, 4001), service());
    waiting.shake(&mut host, usual_options());
    let mut half = Peer::new(at(PEER, 4002), service());
    let answer = one(host.inject(&half.syn(usual_options()))).tcp();
    host.call(|stack, now| stack.close_listener(listener, now));
    let reset = host.sent_one();
    assert_eq!(reset.ends().1, waiting.from);
    assert!(reset.flags().contains(Flags::RST));
    assert_eq!(reset.tcp().seq, waiting.ack);
    assert_eq!((host.stack.half_open_count(), host.stack.connection_count()), (0, 1));
    // Late for the handshake: nobody is there any more.
    let ack = half.answer(&answer, usual_options());
    assert_eq!(one(host.inject(&ack)).flags(), Flags::RST);
    // An accepted connection does not belong to the listener any more.
    kept.assert_alive(&mut host, id);
}

/// [MUST-41] [MUST-42] Listening at a port that connections use already, in whatever state, changes nothing for them.
#[test]
fn listening_leaves_connections_from_that_port_alone() {
    let mut host = Host::new();
    let local = at(HOST, 5000);
    let asking = host.connect_from(local, at(PEER, 80));
    let syn = host.sent_one();
    let open = host.connect_from(local, at(PEER, 81));
    let syn_of_open = host.sent_one();
    let mut open_peer = Peer::welcome(&mut host, &syn_of_open);
    // Simultaneous open: a SYN has crossed ours.
    let crossing = host.connect_from(local, at(PEER, 82));
    host.sent();
    let mut crossed = Peer::new(at(PEER, 82), local);
    let syn_ack = one(host.inject(&crossed.syn(usual_options()))).tcp();
    assert_eq!(host.state(crossing), State::SynReceived);

    let listener = host.listen(local);
    assert_eq!(host.state(asking), State::SynSent);
    assert_eq!(host.state(crossing), State::SynReceived);
    open_peer.assert_alive(&mut host, open);
    let mut asked = Peer::welcome(&mut host, &syn);
    asked.assert_alive(&mut host, asking);
    let ack = crossed.answer(&syn_ack, usual_options());
    host.inject(&ack);
    assert_eq!(host.state(crossing), State::Established);
    assert_eq!(host.stack.acceptable(listener), 0);
    let (mut new, id) = Peer::connect(&mut host, listener, at(PEER, 83), local);
    new.assert_alive(&mut host, id);
}

#[test]
fn a_peer_that_resets_before_it_is_accepted_is_accepted_and_gone() {
    let mut host = Host::new();
    let listener = host.listen(service());
    let mut peer = Peer::new(at(PEER, 4000), service());
    peer.shake(&mut host, usual_options());
    host.inject(&packets::tcp(peer.from, peer.to, &peer.header(Flags::RST), &[]));
    let id = host.accept(listener);
    assert_eq!(host.state(id), State::Closed);
    let mut buffer = [0; 8];
    assert!(host.call(|stack, now| stack.read(id, now, &mut buffer)).is_err());
    host.close(id);
    assert_eq!(host.stack.connection_count(), 0);
}

/// For binding: whatever uses an address and a port, down to TIME-WAIT, and whichever of both names is the unspecified one.
#[test]
fn addresses_in_use_are_known() {
    let mut host = two_addresses();
    let used =
        |host: &Host, ip: IpAddr, port| host.stack.is_in_use(&Bound::new(at(ip, port), true));
    let any = IpAddr::from(ANY);
    assert!(!used(&host, any, 80));
    let listener = host.listen(service());
    assert!(used(&host, HOST.into(), 80) && used(&host, any, 80));
    assert!(!used(&host, another(), 80) && !used(&host, HOST.into(), 81));
    assert!(!used(&host, Ipv6Addr::UNSPECIFIED.into(), 80));
    let (mut peer, id) = Peer::connect(&mut host, listener, at(PEER, 4000), service());
    host.call(|stack, now| stack.close_listener(listener, now));
    assert!(used(&host, HOST.into(), 80) && used(&host, any, 80));
    peer.close_after(&mut host, id);
    assert_eq!(host.stack.time_wait_count(), 1);
    assert!(used(&host, HOST.into(), 80));
    host.advance(Duration::from_secs(60));
    assert!(!used(&host, HOST.into(), 80));
    host.listen(at(any, 90));
    assert!(used(&host, HOST.into(), 90) && used(&host, another(), 90));
    // A half-open connection too.
    let listener = host.listen(at(another(), 91));
    host.inject(&Peer::new(at(PEER, 4000), at(another(), 91)).syn(usual_options()));
    assert!(used(&host, another(), 91));
    host.call(|stack, now| stack.close_listener(listener, now));
    assert!(!used(&host, another(), 91));
}

#[test]
fn a_listeners_settings_can_change_for_later_connections() {
    let mut host = Host::new();
    let none = ListenConfig::default().with_backlog(0).with_syn_backlog(0);
    let least = host.listen_with(at(HOST, 81), none);
    Peer::new(at(PEER, 4000), at(HOST, 81)).shake(&mut host, usual_options());
    assert_eq!((host.stack.acceptable(least), host.counters().cookies_sent), (1, 0));
    let listener = host.listen(service());
    let profile = |max_segment| Profile::classic().with_max_segment(max_segment);
    let config = |backlog, max_segment| {
        ListenConfig::default()
            .with_backlog(backlog)
            .with_profile(Some(Arc::new(profile(max_segment))))
    };
    let mss = |host: &mut Host, port| {
        let answer = one(host.inject(&Peer::new(at(PEER, port), service()).syn(usual_options())));
        answer.tcp().options.mss
    };
    assert_eq!(mss(&mut host, 4000), Some(1460));
    // One that cannot work is refused, and nothing is changed.
    let refused = host.stack.reconfigure_listener(listener, config(0, Some(63)));
    assert_eq!(refused, Err(ListenError::Profile(ProfileError::MaxSegment(63))));
    assert_eq!(mss(&mut host, 4001), Some(1460));
    host.stack.reconfigure_listener(listener, config(1, Some(1_000))).unwrap();
    assert_eq!(mss(&mut host, 4002), Some(1_000));
    // The smaller backlog holds at once; a backlog of zero would let nobody in, and means one.
    Peer::new(at(PEER, 4003), service()).shake(&mut host, usual_options());
    assert!(host.inject(&Peer::new(at(PEER, 4004), service()).syn(usual_options())).is_empty());
    host.stack.reconfigure_listener(listener, config(0, None)).unwrap();
    host.accept(listener);
    Peer::new(at(PEER, 4005), service()).shake(&mut host, usual_options());
    assert_eq!(host.stack.acceptable(listener), 1);
}
