//! Whether packets may be fragmented, and whom a connection believes about their size: `IP_MTU_DISCOVER`.

use crate::harness::*;
use std::sync::Arc;
use transom_stack::{ConnectionId, Offload, SocketOption, StackConfig};
use transom_tcp::{PathMtuDiscovery, Profile, Setting};
use transom_testkit::packets::icmp;
use transom_wire::{IcmpMessage, IpPacket};

const ALL: [PathMtuDiscovery; 6] = [
    PathMtuDiscovery::Dont,
    PathMtuDiscovery::Want,
    PathMtuDiscovery::Do,
    PathMtuDiscovery::Probe,
    PathMtuDiscovery::Interface,
    PathMtuDiscovery::Omit,
];

/// What Linux 6.18 does with an IPv4 connection: whether its packets have DF, and whether it believes routers.
fn linux(choice: PathMtuDiscovery) -> (bool, bool) {
    match choice {
        PathMtuDiscovery::Dont => (false, false),
        PathMtuDiscovery::Want | PathMtuDiscovery::Do => (true, true),
        PathMtuDiscovery::Probe => (false, true),
        PathMtuDiscovery::Interface | PathMtuDiscovery::Omit => (false, false),
    }
}

fn v4(sent: &Sent) -> (bool, u16) {
    let IpPacket::V4(v4) = sent.ip() else { panic!("not IPv4") };
    (v4.header().dont_fragment, v4.header().id)
}

fn host(choice: PathMtuDiscovery) -> Host {
    Host::with(|_, profile| profile.path_mtu_discovery = choice)
}

fn connected(host: &mut Host, v6: bool) -> (ConnectionId, Peer) {
    let id = host.connect(if v6 { at(PEER6, 80) } else { at(PEER, 80) });
    let syn = host.sent_one();
    (id, Peer::welcome(host, &syn))
}

/// Whether a router's report of `mtu` makes the connection's packets smaller.
fn believes(host: &mut Host, id: ConnectionId, v6: bool) -> bool {
    host.write_all(id, &stream(2_000));
    let quoted = &host.sent()[0].bytes;
    let message = IcmpMessage::PacketTooBig { mtu: 1_300, quoted };
    let report = if v6 { icmp(ROUTER6, HOST6, &message) } else { icmp(ROUTER, HOST, &message) };
    host.inject(&report);
    host.connection(id).path_state().mtu == 1_300
}

#[test]
fn df_and_reports_in_ipv4() {
    for choice in ALL {
        let mut host = host(choice);
        let (id, mut peer) = connected(&mut host, false);
        peer.send(&mut host, b"data");
        host.write_all(id, b"data");
        let sent = host.sent();
        assert!(!sent.is_empty());
        let (df, believed) = linux(choice);
        assert!(sent.iter().all(|sent| v4(sent).0 == df), "{choice:?}");
        peer.receive(&sent);
        host.inject(&peer.segment(transom_wire::Flags::ACK, &[]));
        host.sent();
        assert_eq!(believes(&mut host, id, false), believed, "{choice:?}");
    }
}

#[test]
fn reports_in_ipv6() {
    for choice in ALL {
        let mut host = host(choice);
        let (id, _) = connected(&mut host, true);
        let deaf = matches!(choice, PathMtuDiscovery::Interface | PathMtuDiscovery::Omit);
        assert_eq!(believes(&mut host, id, true), !deaf, "{choice:?}");
    }
}

/// RFC 6864 section 4.3: packets that may be fragmented are told apart, those of a super-segment too.
#[test]
fn identifications_count_up() {
    let change = |config: &mut StackConfig, profile: &mut Profile| {
        config.offload = Offload::default().with_tx_checksum(true).with_segmentation(Some(64_000));
        profile.path_mtu_discovery = PathMtuDiscovery::Dont;
    };
    let mut host = Host::with(change);
    let (id, _) = connected(&mut host, false);
    host.write_all(id, &stream(5_000));
    let data = host.sent_one();
    assert!(data.offload.segmentation.is_some(), "one super-segment");
    let packets = data.payload().len().div_ceil(1448);
    host.call(|stack, now| stack.abort(id, now));
    let reset = host.sent_one();
    assert_eq!(v4(&reset).1.wrapping_sub(v4(&data).1) as usize, packets);
}

/// Nobody who sees the packets of one connection knows the numbers of another.
#[test]
fn each_connection_counts_from_elsewhere() {
    let mut host = host(PathMtuDiscovery::Dont);
    host.connect(at(PEER, 80));
    host.connect(at(PEER, 81));
    let sent = host.sent();
    assert!(v4(&sent[0]).1.abs_diff(v4(&sent[1]).1) > 1);
}

#[test]
fn it_can_be_changed_on_a_live_connection() {
    let mut host = Host::new();
    let (id, _) = connected(&mut host, false);
    host.write_all(id, b"a");
    assert!(v4(&host.sent_one()).0);
    let choice = PathMtuDiscovery::Dont;
    let set = |host: &mut Host, option: SocketOption| {
        host.call(|stack, now| stack.set_option(id, now, &option)).unwrap();
    };
    set(&mut host, Setting::PathMtuDiscovery(choice).into());
    // The hop limit does not bring the flag back.
    set(&mut host, SocketOption::TimeToLive(9));
    host.call(|stack, now| stack.abort(id, now));
    assert!(!v4(&host.sent_one()).0);
}

/// A connection takes over the path MTU that others have learned, unless it asks for the interface's MTU.
#[test]
fn a_connection_may_begin_with_the_interfaces_mtu() {
    let mut host = Host::new();
    for _ in 0..2 {
        let (id, _) = connected(&mut host, false);
        assert!(believes(&mut host, id, false));
    }
    for (choice, expected) in
        [(PathMtuDiscovery::Want, 1_300), (PathMtuDiscovery::Interface, 1_500)]
    {
        let profile = Profile::classic().with_path_mtu_discovery(choice);
        let remote = at(PEER, 81);
        let id = host.call(|stack, now| stack.connect(now, None, remote, Some(Arc::new(profile))));
        assert_eq!(host.connection(id.unwrap()).path_state().mtu, expected, "{choice:?}");
    }
}
