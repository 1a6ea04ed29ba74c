//! A receiver that takes forward points, and one that loses patience with any sender.

use crate::common;

use common::{Peer, Setup, ms, seg};
use transom_tcp::{HoleChoice, ReadError, Signal, State};

fn accepts() -> Setup {
    Setup::default().partial(|profile| profile.holes = HoleChoice::Accept)
}

fn skips(after: u64) -> Setup {
    Setup::default().profile(|profile| profile.holes = HoleChoice::Skip(ms(after)))
}

/// Bytes 1 to 1000 are there, 1001 to 2000 missing, 2001 to 3000 there.
fn with_a_hole(setup: &Setup) -> Peer {
    let mut peer = setup.active();
    peer.recv(seg().data(1000)).recv(seg().seq(2001).data(1000));
    peer.drain();
    peer.take_signals();
    peer
}

fn ignored(peer: &Peer) -> u64 {
    peer.info().partial.unwrap().ignored_forward_points
}

#[test]
fn a_forward_point_moves_over_what_is_missing() {
    let mut peer = with_a_hole(&accepts());
    // The peer has sent up to 4000; segment 3001 to 4000 may still come.
    peer.recv(seg().seq(4001).forward(3001)).expect(&["A 1:1 ack 3001"]);
    assert_eq!(peer.take_signals(), [Signal::Readable]);
    peer.read(1000).pass_hole(1000).read(1000);
    assert_eq!(peer.connection.read(peer.now, &mut [0; 10]), Err(ReadError::WouldBlock));
    peer.recv(seg().seq(3001).data(1000)).wait(40).expect(&["A 1:1 ack 4001"]);
    peer.read(1000);
    assert_eq!(peer.info().partial.unwrap().skipped_bytes, 1000);
    assert_eq!(peer.info().counters.bytes_accepted, 3000);
}

#[test]
fn the_reader_is_told_even_if_there_is_nothing_behind_the_hole() {
    let mut peer = accepts().active();
    peer.recv(seg().seq(1001).forward(1001)).expect(&["A 1:1 ack 1001"]);
    assert_eq!(peer.take_signals(), [Signal::Readable]);
    peer.pass_hole(1000);
    // A reader that waits is woken for what comes behind.
    peer.recv(seg().seq(1001).data(10));
    assert_eq!(peer.take_signals(), [Signal::Readable]);
    peer.read(10);
}

#[test]
fn data_behind_a_hole_that_is_not_passed_waits() {
    let mut peer = accepts().active();
    peer.recv(seg().seq(1001).forward(1001)).recv(seg().seq(1001).data(500));
    assert_eq!(peer.connection.readable(), 0);
    peer.take_signals();
    peer.pass_hole(1000);
    assert_eq!(peer.take_signals(), [Signal::Readable]);
    peer.read(500);
}

#[test]
fn the_end_of_the_stream_may_stand_behind_a_hole() {
    let mut peer = with_a_hole(&accepts());
    peer.recv(seg().seq(3001).fin()).expect(&["A 1:1 ack 1001 sack 2001-3001"]);
    peer.recv(seg().seq(3002).forward(3001)).expect(&["A 1:1 ack 3002"]);
    peer.expect_state(State::CloseWait);
    peer.read(1000).pass_hole(1000).read(1000);
    assert_eq!(peer.connection.read(peer.now, &mut [0; 10]), Ok(0));
    // Nothing but a hole before the FIN.
    let mut peer = accepts().active();
    peer.recv(seg().seq(501).fin()).recv(seg().seq(502).forward(501));
    peer.expect_state(State::CloseWait).pass_hole(500);
    assert!(peer.connection.end_of_stream());
}

