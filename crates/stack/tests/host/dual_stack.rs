//! IPv4 through IPv6 sockets: dual-stack listeners, IPv4-mapped addresses, and who gets a SYN.

use crate::harness::*;
use std::net::{Ipv6Addr, SocketAddr};
use transom_stack::mapped::{Bound, mapped};
use transom_stack::{ConnectError, ListenConfig, ListenError};
use transom_wire::Flags;

const ANY4: [u8; 4] = [0; 4];
const ANY6: Ipv6Addr = Ipv6Addr::UNSPECIFIED;

fn v6_only() -> ListenConfig {
    ListenConfig::default().with_v6_only(true)
}

fn in_use(address: SocketAddr) -> Result<(), ListenError> {
    Err(ListenError::InUse(address))
}

fn listens(host: &mut Host, address: SocketAddr, config: ListenConfig) -> Result<(), ListenError> {
    host.stack.listen(address, config).map(|_| ())
}

#[test]
fn the_unspecified_ipv6_address_takes_ipv4_connections() {
    let mut host = Host::new();
    let listener = host.listen(at(ANY6, 80));
    let (mut v4, id) = Peer::connect(&mut host, listener, at(PEER, 4000), at(HOST, 80));
    v4.assert_alive(&mut host, id);
    // The stack knows addresses as they are in packets; to show them otherwise is a socket's business.
    assert_eq!(host.stack.remote_address(id), Some(at(PEER, 4000)));
    let (mut v6, id) = Peer::connect(&mut host, listener, at(PEER6, 4000), at(HOST6, 80));
    v6.assert_alive(&mut host, id);
}

#[test]
fn a_listener_for_ipv6_alone_refuses_ipv4() {
    let mut host = Host::new();
    host.listen_with(at(ANY6, 80), v6_only());
    let v4 = Peer::new(at(PEER, 4000), at(HOST, 80));
    assert_eq!(one(host.inject(&v4.syn(usual_options()))).flags(), Flags::RST | Flags::ACK);
    let v6 = Peer::new(at(PEER6, 4000), at(HOST6, 80));
    assert_eq!(one(host.inject(&v6.syn(usual_options()))).flags(), Flags::SYN | Flags::ACK);
    // Nor does a listener at one IPv6 address take IPv4.
    host.listen(at(HOST6, 81));
    let v4 = Peer::new(at(PEER, 4000), at(HOST, 81));
    assert_eq!(one(host.inject(&v4.syn(usual_options()))).flags(), Flags::RST | Flags::ACK);
}

#[test]
fn an_exact_ipv4_address_wins_over_a_dual_stack_listener() {
    let mut host = Host::new();
    let dual = host.listen(at(ANY6, 80));
    let exact = host.listen(at(HOST, 80));
    Peer::new(at(PEER, 4000), at(HOST, 80)).shake(&mut host, usual_options());
    Peer::new(at(PEER6, 4000), at(HOST6, 80)).shake(&mut host, usual_options());
    assert_eq!((host.stack.acceptable(exact), host.stack.acceptable(dual)), (1, 1));
    // When it is gone, the other one has its packets.
    host.call(|stack, now| stack.close_listener(exact, now));
    host.sent();
    Peer::new(at(PEER, 4001), at(HOST, 80)).shake(&mut host, usual_options());
    assert_eq!(host.stack.acceptable(dual), 2);
}

#[test]
fn all_of_ipv4_is_listened_at_once() {
    let mut host = Host::new();
    let dual = host.listen(at(ANY6, 80));
    assert_eq!(listens(&mut host, at(ANY4, 80), ListenConfig::default()), in_use(at(ANY4, 80)));
    assert_eq!(listens(&mut host, at(ANY6, 80), v6_only()), in_use(at(ANY6, 80)));
    let now = host.now;
    host.stack.close_listener(dual, now);
    host.listen(at(ANY4, 80));
    assert_eq!(listens(&mut host, at(ANY6, 80), ListenConfig::default()), in_use(at(ANY6, 80)));
    host.listen_with(at(ANY6, 80), v6_only());
    // Another port is another place.
    host.listen(at(ANY6, 81));
}

