//! Reductions that were for nothing, found and taken back (RFC 3522, RFC 3708, RFC 5682).

use crate::common;

use common::{Peer, Setup, seg};
use transom_tcp::{Phase, UndoConfig};

fn watching(undo: UndoConfig, setup: Setup) -> Peer {
    let mut peer = setup.profile(|profile| profile.undo = undo).active();
    peer.write(40_000);
    assert_eq!(peer.ranges().len(), 10);
    peer
}

/// Segments 2 to 4 arrive before the first, which is sent again.
fn reordered(peer: &mut Peer) {
    peer.wait(100);
    for i in 2..=4 {
        peer.recv(seg().sack(&[(1001, i * 1000 + 1)]));
    }
    assert_eq!(peer.info().phase, Phase::Recovery);
    assert_eq!((peer.info().cwnd, peer.info().ssthresh), (5000, 5000));
    let sent = peer.ranges();
    assert!(sent.contains(&(1, 1001)), "{sent:?}");
}

/// The first segment arrives after all. Its acknowledgement echoes a time before the retransmission.
#[test]
fn eifel() {
    let eifel = UndoConfig::default().with_eifel(true);
    let mut peer = watching(eifel, Setup::default().mss(Some(1012)).timestamps());
    let original = peer.last_tsval;
    reordered(&mut peer);
    let again = peer.last_tsval;
    assert!(original < again);
    peer.wait(1);
    let clock = peer.clock.wrapping_add(peer.now.as_millis() as u32);
    peer.recv(seg().ack(4001).ts(clock, original));
    assert_eq!(peer.info().phase, Phase::Open);
    assert_eq!((peer.info().cwnd, peer.info().ssthresh), (10_000, u64::MAX));
    assert_eq!(peer.info().counters.spurious_reductions, 1);
    assert_eq!(peer.info().lost, 0);
}

/// An acknowledgement of the retransmission echoes its time: it was needed.
#[test]
fn eifel_is_not_fooled() {
    let eifel = UndoConfig::default().with_eifel(true);
    let mut peer = watching(eifel, Setup::default().mss(Some(1012)).timestamps());
    let original = peer.last_tsval;
    reordered(&mut peer);
    let again = peer.last_tsval;
    peer.wait(100);
    let clock = |peer: &Peer| peer.clock.wrapping_add(peer.now.as_millis() as u32);
    let now = clock(&peer);
    peer.recv(seg().ack(4001).sack(&[(5001, 6001)]).ts(now, again));
    assert_eq!((peer.info().phase, peer.info().ssthresh), (Phase::Recovery, 5000));
    // Only the first acceptable acknowledgement counts.
    let now = clock(&peer);
    peer.recv(seg().ack(6001).ts(now, original));
    assert_eq!(peer.info().counters.spurious_reductions, 0);
}

/// The receiver reports that it got twice what was sent again.
#[test]
fn dsack() {
    let dsack = UndoConfig::default().with_dsack(true);
    let mut peer = watching(dsack, Setup::default());
    reordered(&mut peer);
    let end = peer.info().snd_nxt.stream_offset() as i64 + 1;
    peer.recv(seg().ack(end));
    assert_eq!((peer.info().phase, peer.info().cwnd), (Phase::Open, 5000));
    peer.wait(50).recv(seg().ack(end).sack(&[(1, 1001)]));
    assert_eq!((peer.info().cwnd, peer.info().ssthresh), (10_000, u64::MAX));
    assert_eq!(peer.info().counters.spurious_reductions, 1);
}

/// Two were sent again, and one of them had been lost.
#[test]
fn a_single_report_is_not_enough() {
    let dsack = UndoConfig::default().with_dsack(true);
    let mut peer = watching(dsack, Setup::default());
    peer.wait(100);
    for i in 3..=5 {
        peer.recv(seg().sack(&[(2001, i * 1000 + 1)]));
    }
    for i in 6..=10 {
        peer.recv(seg().sack(&[(2001, i * 1000 + 1)]));
    }
    let again = peer.ranges();
    assert!(again.contains(&(1, 1001)) && again.contains(&(1001, 2001)), "{again:?}");
    let end = peer.info().snd_nxt.stream_offset() as i64 + 1;
    peer.recv(seg().ack(end)).recv(seg().ack(end).sack(&[(1, 1001)]));
    assert_eq!((peer.info().ssthresh, peer.info().counters.spurious_reductions), (5000, 0));
}

fn timed_out() -> Peer {
    let f_rto = UndoConfig::default().with_f_rto(true);
    let mut peer = watching(f_rto, Setup::default());
    peer.next_timer();
    peer.expect(&["A 1:1001 ack 1"]);
    assert_eq!((peer.info().phase, peer.info().cwnd), (Phase::Loss, 1000));
    // RFC 5682 section 3.1 step 2b: two new segments.
    peer.recv(seg().ack(1001)).expect(&["A 10001:11001 ack 1", "A 11001:12001 ack 1"]);
    peer
}

/// The answer to the next original arrives: the path was only slow.
#[test]
fn f_rto_finds_a_spurious_timeout() {
    let mut peer = timed_out();
    peer.recv(seg().ack(2001));
    assert_eq!(peer.info().phase, Phase::Open);
    assert_eq!((peer.info().cwnd, peer.info().ssthresh), (10_000, u64::MAX));
    assert_eq!(peer.info().counters.spurious_reductions, 1);
    // Ten are in flight, from 3 to 12.
    assert_eq!(peer.info().in_flight, 10_000);
    peer.silent();
    peer.recv(seg().ack(3001));
    assert!(peer.ranges().iter().all(|&(start, _)| start >= 12_001), "nothing is sent again");
}

/// Only the new segments arrive: what lies between was lost.
#[test]
fn f_rto_goes_back_to_ordinary_recovery() {
    let mut peer = timed_out();
    peer.recv(seg().ack(1001).sack(&[(10_001, 11_001)]));
    assert_eq!((peer.info().phase, peer.info().counters.spurious_reductions), (Phase::Loss, 0));
    assert_eq!(peer.ranges().first(), Some(&(1001, 2001)));
}

/// Without new data nothing can be learned.
#[test]
fn f_rto_without_new_data() {
    let f_rto = UndoConfig::default().with_f_rto(true);
    let mut peer = Setup::default().profile(|profile| profile.undo = f_rto).active();
    peer.write(5000).drain();
    peer.next_timer();
    peer.drain();
    peer.recv(seg().ack(1001)).expect(&["A 1001:2001 ack 1", "A 2001:3001 ack 1"]);
}
