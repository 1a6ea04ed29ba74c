//! Where a segment stands, and what of it is taken (RFC 9293 sections 3.4 and 3.10.7.4).
//!
//! Both initial sequence numbers lie just below 2³², so every longer script crosses the wrap.

use crate::common;

use common::{Peer, Setup, seg};
use transom_tcp::packet::Payload;
use transom_tcp::{Segment, State};

/// 1000 bytes received and read, so that something lies on both sides of RCV.NXT = 1001; the window is 10 000 wide.
fn receiver() -> Peer {
    let mut peer = Setup::default().receive_buffer(10_000).active();
    peer.recv(seg().data(500)).recv(seg().data(500)).read(1000).wait(100);
    peer.drain();
    peer
}

/// The table of section 3.4 for a window that is open. An unacceptable segment is answered with an acknowledgement
/// and nothing of it counts.
#[test]
fn the_acceptability_table_with_an_open_window() {
    let edge = {
        let peer = receiver();
        let info = peer.info();
        assert!(info.rcv_wnd > 5_000);
        1001 + info.rcv_wnd as i64
    };
    // (SEG.SEQ, SEG.LEN, bytes taken in order)
    for (seq, len, taken) in [
        (1001, 100, 100),   // RCV.NXT
        (951, 100, 50),     // overlaps from the left
        (901, 100, 0),      // ends at RCV.NXT: nothing new
        (801, 100, 0),      // before the window
        (edge, 100, 0),     // begins behind it
        (edge + 1, 100, 0), // further behind
        (1, 1000, 0),       // all of it old
        (1001 - (1 << 30), 100, 0),
        (1001 + (1 << 30), 100, 0),
    ] {
        let mut peer = receiver();
        peer.write(10).drain();
        peer.recv(seg().seq(seq).ack(11).data(len).win(1234)).wait(100);
        let sent = peer.drain();
        assert_eq!(sent.len(), 1, "{seq}, {len}: answered once");
        assert_eq!(sent[0].ack(), 1001 + taken, "{seq}, {len}");
        assert_eq!(peer.connection.readable(), taken as usize);
    }
}

/// Segments without data: acceptable from RCV.NXT to the right edge. (The edge itself is where a peer stands that has
/// filled our window; section 3.4's table ends one before it.)
#[test]
fn bare_segments() {
    let edge = 1001 + receiver().info().rcv_wnd as i64;
    for (seq, acceptable) in
        [(1001, true), (edge - 1, true), (edge, true), (edge + 1, false), (999, false), (1, false)]
    {
        let mut peer = receiver();
        peer.write(10).drain();
        peer.recv(seg().seq(seq).ack(11));
        if acceptable {
            peer.silent();
        } else {
            peer.expect(&["A 11:11 ack 1001"]);
        }
        assert_eq!(peer.info().unacknowledged, if acceptable { 0 } else { 10 }, "{seq}");
    }
}

/// Data beyond the window is cut off, and the window is stated at once.
#[test]
fn data_is_trimmed_to_the_window() {
    let mut peer = Setup::default().receive_buffer(3000).active();
    peer.recv(seg().data(2000)).drain();
    let window = peer.info().rcv_wnd as usize;
    peer.recv(seg().data(5000)).expect(&[&format!("A 1:1 ack {}", 2001 + window)]);
    assert_eq!(peer.connection.readable(), 2000 + window);
    assert_eq!(peer.advertised(), 0);
}

/// [SHLD-31] Segments beyond a gap are kept, in whatever order they come; [MAY-13] each is acknowledged at once.
#[test]
fn out_of_order_segments_are_kept() {
    let mut peer = Setup::default().active();
    let order = [3, 1, 4, 2, 9, 7, 5, 6, 8];
    for i in order {
        peer.recv(seg().seq(1 + i * 100).data(100));
        assert_eq!(peer.drain().len(), 1);
    }
    assert_eq!(peer.connection.readable(), 0);
    peer.recv(seg().seq(1).data(100)).expect(&["A 1:1 ack 1001"]);
    peer.read(1000);
}

/// Overlapping segments: what came first stays, whatever a later copy says.
#[test]
fn a_retransmission_cannot_change_what_was_received() {
    let mut peer = Setup::default().active();
    peer.recv(seg().seq(5).bytes(b"5678"));
    peer.recv(seg().seq(3).bytes(b"ABCDEFGH"));
    peer.recv(seg().seq(1).bytes(b"xyAB####"));
    assert_eq!(peer.read_all(), b"xyAB5678GH");
    peer.recv(seg().seq(1).bytes(b"zzzzzzzzzz"));
    assert_eq!(peer.connection.readable(), 0);
}

/// A segment in a synchronized state has an acknowledgement or is nothing.
#[test]
fn a_segment_without_ack_is_dropped() {
    let mut peer = Setup::default().active();
    peer.recv(seg().seq(1).no_ack().data(10)).silent();
    peer.recv(seg().seq(1).no_ack().fin()).silent().expect_state(State::Established);
    peer.wait(1000).silent();
    assert_eq!(peer.connection.readable(), 0);
}

