//! SYN cookies: a full queue of half-open connections keeps nobody out, and a cookie keeps the options that it can.

use crate::harness::*;
use std::sync::Arc;
use transom_stack::{ListenConfig, ListenerId};
use transom_tcp::compose::compose_classic as compose;
use transom_tcp::time::Duration;
use transom_tcp::{EcnChoice, EcnConfig};
use transom_wire::{Ecn, Flags, Options, PartialReliability, Seq, TcpHeader};

const SYN_ACK: Flags = Flags::SYN.union(Flags::ACK);
/// The three flags that are the field ACE.
const FIELD: Flags = Flags::ECE.union(Flags::CWR).union(Flags::AE);

/// The field with these three bits.
fn field(bits: u16) -> Flags {
    Flags::from_bits_truncate(bits << 6)
}

/// A host whose queue of half-open connections is full.
fn crowded() -> (Host, ListenerId) {
    let mut host = Host::new();
    let config = ListenConfig::default().with_syn_backlog(1);
    let listener = host.listen_with(service(), config);
    one(host.inject(&Peer::new(at(PEER, 3999), service()).syn(usual_options())));
    assert_eq!(host.stack.half_open_count(), 1);
    (host, listener)
}

#[test]
fn with_timestamps_a_cookie_keeps_scale_sack_and_a_close_segment_size() {
    let (mut host, listener) = crowded();
    let options = Options { mss: Some(1400), window_scale: Some(9), ..usual_options() };
    let mut peer = Peer::new(at(PEER, 4000), service());
    peer.shake(&mut host, options);
    assert_eq!((host.stack.half_open_count(), host.counters().cookies_accepted), (1, 1));
    let id = host.accept(listener);
    let now = host.now;
    let info = host.connection(id).info(now);
    assert!(info.sack && info.timestamps);
    assert_eq!(info.window_scale.unwrap().0, 9);
    peer.assert_alive(&mut host, id);
    // 1360 is the largest that a cookie can say of what is at most 1400; timestamps take twelve bytes of it.
    host.sent();
    host.write_all(id, &stream(4_000));
    let sent = host.sent();
    assert_eq!(sent[0].payload().len(), 1360 - 12);
}

#[test]
fn without_timestamps_a_cookie_keeps_neither_scale_nor_sack_and_does_not_claim_them() {
    let (mut host, listener) = crowded();
    let options = Options { timestamps: None, ..usual_options() };
    let mut peer = Peer::new(at(PEER, 4000), service());
    let answer = one(host.inject(&peer.syn(options))).tcp();
    let Options { window_scale, sack_permitted, timestamps, .. } = answer.options;
    assert_eq!((window_scale, sack_permitted, timestamps), (None, false, None));
    let ack = peer.answer(&answer, options);
    host.inject(&ack);
    let id = host.accept(listener);
    let now = host.now;
    let info = host.connection(id).info(now);
    assert!(!info.sack && !info.timestamps && info.window_scale.is_none());
    peer.assert_alive(&mut host, id);
}

#[test]
fn a_cookie_does_not_agree_to_giving_data_up() {
    let mut host = Host::new();
    let profile = Some(Arc::new(compose("no-retransmission").unwrap()));
    let config = ListenConfig::default().with_syn_backlog(1).with_profile(profile);
    let listener = host.listen_with(service(), config);
    let permitted = Some(PartialReliability::Permitted);
    let options = Options { partial: permitted, ..usual_options() };
    let kept = one(host.inject(&Peer::new(at(PEER, 3999), service()).syn(options))).tcp();
    assert_eq!(kept.options.partial, permitted);
    let mut peer = Peer::new(at(PEER, 4000), service());
    let answer = one(host.inject(&peer.syn(options))).tcp();
    assert_eq!((host.counters().cookies_sent, answer.options.partial), (1, None));
    host.inject(&peer.answer(&answer, options));
    let id = host.accept(listener);
    let now = host.now;
    let info = host.connection(id).info(now);
    assert!(info.recovery == "sack" && !info.partial.unwrap().agreed, "{info:?}");
}

#[test]
fn a_cookie_comes_back_with_data_and_only_where_it_belongs() {
    let (mut host, listener) = crowded();
    let mut peer = Peer::new(at(PEER, 4000), service());
    let answer = one(host.inject(&peer.syn(usual_options()))).tcp();
    peer.answer(&answer, usual_options());
    // From another port, for another acknowledgement, or after another sequence number it is not one.
    let data = Flags::ACK | Flags::PSH;
    for wrong in [
        Peer { from: at(PEER, 4001), ..peer },
        Peer { from: at([10, 0, 0, 9], 4000), ..peer },
        Peer { ack: peer.ack + 1, ..peer },
        Peer { seq: peer.seq + 1, ..peer },
    ] {
        let reset = one(host.inject(&wrong.segment(data, b"data"))).tcp();
        assert_eq!((reset.flags, reset.seq), (Flags::RST, wrong.ack));
    }
    // Nor in a segment that is no mere acknowledgement.
    let syn_ack = one(host.inject(&peer.segment(Flags::SYN | Flags::ACK, &[]))).tcp();
    assert_eq!((syn_ack.flags, syn_ack.seq), (Flags::RST, peer.ack));
    assert_eq!(host.counters().cookies_accepted, 0);
    host.inject(&peer.segment(data, b"data"));
    let id = host.accept(listener);
    assert_eq!(host.read(id), b"data");
}

