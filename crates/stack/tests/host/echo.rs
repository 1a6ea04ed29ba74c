//! Echo requests (RFC 792, RFC 1122 section 3.2.2.6; RFC 4443 section 4).

use crate::harness::*;
use std::net::{Ipv4Addr, Ipv6Addr};
use transom_testkit::packets::{icmp, ip};
use transom_wire::{IcmpMessage, IpPacket, Protocol};

fn request4(data: &[u8]) -> Vec<u8> {
    icmp(PEER, HOST, &IcmpMessage::EchoRequest { ident: 77, seq: 5, data })
}

fn request6(data: &[u8]) -> Vec<u8> {
    icmp(PEER6, HOST6, &IcmpMessage::EchoRequest { ident: 77, seq: 5, data })
}

/// The data of an echo reply to [`request4`] or [`request6`]; parsing it verifies its checksum.
fn replied(sent: &Sent) -> Vec<u8> {
    let ip = sent.ip();
    let ends = (ip.src(), ip.dst(), ip.protocol());
    match ip {
        IpPacket::V4(_) => assert_eq!(ends, (HOST.into(), PEER.into(), Protocol::ICMP)),
        IpPacket::V6(_) => assert_eq!(ends, (HOST6.into(), PEER6.into(), Protocol::ICMPV6)),
    }
    let reply = IcmpMessage::parse(ip.src(), ip.dst(), ip.payload()).unwrap();
    let IcmpMessage::EchoReply { ident: 77, seq: 5, data } = reply else { panic!("{reply:?}") };
    data.to_vec()
}

/// [RFC1122-3.1-1] [RFC1122-3.2.2.6-1] [RFC1122-3.2.2.6-5] [RFC1122-3.3.4.2-1] [RFC4443-4.2-1] [RFC4443-4.2-2] [RFC4443-2.2-1] [RFC792-1-1] [RFC792-14-1] [RFC792-15-1] [RFC792-15-2]
#[test]
fn a_request_is_answered_with_its_own_data() {
    let mut host = Host::new();
    for len in [0, 1, 56, 1_400] {
        let data = stream(len);
        assert_eq!(replied(&one(host.inject(&request4(&data)))), data);
        assert_eq!(replied(&one(host.inject(&request6(&data)))), data);
    }
}

/// What a reply in fragments is when it is put together, and how long its fragments are. They leave in their order.
fn together(sent: &[Sent]) -> (Sent, Vec<usize>) {
    let mut whole = Vec::new();
    for (number, piece) in sent.iter().enumerate() {
        let fragment = piece.ip().fragment().expect("a fragment");
        let name = |of: &Sent| {
            let ip = of.ip();
            (ip.src(), ip.dst(), ip.protocol(), ip.fragment().map(|fragment| fragment.id))
        };
        assert_eq!(name(piece), name(&sent[0]));
        assert_eq!(
            (usize::from(fragment.offset), fragment.more),
            (whole.len(), number + 1 < sent.len())
        );
        whole.extend(piece.ip().payload());
    }
    let first = sent[0].ip();
    let bytes = ip(first.src(), first.dst(), first.protocol(), &whole);
    (Sent { bytes, ..sent[0].clone() }, sent.iter().map(|sent| sent.bytes.len()).collect())
}

/// [RFC1122-3.2.2.6-6] [RFC4443-4.2-3] [RFC8200-4.5-1] [RFC8200-4.5-2] [RFC8200-5-2] [RFC8200-5-4] [RFC1122-3.3.3-2] [RFC1122-3.3.3-3] All of the data comes back, and what is too long for the interface leaves in fragments.
#[test]
fn a_long_reply_leaves_in_fragments() {
    let mut host = Host::with(|config, _| config.mtu = 1280);
    let mut idents = Vec::new();
    for len in [1_400, 8_000, 60_000] {
        let data = stream(len);
        for request in [request4(&data), request6(&data)] {
            let sent = host.inject(&request);
            let (whole, lengths) = together(&sent);
            assert!(lengths.len() > 1 && lengths.iter().all(|&len| len <= 1280), "{lengths:?}");
            assert_eq!(replied(&whole), data);
            idents.push(sent[0].ip().fragment().unwrap().id);
        }
    }
    // Six packets, six identifications.
    idents.sort();
    idents.dedup();
    assert_eq!(idents.len(), 6);
    // As long as may be, and whole.
    for (request, data) in [(request4(&stream(1252)), 1252), (request6(&stream(1232)), 1232)] {
        let reply = one(host.inject(&request));
        assert_eq!((reply.bytes.len(), replied(&reply).len()), (1280, data));
    }
}

