//! Timestamps: what is echoed, and what is rejected as old (RFC 7323 sections 3 to 5).

use crate::common;

use common::{Peer, Setup, seg};
use transom_tcp::State;
use transom_wire::Timestamps;

/// TS.Recent is 1 (the script's SYN had 0 shifted by its clock); RCV.NXT is 1; every second segment is acknowledged.
fn receiver() -> Peer {
    let mut setup = Setup::default().timestamps();
    setup.rtt = 0;
    let mut peer = setup.active();
    peer.clock = 5_001;
    peer
}

fn echoed(peer: &Peer) -> u32 {
    peer.last.as_ref().unwrap().header.options.timestamps.unwrap().echo
}

/// Section 4.3, case A: delayed acknowledgements echo the oldest unacknowledged segment.
#[test]
fn a_delayed_acknowledgement_echoes_the_oldest() {
    let mut peer = receiver();
    peer.recv(seg().data(200).ts(5_010, 7_000));
    peer.recv(seg().data(200).ts(5_020, 7_000));
    peer.recv(seg().data(200).ts(5_030, 7_000)).silent();
    peer.wait(40).expect(&["A 1:1 ack 601"]);
    assert_eq!(echoed(&peer), 5_010);
}

/// Section 4.3, case B: with a gap the last segment in order is echoed, then the one that fills it.
#[test]
fn a_gap_does_not_advance_the_echo() {
    let mut peer = receiver();
    peer.recv(seg().seq(1).data(988).ts(5_010, 7_000)).wait(40);
    assert_eq!(echoed(&peer), 5_010);
    peer.recv(seg().seq(1977).data(988).ts(5_030, 7_000)).drain();
    assert_eq!(echoed(&peer), 5_010);
    peer.recv(seg().seq(989).data(988).ts(5_020, 7_000)).drain();
    assert_eq!((peer.last.as_ref().unwrap().ack(), echoed(&peer)), (2965, 5_020));
    peer.recv(seg().seq(3953).data(988).ts(5_050, 7_000));
    assert_eq!(echoed(&peer), 5_020);
    peer.recv(seg().seq(2965).data(988).ts(5_040, 7_000));
    assert_eq!((peer.last.as_ref().unwrap().ack(), echoed(&peer)), (4941, 5_040));
}

/// Section 4.3 step 2, and appendix H: a retransmission that is there because acknowledgements were lost is echoed although nothing in it
/// is new, whether it is the last segment that arrived or one before. The sender, whose clock is at 8010 when it has the answer, measures
/// the 10 ms since it sent again and not the 3 s since it sent first.
#[test]
fn a_retransmission_after_a_lost_acknowledgement_is_echoed() {
    let mut peer = receiver();
    peer.recv(seg().seq(1).data(988).ts(5_010, 7_000));
    peer.recv(seg().seq(989).data(988).ts(5_010, 7_000)).drain();
    assert_eq!((peer.last.as_ref().unwrap().ack(), echoed(&peer)), (1977, 5_010));
    peer.recv(seg().seq(989).data(988).ts(6_000, 7_000)).drain();
    assert_eq!((peer.last.as_ref().unwrap().ack(), echoed(&peer)), (1977, 6_000));
    peer.recv(seg().seq(1).data(988).ts(8_000, 7_000)).drain();
    assert_eq!((peer.last.as_ref().unwrap().ack(), echoed(&peer)), (1977, 8_000));
    // A copy that comes late says nothing new.
    peer.recv(seg().seq(1).data(988).ts(7_000, 7_000)).drain();
    assert_eq!((peer.last.as_ref().unwrap().ack(), echoed(&peer)), (1977, 8_000));
}

/// Section 5.3 R1: older than TS.Recent is answered and dropped, whatever its sequence number.
#[test]
fn old_segments_are_rejected() {
    let mut peer = receiver();
    peer.recv(seg().seq(1).data(10).ts(6_000, 7_000)).wait(50).drain();
    peer.write(10).drain();
    peer.recv(seg().seq(11).ack(11).data(10).ts(5_999, 7_000)).expect(&["A 11:11 ack 11"]);
    assert_eq!(peer.connection.readable(), 10);
    assert_eq!(peer.info().unacknowledged, 10, "its acknowledgement did not count");
    assert_eq!(peer.info().counters.paws_rejected, 1);
    peer.recv(seg().seq(11).ack(11).ts(5_999, 7_000).fin());
    peer.expect_state(State::Established);
    // The same value again is no older.
    peer.recv(seg().seq(11).ack(11).data(10).ts(6_000, 7_000));
    assert_eq!(peer.connection.readable(), 20);
}

/// Sections 5.3 and 5.2: resets are not subject to the test; neither do they need the option (section 3.2).
#[test]
fn resets_are_exempt() {
    let mut peer = receiver();
    peer.recv(seg().seq(1).rst().ts(1, 0)).expect_state(State::Closed);
    let mut peer = receiver();
    peer.recv(seg().seq(1).rst().no_ts()).expect_state(State::Closed);
}