#[test]
fn a_cookie_is_good_for_a_while_only() {
    for (wait, good) in [(60, true), (200, false)] {
        let (mut host, listener) = crowded();
        let mut peer = Peer::new(at(PEER, 4000), service());
        let answer = one(host.inject(&peer.syn(usual_options()))).tcp();
        let ack = peer.answer(&answer, usual_options());
        host.advance(Duration::from_secs(wait));
        let sent = host.inject(&ack);
        assert_eq!(host.stack.acceptable(listener), usize::from(good), "after {wait} s");
        assert_eq!(sent.len(), usize::from(!good));
    }
}

#[test]
fn no_cookie_is_accepted_by_a_listener_that_sent_none() {
    let (mut host, _) = crowded();
    let mut peer = Peer::new(at(PEER, 4000), service());
    let answer = one(host.inject(&peer.syn(usual_options()))).tcp();
    // The same secret and the same time, but no pressure: a guess would have to be a guess of the secret.
    let ack = peer.answer(&answer, usual_options());
    let mut calm = Host::new();
    calm.listen(service());
    assert_eq!(one(calm.inject(&ack)).flags(), Flags::RST);
}

#[test]
fn a_cookie_for_a_full_accept_queue_is_as_good_as_lost() {
    let mut host = Host::new();
    let config = ListenConfig::default().with_syn_backlog(1).with_backlog(1);
    let listener = host.listen_with(service(), config);
    let mut half = Peer::new(at(PEER, 3999), service());
    let half_answer = one(host.inject(&half.syn(usual_options()))).tcp();
    let mut peer = Peer::new(at(PEER, 4000), service());
    let answer = one(host.inject(&peer.syn(usual_options()))).tcp();
    let ack = half.answer(&half_answer, usual_options());
    host.inject(&ack);
    let ack = peer.answer(&answer, usual_options());
    assert!(host.inject(&ack).is_empty());
    assert_eq!((host.stack.acceptable(listener), host.stack.connection_count()), (1, 1));
    host.accept(listener);
    // The peer's next segment completes the handshake as the acknowledgement did.
    host.inject(&peer.segment(Flags::ACK | Flags::PSH, b"data"));
    let id = host.accept(listener);
    assert_eq!(host.read(id), b"data");
}

/// Each end of a half-open connection makes room for another: its completion, a reset, or giving up.
#[test]
fn where_there_is_room_again_no_cookie_is_needed() {
    for way in 0..3 {
        let mut host = Host::new();
        let config = ListenConfig::default().with_syn_backlog(1);
        host.listen_with(service(), config);
        let mut first = Peer::new(at(PEER, 3999), service());
        let answer = one(host.inject(&first.syn(usual_options()))).tcp();
        let ack = first.answer(&answer, usual_options());
        one(host.inject(&Peer::new(at(PEER, 4000), service()).syn(usual_options())));
        assert_eq!(host.counters().cookies_sent, 1);
        match way {
            0 => _ = host.inject(&ack),
            1 => _ = host.inject(&first.segment(Flags::RST, &[])),
            _ => _ = host.advance(Duration::from_secs(600)),
        }
        assert_eq!(host.stack.half_open_count(), 0);
        one(host.inject(&Peer::new(at(PEER, 4001), service()).syn(usual_options())));
        assert_eq!((host.stack.half_open_count(), host.counters().cookies_sent), (1, 1));
    }
}

/// The options travel in the timestamp, which must not be ahead of the clock for that: a later segment's would look older.
#[test]
fn a_cookies_timestamp_is_a_little_behind_the_clock_and_never_ahead() {
    let (mut crowded, _) = crowded();
    let mut calm = Host::new();
    calm.listen(service());
    for n in 0..200 {
        let syn = Peer::new(at(PEER, 4000 + n), service()).syn(usual_options());
        let [cookie, clock] = [&mut crowded, &mut calm].map(|host| {
            let value = one(host.inject(&syn)).tcp().options.timestamps.unwrap().value;
            host.now += Duration::from_millis(1);
            value
        });
        assert!(clock.wrapping_sub(cookie) < 128, "{cookie} at {clock}");
    }
    assert_eq!(crowded.counters().cookies_sent, 200);
}

