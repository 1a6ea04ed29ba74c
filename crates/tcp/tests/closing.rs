//! Every path out of a connection (RFC 9293 section 3.3.2, figures 5, 12 and 13; sections 3.6, 3.10.4, 3.10.5).

use crate::common;

use common::{Peer, Setup, ms, seg};
use transom_tcp::packet::Payload;
use transom_tcp::{ConnectionError, ReadError, Segment, Signal, State, WriteError};
use transom_wire::Flags;

/// An established connection taken into `state`.
fn in_state(state: State) -> Peer {
    let mut peer = Setup::default().active();
    match state {
        State::Established => {}
        State::FinWait1 => _ = peer.shutdown(),
        State::FinWait2 => _ = peer.shutdown().recv(seg().ack(2)),
        State::CloseWait => _ = peer.recv(seg().fin()),
        State::Closing => _ = peer.shutdown().recv(seg().ack(1).fin()),
        State::LastAck => _ = peer.recv(seg().fin()).shutdown(),
        State::TimeWait => _ = peer.shutdown().recv(seg().ack(2).fin()),
        State::Closed | State::SynSent | State::SynReceived => unreachable!("not synchronized"),
    }
    peer.expect_state(state);
    peer.drain();
    peer.take_signals();
    peer
}

const SYNCHRONIZED: [State; 7] = [
    State::Established,
    State::FinWait1,
    State::FinWait2,
    State::CloseWait,
    State::Closing,
    State::LastAck,
    State::TimeWait,
];

/// Figure 12, the side that closes first: TIME-WAIT for two segment lifetimes. [MUST-13]
#[test]
fn active_close() {
    let mut peer = Setup::default().active();
    peer.shutdown().expect(&["FA 1:2 ack 1"]).expect_state(State::FinWait1);
    assert_eq!(peer.connection.write(peer.now, b"x"), Err(WriteError::Closed));
    peer.recv(seg().ack(2)).silent().expect_state(State::FinWait2);
    peer.recv(seg().ack(2).fin()).expect(&["A 2:2 ack 2"]).expect_state(State::TimeWait);
    let since = peer.millis();
    assert!(peer.take_signals().contains(&Signal::TimeWait));
    peer.run_to(since + 59_999).expect_state(State::TimeWait);
    peer.run_to(since + 60_000).silent().expect_state(State::Closed);
    assert_eq!(peer.connection.error(), None);
    assert!(peer.take_signals().contains(&Signal::Closed));
    assert_eq!(peer.connection.next_timeout(), None);
}

/// Figure 12, the other side. [MUST-12]
#[test]
fn passive_close() {
    let mut peer = Setup::default().active();
    peer.recv(seg().data(10).fin()).expect(&["A 1:1 ack 12"]).expect_state(State::CloseWait);
    assert!(peer.take_signals().contains(&Signal::Readable));
    assert!(!peer.connection.end_of_stream(), "ten bytes come first");
    peer.read(10);
    assert_eq!(peer.connection.read(peer.now, &mut [0; 4]), Ok(0), "then the end, in order");
    // We may go on as long as we like.
    peer.write(1_500).expect(&["A 1:1001 ack 12", "PA 1001:1501 ack 12"]);
    peer.recv(seg().ack(1501));
    peer.shutdown().expect(&["FA 1501:1502 ack 12"]).expect_state(State::LastAck);
    peer.recv(seg().ack(1502)).silent().expect_state(State::Closed);
    assert_eq!(peer.connection.error(), None);
    assert_eq!(peer.connection.next_timeout(), None);
}

/// Figure 13.
#[test]
fn simultaneous_close() {
    let mut peer = Setup::default().active();
    peer.shutdown().expect(&["FA 1:2 ack 1"]);
    peer.recv(seg().ack(1).fin()).expect(&["A 2:2 ack 2"]).expect_state(State::Closing);
    peer.recv(seg().ack(2)).silent().expect_state(State::TimeWait);
    peer.wait(60_000).expect_state(State::Closed);
    assert_eq!(peer.connection.error(), None);
}

/// The peer's FIN acknowledges ours: straight to TIME-WAIT.
#[test]
fn fin_with_the_ack_of_our_fin() {
    let mut peer = Setup::default().active();
    peer.write(100).shutdown().expect(&["PA 1:101 ack 1", "FA 101:102 ack 1"]);
    peer.recv(seg().ack(102).fin()).expect(&["A 102:102 ack 2"]).expect_state(State::TimeWait);
}

