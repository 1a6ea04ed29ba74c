//! RACK-TLP, worked by hand from RFC 8985. Round trips take 100 ms, so a quarter is 25 ms; the retransmission timeout is 300 ms.

use crate::common;

use common::{Peer, Setup, seg};
use transom_tcp::{Phase, RecoveryChoice};

fn rack() -> Peer {
    Setup::default().profile(|profile| profile.recovery = RecoveryChoice::RackTlp).active()
}

/// Ten segments of which none is acknowledged, 100 ms ago.
fn ten() -> Peer {
    let mut peer = rack();
    peer.write(10_000);
    assert_eq!(peer.ranges().len(), 10);
    peer.wait(100);
    peer
}

/// Section 6.2 step 4: while no reordering has been seen, three segments that arrived mean loss at once.
#[test]
fn three_later_segments_mean_loss() {
    let mut peer = ten();
    peer.recv(seg().sack(&[(1001, 2001)])).recv(seg().sack(&[(1001, 3001)])).silent();
    peer.recv(seg().sack(&[(1001, 4001)])).expect(&["A 1:1001 ack 1"]);
    assert_eq!((peer.info().phase, peer.info().ssthresh), (Phase::Recovery, 5000));
}

/// With fewer, a quarter of a round trip more than the round trip has to pass: 125 ms since the segment left. The timer waits for 4 ms more.
#[test]
fn a_single_later_segment_means_loss_after_a_while() {
    let mut peer = ten();
    let start = peer.millis() - 100;
    peer.recv(seg().sack(&[(1001, 2001)])).silent();
    peer.run_to(start + 128).silent();
    peer.run_to(start + 129).expect(&["A 1:1001 ack 1"]);
    assert_eq!(peer.info().phase, Phase::Recovery);
}

/// An acknowledgement in those 4 ms finds the loss by itself. Its segment left 26 ms after the lost one and took 100 ms, so the same 125 ms hold.
#[test]
fn an_acknowledgement_comes_before_the_timer() {
    let mut peer = rack();
    let start = peer.millis();
    peer.write(2_000);
    assert_eq!(peer.ranges(), [(1, 1001), (1001, 2001)]);
    peer.wait(26).write(1_000);
    assert_eq!(peer.ranges(), [(2001, 3001)]);
    peer.run_to(start + 100).recv(seg().sack(&[(1001, 2001)])).silent();
    peer.run_to(start + 126).silent();
    peer.recv(seg().sack(&[(1001, 3001)])).expect(&["A 1:1001 ack 1"]);
    assert_eq!(peer.info().phase, Phase::Recovery);
}

/// Once the network has been seen to reorder, three segments are not enough: time decides.
#[test]
fn reordering_makes_patient() {
    let mut peer = ten();
    let start = peer.millis() - 100;
    // The second arrives before the first: reordering, but no loss.
    peer.recv(seg().sack(&[(1001, 2001)])).recv(seg().ack(2001));
    for upto in [4, 5, 6, 7] {
        peer.recv(seg().ack(2001).sack(&[(3001, upto * 1000 + 1)]));
    }
    peer.silent();
    assert_eq!(peer.info().phase, Phase::Disorder);
    peer.run_to(start + 128).silent();
    peer.run_to(start + 129).expect(&["A 2001:3001 ack 1"]);
}

/// Section 6.2 step 5: a retransmission is lost too, when something that left later arrives.
#[test]
fn a_lost_retransmission_is_found() {
    let mut peer = rack();
    peer.write(20_000);
    assert_eq!(peer.ranges().len(), 10);
    peer.wait(100);
    for upto in [2, 3, 4] {
        peer.recv(seg().sack(&[(1001, upto * 1000 + 1)]));
    }
    let first: Vec<_> = peer.ranges();
    assert!(first.contains(&(1, 1001)), "{first:?}");
    peer.recv(seg().sack(&[(1001, 10_001)]));
    let new = peer.ranges();
    assert!(new.iter().all(|&(start, _)| start >= 10_001) && !new.is_empty(), "{new:?}");
    // The new ones, which left after the retransmission or with it, arrive a round trip later; it does not.
    let end = peer.info().snd_nxt.stream_offset() as i64 + 1;
    peer.wait(110).recv(seg().sack(&[(1001, end)]));
    assert!(peer.ranges().contains(&(1, 1001)), "sent a third time without a timeout");
    assert_eq!(peer.info().counters.timeouts, 0);
}

/// The retransmission timer starts again with each retransmission in recovery: its answer needs a round trip from there (RFC 6675, section 5,
/// allows it). The timer of the RFC 6675 unit keeps to RFC 6298, and expires 300 ms after the first transmission.
#[test]
fn the_timer_starts_again_with_each_retransmission_in_recovery() {
    for (choice, restarts) in [(RecoveryChoice::RackTlp, true), (RecoveryChoice::Sack, false)] {
        let mut peer = Setup::default().profile(|profile| profile.recovery = choice).active();
        let start = peer.millis();
        peer.write(10_000);
        assert_eq!(peer.ranges().len(), 10);
        peer.run_to(start + 150);
        for upto in [2, 3, 4] {
            peer.recv(seg().sack(&[(1001, upto * 1000 + 1)]));
        }
        peer.expect(&["A 1:1001 ack 1"]);
        // The fifth segment is lost too, and its repair leaves 20 ms later.
        peer.run_to(start + 170)
            .recv(seg().sack(&[(5001, 9001), (1001, 4001)]))
            .expect(&["A 4001:5001 ack 1"]);
        let timeout = peer.info().rto.as_millis() + 1;
        let expires = if restarts { 170 + timeout } else { 300 };
        peer.run_to(start + expires - 1).silent();
        assert_eq!(peer.info().counters.timeouts, 0, "{choice:?}");
        peer.run_to(start + expires).expect(&["A 1:1001 ack 1"]);
        assert_eq!(peer.info().counters.timeouts, 1, "{choice:?}");
    }
}

