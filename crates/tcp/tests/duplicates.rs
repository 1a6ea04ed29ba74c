//! What duplicates mean before they mean a loss, worked by hand: Early Retransmit (RFC 5827), Limited Transmit (RFC 3042) and RR (Blanton,
//! Allman 2002).
//!
//! Segments are 1000 bytes, the initial window is ten of them, the retransmission timeout 300 ms.

use crate::common;
use transom_tcp::Setting;

use common::{Peer, Setup, seg};
use transom_tcp::arguments::Fraction;
use transom_tcp::compose::Composer;
use transom_tcp::extension::Variable;
use transom_tcp::{Profile, RecoveryChoice};

/// A sender that has written so much.
fn written(setup: Setup, bytes: usize, early: bool) -> Peer {
    let mut peer = setup.profile(|profile| profile.early_retransmit = early).active();
    peer.write(bytes).drain();
    peer
}

/// The `n`th duplicate, by a selective acknowledgement where there are any.
fn duplicate(sack: bool, n: i64) -> common::Seg {
    let ack = seg().ack(1);
    if sack { ack.sack(&[(1001, 1001 + n * 1000)]) } else { ack }
}

/// Of so many segments the first is lost, and there is nothing more to send: one duplicate less than there are segments repairs it, three at
/// most.
#[test]
fn few_segments_need_fewer_duplicates() {
    for sack in [true, false] {
        let setup = || if sack { Setup::default() } else { Setup::newreno() };
        for (segments, needed) in [(2, 1), (3, 2), (4, 3), (6, 3)] {
            let mut peer = written(setup(), segments * 1000, true);
            peer.wait(100);
            for n in 1..needed {
                peer.recv(duplicate(sack, n)).silent();
            }
            peer.recv(duplicate(sack, needed)).expect(&["A 1:1001 ack 1"]);
            assert_eq!(peer.info().ssthresh, (segments as u64 * 500).max(2000));
        }
        // Without it, the timer.
        let mut peer = written(setup(), 3000, false);
        peer.wait(100).recv(duplicate(sack, 1)).recv(duplicate(sack, 2)).silent();
        peer.run_to(399).silent();
        peer.run_to(400).expect(&["A 1:1001 ack 1"]);
    }
}

/// One segment by itself has none behind it that could bring a duplicate; one that is forged means nothing.
#[test]
fn one_segment_is_not_repaired_early() {
    let mut peer = written(Setup::newreno(), 1000, true);
    peer.wait(50).recv(seg().ack(1)).recv(seg().ack(1)).silent();
}

/// Segments count, not bytes, and a FIN that goes with data is none: three small ones, the last with a FIN.
#[test]
fn segments_are_counted() {
    let setup = Setup::newreno().profile(|profile| {
        profile.early_retransmit = true;
        profile.nodelay = true;
    });
    let mut peer = setup.active();
    peer.write(100).write(100);
    peer.connection.set(Setting::NoDelay(false));
    peer.write(100).shutdown();
    peer.expect(&["PA 1:101 ack 1", "PA 101:201 ack 1", "FPA 201:302 ack 1"]);
    peer.wait(50).recv(seg().ack(1)).silent();
    peer.recv(seg().ack(1)).expect(&["A 1:101 ack 1"]);
}

/// With more to send and a window that lets it, new data brings more duplicates (RFC 3042): no need to hurry. Where the peer's window is what
/// holds it back, there is.
#[test]
fn only_where_nothing_new_can_leave() {
    // A lost SYN: the window is one segment, and then two.
    let setup = Setup::newreno().profile(|profile| profile.early_retransmit = true);
    let mut peer = setup.connecting();
    peer.next_timer();
    setup.accept(&mut peer);
    peer.drain();
    peer.write(20_000).expect(&["A 1:1001 ack 1"]);
    peer.wait(100).recv(seg().ack(1001));
    peer.expect(&["A 1001:2001 ack 1", "A 2001:3001 ack 1"]);
    peer.wait(100).recv(seg().ack(1001)).expect(&["A 3001:4001 ack 1"]);
    peer.recv(seg().ack(1001)).expect(&["A 4001:5001 ack 1"]);
    peer.recv(seg().ack(1001)).expect(&["A 1001:2001 ack 1"]);

    let mut peer = written(Setup::newreno().window(2000), 20_000, true);
    peer.wait(100).recv(seg().ack(1)).expect(&["A 1:1001 ack 1"]);
}