#[test]
fn unacceptable_announcements_are_ignored_and_counted() {
    let mut peer = with_a_hole(&accepts().receive_buffer(10_000));
    let next = |peer: &Peer| peer.info().rcv_nxt.stream_offset() + 1;
    // Beyond the segment that brings it: the sender claims to have given up what it has not sent.
    peer.recv(seg().seq(3001).forward(3002)).silent();
    // With data of its own that it says will not be sent.
    peer.recv(seg().seq(3001).data(100).forward(3101)).drain();
    assert_eq!((ignored(&peer), next(&peer)), (2, 1001));
    // Beyond the window: the segment itself is not acceptable.
    peer.recv(seg().seq(12_000).forward(11_900)).drain();
    // Half of the sequence space back.
    peer.recv(seg().seq(3101).forward(-(1 << 31) + 5000)).silent();
    peer.recv(seg().seq(3101).forward(0)).silent();
    assert_eq!((ignored(&peer), next(&peer)), (4, 1001));
    // Beyond the FIN.
    peer.recv(seg().seq(3101).fin()).drain();
    peer.recv(seg().seq(3103).forward(3102)).silent();
    assert_eq!((ignored(&peer), next(&peer)), (5, 1001));
    // In a segment whose acknowledgement is of what was never sent (RFC 5961 section 5).
    peer.recv(seg().seq(3102).ack(5000).forward(3101)).drain();
    assert_eq!(next(&peer), 1001);
    peer.recv(seg().seq(3102).forward(3101)).expect(&["A 1:1 ack 3102"]);
}

#[test]
fn one_that_was_not_agreed_upon_is_nothing() {
    for setup in [Setup::default(), Setup { partial: false, ..accepts() }] {
        let mut peer = with_a_hole(&setup);
        peer.recv(seg().seq(3001).forward(3001)).silent();
        assert_eq!((peer.info().rcv_nxt.stream_offset(), ignored(&peer)), (1000, 1));
    }
}

#[test]
fn an_old_one_is_answered_but_not_any_number_of_times() {
    let mut peer = with_a_hole(&accepts());
    peer.recv(seg().seq(3001).forward(3001)).expect(&["A 1:1 ack 3001"]);
    // The acknowledgement was lost.
    peer.recv(seg().seq(3001).forward(3001)).expect(&["A 1:1 ack 3001"]);
    for _ in 0..100 {
        peer.recv(seg().seq(3001).forward(2500));
    }
    assert!(peer.drain().len() <= 10);
    assert_eq!(peer.info().rcv_nxt.stream_offset(), 3000);
}

#[test]
fn late_data_is_dropped_and_not_called_a_duplicate() {
    let mut peer = with_a_hole(&accepts());
    peer.recv(seg().seq(3001).forward(3001)).drain();
    // RFC 2883 is for what arrived twice.
    peer.recv(seg().seq(1001).data(1000)).expect(&["A 1:1 ack 3001"]);
    assert_eq!(peer.info().partial.unwrap().late_bytes, 1000);
    peer.recv(seg().seq(3001).data(1000)).recv(seg().seq(3001).data(1000));
    assert!(peer.drain().last().unwrap().line().ends_with("ack 4001 sack 3001-4001"));
    peer.read(1000).pass_hole(1000).read(2000);
}

#[test]
fn a_program_that_does_not_read_is_not_told() {
    let mut peer = with_a_hole(&accepts());
    peer.connection.shutdown_read(peer.now);
    peer.recv(seg().seq(3001).forward(3001)).recv(seg().seq(3001).data(500).fin());
    assert_eq!(peer.connection.read(peer.now, &mut [0; 10]), Ok(0));
    assert!(peer.connection.readable() == 0 && peer.connection.hole().is_none());
}

#[test]
fn closing_with_a_hole_unread_is_closing_with_data_unread() {
    // RFC 9293, SHLD-3.
    let mut peer = accepts().active();
    peer.recv(seg().seq(1001).forward(1001)).drain();
    peer.close().expect(&["RA 1:1 ack 1001"]);
}

#[test]
fn a_reset_drops_holes_with_everything_else() {
    let mut peer = with_a_hole(&accepts());
    peer.recv(seg().seq(3001).forward(3001)).recv(seg().seq(3001).rst());
    assert!(matches!(peer.connection.read(peer.now, &mut [0; 10]), Err(ReadError::Failed(_))));
}

#[test]
fn the_window_opens_when_a_hole_is_passed() {
    let mut peer = accepts().receive_buffer(4000).active();
    peer.recv(seg().seq(4001).forward(4001)).expect(&["A 1:1 ack 4001"]);
    assert_eq!(peer.advertised(), 0);
    peer.pass_hole(4000).expect(&["A 1:1 ack 4001"]);
    assert_eq!(peer.advertised(), 4000);
}

