//! Active opens that hold their last acknowledgement: what leaves and when, and that no end of them leaves the peer waiting.

use crate::common;

use common::{Peer, Setup, ms, secs, seg};
use transom_tcp::{ConnectionError, Setting, Signal, State};

/// Its SYN has left, and the answer will be held for 30 seconds.
fn holding(setup: &Setup) -> Peer {
    let mut peer = setup.connecting();
    peer.connection.set(Setting::HoldAnswer(secs(30)));
    peer.expect(&["S 0:1"]);
    peer
}

/// The same, and the peer has answered after 100 ms.
fn answered(setup: &Setup) -> Peer {
    let mut peer = holding(setup);
    peer.wait(100);
    let options = setup.syn_options(&peer);
    peer.recv(seg().syn().options(options)).silent();
    assert_eq!(peer.take_signals(), [Signal::Answered]);
    assert!(peer.connection.opening().is_answered);
    peer.expect_state(State::SynSent);
    peer
}

fn release(peer: &mut Peer) {
    peer.connection.release(peer.now);
    peer.pump();
}

#[test]
fn nothing_leaves_until_the_owner_releases_the_answer() {
    let setup = Setup { profile: transom_tcp::Profile::classic(), ..Setup::default() };
    let setup = setup.timestamps().scale(7);
    let mut peer = answered(&setup);
    // No retransmission of the SYN either: the peer has it.
    peer.wait(10_000).silent();
    release(&mut peer);
    peer.expect(&["A 1:1 ack 1"]).expect_state(State::Established);
    assert_eq!(peer.take_signals(), [Signal::Connected, Signal::Writable]);
    let info = peer.info();
    assert_eq!(info.srtt, Some(ms(100)), "the time of holding is no round trip");
    assert_eq!(
        (info.mss, info.window_scale),
        (988, Some((7, 7))),
        "the options are those of the answer"
    );
    assert!(!peer.connection.opening().is_answered);
}

#[test]
fn data_written_meanwhile_leaves_with_the_acknowledgement() {
    let mut peer = answered(&Setup::default());
    peer.write(500).silent();
    release(&mut peer);
    peer.expect(&["PA 1:501 ack 1"]);
}

#[test]
fn an_answer_that_comes_after_the_release_is_acknowledged_at_once() {
    let setup = Setup::default();
    let mut peer = holding(&setup);
    release(&mut peer);
    peer.silent().recv(seg().syn()).expect(&["A 1:1 ack 1"]).expect_state(State::Established);
    assert!(!peer.take_signals().contains(&Signal::Answered));
}

#[test]
fn a_repeated_answer_is_silent_and_its_timestamp_is_the_one_that_is_echoed() {
    let setup = Setup::default().timestamps();
    let mut peer = answered(&setup);
    peer.wait(1_000);
    let options = setup.syn_options(&peer);
    peer.recv(seg().seq(0).syn().options(options)).silent();
    assert_eq!(peer.take_signals(), []);
    peer.wait(500);
    release(&mut peer);
    let echo = peer.last.as_ref().unwrap().header.options.timestamps.unwrap().echo;
    assert_eq!(echo, 5_000 + 1_100);
    assert_eq!(peer.info().srtt, Some(ms(100)));
}

/// What comes with the answer, or behind it, is not acknowledged; so the peer sends it again.
#[test]
fn data_and_fin_before_the_release_are_not_taken() {
    let setup = Setup::default();
    let mut peer = holding(&setup);
    peer.wait(100).recv(seg().seq(0).syn().fin().data(10)).silent();
    peer.recv(seg().seq(1).data(10)).silent();
    release(&mut peer);
    peer.expect(&["A 1:1 ack 1"]).expect_state(State::Established);
    peer.recv(seg().seq(1).data(10).fin()).expect_state(State::CloseWait);
    peer.read(10);
}

/// An answer to a bare SYN would complete the peer's handshake.
#[test]
fn a_simultaneous_open_is_held_too() {
    let mut peer = holding(&Setup::default());
    peer.recv(seg().seq(0).no_ack().syn()).silent().expect_state(State::SynSent);
    assert_eq!(peer.take_signals(), []);
    peer.recv(seg().seq(0).syn()).silent();
    assert_eq!(peer.take_signals(), [Signal::Answered]);
    release(&mut peer);
    peer.expect(&["A 1:1 ack 1"]).expect_state(State::Established);
}

#[test]
fn every_end_of_a_held_answer_resets_the_peer() {
    let end = |finish: fn(&mut Peer), error: Option<ConnectionError>| {
        let mut peer = answered(&Setup::default());
        finish(&mut peer);
        peer.expect(&["R 1:1"]).expect_state(State::Closed);
        assert_eq!(peer.connection.error(), error);
        assert!(peer.connection.is_finished());
    };
    end(
        |peer| {
            peer.abort();
        },
        Some(ConnectionError::Aborted),
    );
    end(
        |peer| {
            peer.close();
        },
        None,
    );
    end(
        |peer| {
            peer.wait(30_000);
        },
        Some(ConnectionError::TimedOut),
    );
    // Without an answer there is nobody to reset.
    let mut peer = holding(&Setup::default());
    peer.abort().silent().expect_state(State::Closed);
}

#[test]
fn the_limit_counts_from_the_first_answer() {
    let mut peer = answered(&Setup::default());
    for _ in 0..29 {
        peer.wait(1_000).recv(seg().seq(0).syn()).silent();
    }
    peer.expect_state(State::SynSent).wait(1_000).expect(&["R 1:1"]).expect_state(State::Closed);
}

/// RFC 5961 section 3.2: only one that stands exactly where the peer would send next counts.
#[test]
fn the_peer_can_take_its_answer_back() {
    for exact in [seg().seq(1).rst(), seg().seq(1).rst_ack(1)] {
        let mut peer = answered(&Setup::default());
        peer.recv(seg().seq(0).rst()).recv(seg().seq(2).rst()).recv(seg().seq(1).rst_ack(2));
        peer.silent().expect_state(State::SynSent);
        peer.recv(exact).silent().expect_state(State::Closed);
        assert_eq!(peer.connection.error(), Some(ConnectionError::Refused));
    }
}

/// A forged acknowledgement is reset as ever, but does not have the SYN sent again.
#[test]
fn forged_segments_cause_no_second_syn() {
    let mut peer = answered(&Setup::default());
    peer.recv(seg().seq(500).ack(7)).expect(&["R 7:7"]);
    peer.wait(5_000).silent();
    release(&mut peer);
    peer.expect(&["A 1:1 ack 1"]).wait(5_000).silent();
}
