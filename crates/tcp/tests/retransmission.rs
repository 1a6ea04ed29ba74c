//! Loss and its repair without SACK: the timer (RFC 6298), the congestion window (RFC 5681), Limited Transmit
//! (RFC 3042) and NewReno (RFC 6582), worked by hand.
//!
//! Segments are 1000 bytes, the initial window is 10 of them, SRTT is 100 ms and RTO 300 ms at the start.

use crate::common;

use common::{Peer, Setup, ms, seg};
use transom_tcp::{ConnectionError, Phase, Report, Rfc6298Config, Signal, State, TimerChoice};

/// A NewReno sender with ten segments out and twenty more queued.
fn ten_out() -> Peer {
    let mut peer = Setup::newreno().active();
    peer.write(30_000);
    assert_eq!(peer.ranges().len(), 10);
    peer
}

/// RFC 6298 section 5: (5.1) the timer starts with the data, (5.5) it backs off. [MUST-19] [MUST-18]
#[test]
fn silence_backs_off_exponentially() {
    let mut peer = Setup::newreno().active();
    peer.write(500);
    peer.run_to(5_000);
    peer.expect_timed(&[
        "100 PA 1:501 ack 1",
        "400 PA 1:501 ack 1",
        "1000 PA 1:501 ack 1",
        "2200 PA 1:501 ack 1",
        "4600 PA 1:501 ack 1",
    ]);
    assert_eq!(peer.info().backoffs, 4);
    assert_eq!(peer.info().cwnd, 1000);
}

/// (5.3) An acknowledgement of new data restarts it; (5.2) one of everything stops it.
#[test]
fn acknowledgements_restart_and_stop_the_timer() {
    let mut peer = Setup::newreno().active();
    peer.write(2000).drain();
    peer.run_to(200).recv(seg().ack(1001));
    // The sample is 100 ms: RTTVAR = 3/4 · 50 = 37.5, RTO = 100 + 150.
    assert_eq!(peer.info().rto, ms(250));
    peer.run_to(449).silent();
    peer.run_to(450).expect(&["PA 1001:2001 ack 1"]);
    peer.recv(seg().ack(2001));
    peer.run_to(100_000).silent();
    assert_eq!(peer.connection.next_timeout(), None);
}

/// Karn's rule: what was sent twice gives no sample, and the back-off stays until there is one. [MUST-18]
#[test]
fn a_retransmitted_segment_gives_no_sample() {
    let mut peer = Setup::newreno().active();
    peer.write(500).run_to(1_050).drain();
    peer.recv(seg().ack(501));
    let info = peer.info();
    assert_eq!((info.srtt, info.rto), (Some(ms(100)), ms(1_200)), "two back-offs");
    peer.write(500).drain();
    peer.run_to(2_249).silent();
    peer.run_to(2_250).expect(&["PA 501:1001 ack 1"]);
    peer.recv(seg().ack(1001));
    peer.write(500).drain();
    peer.wait(100).recv(seg().ack(1501));
    assert_eq!(peer.info().rto, ms(250), "a sample at last");
}

/// A cumulative acknowledgement held up by a hole says nothing about the segments behind the hole, although they
/// were sent only once.
#[test]
fn a_hole_does_not_stretch_the_round_trip() {
    let mut peer = Setup::newreno().active();
    peer.write(2000).drain();
    peer.run_to(400).expect(&["A 1:1001 ack 1"]);
    // The first segment was lost; its retransmission takes the usual 100 ms, and uncovers the second.
    peer.run_to(500).recv(seg().ack(2001));
    assert_eq!(peer.info().srtt, Some(ms(100)));
    // With timestamps the retransmission itself is measured.
    let mut peer = Setup::newreno().timestamps().active();
    peer.write(1_500).drain();
    peer.run_to(400).drain();
    peer.run_to(460).recv(seg().ack(1501).ts(5_460, 7_400));
    assert_eq!(peer.info().last_rtt, Some(ms(60)));
}

