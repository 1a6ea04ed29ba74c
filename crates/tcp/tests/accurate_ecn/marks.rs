//! Marks, once both ends have agreed: counted, reported and answered.

use super::*;

/// Section 3.1.5: the window is reduced once a round trip, and no flag says so.
#[test]
fn marks_reduce_the_window_once_a_round_trip() {
    let mut peer = agreed(&offering());
    peer.write(40_000);
    assert_eq!(peer.drain().len(), 10);
    peer.wait(100).recv(seg().ack(1101).accurate(6, counts(101, 1000))).silent();
    // FlightSize was 10 000; what has left with the SYN-ACK's acknowledgement grew nothing.
    assert_eq!((peer.info().cwnd, ecn(&peer).reductions), (5000, 1));
    for at in 2..6 {
        peer.recv(
            seg().ack(at * 1000 + 101).accurate(5 + at as u64, counts(101, at as u32 * 1000)),
        );
    }
    assert_eq!((peer.info().cwnd, ecn(&peer).reductions), (5000, 1), "the same round trip");
    peer.drain();
    peer.recv(seg().ack(7101).accurate(10, counts(2101, 5000)));
    peer.expect(&["AEe 10101:11101 ack 1 ect0", "AEe 11101:12101 ack 1 ect0"]);
    assert_eq!(accurate(&peer).delivered.ce_packets, 5);
    // No ECE of RFC 3168, though the bit is set: the field is the same as before.
    peer.recv(seg().ack(10_101).accurate(10, counts(5101, 5000))).drain();
    assert_eq!(ecn(&peer).reductions, 1);
    peer.recv(seg().ack(11_101).accurate(11, counts(5101, 6000))).drain();
    assert_eq!(ecn(&peer).reductions, 2, "sent after the reduction");
}

/// Section 3.2.2.5.1: marked data after unmarked is acknowledged at once, and so are two marks.
#[test]
fn marks_are_acknowledged_in_time() {
    let mut peer = agreed(&offering());
    peer.recv(seg().ack(101).data(1000).codepoint(Ecn::Ect0)).silent();
    peer.recv(seg().ack(101).data(1000).codepoint(Ecn::Ect0));
    peer.expect(&["AEe 101:101 ack 2001 acc e0 2001"]);
    peer.recv(seg().ack(101).data(1000).ce()).expect(&["AWe 101:101 ack 3001 acc e0 2001 ce 1000"]);
    peer.recv(seg().ack(101).data(1000).ce()).silent();
    peer.recv(seg().ack(101).data(1000).ce());
    peer.expect(&["A 101:101 ack 5001 acc e0 2001 ce 3000"]);
    // The delay of what is not marked is the policy's.
    peer.recv(seg().ack(101).data(100)).silent().wait(40).expect(&["A 101:101 ack 5101"]);
    // Pure acknowledgements are marked by nobody honest, but three are told.
    for _ in 0..2 {
        peer.recv(seg().ack(101).ce()).silent();
    }
    peer.recv(seg().ack(101).ce()).expect(&["AEW 101:101 ack 5101"]);
    assert_eq!(ecn(&peer).marked_segments, 6);
    let received =
        AccurateCounts { ce_packets: 6, ce_bytes: 3000, ect0_bytes: 2000, ect1_bytes: 0 };
    assert_eq!(accurate(&peer).received, received);
}

/// Only acceptable segments count (section 3.2).
#[test]
fn unacceptable_segments_are_not_counted() {
    let mut peer = agreed(&offering());
    peer.recv(seg().seq(200_000).ack(101).data(1000).ce()).drain();
    peer.recv(seg().seq(-5).ack(101).data(3).ce()).drain();
    peer.recv(seg().ack(101).syn().ce().seq(5)).drain();
    assert_eq!(accurate(&peer).received, AccurateCounts::default());
}

