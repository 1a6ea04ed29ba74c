//! ICMP errors about this host's segments: which connection hears of them, and what it does (RFC 9293 section 3.9.2.2, RFC 5927).

use crate::harness::*;
use transom_stack::ConnectionId;
use transom_tcp::time::Duration;
use transom_tcp::{ConnectionError, IcmpError, Signal, State};
use transom_testkit::packets::icmp;
use transom_wire::{Flags, IcmpMessage, IpPacket, Protocol, UnreachableCode};

/// "Unreachable" from a router, about `offending`.
fn unreachable(offending: &[u8], code: UnreachableCode) -> Vec<u8> {
    icmp(ROUTER, HOST, &IcmpMessage::Unreachable { code, quoted: offending })
}

fn unreachable6(offending: &[u8], code: UnreachableCode) -> Vec<u8> {
    icmp(ROUTER6, HOST6, &IcmpMessage::Unreachable { code, quoted: offending })
}

/// A host whose SYN is out.
fn asking(v6: bool) -> (Host, ConnectionId, Sent) {
    let mut host = Host::new();
    let id = host.connect(if v6 { at(PEER6, 80) } else { at(PEER, 80) });
    let syn = host.sent_one();
    (host, id, syn)
}

/// A host that has sent data which is not acknowledged.
fn sending(v6: bool) -> (Host, ConnectionId, Peer, Sent) {
    let (mut host, id, syn) = asking(v6);
    let peer = Peer::welcome(&mut host, &syn);
    host.write_all(id, b"data");
    let data = host.sent_one();
    (host, id, peer, data)
}

/// [MUST-54] While the SYN is out: port and protocol unreachable end the attempt, everything else is remembered and the SYN
/// repeated [MUST-56] [SHLD-25].
/// [RFC1122-3.2.2-4] [RFC1122-3.2.2.1-2] [RFC1122-3.2.2.1-3] [RFC1122-3.2.2.1-4] [RFC1122-3.4-5] [RFC4443-2.4-4] [RFC792-5-1]
#[test]
fn errors_about_a_syn() {
    use UnreachableCode::*;
    for (code, ends) in
        [(Port, true), (Protocol, true), (Net, false), (Host, false), (HostProhibited, false)]
    {
        let (mut host, id, syn) = asking(false);
        assert!(host.inject(&unreachable(&syn.bytes, code)).is_empty());
        assert_eq!(host.counters().icmp_errors_received, 1);
        if ends {
            let error = match code {
                Port => ConnectionError::Refused,
                _ => ConnectionError::Unreachable(IcmpError::ProtocolUnreachable),
            };
            assert_eq!(host.connection(id).error(), Some(error), "{code:?}");
            assert_eq!(host.count(id, Signal::Closed), 1);
        } else {
            assert_eq!(
                (host.state(id), host.count(id, Signal::Trouble)),
                (State::SynSent, 1),
                "{code:?}"
            );
            let repeated = host.advance(Duration::from_secs(2));
            assert_eq!(repeated[0].1.flags(), Flags::SYN);
        }
    }
    let (mut host, id, syn) = asking(true);
    host.inject(&unreachable6(&syn.bytes, UnreachableCode::Net));
    assert_eq!(host.state(id), State::SynSent);
    host.inject(&unreachable6(&syn.bytes, UnreachableCode::Port));
    assert_eq!(host.connection(id).error(), Some(ConnectionError::Refused));
}

/// [MUST-54] [MUST-56] [SHLD-26] No error ends an established connection; what it said can be asked for.
/// [RFC1122-3.2.2.4-1] [RFC1122-3.2.2.5-2] [RFC1122-3.2.2.5-3] [RFC4443-3.1-2] [RFC4443-3.3-3] [RFC4443-3.4-4]
#[test]
fn errors_about_data() {
    type Message = fn(&[u8]) -> Vec<u8>;
    let cases: [(Message, IcmpError); 5] = [
        (|quoted| unreachable(quoted, UnreachableCode::Port), IcmpError::PortUnreachable),
        (|quoted| unreachable(quoted, UnreachableCode::Net), IcmpError::NetworkUnreachable),
        (
            |quoted| unreachable(quoted, UnreachableCode::CommunicationProhibited),
            IcmpError::Prohibited,
        ),
        (
            |quoted| icmp(ROUTER, HOST, &IcmpMessage::TimeExceeded { code: 0, quoted }),
            IcmpError::TimeExceeded,
        ),
        (
            |quoted| {
                icmp(ROUTER, HOST, &IcmpMessage::ParameterProblem { code: 0, pointer: 8, quoted })
            },
            IcmpError::ParameterProblem,
        ),
    ];
    for (message, meaning) in cases {
        let (mut host, id, mut peer, data) = sending(false);
        host.inject(&message(&data.bytes));
        let soft = host.call(|stack, now| stack.with_connection(id, now, |c| c.take_soft_error()));
        assert_eq!(soft, Ok(Some(meaning)));
        assert_eq!(host.count(id, Signal::Trouble), 1);
        peer.receive(&[data]);
        host.inject(&peer.segment(Flags::ACK, &[]));
        peer.assert_alive(&mut host, id);
    }
    let cases: [(Message, IcmpError); 3] = [
        (|quoted| unreachable6(quoted, UnreachableCode::Port), IcmpError::PortUnreachable),
        (
            |quoted| icmp(ROUTER6, HOST6, &IcmpMessage::TimeExceeded { code: 0, quoted }),
            IcmpError::TimeExceeded,
        ),
        (
            |quoted| {
                icmp(ROUTER6, HOST6, &IcmpMessage::ParameterProblem { code: 1, pointer: 6, quoted })
            },
            IcmpError::ParameterProblem,
        ),
    ];
    for (message, meaning) in cases {
        let (mut host, id, mut peer, data) = sending(true);
        host.inject(&message(&data.bytes));
        let soft = host.call(|stack, now| stack.with_connection(id, now, |c| c.take_soft_error()));
        assert_eq!(soft, Ok(Some(meaning)));
        peer.receive(&[data]);
        host.inject(&peer.segment(Flags::ACK, &[]));
        peer.assert_alive(&mut host, id);
    }
}