#[test]
fn binding_is_told_what_is_in_use() {
    let mut host = Host::new();
    let used = |host: &Host, address, v6_only| host.stack.is_in_use(&Bound::new(address, v6_only));
    let dual = host.listen(at(ANY6, 80));
    assert!(used(&host, at(HOST, 80), false) && used(&host, at(ANY4, 80), false));
    assert!(used(&host, at(HOST6, 80), true));
    let (_peer, _id) = Peer::connect(&mut host, dual, at(PEER, 4000), at(HOST, 80));
    let now = host.now;
    host.stack.close_listener(dual, now);
    // The IPv4 connection stays.
    assert!(used(&host, at(ANY6, 80), false) && used(&host, mapped(at(HOST, 80)), false));
    assert!(!used(&host, at(ANY6, 80), true) && !used(&host, at(HOST6, 80), false));
}

#[test]
fn a_mapped_address_is_listened_at_and_connected_to_as_ipv4() {
    let mut host = Host::new();
    let listener = host.listen(mapped(at(HOST, 80)));
    assert_eq!(host.stack.listener_address(listener), Some(at(HOST, 80)));
    Peer::new(at(PEER, 4000), at(HOST, 80)).shake(&mut host, usual_options());
    assert_eq!(host.stack.acceptable(listener), 1);

    let id = host.connect(mapped(at(PEER, 90)));
    let syn = host.sent_one();
    assert_eq!(syn.ends().1, at(PEER, 90), "an IPv4 packet");
    Peer::welcome(&mut host, &syn).assert_alive(&mut host, id);
    assert_eq!(host.stack.remote_address(id), Some(at(PEER, 90)));
    // From a mapped address, and from the unspecified IPv6 address.
    for local in [mapped(at(HOST, 7000)), at(ANY6, 7001)] {
        host.connect_from(local, mapped(at(PEER, 90)));
        assert_eq!(host.sent_one().ends(), (at(HOST, local.port()), at(PEER, 90)));
    }
    // An IPv6 address has no way there.
    let now = host.now;
    let refused = host.stack.connect(now, Some(at(HOST6, 0)), mapped(at(PEER, 90)), None);
    assert_eq!(refused, Err(ConnectError::NoRoute(PEER.into())));
    // An IPv4 address that cannot be a host's cannot be one when it is mapped.
    for impossible in [at([224, 0, 0, 1], 80), at([255; 4], 80), at([10, 0, 0, 255], 80)] {
        let refused = host.stack.connect(now, None, mapped(impossible), None);
        assert_eq!(refused, Err(ConnectError::BadRemote(impossible)));
    }
}

/// A host without an IPv6 address may still be asked for the unspecified one.
#[test]
fn without_ipv6_a_dual_stack_listener_serves_ipv4() {
    let mut host = Host::with(|config, _| config.addresses.retain(|(ip, _)| ip.is_ipv4()));
    let listener = host.listen(at(ANY6, 80));
    let (mut peer, id) = Peer::connect(&mut host, listener, at(PEER, 4000), at(HOST, 80));
    peer.assert_alive(&mut host, id);
}

/// Port 0 gives a port where nobody else has some of the packets.
#[test]
fn a_free_port_is_free_for_both_versions() {
    let mut host = Host::with(|config, _| config.ephemeral_ports = 40_000..=40_003);
    host.listen(at(HOST, 40_000));
    host.listen(at(HOST6, 40_001));
    host.listen(at(ANY4, 40_002));
    let listener = host.listen(at(ANY6, 0));
    assert_eq!(host.stack.listener_address(listener), Some(at(ANY6, 40_003)));
    let refused = listens(&mut host, at(ANY6, 0), ListenConfig::default());
    assert_eq!(refused, Err(ListenError::NoPort));
}

/// A mapped address is never on the wire (RFC 4291 section 2.5.5.2): a packet that claims one is dropped.
#[test]
fn mapped_addresses_on_the_wire_reach_nobody() {
    let mut host = Host::new();
    host.listen(at(ANY6, 80));
    let forged = Peer::new(mapped(at(PEER, 4000)), at(HOST6, 80));
    assert!(host.inject(&forged.syn(usual_options())).is_empty());
    let forged = Peer::new(at(PEER6, 4000), mapped(at(HOST, 80)));
    assert!(host.inject(&forged.syn(usual_options())).is_empty());
    assert_eq!((host.counters().misaddressed, host.stack.half_open_count()), (2, 0));
}