/// [MUST-20] R1 and R2, [SHLD-9] [SHLD-10] [SHLD-11] [MUST-47]
#[test]
fn two_thresholds_of_patience() {
    let mut peer = Setup::newreno().active();
    peer.write(500);
    let (mut trouble_at, mut reports) = (None, Vec::new());
    while peer.state() == State::Established {
        peer.next_timer();
        if trouble_at.is_none() && peer.take_signals().contains(&Signal::Trouble) {
            trouble_at = Some(peer.info().retransmits);
        }
        reports.extend(peer.connection.take_report());
        assert!(peer.millis() < 3_600_000, "R2 was not reached in an hour");
    }
    assert_eq!(trouble_at, Some(3), "R1");
    assert_eq!(reports, [Report::Retransmitting(3)]);
    assert_eq!(peer.drain().len(), 1 + 15, "R2");
    assert!(peer.millis() - 100 >= 100_000, "R2 came after {} ms", peer.millis());
    assert_eq!(peer.connection.error(), Some(ConnectionError::TimedOut));
    assert!(peer.take_signals().contains(&Signal::Closed));
}

/// A report that nobody took is void once the peer is heard again; the next trouble is reported again.
#[test]
fn trouble_that_is_over_is_not_reported() {
    let mut peer = Setup::newreno().active();
    let trouble = |peer: &mut Peer, bytes| {
        peer.write(bytes).drain();
        while peer.info().retransmits < 3 {
            peer.next_timer();
        }
        peer.drain();
    };
    trouble(&mut peer, 500);
    peer.recv(seg().ack(501));
    assert_eq!(peer.connection.take_report(), None);
    trouble(&mut peer, 500);
    assert_eq!(peer.connection.take_report(), Some(Report::Retransmitting(3)));
    peer.next_timer();
    assert_eq!(peer.connection.take_report(), None);
}

/// [MUST-21] The application sets R2, up to never.
#[test]
fn the_second_threshold_can_be_infinite() {
    let mut peer = Setup::newreno().profile(|profile| profile.r2 = None).active();
    peer.write(500).run_to(86_400_000);
    peer.expect_state(State::Established);
    // At most one retransmission per minute: the back-off ends at 60 s.
    let sent = peer.drain();
    assert!(sent.len() > 1_400 && sent.len() < 1_460, "{}", sent.len());
    let mut peer = Setup::newreno().profile(|profile| profile.r2 = Some(2)).active();
    peer.write(500).run_to(86_400_000).expect_state(State::Closed);
    assert_eq!(peer.drain().len(), 3);
}

/// Progress starts the count anew: it is one segment that must fail R2 times.
#[test]
fn progress_resets_the_count() {
    let mut peer = Setup::newreno().profile(|profile| profile.r2 = Some(3)).active();
    peer.write(1000);
    for i in 0..20 {
        peer.next_timer().next_timer();
        peer.recv(seg().ack(1 + 100 * (i + 1)).win(100));
        peer.write(100);
        peer.expect_state(State::Established);
    }
}

/// RFC 5681 section 3.1 after a timeout: ssthresh is half the flight, cwnd one segment, then slow start over what is
/// missing. [MUST-19]
#[test]
fn a_timeout_goes_back_and_starts_slowly() {
    let mut peer = ten_out();
    peer.run_to(400).expect(&["A 1:1001 ack 1"]);
    let info = peer.info();
    assert_eq!((info.cwnd, info.ssthresh, info.phase), (1000, 5000, Phase::Loss));
    peer.run_to(500).recv(seg().ack(1001));
    peer.expect(&["A 1001:2001 ack 1", "A 2001:3001 ack 1"]);
    assert_eq!(peer.info().cwnd, 2000);
    peer.run_to(600).recv(seg().ack(2001)).recv(seg().ack(3001));
    peer.expect(&[
        "A 3001:4001 ack 1",
        "A 4001:5001 ack 1",
        "A 5001:6001 ack 1",
        "A 6001:7001 ack 1",
    ]);
    assert_eq!(peer.info().cwnd, 4000);
    // Everything else had arrived: the hole is closed and all ten are acknowledged. 1000 bytes take cwnd to
    // ssthresh, the rest counts towards congestion avoidance.
    peer.run_to(700).recv(seg().ack(10_001));
    let info = peer.info();
    assert_eq!((info.phase, info.ssthresh), (Phase::Open, 5000));
    assert!(info.cwnd >= 5000, "the end of the repair is not a reason to slow down: {}", info.cwnd);
    assert_eq!(peer.ranges().first(), Some(&(10_001, 11_001)), "new data");
}