/// Figure 12 from SYN-RECEIVED: the FIN waits for the acknowledgement of our SYN.
#[test]
fn a_close_in_syn_received_is_queued() {
    let setup = Setup::default();
    let mut peer = setup.connecting();
    let options = setup.syn_options(&peer);
    peer.recv(seg().syn().no_ack().options(options)).expect(&["S 0:1", "SA 0:1 ack 1"]);
    peer.expect_state(State::SynReceived);
    peer.write(10).shutdown().silent();
    peer.expect_state(State::SynReceived);
    assert_eq!(peer.connection.write(peer.now, b"x"), Err(WriteError::Closed));
    peer.recv(seg()).expect(&["FPA 1:12 ack 1"]).expect_state(State::FinWait1);
    peer.recv(seg().ack(12)).expect_state(State::FinWait2);
}

/// Data keeps arriving after our FIN, and is acknowledged (half close).
#[test]
fn half_close_goes_on_receiving() {
    let mut peer = in_state(State::FinWait2);
    for i in 0..5 {
        peer.recv(seg().ack(2).data(1000)).recv(seg().ack(2).data(1000));
        peer.expect(&[&format!("A 2:2 ack {}", i * 2000 + 2001)]);
        peer.read(2000);
    }
    peer.recv(seg().ack(2).data(3).fin()).expect(&["A 2:2 ack 10005"]);
    peer.expect_state(State::TimeWait).read(3);
    assert!(peer.connection.end_of_stream());
}

/// The FIN travels with the last data, is retransmitted with it, and is not sent before all of it.
#[test]
fn the_fin_follows_the_data() {
    let mut peer = Setup::default().window(2000).active();
    peer.write(2500).shutdown().expect(&["A 1:1001 ack 1", "A 1001:2001 ack 1"]);
    peer.recv(seg().ack(1001).win(1000)).silent();
    peer.recv(seg().ack(2001)).expect(&["FPA 2001:2502 ack 1"]);
    peer.wait(1000);
    let again = peer.drain();
    assert!(!again.is_empty());
    assert!(again.iter().all(|out| out.line() == "FPA 2001:2502 ack 1"), "{again:?}");
    peer.recv(seg().ack(2501)).expect_state(State::FinWait1);
    peer.wait(5_000);
    assert_eq!(peer.drain()[0].line(), "FA 2501:2502 ack 1", "the FIN alone");
    peer.recv(seg().ack(2502)).expect_state(State::FinWait2);
}

/// A FIN beyond a gap waits for the gap.
#[test]
fn a_fin_out_of_order_waits() {
    let mut peer = Setup::default().active();
    peer.recv(seg().seq(101).data(100).fin()).expect(&["A 1:1 ack 1 sack 101-201"]);
    peer.expect_state(State::Established);
    peer.recv(seg().seq(1).data(100)).expect(&["A 1:1 ack 202"]).expect_state(State::CloseWait);
    peer.read(200);
    assert!(peer.connection.end_of_stream());
}

/// Data after the FIN is ignored (RFC 9293 section 3.10.7.4, seventh step), and so is a second FIN elsewhere.
#[test]
fn nothing_comes_after_the_fin() {
    let mut peer = Setup::default().active();
    peer.recv(seg().data(10).fin()).expect(&["A 1:1 ack 12"]);
    peer.recv(seg().seq(12).data(100)).silent();
    peer.recv(seg().seq(300).fin()).silent().expect_state(State::CloseWait);
    peer.read(10);
    assert!(peer.connection.end_of_stream());
    // Also when the FIN is known but not yet in order.
    let mut peer = Setup::default().active();
    peer.recv(seg().seq(101).fin()).expect(&["A 1:1 ack 1"]);
    peer.recv(seg().seq(51).data(100)).expect(&["A 1:1 ack 1 sack 51-101"]);
    peer.recv(seg().seq(1).data(50)).expect(&["A 1:1 ack 102"]).expect_state(State::CloseWait);
    peer.read(100);
}

/// A FIN that comes again in TIME-WAIT is acknowledged and starts 2·MSL anew. [MUST-13]
#[test]
fn a_repeated_fin_restarts_time_wait() {
    let mut peer = in_state(State::TimeWait);
    peer.wait(50_000);
    peer.recv(seg().seq(1).ack(2).fin()).expect(&["A 2:2 ack 2"]);
    peer.wait(59_999).expect_state(State::TimeWait);
    peer.wait(1).expect_state(State::Closed);
    // In CLOSE-WAIT, CLOSING and LAST-ACK it is acknowledged too.
    for state in [State::CloseWait, State::Closing, State::LastAck] {
        let mut peer = in_state(state);
        let nxt = if state == State::CloseWait { 1 } else { 2 };
        peer.recv(seg().seq(1).ack(1).fin()).expect(&[&format!("A {nxt}:{nxt} ack 2")]);
        peer.expect_state(state);
    }
}

