//! Accurate ECN, worked by hand (RFC 9768). In the lines `W`, `E` and `e` are CWR, ECE and AE: together the field ACE, where `e` is 4, `W` 2 and
//! `E` 1. The counts of an option begin with 1, 0 and 1.

mod marks;

use crate::common;

use common::{Peer, Setup, half_open, line, seg};
use std::sync::Arc;
use transom_tcp::compose::compose_classic as compose;
use transom_tcp::packet::Payload;
use transom_tcp::{
    AccurateCounts, AccurateInfo, Connection, EcnChoice, EcnConfig, EcnInfo, HalfOpen,
    HalfOpenAction, Segment, Setting,
};
use transom_wire::{AccEcn, AccEcnCounters, AccEcnOrder, Ecn, Flags, TcpHeader};

const OFFER: Flags = Flags::AE.union(Flags::CWR).union(Flags::ECE);
const CODEPOINTS: [Ecn; 4] = [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce];

fn config(control_packets: bool) -> EcnConfig {
    EcnConfig::default().with_offer(true).with_control_packets(control_packets)
}

fn with(ecn: EcnConfig, options: bool) -> Setup {
    Setup::default().profile(|profile| profile.ecn = EcnChoice::Accurate { ecn, options })
}

fn offering() -> Setup {
    with(config(false), true)
}

/// The option with the counts of ECT(0), CE and, in the last field, ECT(1).
fn counts(ect0: u32, ce: u32) -> Option<AccEcn> {
    let counters = AccEcnCounters { ect0, ce, ect1: 1 };
    Some(AccEcn::new(AccEcnOrder::Ect0First, counters, 3))
}

fn ecn(peer: &Peer) -> EcnInfo {
    peer.info().ecn.unwrap()
}

fn accurate(peer: &Peer) -> AccurateInfo {
    ecn(peer).accurate.unwrap()
}

/// The SYN-ACK arrives with this field in place of ACE, this codepoint and this option.
fn answered(setup: &Setup, ace: u64, arrived: Ecn, option: Option<AccEcn>) -> Peer {
    let mut peer = setup.connecting();
    peer.expect(&["SEWe 0:1"]).wait(100);
    let options = setup.syn_options(&peer);
    peer.recv(seg().syn().codepoint(arrived).options(options).accurate(ace, option));
    peer.timestamps = setup.timestamps && setup.profile.options.timestamps;
    peer.connection.set(Setting::QuickAck(false));
    peer
}

/// An active connection that has agreed on accurate ECN.
fn agreed(setup: &Setup) -> Peer {
    let mut peer = answered(setup, 0b010, Ecn::NotEct, counts(1, 0));
    peer.expect(&["AW 1:1 ack 1 acc e0 1 ce 0 e1 1"]);
    // The first data makes room for an option.
    peer.write(100).expect(&["PAEe 1:101 ack 1 acc e0 1 ce 0 e1 1 ect0"]);
    peer.wait(100).recv(seg().ack(101).accurate(5, counts(101, 0))).silent();
    peer
}

/// Table 3: the acknowledgement of the SYN-ACK says how that arrived, and later ones count it.
#[test]
fn the_syn_acks_codepoint_comes_back() {
    let lines = ["AW 1:1 ack 1", "AEW 1:1 ack 1", "Ae 1:1 ack 1", "AWe 1:1 ack 1"];
    for (arrived, line) in CODEPOINTS.into_iter().zip(lines) {
        let mut peer = answered(&offering(), 0b010, arrived, counts(1, 0));
        peer.expect(&[&format!("{line} acc e0 1 ce 0 e1 1")]);
        let marked = u64::from(arrived == Ecn::Ce);
        assert_eq!(accurate(&peer).received.ce_packets, marked);
        let field = if marked == 1 { "PAWe" } else { "PAEe" };
        peer.write(100).expect(&[&format!("{field} 1:101 ack 1 acc e0 1 ce 0 e1 1 ect0")]);
        assert!(!ecn(&peer).disabled);
    }
}

