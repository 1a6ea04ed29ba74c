//! Active opens: from which address and port, and to where not.

use crate::harness::*;
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use transom_stack::{ConnectError, StackConfig};
use transom_tcp::time::Duration;
use transom_wire::Flags;

fn refused(host: &mut Host, local: Option<SocketAddr>, remote: SocketAddr) -> ConnectError {
    let result = host.call(|stack, now| stack.connect(now, local, remote, None));
    assert!(host.sent().is_empty(), "something left");
    result.expect_err("connecting is refused")
}

fn host_with(addresses: &[(&str, u8)]) -> Host {
    Host::with(|config: &mut StackConfig, _| {
        config.addresses =
            addresses.iter().map(|&(ip, prefix)| (ip.parse().unwrap(), prefix)).collect();
    })
}

/// The address a connection to `remote` comes from.
fn source(host: &mut Host, remote: &str) -> String {
    host.connect(SocketAddr::new(remote.parse().unwrap(), 80));
    host.sent_one().ends().0.ip().to_string()
}

/// [MUST-44] Without an address of its own the connection gets one before the first SYN leaves, and [MUST-45] keeps it.
#[test]
fn the_local_address_is_chosen_by_the_longest_common_prefix_and_stays() {
    let mut host =
        host_with(&[("10.0.0.2", 24), ("192.168.1.2", 24), ("fd00::2", 64), ("2001:db8::2", 64)]);
    assert_eq!(source(&mut host, "10.0.0.9"), "10.0.0.2");
    assert_eq!(source(&mut host, "192.168.7.7"), "192.168.1.2");
    assert_eq!(source(&mut host, "2001:db8:1::1"), "2001:db8::2");
    assert_eq!(source(&mut host, "fd00::9"), "fd00::2");

    let id = host.connect(at([192, 168, 1, 1], 80));
    let syn = host.sent_one();
    let mut peer = Peer::welcome(&mut host, &syn);
    host.write_all(id, b"hello");
    let data = host.sent_one();
    assert_eq!(data.ends(), syn.ends());
    peer.receive(&[data]);
    peer.close_after(&mut host, id);
    assert_eq!(host.stack.time_wait_count(), 1);
}

/// RFC 1122 section 3.2.1.3 (g): a loopback address is never in a packet that leaves; RFC 6724 section 5, rule 2: nor is a
/// link-local one used towards a wider scope.
#[test]
fn an_address_of_too_small_a_scope_is_not_chosen() {
    let mut host =
        host_with(&[("127.0.0.1", 8), ("10.0.0.2", 24), ("fe80::2", 64), ("2001:db8::2", 64)]);
    // Both share a longer prefix with the smaller scope's address.
    assert_eq!(source(&mut host, "100.64.0.1"), "10.0.0.2");
    assert_eq!(source(&mut host, "fd00::1"), "2001:db8::2");
    assert_eq!(source(&mut host, "fe80::1"), "fe80::2");
    // A loopback address that is not ours is nowhere.
    let elsewhere = at([127, 0, 0, 9], 80);
    assert_eq!(refused(&mut host, None, elsewhere), ConnectError::BadRemote(elsewhere));
    let from = Some(at([127, 0, 0, 1], 0));
    let away = at([10, 0, 0, 1], 80);
    assert_eq!(refused(&mut host, from, away), ConnectError::NoRoute(away.ip()));
}

