//! Segments for which there is no connection (RFC 9293 section 3.10.7.1, and 3.10.7.2 for a listener).

use crate::harness::*;
use transom_wire::offload::RxOffload;
use transom_wire::{Flags, Seq, TcpHeader};

/// What a stray segment is answered with.
fn answer(host: &mut Host, port: u16, flags: Flags, payload: &[u8]) -> Option<TcpHeader> {
    let peer = Peer {
        seq: Seq::new(1_000),
        ack: Seq::new(7_000),
        ..Peer::new(at(PEER, 4000), at(HOST, port))
    };
    let header = TcpHeader { ack: Seq::new(7_000), ..peer.header(flags) };
    let sent = host.inject(&peer.packet(&header, payload));
    assert!(sent.len() <= 1);
    let sent = sent.first()?;
    assert_eq!(sent.ends(), (peer.to, peer.from));
    assert!(sent.payload().is_empty());
    Some(sent.tcp())
}

/// Where nobody listens: with an acknowledgement, a reset from the acknowledged number; without, one from zero that acknowledges
/// all the segment took of the sequence space; a reset is never answered.
#[test]
fn a_closed_port_answers_with_a_reset_that_is_acceptable() {
    let mut host = Host::new();
    let by_ack = |flags: Flags| (flags, Flags::RST, 7_000, 0);
    let by_seq = |flags: Flags, ack| (flags, Flags::RST | Flags::ACK, 0, ack);
    let cases = [
        by_ack(Flags::ACK),
        by_ack(Flags::SYN | Flags::ACK),
        by_ack(Flags::FIN | Flags::ACK),
        by_ack(Flags::PSH | Flags::URG | Flags::ACK),
        by_seq(Flags::SYN, 1_000 + 4 + 1),
        by_seq(Flags::FIN, 1_000 + 4 + 1),
        by_seq(Flags::empty(), 1_000 + 4),
    ];
    for (n, (flags, reset, seq, ack)) in cases.into_iter().enumerate() {
        let header = answer(&mut host, 81, flags, b"data").expect("a reset");
        assert_eq!(
            (header.flags, header.seq.get(), header.ack.get()),
            (reset, seq, ack),
            "{flags:?}"
        );
        assert_eq!(host.counters().resets_sent, n as u64 + 1);
    }
    for flags in [Flags::RST, Flags::RST | Flags::ACK] {
        assert_eq!(answer(&mut host, 81, flags, b"data"), None);
    }
}

/// A listener: an acknowledgement is reset, a SYN answered, everything else dropped.
#[test]
fn a_listener_resets_acknowledgements_only() {
    let mut host = Host::new();
    host.listen(service());
    for flags in [Flags::ACK, Flags::SYN | Flags::ACK, Flags::FIN | Flags::ACK] {
        let header = answer(&mut host, 80, flags, b"data").expect("a reset");
        assert_eq!((header.flags, header.seq.get()), (Flags::RST, 7_000), "{flags:?}");
    }
    for flags in [Flags::empty(), Flags::FIN, Flags::PSH, Flags::RST, Flags::RST | Flags::ACK] {
        assert_eq!(answer(&mut host, 80, flags, b"data"), None, "{flags:?}");
    }
    assert_eq!(host.stack.half_open_count(), 0);
    assert_eq!(answer(&mut host, 80, Flags::SYN, b"").unwrap().flags, Flags::SYN | Flags::ACK);
}

/// Port 0 is nobody's; nothing answers it.
#[test]
fn port_zero_is_counted_and_not_answered() {
    let mut host = Host::new();
    host.listen(service());
    assert_eq!(answer(&mut host, 0, Flags::SYN, b""), None);
    assert!(host.inject(&Peer::new(at(PEER, 0), service()).syn(usual_options())).is_empty());
    assert_eq!(host.counters().bad_tcp, 2);
}

/// RFC 9293 section 3.10.7.2 looks at RST, then ACK, then SYN. A SYN with a reset is a reset, one with an acknowledgement is refused, and one with a
/// FIN opens. The FIN, like data, is not acknowledged, so that the peer sends it again.
#[test]
fn flags_beside_a_syn() {
    let mut host = Host::new();
    host.listen(service());
    for port in [80, 81] {
        assert_eq!(answer(&mut host, port, Flags::SYN | Flags::RST, b""), None);
        let refused = answer(&mut host, port, Flags::SYN | Flags::FIN | Flags::ACK, b"").unwrap();
        assert_eq!(refused.flags, Flags::RST);
    }
    let closed = answer(&mut host, 81, Flags::SYN | Flags::FIN, b"").unwrap();
    assert_eq!((closed.flags, closed.ack.get()), (Flags::RST | Flags::ACK, 1002));
    let open = answer(&mut host, 80, Flags::SYN | Flags::FIN, b"").unwrap();
    assert_eq!((open.flags, open.ack.get()), (Flags::SYN | Flags::ACK, 1001));
}

/// The answers that wait are bounded: whoever causes them could cause any number.
#[test]
fn answers_are_bounded_before_they_can_leave() {
    let mut host = Host::new();
    let stray = Peer::new(at(PEER, 4000), at(HOST, 81)).segment(Flags::ACK, &[]);
    for _ in 0..2_000 {
        let now = host.now;
        host.stack.on_packet(now, &stray, RxOffload::default());
    }
    let dropped = host.counters().replies_dropped;
    assert!(dropped > 0);
    host.call(|_, _| ());
    assert_eq!(host.sent().len() as u64, 2_000 - dropped);
}
