//! A listener's answer: how often it is repeated, what else it answers, and when it gives up.

use crate::harness::*;
use transom_stack::ListenConfig;
use transom_tcp::Profile;
use transom_tcp::time::Duration;
use transom_wire::Flags;

const SYN_ACK: Flags = Flags::SYN.union(Flags::ACK);

/// RFC 6298 section 2.1 and 5.5: a second for the first time, doubled each time; RFC 9293 section 3.8.3 [MUST-23]: three minutes
/// at least before it is given up.
#[test]
fn an_unanswered_syn_ack_is_repeated_with_doubled_waits_and_then_given_up() {
    let mut host = Host::new();
    let listener = host.listen(service());
    let peer = Peer::new(at(PEER, 4000), service());
    let start = host.now;
    let first = one(host.inject(&peer.syn(usual_options())));
    assert_eq!(first.flags(), SYN_ACK);
    let repeated = host.advance(Duration::from_secs(600));
    let times: Vec<u64> = repeated.iter().map(|(when, _)| when.since(start).as_millis()).collect();
    assert_eq!(times, [1, 3, 7, 15, 31, 63, 123].map(|secs| secs * 1_000));
    for (_, again) in &repeated {
        let (again, first) = (again.tcp(), first.tcp());
        assert_eq!((again.flags, again.seq, again.ack), (SYN_ACK, first.seq, first.ack));
        assert_eq!(again.options.mss, first.options.mss);
    }
    assert_eq!((host.stack.half_open_count(), host.stack.acceptable(listener)), (0, 0));
    assert_eq!(host.stack.next_timeout(), None);
    // A late acknowledgement is for nobody.
    let late = Peer { seq: peer.seq + 1, ack: first.tcp().seq + 1, ..peer };
    assert_eq!(one(host.inject(&late.segment(Flags::ACK, &[]))).flags(), Flags::RST);
}

/// The time over which a SYN-ACK is repeated with the default profile, and how the settings decide it [MUST-23].
#[test]
fn giving_up_a_syn_ack_takes_three_minutes_by_default() {
    let mut host = Host::new();
    host.listen(service());
    host.inject(&Peer::new(at(PEER, 4000), service()).syn(usual_options()));
    host.advance(Duration::from_secs(180));
    assert_eq!(host.stack.half_open_count(), 1, "given up within three minutes");
    host.advance(Duration::from_secs(120));
    assert_eq!(host.stack.half_open_count(), 0);

    let mut hasty = Host::with(|_, profile: &mut Profile| profile.syn_r2 = 2);
    hasty.listen(service());
    hasty.inject(&Peer::new(at(PEER, 4000), service()).syn(usual_options()));
    assert_eq!(hasty.advance(Duration::from_secs(100)).len(), 2);
    assert_eq!(hasty.stack.half_open_count(), 0);
}

#[test]
fn a_repeated_syn_is_answered_the_same_but_not_twice_at_once() {
    let mut host = Host::new();
    host.listen(service());
    let peer = Peer::new(at(PEER, 4000), service());
    let first = one(host.inject(&peer.syn(usual_options()))).tcp();
    assert!(host.inject(&peer.syn(usual_options())).is_empty(), "an amplifier");
    host.advance(Duration::from_millis(600));
    let again = one(host.inject(&peer.syn(usual_options()))).tcp();
    assert_eq!((again.seq, again.ack, again.flags), (first.seq, first.ack, SYN_ACK));
    assert_eq!(host.stack.half_open_count(), 1);
}