/// Section 3.2.3.3: two SACK blocks go before the option, and the option before a third.
#[test]
fn two_sack_blocks_go_before_the_option() {
    let setup = offering().timestamps();
    let mut peer = agreed(&setup);
    let ect0 = |at: i64| seg().seq(at).ack(101).data(100).codepoint(Ecn::Ect0);
    peer.recv(ect0(1001)).expect(&["AEe 101:101 ack 1 sack 1001-1101 acc e0 101"]);
    peer.recv(ect0(2001)).expect(&["AEe 101:101 ack 1 sack 2001-2101 1001-1101 acc e0 201"]);
    peer.recv(ect0(3001)).expect(&["AEe 101:101 ack 1 sack 3001-3101 2001-2101 acc e0 301"]);
    peer.recv(ect0(4001).ce());
    peer.expect(&["AWe 101:101 ack 1 sack 4001-4101 3001-3101 acc e0 301 ce 100"]);
    // Three counts do not fit beside two blocks: what has changed, in the other order, and the next one, which fits too.
    peer.recv(ect0(5001).codepoint(Ecn::Ect1));
    peer.expect(&["AWe 101:101 ack 1 sack 5001-5101 4001-4101 acc ce 100 e1 101"]);
    // Without news there are three blocks.
    peer.recv(ect0(6001).codepoint(Ecn::NotEct));
    peer.expect(&["AWe 101:101 ack 1 sack 6001-6101 5001-5101 4001-4101"]);
}

/// Data carries the option where it has room. Where it has not, marks are told by an acknowledgement of their own.
#[test]
fn full_segments_have_no_room_for_the_option() {
    let mut peer = agreed(&offering());
    peer.recv(seg().ack(101).data(500).codepoint(Ecn::Ect0)).silent();
    peer.write(992).expect(&["PAEe 101:1093 ack 501 acc e0 501 ect0"]);
    peer.recv(seg().ack(1093).accurate(5, None).data(500).codepoint(Ecn::Ect0)).silent();
    peer.write(1000).expect(&["PAEe 1093:2093 ack 1001 ect0"]);
    peer.recv(seg().ack(2093).accurate(5, None).data(500).ce());
    peer.expect(&["AWe 2093:2093 ack 1501 acc e0 1001 ce 500"]);
    peer.write(1000).expect(&["PAWe 2093:3093 ack 1501 ect0"]);
}

/// The device that cuts a super-segment sets CWR in the first segment only. So there is none while CWR is part of the count.
#[test]
fn a_field_with_cwr_is_not_cut() {
    let mut setup = offering();
    setup.path.max_super_segment = Some(64_000);
    let mut peer = agreed(&setup);
    peer.write(3000).expect(&["PAEe 101:3101 ack 1 ect0"]);
    peer.recv(seg().ack(3101).accurate(5, None).data(500).ce()).drain();
    peer.write(2000).expect(&["AWe 3101:4101 ack 501 ect0", "PAWe 4101:5101 ack 501 ect0"]);
}

/// Appendix A.1: an acknowledgement that others have overtaken is not decoded, or the field would seem to have wrapped.
#[test]
fn overtaken_acknowledgements_are_not_decoded() {
    let mut peer = agreed(&offering().timestamps());
    peer.write(4940).drain();
    peer.wait(100);
    let stamp = |value: u32| seg().ts(value, 0);
    let now = 5_000 + peer.millis() as u32;
    peer.recv(stamp(now).ack(3065).accurate(7, counts(1089, 1976))).drain();
    assert_eq!(accurate(&peer).delivered.ce_packets, 2);
    peer.recv(stamp(now - 1).ack(2077).accurate(6, counts(1089, 988))).drain();
    // The same acknowledgement, but older, and at the same time.
    peer.recv(stamp(now - 1).ack(3065).accurate(6, counts(1089, 988))).drain();
    peer.recv(stamp(now).ack(3065).accurate(6, counts(1089, 988))).drain();
    let delivered =
        AccurateCounts { ce_packets: 2, ce_bytes: 1976, ect0_bytes: 1088, ect1_bytes: 0 };
    assert_eq!(accurate(&peer).delivered, delivered);
    // A later one is, though it acknowledges nothing: control packets were marked.
    peer.recv(stamp(now + 1).ack(3065).accurate(8, counts(1089, 1976))).drain();
    assert_eq!(accurate(&peer).delivered.ce_packets, 3);
    assert_eq!(ecn(&peer).reductions, 1);
}

/// Nor one that has SACK blocks which say something new, where no timestamp tells that it is older.
#[test]
fn overtaken_blocks_do_not_count_marks() {
    let mut peer = agreed(&offering());
    peer.write(5000).drain();
    peer.recv(seg().ack(2101).accurate(6, counts(1101, 1000))).drain();
    peer.recv(seg().ack(1101).sack(&[(3101, 4101)]).accurate(5, None)).drain();
    assert_eq!(peer.info().sacked, 1000);
    assert_eq!(accurate(&peer).delivered.ce_packets, 1);
}