/// It does so before data that waits, whose flags are a count (section 3.2.2.1).
#[test]
fn the_handshake_is_completed_without_data() {
    let setup = offering();
    let mut peer = setup.connecting();
    peer.write(3000).expect(&["SEWe 0:1"]).wait(100);
    let options = setup.syn_options(&peer);
    peer.recv(seg().syn().options(options).accurate(0b010, counts(1, 0)));
    peer.expect(&[
        "AW 1:1 ack 1 acc e0 1 ce 0 e1 1",
        // 12 bytes of the first full segment are the option's (section 3.2.3.2.1).
        "AEe 1:989 ack 1 acc e0 1 ce 0 e1 1 ect0",
        "AEe 989:1989 ack 1 ect0",
        "AEe 1989:2989 ack 1 ect0",
    ]);
}

/// Table 2, and section 3.1.3 for 1 0 1.
#[test]
fn the_client_falls_back_to_what_the_server_knows() {
    for (ace, data, accurate) in [
        (0b000, "PA 1:101 ack 1", false),
        (0b001, "PA 1:101 ack 1 ect0", false),
        (0b101, "PAEe 1:101 ack 1 acc e0 1 ce 0 e1 1 ect0", true),
        (0b111, "PA 1:101 ack 1", false),
    ] {
        let mut peer = answered(&offering(), ace, Ecn::NotEct, None);
        assert_eq!(peer.drain().len(), 1);
        peer.write(100).expect(&[data]);
        let info = peer.info().ecn;
        assert_eq!(info.is_some_and(|info| info.accurate.is_some()), accurate, "{ace:#b}");
        assert_eq!(info.is_some(), accurate || ace == 0b001);
    }
    // RFC 3168 as it is, echo and CWR.
    let mut peer = answered(&offering(), 0b001, Ecn::NotEct, None);
    peer.drain();
    peer.write(40_000);
    assert_eq!(peer.drain().len(), 10);
    peer.recv(seg().ack(1001).flags(Flags::ECE)).drain();
    assert_eq!((peer.info().cwnd, ecn(&peer).reductions), (5000, 1));
}

/// Section 3.1.4.1: twice with the offer, then without. The agreement holds in spite of that.
#[test]
fn a_syn_is_sent_twice_with_the_offer() {
    let setup = offering();
    let mut peer = setup.connecting();
    peer.expect(&["SEWe 0:1"]).next_timer();
    peer.expect(&["SEWe 0:1"]).next_timer();
    peer.expect(&["S 0:1"]);
    let options = setup.syn_options(&peer);
    peer.recv(seg().syn().options(options).accurate(0b010, None)).drain();
    peer.write(100).expect(&["PAEe 1:101 ack 1 acc e0 1 ce 0 e1 1 ect0"]);

    let mut peer = setup.connecting();
    peer.next_timer().next_timer();
    peer.drain();
    peer.recv(seg().syn().options(options).accurate(0b001, None)).drain();
    peer.write(100).expect(&["PA 1:101 ack 1"]);
    assert!(ecn(&peer).disabled, "a server with RFC 3168 may have heard the SYN without");
}

/// A listener's entry for a SYN with these flags that arrives with this codepoint.
fn listening(setup: &Setup, flags: Flags, arrived: Ecn) -> (HalfOpen, Peer) {
    let (_, peer) = setup.half_open();
    let options = setup.syn_options(&peer);
    let (syn, _) = peer.build(&seg().seq(0).no_ack().syn().flags(flags).options(options));
    let iss = transom_wire::Seq::new(common::ISS);
    let mut half =
        HalfOpen::new(&setup.profile, common::PORTS, setup.path, iss, 7_000, &syn, peer.now);
    half.syn_codepoint = arrived;
    (half, peer)
}