/// RFC 9293 section 3.10.5: a reset from the states in which the peer still expects something of us, and nothing in CLOSING, LAST-ACK and TIME-WAIT.
#[test]
fn abort_in_every_state() {
    for state in SYNCHRONIZED {
        let mut peer = in_state(state);
        let nxt = peer.info().snd_nxt.stream_offset() + 1;
        let rcv = peer.info().rcv_nxt.stream_offset() + 1;
        peer.abort();
        if matches!(state, State::Closing | State::LastAck | State::TimeWait) {
            peer.silent();
        } else {
            peer.expect(&[&format!("RA {nxt}:{nxt} ack {rcv}")]);
        }
        peer.expect_state(State::Closed);
        assert_eq!(peer.connection.error(), Some(ConnectionError::Aborted), "{state:?}");
        assert_eq!(peer.connection.next_timeout(), None);
        assert!(peer.connection.is_finished());
        peer.recv(seg().data(10)).silent();
    }
}

/// Our LAST-ACK begins with the call that closes, the RFC's with the FIN. Before that, the peer waits for data.
#[test]
fn an_abort_before_the_fin_has_left_resets() {
    let mut peer = Setup::default().window(1000).active();
    peer.recv(seg().fin()).write(1500).shutdown().drain();
    peer.expect_state(State::LastAck);
    peer.abort().expect(&["RA 1001:1001 ack 2"]);
    let mut peer = Setup::default().active();
    peer.recv(seg().fin()).write(1500).shutdown().drain();
    peer.expect_state(State::LastAck).abort().silent();
    // [SHLD-3] data that was not read is lost.
    let mut peer = Setup::default().active();
    peer.recv(seg().data(100).fin()).shutdown().drain();
    peer.expect_state(State::LastAck).abort().expect(&["RA 2:2 ack 102"]);
}

/// A reset in every synchronized state (RFC 9293 section 3.10.7.4, second step; TIME-WAIT: RFC 1337). [MUST-12]
#[test]
fn reset_in_every_state() {
    for state in SYNCHRONIZED {
        let mut peer = in_state(state);
        let rcv = peer.info().rcv_nxt.stream_offset() as i64 + 1;
        peer.recv(seg().seq(rcv).rst()).silent();
        let (after, error) = match state {
            State::TimeWait => (State::TimeWait, None),
            _ => (State::Closed, Some(ConnectionError::Reset)),
        };
        peer.expect_state(after);
        assert_eq!(peer.connection.error(), error, "{state:?}");
        if error.is_some() {
            // The peer's FIN has ended what can be read.
            let ended = matches!(state, State::CloseWait | State::Closing | State::LastAck);
            let read = peer.connection.read(peer.now, &mut [0; 4]);
            let expected =
                if ended { Ok(0) } else { Err(ReadError::Failed(ConnectionError::Reset)) };
            assert_eq!(read, expected, "{state:?}");
            let write = peer.connection.write(peer.now, b"x");
            assert_eq!(write, Err(WriteError::Failed(ConnectionError::Reset)));
            assert!(peer.take_signals().contains(&Signal::Closed));
        }
    }
}

/// A reset is told of also after both ends have closed, as on Linux. What the peer had sent before its FIN can be read.
#[test]
fn a_reset_after_both_ends_have_closed() {
    let error = Some(ConnectionError::Reset);
    for acked in [1, 50, 101] {
        // LAST-ACK: the peer closed, then we.
        let mut peer = Setup::default().active();
        peer.recv(seg().fin()).write(100).close().drain();
        peer.expect_state(State::LastAck).recv(seg().ack(acked)).recv(seg().ack(acked).rst());
        assert_eq!((peer.state(), peer.connection.error()), (State::Closed, error), "{acked}");
        // CLOSING: both at once.
        let mut peer = Setup::default().active();
        peer.write(100).close().drain();
        peer.recv(seg().fin()).expect_state(State::Closing);
        peer.recv(seg().ack(acked)).recv(seg().ack(acked).rst());
        assert_eq!((peer.state(), peer.connection.error()), (State::Closed, error), "{acked}");
    }
    let mut peer = Setup::default().active();
    peer.recv(seg().data(10).fin()).shutdown().recv(seg().ack(1).rst());
    assert_eq!((peer.state(), peer.connection.error()), (State::Closed, error));
    peer.read(10);
    assert_eq!(peer.connection.read(peer.now, &mut [0; 4]), Ok(0));
}