/// Section 3.2: once agreed, every segment carries the option; one without is dropped in silence.
#[test]
fn a_segment_without_the_option_is_dropped() {
    let mut peer = receiver();
    peer.recv(seg().seq(1).data(10).no_ts()).wait(100).silent();
    assert_eq!(peer.connection.readable(), 0);
    peer.write(10).shutdown();
    peer.wait(2000);
    for out in peer.drain() {
        assert!(out.header.options.timestamps.is_some(), "{}", out.line());
    }
}

/// Section 5.5: after 24 days of silence TS.Recent is worth nothing.
#[test]
fn an_outdated_value_does_not_reject() {
    let mut peer = receiver();
    // Older than 5000, by the signed difference.
    peer.recv(seg().seq(1).data(10).ts(4_000_000_000, 0)).expect(&["A 1:1 ack 1"]);
    peer.wait(25 * 86_400_000).drain();
    peer.recv(seg().seq(1).data(10).ts(4_000_000_000, 0));
    assert_eq!(peer.connection.readable(), 10);
}

/// Values wrap like sequence numbers.
#[test]
fn timestamps_wrap() {
    let mut setup = Setup::default().timestamps();
    setup.rtt = 0;
    let mut peer = setup.connecting();
    peer.drain();
    let mut options = setup.syn_options(&peer);
    options.timestamps = Some(Timestamps { value: u32::MAX - 1, echo: 7_000 });
    peer.recv(seg().syn().options(options)).drain();
    peer.recv(seg().seq(1).data(10).ts(5, 7_000));
    peer.recv(seg().seq(11).data(10).ts(u32::MAX, 7_000));
    assert_eq!(peer.connection.readable(), 10, "the value before the wrap is old now");
}

/// A forged future value cannot be planted: only a segment that begins at or before Last.ACK.sent, and is acceptable,
/// sets TS.Recent.
#[test]
fn ts_recent_cannot_be_poisoned() {
    let far = 5_000u32.wrapping_add(1 << 30);
    let mut peer = receiver();
    for poison in [
        seg().seq(20_000).data(10).ts(far, 7_000),  // out of order
        seg().seq(200_000).data(10).ts(far, 7_000), // outside the window
        seg().seq(1).ack(9_999).ts(far, 7_000),     // acknowledges the future
        seg().seq(1).no_ack().data(10).ts(far, 7_000),
        seg().seq(500).rst().ts(far, 7_000),
        seg().seq(1).syn().ts(far, 7_000),
    ] {
        peer.recv(poison.clone()).drain();
        peer.recv(seg().seq(1).data(0));
        let before = peer.info().counters.paws_rejected;
        peer.recv(seg().seq(1).ts(5_001, 7_000));
        assert_eq!(peer.info().counters.paws_rejected, before, "{poison:?}");
    }
}

/// Nor by what looks like a retransmission. It has to lie within a window before RCV.NXT and in the stream, with an acknowledgement that can
/// be true and the echo of a value that was sent within ten minutes.
#[test]
fn ts_recent_cannot_be_poisoned_by_a_repetition() {
    let far = 5_000u32.wrapping_add(1 << 30);
    let mut peer = receiver();
    peer.recv(seg().seq(-20).data(10).ts(far, 7_000)).drain(); // before the stream
    let window = peer.info().rcv_buffer as i64;
    let mut seq = 1;
    while seq < 2 * window {
        peer.recv(seg().seq(seq).data(1000).ts(5_001, 7_000)).drain();
        peer.read(1000);
        seq += 1000;
    }
    assert_eq!(peer.info().rcv_buffer as i64, window);
    let last = seq - 2000;
    for poison in [
        seg().seq(seq - window - 1).data(10).ts(far, 7_000), // older than a window
        seg().seq(last).ack(2).data(10).ts(far, 7_000),      // acknowledges the future
        seg().seq(last).ack(0).data(10).ts(far, 7_000),      // acknowledges the past
        seg().seq(last).data(10).ts(far, 7_000 + (1 << 31)), // echoes what was never sent
        seg().seq(last).no_ack().data(10).ts(far, 7_000),
        seg().seq(last).ts(far, 7_000), // nothing in it
    ] {
        peer.recv(poison.clone()).drain();
        let before = peer.info().counters.paws_rejected;
        peer.recv(seg().seq(seq).ts(5_001, 7_000));
        assert_eq!(peer.info().counters.paws_rejected, before, "{poison:?}");
    }
    // The same without any of that is what a sender repeats.
    peer.recv(seg().seq(seq - window).data(10).ts(far, 7_000)).drain();
    assert_eq!(echoed(&peer), far);
}

/// Our clock ticks in milliseconds from its own starting point, and never on its own zero.
#[test]
fn our_values_follow_the_clock() {
    let mut peer = Setup::default().timestamps().active();
    peer.run_to(1_234);
    peer.write(1);
    let stamps = peer.last.as_ref().unwrap().header.options.timestamps.unwrap();
    assert_eq!(stamps, Timestamps { value: 7_000 + 1_234, echo: 5_100 });
}
