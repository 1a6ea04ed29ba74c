//! Zero windows, seen from both ends (RFC 9293 sections 3.8.6.1 and 3.10.7.4).

use crate::common;

use common::{Peer, Setup, ms, seg};
use transom_tcp::{ConnectionError, Signal, State};

/// A peer that has taken 1000 bytes and closed its window, at 200 ms; more is queued. RTO is 250 ms.
fn closed_window(queued: usize) -> Peer {
    let mut peer = Setup::default().window(1000).active();
    peer.write(1000 + queued).expect(&[if queued > 0 {
        "A 1:1001 ack 1"
    } else {
        "PA 1:1001 ack 1"
    }]);
    peer.run_to(200).recv(seg().ack(1001).win(0)).silent();
    assert_eq!(peer.info().rto, ms(250));
    peer
}

/// [MUST-36] [SHLD-29] [SHLD-30] The first probe after one RTO, then with doubled intervals up to a minute, one byte
/// each.
#[test]
fn probes_back_off() {
    let mut peer = closed_window(500);
    let mut times = vec![];
    while peer.millis() < 300_000 {
        peer.next_timer();
        for out in peer.drain() {
            assert_eq!(out.line(), "A 1001:1002 ack 1");
            times.push(out.at.as_millis() - 200);
            peer.recv(seg().ack(1001).win(0)).silent();
        }
    }
    assert_eq!(times[..8], [250, 750, 1_750, 3_750, 7_750, 15_750, 31_750, 63_750]);
    assert_eq!(times[8], 63_750 + 60_000, "a minute at most");
}

/// [MUST-37] [MAY-8] The window may stay closed for as long as probes are answered.
#[test]
fn answered_probes_keep_the_connection() {
    let mut peer = closed_window(500);
    for _ in 0..200 {
        peer.next_timer();
        if !peer.drain().is_empty() {
            peer.recv(seg().ack(1001).win(0));
        }
    }
    assert!(peer.millis() > 3_600_000);
    peer.expect_state(State::Established);
    peer.recv(seg().ack(1001).win(1000)).expect(&["PA 1001:1501 ack 1"]);
}

/// Unanswered ones do not: a peer that is gone is found out by R2.
#[test]
fn unanswered_probes_end_it() {
    let mut peer = closed_window(500);
    peer.wait(3_600_000).expect_state(State::Closed);
    assert_eq!(peer.connection.error(), Some(ConnectionError::TimedOut));
    assert_eq!(peer.drain().len(), 15);
}

/// The probe's byte may be taken; what follows continues behind it.
#[test]
fn a_probe_may_be_accepted() {
    let mut peer = closed_window(500);
    peer.next_timer().expect(&["A 1001:1002 ack 1"]);
    peer.recv(seg().ack(1002).win(0)).silent();
    assert_eq!(peer.info().unacknowledged, 499);
    peer.next_timer().expect(&["A 1002:1003 ack 1"]);
    peer.recv(seg().ack(1003).win(2000)).expect(&["PA 1003:1501 ack 1"]);
    peer.recv(seg().ack(1501));
    assert_eq!(peer.info().unacknowledged, 0);
    assert_eq!(
        peer.connection.next_timeout().map(|at| at > peer.now + ms(2000)),
        Some(true),
        "only the idle timer"
    );
}

/// The byte of a probe is taken although a window update that is too small to use came in between.
#[test]
fn a_probe_accepted_late_is_believed() {
    let mut peer = closed_window(5000);
    peer.next_timer().expect(&["A 1001:1002 ack 1"]);
    peer.recv(seg().ack(1001).win(10)).silent(); // a silly window
    peer.recv(seg().ack(1002).win(9)).silent();
    assert_eq!(peer.info().unacknowledged, 4999);
    assert_eq!(peer.info().counters.challenge_acks, 0);
}

/// The last byte of a stream and the FIN can be probes.
#[test]
fn a_probe_of_the_last_byte_and_of_the_fin() {
    let mut peer = closed_window(1);
    peer.next_timer().expect(&["PA 1001:1002 ack 1"]);
    peer.recv(seg().ack(1002).win(0));
    peer.shutdown().silent();
    peer.next_timer().expect(&["FA 1002:1003 ack 1"]);
    peer.recv(seg().ack(1003).win(0)).expect_state(State::FinWait2);
}

/// A lost window update is made good by the answer to the next probe.
#[test]
fn the_answer_to_a_probe_opens_the_window() {
    let mut peer = closed_window(500);
    peer.next_timer().expect(&["A 1001:1002 ack 1"]);
    peer.recv(seg().ack(1002).win(5000)).expect(&["PA 1002:1501 ack 1"]);
}

