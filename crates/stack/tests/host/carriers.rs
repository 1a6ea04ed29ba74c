//! The IP header around a segment: hop limit, differentiated services code point, identification.

use crate::harness::*;
use std::sync::Arc;
use transom_stack::{ListenConfig, SocketError, SocketOption};
use transom_tcp::Profile;
use transom_tcp::time::Duration;
use transom_wire::{Flags, IpPacket};

/// The hop limit and the DSCP of a packet; the ECN bits are no part of it.
fn carrier(sent: &Sent) -> (u8, u8) {
    let ip = sent.ip();
    assert_eq!(ip.traffic_class() & 3, 0);
    (ip.hop_limit(), ip.traffic_class() >> 2)
}

fn profile(hop_limit: u8, dscp: u8) -> Option<Arc<Profile>> {
    Some(Arc::new(Profile::classic().with_hop_limit(hop_limit).with_dscp(dscp)))
}

/// [MUST-48] [MUST-49] [SHLD-22] [SHLD-23] Every segment of a connection carries what the application chose, the SYN included, unchanged
/// in the IP header of either version.
/// [RFC1122-3.2.1.6-1] [RFC1122-3.2.1.7-3] [RFC1122-3.2.1.7-4]
#[test]
fn a_connections_choice_is_in_all_its_segments() {
    for remote in [at(PEER, 80), at(PEER6, 80)] {
        let mut host = Host::new();
        let id = host.call(|stack, now| stack.connect(now, None, remote, profile(33, 46))).unwrap();
        let syn = host.sent_one();
        assert_eq!(carrier(&syn), (33, 46));
        let mut peer = Peer::welcome(&mut host, &syn);
        host.write_all(id, b"data");
        let data = host.sent_one();
        assert_eq!(carrier(&data), (33, 46));
        let (_, again) = host.advance(Duration::from_secs(2)).remove(0);
        assert_eq!(carrier(&again), (33, 46));
        peer.receive(&[data]);
        let answers = peer.send(&mut host, &stream(2_000));
        for ack in &answers {
            assert_eq!(carrier(ack), (33, 46));
        }
        host.call(|stack, now| stack.abort(id, now));
        assert_eq!(carrier(&host.sent_one()), (33, 46));
    }
}

/// [MUST-48] [MUST-49] The passive side: from the answer to the SYN to the last acknowledgement in TIME-WAIT. A peer that demands a time to live
/// of 255 (RFC 5082) would hear nothing else.
#[test]
fn a_listeners_choice_is_in_its_answers_too() {
    let mut host = Host::new();
    let config = |hop_limit, dscp| {
        ListenConfig::default().with_profile(profile(hop_limit, dscp)).with_syn_backlog(1)
    };
    let listener = host.listen_with(service(), config(255, 48));
    let mut peer = Peer::new(at(PEER, 4000), service());
    let answer = one(host.inject(&peer.syn(usual_options())));
    assert_eq!(carrier(&answer), (255, 48));
    // A cookie, a repeated answer, and a reset of a wrong acknowledgement.
    let cookie = one(host.inject(&Peer::new(at(PEER, 4001), service()).syn(usual_options())));
    assert_eq!((carrier(&cookie), host.counters().cookies_sent), ((255, 48), 1));
    let (_, again) = host.advance(Duration::from_millis(1_100)).remove(0);
    assert_eq!(carrier(&again), (255, 48));
    let ack = peer.answer(&answer.tcp(), usual_options());
    let wrong = Peer { ack: peer.ack + 9, ..peer };
    let reset = one(host.inject(&wrong.segment(Flags::ACK, &[])));
    assert_eq!((reset.flags(), carrier(&reset)), (Flags::RST, (255, 48)));
    host.inject(&ack);
    let id = host.accept(listener);
    host.write_all(id, b"data");
    let data = host.sent_one();
    assert_eq!(carrier(&data), (255, 48));
    peer.receive(&[data]);
    peer.close_after(&mut host, id);
    let fin = Peer { seq: peer.seq - 1, ..peer };
    let late = one(host.inject(&fin.segment(Flags::FIN | Flags::ACK, &[])));
    assert_eq!(carrier(&late), (255, 48));
    // Packets that belong to no connection carry the host's own.
    let stray = Peer::new(at(PEER, 4002), at(HOST, 99)).segment(Flags::ACK, &[]);
    assert_eq!(carrier(&one(host.inject(&stray))), (64, 0));
}

/// [SHLD-21] [MUST-49] Both can be changed while the connection lives.
/// [RFC1122-3.2.1.7-1]
#[test]
fn the_choice_can_be_changed_at_any_time() {
    let mut host = Host::new();
    let listener = host.listen(service());
    let (mut peer, id) = Peer::connect(&mut host, listener, at(PEER, 4000), service());
    let mut next = |host: &mut Host| {
        host.write_all(id, b"data");
        let sent = host.sent_one();
        peer.receive(std::slice::from_ref(&sent));
        host.inject(&peer.segment(Flags::ACK, &[]));
        carrier(&sent)
    };
    assert_eq!(next(&mut host), (64, 0));
    let set = |host: &mut Host, option| host.call(|stack, now| stack.set_option(id, now, &option));
    set(&mut host, SocketOption::TypeOfService(10 << 2)).unwrap();
    assert_eq!(next(&mut host), (64, 10));
    set(&mut host, SocketOption::TimeToLive(3)).unwrap();
    assert_eq!(next(&mut host), (3, 10));
    // The lower two bits are TCP's own.
    set(&mut host, SocketOption::TypeOfService(0xff)).unwrap();
    set(&mut host, SocketOption::TimeToLive(1)).unwrap();
    assert_eq!(next(&mut host), (1, 63));
    let impossible = [SocketOption::TimeToLive(0), SocketOption::TypeOfService(256)];
    for option in impossible {
        let result = set(&mut host, option);
        assert!(matches!(result, Err(SocketError::BadOption(_))), "{result:?}");
    }
    assert_eq!(next(&mut host), (1, 63));
    host.call(|stack, now| stack.abort(id, now));
    for option in [SocketOption::TypeOfService(4), SocketOption::TimeToLive(1)] {
        assert_eq!(set(&mut host, option), Err(SocketError::NotFound));
    }
}

/// [MAY-4] A packet that may not be fragmented needs no identification of its own (RFC 6864 section 4.1): all have the same, and
/// so has one that is sent again.
/// [RFC1122-3.2.1.5-1]
#[test]
fn retransmissions_have_the_same_identification() {
    let mut host = Host::new();
    let listener = host.listen(service());
    let (_, id) = Peer::connect(&mut host, listener, at(PEER, 4000), service());
    host.write_all(id, b"data");
    let first = host.sent_one();
    let (_, again) = host.advance(Duration::from_secs(2)).remove(0);
    let [first, again] = [&first, &again].map(|sent| match sent.ip() {
        IpPacket::V4(v4) => (v4.header().id, v4.header().dont_fragment, sent.payload()),
        IpPacket::V6(_) => panic!("an IPv4 packet was expected"),
    });
    assert_eq!(first, again);
    assert!(first.1 && first.2 == b"data");
}