/// [MUST-43] The application may name the local address.
/// [RFC1122-3.1-3] [RFC1122-3.2.1.3-2] [RFC1122-3.3.4.2-2]
#[test]
fn the_local_address_can_be_named() {
    let mut host = host_with(&[("10.0.0.2", 24), ("10.0.0.3", 24), ("fd00::2", 64)]);
    for ours in [[10, 0, 0, 2], [10, 0, 0, 3]] {
        host.connect_from(at(ours, 0), at(PEER, 80));
        let syn = host.sent_one();
        assert_eq!(syn.ends().0.ip(), IpAddr::from(ours));
        assert!((32_768..).contains(&syn.ends().0.port()));
    }
    // Only the port: the address is chosen.
    host.connect_from(at([0, 0, 0, 0], 777), at([10, 0, 0, 3], 81));
    assert_eq!(host.stack.connection_count(), 3);

    let foreign = at([10, 0, 0, 4], 0);
    assert_eq!(
        refused(&mut host, Some(foreign), at(PEER, 80)),
        ConnectError::NotLocal(foreign.ip())
    );
    let v6 = Some(at(HOST6, 0));
    assert_eq!(refused(&mut host, v6, at(PEER, 80)), ConnectError::NoRoute(PEER.into()));
    let mut only_v4 = host_with(&[("10.0.0.2", 24)]);
    assert_eq!(refused(&mut only_v4, None, at(PEER6, 80)), ConnectError::NoRoute(PEER6.into()));
}

/// [MUST-46] What cannot be one host's address is refused with an error, and no SYN leaves.
/// [RFC1122-3.2.1.3-1]
#[test]
fn no_connection_to_what_is_no_host() {
    let mut host = Host::new();
    for impossible in [
        "255.255.255.255:80",
        "10.0.0.255:80", // the network's broadcast address
        "224.0.0.1:80",
        "239.255.255.255:80",
        "0.0.0.0:80",
        "0.1.2.3:80",
        "240.0.0.1:80",
        "[::]:80",
        "[ff02::1]:80",
        "10.0.0.1:0",
        "[fd00::1]:0",
    ] {
        let remote: SocketAddr = impossible.parse().unwrap();
        assert_eq!(refused(&mut host, None, remote), ConnectError::BadRemote(remote));
    }
    assert_eq!(host.stack.connection_count(), 0);
    // A network of two has no broadcast address (RFC 3021).
    let mut pair = host_with(&[("10.0.0.0", 31)]);
    assert_eq!(source(&mut pair, "10.0.0.1"), "10.0.0.0");
}

#[test]
fn a_connection_that_exists_is_not_opened_again() {
    let mut host = Host::new();
    host.connect_from(at(HOST, 5000), at(PEER, 80));
    host.sent();
    let local = Some(at(HOST, 5000));
    assert_eq!(refused(&mut host, local, at(PEER, 80)), ConnectError::InUse);
    // The same port towards somewhere else is another connection.
    host.connect_from(at(HOST, 5000), at(PEER, 81));
}

#[test]
fn there_is_a_bound_on_connections() {
    let mut host = Host::with(|config, _| config.max_connections = 2);
    let listener = host.listen(service());
    host.connect(at(PEER, 80));
    let (_, accepted) = Peer::connect(&mut host, listener, at(PEER, 4000), service());
    host.sent();
    assert_eq!(refused(&mut host, None, at(PEER, 81)), ConnectError::TooMany);
    assert!(host.inject(&Peer::new(at(PEER, 4001), service()).syn(usual_options())).is_empty());
    assert_eq!(host.counters().syns_dropped, 1);
    host.call(|stack, now| stack.abort(accepted, now));
    host.connect(at(PEER, 82));
}

/// The ports `count` connections to `remote` get.
fn ports(host: &mut Host, remote: SocketAddr, count: usize) -> Vec<u16> {
    (0..count)
        .map(|_| {
            host.connect(remote);
            host.sent_one().ends().0.port()
        })
        .collect()
}

#[test]
fn every_port_is_used_once_towards_a_destination_and_again_towards_another() {
    let range = 50_000..=50_063;
    let mut host = Host::with(|config, _| config.ephemeral_ports = range.clone());
    // One of them listens, and one is named by the application.
    host.listen(at(HOST, 50_007));
    host.connect_from(at(HOST, 50_011), at(PEER, 80));
    host.sent();
    let used: BTreeSet<u16> = ports(&mut host, at(PEER, 80), 62).into_iter().collect();
    let expected: BTreeSet<u16> = range.filter(|port| ![50_007, 50_011].contains(port)).collect();
    assert_eq!(used, expected);
    assert_eq!(refused(&mut host, None, at(PEER, 80)), ConnectError::NoPort);
    // Towards another port all of them are free again, but for the listener's.
    let again: BTreeSet<u16> = ports(&mut host, at(PEER, 81), 63).into_iter().collect();
    assert_eq!(again.len(), 63);
    // A connection that is gone gives its port back.
    let id = host.connect(at(PEER, 82));
    host.sent();
    host.call(|stack, now| stack.abort(id, now));
    assert_eq!(ports(&mut host, at(PEER, 82), 63).len(), 63);
}

