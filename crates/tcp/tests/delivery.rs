//! The receiving side's units other than the ordinary ones, segment by segment: unordered delivery, data units, no flow control.

use crate::common;

use common::{Peer, Setup, pattern, seg};
use transom_tcp::{
    Adu, AduConfig, Delivery, FlowChoice, OrderingChoice, Piece, ReadError, Setting, Signal, State,
    UnitFaults, WriteError,
};
use transom_wire::Flags;

fn unordered() -> Setup {
    Setup::default().profile(|profile| profile.ordering = OrderingChoice::Unordered)
}

fn units(ordered: bool) -> Setup {
    let config = AduConfig::default().with_max(1000).with_ordered(ordered);
    Setup::default().profile(|profile| profile.ordering = OrderingChoice::Units(config))
}

fn no_flow_control(memory: usize) -> Setup {
    Setup::default().profile(|profile| profile.flow = FlowChoice::None { memory })
}

/// The next piece, whose bytes are those of its place.
#[track_caller]
fn piece(peer: &mut Peer) -> Result<Piece, ReadError> {
    let mut out = [0; 5000];
    let piece = peer.connection.read_unordered(peer.now, &mut out);
    if let Ok(Piece::Data { offset, len, .. }) = piece {
        assert!((offset..).zip(&out[..len]).all(|(at, &byte)| byte == pattern(at)));
    }
    peer.pump();
    piece
}

fn data(offset: u64, len: usize) -> Result<Piece, ReadError> {
    Ok(Piece::Data { offset, len, total: None })
}

/// The peer sees a stream's receiver: the same acknowledgements, blocks and duplicates. Only the application sees more, and the right
/// edge of the window moves with what it has read.
#[test]
fn data_beyond_a_hole_is_delivered_and_makes_room() {
    let mut peer = unordered().receive_buffer(10_000).active();
    peer.recv(seg().seq(1001).data(1000)).expect(&["A 1:1 ack 1 sack 1001-2001"]);
    assert_eq!(peer.take_signals(), [Signal::Readable]);
    assert_eq!(peer.advertised(), 10_000, "what has not been read takes its room");
    assert_eq!(piece(&mut peer), data(1000, 1000));
    assert_eq!(piece(&mut peer), Err(ReadError::WouldBlock));
    peer.silent();
    peer.recv(seg().seq(2001).data(1000)).expect(&["A 1:1 ack 1 sack 1001-3001"]);
    assert_eq!(peer.advertised(), 11_000, "1000 more, for 1000 were read");
    // Data that was read already comes again, with more: reported as a duplicate, delivered once.
    peer.recv(seg().seq(1501).data(2000)).expect(&["A 1:1 ack 1 sack 1501-3001 1001-3501"]);
    assert_eq!(piece(&mut peer), data(2000, 1500));
    // The hole: everything is acknowledged, only the missing part is left to read.
    peer.recv(seg().seq(1).data(1000)).expect(&["A 1:1 ack 3501"]);
    assert_eq!(peer.advertised(), 9_000, "10,000, less what is unread");
    assert_eq!(piece(&mut peer), data(0, 1000));
    assert_eq!(peer.info().counters.duplicate_bytes_received, 1500);
    assert_eq!(peer.info().counters.bytes_accepted, 3500);
}

/// A sender that has lost one segment can go on for as long as the reader does. The window never shrinks meanwhile.
#[test]
fn a_lost_segment_does_not_close_the_window() {
    let mut peer = unordered().receive_buffer(10_000).scale(7).active();
    let mut edge = 0;
    for i in 1..=60 {
        let offset = 1000 * i;
        peer.recv(seg().seq(1 + offset as i64).data(1000));
        assert_eq!(piece(&mut peer), data(offset, 1000));
        assert_eq!(peer.info().rcv_nxt.stream_offset(), 0);
        let right = peer.last.as_ref().unwrap().ack() as u64 + peer.advertised();
        assert!(right >= edge, "the right edge moved left, from {edge} to {right}");
        edge = right;
    }
    assert!(edge > 60_000, "{edge}");
}

#[test]
fn the_length_is_known_as_soon_as_the_fin_is() {
    let mut peer = unordered().active();
    peer.recv(seg().seq(1001).data(500).fin());
    let total = Some(1500);
    assert_eq!(piece(&mut peer), Ok(Piece::Data { offset: 1000, len: 500, total }));
    assert_eq!(piece(&mut peer), Err(ReadError::WouldBlock));
    assert!(!peer.connection.end_of_stream());
    peer.expect_state(State::Established);
    peer.recv(seg().seq(1).data(1000)).expect_state(State::CloseWait);
    assert_eq!(piece(&mut peer), Ok(Piece::Data { offset: 0, len: 1000, total }));
    assert_eq!(piece(&mut peer), Ok(Piece::End { total: 1500 }));
    assert_eq!(piece(&mut peer), Ok(Piece::End { total: 1500 }));
}

