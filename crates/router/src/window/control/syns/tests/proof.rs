//! What proves that a handshake is over, and what does not.

use super::*;

/// A forged SYN, the receiver's answer, a forged segment outside the receiver's window, and the challenge ACK that it brings about.
fn forged(path: &mut Path) {
    path.call();
    path.answer_with(60_000);
    path.forward(Flags::ACK, (0x4000_0000, 12_345), &Options::default(), 0);
    path.forward(Flags::ACK, (0x4000_0000, 12_345), &Options::default(), 1);
    path.forward(Flags::FIN | Flags::ACK, (0x4000_0000, 12_345), &Options::default(), 0);
    path.ack(101, 60_000);
}

#[test]
fn two_forged_packets_open_no_flow() {
    let (_, mut path) = wishing(2000);
    // Many more than there is room for.
    for port in 1..10_000 {
        path.sender.set_port(port);
        forged(&mut path);
    }
    let (table, counters) = (path.control.report().table, path.control.report().counters);
    assert_eq!((table.open, table.refused, counters.opened), (0, 0, 0));
    assert_eq!(counters.unknown, 9999);
    // A flow that comes now finds a place.
    path.sender.set_port(10_000);
    path.call();
    path.answer_with(60_000);
    path.confirm();
    assert_eq!((path.ack(101, 60_000), path.control.report().table.open), (2000, 1));
}

#[test]
fn nor_do_they_where_only_what_returns_comes_by() {
    let (set, _) = wishing(2000);
    let mut path = set.path(&ControlConfig { returns_only: true, ..config() });
    for port in 1..10_000 {
        path.sender.set_port(port);
        path.answer_with(60_000);
        path.ack(101, 60_000);
    }
    assert_eq!((path.control.report().table.open, path.control.report().counters.opened), (0, 0));
}

#[test]
fn a_challenge_ack_moves_the_edge() {
    let (_, mut path) = wishing(2000);
    path.call();
    assert_eq!(path.answer_with(60_000), 2000);
    assert_eq!(path.ack(101, 30_000), 30_000, "it passes as it is");
    assert_eq!(path.ack(101, 10_000), 10_000);
    path.confirm();
    // The sender may send up to 30,101, and nothing takes that back.
    assert_eq!(path.ack(101, 60_000), 30_000);
    assert_eq!(path.ack(20_101, 60_000), 10_000);
    assert_eq!(path.ack(30_101, 60_000), 2000);
    // With a scale: 300 units of 128 are 38,400 bytes.
    let (_, mut path) = wishing(2000);
    (path.sender_scale, path.receiver_scale) = (Some(7), Some(7));
    path.call();
    assert_eq!((path.answer_with(60_000), path.ack(101, 300)), (2000, 300));
    path.confirm();
    assert_eq!((path.ack(101, 500), path.ack(38_501, 500)), (300, 16));
}

#[test]
fn the_sender_has_to_acknowledge_the_receivers_syn() {
    for number in [0, 899, 900, 902, 901 + (1 << 16), 901 ^ 1 << 31] {
        let (_, mut path) = wishing(2000);
        path.call();
        path.answer_with(60_000);
        path.forward(Flags::ACK, (101, number), &Options::default(), 0);
        assert_eq!((path.ack(101, 500), path.control.report().table.open), (500, 0), "{number}");
        path.confirm();
        assert_eq!(path.control.report().table.open, 1);
    }
}

#[test]
fn data_that_the_receiver_has_taken_is_a_proof() {
    let (_, mut path) = wishing(2000);
    path.call();
    path.answer_with(60_000);
    // The sender's third packet was lost before it came here, or carried the data.
    assert_eq!((path.ack(102, 60_000), path.control.report().table.open), (2000, 1));
}

#[test]
fn data_in_a_syn_is_none() {
    // A receiver may take it at once (RFC 7413). Whether the SYN, its copy, or the answer shows it.
    for shown in 0..3 {
        let (_, mut path) = wishing(2000);
        let options = path.options(None);
        path.forward(Flags::SYN, (100, 0), &options, if shown == 0 { 50 } else { 0 });
        if shown == 1 {
            path.forward(Flags::SYN, (100, 0), &options, 50);
        }
        path.answer_to(if shown == 2 { 151 } else { 101 }, 900, 60_000);
        assert_eq!((path.ack(151, 500), path.ack(151, 600)), (500, 600), "{shown}");
        assert_eq!(path.control.report().table.open, 0, "{shown}");
        path.confirm();
        assert_eq!((path.ack(151, 60_000), path.control.report().table.open), (2000, 1), "{shown}");
    }
}

#[test]
fn a_host_that_did_not_call_and_says_so_opens_nothing() {
    // RFC 9293 3.5.2 has it without ACK; some send one.
    for flags in [Flags::RST, Flags::RST | Flags::ACK] {
        let (_, mut path) = wishing(2000);
        path.call();
        path.answer_with(60_000);
        path.forward(flags, (101, 901), &Options::default(), 0);
        assert_eq!(path.control.report().table.open, 0);
    }
}

#[test]
fn a_flow_that_begins_with_its_end_makes_room() {
    let (_, mut path) = wishing(2000);
    path.call();
    path.answer_with(60_000);
    path.forward(Flags::FIN | Flags::ACK, (101, 901), &Options::default(), 0);
    assert_eq!(path.control.report().table.open, 1);
    let options = path.options(None);
    path.forward(Flags::SYN, (200, 0), &options, 0);
    assert_eq!(path.control.report().table.open, 0, "it was at its end");
}

#[test]
fn the_senders_answer_when_both_call_is_a_proof() {
    let (set, mut path) = wishing(3000);
    path.call_back(900, 60_000);
    path.call();
    path.answer_with(60_000);
    let options = path.options(path.sender_scale);
    // Of another handshake, or with a number that is a guess.
    path.forward(SYN_ACK, (99, 901), &options, 0);
    path.forward(SYN_ACK, (100, 902), &options, 0);
    assert_eq!((path.ack(101, 500), path.control.report().table.open), (500, 0));
    path.answer_back();
    set.to(1000);
    assert_eq!((path.ack(101, 60_000), path.ack(3101, 60_000)), (3000, 1000));
}