/// The same segment lost again: ssthresh stays (RFC 5681 section 3.1).
#[test]
fn a_second_timeout_leaves_ssthresh() {
    let mut peer = ten_out();
    peer.run_to(400);
    assert_eq!(peer.info().ssthresh, 5000);
    peer.run_to(1_000);
    peer.expect_timed(&["400 A 1:1001 ack 1", "1000 A 1:1001 ack 1"]);
    assert_eq!((peer.info().cwnd, peer.info().ssthresh), (1000, 5000));
}

/// RFC 3042: each of the first two duplicates lets one new segment out, whatever cwnd says.
/// RFC 5681 section 3.2, RFC 6582 section 3.2 steps 2 to 4: then the fast retransmission.
#[test]
fn limited_transmit_fast_retransmit_and_recovery() {
    let mut peer = ten_out();
    peer.run_to(200);
    peer.recv(seg()).expect(&["A 10001:11001 ack 1"]);
    peer.recv(seg()).expect(&["A 11001:12001 ack 1"]);
    assert_eq!(peer.info().cwnd, 10_000, "Limited Transmit changes no window");
    peer.recv(seg()).expect(&["A 1:1001 ack 1"]);
    let info = peer.info();
    // FlightSize without what Limited Transmit sent: 10 000.
    assert_eq!((info.ssthresh, info.phase), (5000, Phase::Recovery));
    assert_eq!(info.counters.fast_recoveries, 1);
    // 12 000 outstanding; RFC 5681's inflated window is 5000 + 1000 · duplicates. It admits the segment
    // 12001:13001 at the eighth duplicate, and one more for each after it.
    for _ in 4..8 {
        peer.recv(seg()).silent();
    }
    for i in 0..4 {
        peer.recv(seg());
        peer.expect(&[&format!("A {}:{} ack 1", 12_001 + i * 1000, 13_001 + i * 1000)]);
    }
    // Full acknowledgement (step 3): cwnd = min(ssthresh, max(FlightSize, SMSS) + SMSS) = min(5000, 4000 + 1000).
    peer.run_to(300).recv(seg().ack(12_001));
    let info = peer.info();
    assert_eq!((info.phase, info.cwnd, info.in_flight), (Phase::Open, 5000, 5000));
    peer.expect(&["A 16001:17001 ack 1"]);
    assert_eq!(peer.info().counters.timeouts, 0);
}

/// RFC 6582 section 3.2 step 3: a partial acknowledgement retransmits the next hole at once.
#[test]
fn partial_acknowledgements_repair_one_hole_each() {
    let mut peer = ten_out();
    peer.run_to(200);
    // Segments 1, 4 and 8 are lost: seven duplicates for the others.
    for _ in 0..7 {
        peer.recv(seg());
    }
    assert_eq!(peer.ranges(), [(10_001, 11_001), (11_001, 12_001), (1, 1001)]);
    peer.run_to(300).recv(seg().ack(3001));
    assert_eq!(peer.ranges().first(), Some(&(3001, 4001)));
    assert_eq!(peer.info().phase, Phase::Recovery);
    peer.run_to(400).recv(seg().ack(7001));
    assert_eq!(peer.ranges().first(), Some(&(7001, 8001)));
    peer.run_to(500).recv(seg().ack(12_001));
    let info = peer.info();
    assert_eq!((info.phase, info.ssthresh), (Phase::Open, 5000));
    assert!(info.cwnd <= 5000);
    assert_eq!(info.counters.timeouts, 0);
    assert_eq!(info.counters.fast_recoveries, 1, "one reduction for one window");
}

