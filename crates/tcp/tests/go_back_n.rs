//! Go-back-N: from the loss on everything again.

use crate::common;

use common::{Setup, seg};
use transom_tcp::{Phase, RecoveryChoice};

#[test]
fn three_duplicates_send_everything_again() {
    let mut peer =
        Setup::newreno().profile(|profile| profile.recovery = RecoveryChoice::GoBackN).active();
    peer.write(20_000);
    assert_eq!(peer.ranges().len(), 10);
    peer.wait(100).recv(seg().ack(2001));
    // Slow start: two for the two acknowledged, and two more.
    assert_eq!(
        peer.ranges(),
        [(10_001, 11_001), (11_001, 12_001), (12_001, 13_001), (13_001, 14_001)]
    );
    peer.recv(seg().ack(2001)).recv(seg().ack(2001)).silent();
    peer.recv(seg().ack(2001));
    assert_eq!((peer.info().phase, peer.info().ssthresh), (Phase::Recovery, 6000));
    // All twelve are believed lost: as many again as ssthresh allows, from the first on.
    let again: Vec<_> = (2..8).map(|i| (i * 1000 + 1, i * 1000 + 1001)).collect();
    assert_eq!(peer.ranges(), again);
    // Answers to what had arrived before do not count.
    for _ in 0..9 {
        peer.recv(seg().ack(2001));
    }
    peer.silent();
    // The receiver had kept the rest.
    peer.recv(seg().ack(14_001));
    assert_eq!(peer.info().phase, Phase::Open);
    assert!(peer.ranges().iter().all(|&(start, _)| start >= 14_001));
}

#[test]
fn a_timeout_too() {
    let mut peer =
        Setup::newreno().profile(|profile| profile.recovery = RecoveryChoice::GoBackN).active();
    peer.write(5000).drain();
    peer.next_timer();
    peer.expect(&["A 1:1001 ack 1"]);
    peer.recv(seg().ack(1001)).expect(&["A 1001:2001 ack 1", "A 2001:3001 ack 1"]);
}
