//! Echo requests (RFC 792, RFC 1122 section 3.2.2.6; RFC 4443 section 4).

use crate::harness::*;
use transom_testkit::packets::{icmp4, icmp6, ip};
use transom_wire::{IcmpMessage, Icmpv6Message, IpPacket, Protocol};

fn request4(data: &[u8]) -> Vec<u8> {
    icmp4(PEER, HOST, &IcmpMessage::EchoRequest { ident: 77, seq: 5, data })
}

fn request6(data: &[u8]) -> Vec<u8> {
    icmp6(PEER6, HOST6, &Icmpv6Message::EchoRequest { ident: 77, seq: 5, data })
}

/// The data of an echo reply to [`request4`] or [`request6`]; parsing it verifies its checksum.
fn replied(sent: &Sent) -> Vec<u8> {
    match sent.ip() {
        IpPacket::V4(v4) => {
            assert_eq!((v4.src(), v4.dst(), v4.protocol()), (HOST, PEER, Protocol::ICMP));
            let reply = IcmpMessage::parse(v4.payload()).unwrap();
            let IcmpMessage::EchoReply { ident: 77, seq: 5, data } = reply else {
                panic!("{reply:?}")
            };
            data.to_vec()
        }
        IpPacket::V6(v6) => {
            assert_eq!((v6.src(), v6.dst(), v6.protocol()), (HOST6, PEER6, Protocol::ICMPV6));
            let reply = Icmpv6Message::parse(v6.src(), v6.dst(), v6.payload()).unwrap();
            let Icmpv6Message::EchoReply { ident: 77, seq: 5, data } = reply else {
                panic!("{reply:?}")
            };
            data.to_vec()
        }
    }
}

#[test]
fn a_request_is_answered_with_its_own_data() {
    let mut host = Host::new();
    for len in [0, 1, 56, 1_400] {
        let data = stream(len);
        assert_eq!(replied(&one(host.inject(&request4(&data)))), data);
        assert_eq!(replied(&one(host.inject(&request6(&data)))), data);
    }
}

/// RFC 1122 section 3.2.2.6 cuts an IPv4 reply to what can be sent; RFC 4443 section 4.2 wants the data entire.
#[test]
fn a_reply_is_never_longer_than_what_can_be_sent() {
    let mut host = Host::with(|config, _| config.mtu = 1280);
    let data = stream(1_400);
    let reply = one(host.inject(&request4(&data)));
    assert_eq!(reply.bytes.len(), 1280);
    assert_eq!(replied(&reply), data[..1280 - 28]);
    assert!(host.inject(&request6(&data)).is_empty());
    assert_eq!(replied(&one(host.inject(&request6(&data[..1280 - 48])))).len(), 1280 - 48);
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

#[test]
fn what_is_not_asked_of_this_host_alone_is_not_answered() {
    let mut host = Host::new();
    let to = |dst: [u8; 4]| {
        icmp4(PEER, dst.into(), &IcmpMessage::EchoRequest { ident: 1, seq: 1, data: b"" })
    };
    for everybody in [[255; 4], [10, 0, 0, 255], [224, 0, 0, 1]] {
        assert!(host.inject(&to(everybody)).is_empty());
    }
    let all_nodes = "ff02::1".parse().unwrap();
    let request = Icmpv6Message::EchoRequest { ident: 1, seq: 1, data: b"" };
    assert!(host.inject(&icmp6(PEER6, all_nodes, &request)).is_empty());
    // Nor is a reply, or a host that was told not to.
    assert!(
        host.inject(&icmp4(PEER, HOST, &IcmpMessage::EchoReply { ident: 1, seq: 1, data: b"" }))
            .is_empty()
    );
    let mut quiet = Host::with(|config, _| config.echo = false);
    assert!(quiet.inject(&request4(b"data")).is_empty());
    assert!(quiet.inject(&request6(b"data")).is_empty());
}