/// Table 2 and section 3.1.3, as a listener.
#[test]
fn the_syn_ack_says_how_the_syn_arrived() {
    let option = "acc e0 1 ce 0 e1 1";
    let lines = ["SAW 0:1 ack 1", "SAEW 0:1 ack 1", "SAe 0:1 ack 1", "SAWe 0:1 ack 1"];
    for (arrived, expected) in CODEPOINTS.into_iter().zip(lines) {
        for flags in [OFFER, Flags::AE, Flags::ECE, Flags::CWR, Flags::AE | Flags::CWR] {
            let setup = with(EcnConfig::default(), true);
            let (mut half, peer) = listening(&setup, flags, arrived);
            let syn_ack = half.syn_ack(&setup.profile, peer.now);
            assert_eq!(line(&syn_ack), format!("{expected} {option}"), "{flags:?}");
        }
    }
    let setup = with(EcnConfig::default(), true);
    for (flags, expected) in
        [(Flags::ECE | Flags::CWR, "SAE 0:1 ack 1"), (Flags::empty(), "SA 0:1 ack 1")]
    {
        let (mut half, peer) = listening(&setup, flags, Ecn::NotEct);
        assert_eq!(line(&half.syn_ack(&setup.profile, peer.now)), expected);
    }
    // A peer that knows only RFC 3168 takes the offer for its own. By default that is so, and nothing is offered.
    let setup = Setup::default();
    let (mut half, peer) = listening(&setup, OFFER, Ecn::NotEct);
    assert_eq!(line(&half.syn_ack(&setup.profile, peer.now)), "SAE 0:1 ack 1");
    setup.connecting().expect(&["S 0:1"]);
}

/// Section 3.2.3.2.2: the second SYN-ACK goes without the option, the third without the flags. The agreement stays, but nothing is ECN-capable
/// after the third (section 3.1.5).
#[test]
fn a_syn_ack_sent_again_does_with_less() {
    let setup = offering();
    let (mut half, peer) = listening(&setup, OFFER, Ecn::Ect0);
    let mut next = || line(&half.syn_ack(&setup.profile, peer.now));
    assert_eq!(next(), "SAe 0:1 ack 1 acc e0 1 ce 0 e1 1");
    assert_eq!(next(), "SAe 0:1 ack 1");
    let mut second = completed(&setup, &half, seg().accurate(0b010, None));
    second.write(100).expect(&["PAEe 1:101 ack 1 ect0"]);
    let mut next = || line(&half.syn_ack(&setup.profile, peer.now));
    assert_eq!(next(), "SA 0:1 ack 1");
    let mut third = completed(&setup, &half, seg().accurate(0b010, None));
    third.write(100).expect(&["PAEe 1:101 ack 1"]);
    third.recv(seg().ack(101).data(500).ce()).expect(&["AWe 101:101 ack 501"]);
    assert_eq!(accurate(&third).received.ce_bytes, 500, "what arrives is counted all the same");
    assert!(!accurate(&third).sends_options, "an option may be why it did not arrive");
}

/// Section 3.2.3.2.2: a server may try again later. It does so if the peer's options arrive, and sees whether the first data with one is lost.
#[test]
fn a_peers_option_brings_ours_back() {
    let setup = offering();
    let (mut half, peer) = listening(&setup, OFFER, Ecn::NotEct);
    half.syn_ack(&setup.profile, peer.now);
    half.syn_ack(&setup.profile, peer.now);
    let back = || completed(&setup, &half, seg().accurate(0b010, counts(1, 0)));
    let mut peer = back();
    peer.write(100).expect(&["PAEe 1:101 ack 1 acc e0 1 ce 0 e1 1 ect0"]);
    peer.recv(seg().ack(101).accurate(5, counts(101, 0)).data(100).ce());
    peer.expect(&["AWe 101:101 ack 101 acc e0 1 ce 100"]);
    let mut peer = back();
    peer.write(100).drain();
    peer.next_timer();
    peer.expect(&["PAEe 1:101 ack 1"]);
    assert!(!accurate(&peer).sends_options);
    // A profile without options has none.
    let setup = with(config(false), false);
    let mut peer = completed(&setup, &half, seg().accurate(0b010, counts(1, 0)));
    peer.write(100).expect(&["PAEe 1:101 ack 1 ect0"]);
}