/// New data and then a retransmission leave in one instant, as where acknowledgements are processed in a batch. The new data left first,
/// although its positions are higher: its arrival says nothing about the retransmission (section 6.2, RACK_sent_after).
#[test]
fn new_data_of_the_same_instant_does_not_condemn_a_retransmission() {
    let mut peer = rack();
    peer.write(20_000);
    assert_eq!(peer.ranges().len(), 10);
    peer.wait(100);
    // RFC 3042: the first two duplicates bring new data out.
    peer.recv(seg().sack(&[(1001, 2001)])).recv(seg().sack(&[(1001, 3001)]));
    peer.expect(&["A 10001:11001 ack 1", "A 11001:12001 ack 1"]);
    peer.recv(seg().sack(&[(1001, 4001)])).expect(&["A 1:1001 ack 1"]);
    peer.wait(100).recv(seg().sack(&[(1001, 12_001)]));
    assert!(!peer.ranges().contains(&(1, 1001)));
    peer.recv(seg().ack(12_001));
    assert_eq!(peer.info().counters.retransmitted_segments, 1);
}

/// Sections 7.2 and 7.3: two round trips after the last acknowledgement the last segment is sent again, and its selective
/// acknowledgement tells what is missing before it.
#[test]
fn a_probe_finds_a_loss_at_the_tail() {
    let mut peer = rack();
    peer.write(4000).drain();
    peer.wait(100);
    let start = peer.millis();
    peer.recv(seg().ack(2001)).silent();
    // SRTT is 100 ms: before the timeout, at 300.
    peer.run_to(start + 199).silent();
    peer.run_to(start + 200).expect(&["PA 3001:4001 ack 1"]);
    assert_eq!(peer.info().counters.tail_probes, 1);
    peer.wait(100).recv(seg().ack(2001).sack(&[(3001, 4001)])).expect(&["A 2001:3001 ack 1"]);
    assert_eq!(peer.info().phase, Phase::Recovery);
    peer.wait(100).recv(seg().ack(4001));
    assert_eq!((peer.info().phase, peer.info().counters.timeouts), (Phase::Open, 0));
}

/// With new data the probe is new data, and one segment more than the congestion window.
#[test]
fn a_probe_may_be_new_data() {
    let mut peer = rack();
    peer.write(20_000);
    assert_eq!(peer.ranges().len(), 10);
    let start = peer.millis();
    peer.run_to(start + 200).expect(&["A 10001:11001 ack 1"]);
    assert_eq!(peer.info().in_flight, 11_000);
    // One probe for one silence: the next is the timeout, restarted by the probe.
    peer.run_to(start + 499).silent();
    peer.run_to(start + 500).expect(&["A 1:1001 ack 1"]);
    assert_eq!((peer.info().phase, peer.info().counters.timeouts), (Phase::Loss, 1));
}

/// Section 7.4: the probe repaired the only loss, which nobody else saw: it is answered like one, when data beyond is acknowledged
/// without a report of a duplicate.
#[test]
fn a_loss_that_the_probe_repaired_counts() {
    for (lost, ssthresh) in [(true, 2000), (false, u64::MAX)] {
        let mut peer = rack();
        peer.write(3000).drain();
        peer.wait(100).recv(seg().ack(1001));
        peer.wait(200).expect(&["PA 2001:3001 ack 1"]);
        peer.wait(100).recv(seg().ack(3001));
        if !lost {
            // The original had only been late.
            peer.recv(seg().ack(3001).sack(&[(2001, 3001)]));
        }
        peer.write(1000).drain();
        peer.wait(100).recv(seg().ack(4001));
        assert_eq!(peer.info().ssthresh, ssthresh, "lost: {lost}");
    }
}

/// A single segment may be waiting for a delayed acknowledgement: 2·SRTT + 200 ms, but not later than the timeout.
#[test]
fn a_single_segment_waits_for_a_delayed_acknowledgement() {
    let mut peer = rack();
    peer.write(1000).drain();
    let start = peer.millis();
    peer.run_to(start + 299).silent();
    peer.run_to(start + 300).expect(&["PA 1:1001 ack 1"]);
    assert_eq!((peer.info().counters.tail_probes, peer.info().counters.timeouts), (1, 0));
}

/// Without SACK there is nothing to go by.
#[test]
fn without_sack_it_is_newreno() {
    let setup = Setup::default().profile(|profile| profile.recovery = RecoveryChoice::RackTlp);
    assert_eq!(setup.clone().no_sack().active().info().recovery, "newreno");
    assert_eq!(setup.active().info().recovery, "rack-tlp");
}