/// Ten of thirty segments are out and the first is lost. RFC 3042: each of the first two duplicates brings a new segment out. Without it they wait
/// for the third.
#[test]
fn limited_transmit() {
    for sack in [true, false] {
        for limited in [true, false] {
            let setup = if sack { Setup::default() } else { Setup::newreno() };
            let mut peer = setup.profile(|profile| profile.limited_transmit = limited).active();
            peer.write(30_000);
            assert_eq!(peer.ranges().len(), 10);
            peer.wait(100);
            for (n, new) in [(1, "A 10001:11001 ack 1"), (2, "A 11001:12001 ack 1")] {
                peer.recv(duplicate(sack, n));
                let brought = [new];
                peer.expect(brought.get(..usize::from(limited)).unwrap());
            }
            peer.recv(duplicate(sack, 3)).expect(&["A 1:1001 ack 1"]);
            // Half of the flight without what Limited Transmit sent: 5000.
            assert_eq!(peer.info().ssthresh, 5000);
        }
    }
}

/// The threshold that is used.
fn dupthresh(peer: &Peer) -> u64 {
    peer.connection.ruling(Variable::Dupthresh).effective
}

/// Of ten segments from `una` on the first comes after the five behind it. Three of their reports are taken for a loss, and it is sent again for
/// nothing. When all have arrived, the peer says that this one came twice.
fn reordered(peer: &mut Peer, una: i64) {
    peer.wait(100);
    for n in 1..=5 {
        peer.recv(seg().ack(una).sack(&[(una + 1000, una + 1000 * (n + 1))]));
    }
    let again: Vec<_> = peer.drain().iter().map(|out| (out.seq(), out.end())).collect();
    assert_eq!(again, [(una, una + 1000)]);
    peer.recv(seg().ack(una + 10_000)).silent();
    peer.recv(seg().ack(una + 10_000).sack(&[(una, una + 1000)])).silent();
}

/// Five duplicates were for nothing: six are needed from then on, as long as they are at most 0.9 of cwnd. Halved to five segments that is
/// four and a half: four; with seven or more it is six. The second time the segment is late by as much, nothing is sent again; one
/// duplicate more is a loss.
#[test]
fn rr_learns_the_length_of_a_reordering() {
    let setup = Setup::default().profile(|profile| {
        profile.reordering = Some(Fraction::from_millionths(900_000));
        profile.undo.dsack = true;
    });
    let mut peer = setup.active();
    peer.write(10_000).drain();
    assert_eq!(dupthresh(&peer), 3);
    reordered(&mut peer, 1);
    assert_eq!(peer.info().counters.fast_recoveries, 1);
    // The DSACK has also shown that the reduction was for nothing: ten segments, of which 0.9 are nine.
    assert_eq!((peer.info().cwnd / 1000, dupthresh(&peer)), (10, 6));

    peer.write(10_000).drain();
    peer.wait(100);
    for n in 1..=5 {
        peer.recv(seg().ack(10_001).sack(&[(11_001, 11_001 + 1000 * n)])).silent();
    }
    assert_eq!(peer.info().counters.fast_recoveries, 1);
    peer.recv(seg().ack(10_001).sack(&[(11_001, 17_001)])).expect(&["A 10001:11001 ack 1"]);
    assert_eq!(peer.info().counters.fast_recoveries, 2);
    // Half of ten segments, and 0.9 of five.
    assert_eq!((peer.info().cwnd, dupthresh(&peer)), (5000, 4));

    // A timeout: as at first. The memory of the path is kept, but another report is needed.
    peer.run_to(10_000).drain();
    assert!(peer.info().counters.timeouts > 0);
    assert_eq!(dupthresh(&peer), 3);
}

