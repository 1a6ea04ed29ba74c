//! A host on addresses that the kernel and other processes have too.

use crate::harness::*;
use std::net::IpAddr;
use transom_stack::{
    BoundPortChange, ConnectError, Interface, ListenConfig, ListenError, PortSource, Stack,
    StackConfig, StackConfigError,
};
use transom_tcp::time::{Duration, Instant};
use transom_tcp::{ConnectionError, State};
use transom_testkit::packets::udp;
use transom_wire::{Flags, IcmpMessage};

/// The ports are the caller's business.
fn sharing() -> Host {
    Host::with(|config, _| {
        config.shared = true;
        config.ports = PortSource::Caller;
    })
}

fn interface(addresses: &[IpAddr], mtu: u32) -> Interface {
    let addresses = addresses.iter().map(|&address| (address, 24)).collect();
    Interface { mtu, addresses, address_mtus: Vec::new() }
}

fn set(host: &mut Host, interface: Interface) {
    host.call(|stack, now| stack.set_interface(now, interface)).unwrap();
}

#[test]
fn packets_for_nobody_here_are_left_to_others() {
    let mut host = sharing();
    let stranger = Peer::new(at(PEER, 4000), at(HOST, 22));
    for flags in [Flags::SYN, Flags::ACK, Flags::SYN | Flags::ACK, Flags::FIN | Flags::ACK] {
        assert!(host.inject(&stranger.segment(flags, &[])).is_empty(), "{flags:?}");
    }
    assert_eq!((host.counters().left_to_others, host.counters().resets_sent), (4, 0));
    // The kernel has the address for everything else.
    let ping = IcmpMessage::EchoRequest { ident: 1, seq: 1, data: b"" };
    assert!(host.inject(&packets::icmp(PEER, HOST, &ping)).is_empty());
    assert!(host.inject(&udp(at(PEER, 5353), at(HOST, 53), b"?")).is_empty());
    assert_eq!(host.counters().icmp_errors_sent, 0);
    // A port of ours is: with a listener, and with a connection.
    host.listen(service());
    let reset = one(host.inject(&Peer::new(at(PEER, 1), service()).segment(Flags::ACK, &[])));
    assert_eq!(reset.flags(), Flags::RST);
    let client = host.connect_from(at(HOST, 5000), at(PEER, 80));
    host.sent();
    let other = Peer::new(at(PEER, 81), at(HOST, 5000)).segment(Flags::ACK, &[]);
    assert_eq!(one(host.inject(&other)).flags(), Flags::RST);
    assert_eq!(host.state(client), State::SynSent);
}

/// Somebody else on the same machine: the kernel, or another process. Its packets come from our own address, and from outside.
#[test]
fn others_at_the_same_address_are_peers_like_any() {
    for (ours, theirs) in [(HOST.into(), HOST.into()), (IpAddr::from(HOST6), IpAddr::from(HOST6))] {
        let mut host = sharing();
        let listener = host.listen(at(ours, 80));
        let (mut peer, server) = Peer::connect(&mut host, listener, at(theirs, 4000), at(ours, 80));
        peer.assert_alive(&mut host, server);

        host.connect_from(at(ours, 5000), at(theirs, 22));
        let syn = host.sent_one();
        assert_eq!(syn.ends(), (at(ours, 5000), at(theirs, 22)));
        Peer::welcome(&mut host, &syn);
    }
}

#[test]
fn connections_to_a_port_of_ours_do_not_leave_and_are_not_heard_from_outside() {
    let mut host = sharing();
    let listener = host.listen(service());
    let client = host.connect_from(at(HOST, 5000), service());
    let server = host.accept(listener);
    assert!(host.sent().is_empty());
    host.write_all(client, b"hello");
    assert_eq!(host.read(server), b"hello");
    assert!(host.sent().is_empty());
    // The listener may go: the connection's ends are known by each other.
    host.call(|stack, now| stack.close_listener(listener, now));
    for (from, to) in [(at(HOST, 5000), service()), (service(), at(HOST, 5000))] {
        for flags in [Flags::RST, Flags::ACK, Flags::SYN] {
            assert!(host.inject(&Peer::new(from, to).segment(flags, &[])).is_empty());
        }
    }
    assert_eq!(host.counters().misaddressed, 6);
    host.write_all(server, b"still there");
    assert_eq!(host.read(client), b"still there");
    let nobody = host.connect_from(at(HOST, 5001), at(HOST, 5001));
    assert_eq!(host.state(nobody), State::Established, "a connection may be its own other end");
    assert!(host.sent().is_empty());
}

