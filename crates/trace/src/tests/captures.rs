//! Values worked by hand.

use transom_tcp::time::{Duration, Instant};
use transom_wire::Flags;

use super::made::{
    CLIENT, Cut, ETHERNET, Made, SERVER, block, frames, from, pcap, pcapng, transfer,
};
use crate::segment::Skipped;
use crate::{Capture, Kind};

const ACK: Flags = Flags::ACK;

fn read(file: &[u8]) -> Capture {
    Capture::read(file).unwrap()
}

fn of(made: &[Made]) -> Capture {
    read(&pcap(1, &frames(made, &ETHERNET, 65_535), false))
}

/// When, and how long, in milliseconds. The units of the made pcapng files are about a microsecond.
fn rtts(times: &[(Instant, Duration)]) -> Vec<(u64, u64)> {
    let ms = |nanos: u64| (nanos + 500_000) / 1_000_000;
    times.iter().map(|(at, rtt)| (ms(at.as_nanos()) - 10_000, ms(rtt.as_nanos()))).collect()
}

/// See the table at [`transfer`].
#[track_caller]
fn is_the_transfer(capture: &Capture) {
    let [connection] = &capture.connections[..] else { panic!("{:?}", capture.connections) };
    assert_eq!(connection.ends.map(|end| end.to_string()), [CLIENT, SERVER]);
    assert_eq!(connection.packets, 12);
    assert_eq!(connection.synchronised, [true; 2]);
    let [there, back] = &connection.ways;
    let sent: Vec<_> = there.sent.iter().map(|one| (one.start, one.end, one.kind)).collect();
    let new = Kind::New;
    assert_eq!(
        sent,
        [
            (0, 1, new),
            (1, 101, new),
            (101, 201, new),
            (201, 301, new),
            (101, 201, Kind::Retransmitted),
            (301, 401, new)
        ]
    );
    let acks: Vec<_> = there.acks.iter().map(|one| (one.position, one.window)).collect();
    // A SYN's window is not scaled; then it is 1000 · 2^2.
    let some = |window: u64| Some(window);
    assert_eq!(
        acks,
        [
            (1, some(60_000)),
            (101, some(4000)),
            (101, some(4000)),
            (301, some(4000)),
            (401, some(0))
        ]
    );
    assert_eq!(back.acks.last().unwrap().window, Some(128_000), "1000 · 2^7");
    let [sack] = &there.sacks[..] else { panic!("{:?}", there.sacks) };
    assert_eq!((sack.start, sack.end, sack.duplicate), (201, 301, false));
    // The SYN; the first segment; not the one that was sent twice; the last one.
    assert_eq!(rtts(&there.rtt), [(20, 20), (50, 20), (112, 22)]);
    assert_eq!(rtts(&back.rtt), [(21, 1)]);
    let flying: Vec<_> = there.in_flight.iter().map(|&(_, bytes)| bytes).collect();
    assert_eq!(flying, [0, 100, 200, 300, 200, 200, 200, 0, 100, 0]);
    let counts = there.counts;
    assert_eq!((counts.segments, counts.bytes, counts.resent), (5, 400, 100));
    assert_eq!((counts.retransmissions, counts.duplicate_acks, counts.zero_windows), (1, 1, 1));
    assert_eq!((counts.unseen, counts.filled, counts.probes), (0, 0, 0));
    assert_eq!(back.counts.segments, 0);
}

#[test]
fn a_transfer_with_a_loss_and_wrapped_numbers() {
    is_the_transfer(&of(&transfer()));
}

#[test]
fn every_form_of_file_and_of_link_gives_the_same() {
    let mut tagged = ETHERNET.to_vec();
    // A provider's tag, then a tag of a VLAN.
    tagged.splice(12.., [0x88, 0xa8, 0, 9, 0x81, 0, 0, 7, 8, 0]);
    let mut cooked = vec![0; 16];
    cooked[14] = 8;
    let mut cooked2 = vec![0; 20];
    cooked2[0] = 8;
    let links: [(u16, &[u8]); 8] = [
        (1, &ETHERNET),
        (1, &tagged),
        (101, &[]),
        (228, &[]),
        (0, &[2, 0, 0, 0]),
        (108, &[0, 0, 0, 2]),
        (113, &cooked),
        (276, &cooked2),
    ];
    for (link, before) in links {
        for big in [false, true] {
            let cut = frames(&transfer(), before, 65_535);
            is_the_transfer(&read(&pcap(link.into(), &cut, big)));
            let capture = read(&pcapng(link, &cut, big));
            is_the_transfer(&capture);
            assert!(capture.damage.is_empty(), "{link} {big}: {:?}", capture.damage);
        }
    }
}