#[test]
fn a_reset_takes_what_was_not_read() {
    let mut peer = unordered().active();
    peer.recv(seg().seq(1001).data(500)).recv(seg().seq(1).rst());
    let reset = transom_tcp::ConnectionError::Reset;
    assert_eq!(piece(&mut peer), Err(ReadError::Failed(reset)));
    // And pieces that nobody will read reset the connection [SHLD-3].
    let mut peer = unordered().active();
    peer.recv(seg().seq(1001).data(500)).drain();
    peer.close().expect(&["RA 1:1 ack 1"]);
}

/// Silently joined data would be the worst of all.
#[test]
fn calls_for_another_delivery_are_refused() {
    let mut out = [0; 10];
    let mut unit = vec![];
    let mut peer = unordered().active();
    peer.recv(seg().seq(1).data(10)).recv(seg().seq(1001).data(10));
    let (now, connection) = (peer.now, &mut peer.connection);
    let refusal = ReadError::Delivery(Delivery::Pieces);
    assert_eq!(connection.read(now, &mut out), Err(refusal));
    assert_eq!(connection.peek(&mut out), Err(refusal));
    assert_eq!(connection.recv_adu(now, &mut unit), Err(refusal));
    assert_eq!(refusal.to_string(), "read from this connection with `read_unordered`");
    let refusal = WriteError::Delivery(Delivery::Pieces);
    assert_eq!(connection.send_adu(now, b"x"), Err(refusal));
    assert_eq!(refusal.to_string(), "write to this connection with `write`");
    assert_eq!(piece(&mut peer), data(0, 10));

    let mut peer = units(true).active();
    let (now, connection) = (peer.now, &mut peer.connection);
    let refusal = ReadError::Delivery(Delivery::Units);
    assert_eq!(connection.read(now, &mut out), Err(refusal));
    assert_eq!(connection.read_unordered(now, &mut out), Err(refusal));
    assert_eq!(connection.write(now, b"x"), Err(WriteError::Delivery(Delivery::Units)));
    let refusal = WriteError::Delivery(Delivery::Units);
    assert_eq!(refusal.to_string(), "write to this connection with `send_adu`");

    // A stream comes in pieces too, in order.
    let mut peer = Setup::default().active();
    peer.recv(seg().seq(1001).data(10));
    assert_eq!(piece(&mut peer), Err(ReadError::WouldBlock));
    peer.recv(seg().seq(1).data(1000));
    assert_eq!(piece(&mut peer), data(0, 1010));
    let refusal = Err(ReadError::Delivery(Delivery::Stream));
    assert_eq!(peer.connection.recv_adu(peer.now, &mut unit), refusal);
}

/// Only the encoding leaves: zero, blocks, zero.
#[test]
fn a_unit_leaves_as_its_encoding() {
    let mut peer = units(true).active();
    let now = peer.now;
    assert_eq!(peer.connection.send_adu(now, b"a\0b"), Ok(()));
    assert_eq!(peer.connection.send_adu(now, b""), Ok(()));
    let transmit = peer.connection.poll_transmit(now).expect("it leaves at once");
    assert_eq!(transmit.payload.concat(), b"\0\x02a\x02b\0\0\x01\0");
    let large = vec![1; 1001];
    let refusal = WriteError::TooLarge { len: 1001, max: 1000 };
    assert_eq!(peer.connection.send_adu(now, &large), Err(refusal));
    assert_eq!(
        refusal.to_string(),
        "a data unit of 1001 bytes is larger than the 1000 bytes agreed"
    );
}

/// A unit is queued whole or not at all.
#[test]
fn a_unit_waits_for_room_for_all_of_it() {
    let setup = units(true).profile(|profile| profile.send_buffer = 2600);
    let mut peer = setup.window(0).active();
    let unit = [7; 1000];
    // 1006 bytes each: four blocks of code and bytes, two zeros.
    assert_eq!(peer.connection.send_adu(peer.now, &unit), Ok(()));
    assert_eq!(peer.connection.send_adu(peer.now, &unit), Ok(()));
    assert_eq!(peer.connection.unacknowledged(), 2012);
    assert_eq!(peer.connection.send_adu(peer.now, &unit), Err(WriteError::WouldBlock));
    assert_eq!(peer.connection.unacknowledged(), 2012);
    assert_eq!(peer.connection.send_adu(peer.now, &[7; 500]), Ok(()));
}

