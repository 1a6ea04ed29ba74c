//! Keep-alives (RFC 9293 section 3.8.4).

use crate::common;
use transom_tcp::Setting;

use common::{Peer, Setup, secs, seg};
use transom_tcp::time::Duration;
use transom_tcp::{ConnectionError, KeepAlive, State};

fn with(keep_alive: KeepAlive) -> Peer {
    Setup::default().profile(|profile| profile.keep_alive = Some(keep_alive)).active()
}

fn minute() -> KeepAlive {
    KeepAlive::default().with_idle(secs(60)).with_interval(secs(10)).with_probes(3)
}

/// [MUST-25] Off unless asked for, [MUST-28] two hours when it is.
#[test]
fn off_by_default_and_two_hours() {
    let mut peer = Setup::default().active();
    peer.wait(7 * 86_400_000).silent().expect_state(State::Established);
    assert!(KeepAlive::default().idle >= Duration::from_secs(7200));
    let mut peer = with(KeepAlive::default());
    peer.wait(7_199_999).silent();
    peer.wait(1).expect(&["A 0:0 ack 1"]);
}

/// [SHLD-12] Without data, at SND.NXT - 1; [MAY-5] [MUST-29] several in a row must fail.
#[test]
fn a_silent_peer_is_probed_and_given_up() {
    let mut peer = with(minute());
    let start = peer.millis();
    peer.run_to(start + 60_000).expect(&["A 0:0 ack 1"]);
    peer.run_to(start + 70_000).expect(&["A 0:0 ack 1"]);
    peer.run_to(start + 80_000).expect(&["A 0:0 ack 1"]).expect_state(State::Established);
    peer.run_to(start + 89_999).expect_state(State::Established);
    peer.run_to(start + 90_000).expect_state(State::Closed);
    assert_eq!(peer.connection.error(), Some(ConnectionError::TimedOut));
    assert_eq!(peer.info().counters.keep_alives, 3);
}

/// [MUST-29] One lost answer is no death.
#[test]
fn an_answer_starts_over() {
    let mut peer = with(minute());
    for _ in 0..20 {
        let heard = peer.millis();
        peer.run_to(heard + 59_999).silent();
        peer.run_to(heard + 79_999).expect(&["A 0:0 ack 1", "A 0:0 ack 1"]);
        // Both answers but the last were lost.
        peer.recv(seg()).silent().expect_state(State::Established);
    }
}

/// [MUST-26] Only with nothing outstanding, and nothing received for the whole interval.
#[test]
fn traffic_puts_it_off() {
    let mut peer = with(minute());
    for _ in 0..10 {
        peer.wait(50_000).silent();
        peer.recv(seg().data(1)).wait(40).drain();
    }
    // Data outstanding: its retransmission asks the same question.
    peer.write(10).drain();
    peer.wait(59_000);
    assert!(peer.drain().iter().all(|out| out.line().starts_with("PA 1:11")));
    assert_eq!(peer.info().counters.keep_alives, 0);
}

/// [MUST-24] [MUST-27] Each connection's own, switched on and off and set while it lives.
#[test]
fn it_is_set_for_each_connection() {
    let mut peer = Setup::default().active();
    peer.connection.set(Setting::KeepAlive(Some(minute())));
    assert_eq!(peer.connection.settings().keep_alive, Some(minute()));
    peer.wait(60_000).expect(&["A 0:0 ack 1"]);
    peer.connection.set(Setting::KeepAlive(None));
    peer.wait(86_400_000).silent().expect_state(State::Established);
    peer.connection.set(Setting::KeepAlive(Some(minute().with_idle(secs(5)))));
    peer.recv(seg()).wait(5_000).expect(&["A 0:0 ack 1"]);
}

/// The other side: probes are answered, with or without a garbage octet, and disturb nothing.
#[test]
fn probes_are_answered() {
    let mut peer = Setup::default().active();
    peer.recv(seg().data(100)).read(100).wait(100).drain();
    peer.recv(seg().seq(100)).expect(&["A 1:1 ack 101"]);
    peer.recv(seg().seq(100).bytes(&[0])).expect(&["A 1:1 ack 101 sack 100-101"]);
    assert_eq!(peer.connection.readable(), 0);
}

/// Keep-alives end with the connection.
#[test]
fn no_probes_after_the_end() {
    let mut peer = with(minute());
    peer.shutdown().recv(seg().ack(2).fin()).drain();
    peer.expect_state(State::TimeWait);
    peer.run_to(1_000_000).silent().expect_state(State::Closed);
}