#[test]
fn times_have_the_interfaces_resolution_and_offset() {
    // Half a second is a whole number of units of 2^-20 s.
    let made = [from(true, 12_500_000, ACK, 1, 1, 10)];
    let capture = read(&pcapng(101, &frames(&made, &[], 100), true));
    assert_eq!(capture.connections[0].first, Instant::from_millis(12_500));
}

#[test]
fn a_short_snap_length_keeps_the_lengths() {
    // Ethernet, IPv4 and TCP without options: no SACK block, no window scale.
    let capture = read(&pcap(1, &frames(&transfer(), &ETHERNET, 54), false));
    let [connection] = &capture.connections[..] else { panic!() };
    let there = &connection.ways[0];
    assert_eq!((there.counts.bytes, there.counts.resent), (400, 100));
    assert!(there.sacks.is_empty());
    assert_eq!(connection.cut_options, 3);
    assert_eq!(there.acks[1].window, None, "the scale is not known");
    // With 66 bytes all options are there.
    is_the_transfer(&read(&pcap(1, &frames(&transfer(), &ETHERNET, 66), false)));
    // One byte less than a TCP header is too little.
    let capture = read(&pcap(1, &frames(&transfer(), &ETHERNET, 53), false));
    assert!(capture.connections.is_empty());
    assert_eq!(capture.skipped[&Skipped::Short], 12);
    assert!(capture.notes()[0].contains("12 of 12 packets were cut"), "{:?}", capture.notes());
}

#[test]
fn a_capture_may_begin_in_the_middle() {
    let capture = of(&transfer()[7..]);
    let there = &capture.connections[0].ways[0];
    assert_eq!(capture.connections[0].ends[0].to_string(), SERVER, "it sent the first packet");
    let there = if there.counts.segments > 0 { there } else { &capture.connections[0].ways[1] };
    // The first position is that of the acknowledgement, at zero: 101 of the whole transfer.
    let sent: Vec<_> = there.sent.iter().map(|one| (one.start, one.end, one.kind)).collect();
    assert_eq!(sent, [(0, 100, Kind::New), (200, 300, Kind::New)]);
    assert_eq!(there.counts.unseen, 1, "201 to 301 was not seen");
    assert!(there.acks.iter().all(|ack| ack.window.is_none()));
    assert_eq!(rtts(&there.rtt), [(85, 25), (112, 22)]);
}

#[test]
fn data_below_the_beginning_has_negative_positions() {
    let made = [
        from(true, 1000, ACK, 1000, 1, 100),
        from(true, 2000, ACK, 900, 1, 100),
        from(true, 3000, ACK, 1100, 1, 100),
    ];
    let capture = of(&made);
    let sent: Vec<_> =
        capture.connections[0].ways[0].sent.iter().map(|s| (s.start, s.kind)).collect();
    assert_eq!(sent, [(0, Kind::New), (-100, Kind::FillsHole), (100, Kind::New)]);
}

#[test]
fn timestamps_give_round_trips_where_karn_gives_none() {
    let ms = |ms: u64| 10_000_000 + ms * 1000;
    let made = [
        from(true, ms(0), ACK, 1, 1, 100).stamps(700, 1),
        from(true, ms(40), ACK, 1, 1, 100).stamps(740, 1),
        // It answers the first transmission.
        from(false, ms(50), ACK, 1, 101, 0).stamps(2, 700),
        from(true, ms(60), ACK, 101, 1, 100).stamps(760, 2),
        from(false, ms(90), ACK, 1, 201, 0).stamps(3, 760),
        // The same echo with nothing new is no sample.
        from(false, ms(95), ACK, 1, 201, 0).stamps(4, 760),
    ];
    let there = &of(&made).connections[0].ways[0];
    assert_eq!(rtts(&there.stamped), [(50, 50), (90, 30)]);
    assert_eq!(rtts(&there.rtt), [(90, 30)]);
}

#[test]
fn duplicates_probes_and_holes_are_told_apart() {
    let ms = |ms: u64| 10_000_000 + ms * 1000;
    let made = [
        from(true, ms(0), ACK, 1, 1, 100),
        from(true, ms(1), ACK, 201, 1, 100),
        from(true, ms(2), ACK, 101, 1, 100),
        from(false, ms(20), ACK, 1, 301, 0),
        // DSACK below the acknowledgement.
        from(false, ms(21), ACK, 1, 301, 0).sack(&[(1, 101)]),
        // A keep-alive without a byte, and one with a byte.
        from(true, ms(30), ACK, 300, 1, 0),
        from(true, ms(31), ACK, 300, 1, 1),
        // Half of it is new.
        from(true, ms(40), ACK, 251, 1, 100),
    ];
    let there = &of(&made).connections[0].ways[0];
    let kinds: Vec<Kind> = there.sent.iter().map(|one| one.kind).collect();
    use Kind::{FillsHole, New, Probe, Retransmitted};
    assert_eq!(kinds, [New, New, FillsHole, Probe, Probe, Retransmitted]);
    assert!(there.sacks[0].duplicate);
    assert_eq!((there.counts.bytes, there.counts.resent, there.counts.probes), (350, 50, 2));
    assert_eq!(there.counts.duplicate_acks, 0, "nothing was outstanding");
}

