//! Explicit congestion notification, worked by hand (RFC 3168 section 6.1, RFC 8257 section 3).

use crate::common;

use common::{Peer, Setup, half_open, line, seg};
use std::sync::Arc;
use transom_tcp::compose::compose_classic as compose;
use transom_tcp::congestion::CongestionChoice;
use transom_tcp::packet::Payload;
use transom_tcp::{Connection, EcnChoice, EcnConfig, Segment, UndoConfig, UnitChoice};
use transom_wire::{Ecn, Flags};

const BOTH: Flags = Flags::ECE.union(Flags::CWR);

fn offering() -> Setup {
    let config = EcnConfig::default().with_offer(true);
    Setup::default().profile(|profile| profile.ecn = EcnChoice::Classic(config))
}

/// An active connection that has agreed on ECN.
fn agreed(setup: Setup) -> Peer {
    let mut peer = setup.connecting();
    peer.expect(&["SEW 0:1"]).wait(100);
    let options = setup.syn_options(&peer);
    peer.recv(seg().syn().flags(Flags::ECE).options(options));
    peer.expect(&["A 1:1 ack 1"]);
    peer
}

/// Section 6.1.1: both flags in the SYN, ECE alone in the SYN-ACK.
#[test]
fn the_handshake_agrees_or_does_not() {
    let mut peer = agreed(offering());
    peer.write(1000).expect(&["PA 1:1001 ack 1 ect0"]);

    // No flag, or both sent back by something that reflects what it does not know: no ECN.
    for answer in [Flags::empty(), BOTH] {
        let setup = offering();
        let mut peer = setup.connecting();
        peer.drain();
        let options = setup.syn_options(&peer);
        peer.recv(seg().syn().flags(answer).options(options)).drain();
        peer.write(1000).expect(&["PA 1:1001 ack 1"]);
    }

    // By default it is not offered.
    Setup::default().connecting().expect(&["S 0:1"]);
}

/// Section 6.1.1.1: the second SYN does without, in case somebody drops the first for its flags.
#[test]
fn a_syn_sent_again_does_not_offer() {
    let mut peer = offering().connecting();
    peer.expect(&["SEW 0:1"]).next_timer();
    peer.expect(&["S 0:1"]);
}

/// The listener's side: the offer of the SYN decides, and the profile.
#[test]
fn a_listener_agrees_to_an_offer() {
    for (choice, flags, expected) in [
        (EcnChoice::Classic(EcnConfig::default()), BOTH, "SAE 0:1 ack 1"),
        (EcnChoice::Classic(EcnConfig::default()), Flags::ECE, "SA 0:1 ack 1"),
        (EcnChoice::Classic(EcnConfig::default()), Flags::empty(), "SA 0:1 ack 1"),
        (EcnChoice::Off, BOTH, "SA 0:1 ack 1"),
    ] {
        let setup = Setup::default().profile(|profile| profile.ecn = choice);
        let (_, mut peer) = setup.half_open();
        let syn = seg().seq(0).no_ack().syn().flags(flags).options(setup.syn_options(&peer));
        let (header, _) = peer.build(&syn);
        let iss = transom_wire::Seq::new(common::ISS);
        let mut half = transom_tcp::HalfOpen::new(
            &setup.profile,
            common::PORTS,
            setup.path,
            iss,
            7_000,
            &header,
            peer.now,
        );
        let syn_ack = half.syn_ack(&setup.profile, peer.now);
        assert_eq!(line(&syn_ack), expected, "{choice:?} {flags:?}");
        peer.next = 1;
        let (header, _) = peer.build(&seg());
        half_open(&half, &peer, &header);
        peer.connection =
            Connection::from_half_open(Arc::new(setup.profile.clone()), &half, peer.now);
        peer.recv(seg()).drain();
        peer.write(500);
        let capable = if expected.contains('E') { "PA 1:501 ack 1 ect0" } else { "PA 1:501 ack 1" };
        peer.expect(&[capable]);
    }
}