#[test]
fn a_segment_from_behind_the_hole_gives_the_timestamp_to_echo() {
    let mut peer = with_a_hole(&accepts().timestamps());
    peer.wait(50).recv(seg().seq(3001).forward(3001));
    // RFC 7323 section 4.3: RCV.NXT has passed the segment, so its value is the one to be echoed.
    let out = &peer.drain()[0];
    let (echo, sent) = (out.header.options.timestamps.unwrap().echo, 5_000 + peer.millis());
    assert_eq!(u64::from(echo), sent);
}

#[test]
fn patience_ends() {
    let mut peer = with_a_hole(&skips(500));
    // Found at 100 ms. Three more segments: three more duplicates.
    for i in 0..3 {
        peer.wait(10).recv(seg().seq(3001 + 1000 * i).data(1000));
    }
    peer.expect(&[
        "A 1:1 ack 1001 sack 2001-4001",
        "A 1:1 ack 1001 sack 2001-5001",
        "A 1:1 ack 1001 sack 2001-6001",
    ]);
    peer.run_to(599).silent();
    peer.run_to(600).expect(&["A 1:1 ack 6001"]);
    peer.read(1000).pass_hole(1000).read(4000);
    assert_eq!(peer.take_signals().last(), Some(&Signal::Readable));
    // Nothing was agreed for that; a plain peer does not know.
    let info = peer.info().partial.unwrap();
    assert_eq!((info.agreed, info.skipped_bytes), (false, 1000));
    // The retransmissions of its recovery come late now.
    peer.recv(seg().seq(1001).data(1000)).expect(&["A 1:1 ack 6001"]);
}

#[test]
fn a_loss_that_the_sender_may_not_know_of_stays_longer() {
    // Two duplicates after the first: less than what makes every sender reduce its window.
    let mut peer = with_a_hole(&skips(500));
    peer.recv(seg().seq(3001).data(1000)).recv(seg().seq(4001).data(1000)).drain();
    peer.run_to(1599).silent();
    peer.run_to(1600).expect(&["A 1:1 ack 5001"]);
}

#[test]
fn a_repair_in_time_is_taken() {
    let mut peer = with_a_hole(&skips(500));
    peer.run_to(400).recv(seg().seq(1001).data(1000)).read(3000);
    peer.drain();
    peer.run_to(4000).silent();
    assert_eq!(peer.info().partial.unwrap().skipped_bytes, 0);
}

#[test]
fn nothing_is_skipped_beyond_what_has_arrived() {
    let mut peer = with_a_hole(&skips(100));
    peer.recv(seg().seq(3001).data(3000)).drain();
    peer.run_to(30_000);
    assert_eq!(peer.info().rcv_nxt.stream_offset(), 6000);
    // The end of the stream is something that arrives.
    let mut peer = skips(100).active();
    peer.recv(seg().seq(1001).fin()).drain();
    peer.run_to(30_000).pass_hole(1000).expect_state(State::CloseWait);
    assert!(peer.connection.end_of_stream());
}

#[test]
fn skipped_data_does_not_look_like_a_late_original() {
    // RFC 3522: an acknowledgement that echoes a timestamp from before the retransmission would say that nothing was lost.
    let mut peer = with_a_hole(&skips(500).timestamps());
    peer.recv(seg().seq(3001).data(1000)).recv(seg().seq(4001).data(1000));
    peer.wait(300).recv(seg().seq(5001).data(1000)).drain();
    let newest = 5_000 + peer.millis();
    peer.run_to(600);
    let out = &peer.drain()[0];
    assert_eq!(out.line(), "A 1:1 ack 6001");
    assert_eq!(u64::from(out.header.options.timestamps.unwrap().echo), newest);
}

#[test]
fn waiting_is_the_default() {
    let mut peer = with_a_hole(&Setup::default());
    peer.run_to(4000).silent();
    assert_eq!(peer.info().rcv_nxt.stream_offset(), 1000);
}