/// A window update opens at once, and the persist timer is gone.
#[test]
fn an_update_opens_at_once() {
    let mut peer = closed_window(2500);
    peer.next_timer().next_timer().drain();
    peer.recv(seg().ack(1001).win(60_000));
    peer.expect(&["A 1001:2001 ack 1", "A 2001:3001 ack 1", "PA 3001:3501 ack 1"]);
    peer.wait(100).recv(seg().ack(3501).win(0));
    // The next closed window starts with a fresh back-off.
    peer.write(10).silent();
    let asked = peer.millis();
    let rto = peer.info().rto.as_millis();
    peer.next_timer();
    assert_eq!(peer.drain()[0].at.as_millis(), asked + rto);
}

/// Data in flight when the window closes is retransmitted, not probed, and a peer that answers is not given up.
/// [SHLD-17] [MUST-34] [MUST-35] [MAY-7]
#[test]
fn a_window_that_closes_over_data_in_flight() {
    let mut peer = Setup::default().active();
    peer.write(3000).drain();
    peer.run_to(200).recv(seg().ack(1001).win(0)).silent();
    while peer.millis() < 1_000_000 {
        peer.next_timer();
        let sent = peer.drain();
        if !sent.is_empty() {
            assert_eq!(sent[0].seq(), 1001);
            assert!(sent.len() == 1 && sent[0].end() <= 2001);
            peer.recv(seg().ack(1001).win(0));
        }
    }
    peer.expect_state(State::Established);
    peer.recv(seg().ack(1001).win(10_000));
    peer.next_timer();
    peer.wait(100).recv(seg().ack(2001).win(10_000));
    peer.wait(100).recv(seg().ack(3001).win(10_000));
    assert_eq!(peer.info().unacknowledged, 0);
}

/// The application is told of room once the peer takes data again.
#[test]
fn a_writer_that_waits_is_woken() {
    let mut peer = Setup::default()
        .profile(|p| (p.send_buffer, p.max_send_buffer) = (5000, 5000))
        .window(1000)
        .active();
    peer.write(5000).drain();
    assert!(peer.connection.write(peer.now, b"x").is_err());
    peer.recv(seg().ack(1001).win(0));
    assert!(!peer.take_signals().contains(&Signal::Writable), "a fifth is too little");
    peer.recv(seg().ack(1001).win(4000)).recv(seg().ack(3001).win(2000));
    assert!(peer.take_signals().contains(&Signal::Writable));
}

// ----- the receiving end -----

/// A full receive buffer: a probe is answered with RCV.NXT and the window, its byte is not taken, but what it
/// acknowledges and its urgent pointer count. [MUST-66]
#[test]
fn a_full_receiver_answers_probes() {
    let mut peer = Setup::default().receive_buffer(2000).active();
    peer.write(100).drain();
    peer.recv(seg().data(1000)).recv(seg().data(1000)).expect(&["A 101:101 ack 2001"]);
    assert_eq!(peer.advertised(), 0);
    for _ in 0..20 {
        peer.recv(seg().seq(2001).data(1)).expect(&["A 101:101 ack 2001"]);
        assert_eq!(peer.advertised(), 0);
    }
    assert_eq!(peer.info().unacknowledged, 100);
    peer.take_signals();
    peer.recv(seg().seq(2001).ack(101).data(1).urg(500)).expect(&["A 101:101 ack 2001"]);
    assert_eq!(peer.info().unacknowledged, 0, "its acknowledgement was processed");
    assert!(peer.take_signals().contains(&Signal::Urgent), "its urgent pointer was processed");
    assert_eq!(peer.connection.readable(), 2000);
    // A bare acknowledgement at RCV.NXT is acceptable and needs no answer.
    peer.recv(seg().seq(2001).ack(101)).silent();
    // And a reset is a reset.
    peer.recv(seg().seq(2001).rst()).expect_state(State::Closed);
}

/// The window opens again with the first read that makes a worthwhile amount of room.
#[test]
fn a_full_receiver_says_when_there_is_room() {
    let mut peer = Setup::default().receive_buffer(4000).active();
    for _ in 0..4 {
        peer.recv(seg().data(1000));
    }
    peer.drain();
    peer.read(500).silent();
    peer.read(500).expect(&["A 1:1 ack 4001"]);
    assert_eq!(peer.advertised(), 1000);
    peer.read(3000).expect(&["A 1:1 ack 4001"]);
    assert_eq!(peer.advertised(), 4000);
}

/// A FIN fits behind a window that its data fills exactly.
#[test]
fn a_fin_behind_a_full_window() {
    let mut peer = Setup::default().receive_buffer(2000).active();
    peer.recv(seg().data(1000)).recv(seg().data(1000).fin()).expect(&["A 1:1 ack 2002"]);
    peer.expect_state(State::CloseWait);
    peer.read(2000);
    assert!(peer.connection.end_of_stream());
}