/// [SHLD-8] Section 6.1.2: a window's worth of echoes is one reduction, and the next new data says so.
#[test]
fn an_echo_halves_the_window_once() {
    let mut peer = agreed(offering());
    peer.write(40_000);
    assert_eq!(peer.drain().len(), 10);
    peer.wait(100).recv(seg().ack(1001).flags(Flags::ECE));
    // FlightSize was 10 000.
    assert_eq!((peer.info().cwnd, peer.info().ssthresh), (5000, 5000));
    assert_eq!(peer.info().ecn.unwrap().reductions, 1);
    for at in [2, 3, 4, 5, 6] {
        peer.recv(seg().ack(at * 1000 + 1).flags(Flags::ECE));
    }
    assert_eq!(peer.info().cwnd, 5000, "the same window of data");
    // 10 000 - 6000 in flight: room for the first new segment, which carries CWR. The second does not.
    peer.expect(&["AW 10001:11001 ack 1 ect0"]);
    peer.recv(seg().ack(7001)).expect(&["A 11001:12001 ack 1 ect0"]);
    assert_eq!(peer.info().cwnd, 5000, "no growth before the window is through");
    peer.recv(seg().ack(11_001).flags(Flags::ECE));
    assert_eq!(peer.info().ecn.unwrap().reductions, 2, "that was sent after the reduction");
    // 5000 bytes were outstanding: a floor of two segments does not bind yet.
    assert_eq!(peer.info().cwnd, 2500);
}

/// RFC 4015 section 3.4: an acknowledgement that shows a reduction to have been for nothing, and echoes congestion, takes nothing back.
#[test]
fn a_reduction_stays_when_an_echo_comes_with_the_news() {
    for (flags, cwnd) in [(Flags::ECE, 5000), (Flags::empty(), 10_000)] {
        let dsack = UndoConfig::default().with_dsack(true);
        let mut peer = agreed(offering().profile(|profile| profile.undo = dsack));
        peer.write(40_000).drain();
        peer.wait(100);
        for i in 2..=4 {
            peer.recv(seg().sack(&[(1001, i * 1000 + 1)]));
        }
        let end = peer.drain().iter().map(|out| out.end()).max().unwrap();
        peer.recv(seg().ack(end));
        assert_eq!(peer.info().cwnd, 5000);
        peer.wait(50).recv(seg().ack(end).sack(&[(1, 1001)]).flags(flags));
        assert_eq!(peer.info().cwnd, cwnd);
        // For good.
        peer.recv(seg().ack(end).sack(&[(1, 1001)]));
        assert_eq!(peer.info().cwnd, cwnd);
    }
}

/// Sections 6.1.3 and 6.1.5: data's marks are echoed from the first to the sender's CWR.
#[test]
fn a_mark_is_echoed_until_the_sender_has_reacted() {
    let mut peer = agreed(offering().ack_delay(0));
    peer.recv(seg().data(1000)).drain();
    peer.recv(seg().data(1000).ce()).next_or_now("AE 1:1 ack 2001");
    peer.recv(seg().data(1000)).next_or_now("AE 1:1 ack 3001");
    peer.write(100).expect(&["PAE 1:101 ack 3001 ect0"]);
    peer.recv(seg().ack(101).data(1000).flags(Flags::CWR)).next_or_now("A 101:101 ack 4001");
    assert_eq!(peer.info().ecn.unwrap().marked_segments, 1);
    // Pure acknowledgements and data outside the window do not count.
    peer.recv(seg().ack(101).ce());
    peer.recv(seg().seq(200_000).ack(101).data(10).ce());
    peer.drain();
    peer.recv(seg().ack(101).data(1000)).next_or_now("A 101:101 ack 5001");
}

impl Peer {
    /// One acknowledgement leaves, at once or when the delay is over.
    #[track_caller]
    fn next_or_now(&mut self, expected: &str) {
        if self.sent.is_empty() {
            self.next_timer();
        }
        self.expect(&[expected]);
    }
}

/// RFC 8257 section 3.2: what came before a change is acknowledged at once with its own echo.
#[test]
fn per_packet_feedback() {
    let config = EcnConfig::default().with_offer(true);
    let setup = Setup::default().profile(|profile| profile.ecn = EcnChoice::PerPacket(config));
    let mut peer = agreed(setup);
    // Past the first arrivals, which are acknowledged at once.
    for _ in 0..40 {
        peer.recv(seg().data(1000));
        peer.wait(50);
    }
    peer.drain();
    let next = 40_001;
    peer.recv(seg().data(1000)).silent();
    peer.recv(seg().data(1000).ce());
    peer.expect(&[&format!("A 1:1 ack {}", next + 1000), &format!("AE 1:1 ack {}", next + 2000)]);
    peer.recv(seg().data(1000).ce()).silent();
    peer.recv(seg().data(1000));
    peer.expect(&[&format!("AE 1:1 ack {}", next + 3000), &format!("A 1:1 ack {}", next + 4000)]);
    // The right edge stays where it was, from wherever it is counted.
    peer.recv(seg().data(1000).ce()).silent();
    peer.recv(seg().data(1000));
    let edges: Vec<i64> =
        peer.drain().iter().map(|out| out.ack() + i64::from(out.header.window)).collect();
    assert_eq!(edges, [65_536, 65_536]);
}

