//! Path MTU discovery (RFC 1191, RFC 8201): what one connection learns serves the next.

use crate::harness::*;
use std::net::SocketAddr;
use std::sync::Arc;
use transom_stack::ConnectionId;
use transom_tcp::time::Duration;
use transom_tcp::{PathMtuChoice, PathMtuDiscovery, Profile};
use transom_testkit::packets::icmp;
use transom_wire::{Flags, IcmpMessage, IpPacket};

/// "Too big" from a router about `offending`.
fn too_big(offending: &Sent, mtu: u32) -> Vec<u8> {
    let message = IcmpMessage::PacketTooBig { mtu, quoted: &offending.bytes };
    match offending.ip() {
        IpPacket::V4(_) => icmp(ROUTER, HOST, &message),
        IpPacket::V6(_) => icmp(ROUTER6, HOST6, &message),
    }
}

fn connected(host: &mut Host, remote: SocketAddr) -> (ConnectionId, Peer) {
    let id = host.connect(remote);
    let syn = host.sent_one();
    (id, Peer::welcome(host, &syn))
}

/// The longest packet of what a connection sends when it has much to send.
fn longest(host: &mut Host, id: ConnectionId) -> usize {
    host.write_all(id, &stream(20_000));
    host.sent().iter().map(|sent| sent.bytes.len()).max().unwrap()
}

/// A connection finds out that the path carries no more than `mtu`.
fn learn(host: &mut Host, remote: SocketAddr, mtu: u32) -> ConnectionId {
    let (id, _) = connected(host, remote);
    host.write_all(id, &stream(2_000));
    let sent = host.sent();
    host.inject(&too_big(&sent[0], mtu));
    id
}

/// It takes two connections for others to believe it.
/// [RFC1122-3.3.3-1] [RFC4443-3.2-2] [RFC8200-5-3]
#[test]
fn packets_too_big_are_sent_again_smaller_and_later_connections_know() {
    for (remote, other, mtu) in [
        (at(PEER, 80), at([10, 0, 0, 9], 80), 1_006),
        (at(PEER6, 80), at("fd00::9".parse::<std::net::Ipv6Addr>().unwrap(), 80), 1_280),
    ] {
        let mut host = Host::new();
        let (id, _) = connected(&mut host, remote);
        host.write_all(id, &stream(2_000));
        let sent = host.sent();
        assert_eq!(sent[0].bytes.len(), 1500);
        let again = host.inject(&too_big(&sent[0], mtu));
        assert!(again.iter().any(|sent| sent.bytes.len() == mtu as usize), "nothing of that size");
        assert_eq!(again[0].tcp().seq, sent[0].tcp().seq);
        assert!(again.iter().all(|sent| sent.bytes.len() <= mtu as usize));
        // The report that one connection believes may be forged: the next starts with the whole MTU.
        learn(&mut host, SocketAddr::new(remote.ip(), 83), mtu);
        // Now another to the same place starts there; the MSS announced is still what can be received.
        let second = host.connect(SocketAddr::new(remote.ip(), 81));
        let syn = host.sent_one();
        let headers = if remote.is_ipv4() { 40 } else { 60 };
        assert_eq!(syn.tcp().options.mss, Some(1500 - headers));
        Peer::welcome(&mut host, &syn);
        assert_eq!(longest(&mut host, second), mtu as usize);
        // One to elsewhere does not.
        let (elsewhere, _) = connected(&mut host, other);
        assert_eq!(longest(&mut host, elsewhere), 1500);
        // A listener's connections learn of it too.
        let service = if remote.is_ipv4() { service() } else { at(HOST6, 80) };
        let listener = host.listen(service);
        let (_, accepted) =
            Peer::connect(&mut host, listener, SocketAddr::new(remote.ip(), 4000), service);
        host.sent();
        assert_eq!(longest(&mut host, accepted), mtu as usize);
    }
}

