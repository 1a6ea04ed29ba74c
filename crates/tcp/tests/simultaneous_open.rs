//! Both ends open at once (RFC 9293 figure 7).

use crate::common;

use common::{IRS, ISS, Setup, secs, seg};
use std::sync::Arc;
use transom_tcp::packet::Payload;
use transom_tcp::time::Instant;
use transom_tcp::{Connection, ConnectionError, Endpoint, ReadError, Segment, Signal, State};
use transom_wire::{Seq, Timestamps};

/// [MUST-10] [MUST-11] The SYNs cross; each is answered with a SYN-ACK. The SYN-ACK completes the handshake, and is acknowledged for peers that wait for that.
#[test]
fn syns_cross() {
    let setup = Setup::default().timestamps().scale(3);
    let mut peer = setup.connecting();
    peer.expect(&["S 0:1"]);
    peer.wait(50);
    let options = setup.syn_options(&peer);
    peer.recv(seg().syn().no_ack().options(options)).expect(&["SA 0:1 ack 1"]);
    peer.expect_state(State::SynReceived);
    let syn_ack = peer.last.clone().unwrap().header;
    assert_eq!(syn_ack.options.mss, Some(1460));
    assert_eq!(syn_ack.options.window_scale, Some(0));
    assert_eq!(syn_ack.options.timestamps, Some(Timestamps { value: 7_050, echo: 5_050 }));
    assert!(syn_ack.options.sack_permitted);
    peer.timestamps = true;
    let options = setup.syn_options(&peer);
    peer.wait(50).recv(seg().seq(0).ack(1).syn().options(options)).expect(&["A 1:1 ack 1"]);
    peer.expect_state(State::Established);
    assert_eq!(peer.take_signals(), [Signal::Connected, Signal::Writable]);
    let info = peer.info();
    assert_eq!((info.mss, info.cwnd), (988, 9_880));
    assert_eq!(info.rto, secs(1), "nothing was lost, nothing was measured");
    assert_eq!(info.counters.retransmitted_segments, 0);
    peer.recv(seg()).silent();
    peer.write(100).expect(&["PA 1:101 ack 1"]);
}

/// Line 6 of figure 7, segment by segment: a SYN-ACK with the numbers of both SYNs, and no other, makes SYN-RECEIVED ESTABLISHED. Its window is not scaled.
#[test]
fn only_the_crossing_syn_ack_completes() {
    let setup = Setup::default().scale(3);
    let received = || {
        let mut peer = setup.connecting();
        let options = setup.syn_options(&peer);
        peer.recv(seg().syn().no_ack().options(options)).drain();
        peer
    };
    let options = setup.syn_options(&received());
    for (seq, ack) in [(-1, 1), (1, 1), (0, 0), (0, 2), (0, -5)] {
        let mut peer = received();
        peer.recv(seg().seq(seq).ack(ack).syn().options(options)).expect(&["A 1:1 ack 1"]);
        peer.expect_state(State::SynReceived);
    }
    let mut peer = received();
    peer.recv(seg().seq(0).ack(1).syn().options(options).win(700)).expect(&["A 1:1 ack 1"]);
    peer.expect_state(State::Established);
    assert_eq!(peer.info().snd_wnd, 700);
    // Again, as our acknowledgement was lost: it is only answered.
    peer.wait(1000).recv(seg().seq(0).ack(1).syn().options(options)).expect(&["A 1:1 ack 1"]);
    peer.write(100).expect(&["PA 1:101 ack 1"]);
    // The SYN-ACK comes before ours has left: nobody needs that any more.
    let mut peer = setup.connecting();
    peer.drain();
    let both = [seg().seq(0).syn().no_ack().options(options), seg().seq(0).syn().options(options)];
    peer.recv_batch(both).expect(&["A 1:1 ack 1"]).expect_state(State::Established);
    peer.wait(10_000).silent();
    // What was queued before leaves, a close too.
    let mut peer = received();
    peer.write(10).shutdown().silent();
    peer.recv(seg().seq(0).ack(1).syn().options(options)).expect(&["FPA 1:12 ack 1"]);
    peer.expect_state(State::FinWait1);
}

/// The acknowledgement of our SYN may come with data, and the SYN-ACK is retransmitted until it does.
#[test]
fn the_syn_ack_is_retransmitted() {
    let setup = Setup::default();
    let mut peer = setup.connecting();
    let options = setup.syn_options(&peer);
    peer.recv(seg().syn().no_ack().options(options)).drain();
    peer.run_to(3_500);
    peer.expect_timed(&["1000 SA 0:1 ack 1", "3000 SA 0:1 ack 1"]);
    // The peer's SYN again, as our SYN-ACK was lost: an acknowledgement (RFC 9293 section 3.10.7.4, fourth step).
    peer.recv(seg().seq(0).no_ack().syn().options(options)).expect(&["A 1:1 ack 1"]);
    peer.recv(seg().data(100)).wait(40).expect(&["A 1:1 ack 101"]);
    peer.expect_state(State::Established);
    assert_eq!(peer.info().rto, secs(3), "RFC 6298 section 5.7: the timer expired while waiting");
}