/// RFC 6056 section 3.3.4: from the ports towards one destination an observer learns neither those towards another nor, without
/// the secret, where they begin.
#[test]
fn ports_cannot_be_guessed_from_other_ports() {
    let first = |secret: u8, remote: SocketAddr| {
        let mut host = Host::with(|config, _| config.secret = [secret; 16]);
        ports(&mut host, remote, 1)[0]
    };
    // The first port for each of many secrets, and for each of many destinations: no more equal than chance would have it.
    let by_secret: BTreeSet<u16> = (0..=255).map(|secret| first(secret, at(PEER, 80))).collect();
    let by_address: BTreeSet<u16> = (1..=250).map(|n| first(1, at([10, 0, 1, n], 80))).collect();
    let by_port: BTreeSet<u16> = (1..=256).map(|port| first(1, at(PEER, port))).collect();
    // 256 draws of 32,768: one pair in expectation.
    for ports in [&by_secret, &by_address, &by_port] {
        assert!(ports.len() >= 240, "only {} different ports", ports.len());
    }
    // And from one port to the next destination's there is no fixed step.
    let mut host = Host::new();
    let sequence: Vec<u16> = (1..=64).map(|port| ports(&mut host, at(PEER, port), 1)[0]).collect();
    let steps: BTreeSet<u16> = sequence.windows(2).map(|two| two[1].wrapping_sub(two[0])).collect();
    assert!(steps.len() >= 60, "{steps:?}");
}

/// [RFC8200-8.3-1] What one segment takes is counted with the header of its version.
#[test]
fn the_segment_size_is_what_the_version_leaves_of_the_mtu() {
    for (remote, expected) in [(at(PEER, 80), 1_460), (at(PEER6, 80), 1_440)] {
        let mut host = Host::new();
        host.connect(remote);
        assert_eq!(host.sent_one().tcp().options.mss, Some(expected));
    }
}

#[test]
fn a_refused_connection_says_so() {
    let mut host = Host::new();
    let id = host.connect(at(PEER, 80));
    let syn = host.sent_one();
    assert_eq!(syn.flags(), Flags::SYN);
    let peer = Peer { ack: syn.tcp().seq + 1, ..Peer::new(syn.ends().1, syn.ends().0) };
    assert!(host.inject(&peer.segment(Flags::RST | Flags::ACK, &[])).is_empty());
    let error = host.connection(id).error();
    assert_eq!(error, Some(transom_tcp::ConnectionError::Refused));
}

/// A port in TIME-WAIT is free towards the same destination only once timestamps tell the two connections apart (RFC 6191).
#[test]
fn a_port_in_time_wait_is_not_chosen_too_soon() {
    for timestamps in [true, false] {
        let mut host = Host::with(|config, profile| {
            config.ephemeral_ports = 50_000..=50_000;
            profile.options.timestamps = timestamps;
        });
        let id = host.connect(at(PEER, 80));
        let syn = host.sent_one();
        Peer::welcome(&mut host, &syn).close_after(&mut host, id);
        assert_eq!(host.stack.time_wait_count(), 1);
        assert_eq!(refused(&mut host, None, at(PEER, 80)), ConnectError::NoPort);
        host.advance(Duration::from_millis(if timestamps { 1_500 } else { 59_500 }));
        if !timestamps {
            assert_eq!(refused(&mut host, None, at(PEER, 80)), ConnectError::NoPort);
            host.advance(Duration::from_secs(1));
        }
        assert_eq!(ports(&mut host, at(PEER, 80), 1), [50_000]);
        assert_eq!(host.stack.time_wait_count(), 0);
    }
}