/// RFC 7323 section 3.2: where timestamps are agreed, resets have them too.
#[test]
fn resets_carry_timestamps() {
    let mut peer = Setup::default().timestamps().active();
    peer.recv(seg().data(10)).read(10).abort();
    let reset = peer.last.clone().unwrap().header;
    assert!(reset.flags.contains(Flags::RST));
    assert_eq!(
        reset.options.timestamps.unwrap().echo,
        peer.build(&seg()).0.options.timestamps.unwrap().value
    );
    let setup = Setup::default().timestamps();
    let mut peer = setup.connecting();
    let options = setup.syn_options(&peer);
    peer.timestamps = true;
    peer.recv(seg().syn().no_ack().options(options)).drain();
    peer.recv(seg().ack(1_000)).expect(&["R 1000:1000"]);
    assert!(peer.last.clone().unwrap().header.options.timestamps.is_some());
}

/// A FIN without data takes no room in the congestion window. The peer need not wait for an acknowledgement to learn of the end.
#[test]
fn a_fin_does_not_wait_for_the_congestion_window() {
    let mut peer = Setup::newreno().active();
    peer.write(10_000).drain();
    assert_eq!(peer.info().in_flight, peer.info().cwnd);
    peer.shutdown().expect(&["FA 10001:10002 ack 1"]);
    // With data before it, it waits for that.
    let mut peer = Setup::newreno().active();
    peer.write(11_000).shutdown();
    assert_eq!(peer.ranges().last(), Some(&(9_001, 10_001)));
    peer.recv(seg().ack(1_001));
    assert_eq!(peer.ranges().last(), Some(&(10_001, 11_002)));
}

/// A reset makes everything received unreadable: the application must not take a part for the whole. [MUST-12]
#[test]
fn a_reset_is_not_an_end_of_stream() {
    let mut peer = Setup::default().active();
    peer.recv(seg().data(100)).recv(seg().rst());
    assert_eq!(peer.connection.readable(), 0);
    assert!(peer.connection.read(peer.now, &mut [0; 4]).is_err());
}

/// [SHLD-2] A reset may carry data.
#[test]
fn a_reset_with_data_is_a_reset() {
    let mut peer = Setup::default().active();
    peer.recv(seg().rst().bytes(b"because")).silent().expect_state(State::Closed);
    assert_eq!(peer.connection.error(), Some(ConnectionError::Reset));
}

/// As Linux does it: what came in order before the reset is read, and then the reset is told. Nothing is kept of a hole's other side, or for nobody.
#[test]
fn data_before_a_reset_can_be_kept() {
    for keeps in [false, true] {
        let mut peer =
            Setup::default().profile(|profile| profile.read_after_error = keeps).active();
        peer.recv(seg().data(100)).recv(seg().seq(201).data(10)).recv(seg().seq(101).rst());
        let mut out = [0; 1000];
        let reset = Err(ReadError::Failed(ConnectionError::Reset));
        let first = peer.connection.read(peer.now, &mut out);
        assert_eq!(first, if keeps { Ok(100) } else { reset });
        assert_eq!(peer.connection.read(peer.now, &mut out), reset);
        peer.expect_state(State::Closed);
    }
    let mut peer = Setup::default().profile(|profile| profile.read_after_error = true).active();
    peer.recv(seg().data(100)).drain();
    peer.close();
    assert_eq!(peer.connection.readable(), 0);
}

/// [SHLD-3] Closing with data unread, and data arriving after the close, reset the connection.
#[test]
fn data_that_nobody_will_read_resets() {
    let mut peer = Setup::default().active();
    peer.recv(seg().data(100)).wait(100).drain();
    peer.close().expect(&["RA 1:1 ack 101"]).expect_state(State::Closed);

    let mut peer = Setup::default().active();
    peer.close().expect(&["FA 1:2 ack 1"]);
    peer.recv(seg().ack(2).data(10)).expect(&["RA 2:2 ack 1"]).expect_state(State::Closed);

    // Unread data in LAST-ACK: the reset is the only thing that tells the peer.
    let mut peer = Setup::default().active();
    peer.recv(seg().data(100).fin()).drain();
    peer.shutdown().expect(&["FA 1:2 ack 102"]).expect_state(State::LastAck);
    peer.close().expect(&["RA 2:2 ack 102"]).expect_state(State::Closed);

    // A retransmission of what was read is no new data.
    let mut peer = Setup::default().active();
    peer.recv(seg().data(100)).read(100).wait(100).drain();
    peer.close().expect(&["FA 1:2 ack 101"]);
    peer.recv(seg().seq(1).data(100)).expect(&["A 2:2 ack 101 sack 1-101"]);
    peer.expect_state(State::FinWait1);
}

