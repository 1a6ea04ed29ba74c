//! What this host answers to packets of protocols that nobody here speaks.

use crate::harness::*;
use transom_tcp::time::Duration;
use transom_testkit::packets::{ip, udp};
use transom_wire::{IcmpMessage, Protocol, UnreachableCode};

const SCTP: Protocol = Protocol(132);

/// RFC 1122 sections 3.2.2.1 and 4.1.3.1: port unreachable for UDP, protocol unreachable for others. The quote is at least the
/// header and eight bytes, and the whole packet has at most 576 (RFC 1812 section 4.3.2.3).
/// [RFC1122-3.2.2-2] [RFC1122-3.2.2-3] [RFC1122-3.2.2-5] [RFC1122-3.2.2.1-1] [RFC1122-3.3.8-1] [RFC792-4-1]
#[test]
fn ipv4_packets_nobody_wants_are_answered() {
    let mut host = Host::new();
    let cases = [
        (udp(at(PEER, 5353), at(HOST, 53), b"question"), UnreachableCode::Port),
        (udp(at(PEER, 5353), at(HOST, 53), &stream(1_400)), UnreachableCode::Port),
        (ip(PEER.into(), HOST.into(), SCTP, &[0; 40]), UnreachableCode::Protocol),
    ];
    for (offending, expected) in cases {
        let error = one(host.inject(&offending));
        let ip = error.ip();
        assert_eq!((ip.src(), ip.dst(), ip.traffic_class()), (HOST.into(), PEER.into(), 0));
        let Ok(IcmpMessage::Unreachable { code, quoted }) =
            IcmpMessage::parse(ip.src(), ip.dst(), ip.payload())
        else {
            panic!("another message")
        };
        assert_eq!(code, expected);
        assert_eq!(quoted, &offending[..offending.len().min(576 - 28)]);
    }
    assert_eq!(host.counters().icmp_errors_sent, 3);
}

/// RFC 4443 sections 3.1 and 3.4: port unreachable, and "unrecognized next header" that points at the field; as much is quoted as
/// fits 1280 bytes.
/// [RFC4443-2.4-3] [RFC4443-3.1-3] [RFC4443-3.4-2]
#[test]
fn ipv6_packets_nobody_wants_are_answered() {
    let mut host = Host::new();
    let parse = |error: &Sent, offending: &[u8]| {
        let ip = error.ip();
        assert_eq!((ip.src(), ip.dst()), (HOST6.into(), PEER6.into()));
        let message = IcmpMessage::parse(ip.src(), ip.dst(), ip.payload()).unwrap();
        assert_eq!(message.quoted(), Some(&offending[..offending.len().min(1280 - 48)]));
        match message {
            IcmpMessage::Unreachable { code, .. } => {
                assert_eq!(code, UnreachableCode::Port);
                None
            }
            IcmpMessage::ParameterProblem { code, pointer, .. } => Some((code, pointer)),
            other => panic!("{other:?}"),
        }
    };
    for len in [8, 1_400] {
        let offending = udp(at(PEER6, 5353), at(HOST6, 53), &stream(len));
        let error = one(host.inject(&offending));
        assert_eq!(parse(&error, &offending), None);
    }
    let offending = ip(PEER6.into(), HOST6.into(), SCTP, &[0; 40]);
    let error = one(host.inject(&offending));
    assert_eq!(parse(&error, &offending), Some((1, 6)));
}

/// RFC 1122 section 4.1.3.4: a datagram with a wrong checksum is dropped in silence; so is one over IPv6 without any (RFC 8200 section
/// 8.1). Over IPv4 there need not be one.
/// [RFC8200-8.1-2]
#[test]
fn damaged_datagrams_are_not_answered() {
    let mut host = Host::new();
    for good in
        [udp(at(PEER, 5353), at(HOST, 53), b"data"), udp(at(PEER6, 5353), at(HOST6, 53), b"data")]
    {
        let mut damaged = good.clone();
        *damaged.last_mut().unwrap() ^= 1;
        assert!(host.inject(&damaged).is_empty());
        let v6 = good[0] >> 4 == 6;
        let field = if v6 { 46 } else { 26 };
        let mut without = good.clone();
        without[field..field + 2].fill(0);
        assert_eq!(host.inject(&without).len(), usize::from(!v6));
        assert_eq!(host.inject(&good).len(), 1);
    }
    assert_eq!(host.counters().bad_checksum, 3);
}

/// RFC 1122 section 3.2.2, RFC 4443 section 2.4 (e): nothing that was not for this host alone, or not from one host.
/// [RFC1122-3.2.2-7] [RFC1122-3.2.2-10]
#[test]
fn some_packets_are_never_answered() {
    let mut host = Host::new();
    for (from, to) in [
        (at(PEER, 9), at([255; 4], 9)),
        (at(PEER, 9), at([10, 0, 0, 255], 9)),
        (at(PEER, 9), at([224, 0, 0, 1], 9)),
        (at([0; 4], 9), at(HOST, 9)),
        (at([224, 0, 0, 1], 9), at(HOST, 9)),
        (at([127, 0, 0, 1], 9), at(HOST, 9)),
        (at(HOST, 9), at(HOST, 9)),
    ] {
        assert!(host.inject(&udp(from, to, b"data")).is_empty(), "{from} to {to}");
    }
    assert_eq!((host.counters().icmp_errors_sent, host.counters().misaddressed), (0, 7));
}

/// RFC 1812 section 4.3.2.8, RFC 4443 section 2.4 (f): their rate is bounded, all of them together.
/// [RFC4443-2.4-10]
#[test]
fn so_many_a_second_and_no_more() {
    let mut host = Host::with(|config, _| config.icmp_errors_per_second = 10);
    let question =
        |n: u16| udp(at([10, 0, 0, (n % 200) as u8 + 3], 5353), at(HOST, 53), b"question");
    let other = udp(at(PEER6, 5353), at(HOST6, 53), b"question");
    let storm = |host: &mut Host| -> usize {
        (0..100).map(|n| host.inject(&question(n)).len() + host.inject(&other).len()).sum()
    };
    assert_eq!(storm(&mut host), 10);
    assert_eq!(storm(&mut host), 0);
    host.now += Duration::from_millis(999);
    assert_eq!(storm(&mut host), 0);
    host.now += Duration::from_millis(1);
    assert_eq!(storm(&mut host), 10);
    assert_eq!(host.counters().icmp_errors_sent, 20);
    // Answers to connections are not held back by it.
    host.listen(service());
    assert_eq!(host.inject(&Peer::new(at(PEER, 4000), service()).syn(usual_options())).len(), 1);

    let mut never = Host::with(|config, _| config.icmp_errors_per_second = 0);
    assert!(never.inject(&other).is_empty());
}