/// RFC 9293 section 3.10.7.4 for SYN-RECEIVED: data may come with the acknowledgement, a wrong acknowledgement is reset and
/// changes nothing, and a reset brings the port back to LISTEN.
#[test]
fn only_the_right_acknowledgement_completes_a_handshake() {
    let mut host = Host::new();
    let listener = host.listen(service());
    let mut peer = Peer::new(at(PEER, 4000), service());
    let answer = one(host.inject(&peer.syn(bare_options()))).tcp();
    peer.answer(&answer, bare_options());
    let wrong = Peer { ack: peer.ack + 1, ..peer };
    let reset = one(host.inject(&wrong.segment(Flags::ACK, &[]))).tcp();
    assert_eq!((reset.flags, reset.seq), (Flags::RST, wrong.ack));
    assert_eq!(host.stack.half_open_count(), 1);
    host.inject(&peer.segment(Flags::ACK | Flags::PSH, b"early"));
    peer.seq += 5;
    let id = host.accept(listener);
    assert_eq!(host.read(id), b"early");
    peer.assert_alive(&mut host, id);

    let mut gone = Peer::new(at(PEER, 4001), service());
    let answer = one(host.inject(&gone.syn(bare_options()))).tcp();
    gone.answer(&answer, bare_options());
    assert!(host.inject(&gone.segment(Flags::RST, &[])).is_empty());
    assert_eq!(host.stack.half_open_count(), 0);
    let (mut next, id) = Peer::connect(&mut host, listener, at(PEER, 4001), service());
    next.assert_alive(&mut host, id);
}

/// Options that were not offered are not in the answer (RFC 7323 section 2.2, RFC 2018 section 2). Data in the SYN is left for later.
#[test]
fn the_answer_offers_what_the_syn_offered() {
    let mut host = Host::new();
    host.listen(service());
    let answer = |host: &mut Host, port, options| {
        let peer = Peer::new(at(PEER, port), service());
        let header = transom_wire::TcpHeader { options, ..peer.header(Flags::SYN) };
        (peer, one(host.inject(&peer.packet(&header, b"data"))).tcp())
    };
    let (peer, full) = answer(&mut host, 4000, usual_options());
    assert_eq!(full.ack, peer.seq + 1);
    assert!(full.options.window_scale.is_some() && full.options.sack_permitted);
    assert_eq!(full.options.timestamps.unwrap().echo, 5_000);
    let (_, plain) = answer(&mut host, 4001, bare_options());
    let options = plain.options;
    assert_eq!(
        (options.window_scale, options.sack_permitted, options.timestamps),
        (None, false, None)
    );
    assert_eq!(options.mss, Some(1460));
}

#[test]
fn a_listeners_own_limit_and_the_hosts_are_told_apart() {
    let mut host = Host::with(|config, _| config.max_half_open = 3);
    let config = ListenConfig::default().with_syn_backlog(2);
    host.listen_with(service(), config);
    host.listen(at(HOST, 81));
    for port in 4000..4004 {
        host.inject(&Peer::new(at(PEER, port), service()).syn(usual_options()));
    }
    assert_eq!((host.stack.half_open_count(), host.counters().cookies_sent), (2, 2));
    for port in 4000..4004 {
        host.inject(&Peer::new(at(PEER, port), at(HOST, 81)).syn(usual_options()));
    }
    assert_eq!((host.stack.half_open_count(), host.counters().cookies_sent), (3, 5));
}

/// RFC 5961 sections 3.2 and 4.2, for a connection that is not complete. A reset or SYN that might be forged is answered with an
/// acknowledgement, twice a second at most, and changes nothing.
#[test]
fn a_half_open_connection_is_as_careful_as_an_open_one() {
    let mut host = Host::new();
    let listener = host.listen(service());
    let mut peer = Peer::new(at(PEER, 4000), service());
    let answer = one(host.inject(&peer.syn(bare_options()))).tcp();
    let ack = peer.answer(&answer, bare_options());
    let beside = Peer { seq: peer.seq + 10, ..peer };
    for forged in [beside.segment(Flags::RST, &[]), beside.syn(bare_options())] {
        // The first comes at once after the SYN-ACK, which has a limit of its own.
        let challenge = one(host.inject(&forged)).tcp();
        assert_eq!(
            (challenge.flags, challenge.seq, challenge.ack),
            (Flags::ACK, peer.ack, peer.seq)
        );
        assert!(host.inject(&forged).is_empty(), "an amplifier");
        host.advance(Duration::from_millis(500));
    }
    // Far outside the window a reset is nothing.
    let far = Peer { seq: peer.seq + (1 << 30), ..peer };
    host.advance(Duration::from_millis(500));
    assert!(host.inject(&far.segment(Flags::RST, &[])).is_empty());
    assert_eq!(host.stack.half_open_count(), 1);
    host.inject(&ack);
    let id = host.accept(listener);
    peer.assert_alive(&mut host, id);
}