/// Section 3.1.5: the latest SYN counts; one without the offer changes nothing but that nothing is ECN-capable; one with another offer is a
/// contradiction.
#[test]
fn a_repeated_syn_is_answered_for_itself() {
    let setup = offering();
    let again = |flags| {
        let (mut half, peer) = listening(&setup, OFFER, Ecn::NotEct);
        half.syn_ack(&setup.profile, peer.now);
        let options = setup.syn_options(&peer);
        let (syn, _) = peer.build(&seg().seq(0).no_ack().syn().flags(flags).options(options));
        let payload = Payload::EMPTY;
        let segment = Segment { header: &syn, payload, segment_size: None, ecn: Ecn::Ce };
        let action = half.on_segment(peer.now, &segment);
        (action, line(&half.syn_ack_header(&setup.profile, peer.now)), half)
    };
    let (action, syn_ack, half) = again(OFFER);
    assert_eq!((action, syn_ack.as_str()), (HalfOpenAction::RepeatSynAck, "SAWe 0:1 ack 1"));
    completed(&setup, &half, seg().accurate(0b010, None))
        .write(100)
        .expect(&["PAEe 1:101 ack 1 ect0"]);
    let (action, syn_ack, half) = again(Flags::empty());
    assert_eq!((action, syn_ack.as_str()), (HalfOpenAction::RepeatSynAck, "SAWe 0:1 ack 1"));
    completed(&setup, &half, seg().accurate(0b010, None)).write(100).expect(&["PAEe 1:101 ack 1"]);
    let (action, ..) = again(Flags::ECE | Flags::CWR);
    let HalfOpenAction::Refuse(reset) = action else { panic!("{action:?}") };
    assert_eq!(line(&reset).split(' ').next(), Some("RA"));

    // The other way round.
    let (half, peer) = listening(&setup, Flags::ECE | Flags::CWR, Ecn::NotEct);
    let (syn, _) = peer.build(&seg().seq(0).no_ack().syn().flags(OFFER));
    assert!(matches!(half_open(&half, &peer, &syn), HalfOpenAction::Refuse(_)));
}

/// The connection of a listener's entry that `ack` completes.
fn completed(setup: &Setup, half: &HalfOpen, ack: common::Seg) -> Peer {
    let (_, mut peer) = setup.half_open();
    peer.next = 1;
    let (header, _) = peer.build(&ack);
    assert_eq!(half_open(half, &peer, &header), HalfOpenAction::Complete);
    peer.connection = Connection::from_half_open(Arc::new(setup.profile.clone()), half, peer.now);
    peer.connection.set(Setting::QuickAck(false));
    peer.recv(ack).drain();
    peer
}

/// Table 4, and section 3.2.2.3 for what left as Not-ECT or ECT(0).
#[test]
fn the_acknowledgement_of_the_syn_ack_is_no_count() {
    for control_packets in [false, true] {
        let setup = with(config(control_packets), true);
        for ace in 0..8 {
            let (mut half, peer) = listening(&setup, OFFER, Ecn::NotEct);
            half.syn_ack(&setup.profile, peer.now);
            let mut peer = completed(&setup, &half, seg().accurate(ace, counts(1, 0)));
            let marked = ace == 0b110;
            let mangled = match ace {
                0b000 => true,
                0b010 => control_packets,
                0b011 | 0b100 | 0b110 => !control_packets,
                _ => false,
            };
            let what = format!("{ace:#b}, ECN++ {control_packets}");
            assert_eq!(accurate(&peer).delivered.ce_packets, u64::from(marked), "{what}");
            assert_eq!(accurate(&peer).field_zeroed, ace == 0, "{what}");
            assert_eq!((ecn(&peer).disabled, ecn(&peer).reductions), (mangled, u64::from(marked)));
            // A marked SYN-ACK makes the initial window one segment, as a lost one does.
            assert_eq!(peer.info().cwnd, if marked { 1000 } else { 10_000 }, "{what}");
            let capable = if mangled { "" } else { " ect0" };
            peer.write(500).expect(&[&format!("PAEe 1:501 ack 1{capable}")]);
            // The path is blamed for what the peer does not count, unless this end has ended ECN itself.
            for sent in 0..60 {
                let ace = if marked { 6 } else { 5 };
                peer.wait(10).recv(seg().ack(501 + 1000 * sent).accurate(ace, counts(1, 0)));
                peer.write(1000).drain();
            }
            assert_eq!(accurate(&peer).codepoints_cleared, !mangled, "{what}");
        }
    }
}