/// RFC 1191 section 6.3: after ten minutes it is forgotten, in case the path has changed.
#[test]
fn a_path_mtu_is_forgotten_after_ten_minutes() {
    let mut host = Host::new();
    for port in [70, 71] {
        let id = learn(&mut host, at(PEER, port), 1_006);
        host.call(|stack, now| stack.abort(id, now));
        host.sent();
    }
    host.now += Duration::from_secs(599);
    let (id, _) = connected(&mut host, at(PEER, 81));
    assert_eq!(host.connection(id).path_state().mtu, 1_006);
    host.now += Duration::from_secs(1);
    let (id, _) = connected(&mut host, at(PEER, 82));
    assert_eq!(host.connection(id).path_state().mtu, 1_500);
}

/// Nobody lowers it who does not see what is in flight, and nobody below what every path takes.
#[test]
fn impossible_path_mtus_are_not_learnt() {
    let mut host = Host::new();
    let (id, mut peer) = connected(&mut host, at(PEER, 80));
    host.write_all(id, &stream(2_000));
    let sent = host.sent();
    // More than it was.
    host.inject(&too_big(&sent[0], 9_000));
    host.inject(&too_big(&sent[0], 1_500));
    // A packet that was small enough (RFC 5927 section 7.2): the second has 1500 - 52 of the 2000 bytes less.
    host.inject(&too_big(&sent[1], 1_006));
    peer.receive(&sent);
    host.inject(&peer.segment(Flags::ACK, &[]));
    // Something that is not in flight any more.
    host.inject(&too_big(&sent[0], 1_006));
    assert_eq!(host.connection(id).path_state().mtu, 1_500);
    let (next, _) = connected(&mut host, at(PEER, 81));
    assert_eq!(host.connection(next).path_state().mtu, 1_500);

    let (id, _) = connected(&mut host, at(PEER6, 80));
    host.write_all(id, &stream(2_000));
    let sent = host.sent();
    host.inject(&too_big(&sent[0], 600));
    assert_eq!(host.connection(id).path_state().mtu, 1_280);
}

/// One forged report costs later connections nothing, however often it comes, and a connection that carried more proves the opposite of two.
#[test]
fn one_connections_path_mtu_is_not_taken_over() {
    let mut host = Host::new();
    for _ in 0..3 {
        let (id, _) = connected(&mut host, at(PEER, 80));
        assert_eq!(host.connection(id).path_state().mtu, 1_500);
        host.write_all(id, &stream(2_000));
        let sent = host.sent();
        // Three reports about one connection are one finding.
        let again = host.inject(&too_big(&sent[0], 600));
        host.inject(&too_big(&again[0], 560));
        host.inject(&too_big(&again[0], 68));
        assert_eq!(host.connection(id).path_state().mtu, 552);
        host.call(|stack, now| stack.abort(id, now));
        host.sent();
        // One with large segments all the way shows that it was false.
        let (id, mut peer) = connected(&mut host, at(PEER, 80));
        host.write_all(id, &stream(2_000));
        peer.receive(&host.sent());
        host.inject(&peer.segment(Flags::ACK, &[]));
        host.call(|stack, now| stack.abort(id, now));
        host.sent();
    }
}

/// The number of remembered paths is bounded, and remembered paths are still updated.
#[test]
fn a_full_memory_still_learns_of_the_paths_in_it() {
    let mut host = Host::new();
    let mut known_after = |n: u32, mtu: u32| {
        let id = learn(&mut host, at([10, 1, (n >> 8) as u8, n as u8], 80), mtu);
        host.call(|stack, now| stack.abort(id, now));
        host.sent();
        let (id, _) = connected(&mut host, at([10, 1, (n >> 8) as u8, n as u8], 81));
        let known = host.connection(id).path_state().mtu;
        host.call(|stack, now| stack.abort(id, now));
        host.sent();
        known
    };
    for n in 0..4_096 {
        assert_eq!(known_after(n, 1_000), 1_500);
    }
    assert_eq!(known_after(4_096, 1_000), 1_500);
    assert_eq!(known_after(4_096, 1_000), 1_500, "no room for it");
    assert_eq!(known_after(7, 1_000), 1_000);
    assert_eq!(known_after(7, 900), 1_000);
    assert_eq!(known_after(7, 900), 900);
}

