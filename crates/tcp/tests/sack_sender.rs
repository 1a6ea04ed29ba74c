//! Repair with selective acknowledgements (RFC 6675), worked by hand.
//!
//! Ten segments of 1000 bytes are out at cwnd 10 000 and more are queued. `pipe` is the `in_flight` of the snapshot.

use crate::common;

use common::{Peer, Setup, ms, seg};
use transom_tcp::Phase;

fn ten_out_of(total: usize) -> Peer {
    let mut peer = Setup::default().active();
    peer.write(total);
    assert_eq!(peer.ranges().len(), 10);
    peer.run_to(200);
    peer
}

/// The first of ten is lost. Section 5 steps 1 to 4 and C; Limited Transmit by steps 3.1 to 3.3.
#[test]
fn one_loss_in_a_window() {
    let mut peer = ten_out_of(30_000);
    peer.recv(seg().sack(&[(1001, 2001)])).expect(&["A 10001:11001 ack 1"]);
    assert_eq!((peer.info().in_flight, peer.info().phase), (10_000, Phase::Disorder));
    peer.recv(seg().sack(&[(1001, 3001)])).expect(&["A 11001:12001 ack 1"]);
    // 3000 bytes above HighACK are more than (DupThresh - 1) · SMSS: IsLost(1).
    peer.recv(seg().sack(&[(1001, 4001)])).expect(&["A 1:1001 ack 1"]);
    let info = peer.info();
    assert_eq!((info.phase, info.ssthresh, info.cwnd), (Phase::Recovery, 5000, 5000));
    // pipe: 12 000 sent, 3000 arrived, 1000 lost and sent again.
    assert_eq!(info.in_flight, 9000);
    for (right, pipe) in [(5001, 8000), (6001, 7000), (7001, 6000), (8001, 5000)] {
        peer.recv(seg().sack(&[(1001, right)])).silent();
        assert_eq!(peer.info().in_flight, pipe);
    }
    // Now cwnd - pipe reaches 1 SMSS with each arrival, and NextSeg rule 2 gives new data.
    peer.recv(seg().sack(&[(1001, 9001)])).expect(&["A 12001:13001 ack 1"]);
    peer.recv(seg().sack(&[(1001, 10_001)])).expect(&["A 13001:14001 ack 1"]);
    peer.recv(seg().sack(&[(1001, 11_001)])).expect(&["A 14001:15001 ack 1"]);
    peer.recv(seg().sack(&[(1001, 12_001)])).expect(&["A 15001:16001 ack 1"]);
    assert_eq!(peer.info().in_flight, 5000, "four new segments and the retransmission");
    // RecoveryPoint was 12001: recovery ends.
    peer.run_to(300).recv(seg().ack(12_001)).expect(&["A 16001:17001 ack 1"]);
    let info = peer.info();
    assert_eq!((info.phase, info.cwnd, info.in_flight), (Phase::Open, 5000, 5000));
    assert_eq!((info.counters.timeouts, info.counters.fast_recoveries), (0, 1));
}

/// RFC 6675 keeps the pipe as full as the window allows all along, so the end of recovery takes nothing back; RFC 6582's step 3
/// does, for senders who do not know the pipe. Here the pipe is empty only because there was nothing more to send.
#[test]
fn the_end_of_recovery_leaves_the_window_alone() {
    let mut peer = ten_out_of(10_000);
    for right in [2001, 3001] {
        peer.recv(seg().sack(&[(1001, right)])).silent();
    }
    peer.recv(seg().sack(&[(1001, 4001)])).expect(&["A 1:1001 ack 1"]);
    peer.recv(seg().sack(&[(1001, 10_001)])).silent();
    peer.run_to(300).recv(seg().ack(10_001)).silent();
    let info = peer.info();
    assert_eq!(
        (info.phase, info.cwnd, info.ssthresh, info.in_flight),
        (Phase::Open, 5000, 5000, 0)
    );
}

