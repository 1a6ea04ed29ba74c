//! Which connection a segment is for: all four values decide, and nothing else.

use crate::harness::*;
use std::net::{IpAddr, SocketAddr};
use transom_stack::{ConnectionId, StackConfig};
use transom_wire::Flags;

/// Connections that differ from each other in one of the four values each, and in the version.
#[test]
fn all_four_values_name_a_connection() {
    let other_host = IpAddr::from([10, 0, 0, 3]);
    let mut host =
        Host::with(|config: &mut StackConfig, _| config.addresses.push((other_host, 24)));
    let listeners = [service(), at(HOST, 81), at(other_host, 80), at(HOST6, 80)]
        .map(|address| (address, host.listen(address)));
    let other_peer = IpAddr::from([10, 0, 0, 9]);
    let listener = |to: SocketAddr| listeners.iter().find(|(address, _)| *address == to).unwrap().1;
    let names = [
        (at(PEER, 4000), service()),
        (at(PEER, 4001), service()),
        (at(other_peer, 4000), service()),
        (at(PEER, 4000), at(HOST, 81)),
        (at(PEER, 4000), at(other_host, 80)),
        (at(PEER6, 4000), at(HOST6, 80)),
    ];
    let mut connections: Vec<(Peer, ConnectionId)> =
        names.map(|(from, to)| Peer::connect(&mut host, listener(to), from, to)).into();
    // In turns, so that the one before is never the right one.
    for round in 0..3 {
        for (n, (peer, _)) in connections.iter_mut().enumerate() {
            peer.send(&mut host, format!("{round} for {n};").as_bytes());
        }
    }
    for (n, &(peer, id)) in connections.iter().enumerate() {
        assert_eq!(host.read(id), format!("0 for {n};1 for {n};2 for {n};").as_bytes());
        assert_eq!(host.stack.remote_address(id), Some(peer.from));
        assert_eq!(host.stack.local_address(id), Some(peer.to));
    }
    // A seventh name is nobody's.
    let stray = Peer { from: at(other_peer, 4001), ..connections[0].0 };
    assert_eq!(one(host.inject(&stray.segment(Flags::ACK, b"x"))).flags(), Flags::RST);
}

/// A connection whose name was another's a moment ago gets its own segments.
#[test]
fn a_name_that_is_used_again_is_another_connection() {
    let mut host = Host::new();
    let listener = host.listen(service());
    let (_, old) = Peer::connect(&mut host, listener, at(PEER, 4000), service());
    host.call(|stack, now| stack.abort(old, now));
    let (mut peer, new) = Peer::connect(&mut host, listener, at(PEER, 4000), service());
    assert_ne!(old, new);
    peer.assert_alive(&mut host, new);
}

/// [RFC1122-3.2.1.1-1] There are two versions of IP.
#[test]
fn packets_of_other_versions_are_dropped_in_silence() {
    let mut host = Host::new();
    host.listen(service());
    for version in (0..16).filter(|version| ![4, 6].contains(version)) {
        let mut packet = Peer::new(at(PEER, 4000), service()).syn(usual_options());
        packet[0] = version << 4 | packet[0] & 15;
        assert!(host.inject(&packet).is_empty());
    }
    assert_eq!(host.counters().malformed, 14);
}

/// [RFC1122-3.2.1.7-2] [RFC8200-3-1] What has arrived has arrived, however few hops it could still have gone.
#[test]
fn a_packet_with_no_hops_left_is_for_its_destination() {
    for left in [0, 1] {
        let mut host = Host::new();
        for (from, to) in [(at(PEER, 4000), service()), (at(PEER6, 4000), at(HOST6, 80))] {
            host.listen(to);
            let mut packet = Peer::new(from, to).syn(usual_options());
            if from.is_ipv4() {
                packet[8] = left;
                packet[10..12].fill(0);
                let sum = transom_wire::checksum::Sum::of(&packet[..20]).checksum();
                packet[10..12].copy_from_slice(&sum.to_be_bytes());
            } else {
                packet[7] = left;
            }
            assert_eq!(one(host.inject(&packet)).flags(), Flags::SYN | Flags::ACK);
        }
    }
}

/// Packets for somebody else, and from those who cannot be, are counted and nothing more; see also [MUST-57] and [MUST-63].
/// [RFC1122-3.2.1.3-3] [RFC1122-3.2.1.3-4]
#[test]
fn packets_for_other_hosts_or_from_no_host_are_ignored() {
    let mut host = Host::new();
    host.listen(at([0; 4], 80));
    let cases: [(SocketAddr, SocketAddr); 9] = [
        (at(PEER, 4000), at([10, 0, 0, 77], 80)),
        // To broadcast and multicast addresses.
        (at(PEER, 4000), at([255; 4], 80)),
        (at(PEER, 4000), at([10, 0, 0, 255], 80)),
        (at(PEER, 4000), at([224, 0, 0, 1], 80)),
        // From them, from nowhere, and from the host itself.
        (at([255; 4], 4000), service()),
        (at([10, 0, 0, 255], 4000), service()),
        (at([224, 0, 0, 1], 4000), service()),
        (at([0; 4], 4000), service()),
        (at(HOST, 4000), service()),
    ];
    for (n, (from, to)) in cases.into_iter().enumerate() {
        for flags in [Flags::SYN, Flags::ACK, Flags::SYN | Flags::ACK] {
            let sent = host.inject(&Peer::new(from, to).segment(flags, &[]));
            assert!(sent.is_empty(), "{from} to {to}: {sent:?}");
        }
        assert_eq!(host.counters().misaddressed, 3 * (n as u64 + 1), "{from} to {to}");
    }
    for v6 in ["ff02::1", "::", "::ffff:10.0.0.1", "fd00::2"] {
        let from = at(v6.parse::<IpAddr>().unwrap(), 4000);
        assert!(host.inject(&Peer::new(from, at(HOST6, 80)).syn(usual_options())).is_empty());
    }
    assert_eq!((host.counters().misaddressed, host.stack.half_open_count()), (31, 0));
}