/// Section 3.2.2.3 for the client, whose SYN is not ECN-capable: the window is answerable for a mark all the same.
#[test]
fn a_syn_that_arrives_changed_ends_ecn_in_its_direction() {
    for (ace, marked) in [(0b011, false), (0b100, false), (0b110, true)] {
        let mut peer = answered(&offering(), ace, Ecn::NotEct, counts(1, 0));
        peer.drain();
        assert!(ecn(&peer).disabled);
        assert_eq!(ecn(&peer).reductions, u64::from(marked));
        assert_eq!(peer.info().cwnd, if marked { 1000 } else { 10_000 });
        peer.write(500).expect(&["PAEe 1:501 ack 1 acc e0 1 ce 0 e1 1"]);
        // Marks that arrive are reported.
        peer.recv(seg().ack(501).accurate(5, None).data(100).ce());
        peer.expect(&["AWe 501:501 ack 101 acc e0 1 ce 100"]);
        // And marks that are told are answered: some of the path may mark what it has taken for ECN-capable.
        if !marked {
            peer.write(10_000);
            peer.drain();
            peer.recv(seg().ack(1501).accurate(6, None)).drain();
            assert_eq!((peer.info().cwnd, ecn(&peer).reductions), (5000, 1));
        }
    }
}

/// Section 3.2.2.4: a field of zero is no count of an honest path. Marks are not answered then, as there is no telling what they are.
#[test]
fn a_zeroed_field_ends_ecn() {
    let mut peer = answered(&offering(), 0b010, Ecn::NotEct, None);
    peer.drain();
    peer.write(4988);
    assert_eq!(peer.drain().len(), 5);
    peer.wait(100).recv(seg().ack(989).accurate(0, None)).drain();
    assert!(accurate(&peer).field_zeroed && ecn(&peer).disabled);
    for acked in 1..4 {
        peer.recv(seg().ack(989 + acked * 1000).accurate(acked as u64, None)).drain();
    }
    assert_eq!((ecn(&peer).reductions, peer.info().cwnd >= 10_000), (0, true));
    peer.write(100).expect(&["PAEe 4989:5089 ack 1"]);
    // Later on it is one of eight values.
    let mut peer = agreed(&offering());
    peer.write(1000).drain();
    peer.recv(seg().ack(1101).accurate(0, None)).silent();
    assert!(!accurate(&peer).field_zeroed);
    assert_eq!(accurate(&peer).delivered.ce_packets, 3);
}

/// Section 3.2.3.2.4: an option whose first counts are zero is not believed, then or later. The field is.
#[test]
fn a_zeroed_option_is_not_believed() {
    let zeroed = counts(0, 0);
    let mut peer = answered(&offering(), 0b010, Ecn::NotEct, zeroed);
    peer.drain();
    assert!(accurate(&peer).options_zeroed);
    peer.write(2000).drain();
    peer.wait(100).recv(seg().ack(989).accurate(6, counts(1, 500))).drain();
    assert_eq!(
        accurate(&peer).delivered,
        AccurateCounts { ce_packets: 1, ..AccurateCounts::default() }
    );
    assert_eq!(ecn(&peer).reductions, 1);
}

/// Section 3.2.3.2.5: bytes that are marked in no packet are no honest path's.
#[test]
fn counts_that_contradict_each_other_end_ecn() {
    let mut peer = agreed(&offering());
    peer.write(1000).expect(&["PAEe 101:1101 ack 1 ect0"]);
    peer.recv(seg().ack(1101).accurate(5, counts(101, 1000))).silent();
    assert!(ecn(&peer).disabled);
    assert_eq!(ecn(&peer).reductions, 1, "but it is a mark");
    // The count of packets may have come before the option.
    let mut peer = agreed(&offering());
    peer.write(2000).drain();
    peer.recv(seg().ack(1101).accurate(6, None)).silent();
    peer.recv(seg().ack(2077).accurate(6, counts(1089, 988))).silent();
    assert!(!ecn(&peer).disabled);
    // Eight packets may have been marked.
    let mut peer = agreed(&offering());
    peer.write(8000).drain();
    peer.recv(seg().ack(8101).accurate(5, counts(101, 8000))).silent();
    assert!(!ecn(&peer).disabled);
    assert_eq!(accurate(&peer).delivered.ce_packets, 8);
}