/// Without DSACK detection the window stays reduced, and with it the threshold: five segments allow four.
#[test]
fn rr_is_capped_by_the_window() {
    for (cap, expected) in [(900_000, 4), (1_000_000, 5), (100_000, 3)] {
        let cap = Fraction::from_millionths(cap);
        let setup = Setup::default().profile(|profile| profile.reordering = Some(cap));
        let mut peer = setup.active();
        peer.write(10_000).drain();
        reordered(&mut peer, 1);
        assert_eq!((peer.info().cwnd, dupthresh(&peer)), (5000, expected));
    }
}

/// A path that is known to reorder is none to retransmit early on: of three segments two duplicates are no loss any more, and the timer
/// repairs it.
#[test]
fn rr_sets_early_retransmit_aside() {
    for known in [false, true] {
        let setup = Setup::default().profile(|profile| {
            profile.reordering = Some(Fraction::from_millionths(900_000));
            profile.early_retransmit = true;
            profile.undo.dsack = true;
        });
        let mut peer = setup.active();
        let una = if known { 10_001 } else { 1 };
        if known {
            peer.write(10_000).drain();
            reordered(&mut peer, 1);
        }
        peer.write(3000).drain();
        peer.wait(100).recv(seg().ack(una).sack(&[(una + 1000, una + 2000)])).silent();
        peer.recv(seg().ack(una).sack(&[(una + 1000, una + 3000)]));
        let repaired = peer.drain().iter().any(|out| out.seq() == una);
        assert_eq!(repaired, !known);
    }
}

/// It is exchanged too; with the last of it goes what was learnt.
#[test]
fn rr_exchanged() {
    let mut peer = Setup::default().active();
    let now = peer.now;
    Composer::default().exchange(&mut peer.connection, now, "rr(cap=1) + dsack").unwrap();
    peer.write(10_000).drain();
    reordered(&mut peer, 1);
    assert_eq!(dupthresh(&peer), 6);
    let now = peer.now;
    Composer::default().exchange(&mut peer.connection, now, "no-rr").unwrap();
    assert_eq!(dupthresh(&peer), 3);
    Composer::default().exchange(&mut peer.connection, now, "rr").unwrap();
    assert_eq!(dupthresh(&peer), 3);
    let error = Composer::default().exchange(&mut peer.connection, now, "rr(cap=1.1)").unwrap_err();
    assert!(error.to_string().contains("the whole window, not 1.1"), "{error}");
}

/// Both are exchanged on a live connection, from the next duplicate on; together with what cannot work with them they are refused.
#[test]
fn exchanged() {
    let mut peer = written(Setup::newreno(), 3000, false);
    peer.wait(100).recv(duplicate(false, 1)).silent();
    let now = peer.now;
    Composer::default()
        .exchange(&mut peer.connection, now, "early-retransmit + no-limited-transmit")
        .unwrap();
    peer.recv(duplicate(false, 2)).expect(&["A 1:1001 ack 1"]);

    let rack = |profile: &mut Profile| profile.recovery = RecoveryChoice::RackTlp;
    let mut peer = Setup::default().profile(rack).active();
    let now = peer.now;
    let error = Composer::default()
        .exchange(&mut peer.connection, now, "early-retransmit + rack-tlp")
        .unwrap_err();
    assert!(error.to_string().starts_with("early retransmit counts duplicates"), "{error}");
    // It comes with a recovery that counts duplicates, and a live connection keeps its own.
    let error =
        Composer::default().exchange(&mut peer.connection, now, "early-retransmit").unwrap_err();
    assert!(error.to_string().contains("would exchange loss recovery"), "{error}");
}
