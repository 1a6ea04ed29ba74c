//! A host that has every address, and the listener for everything.

use crate::harness::*;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use transom_stack::{
    ConnectError, ListenConfig, ListenError, PortSource, Shard, Stack, StackConfigError,
};
use transom_tcp::State;
use transom_tcp::time::Instant;
use transom_testkit::packets::{icmp, udp};
use transom_wire::{Flags, IcmpMessage};

/// A host that has every address and none by name.
fn everybody() -> Host {
    Host::with(|config, _| {
        config.every_address = true;
        config.addresses.clear();
    })
}

fn text(address: &str) -> SocketAddr {
    address.parse().unwrap()
}

/// Peers and what they want to reach: from and to anywhere, loopback included.
const PAIRS: [(&str, &str); 6] = [
    ("192.0.2.1:4000", "198.51.100.7:80"),
    ("198.51.100.7:80", "192.0.2.1:4000"),
    ("127.0.0.1:4000", "127.0.0.9:443"),
    ("127.0.0.1:4001", "203.0.113.1:1"),
    ("[2001:db8::1]:4000", "[2001:db8:9::7]:65535"),
    ("[::1]:4000", "[::1]:22"),
];

#[test]
fn a_listener_for_everything_is_reached_at_any_address_and_port_from_anywhere() {
    let mut host = everybody();
    let listener =
        host.call(|stack, _| stack.listen_to_everything(ListenConfig::default())).unwrap();
    for (from, to) in PAIRS {
        let (mut peer, id) = Peer::connect(&mut host, listener, text(from), text(to));
        assert_eq!(host.stack.local_address(id), Some(text(to)));
        peer.assert_alive(&mut host, id);
    }
    assert_eq!(host.counters().misaddressed, 0);
}

#[test]
fn a_connection_is_opened_from_any_address_that_is_named() {
    let mut host = everybody();
    for (to, from) in PAIRS {
        let id = host.connect_from(text(from), text(to));
        let syn = host.sent_one();
        assert_eq!(syn.ends(), (text(from), text(to)));
        let mut peer = Peer::welcome(&mut host, &syn);
        peer.assert_alive(&mut host, id);
    }
    // A port may be left to the host, an address may not: it has none to prefer.
    let id = host.connect_from(text("192.0.2.5:0"), text("198.51.100.7:80"));
    assert!(host.stack.local_address(id).unwrap().port() >= 32_768);
    let now = host.now;
    let unnamed = host.stack.connect(now, None, text("198.51.100.7:80"), None);
    assert_eq!(unnamed, Err(ConnectError::NoRoute([198, 51, 100, 7].into())));
    // What cannot be one host's is nobody's.
    for impossible in ["0.0.0.0:80", "224.0.0.1:80", "255.255.255.255:80", "[ff02::1]:80"] {
        let local = if text(impossible).is_ipv4() { "192.0.2.5:1" } else { "[2001:db8::5]:1" };
        let refused = host.stack.connect(now, Some(text(local)), text(impossible), None);
        assert_eq!(refused, Err(ConnectError::BadRemote(text(impossible))));
    }
}

/// Both ends of a connection may be the host's own; its packets leave all the same.
#[test]
fn nothing_loops_inside() {
    let mut host = everybody();
    let listener =
        host.call(|stack, _| stack.listen_to_everything(ListenConfig::default())).unwrap();
    let (from, to) = (text("192.0.2.5:5000"), text("198.51.100.7:80"));
    let id = host.connect_from(from, to);
    // The network brings back what leaves.
    let syn = host.sent_one();
    let syn_ack = one(host.inject(&syn.bytes));
    assert_eq!(syn_ack.ends(), (to, from));
    let ack = one(host.inject(&syn_ack.bytes));
    assert!(host.inject(&ack.bytes).is_empty());
    let accepted = host.accept(listener);
    assert_eq!((host.state(id), host.state(accepted)), (State::Established, State::Established));
}

#[test]
fn it_speaks_for_others_in_tcp_alone() {
    let mut host = everybody();
    let to = Ipv4Addr::new(198, 51, 100, 7);
    let echo = IcmpMessage::EchoRequest { ident: 1, seq: 2, data: b"hello" };
    assert!(host.inject(&icmp(PEER, to, &echo)).is_empty());
    assert!(host.inject(&icmp(PEER6, HOST6, &echo)).is_empty());
    assert!(host.inject(&udp(at(PEER, 53), at(to, 53), b"hello")).is_empty());
    // A segment for nobody is reset from the address that it was for.
    let reset = one(host.inject(&Peer::new(at(PEER, 4000), at(to, 80)).syn(usual_options())));
    assert_eq!((reset.flags(), reset.ends().0), (Flags::RST | Flags::ACK, at(to, 80)));
}