#[test]
fn units_arrive_whole_and_in_the_order_that_was_chosen() {
    // Three units of 5 bytes of stream each, in segments that fit nothing.
    let stream = b"\0\x03ab\0\0\x03cd\0\0\x03ef\0";
    for ordered in [true, false] {
        let mut peer = units(ordered).active();
        let part = |from: usize, upto: usize| seg().seq(1 + from as i64).bytes(&stream[from..upto]);
        let all = |peer: &mut Peer| {
            let (mut unit, mut all) = (vec![], vec![]);
            while let Ok(Adu::Unit { offset }) = peer.connection.recv_adu(peer.now, &mut unit) {
                all.push((offset, String::from_utf8(unit.clone()).unwrap()));
            }
            all
        };
        let unit = |offset, text: &str| (offset, text.to_owned());
        peer.recv(part(0, 3));
        assert_eq!(peer.take_signals(), [], "half a unit is nothing to read");
        assert_eq!((peer.connection.readable(), all(&mut peer)), (0, vec![]));
        peer.recv(part(8, 13)).drain();
        assert_eq!(peer.connection.readable(), 0);
        // The third is complete beyond a hole.
        peer.recv(part(13, 15)).expect(&["A 1:1 ack 4 sack 9-16"]);
        if ordered {
            assert_eq!((peer.take_signals(), all(&mut peer)), (vec![], vec![]));
        } else {
            assert_eq!(peer.take_signals(), [Signal::Readable]);
            assert_eq!(all(&mut peer), [unit(11, "ef")]);
        }
        peer.recv(part(3, 8)).expect(&["A 1:1 ack 16"]);
        assert!(peer.take_signals().contains(&Signal::Readable));
        let mut left = vec![unit(1, "ab"), unit(6, "cd")];
        if ordered {
            left.push(unit(11, "ef"));
        }
        assert_eq!(all(&mut peer), left);
        assert_eq!(peer.info().unit_faults, UnitFaults::default());
    }
}

#[test]
fn malformed_units_are_counted_and_later_ones_delivered() {
    let mut peer = units(false).active();
    peer.recv(seg().seq(1).bytes(b"\0\x09no\0\0\x03ok\0\0\x05cut").fin());
    let mut unit = vec![];
    assert_eq!(peer.connection.recv_adu(peer.now, &mut unit), Ok(Adu::Unit { offset: 6 }));
    assert_eq!(unit, b"ok");
    assert_eq!(peer.connection.recv_adu(peer.now, &mut unit), Ok(Adu::End { total: 15 }));
    let faults = UnitFaults { malformed: 1, truncated: 1, ..UnitFaults::default() };
    assert_eq!(peer.info().unit_faults, faults);
}

/// However many units lie incomplete, the one that waits for the least finds room. The reader never waits for a sender that waits for
/// the window.
#[test]
fn a_unit_of_the_largest_size_always_fits() {
    let setup = units(true).receive_buffer(2012);
    let mut peer = setup.active();
    let mut stream = vec![];
    for _ in 0..20 {
        stream.push(0);
        for block in [9; 1000].chunks(254) {
            stream.push(block.len() as u8 + 1);
            stream.extend_from_slice(block);
        }
        stream.push(0);
    }
    let mut at = 0;
    let mut unit = vec![];
    let mut count = 0;
    while at < stream.len() {
        let edge = peer.info().rcv_nxt.stream_offset() + peer.info().rcv_wnd;
        let upto = stream.len().min(at + 500).min(edge as usize);
        assert!(upto > at, "stopped after {at} bytes and {count} units");
        peer.recv(seg().seq(1 + at as i64).bytes(&stream[at..upto]));
        at = upto;
        peer.wait(50);
        while let Ok(Adu::Unit { .. }) = peer.connection.recv_adu(peer.now, &mut unit) {
            count += 1;
            peer.pump();
        }
    }
    assert_eq!(count, 20);
}

/// Buffers that could not hold a unit are refused, when the profile is made and later.
#[test]
fn buffers_are_never_too_small_for_a_unit() {
    let small = units(true).receive_buffer(2011).profile;
    assert_eq!(
        small.validate().unwrap_err().to_string(),
        "application data units of up to 1000 bytes need a receive buffer of 2012 bytes at least, not 2011"
    );
    let small = units(true).profile(|profile| {
        profile.ordering = OrderingChoice::Units(AduConfig::default().with_max(3000));
        profile.send_buffer = 3000;
    });
    assert!(small.profile.validate().unwrap_err().to_string().contains("send buffer of 3014"));
    let config = AduConfig::default().with_max(3000);
    let setup = Setup::default();
    let mut peer =
        setup.profile(|profile| profile.ordering = OrderingChoice::Units(config)).active();
    peer.connection.set(Setting::ReceiveBuffer(1));
    peer.connection.set(Setting::SendBuffer(1));
    let info = peer.info();
    assert_eq!((info.rcv_buffer, info.snd_buffer), (6028, 3014));
}