#[test]
fn both_ways_and_reused_ports() {
    let ms = |ms: u64| 10_000_000 + ms * 1000;
    let made = [
        from(true, ms(0), Flags::SYN, 100, 0, 0),
        from(true, ms(5), Flags::SYN, 100, 0, 0),
        from(false, ms(9), Flags::SYN | ACK, 500, 101, 0),
        from(true, ms(10), ACK, 101, 501, 10),
        from(false, ms(20), ACK, 501, 111, 20),
        from(false, ms(21), Flags::RST, 521, 0, 0),
        from(true, ms(30), Flags::SYN, 900, 0, 0),
    ];
    let capture = of(&made);
    let [first, second] = &capture.connections[..] else { panic!("{:?}", capture.connections) };
    assert_eq!(first.ways.each_ref().map(|way| way.counts.bytes), [10, 20]);
    assert_eq!((first.packets, first.resets, second.packets, second.number), (6, 1, 1, 2));
    assert!(
        first.ways[0].rtt.iter().all(|(_, rtt)| rtt.as_millis() == 10),
        "the SYN was sent twice"
    );
    assert_eq!(rtts(&first.ways[0].rtt), [(20, 10)]);
}

#[test]
fn ipv6_and_other_packets() {
    let ends = ["[2001:db8::1]:1", "[2001:db8::2]:2"].map(|end| end.parse().unwrap());
    let six = from(true, 10_000_000, ACK, 1, 1, 77).between(ends);
    let mut cut = frames(&[six], &[], 60);
    let mut udp = from(true, 10_000_000, ACK, 1, 1, 77).packet();
    udp[9] = 17;
    let mut fragment = from(true, 10_000_000, ACK, 1, 1, 77).packet();
    fragment[6] = 0x20;
    let mut short = from(true, 10_000_000, ACK, 1, 1, 77).packet();
    // A data offset of one word.
    short[32] = 0x10;
    // Merged by the device: the length says zero.
    let mut merged = from(true, 10_000_000, ACK, 1, 1, 2000).packet();
    merged[2..4].copy_from_slice(&[0, 0]);
    for bytes in [udp, fragment, short, merged] {
        let original = bytes.len();
        cut.push(Cut { micros: 10_000_000, bytes, original });
    }
    let capture = read(&pcap(101, &cut, false));
    let [six, merged] = &capture.connections[..] else { panic!("{:?}", capture.connections) };
    assert_eq!(six.ways[0].counts.bytes, 77);
    assert_eq!(merged.ways[0].counts.bytes, 2000);
    for why in [Skipped::NotTcp, Skipped::Fragment, Skipped::Malformed] {
        assert_eq!(capture.skipped[&why], 1, "{why:?}");
    }
    let unknown = read(&pcap(147, &cut, false));
    assert_eq!(unknown.skipped[&Skipped::Link(147)], 5);
}

#[test]
fn damage_is_told_and_the_rest_is_read() {
    let cut = frames(&transfer(), &ETHERNET, 65_535);
    let mut file = pcapng(1, &cut, false);
    // A packet of an interface that there is not, and one that is longer than its block.
    file.extend(block(6, &[9; 40], false));
    let mut body = [0u8; 40];
    body[12] = 200;
    file.extend(block(6, &body, false));
    file.extend([6, 0, 0, 0, 0xfc, 0xff, 0xff, 0xff, 0, 0, 0, 0]);
    let capture = read(&file);
    is_the_transfer(&capture);
    assert_eq!(capture.damage.len(), 2, "{:?}", capture.damage);
    assert!(capture.damage[0].starts_with("2 blocks"));
    assert!(capture.damage[1].contains("4294967292 bytes"));
    let file = pcap(1, &cut, false);
    let capture = read(&file[..file.len() - 1]);
    assert_eq!(capture.connections[0].packets, 11);
    assert!(capture.damage[0].contains("in the middle"));
    assert!(Capture::read(&b"\x0a\x0d\x0d"[..]).is_err());
    assert!(Capture::read(&[][..]).is_err());
}