/// The field says how a repeated SYN-ACK arrived in an acknowledgement without SACK blocks only, and not later instead.
#[test]
fn blocks_leave_no_room_for_the_handshake() {
    let setup = offering();
    let mut peer = agreed(&setup);
    peer.recv(seg().seq(1001).ack(101).data(100)).drain();
    let options = setup.syn_options(&peer);
    peer.wait(1000).recv(seg().seq(0).syn().options(options).accurate(0b010, None));
    peer.expect(&["AEe 101:101 ack 1 sack 1001-1101 acc e0 1 ce 0 e1 1"]);
    peer.recv(seg().seq(1).ack(101).data(1000)).expect(&["AEe 101:101 ack 1101"]);
}

/// The SYN-ACK again: the acknowledgement says how this one arrived (section 3.2.2.1). It has an option once more, and then none.
#[test]
fn a_repeated_syn_ack_is_answered_for_itself() {
    let setup = offering();
    let mut peer = answered(&setup, 0b010, Ecn::NotEct, counts(1, 0));
    peer.drain();
    let options = setup.syn_options(&peer);
    let again = seg().seq(0).syn().options(options).accurate(0b010, None);
    peer.wait(1000).recv(again.clone().ce()).expect(&["AWe 1:1 ack 1 acc e0 1 ce 0 e1 1"]);
    assert_eq!(accurate(&peer).received.ce_packets, 1);
    assert!(accurate(&peer).sends_options);
    peer.wait(1000).recv(again.ce()).expect(&["AWe 1:1 ack 1"]);
    assert_eq!(accurate(&peer).received.ce_packets, 1, "once, however many are marked");
    assert!(!accurate(&peer).sends_options);
    peer.write(100).expect(&["PAWe 1:101 ack 1 ect0"]);
}

/// One without the offer too, as a server sends it when others were not answered: what was agreed on stays (section 3.1.5).
#[test]
fn a_syn_ack_without_accurate_ecn_is_answered_for_itself() {
    let lines = ["AW 1:1 ack 1", "AEW 1:1 ack 1", "Ae 1:1 ack 1", "AWe 1:1 ack 1"];
    let setup = offering();
    for ace in [0b000, 0b001] {
        for (arrived, line) in CODEPOINTS.into_iter().zip(lines) {
            let mut peer = answered(&setup, 0b010, Ecn::NotEct, counts(1, 0));
            peer.drain();
            let options = setup.syn_options(&peer);
            let again = seg().seq(0).syn().options(options).accurate(ace, None).codepoint(arrived);
            peer.wait(1000).recv(again);
            peer.expect(&[&format!("{line} acc e0 1 ce 0 e1 1")]);
            assert!(!ecn(&peer).disabled);
            let field = if arrived == Ecn::Ce { "PAWe" } else { "PAEe" };
            peer.write(100).expect(&[&format!("{field} 1:101 ack 1 acc e0 1 ce 0 e1 1 ect0")]);
        }
    }
}

/// Section 3.1.4.1, and Linux' intervals: the SYNs that find out what passes are no further apart than the first two.
#[test]
fn the_first_syns_do_not_back_off() {
    let mut peer = offering().connecting();
    peer.run_to(20_000);
    peer.expect_timed(&[
        "0 SEWe 0:1",
        "1000 SEWe 0:1",
        "2000 S 0:1",
        "3000 S 0:1",
        "4000 S 0:1",
        "5000 S 0:1",
        "7000 S 0:1",
        "11000 S 0:1",
        "19000 S 0:1",
    ]);
    // [MUST-23] for three minutes at least.
    peer.run_to(180_000);
    assert!(peer.connection.error().is_none());
    peer.run_to(300_000);
    assert!(peer.connection.error().is_some());
    // Without the offer they do, as RFC 6298 says, and so do SYN-ACKs.
    let mut peer = Setup::default().connecting();
    peer.run_to(7_500);
    peer.expect_timed(&["0 S 0:1", "1000 S 0:1", "3000 S 0:1", "7000 S 0:1"]);
}

