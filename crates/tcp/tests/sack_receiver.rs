//! Selective acknowledgements sent: the examples of RFC 2018 section 7 and of RFC 2883 section 4.

use crate::common;

use common::{Peer, Setup, seg};

/// Everything before `next` has been received and read.
fn receiver_at(setup: &Setup, next: i64) -> Peer {
    let mut peer = setup.active();
    peer.recv(seg().seq(1).data(next as usize - 1)).read(next as usize - 1);
    peer.wait(100).drain();
    peer
}

fn at_5000() -> Peer {
    receiver_at(&Setup::default(), 5000)
}

/// RFC 2018 section 7, case 2: the first of eight segments of 500 is lost.
#[test]
fn rfc_2018_the_first_segment_is_lost() {
    let mut peer = at_5000();
    for i in 1..8 {
        peer.recv(seg().seq(5000 + i * 500).data(500));
        peer.expect(&[&format!("A 1:1 ack 5000 sack 5500-{}", 6000 + (i - 1) * 500)]);
    }
}

/// RFC 2018 section 7, case 3: every second segment is lost, then two of them arrive late. Each acknowledgement
/// reports the block of the segment that caused it first, then the most recently reported ones.
#[test]
fn rfc_2018_every_second_segment_is_lost() {
    let mut peer = at_5000();
    peer.recv(seg().seq(5000).data(500)).silent(); // delayed
    peer.recv(seg().seq(6000).data(500)).expect(&["A 1:1 ack 5500 sack 6000-6500"]);
    peer.recv(seg().seq(7000).data(500)).expect(&["A 1:1 ack 5500 sack 7000-7500 6000-6500"]);
    peer.recv(seg().seq(8000).data(500));
    peer.expect(&["A 1:1 ack 5500 sack 8000-8500 7000-7500 6000-6500"]);
    // The fourth segment arrives out of order.
    peer.recv(seg().seq(6500).data(500)).expect(&["A 1:1 ack 5500 sack 6000-7500 8000-8500"]);
    // Then the second.
    peer.recv(seg().seq(5500).data(500)).expect(&["A 1:1 ack 7500 sack 8000-8500"]);
}

/// Four blocks fit without timestamps, three with them (RFC 2018 section 3).
#[test]
fn as_many_blocks_as_fit() {
    let mut peer = at_5000();
    for i in 1..=6 {
        peer.recv(seg().seq(5000 + i * 1000).data(100));
    }
    let line = peer.drain().last().unwrap().line();
    assert_eq!(line, "A 1:1 ack 5000 sack 11000-11100 10000-10100 9000-9100 8000-8100");
    let mut peer = receiver_at(&Setup::default().timestamps(), 5000);
    for i in 1..=6 {
        peer.recv(seg().seq(5000 + i * 1000).data(100));
    }
    let line = peer.drain().last().unwrap().line();
    assert_eq!(line, "A 1:1 ack 5000 sack 11000-11100 10000-10100 9000-9100");
}

/// Nothing is reported to a peer that did not offer SACK.
#[test]
fn no_blocks_unless_agreed() {
    let mut peer = receiver_at(&Setup::default().no_sack(), 5000);
    peer.recv(seg().seq(6000).data(100)).expect(&["A 1:1 ack 5000"]);
    peer.recv(seg().seq(1000).data(100)).expect(&["A 1:1 ack 5000"]);
}

/// RFC 2883 section 4.1.1: a segment arrives twice.
#[test]
fn rfc_2883_a_duplicate_segment() {
    let mut peer = receiver_at(&Setup::default(), 3000);
    peer.recv(seg().seq(3000).data(500)).recv(seg().seq(3500).data(500)).wait(100).drain();
    peer.recv(seg().seq(3000).data(500)).expect(&["A 1:1 ack 4000 sack 3000-3500"]);
    // Reported once only.
    peer.recv(seg().seq(4000).data(500)).wait(100).expect(&["A 1:1 ack 4500"]);
}

/// RFC 2883 section 4.1.2: a duplicate while a gap is open; the gap's block follows.
#[test]
fn rfc_2883_a_duplicate_with_a_gap() {
    let mut peer = receiver_at(&Setup::default(), 3000);
    peer.recv(seg().seq(3000).data(500)).recv(seg().seq(3500).data(500)).wait(100).drain();
    peer.recv(seg().seq(4500).data(500)).expect(&["A 1:1 ack 4000 sack 4500-5000"]);
    peer.recv(seg().seq(3000).data(500)).expect(&["A 1:1 ack 4000 sack 3000-3500 4500-5000"]);
}

/// RFC 2883 section 4.1.3: a duplicate of what is held beyond the gap; the block that holds it comes second.
#[test]
fn rfc_2883_a_duplicate_beyond_the_gap() {
    let mut peer = receiver_at(&Setup::default(), 4000);
    peer.recv(seg().seq(4500).data(500)).expect(&["A 1:1 ack 4000 sack 4500-5000"]);
    peer.recv(seg().seq(5000).data(500)).expect(&["A 1:1 ack 4000 sack 4500-5500"]);
    peer.recv(seg().seq(5000).data(500)).expect(&["A 1:1 ack 4000 sack 5000-5500 4500-5500"]);
}

/// RFC 2883 section 4.2.1: a larger retransmission covers what arrived beyond the gap, then the delayed original comes.
#[test]
fn rfc_2883_a_partial_duplicate() {
    let mut peer = receiver_at(&Setup::default(), 1000);
    peer.recv(seg().seq(1500).data(500)).expect(&["A 1:1 ack 1000 sack 1500-2000"]);
    peer.recv(seg().seq(1000).data(1000)).expect(&["A 1:1 ack 2000 sack 1500-2000"]);
    peer.recv(seg().seq(1000).data(500)).expect(&["A 1:1 ack 2000 sack 1000-1500"]);
}

/// RFC 2883 section 4.2.2: the duplicate part lies in the middle of the segment.
#[test]
fn rfc_2883_a_duplicate_inside_a_segment() {
    let mut peer = receiver_at(&Setup::default(), 500);
    peer.recv(seg().seq(1500).data(500)).expect(&["A 1:1 ack 500 sack 1500-2000"]);
    peer.recv(seg().seq(1000).data(1500));
    peer.expect(&["A 1:1 ack 500 sack 1500-2000 1000-2500"]);
}

/// SACK blocks go into segments without data; data waits for nothing, and follows.
#[test]
fn blocks_travel_alone() {
    let mut peer = at_5000();
    peer.recv(seg().seq(6000).data(500));
    peer.write(100);
    peer.expect(&["A 1:1 ack 5000 sack 6000-6500", "PA 1:101 ack 5000"]);
}