/// [MAY-1] A close ends both directions; without anything unread it ends them in order, and nobody has to watch.
#[test]
fn close_ends_in_order() {
    let mut peer = Setup::default().active();
    peer.write(10).close().expect(&["PA 1:11 ack 1", "FA 11:12 ack 1"]);
    peer.recv(seg().ack(12)).expect_state(State::FinWait2);
    peer.recv(seg().ack(12).fin()).expect(&["A 12:12 ack 2"]).expect_state(State::TimeWait);
    peer.close().silent();
    peer.wait(60_000).expect_state(State::Closed);
}

/// A peer that never closes does not hold a closed connection for ever in FIN-WAIT-2.
#[test]
fn fin_wait_2_ends_when_nobody_cares() {
    let mut peer = Setup::default().active();
    peer.close().recv(seg().ack(2)).drain();
    peer.expect_state(State::FinWait2);
    peer.wait(59_999).expect_state(State::FinWait2);
    peer.wait(1).expect_state(State::Closed);
    assert_eq!(peer.connection.error(), None);
    // With somebody waiting it stays, whichever call came first.
    let mut peer = in_state(State::FinWait2);
    peer.wait(3_600_000).expect_state(State::FinWait2);
    peer.close();
    peer.wait(60_000).expect_state(State::Closed);
}

/// A closed connection whose peer is gone, or keeps its window closed, is given up after a few attempts.
#[test]
fn orphans_are_given_up() {
    let mut peer = Setup::default().active();
    peer.write(10).close();
    peer.wait(600_000).expect_state(State::Closed);
    assert_eq!(peer.info().counters.timeouts, 8, "orphan_retries");

    let mut peer = Setup::default().window(1000).active();
    peer.write(5000).close().recv(seg().ack(1001).win(0)).drain();
    for _ in 0..100 {
        if peer.state() == State::Closed {
            break;
        }
        peer.next_timer();
        if !peer.drain().is_empty() {
            peer.recv(seg().ack(1001).win(0)).drain();
        }
    }
    peer.expect_state(State::Closed);
    assert!(peer.millis() < 600_000);
}

/// Data arriving after `shutdown_read` is acknowledged and dropped, and the window does not close over it.
#[test]
fn shutdown_read_drops_what_arrives() {
    let mut peer = Setup::default().receive_buffer(4000).active();
    for _ in 0..4 {
        peer.recv(seg().data(1000));
    }
    peer.wait(100);
    peer.drain();
    assert_eq!(peer.advertised(), 0);
    peer.connection.shutdown_read(peer.now);
    assert_eq!(peer.connection.read(peer.now, &mut [0; 9]), Ok(0));
    peer.pump();
    peer.expect(&["A 1:1 ack 4001"]);
    assert_eq!(peer.advertised(), 4000, "the sender learns that there is room");
    for _ in 0..20 {
        peer.recv(seg().data(1000));
    }
    peer.wait(ms(100).as_millis());
    assert_eq!(peer.advertised(), 4000);
    assert_eq!(peer.connection.readable(), 0);
    // A reader whose memory the data happens to lie in has been told of the end, and is not given it either.
    let (header, bytes) = peer.build(&seg().data(1000));
    let claimed = std::cell::Cell::new(0);
    let payload = Payload::in_place(&bytes, &claimed);
    peer.connection.on_segment(
        peer.now,
        &Segment { header: &header, payload, segment_size: None, ecn: transom_wire::Ecn::NotEct },
    );
    peer.next += 1000;
    assert_eq!(claimed.get(), 0);
    peer.recv(seg().fin()).expect_state(State::CloseWait);
}

/// Acknowledgements of the FIN that come late or twice harm nobody.
#[test]
fn old_acknowledgements_while_closing() {
    let mut peer = in_state(State::FinWait1);
    peer.recv(seg().ack(1)).recv(seg().ack(1)).silent().expect_state(State::FinWait1);
    peer.recv(seg().ack(3)).expect(&["A 2:2 ack 1"]).expect_state(State::FinWait1);
    let mut peer = in_state(State::LastAck);
    peer.recv(seg().ack(1)).silent().expect_state(State::LastAck);
    peer.recv(seg().ack(2)).expect_state(State::Closed);
}