/// RFC 3168 section 6.1.5 keeps retransmissions from being ECN-capable; generalized ECN does not.
#[test]
fn retransmissions() {
    for (control_packets, expected) in [(false, "A 1:1001 ack 1"), (true, "A 1:1001 ack 1 ect0")] {
        let config = EcnConfig::default().with_offer(true).with_control_packets(control_packets);
        let mut peer =
            agreed(Setup::default().profile(|profile| profile.ecn = EcnChoice::Classic(config)));
        peer.write(2000).drain();
        peer.next_timer();
        peer.expect(&[expected]);
        // The first new data after a timeout says that the window was reduced.
        peer.recv(seg().ack(2001));
        peer.write(1000).expect(&["PAW 2001:3001 ack 1 ect0"]);
    }
}

/// Generalized ECN for the control packets that RFC 3168's feedback covers.
fn extended() -> Setup {
    let config = EcnConfig::default().with_offer(true).with_control_packets(true);
    Setup::default().profile(|profile| profile.ecn = EcnChoice::Classic(config))
}

/// A SYN with the offer of ECN, or without.
fn syn(setup: &Setup, peer: &Peer, flags: Flags) -> transom_wire::TcpHeader {
    let options = setup.syn_options(peer);
    peer.build(&seg().seq(0).no_ack().syn().flags(flags).options(options)).0
}

/// A listener's entry for a SYN.
fn answered(setup: &Setup, flags: Flags) -> (transom_tcp::HalfOpen, Peer) {
    let (_, peer) = setup.half_open();
    let header = syn(setup, &peer, flags);
    let iss = transom_wire::Seq::new(common::ISS);
    let half = transom_tcp::HalfOpen::new(
        &setup.profile,
        common::PORTS,
        setup.path,
        iss,
        7_000,
        &header,
        peer.now,
    );
    (half, peer)
}

/// The SYN-ACK is ECN-capable the first time, if ECN is agreed and the profile wants it. The SYN never is: RFC 3168 has no flag to tell of
/// a mark on it.
#[test]
fn the_first_syn_ack_is_ecn_capable() {
    for (setup, flags, first) in [
        (extended(), BOTH, Ecn::Ect0),
        (extended(), Flags::empty(), Ecn::NotEct),
        (offering(), BOTH, Ecn::NotEct),
    ] {
        let (mut half, peer) = answered(&setup, flags);
        half.syn_ack(&setup.profile, peer.now);
        assert_eq!(half.codepoint(&setup.profile), first);
        half.syn_ack(&setup.profile, half.deadline);
        assert_eq!(half.codepoint(&setup.profile), Ecn::NotEct);
    }
    let mut peer = extended().connecting();
    peer.expect(&["SEW 0:1"]);
}

/// A mark on the SYN-ACK comes back with the acknowledgement that completes the handshake. The initial window is one segment, and the next
/// data says so. Without ECN++ nobody has made it markable, and an echo means nothing.
#[test]
fn a_marked_syn_ack_makes_the_start_cautious() {
    for (setup, flags, cwnd, sent) in [
        (extended(), Flags::ECE, 1000, "AW 1:1001 ack 1 ect0"),
        (extended(), Flags::empty(), 10_000, "A 1:1001 ack 1 ect0"),
        (offering(), Flags::ECE, 10_000, "A 1:1001 ack 1 ect0"),
    ] {
        let (mut half, mut peer) = answered(&setup, BOTH);
        half.syn_ack(&setup.profile, peer.now);
        peer.next = 1;
        let profile = Arc::new(setup.profile.clone());
        peer.connection = Connection::from_half_open(profile, &half, peer.now);
        peer.recv(seg().flags(flags)).drain();
        assert_eq!(peer.info().cwnd, cwnd, "{flags:?}");
        let reductions = u64::from(cwnd == 1000);
        assert_eq!(peer.info().ecn.unwrap().reductions, reductions);
        peer.write(20_000);
        assert_eq!(peer.drain()[0].line(), sent);
        if reductions > 0 {
            // The peer goes on telling until it has seen CWR: that is one mark still.
            peer.recv(seg().flags(flags)).drain();
            assert_eq!(peer.info().ecn.unwrap().reductions, 1);
        }
    }
}