/// The MTU of the address counts, where it is smaller than the interface's.
/// [RFC1122-3.3.3-3]
#[test]
fn a_reply_is_never_longer_than_its_address_allows() {
    let mut host = Host::with(|config, _| {
        config.address_mtus = vec![(HOST.into(), 600), (HOST6.into(), 1300)];
    });
    let data = stream(1_400);
    for (request, most) in [(request4(&data), 600), (request6(&data), 1300)] {
        let (whole, lengths) = together(&host.inject(&request));
        assert!(lengths.iter().all(|&len| len <= most), "{lengths:?}");
        assert_eq!(replied(&whole), data);
    }
    // So do errors, which quote up to 576 bytes.
    let mut narrow = Host::with(|config, _| config.address_mtus = vec![(HOST.into(), 296)]);
    let question = transom_testkit::packets::udp(at(PEER, 5353), at(HOST, 53), &stream(500));
    let (whole, lengths) = together(&narrow.inject(&question));
    assert!(lengths.iter().all(|&len| len <= 296), "{lengths:?}");
    let error = whole.ip();
    let message = IcmpMessage::parse(error.src(), error.dst(), error.payload()).unwrap();
    assert_eq!(message.quoted(), Some(&question[..528]));
}

/// A reply of more fragments than may wait is not sent at all, so memory stays bounded.
#[test]
fn a_reply_leaves_whole_or_not_at_all() {
    let mut host = Host::with(|config, _| {
        config.addresses = vec![(HOST.into(), 24)];
        config.mtu = 68;
    });
    let (whole, lengths) = together(&host.inject(&request4(&stream(40_000))));
    assert_eq!((replied(&whole).len(), lengths.len()), (40_000, 834));
    assert!(host.inject(&request4(&stream(60_000))).is_empty());
    assert_eq!(host.counters().replies_dropped, 1);
}

#[test]
fn damaged_requests_and_those_in_the_wrong_version_are_counted() {
    let mut host = Host::new();
    for (request, place) in [(request4(b"data"), 30), (request6(b"data"), 50)] {
        let mut damaged = request.clone();
        damaged[place] ^= 1;
        assert!(host.inject(&damaged).is_empty());
    }
    let v6_in_v4 = ip(PEER.into(), HOST.into(), Protocol::ICMPV6, &request6(b"data")[40..]);
    let v4_in_v6 = ip(PEER6.into(), HOST6.into(), Protocol::ICMP, &request4(b"data")[20..]);
    assert!(host.inject(&v6_in_v4).is_empty());
    assert!(host.inject(&v4_in_v6).is_empty());
    assert_eq!(host.counters().malformed, 4);
}

/// [RFC1122-3.2.2.6-3] [RFC1122-3.2.2.6-4]
#[test]
fn echo_requests_to_several_hosts_are_not_answered() {
    let mut host = Host::new();
    let to = |dst: [u8; 4]| {
        icmp(PEER, Ipv4Addr::from(dst), &IcmpMessage::EchoRequest { ident: 1, seq: 1, data: b"" })
    };
    for everybody in [[255; 4], [10, 0, 0, 255], [224, 0, 0, 1]] {
        assert!(host.inject(&to(everybody)).is_empty());
    }
    let all_nodes: Ipv6Addr = "ff02::1".parse().unwrap();
    let request = IcmpMessage::EchoRequest { ident: 1, seq: 1, data: b"" };
    assert!(host.inject(&icmp(PEER6, all_nodes, &request)).is_empty());
    // Nor is a reply, or a host that was told not to.
    assert!(
        host.inject(&icmp(PEER, HOST, &IcmpMessage::EchoReply { ident: 1, seq: 1, data: b"" }))
            .is_empty()
    );
    let mut quiet = Host::with(|config, _| config.echo = false);
    assert!(quiet.inject(&request4(b"data")).is_empty());
    assert!(quiet.inject(&request6(b"data")).is_empty());
}