/// Three separate losses are repaired within one round trip; NextSeg rule 1, lowest first.
#[test]
fn several_losses_in_a_window() {
    let mut peer = ten_out_of(10_000);
    peer.recv(seg().sack(&[(1001, 2001)])).silent();
    peer.recv(seg().sack(&[(3001, 4001), (1001, 2001)])).silent();
    // Three discontiguous ranges: 1:1001 is lost. 2001:3001 has two ranges above it, of 2000 bytes: not lost.
    peer.recv(seg().sack(&[(5001, 6001), (3001, 4001), (1001, 2001)])).expect(&["A 1:1001 ack 1"]);
    assert_eq!(peer.info().in_flight, 7000);
    peer.recv(seg().sack(&[(5001, 7001), (3001, 4001), (1001, 2001)])).silent();
    assert_eq!(
        peer.info().in_flight,
        5000,
        "6001:7001 arrived, 2001:3001 is lost by 3000 bytes above"
    );
    // pipe 4000 < cwnd 5000.
    peer.recv(seg().sack(&[(5001, 8001), (3001, 4001), (1001, 2001)]));
    peer.expect(&["A 2001:3001 ack 1", "A 4001:5001 ack 1"]);
    // 4001:5001 is lost by 3000 bytes above it, so pipe was 5000 - 1000 - 1000 before the two.
    peer.recv(seg().sack(&[(5001, 9001), (3001, 4001), (1001, 2001)])).silent();
    peer.run_to(300).recv(seg().ack(2001).sack(&[(5001, 10_001), (3001, 4001)])).silent();
    peer.recv(seg().ack(10_001)).silent();
    let info = peer.info();
    assert_eq!(info.phase, Phase::Open);
    assert_eq!(info.counters.retransmitted_segments, 3);
    assert_eq!(info.counters.timeouts, 0);
}

/// IsLost by three discontiguous ranges above, though they are far from filling a segment each.
#[test]
fn three_small_ranges_are_enough() {
    let mut peer = Setup::default().profile(|profile| profile.nodelay = true).active();
    for _ in 0..8 {
        peer.write(100);
    }
    peer.drain();
    peer.recv(seg().sack(&[(101, 201), (301, 401)])).silent();
    peer.recv(seg().sack(&[(501, 601), (101, 201), (301, 401)]));
    // The window has room for two segments of 1000 bytes: rule 3 fills the other holes at once.
    peer.expect(&["A 1:101 ack 1", "A 201:301 ack 1", "A 401:501 ack 1"]);
    assert_eq!(peer.info().duplicate_acks, 2);
    assert_eq!(peer.info().phase, Phase::Recovery);
}

/// Section 2: an acknowledgement that brings new SACK information is a duplicate although it also advances or changes
/// the window.
#[test]
fn duplicates_are_counted_by_new_information() {
    let mut peer = ten_out_of(10_000);
    // The second segment is lost. The first acknowledgement both advances and reports: DupAcks is 1 after it.
    peer.recv(seg().ack(1001).sack(&[(2001, 2501)]).win(60_000));
    // Half a segment cannot be split off; nothing new is on the scoreboard yet.
    assert_eq!(peer.info().duplicate_acks, 0);
    peer.recv(seg().ack(1001).sack(&[(2001, 3001)]).win(59_000));
    assert_eq!(peer.info().duplicate_acks, 1);
    peer.recv(seg().ack(1001).sack(&[(2001, 3001)]).win(59_000));
    assert_eq!(peer.info().duplicate_acks, 1, "nothing new");
    let mut peer = ten_out_of(10_000);
    peer.recv(seg().ack(1001).sack(&[(2001, 3001)]));
    assert_eq!(peer.info().duplicate_acks, 1, "reset by the advance, then counted");
    peer.recv(seg().ack(1001).sack(&[(2001, 4001)]).data(5).win(40_000));
    assert_eq!(peer.info().duplicate_acks, 2);
    peer.recv(seg().ack(1001).sack(&[(2001, 5001)]).win(30_000));
    assert!(peer.ranges().contains(&(1001, 2001)), "the third: fast retransmission");
}