/// The other end: a SYN-ACK that arrives marked is answered with the echo, until CWR.
#[test]
fn a_mark_on_the_syn_ack_is_echoed() {
    let setup = offering();
    let mut peer = setup.connecting();
    peer.expect(&["SEW 0:1"]).wait(100);
    let options = setup.syn_options(&peer);
    peer.recv(seg().syn().flags(Flags::ECE).options(options).ce());
    peer.expect(&["AE 1:1 ack 1"]);
    assert_eq!(peer.info().ecn.unwrap().marked_segments, 1);
    peer.write(100).expect(&["PAE 1:101 ack 1 ect0"]);
    peer.recv(seg().ack(101).data(1000).flags(Flags::CWR)).next_or_now("A 101:101 ack 1001");
}

/// RFC 3168 section 6.1.1: nobody uses ECN who has said both that he will and that he will not.
#[test]
fn a_syn_repeated_without_the_offer_ends_it() {
    let (mut half, peer) = answered(&extended(), BOTH);
    assert!(half.agreed.ecn);
    let header = &syn(&extended(), &peer, Flags::empty());
    let payload = Payload::EMPTY;
    half.on_segment(peer.now, &Segment { header, payload, segment_size: None, ecn: Ecn::NotEct });
    assert!(!half.agreed.ecn);
    assert_eq!(line(&half.syn_ack(&extended().profile, peer.now)), "SA 0:1 ack 1");

    let setup = offering();
    let mut peer = setup.connecting();
    peer.next_timer();
    peer.drain();
    let options = setup.syn_options(&peer);
    peer.recv(seg().syn().flags(Flags::ECE).options(options)).drain();
    peer.write(1000).expect(&["PA 1:1001 ack 1"]);
}

/// The FIN by itself, and a reset; but never a pure acknowledgement.
#[test]
fn a_fin_and_a_reset_are_ecn_capable_and_acknowledgements_never() {
    for (setup, capable) in [(extended(), " ect0"), (offering(), "")] {
        let mut peer = agreed(setup.ack_delay(0));
        peer.recv(seg().data(100)).next_or_now("A 1:1 ack 101");
        peer.shutdown().expect(&[&format!("FA 1:2 ack 101{capable}")]);
        peer.abort();
        let reset = peer.drain();
        assert_eq!(reset[0].ecn == Ecn::Ect0, !capable.is_empty(), "{}", reset[0].line());
    }
}

/// RFC 3168 section 5: ECN-capable is what is sent for a controller that answers marks, and nothing else.
#[test]
fn a_controller_that_ignores_marks_sends_nothing_ecn_capable() {
    for word in ["bbr", "no-congestion-control"] {
        let mut peer = agreed(offering());
        let deaf = compose(word).unwrap().congestion;
        peer.connection.exchange(peer.now, UnitChoice::Congestion(deaf)).unwrap();
        peer.write(1000).expect(&["PA 1:1001 ack 1"]);
        peer.recv(seg().ack(1001)).drain();
        // Its successor does.
        peer.connection
            .exchange(peer.now, UnitChoice::Congestion(CongestionChoice::reno()))
            .unwrap();
        peer.wait(1000).write(1000).expect(&["PA 1001:2001 ack 1 ect0"]);
    }
}

/// `TCP_INFO` of Linux calls it CWR: from the reduction for a mark until what was sent before is acknowledged.
#[test]
fn the_window_is_reduced_for_a_mark_until_that_is_acknowledged() {
    let mut peer = agreed(offering());
    peer.write(8_000).drain();
    assert!(!peer.info().reduced_for_mark);
    peer.recv(seg().ack(1001).flags(Flags::ACK | Flags::ECE)).drain();
    assert!(peer.info().reduced_for_mark);
    peer.recv(seg().ack(8001));
    assert!(!peer.info().reduced_for_mark);
}