/// The window is always the widest. Data that does not fit is neither acknowledged nor reported.
#[test]
fn without_flow_control_what_does_not_fit_is_dropped() {
    let mut peer = no_flow_control(3000).active();
    for _ in 0..3 {
        peer.recv(seg().data(1000));
    }
    peer.wait(100).drain();
    assert_eq!(peer.advertised(), 65_535);
    peer.recv(seg().seq(3001).data(1000)).expect(&["A 1:1 ack 3001"]);
    peer.recv(seg().seq(5001).data(1000)).expect(&["A 1:1 ack 3001"]);
    assert_eq!((peer.advertised(), peer.info().rcv_dropped), (65_535, 2000));
    // Half of it fits.
    peer.read(500).silent();
    peer.recv(seg().seq(3001).data(1000)).expect(&["A 1:1 ack 3501"]);
    assert_eq!(peer.info().rcv_dropped, 2500);
    // The edge moves by whole segments, as ever [MUST-39].
    assert_eq!(peer.advertised(), 65_535 - 500);
    // Reading is nothing that the peer is told.
    peer.read(3000).silent();
    peer.recv(seg().seq(3501).data(1000)).wait(40).expect(&["A 1:1 ack 4501"]);
    peer.read(1000);
    assert_eq!(peer.info().rcv_dropped, 2500);
    let info = peer.info();
    assert_eq!((&*info.flow, info.rcv_buffer), ("no-flow-control", 3000));
}

/// Early data does not take the room of what comes before it.
#[test]
fn without_flow_control_a_hole_can_always_be_filled() {
    let mut peer = no_flow_control(3000).active();
    peer.recv(seg().seq(1001).data(1000)).expect(&["A 1:1 ack 1 sack 1001-2001"]);
    peer.recv(seg().seq(2001).data(2000)).expect(&["A 1:1 ack 1 sack 1001-3001"]);
    peer.recv(seg().seq(3001).data(1000)).expect(&["A 1:1 ack 1 sack 1001-3001"]);
    assert_eq!(peer.info().rcv_dropped, 2000);
    peer.recv(seg().seq(1).data(1000)).expect(&["A 1:1 ack 3001"]);
    peer.read(3000);
}

/// A FIN behind data that was dropped waits for it.
#[test]
fn without_flow_control_the_end_is_not_lost() {
    let mut peer = no_flow_control(1460).active();
    peer.recv(seg().seq(1).data(2000).fin()).expect(&["A 1:1 ack 1461"]);
    peer.expect_state(State::Established).read(1460);
    peer.recv(seg().seq(1461).data(540).fin()).expect(&["A 1:1 ack 2002"]);
    peer.expect_state(State::CloseWait).read(540);
}

/// With the window scale the widest window is a gibibyte; SYNs are never scaled (RFC 7323 section 2.2).
#[test]
fn without_flow_control_the_scale_is_the_largest() {
    let setup = no_flow_control(100_000).scale(7);
    let mut peer = setup.connecting();
    let syn = peer.drain().remove(0).header;
    assert_eq!((syn.window, syn.options.window_scale), (65_535, Some(14)));
    setup.accept(&mut peer);
    peer.drain();
    peer.recv(seg().seq(1).data(1000)).recv(seg().data(1000)).recv(seg().data(1000));
    assert_eq!(peer.last.as_ref().unwrap().header.window, 65_535);
    assert_eq!(peer.advertised(), 65_535 << 14);
    let (half, _) = setup.half_open();
    let syn_ack = half.syn_ack_header(&setup.profile, peer.now);
    assert_eq!((syn_ack.window, syn_ack.options.window_scale), (65_535, Some(14)));
}

/// The peer's window is its own business, and is honoured.
#[test]
fn the_sender_honours_the_window_all_the_same() {
    let mut peer = no_flow_control(100_000).window(1500).active();
    peer.write(5000);
    let sent: i64 = peer.ranges().iter().map(|(from, upto)| upto - from).sum();
    assert!(sent <= 1500, "{sent}");
}

/// A fixed window does not grow with its reader.
#[test]
fn a_fixed_window_stays() {
    let setup = Setup::default().profile(|profile| profile.flow = FlowChoice::Fixed(20_000));
    let mut peer = setup.active();
    for round in 0..20 {
        for _ in 0..10 {
            peer.recv(seg().data(1000)).read(1000);
        }
        peer.wait(100);
        assert!(peer.advertised() <= 20_000, "round {round}: {}", peer.advertised());
    }
    assert_eq!((peer.info().rcv_buffer, &*peer.info().flow), (20_000, "fixed-window"));
    assert!(peer.last.as_ref().unwrap().header.flags.contains(Flags::ACK));
}