/// NextSeg rule 3: nothing is known to be lost any more and no new data waits; holes below what arrived are filled.
#[test]
fn rule_3_fills_holes_that_are_not_yet_lost() {
    let mut peer = ten_out_of(10_000);
    peer.recv(seg().sack(&[(1001, 2001)])).silent();
    peer.recv(seg().sack(&[(1001, 3001)])).silent();
    peer.recv(seg().sack(&[(1001, 4001)])).expect(&["A 1:1001 ack 1"]);
    // 4001:5001 is missing. 2000 bytes above it do not make it lost; once pipe allows, it is sent all the same.
    peer.recv(seg().sack(&[(5001, 6001), (1001, 4001)])).silent(); // pipe 10 - 4 = 6
    peer.recv(seg().sack(&[(5001, 7001), (1001, 4001)])).silent(); // 5
    peer.recv(seg().ack(4001).sack(&[(5001, 7001)])); // 4: 4001, 7001, 8001, 9001 are out
    peer.expect(&["A 4001:5001 ack 1"]);
    assert_eq!(peer.info().in_flight, 5000, "both copies are in the pipe");
    assert_eq!(peer.info().phase, Phase::Recovery);
}

/// NextSeg rule 4: the tail of the window is lost as well. One rescue retransmission of the last segment, so that its
/// selective acknowledgement uncovers the others.
#[test]
fn rule_4_rescues_the_tail_once() {
    let mut peer = ten_out_of(10_000);
    for right in [2001, 3001, 4001, 5001, 6001, 7001] {
        peer.recv(seg().sack(&[(1001, right)]));
    }
    // 1:1001 was sent again; pipe: 1:1001 and the last three, so one more would fit cwnd 5000, but the fast
    // retransmission has not arrived yet.
    peer.expect(&["A 1:1001 ack 1"]);
    assert_eq!(peer.info().in_flight, 4000);
    peer.run_to(300).recv(seg().ack(7001)).expect(&["PA 9001:10001 ack 1"]);
    assert_eq!(peer.info().phase, Phase::Recovery, "the recovery point is 10001");
    // The rescue arrives: 7001 and 8001 turn out to be missing and are sent by rule 3.
    peer.run_to(310).recv(seg().ack(7001).sack(&[(9001, 10_001)]));
    peer.expect(&["A 7001:8001 ack 1", "A 8001:9001 ack 1"]);
    peer.run_to(410).recv(seg().ack(10_001)).silent();
    let info = peer.info();
    assert_eq!((info.phase, info.counters.timeouts), (Phase::Open, 0));
}

/// The rescue cuts the last segment out of a super-segment.
#[test]
fn rule_4_splits_a_super_segment() {
    let mut setup = Setup::default();
    setup.path.max_super_segment = Some(64_000);
    let mut peer = setup.active();
    peer.write(10_000);
    assert_eq!(peer.ranges(), [(1, 10_001)], "ten segments in one piece");
    for right in [2001, 3001, 4001, 5001, 6001, 7001] {
        peer.recv(seg().sack(&[(1001, right)]));
    }
    peer.expect(&["A 1:1001 ack 1"]);
    peer.recv(seg().ack(7001)).expect(&["PA 9001:10001 ack 1"]);
    // The holes before it are filled when the rescue is reported.
    peer.recv(seg().ack(7001).sack(&[(9001, 10_001)]));
    assert_eq!(peer.ranges(), [(7001, 9001)]);
}

/// A rescue that the window does not let out now is not spent.
#[test]
fn a_rescue_waits_for_room() {
    let mut peer = ten_out_of(10_000);
    for right in [2001, 3001, 4001] {
        peer.recv(seg().sack(&[(1001, right)]));
    }
    peer.expect(&["A 1:1001 ack 1"]);
    assert_eq!(peer.info().in_flight, 7000);
    peer.recv(seg().ack(4001)).silent();
    assert_eq!(peer.info().in_flight, 6000, "all of it believed in the network");
    peer.recv(seg().ack(5001)).silent();
    peer.recv(seg().ack(6001)).expect(&["PA 9001:10001 ack 1"]);
    assert_eq!(peer.info().in_flight, 5000);
    peer.recv(seg().ack(7001)).silent();
}