/// ECN is agreed through a cookie as well, if there are timestamps; but its SYN-ACK is not made markable, since nobody would send it again
/// without.
#[test]
fn with_timestamps_a_cookie_keeps_ecn() {
    for (timestamps, kept) in [(true, true), (false, false)] {
        let mut host = Host::with(|_, profile| {
            let config = EcnConfig::default().with_offer(true).with_control_packets(true);
            profile.ecn = EcnChoice::Classic(config);
        });
        let config = ListenConfig::default().with_syn_backlog(1);
        let listener = host.listen_with(service(), config);
        let offer = |peer: &Peer, options| {
            let header = peer.header(Flags::SYN | Flags::ECE | Flags::CWR);
            peer.packet(&TcpHeader { ack: Seq::new(0), options, ..header }, &[])
        };
        // The one that fills the queue has an entry of its own, and a SYN-ACK that may be marked.
        let first =
            one(host.inject(&offer(&Peer::new(at(PEER, 3999), service()), usual_options())));
        assert_eq!((first.flags(), first.ip().ecn()), (SYN_ACK | Flags::ECE, Ecn::Ect0));

        let stamps = usual_options().timestamps.filter(|_| timestamps);
        let options = Options { timestamps: stamps, ..usual_options() };
        let mut peer = Peer::new(at(PEER, 4000), service());
        let answer = one(host.inject(&offer(&peer, options)));
        let echo = if kept { Flags::ECE } else { Flags::empty() };
        assert_eq!((answer.flags(), answer.ip().ecn()), (SYN_ACK | echo, Ecn::NotEct));
        let ack = peer.answer(&TcpHeader { flags: SYN_ACK, ..answer.tcp() }, options);
        host.inject(&ack);
        let id = host.accept(listener);
        assert_eq!(host.counters().cookies_accepted, 1);
        host.sent();
        host.write_all(id, &stream(1000));
        let capable = if kept { Ecn::Ect0 } else { Ecn::NotEct };
        assert_eq!(host.sent()[0].ip().ecn(), capable);
    }
}

/// Accurate ECN needs nothing to be kept. The SYN-ACK says how the SYN arrived, and the acknowledgement, that it was agreed on (RFC 9768 section
/// 5.1). So it survives without timestamps too. A peer that agreed on RFC 3168 sends 0 or 1 there.
#[test]
fn a_cookie_needs_nothing_to_agree_on_accurate_ecn() {
    for timestamps in [true, false] {
        for (arrived, said) in [(Ecn::NotEct, 0b010), (Ecn::Ce, 0b110)] {
            for (back, agreed) in [(0b010, true), (0b101, true), (0b000, false), (0b001, false)] {
                let mut host = Host::with(|_, profile| {
                    // No cookie's SYN-ACK is ECN-capable, and none is taken for changed.
                    let ecn =
                        EcnConfig::default().with_offer(true).with_control_packets(timestamps);
                    profile.ecn = EcnChoice::Accurate { ecn, options: true };
                });
                let config = ListenConfig::default().with_syn_backlog(1);
                let listener = host.listen_with(service(), config);
                one(host.inject(&Peer::new(at(PEER, 3999), service()).syn(usual_options())));
                let stamps = usual_options().timestamps.filter(|_| timestamps);
                let options = Options { timestamps: stamps, ..usual_options() };
                let mut peer = Peer::new(at(PEER, 4000), service());
                let header = peer.header(Flags::SYN | FIELD);
                let syn = TcpHeader { ack: Seq::new(0), options, ..header };
                let mut syn = peer.packet(&syn, &[]);
                transom_wire::ip::set_ecn(&mut syn, arrived).unwrap();
                let answer = one(host.inject(&syn)).tcp();
                assert_eq!(answer.flags, SYN_ACK | field(said));
                assert!(answer.options.acc_ecn.is_some());
                peer.answer(&TcpHeader { flags: SYN_ACK, ..answer }, options);
                host.inject(&peer.segment(Flags::ACK | field(back), &[]));
                let id = host.accept(listener);
                assert_eq!(host.counters().cookies_accepted, 1);
                let now = host.now;
                let ecn = host.connection(id).info(now).ecn;
                assert_eq!(ecn.is_some_and(|ecn| ecn.accurate.is_some()), agreed, "{back:#b}");
                host.sent();
                host.write_all(id, &stream(1000));
                let capable = if agreed { Ecn::Ect0 } else { Ecn::NotEct };
                assert_eq!(host.sent()[0].ip().ecn(), capable, "{back:#b}");
            }
        }
    }
}

/// A SYN that asks for another feedback than the one before is refused, and the entry is gone (RFC 9768 section 3.1.5).
#[test]
fn syns_that_contradict_each_other_are_refused() {
    let mut host = Host::with(|_, profile| {
        profile.ecn = EcnChoice::Accurate { ecn: EcnConfig::default(), options: true };
    });
    let _listener = host.listen_with(service(), ListenConfig::default());
    let peer = Peer::new(at(PEER, 4000), service());
    let syn = |flags| {
        let header = peer.header(Flags::SYN | flags);
        peer.packet(&TcpHeader { ack: Seq::new(0), options: usual_options(), ..header }, &[])
    };
    assert!(one(host.inject(&syn(FIELD))).flags().contains(SYN_ACK));
    assert_eq!(host.stack.half_open_count(), 1);
    let reset = one(host.inject(&syn(Flags::ECE | Flags::CWR)));
    assert_eq!(reset.flags(), Flags::RST | Flags::ACK);
    assert_eq!(host.stack.half_open_count(), 0);
}