/// Whether an IPv4 packet has DF, and its identification.
fn flag_and_ident(sent: &Sent) -> (bool, u16) {
    let IpPacket::V4(v4) = sent.ip() else { panic!("not IPv4") };
    (v4.header().dont_fragment, v4.header().id)
}

/// RFC 1191 section 3: where a path carries less than the floor, packets of the floor's size leave without DF, each with an identification of
/// its own (RFC 6864). Later connections know when two have found it, from the SYN on, for ten minutes.
#[test]
fn below_the_floor_packets_may_be_fragmented() {
    let mut host = Host::new();
    let mut ids = Vec::new();
    for port in [70, 71] {
        let (id, _) = connected(&mut host, at(PEER, port));
        host.write_all(id, &stream(2_000));
        let sent = host.sent();
        assert!(sent.iter().all(|sent| flag_and_ident(sent).0), "{port}");
        let again = host.inject(&too_big(&sent[0], 296));
        assert!(again.len() >= 4 && again.iter().all(|sent| sent.bytes.len() <= 552));
        let seen: Vec<_> = again.iter().map(flag_and_ident).collect();
        let next = |pair: &[(bool, u16)]| pair[1].1 == pair[0].1.wrapping_add(1);
        assert!(seen.iter().all(|&(whole, _)| !whole) && seen.windows(2).all(next), "{seen:?}");
        ids.push(id);
    }
    host.now += Duration::from_secs(599);
    let id = host.connect(at(PEER, 72));
    let syn = host.sent_one();
    assert!(!flag_and_ident(&syn).0);
    Peer::welcome(&mut host, &syn);
    assert_eq!(longest(&mut host, id), 552);
    host.now += Duration::from_secs(1);
    host.connect(at(PEER, 73));
    let sent = host.sent();
    assert!(sent.iter().any(|sent| sent.tcp().dst_port == 73 && flag_and_ident(sent).0));
}

/// A connection that insists on DF, and whose packets of the floor's size arrive, disproves that they do not pass whole.
#[test]
fn packets_that_pass_whole_disprove_a_report() {
    let mut host = Host::new();
    for port in [70, 71] {
        learn(&mut host, at(PEER, port), 296);
    }
    let profile = Profile::classic().with_path_mtu_discovery(PathMtuDiscovery::Do);
    let (remote, profile) = (at(PEER, 72), Some(Arc::new(profile)));
    let id = host.call(|stack, now| stack.connect(now, None, remote, profile)).unwrap();
    let syn = host.sent_one();
    assert!(flag_and_ident(&syn).0);
    let mut peer = Peer::welcome(&mut host, &syn);
    assert_eq!(host.connection(id).path_state().mtu, 552);
    host.write_all(id, &stream(2_000));
    peer.receive(&host.sent());
    host.inject(&peer.segment(Flags::ACK, &[]));
    host.call(|stack, now| stack.abort(id, now));
    host.sent();
    let (next, _) = connected(&mut host, at(PEER, 73));
    assert_eq!(host.connection(next).path_state().mtu, 1_500);
    assert!(host.connection(next).dont_fragment());
}

/// Probes of larger sizes (RFC 4821) have DF while other packets do without: one that arrives in fragments would prove nothing.
#[test]
fn a_probe_has_df_where_others_have_not() {
    let mut host = Host::with(|_, profile| profile.path_mtu = PathMtuChoice::Probing);
    let (id, mut peer) = connected(&mut host, at(PEER, 80));
    host.write_all(id, &stream(2_000));
    let sent = host.sent();
    peer.receive(&host.inject(&too_big(&sent[0], 296)));
    host.inject(&peer.segment(Flags::ACK, &[]));
    host.write_all(id, &stream(20_000));
    let sent = host.sent();
    let (small, large): (Vec<_>, Vec<_>) = sent.iter().partition(|sent| sent.bytes.len() <= 552);
    assert!(small.len() > 4 && small.iter().all(|sent| !flag_and_ident(sent).0));
    assert!(large.len() == 1 && flag_and_ident(large[0]).0);
    peer.receive(&sent);
    host.inject(&peer.segment(Flags::ACK, &[]));
    assert!(host.connection(id).dont_fragment(), "it has arrived");
}