/// Section 3.1.2: SYNs that cross are answered as a listener would.
#[test]
fn syns_cross() {
    let setup = offering();
    let mut peer = setup.connecting();
    peer.expect(&["SEWe 0:1"]).wait(50);
    let options = setup.syn_options(&peer);
    peer.recv(seg().syn().no_ack().flags(OFFER).codepoint(Ecn::Ect0).options(options));
    peer.expect(&["SAe 0:1 ack 1 acc e0 1 ce 0 e1 1"]);
    let syn_ack = seg().seq(0).syn().options(options).accurate(0b010, counts(1, 0));
    peer.wait(50).recv(syn_ack).expect(&["AW 1:1 ack 1 acc e0 1 ce 0 e1 1"]);
    // The handshake is complete, but this says how our SYN-ACK arrived: it is no count.
    peer.recv(seg().accurate(0b010, counts(1, 0))).silent();
    assert!(!ecn(&peer).disabled);
    assert_eq!((accurate(&peer).delivered, ecn(&peer).reductions), (AccurateCounts::default(), 0));
    peer.write(100).expect(&["PAEe 1:101 ack 1 ect0"]);
    // The next one is.
    peer.recv(seg().ack(101).accurate(6, None)).silent();
    assert_eq!(accurate(&peer).delivered.ce_packets, 1);
}

/// The same with timestamps, which make every acknowledgement news.
#[test]
fn syns_cross_with_timestamps() {
    let setup = offering().timestamps();
    let mut peer = setup.connecting();
    let options = setup.syn_options(&peer);
    peer.timestamps = true;
    peer.wait(50).recv(seg().syn().no_ack().flags(OFFER).options(options)).drain();
    let options = setup.syn_options(&peer);
    peer.wait(50).recv(seg().seq(0).syn().options(options).accurate(0b010, counts(1, 0))).drain();
    peer.wait(50).recv(seg().accurate(0b010, None)).silent();
    assert_eq!((accurate(&peer).delivered.ce_packets, ecn(&peer).reductions), (0, 0));
    peer.wait(50).recv(seg().accurate(6, None)).silent();
    assert_eq!(accurate(&peer).delivered.ce_packets, 1);
}

/// A connection that begins with its SYN (RFC 7413) sends its SYN-ACK itself. A SYN without the offer changes nothing but that nothing is ECN-capable.
#[test]
fn a_fast_open_agrees_too() {
    for again in [None, Some(OFFER), Some(Flags::empty())] {
        let setup = with(config(true), true);
        let (half, mut peer) = listening(&setup, OFFER, Ecn::NotEct);
        let profile = Arc::new(setup.profile.clone());
        peer.connection = Connection::from_half_open(profile, &half, peer.now);
        let options = setup.syn_options(&peer);
        let syn = |flags| seg().seq(0).no_ack().syn().flags(flags).options(options);
        let (header, _) = peer.build(&syn(OFFER));
        let segment = transom_tcp::Segment {
            header: &header,
            payload: transom_tcp::packet::Payload::borrowed(b"hello"),
            segment_size: None,
            ecn: Ecn::NotEct,
        };
        peer.connection.begin_fast(peer.now, &segment, None);
        peer.connection.set(Setting::QuickAck(false));
        peer.pump();
        peer.expect(&["SAW 0:1 ack 6 acc e0 1 ce 0 e1 1"]);
        if let Some(flags) = again {
            peer.recv(syn(flags).ce()).expect(&["SAWe 0:1 ack 6"]);
        }
        // It left as Not-ECT, ECN++ or not, and so it arrived.
        peer.next = 6;
        peer.recv(seg().accurate(0b010, counts(1, 0))).silent();
        let capable = if again == Some(Flags::empty()) { "" } else { " ect0" };
        // The SYN-ACK again went without an option, but the peer's has arrived.
        let tries = if again.is_some() { " acc e0 1 ce 0 e1 1" } else { "" };
        peer.write(100).expect(&[&format!("PAEe 1:101 ack 6{tries}{capable}")]);
        assert_eq!(
            accurate(&peer).received,
            AccurateCounts::default(),
            "the SYN's data does not count"
        );
    }
}
