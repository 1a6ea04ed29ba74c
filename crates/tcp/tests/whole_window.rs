//! The whole window again, once more with each partial acknowledgement: FreeBSD 4.7 without a congestion window.

use crate::common;

use common::{Setup, seg};
use transom_tcp::congestion::CongestionChoice;
use transom_tcp::{Phase, RecoveryChoice};

/// A sender without congestion control that has eight segments of 1000 bytes outstanding.
fn eight_out() -> common::Peer {
    let mut peer = Setup::newreno()
        .profile(|profile| {
            profile.recovery = RecoveryChoice::WholeWindow;
            profile.congestion = CongestionChoice::none();
        })
        .active();
    peer.write(8000);
    assert_eq!(peer.ranges().len(), 8);
    peer
}

/// The ranges of whole segments from the `first` thousand to 8000.
fn from(first: i64) -> Vec<(i64, i64)> {
    (first..8).map(|i| (i * 1000 + 1, i * 1000 + 1001)).collect()
}

#[test]
fn a_partial_acknowledgement_sends_all_again() {
    let mut peer = eight_out();
    // The first and the fourth were lost.
    for _ in 0..2 {
        peer.recv(seg().ack(1)).silent();
    }
    peer.recv(seg().ack(1));
    assert_eq!((peer.ranges(), peer.info().phase), (from(0), Phase::Recovery));
    // Further duplicates are answers to what had arrived before.
    for _ in 0..4 {
        peer.recv(seg().ack(1)).silent();
    }
    peer.recv(seg().ack(3001));
    assert_eq!(peer.ranges(), from(3));
    peer.recv(seg().ack(8001)).silent();
    assert_eq!(peer.info().phase, Phase::Open);
}

/// Duplicates for the end of the last repair begin another one: the copies that were not needed made them.
#[test]
fn needless_copies_begin_the_next_repair() {
    let mut peer = eight_out();
    for _ in 0..3 {
        peer.recv(seg().ack(1));
    }
    assert_eq!(peer.ranges(), from(0));
    peer.recv(seg().ack(8001));
    peer.write(4000);
    assert_eq!(peer.ranges().len(), 4);
    for _ in 0..2 {
        peer.recv(seg().ack(8001)).silent();
    }
    peer.recv(seg().ack(8001));
    assert_eq!(peer.ranges().first(), Some(&(8001, 9001)));
}

/// After a timeout duplicates for what it sent again mean nothing.
#[test]
fn after_a_timeout_only_the_timer_repairs() {
    let mut peer = eight_out();
    peer.next_timer();
    assert_eq!(peer.ranges(), from(0));
    for _ in 0..5 {
        peer.recv(seg().ack(2001));
    }
    peer.silent();
    assert_eq!(peer.info().phase, Phase::Loss);
}