/// [MUST-11] SYN-RECEIVED after an active open: a reset is a refusal that the application hears of; an unacceptable
/// acknowledgement is reset (section 3.10.7.4, fifth step).
#[test]
fn syn_received_after_an_active_open() {
    let setup = Setup::default();
    let received = || {
        let mut peer = setup.connecting();
        let options = setup.syn_options(&peer);
        peer.recv(seg().syn().no_ack().options(options)).drain();
        peer
    };
    let mut peer = received();
    for ack in [0, 2, -7, 9_999] {
        peer.recv(seg().ack(ack).data(4).seq(1)).expect(&[&format!("R {ack}:{ack}")]);
        peer.expect_state(State::SynReceived);
    }
    peer.recv(seg().seq(2).rst()).expect(&["A 1:1 ack 1"]).expect_state(State::SynReceived);
    peer.recv(seg().seq(-1).rst()).silent().expect_state(State::SynReceived);
    peer.recv(seg().seq(1).rst()).silent().expect_state(State::Closed);
    assert_eq!(peer.connection.error(), Some(ConnectionError::Refused));
    // Abort sends a reset, close queues a FIN.
    let mut peer = received();
    peer.abort().expect(&["RA 1:1 ack 1"]).expect_state(State::Closed);
    let mut peer = received();
    peer.close().silent().recv(seg()).expect(&["FA 1:2 ack 1"]).expect_state(State::FinWait1);
    // Outside the window: acknowledged and dropped.
    let mut peer = received();
    peer.recv(seg().seq(90_000)).expect(&["A 1:1 ack 1"]).expect_state(State::SynReceived);
}

/// Two of our own, each SYN and SYN-ACK crossing the other's.
#[test]
fn two_connections_open_at_once() {
    let setup = Setup::default().timestamps().scale(0);
    let profile = Arc::new(setup.profile);
    let now = Instant::ZERO;
    let ports = |local_port, remote_port| Endpoint { local_port, remote_port };
    let open = |endpoint, iss| {
        Connection::connect(profile.clone(), endpoint, setup.path, Seq::new(iss), 0, now)
    };
    let mut a = open(ports(1, 2), ISS);
    let mut b = open(ports(2, 1), IRS);
    for round in 0..10 {
        let at = Instant::from_millis(round * 10);
        let mut segments = [vec![], vec![]];
        for (side, out) in [&mut a, &mut b].into_iter().zip(&mut segments) {
            while let Some(transmit) = side.poll_transmit(at) {
                out.push(transmit.header);
            }
        }
        for (side, arriving) in [&mut b, &mut a].into_iter().zip(&segments) {
            for header in arriving {
                side.on_segment(
                    at,
                    &Segment {
                        header,
                        payload: Payload::EMPTY,
                        segment_size: None,
                        ecn: transom_wire::Ecn::NotEct,
                    },
                );
            }
        }
        if round > 4 {
            assert!(segments.iter().all(Vec::is_empty), "quiet once open: {segments:?}");
        }
    }
    assert_eq!((a.state(), b.state()), (State::Established, State::Established));
    assert_eq!(a.iss(), Seq::new(ISS));
}

/// RFC 9293 section 3.10.7.3: text and FIN that come with the SYN wait until the connection is established.
#[test]
fn data_with_the_syn_is_queued() {
    let setup = Setup::default();
    let mut peer = setup.connecting();
    let options = setup.syn_options(&peer);
    peer.drain();
    peer.recv(seg().seq(0).syn().no_ack().options(options).bytes(b"early"))
        .expect(&["SA 0:1 ack 1"]);
    assert_eq!(peer.connection.readable(), 0);
    assert_eq!(peer.connection.read(peer.now, &mut [0; 10]), Err(ReadError::WouldBlock));
    peer.recv(seg().seq(6)).wait(40).expect(&["A 1:1 ack 6"]).expect_state(State::Established);
    // It may all come again.
    peer.recv(seg().seq(1).bytes(b"early")).expect(&["A 1:1 ack 6 sack 1-6"]);
    peer.recv(seg().seq(6).bytes(b" bird"));
    assert_eq!(peer.read_all(), b"early bird");
}

#[test]
fn a_fin_with_the_syn_is_queued() {
    let setup = Setup::default();
    let mut peer = setup.connecting();
    let options = setup.syn_options(&peer);
    peer.drain();
    peer.recv(seg().seq(0).syn().fin().no_ack().options(options).bytes(b"early")).drain();
    peer.expect_state(State::SynReceived);
    peer.recv(seg().seq(7)).expect(&["A 1:1 ack 7"]).expect_state(State::CloseWait);
    assert_eq!(peer.read_all(), b"early");
    assert!(peer.connection.end_of_stream());
    peer.write(10).expect(&["PA 1:11 ack 7"]);
}

/// Nobody will read it: the connection is reset when it is established, not before.
#[test]
fn data_with_the_syn_for_nobody() {
    let setup = Setup::default();
    let mut peer = setup.connecting();
    let options = setup.syn_options(&peer);
    peer.drain();
    peer.recv(seg().seq(0).syn().no_ack().options(options).bytes(b"early")).close().drain();
    peer.expect_state(State::SynReceived);
    peer.recv(seg().seq(6)).expect(&["RA 1:1 ack 1"]).expect_state(State::Closed);
}