/// A timeout keeps the scoreboard (section 5.1): what arrived is not sent again.
#[test]
fn a_timeout_keeps_what_is_known() {
    let mut peer = ten_out_of(10_000);
    peer.recv(seg().sack(&[(2001, 4001)])).silent();
    peer.run_to(400);
    peer.expect(&["A 1:1001 ack 1"]);
    let info = peer.info();
    assert_eq!(
        (info.phase, info.cwnd, info.ssthresh, info.in_flight),
        (Phase::Loss, 1000, 5000, 1000)
    );
    peer.run_to(500).recv(seg().ack(1001).sack(&[(2001, 4001)]));
    peer.expect(&["A 1001:2001 ack 1", "A 4001:5001 ack 1"]);
    peer.run_to(600).recv(seg().ack(5001));
    assert_eq!(peer.ranges()[0], (5001, 6001));
}

/// Reneging (RFC 2018 section 8): after a timeout, what stands at SND.UNA is sent even if it was reported as held.
#[test]
fn a_peer_that_drops_what_it_reported_gets_it_again() {
    let mut peer = ten_out_of(10_000);
    peer.recv(seg().sack(&[(1001, 10_001)]));
    assert_eq!(peer.ranges(), [(1, 1001)]);
    // It acknowledges the first and has forgotten the rest.
    peer.run_to(300).recv(seg().ack(1001)).silent();
    assert_eq!(peer.info().in_flight, 0);
    peer.next_timer();
    assert_eq!(peer.ranges(), [(1001, 2001)]);
    for i in 2..=10 {
        peer.wait(10).recv(seg().ack(i * 1000 + 1));
    }
    assert_eq!(peer.info().unacknowledged, 0);
}

/// SACK was agreed but only bare duplicates arrive: three of them still mean a loss (RFC 5681 section 3.2).
#[test]
fn bare_duplicates_mean_loss_too() {
    let mut peer = ten_out_of(10_000);
    peer.recv(seg()).recv(seg()).silent();
    peer.recv(seg()).expect(&["A 1:1001 ack 1"]);
    assert_eq!((peer.info().phase, peer.info().ssthresh), (Phase::Recovery, 5000));
    // But not right after a repair, when they may be caused by it.
    peer.run_to(300).recv(seg().ack(10_001));
    peer.write(20_000).drain();
    for _ in 0..5 {
        peer.recv(seg().ack(10_001));
    }
    assert_eq!(peer.info().counters.fast_recoveries, 1);
}

/// Blocks about data never sent, empty, inverted and below SND.UNA change nothing.
#[test]
fn lies_are_not_believed() {
    let mut peer = ten_out_of(30_000);
    let before = peer.info();
    for lie in [(10_001, 12_001), (9001, 10_002), (5001, 5001), (6001, 5001), (-5000, 0), (-9, 500)]
    {
        peer.recv(seg().sack(&[lie])).silent();
        let info = peer.info();
        assert_eq!((info.in_flight, info.phase), (before.in_flight, Phase::Open), "{lie:?}");
    }
    // Far away, half the sequence space ahead.
    peer.recv(seg().sack(&[(1 << 31, (1 << 31) + 1000)])).silent();
    assert_eq!(peer.info().in_flight, before.in_flight);
}

/// One-byte blocks split nothing: the scoreboard has one record per segment at most.
#[test]
fn crumbs_are_rounded_away() {
    let mut peer = ten_out_of(30_000);
    for i in 0..400 {
        peer.recv(seg().sack(&[
            (3 + i * 16, 4 + i * 16),
            (7 + i * 16, 8 + i * 16),
            (11 + i * 16, 12 + i * 16),
        ]));
    }
    assert_eq!(peer.info().in_flight, 10_000);
    peer.silent();
}