/// Section 3.2.3.2.2: the first data with an option does not arrive in time, and is repeated without; so does all that follows.
#[test]
fn options_that_may_be_why_data_is_lost_are_given_up() {
    let mut peer = answered(&offering(), 0b010, Ecn::NotEct, counts(1, 0));
    peer.drain();
    peer.write(500).expect(&["PAEe 1:501 ack 1 acc e0 1 ce 0 e1 1 ect0"]);
    peer.next_timer();
    peer.expect(&["PAEe 1:501 ack 1"]);
    assert!(!accurate(&peer).sends_options);
    peer.recv(seg().ack(501).accurate(5, None).data(1500).codepoint(Ecn::Ect0));
    peer.wait(40).expect(&["AEe 501:501 ack 1501"]);
}

/// Section 3.2.3.2.2: the same data arrives again and again though it is acknowledged, so options may be why the acknowledgements are lost. Once is nothing.
#[test]
fn options_that_may_be_why_acknowledgements_are_lost_are_given_up() {
    let ect0 = |at: i64| seg().seq(at).ack(101).data(100).codepoint(Ecn::Ect0);
    let mut peer = agreed(&offering());
    peer.recv(ect0(1)).wait(40).expect(&["AEe 101:101 ack 101 acc e0 101"]);
    peer.recv(ect0(1)).expect(&["AEe 101:101 ack 101 sack 1-101 acc e0 101 ce 0 e1 1"]);
    peer.recv(ect0(1)).expect(&["AEe 101:101 ack 101 sack 1-101"]);
    peer.recv(ect0(101)).wait(40).expect(&["AEe 101:101 ack 201"]);
    assert!(!accurate(&peer).sends_options);
    // Other data each time: some acknowledgements are lost, no more.
    let mut peer = agreed(&offering());
    peer.recv(ect0(1)).recv(ect0(101)).recv(ect0(201)).wait(40).drain();
    for at in [1, 101, 201] {
        peer.recv(ect0(at));
    }
    assert!(accurate(&peer).sends_options);
    // Nor are keep-alives a loss.
    for _ in 0..4 {
        peer.recv(seg().seq(300).ack(101).data(1)).drain();
    }
    assert!(accurate(&peer).sends_options);
}

/// DCTCP with bytes: half of a round trip's are marked, whatever the acknowledgements cover.
#[test]
fn dctcp_counts_the_bytes_that_are_told() {
    let setup = offering().profile(|profile| {
        profile.congestion = compose("dctcp").unwrap().congestion;
    });
    let mut peer = agreed(&setup);
    peer.write(20_000);
    assert_eq!(peer.drain().len(), 10);
    // α was 15/16 after a round trip without marks, and half of this one's bytes make it 15/16 · 15/16 + 1/32 = 233/256.
    peer.wait(100).recv(seg().ack(10_101).accurate(10, counts(5101, 5000))).drain();
    assert_eq!((peer.info().cwnd, ecn(&peer).reductions), (5450, 1));
    assert_eq!(accurate(&peer).delivered.ce_bytes, 5000);
}

/// In TIME-WAIT the field is what it was.
#[test]
fn time_wait_repeats_the_field() {
    let mut peer = agreed(&offering());
    peer.recv(seg().ack(101).data(100).ce()).drain();
    peer.read(100).close();
    peer.expect(&["FAWe 101:102 ack 101"]);
    peer.recv(seg().ack(102).accurate(5, None).fin()).expect(&["AWe 102:102 ack 102"]);
    let mut time_wait = transom_tcp::TimeWait::new(&peer.connection, peer.now).unwrap();
    let (fin, _): (TcpHeader, _) = peer.build(&seg().seq(101).ack(102).fin());
    let segment = transom_tcp::Segment {
        header: &fin,
        payload: transom_tcp::packet::Payload::EMPTY,
        segment_size: None,
        ecn: Ecn::NotEct,
    };
    let action = time_wait.on_segment(peer.now, &segment);
    let transom_tcp::TimeWaitAction::Ack(ack) = action else { panic!("{action:?}") };
    assert_eq!(line(&ack), "AWe 102:102 ack 102");
}