#[test]
fn ports_are_named_by_the_caller_and_told_of() {
    let mut host = sharing();
    let places = |host: &mut Host| -> Vec<_> {
        std::iter::from_fn(|| host.stack.poll_port_change()).collect()
    };
    let any = host.call(|stack, _| stack.listen(at(HOST, 0), ListenConfig::default()));
    assert_eq!(any, Err(ListenError::NoPort));
    let any = host.call(|stack, now| stack.connect(now, None, at(PEER, 80), None));
    assert_eq!(any, Err(ConnectError::NoPort));

    let listener = host.listen(service());
    assert!(places(&mut host).is_empty(), "a listener is the caller's own");
    let (mut peer, server) = Peer::connect(&mut host, listener, at(PEER, 4000), service());
    assert_eq!(places(&mut host), [BoundPortChange::Taken(service())]);
    let (_other, second) = Peer::connect(&mut host, listener, at(PEER, 4001), service());
    host.call(|stack, now| stack.abort(second, now));
    assert!(places(&mut host).is_empty(), "one is left");
    host.call(|stack, now| stack.close_listener(listener, now));
    peer.close_after(&mut host, server);
    assert!(places(&mut host).is_empty(), "TIME-WAIT");
    host.advance(Duration::from_secs(300));
    assert_eq!(places(&mut host), [BoundPortChange::Freed(service())]);

    let mut config = StackConfig::new(vec![(HOST.into(), 24)]);
    config.shared = true;
    let refused = Stack::new(config, Instant::ZERO).map(drop);
    assert_eq!(refused, Err(StackConfigError::SharedPorts));
}

/// As on Linux: nothing leaves from an address that is not there, and the connection waits for it until it times out.
#[test]
fn a_connection_outlives_its_address_for_a_while() {
    let mut host = sharing();
    let listener = host.listen(service());
    let (mut peer, id) = Peer::connect(&mut host, listener, at(PEER, 4000), service());
    let (_gone, lost) = Peer::connect(&mut host, listener, at(PEER, 4001), service());
    set(&mut host, interface(&[HOST6.into()], 1500));
    host.write_all(id, b"lost at first");
    host.write_all(lost, b"lost for good");
    assert!(host.advance(Duration::from_secs(10)).is_empty());
    // Nor is anything heard at it, and nobody connects from it.
    assert!(host.inject(&peer.segment(Flags::RST | Flags::ACK, &[])).is_empty());
    let from = Some(at(HOST, 5000));
    let refused = host.call(|stack, now| stack.connect(now, from, at(PEER, 80), None));
    assert_eq!(refused, Err(ConnectError::NotLocal(HOST.into())));
    assert!(host.counters().unsent_without_address > 2);
    // The address is renewed: what was lost is sent again.
    set(&mut host, interface(&[HOST.into()], 1500));
    let sent: Vec<_> = host.advance(Duration::from_secs(30)).into_iter().map(|(_, s)| s).collect();
    let ours: Vec<_> = sent.into_iter().filter(|s| s.ends().1 == at(PEER, 4000)).collect();
    assert!(ours.iter().any(|sent| sent.payload() == b"lost at first"), "{ours:?}");
    peer.receive(&ours);
    host.inject(&peer.segment(Flags::ACK, &[]));
    peer.assert_alive(&mut host, id);
    // It goes for good: the connections time out.
    set(&mut host, interface(&[], 1500));
    host.write_all(id, b"x");
    assert!(host.advance(Duration::from_secs(3600)).is_empty());
    for id in [id, lost] {
        assert_eq!(host.connection(id).error(), Some(ConnectionError::TimedOut));
    }
}

#[test]
fn connections_follow_the_mtu() {
    let mut host = sharing();
    let listener = host.listen(service());
    let (mut peer, id) = Peer::connect(&mut host, listener, at(PEER, 4000), service());
    let largest = |sent: &[Sent]| sent.iter().map(|sent| sent.bytes.len()).max().unwrap();
    host.write_all(id, &stream(3000));
    let sent = host.sent();
    assert_eq!(largest(&sent), 1500);
    // Segments on their way do not pass any more, and are cut anew at once.
    set(&mut host, interface(&[HOST.into()], 1300));
    let again = host.sent();
    assert!(largest(&again) <= 1300, "{again:?}");
    assert_eq!(again.first().map(|s| s.tcp().seq), sent.first().map(|s| s.tcp().seq));
    for _ in 0..20 {
        // The rest waits for the window.
        let more = host.advance(Duration::from_secs(1));
        let more: Vec<_> = again.iter().cloned().chain(more.into_iter().map(|(_, s)| s)).collect();
        assert!(largest(&more) <= 1300);
        peer.receive(&more);
        host.inject(&peer.segment(Flags::ACK, &[]));
        if host.connection(id).unacknowledged() == 0 {
            break;
        }
    }
    assert_eq!(host.connection(id).unacknowledged(), 0);
    set(&mut host, interface(&[HOST.into()], 1500));
    host.write_all(id, &stream(3000));
    let sent = host.sent();
    assert_eq!(largest(&sent), 1500, "and upwards again");

    // Each address has an interface, and that its own MTU.
    let mut narrow = interface(&[HOST.into()], 9000);
    narrow.address_mtus.push((HOST.into(), 1400));
    set(&mut host, narrow);
    let (_, second) = Peer::connect(&mut host, listener, at(PEER, 4002), service());
    assert_eq!(host.connection(second).path_state().mtu, 1400);
    // An impossible request changes nothing.
    let nonsense = host.call(|stack, now| stack.set_interface(now, interface(&[HOST.into()], 1)));
    assert_eq!(nonsense, Err(StackConfigError::Mtu(1, 68)));
    assert_eq!(host.stack.config().mtu, 9000);
}