/// RFC 6582 step 3: what the partial acknowledgement covered is taken off the inflated window, but for one segment.
#[test]
fn a_partial_acknowledgement_deflates_the_window() {
    let mut peer = ten_out();
    peer.run_to(200);
    // 1:1001 and 3001:4001 are lost; eight others and what Limited Transmit sent arrive: nine duplicates before the
    // retransmission does. The window is 5000 + 9 · 1000, and 14001 is what it admits.
    for _ in 0..9 {
        peer.recv(seg());
    }
    assert_eq!(peer.ranges().last(), Some(&(13_001, 14_001)));
    // 14000 - 3000 + 1000 = 12000 against 3001:14001 outstanding: the hole, and one new segment.
    peer.run_to(300).recv(seg().ack(3001));
    peer.expect(&["A 3001:4001 ack 1", "A 14001:15001 ack 1"]);
}

/// RFC 6582 step 3: the timer restarts with the first partial acknowledgement only ("impatient").
#[test]
fn many_holes_end_in_a_timeout() {
    let mut peer = ten_out();
    peer.run_to(200);
    for _ in 0..5 {
        peer.recv(seg());
    }
    let rto = peer.info().rto.as_millis();
    peer.run_to(300).recv(seg().ack(2001));
    peer.run_to(400).recv(seg().ack(3001));
    peer.run_to(500).recv(seg().ack(4001));
    peer.drain();
    assert_eq!(peer.info().counters.timeouts, 0);
    peer.run_to(300 + rto + 1);
    assert_eq!(peer.info().counters.timeouts, 1, "armed at 300 ms for {rto} ms");
    assert_eq!(peer.drain()[0].line(), "A 4001:5001 ack 1");
}

/// RFC 6582 section 3.2 step 2 and 4: after a timeout, duplicates for what was sent before it start nothing.
#[test]
fn duplicates_caused_by_our_own_retransmissions_start_nothing() {
    let mut peer = ten_out();
    peer.run_to(400).drain();
    // The window was only delayed: acknowledgements of all ten arrive, then duplicates for the go-back-N copies.
    peer.recv(seg().ack(2001)).recv(seg().ack(10_001));
    peer.drain();
    assert_eq!(peer.info().phase, Phase::Open);
    for _ in 0..6 {
        peer.recv(seg().ack(10_001));
    }
    let info = peer.info();
    assert_eq!(info.counters.fast_recoveries, 0);
    assert!(peer.ranges().iter().all(|&(from, _)| from > 10_000), "nothing is sent again");
    // Limited Transmit lets two more out, not one for every duplicate.
    assert!(info.snd_nxt.since(info.snd_una) <= info.cwnd + 2000);
}

/// The same when the acknowledgements advance in small steps: the timer was wrong, every segment was sent twice.
#[test]
fn a_spurious_timeout_is_not_followed_by_a_fast_retransmission() {
    let mut peer = ten_out();
    peer.run_to(400).drain();
    for i in 1..=10 {
        peer.recv(seg().ack(1 + i * 1000));
    }
    let copies = peer.ranges().iter().filter(|range| range.0 < 10_001).count();
    assert!(copies >= 3, "{copies} copies are on their way");
    for _ in 0..copies {
        peer.recv(seg().ack(10_001));
    }
    assert_eq!(peer.info().counters.fast_recoveries, 0);
}

/// RFC 6582 section 4: a loss right behind `recover` is still found, by the acknowledgement heuristic.
#[test]
fn a_loss_right_behind_the_recovery_point_is_found() {
    let mut peer = ten_out();
    peer.run_to(200);
    for _ in 0..11 {
        peer.recv(seg());
    }
    peer.run_to(300).recv(seg().ack(12_001));
    peer.drain();
    assert_eq!(peer.info().phase, Phase::Open);
    // 12001:13001 is lost, what follows arrives: the last acknowledgement advanced by more than four segments, so
    // the duplicates could be the work of the retransmission, and the timer decides.
    for _ in 0..3 {
        peer.recv(seg().ack(12_001));
    }
    assert_eq!(peer.info().counters.fast_recoveries, 1);
    // After a small step they cannot be: a second recovery begins.
    let mut peer = ten_out();
    peer.run_to(200);
    for _ in 0..11 {
        peer.recv(seg());
    }
    peer.run_to(300).recv(seg().ack(11_001)).recv(seg().ack(12_001));
    peer.drain();
    for _ in 0..3 {
        peer.recv(seg().ack(12_001));
    }
    assert_eq!(peer.info().counters.fast_recoveries, 2);
    assert!(peer.ranges().contains(&(12_001, 13_001)));
}

