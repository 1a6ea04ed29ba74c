//! Proportional Rate Reduction, worked by hand from RFC 9937 section 6.

use crate::common;

use common::{Peer, Setup, seg};
use transom_tcp::{InitialWindow, Phase, Profile, ReductionChoice};

fn prr(setup: Setup) -> Peer {
    let mut peer = setup.profile(|profile| profile.reduction = ReductionChoice::Prr).active();
    peer.write(40_000);
    assert_eq!(peer.ranges().len(), 10);
    peer.wait(100);
    peer
}

/// Ten segments in flight of which the first is lost. Two more leave by Limited Transmit, then ssthresh is 5000 and RecoverFS what was
/// outstanding, 12000, less the 2000 that had been reported before: for two segments that arrive one leaves.
#[test]
fn one_segment_leaves_for_two_that_arrive() {
    let mut peer = prr(Setup::default());
    peer.recv(seg().sack(&[(1001, 2001)])).expect(&["A 10001:11001 ack 1"]);
    peer.recv(seg().sack(&[(1001, 3001)])).expect(&["A 11001:12001 ack 1"]);
    // prr_delivered 1000, due 500: the fast retransmission is not to wait.
    peer.recv(seg().sack(&[(1001, 4001)])).expect(&["A 1:1001 ack 1"]);
    assert_eq!((peer.info().phase, peer.info().ssthresh), (Phase::Recovery, 5000));
    assert_eq!(peer.info().cwnd, 8000 + 1000);
    // Due 1000, of which 1000 have left.
    peer.recv(seg().sack(&[(1001, 5001)])).silent();
    // Due 1500: half a segment is not sent.
    peer.recv(seg().sack(&[(1001, 6001)])).silent();
    assert_eq!(peer.info().cwnd, 7000 + 500);
    peer.recv(seg().sack(&[(1001, 7001)])).expect(&["A 12001:13001 ack 1"]);
    peer.recv(seg().sack(&[(1001, 8001)])).silent();
    // In flight is ssthresh: from here as much leaves as arrives.
    peer.recv(seg().sack(&[(1001, 9001)])).silent();
    assert_eq!((peer.info().cwnd, peer.info().in_flight), (5000, 5000));
    peer.recv(seg().sack(&[(1001, 10_001)])).expect(&["A 13001:14001 ack 1"]);
    peer.recv(seg().sack(&[(1001, 11_001)])).expect(&["A 14001:15001 ack 1"]);
    peer.recv(seg().sack(&[(1001, 12_001)])).expect(&["A 15001:16001 ack 1"]);
    peer.recv(seg().ack(12_001)).expect(&["A 16001:17001 ack 1"]);
    assert_eq!((peer.info().phase, peer.info().cwnd), (Phase::Open, 5000));
}

/// Seven of ten are lost: what is in flight falls below ssthresh, and is brought up by what is delivered, and one segment more for
/// each acknowledgement that advances without telling of further losses.
#[test]
fn after_heavy_losses_the_flight_is_rebuilt() {
    let mut peer = prr(Setup::default());
    // The last three arrived: 8, 9 and 10. Two leave by Limited Transmit.
    peer.recv(seg().sack(&[(7001, 8001)])).expect(&["A 10001:11001 ack 1"]);
    peer.recv(seg().sack(&[(7001, 9001)])).expect(&["A 11001:12001 ack 1"]);
    peer.recv(seg().sack(&[(7001, 10_001)]));
    // Lost are 7000 of 12000, 3000 have arrived: 2000 in flight. max(1000 - 0, 1000), no progress: one segment.
    peer.expect(&["A 1:1001 ack 1"]);
    assert_eq!((peer.info().cwnd, peer.info().in_flight), (3000, 3000));
    // The two new ones arrive: prr_delivered 2000 of which 1000 have left, and so on: one for one.
    peer.recv(seg().sack(&[(7001, 11_001)])).expect(&["A 1001:2001 ack 1"]);
    peer.recv(seg().sack(&[(7001, 12_001)])).expect(&["A 2001:3001 ack 1"]);
    assert_eq!(peer.info().in_flight, 3000);
    // Progress: the one delivered and one more.
    peer.wait(100).recv(seg().ack(1001).sack(&[(7001, 12_001)]));
    peer.expect(&["A 3001:4001 ack 1", "A 4001:5001 ack 1"]);
    peer.recv(seg().ack(2001).sack(&[(7001, 12_001)]));
    peer.expect(&["A 5001:6001 ack 1", "A 6001:7001 ack 1"]);
    // 5000 would be ssthresh: no more than that.
    assert_eq!((peer.info().cwnd, peer.info().in_flight), (5000, 5000));
}

/// Without SACK a duplicate stands for a segment, and the advance that follows does not count it again.
#[test]
fn without_sack() {
    let mut peer = prr(Setup::newreno());
    peer.recv(seg()).expect(&["A 10001:11001 ack 1"]);
    peer.recv(seg()).expect(&["A 11001:12001 ack 1"]);
    peer.recv(seg()).expect(&["A 1:1001 ack 1"]);
    for _ in 0..9 {
        peer.recv(seg());
    }
    // In all twelve segments were delivered but the first: as with SACK, one for two down to ssthresh.
    let left = peer.ranges().len();
    assert!((2..=5).contains(&left), "{left} segments left");
    peer.recv(seg().ack(12_001));
    assert_eq!((peer.info().phase, peer.info().cwnd), (Phase::Open, 5000));
}

/// Seven segments in flight, of which the first is lost. Half of them is 3500 bytes, and three segments fit. Reno goes on with a window of three,
/// which a round trip acknowledges, and so adds one in each.
#[test]
fn reno_goes_on_with_whole_segments() {
    let seven = |profile: &mut Profile| {
        profile.reduction = ReductionChoice::Prr;
        profile.initial_window = InitialWindow::segments(7).unwrap();
    };
    let mut peer = Setup::default().profile(seven).active();
    peer.write(60_000);
    assert_eq!(peer.ranges().len(), 7);
    peer.wait(100);
    for sacked in [2001, 3001, 4001] {
        peer.recv(seg().sack(&[(1001, sacked)]));
    }
    assert_eq!((peer.info().phase, peer.info().ssthresh), (Phase::Recovery, 3500));
    let mut windows = Vec::new();
    for _ in 0..4 {
        let nxt = peer.info().snd_nxt.stream_offset() as i64 + 1;
        peer.wait(100).recv(seg().ack(nxt)).drain();
        windows.push(peer.info().cwnd);
    }
    assert_eq!(windows, [3000, 4000, 5000, 6000]);
}