/// What the first check does not admit is answered even so (RFC 9293 section 3.10.7.4): before the window, behind it, and at both of its edges.
#[test]
fn an_unacceptable_segment_without_ack_is_answered() {
    let outside = [
        seg().seq(1).no_ack().data(100),
        seg().seq(51).no_ack().data(50),
        seg().seq(100).no_ack(),
        seg().seq(2).no_ack(),
        seg().seq(70_000).no_ack().data(10),
        seg().seq(70_000).no_ack().fin(),
    ];
    for segment in outside {
        let mut peer = Setup::default().active();
        peer.recv(seg().data(100)).read(100).wait(100).drain();
        peer.recv(segment.clone());
        assert_eq!(peer.sent.len(), 1, "{segment:?}");
        let header = &peer.drain()[0].header;
        assert_eq!(
            (header.flags, header.ack),
            (transom_wire::Flags::ACK, transom_wire::Seq::new(common::IRS) + 101)
        );
        assert_eq!(peer.connection.readable(), 0);
    }
    // A full window: data at its right edge is outside.
    let mut peer = Setup::default().receive_buffer(4000).active();
    for _ in 0..4 {
        peer.recv(seg().data(1000));
    }
    peer.wait(100).drain();
    peer.recv(seg().seq(4001).no_ack().data(1)).expect(&["A 1:1 ack 4001"]);
}

/// Of something not yet sent: acknowledge and drop, data and all.
#[test]
fn an_acknowledgement_of_the_future_is_dropped() {
    let mut peer = Setup::default().active();
    peer.write(100).drain();
    peer.recv(seg().seq(1).ack(102).data(10)).expect(&["A 101:101 ack 1"]);
    assert_eq!(peer.info().unacknowledged, 100);
    assert_eq!(peer.connection.readable(), 0);
    peer.recv(seg().seq(1).ack(101).data(10));
    assert_eq!(peer.info().unacknowledged, 0);
    assert_eq!(peer.connection.readable(), 10);
}

/// [MAY-12] RFC 5961 section 5: older than SND.UNA by more than any window ever offered is dropped too; younger is a
/// late duplicate whose data counts.
#[test]
fn an_acknowledgement_of_the_past() {
    let mut peer = Setup::default().window(4000).active();
    for i in 0..10 {
        peer.write(1000).recv(seg().ack(1001 + i * 1000));
    }
    peer.drain();
    peer.recv(seg().seq(1).ack(6001).data(10)).wait(100).expect(&["A 10001:10001 ack 11"]);
    peer.recv(seg().seq(11).ack(6000).data(10)).expect(&["A 10001:10001 ack 11"]);
    assert_eq!(peer.connection.readable(), 10);
    assert_eq!(peer.info().counters.challenge_acks, 1);
    assert_eq!(peer.info().snd_una.stream_offset(), 10_000);
}

/// SND.WL1 and SND.WL2: an older segment does not set the window (section 3.10.7.4, fifth step).
#[test]
fn only_the_newest_segment_sets_the_window() {
    let mut peer = Setup::default().active();
    peer.write(100).drain();
    peer.recv(seg().seq(501).data(100).win(4000));
    assert_eq!(peer.info().snd_wnd, 4000);
    peer.recv(seg().seq(1).data(100).win(9000));
    assert_eq!(peer.info().snd_wnd, 4000, "an older sequence number");
    peer.recv(seg().seq(501).ack(101).win(5000));
    assert_eq!(peer.info().snd_wnd, 5000, "the same sequence number, a newer acknowledgement");
    peer.recv(seg().seq(501).ack(101).win(3000));
    assert_eq!(peer.info().snd_wnd, 3000, "both the same: the later arrival");
    peer.recv(seg().seq(601).ack(100).win(9000));
    assert_eq!(peer.info().snd_wnd, 3000, "an older acknowledgement");
}

/// [MUST-59] [MUST-58] A batch is processed whole, then acknowledged once.
#[test]
fn a_batch_is_acknowledged_once() {
    let mut peer = Setup::default().quick().active();
    peer.recv_batch((0..20).map(|_| seg().data(1000)));
    peer.expect(&["A 1:1 ack 20001"]);
}

/// A super-segment that the device merged counts like its parts.
#[test]
fn a_merged_segment_is_taken_whole() {
    let mut peer = Setup::default().active();
    let (header, payload) = peer.build(&seg().seq(1).data(20_000));
    let segment = Segment {
        header: &header,
        payload: Payload::borrowed(&payload),
        segment_size: Some(1000),
        ecn: transom_wire::Ecn::NotEct,
    };
    peer.connection.on_segment(peer.now, &segment);
    peer.pump();
    peer.expect(&["A 1:1 ack 20001"]);
    peer.read(20_000);
}

/// Both directions across the wrap, data and acknowledgements and window.
#[test]
fn everything_crosses_the_wrap() {
    let mut peer = Setup::default().active();
    let mut acked = 1;
    for _ in 0..40 {
        peer.write(1000);
        for out in peer.drain() {
            acked = acked.max(out.end());
        }
        peer.recv(seg().ack(acked).data(1000)).read(1000);
    }
    assert_eq!(peer.info().unacknowledged, 0);
    assert_eq!(peer.info().rcv_nxt.stream_offset(), 40_000);
    assert_eq!(peer.info().counters.challenge_acks, 0);
}
