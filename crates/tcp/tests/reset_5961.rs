//! Blind resets, SYNs and data (RFC 5961), and how many answers they get.

use crate::common;

use common::{Setup, seg};
use transom_tcp::{ConnectionError, State};

/// Section 3.2: exactly RCV.NXT resets, elsewhere in the window is challenged, outside is dropped in silence.
#[test]
fn a_reset_counts_at_one_place_only() {
    let mut peer = Setup::default().receive_buffer(10_000).active();
    peer.recv(seg().data(500)).read(500).wait(100).drain();
    let edge = 501 + peer.info().rcv_wnd as i64;
    for seq in [500, 1, edge, edge + 1, 501 + (1 << 30), 501 - (1 << 30)] {
        peer.recv(seg().seq(seq).rst()).silent().expect_state(State::Established);
    }
    for seq in [502, 600, edge - 1] {
        peer.recv(seg().seq(seq).rst()).expect(&["A 1:1 ack 501"]);
        peer.expect_state(State::Established);
    }
    // The rest of the segment is not read.
    peer.write(10).drain();
    let reset = seg().rst_ack(11).seq(502).data(10);
    peer.recv(reset).expect(&["A 11:11 ack 501"]);
    assert_eq!(peer.info().unacknowledged, 10);
    peer.recv(seg().seq(501).rst()).silent().expect_state(State::Closed);
    assert_eq!(peer.connection.error(), Some(ConnectionError::Reset));
}

/// The peer that really lost its state answers the challenge with a reset at the right place.
#[test]
fn a_challenge_brings_the_true_reset() {
    let mut peer = Setup::default().active();
    peer.recv(seg().seq(0).syn().no_ack()).expect(&["A 1:1 ack 1"]);
    // To a peer in SYN-SENT that acknowledgement is unacceptable: it resets with SEG.ACK as its number.
    peer.recv(seg().seq(1).rst()).expect_state(State::Closed);
}

/// Section 4: a SYN is challenged wherever it stands, in every synchronized state.
#[test]
fn a_syn_is_challenged_anywhere() {
    for seq in [0, 1, 2, 70_000, -70_000] {
        let mut peer = Setup::default().active();
        peer.recv(seg().seq(seq).syn().no_ack()).expect(&["A 1:1 ack 1"]);
        peer.recv(seg().seq(seq).syn().data(5)).expect(&["A 1:1 ack 1"]);
        peer.expect_state(State::Established);
        assert_eq!(peer.connection.readable(), 0);
    }
    let mut peer = Setup::default().active();
    peer.shutdown().recv(seg().ack(2).fin()).expect_state(State::TimeWait).drain();
    peer.recv(seg().seq(1000).syn().no_ack()).expect(&["A 2:2 ack 2"]);
    peer.expect_state(State::TimeWait);
}

/// Section 7: ten answers a second, of each connection's own budget. Segments without an answer are refused as well.
#[test]
fn challenges_are_limited() {
    let mut peer = Setup::default().active();
    for i in 0..100 {
        peer.recv(seg().seq(2 + i).rst());
        peer.wait(5);
    }
    assert_eq!(peer.drain().len(), 10);
    peer.expect_state(State::Established);
    let mut other = Setup::default().active();
    other.recv(seg().seq(2).rst()).expect(&["A 1:1 ack 1"]);
    peer.wait(600).recv(seg().seq(2).rst()).expect(&["A 1:1 ack 1"]);
}

/// Two ends that find each other's segments unacceptable fall silent.
#[test]
fn no_acknowledgement_storm() {
    let mut peer = Setup::default().active();
    peer.write(10).drain();
    let mut answers = 0;
    for _ in 0..10_000 {
        // Each answer would be answered by the like.
        peer.recv(seg().seq(-100_000).ack(1));
        answers += peer.drain().len();
    }
    assert_eq!(answers, 10);
}

/// Data is taken only with an acknowledgement in the right range (section 5); see also `sequence.rs`.
#[test]
fn blind_data_needs_a_plausible_acknowledgement() {
    let mut peer = Setup::default().active();
    for ack in [2, 1 << 20, 1 << 30, -(1 << 17), -(1 << 30)] {
        peer.recv(seg().seq(1).ack(ack).data(10)).expect(&["A 1:1 ack 1"]);
        assert_eq!(peer.connection.readable(), 0, "{ack}");
    }
}

/// A segment that might be a late duplicate is not answered with a reset: never in a synchronized state.
#[test]
fn an_unacceptable_segment_is_never_reset() {
    let mut peer = Setup::default().active();
    for segment in
        [seg().seq(-5).data(3), seg().seq(99_000).data(3), seg().seq(99_000).fin(), seg().ack(77)]
    {
        peer.recv(segment.clone()).expect(&["A 1:1 ack 1"]);
    }
    peer.expect_state(State::Established);
}
