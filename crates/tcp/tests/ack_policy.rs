//! When an acknowledgement leaves (RFC 9293 section 3.8.6.3, RFC 5681 section 4.2).

use crate::common;

use common::{Peer, Setup, ms, seg};
use transom_tcp::profile::{AckChoice, Profile, ProfileError};

fn settled() -> Peer {
    let mut peer = Setup::default().active();
    // The size of the peer's segments is known: 1000 bytes.
    peer.recv(seg().data(1000)).recv(seg().data(1000)).expect(&["A 1:1 ack 2001"]);
    peer
}

/// [SHLD-18] Delayed, [MUST-40] by less than half a second.
#[test]
fn a_single_segment_waits() {
    let mut peer = settled();
    let start = peer.millis();
    peer.recv(seg().data(1000)).silent();
    peer.run_to(start + 39).silent();
    peer.run_to(start + 40).expect(&["A 1:1 ack 3001"]);
    // Later arrivals do not put it off.
    peer.recv(seg().data(10)).wait(30).recv(seg().data(10)).wait(9).silent();
    peer.wait(1).expect(&["A 1:1 ack 3021"]);
    let slow = Profile { ack: AckChoice::Delayed(ms(500)), ..Profile::default() };
    assert_eq!(slow.validate(), Err(ProfileError::AckDelay(ms(500))));
}

/// Without delay every arrival is answered, but one acknowledgement answers those that came together.
#[test]
fn immediate_acknowledgements() {
    let mut peer = Setup::default().profile(|profile| profile.ack = AckChoice::Immediate).active();
    for i in 1..=50 {
        peer.recv(seg().data(100)).expect(&[&format!("A 1:1 ack {}", i * 100 + 1)]);
    }
    peer.recv_batch([seg().data(100), seg().data(100), seg().data(100)]);
    peer.expect(&["A 1:1 ack 5301"]);
}

/// [SHLD-19] Every second full-sized segment, or as many bytes in smaller ones.
#[test]
fn every_second_segment_is_acknowledged() {
    let mut peer = settled();
    for i in 0..10 {
        peer.recv(seg().data(1000)).silent();
        peer.recv(seg().data(1000)).expect(&[&format!("A 1:1 ack {}", 4001 + i * 2000)]);
    }
    for _ in 0..3 {
        peer.recv(seg().data(500)).silent();
    }
    peer.recv(seg().data(500)).expect(&["A 1:1 ack 24001"]);
}

/// At once: out of order, a gap filled in part or whole, a duplicate, a FIN (RFC 5681 section 4.2).
#[test]
fn surprises_are_acknowledged_at_once() {
    let mut peer = settled();
    peer.recv(seg().seq(3001).data(1000)).expect(&["A 1:1 ack 2001 sack 3001-4001"]);
    peer.recv(seg().seq(5001).data(1000)).expect(&["A 1:1 ack 2001 sack 5001-6001 3001-4001"]);
    peer.recv(seg().seq(2001).data(1000)).expect(&["A 1:1 ack 4001 sack 5001-6001"]);
    peer.recv(seg().seq(4001).data(1000)).expect(&["A 1:1 ack 6001"]);
    peer.recv(seg().seq(5001).data(1000)).expect(&["A 1:1 ack 6001 sack 5001-6001"]);
    peer.recv(seg().seq(6001).fin()).expect(&["A 1:1 ack 6002"]);
}

/// An acknowledgement rides on data going the other way, and is not sent again.
#[test]
fn data_carries_the_acknowledgement() {
    let mut peer = settled();
    peer.recv(seg().data(100));
    peer.wait(10).write(50).expect(&["PA 1:51 ack 2101"]);
    peer.recv(seg().ack(51)).wait(100).silent();
}

/// The first arrivals are acknowledged at once, so that the peer's slow start does not wait for a timer.
#[test]
fn the_start_is_quick() {
    let mut peer = Setup::default().quick().active();
    for i in 1..=16 {
        peer.recv(seg().data(1000)).expect(&[&format!("A 1:1 ack {}", 1 + i * 1000)]);
    }
    peer.recv(seg().data(1000)).silent();
    peer.connection.set_quick_ack(true);
    peer.recv(seg().data(10)).expect(&["A 1:1 ack 17011"]);
}

/// A segment without data is not acknowledged, however many come.
#[test]
fn acknowledgements_are_not_acknowledged() {
    let mut peer = settled();
    peer.write(10).drain();
    for _ in 0..5 {
        peer.recv(seg().ack(1));
        peer.recv(seg().ack(11));
    }
    peer.wait(1000).silent();
}