/// RFC 792: a router need quote no more than the IP header and eight bytes.
/// [RFC1122-3.4-6]
#[test]
fn eight_bytes_of_the_segment_are_enough() {
    let (mut host, id, syn) = asking(false);
    host.inject(&unreachable(&syn.bytes[..28], UnreachableCode::Port));
    assert_eq!(host.connection(id).error(), Some(ConnectionError::Refused));
    let (mut host, id, syn) = asking(false);
    host.inject(&unreachable(&syn.bytes[..27], UnreachableCode::Port));
    assert_eq!(host.state(id), State::SynSent);
}

/// [MUST-54] Only the connection concerned hears of an error, and only if the quoted segment is in flight (RFC 5927 section 4.1).
/// [RFC4443-5.2-1]
#[test]
fn an_error_about_anything_else_changes_nothing() {
    let (mut host, id, mut peer, data) = sending(false);
    let other = host.connect(at(PEER, 81));
    host.sent();
    let change = |place: usize, value: u8| {
        let mut quoted = data.bytes.clone();
        quoted[place] = quoted[place].wrapping_add(value);
        quoted
    };
    // Another protocol, source, destination, ports; sequence numbers before and beyond what is in flight.
    for place in [9, 15, 19, 21, 23, 24, 26] {
        for amount in [1, 0xff] {
            host.inject(&unreachable(&change(place, amount), UnreachableCode::Port));
        }
    }
    let before = {
        let mut quoted = data.bytes.clone();
        let seq = data.tcp().seq - 1;
        quoted[24..28].copy_from_slice(&seq.get().to_be_bytes());
        quoted
    };
    host.inject(&unreachable(&before, UnreachableCode::Port));
    assert_eq!((host.count(id, Signal::Trouble), host.count(other, Signal::Trouble)), (0, 0));
    assert_eq!(host.state(other), State::SynSent);
    peer.receive(std::slice::from_ref(&data));
    host.inject(&peer.segment(Flags::ACK, &[]));
    // Acknowledged by now.
    host.inject(&unreachable(&data.bytes, UnreachableCode::Port));
    assert_eq!(host.count(id, Signal::Trouble), 0);
    peer.assert_alive(&mut host, id);
}

/// [MUST-55] Source quench is history (RFC 6633): nothing at all happens, and nothing is counted as an error.
#[test]
fn source_quench_is_dropped_in_silence() {
    let (mut host, id, mut peer, data) = sending(false);
    let now = host.now;
    let cwnd = host.connection(id).info(now).cwnd;
    let body = [&[0; 4], &data.bytes[..28]].concat();
    let quench = icmp(ROUTER, HOST, &IcmpMessage::Unknown { kind: 4, code: 0, body: &body });
    assert!(host.inject(&quench).is_empty());
    assert_eq!(host.connection(id).info(now).cwnd, cwnd);
    assert_eq!((host.count(id, Signal::Trouble), host.counters().icmp_errors_received), (0, 0));
    peer.receive(&[data]);
    host.inject(&peer.segment(Flags::ACK, &[]));
    peer.assert_alive(&mut host, id);
}

/// [RFC1122-3.2.2-1] [RFC4443-2.4-2] Nobody knows what they mean.
#[test]
fn messages_of_unknown_types_are_dropped_in_silence() {
    let (mut host, id, mut peer, data) = sending(false);
    let body = [&[0; 4], &data.bytes[..28]].concat();
    for kind in [1, 2, 7, 40, 255] {
        let message = icmp(ROUTER, HOST, &IcmpMessage::Unknown { kind, code: 0, body: &body });
        assert!(host.inject(&message).is_empty());
    }
    for kind in [127, 130, 200, 255] {
        let body = &[0; 48];
        let message = icmp(ROUTER6, HOST6, &IcmpMessage::Unknown { kind, code: 0, body });
        assert!(host.inject(&message).is_empty());
    }
    assert_eq!((host.count(id, Signal::Trouble), host.counters().icmp_errors_received), (0, 0));
    peer.receive(&[data]);
    host.inject(&peer.segment(Flags::ACK, &[]));
    peer.assert_alive(&mut host, id);
}

/// An error whose own checksum is wrong, or that quotes nothing, is no error.
#[test]
fn a_damaged_error_is_not_believed() {
    let (mut host, id, syn) = asking(false);
    let mut damaged = unreachable(&syn.bytes, UnreachableCode::Port);
    *damaged.last_mut().unwrap() ^= 1;
    host.inject(&damaged);
    host.inject(&unreachable(&[], UnreachableCode::Port));
    host.inject(&unreachable(&syn.bytes[..19], UnreachableCode::Port));
    assert_eq!((host.state(id), host.counters().icmp_errors_received), (State::SynSent, 0));
    assert_eq!(IpPacket::parse(&damaged).unwrap().protocol(), Protocol::ICMP);
}