/// RFC 2883: a first block below the acknowledgement reports a duplicate; it is counted and starts nothing.
#[test]
fn dsack_is_a_report_not_a_hole() {
    let mut peer = ten_out_of(30_000);
    for i in 1..=5 {
        peer.recv(seg().ack(i * 1000 + 1));
    }
    peer.drain();
    for _ in 0..4 {
        peer.recv(seg().ack(5001).sack(&[(1001, 2001)]));
    }
    let info = peer.info();
    assert_eq!(info.counters.duplicate_bytes_reported, 4000);
    assert_eq!((info.duplicate_acks, info.phase), (0, Phase::Open));
    // Inside the second block: a duplicate of what is held beyond a gap.
    peer.recv(seg().ack(5001).sack(&[(7001, 8001), (7001, 9001)]));
    let info = peer.info();
    assert_eq!(info.counters.duplicate_bytes_reported, 5000);
    assert_eq!(info.phase, Phase::Disorder, "the second block is news");
}

/// A hole in a second window, found during the first recovery, is a second reduction once that one is over.
#[test]
fn a_loss_behind_the_recovery_point_is_a_second_event() {
    let mut peer = ten_out_of(60_000);
    for i in 2..=10 {
        peer.recv(seg().sack(&[(1001, i * 1000 + 1)]));
    }
    peer.recv(seg().sack(&[(1001, 12_001)]));
    let sent = peer.ranges();
    assert!(sent.contains(&(1, 1001)) && sent.last().unwrap().1 >= 15_001, "{sent:?}");
    peer.run_to(250);
    // 12001:13001, sent during recovery, is lost; the three after it arrive.
    peer.recv(seg().sack(&[(13_001, 16_001), (1001, 12_001)]));
    assert_eq!(peer.info().counters.fast_recoveries, 1);
    assert!(peer.ranges().contains(&(12_001, 13_001)), "repaired at once");
    peer.run_to(300).recv(seg().ack(12_001).sack(&[(13_001, 16_001)]));
    assert_eq!(peer.info().counters.fast_recoveries, 2, "one per window of data");
}

/// The sample comes from the segment that was just reported, not from the one that waits.
#[test]
fn selective_acknowledgements_are_samples() {
    let mut peer = Setup::default().active();
    peer.write(3000).drain();
    peer.run_to(220).recv(seg().sack(&[(1001, 2001)]));
    assert_eq!(peer.info().last_rtt, Some(ms(120)));
}

/// RFC 6675 section 5: the scoreboard is updated by any acknowledgement with SACK blocks, also by one that another has overtaken. Nothing else of it
/// counts, its window neither.
#[test]
fn an_overtaken_acknowledgement_updates_the_scoreboard() {
    let mut peer = ten_out_of(10_000);
    peer.recv(seg().ack(2001)).silent();
    let window = peer.info().snd_wnd;
    // 3000 bytes above HighACK are more than (DupThresh - 1) · SMSS: IsLost(2001).
    let overtaken = seg().ack(1001).win(100).sack(&[(3001, 6001)]);
    peer.recv(overtaken).expect(&["A 2001:3001 ack 1"]);
    assert_eq!((peer.info().phase, peer.info().snd_wnd), (Phase::Recovery, window));
}

/// The data that such an acknowledgement calls missing may have arrived since. A block between it and SND.UNA is neither new nor a duplicate. One
/// below its own number is a DSACK.
#[test]
fn an_overtaken_acknowledgement_is_read_by_its_own_number() {
    let mut peer = ten_out_of(10_000);
    peer.recv(seg().ack(6001)).silent();
    peer.recv(seg().ack(1001).sack(&[(3001, 4001)])).silent();
    assert_eq!(peer.info().counters.duplicate_bytes_reported, 0);
    peer.recv(seg().ack(2001).sack(&[(1001, 2001), (3001, 4001)])).silent();
    assert_eq!(peer.info().counters.duplicate_bytes_reported, 1000);
    assert_eq!((peer.info().phase, peer.info().in_flight), (Phase::Open, 4000));
}