#[test]
fn multicast_and_unspecified_addresses_stay_nobodys() {
    let mut host = everybody();
    host.call(|stack, _| stack.listen_to_everything(ListenConfig::default())).unwrap();
    for (from, to) in [
        ("192.0.2.1:4000", "224.0.0.1:80"),
        ("192.0.2.1:4000", "0.0.0.0:80"),
        ("192.0.2.1:4000", "255.255.255.255:80"),
        ("224.0.0.1:4000", "192.0.2.1:80"),
        ("0.0.0.0:4000", "192.0.2.1:80"),
        ("[2001:db8::1]:4000", "[ff02::1]:80"),
    ] {
        assert!(host.inject(&Peer::new(text(from), text(to)).syn(usual_options())).is_empty());
    }
    assert_eq!(host.counters().misaddressed, 6);
}

#[test]
fn a_named_listener_wins_over_the_one_for_everything() {
    let mut host = everybody();
    let rest = host.call(|stack, _| stack.listen_to_everything(ListenConfig::default())).unwrap();
    let exact = host.listen(text("198.51.100.7:80"));
    let at_port = host.listen(text("0.0.0.0:81"));
    for (to, expected) in
        [("198.51.100.7:80", exact), ("198.51.100.8:81", at_port), ("198.51.100.8:80", rest)]
    {
        let mut peer = Peer::new(at(PEER, 4000), text(to));
        peer.shake(&mut host, usual_options());
        assert_eq!(host.stack.acceptable(expected), 1, "{to}");
        host.accept(expected);
    }
    // Ports are free to connect from, and to listen at, all the same.
    host.connect_from(text("192.0.2.5:0"), text("198.51.100.7:9"));
    let now = host.now;
    host.stack.close_listener(exact, now);
    host.listen(text("198.51.100.7:80"));
    // When it is closed, everything is nobody's again.
    host.stack.close_listener(rest, now);
    let reset = one(host.inject(&Peer::new(at(PEER, 4001), at(HOST, 7)).syn(usual_options())));
    assert!(reset.flags().contains(Flags::RST));
    host.call(|stack, _| stack.listen_to_everything(ListenConfig::default())).unwrap();
}

#[test]
fn there_is_one_listener_for_everything_and_its_ports_are_the_hosts_own() {
    let mut host = Host::new();
    let config = || ListenConfig::default().with_v6_only(true);
    let listener = host.stack.listen_to_everything(config()).unwrap();
    assert_eq!(host.stack.listener_address(listener), Some(at(Ipv6Addr::UNSPECIFIED, 0)));
    let again = host.stack.listen_to_everything(config());
    assert_eq!(again, Err(ListenError::EverythingInUse));
    // Of a host with some addresses it has the ports of these; IPv6 alone, as it was asked.
    let v4 = one(host.inject(&Peer::new(at(PEER, 4000), at(HOST, 7)).syn(usual_options())));
    assert!(v4.flags().contains(Flags::RST));
    let (mut peer, id) = Peer::connect(&mut host, listener, at(PEER6, 4000), at(HOST6, 7));
    peer.assert_alive(&mut host, id);
    let mut shared = Host::with(|config, _| config.ports = PortSource::Caller);
    let refused = shared.stack.listen_to_everything(ListenConfig::default());
    assert_eq!(refused, Err(ListenError::NotOurPorts));
}

#[test]
fn settings_that_cannot_work_together_are_refused() {
    let with = |change: fn(&mut transom_stack::StackConfig)| {
        let mut config = transom_stack::StackConfig::new(Vec::new());
        config.every_address = true;
        change(&mut config);
        Stack::new(config, Instant::ZERO).map(drop)
    };
    assert_eq!(with(|_| ()), Ok(()));
    let shared = with(|config| {
        config.shared = true;
        config.ports = PortSource::Caller;
    });
    assert_eq!(shared, Err(StackConfigError::EveryAddressShared));
    // IPv6 is among the addresses (RFC 8200 section 5).
    assert_eq!(with(|config| config.mtu = 1279), Err(StackConfigError::Mtu(1279, 1280)));
}

/// Several stacks of one host: a stray packet goes to the one that has its connection, whatever its addresses are.
#[test]
fn every_shard_has_every_address() {
    let mut hosts: Vec<Host> = (0..2)
        .map(|index| {
            Host::with(|config, _| {
                config.every_address = true;
                config.addresses.clear();
                config.shard = Shard { index, count: 2 };
            })
        })
        .collect();
    let listeners: Vec<_> = hosts
        .iter_mut()
        .map(|host| host.stack.listen_to_everything(ListenConfig::default()).unwrap())
        .collect();
    let (mut peer, id) =
        Peer::connect(&mut hosts[0], listeners[0], text(PAIRS[0].0), text(PAIRS[0].1));
    assert!(hosts[1].inject(&peer.data(b"astray")).is_empty());
    let forwarded = hosts[1].stack.poll_forwarded().expect("it is passed on");
    assert_eq!(forwarded.to, 0);
    hosts[0].call(|stack, now| stack.on_forwarded(now, forwarded));
    assert_eq!(hosts[0].read(id), b"astray");
    let address: IpAddr = "198.51.100.7".parse().unwrap();
    assert_eq!(hosts[0].stack.local_address(id).unwrap().ip(), address);
}