/// RFC 5681 section 2: what is a duplicate acknowledgement, and what is not.
#[test]
fn only_true_duplicates_count() {
    let mut peer = ten_out();
    peer.recv(seg().win(60_000)); // another window
    peer.recv(seg().data(10)); // data
    peer.recv(seg().win(60_000).data(10));
    peer.recv(seg().fin());
    assert_eq!(peer.info().duplicate_acks, 0);
    peer.drain();
    for i in 1..=3 {
        peer.recv(seg().win(60_000 + i));
    }
    assert_eq!(peer.info().duplicate_acks, 0);
    // Without anything outstanding there is nothing to duplicate.
    let mut peer = Setup::newreno().active();
    peer.recv(seg()).recv(seg()).recv(seg()).recv(seg()).silent();
    assert_eq!(peer.info().counters.fast_recoveries, 0);
}

/// Spoofed duplicates cannot inflate the flight without end: what may have left the network is what is outstanding.
#[test]
fn duplicates_without_end() {
    let mut peer = Setup::newreno().window(65_535).active();
    peer.write(200_000).drain();
    for _ in 0..200 {
        peer.recv(seg());
    }
    let info = peer.info();
    assert!(info.snd_nxt.since(info.snd_una) <= 65_535, "{info:#?}");
    assert_eq!(info.ssthresh, 5000);
}

/// An acknowledgement that divides a segment is no reason for speed (RFC 3465).
#[test]
fn acknowledgement_division_gains_nothing() {
    let mut peer = ten_out();
    peer.run_to(200);
    for i in 1..=1000 {
        peer.recv(seg().ack(1 + i));
    }
    assert_eq!(peer.info().cwnd, 11_000, "1000 bytes acknowledged in slow start add 1000");
}

/// RFC 6298's parameters are a profile's: with the minimum of the text, one second.
#[test]
fn the_minimum_is_a_parameter() {
    let mut peer = Setup::newreno().min_rto(1000).active();
    peer.write(10);
    peer.run_to(1_100);
    peer.expect_timed(&["100 PA 1:11 ack 1", "1100 PA 1:11 ack 1"]);
    let TimerChoice::Rfc6298(timer) = peer.connection.profile().timer else {
        panic!("another timer")
    };
    assert_eq!(timer.min, ms(1000));
}

/// On a steady path an acknowledgement that the peer delays is no loss.
#[test]
fn a_delayed_acknowledgement_is_no_loss() {
    let mut setup = Setup::newreno();
    setup.profile.timer = TimerChoice::Rfc6298(Rfc6298Config::default());
    setup.rtt = 300;
    let mut peer = setup.active();
    for i in 1..=100 {
        peer.write(1000).wait(300).recv(seg().ack(i * 1000 + 1));
    }
    peer.write(1000).wait(499).recv(seg().ack(101_001));
    assert_eq!(peer.info().counters.timeouts, 0);
}

/// Data sent after a silence longer than the RTO starts from the initial window again (RFC 5681 section 4.1).
#[test]
fn restart_after_idle() {
    let mut peer = Setup::newreno().active();
    peer.write(40_000);
    for i in 1..=40 {
        peer.recv(seg().ack(1 + i * 1000));
    }
    assert!(peer.info().cwnd > 20_000);
    peer.drain();
    peer.wait(5_000);
    peer.write(40_000);
    assert_eq!(peer.ranges().len(), 10);
    assert_eq!(peer.info().cwnd, 10_000);
}