/// RFC 6056 section 3.3.4: a port that has just become free is not the next to be used.
#[test]
fn a_port_is_not_used_again_at_once() {
    let mut host = Host::new();
    let used: BTreeSet<u16> = (0..100)
        .map(|_| {
            let id = host.connect(at(PEER, 80));
            let port = host.sent_one().ends().0.port();
            host.call(|stack, now| stack.abort(id, now));
            host.sent();
            port
        })
        .collect();
    assert_eq!(used.len(), 100);
}

/// RFC 6056 section 3.3.4: from the ports that it sees, a destination does not learn how many connections there are to others, or how
/// many sockets listen.
#[test]
fn connections_elsewhere_do_not_move_the_ports_towards_a_destination() {
    for secret in 0..4 {
        let mut host = Host::with(|config, _| config.secret = [secret; 16]);
        let mut before = ports(&mut host, at(PEER, 80), 1)[0];
        let mut moved = 0;
        let mut elsewhere = 0;
        for round in 0..400_u16 {
            for n in 0..round % 7 {
                ports(&mut host, at([10, 0, 1, (round % 250) as u8 + 1], 1_000 + n), 1);
                elsewhere += 1;
            }
            if round % 11 == 0 {
                host.listen(at(HOST, 0));
            }
            let port = ports(&mut host, at(PEER, 80), 1)[0];
            // One further, and after the last the first.
            moved += usize::from(port != before.checked_add(1).unwrap_or(32_768));
            before = port;
        }
        // Among 4096 counters some destinations share this one's, and the ports at which somebody listens are left out.
        assert!(elsewhere > 1_000 && moved <= 5, "{moved} of 400 steps were not 1");
    }
}

/// Ports for sockets that listen or are bound come from the same source: they begin where nobody can know, and a destination sees nothing of them.
#[test]
fn port_0_of_a_listener_cannot_be_guessed() {
    let given = |secret: u8, reserve: bool| {
        let mut host = Host::with(|config, _| config.secret = [secret; 16]);
        if reserve {
            return host.stack.reserve(at(HOST, 0), false).unwrap().address.port();
        }
        let listener = host.listen(at(HOST, 0));
        host.stack.listener_address(listener).unwrap().port()
    };
    for reserve in [false, true] {
        let first: BTreeSet<u16> = (0..=255).map(|secret| given(secret, reserve)).collect();
        assert!(first.len() >= 240, "only {} different ports", first.len());
    }
    // The same secret gives the same ports, whatever they are for.
    assert_eq!(given(1, false), given(1, false));
    assert_eq!(given(1, false), given(1, true));
    // A port that was closed is not the next to be given.
    let mut host = Host::new();
    let used: BTreeSet<u16> = (0..100)
        .map(|_| {
            let listener = host.listen(at(HOST, 0));
            let port = host.stack.listener_address(listener).unwrap().port();
            host.call(|stack, now| stack.close_listener(listener, now));
            port
        })
        .collect();
    assert_eq!(used.len(), 100);
}

/// Every port is tried, wherever the first one lies in the range.
#[test]
fn the_whole_range_is_used_whatever_the_secret() {
    for (secret, range) in (0..8).zip([1_u16, 2, 3, 5, 64, 97, 1_000, 3]) {
        let mut host = Host::with(|config, _| {
            config.secret = [secret; 16];
            config.ephemeral_ports = 40_000..=40_000 + range - 1;
        });
        for destination in [80, 81] {
            let used: BTreeSet<u16> =
                ports(&mut host, at(PEER, destination), range.into()).into_iter().collect();
            assert_eq!(used, (40_000..40_000 + range).collect());
            let refused = refused(&mut host, None, at(PEER, destination));
            assert_eq!(refused, ConnectError::NoPort);
        }
    }
}
