//! What a snapshot says that has no better place: what `TCP_INFO` of Linux has.

use crate::common;

use common::{Setup, ms, seg};

/// From the first byte that waits until all are acknowledged, sent or not.
#[test]
fn busy_while_data_is_not_acknowledged() {
    let mut peer = Setup::newreno().active();
    assert_eq!(peer.info().busy, ms(0));
    peer.wait(100).write(20_000).drain();
    peer.wait(100).recv(seg().ack(10_001)).drain();
    assert_eq!(peer.info().busy, ms(100));
    peer.wait(50).recv(seg().ack(20_001));
    assert_eq!(peer.info().busy, ms(150));
    peer.wait(1_000);
    assert_eq!(peer.info().busy, ms(150));
    // A closed window keeps it busy too.
    peer.recv(seg().ack(20_001).win(0)).write(10).wait(70);
    assert_eq!(peer.info().busy, ms(220));
}

#[test]
fn the_times_since_the_last_segments_are_told() {
    let mut peer = Setup::newreno().active();
    let info = peer.wait(30).info();
    assert_eq!((info.since_data_sent, info.since_data_received), (None, None));
    peer.write(10).wait(20).recv(seg().data(10).ack(11)).wait(5).recv(seg()).wait(2);
    let info = peer.info();
    assert_eq!(info.since_data_sent, Some(ms(27)));
    assert_eq!(info.since_data_received, Some(ms(7)));
    assert_eq!(info.since_heard, ms(2));
}

/// Four segments are overtaken by the fifth: they arrive later, and were not sent again.
#[test]
fn reordering_is_seen() {
    let mut peer = Setup::default().profile(|p| p.dup_thresh = 10).active();
    peer.write(10_000).drain();
    assert_eq!((peer.info().reordering, peer.info().reordering_seen), (10, 0));
    peer.recv(seg().sack(&[(4001, 5001)]));
    assert_eq!(peer.info().reordering_seen, 0);
    peer.recv(seg().ack(1001).sack(&[(4001, 5001)]));
    assert_eq!(peer.info().reordering_seen, 1);
    let mut peer = Setup::default().profile(|p| p.dup_thresh = 3).active();
    peer.write(10_000).drain();
    peer.recv(seg().sack(&[(1001, 2001)])).recv(seg().ack(2001));
    // From 1 to 2001 are two segments, and three duplicates mean a loss.
    assert_eq!((peer.info().reordering, peer.info().reordering_seen), (3, 1));
    peer.recv(seg().ack(2001).sack(&[(9001, 10_001)]));
    peer.recv(seg().ack(10_001));
    assert_eq!((peer.info().reordering, peer.info().reordering_seen), (8, 2));
}

/// A segment that was lost and sent again was not overtaken.
#[test]
fn a_repair_is_no_reordering() {
    let mut peer = Setup::default().active();
    peer.write(10_000).drain();
    peer.recv(seg().sack(&[(1001, 5001)])).expect(&["A 1:1001 ack 1"]);
    peer.recv(seg().ack(5001));
    assert_eq!(peer.info().reordering_seen, 0);
}

#[test]
fn the_segments_that_were_offered() {
    assert_eq!(Setup::default().active().info().advertised_mss, 1460);
    assert_eq!(Setup::default().timestamps().active().info().advertised_mss, 1448);
}
