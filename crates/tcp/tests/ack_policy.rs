//! When an acknowledgement leaves (RFC 9293 section 3.8.6.3, RFC 5681 section 4.2).

use crate::common;
use transom_tcp::Setting;

use common::{Peer, Setup, ms, seg};
use transom_tcp::UnitChoice;
use transom_tcp::{AckChoice, Profile, ProfileError};

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
    let slow = Profile::classic().with_ack(AckChoice::Delayed(ms(500)));
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
    peer.connection.set(Setting::QuickAck(true));
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

// ----- the policy of Linux -----

/// The profile `quick-ack`, and what the preset `modern` has of it.
fn linux() -> Setup {
    let ack = transom_tcp::compose::compose("modern").unwrap().ack;
    assert_eq!(ack, AckChoice::Quick(ms(200)));
    Setup::default().profile(|profile| profile.ack = ack).quick()
}

/// As many as half of the window holds, and 16 at most.
#[test]
fn quick_acknowledgements_at_the_start_go_by_the_window() {
    for (buffer, expected) in [(65_535, 16), (20_000, 10), (6_000, 3)] {
        let mut peer = linux().receive_buffer(buffer).active();
        let mut quick = 0;
        loop {
            peer.recv(seg().data(1000));
            let received = peer.connection.readable();
            if received > 0 {
                peer.connection.consume(peer.now, received);
            }
            peer.pump();
            if peer.drain().is_empty() {
                break;
            }
            quick += 1;
        }
        // The size of the peer's segments is known from the first one on.
        assert_eq!(quick, expected, "a buffer of {buffer}");
    }
}

/// In a dialogue an acknowledgement rides on the reply; without one it leaves after the delay, and the mode ends.
#[test]
fn ping_pong() {
    let mut peer = linux().active();
    assert!(peer.connection.settings().quick_ack);
    peer.recv(seg().data(10)).expect(&["A 1:1 ack 11"]);
    peer.write(20).expect(&["PA 1:21 ack 11"]);
    assert!(!peer.connection.settings().quick_ack);
    peer.wait(5).recv(seg().ack(21).data(10)).silent();
    peer.write(20).expect(&["PA 21:41 ack 21"]);
    let start = peer.millis();
    peer.wait(5).recv(seg().ack(41).data(10)).silent();
    peer.run_to(start + 44).silent();
    peer.run_to(start + 45).expect(&["A 1:1 ack 31".replace("1:1", "41:41").as_str()]);
    assert!(peer.connection.settings().quick_ack);
    peer.recv(seg().ack(41).data(10)).expect(&["A 41:41 ack 41"]);
}

/// TCP_QUICKACK: off is ping-pong mode, on ends it and acknowledges what waits.
#[test]
fn quick_acknowledgements_on_demand() {
    let mut peer = linux().active();
    peer.connection.set(Setting::QuickAck(false));
    peer.recv(seg().data(10)).silent();
    assert!(!peer.connection.settings().quick_ack);
    peer.connection.set(Setting::QuickAck(true));
    peer.pump();
    peer.expect(&["A 1:1 ack 11"]);
    assert!(peer.connection.settings().quick_ack);
}

/// Reading the peer's data to the end acknowledges it, if the peer had nothing more to send.
#[test]
fn reading_acknowledges() {
    let mut peer = linux().active();
    for _ in 0..16 {
        peer.recv(seg().data(1000));
    }
    peer.read(16_000).drain();
    peer.recv(seg().data(100)).silent();
    peer.read(40).silent();
    peer.read(60).expect(&["A 1:1 ack 16101"]);
    // With the ordinary policy it does not.
    let mut peer = settled();
    peer.read(2000).drain();
    peer.recv(seg().data(100)).read(100).silent();
}

/// A live connection takes the policy over without beginning anew.
#[test]
fn exchanged_for_the_policy_of_linux() {
    let mut peer = settled();
    peer.connection
        .exchange(peer.now, UnitChoice::Acknowledgements(AckChoice::Quick(ms(200))))
        .unwrap();
    peer.wait(10_000);
    peer.recv(seg().data(1000));
    peer.drain();
    let refused =
        peer.connection.exchange(peer.now, UnitChoice::Acknowledgements(AckChoice::Quick(ms(500))));
    assert_eq!(refused, Err(ProfileError::AckDelay(ms(500))));
}
