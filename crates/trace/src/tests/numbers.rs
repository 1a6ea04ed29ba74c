//! Numbers that cannot be, lengths that lie, and blocks that are seldom. Values worked by hand.

use transom_tcp::time::Instant;
use transom_wire::Flags;

use super::made::{Cut, ETHERNET, Made, block, frames, from, pcap, pcapng, transfer};
use crate::segment::Skipped;
use crate::{Capture, Connection};

const ACK: Flags = Flags::ACK;
const SYN: Flags = Flags::SYN;

fn of(made: &[Made]) -> Capture {
    Capture::read(&pcap(1, &frames(made, &ETHERNET, 65_535), false)[..]).unwrap()
}

fn ms(ms: u64) -> u64 {
    10_000_000 + ms * 1000
}

#[track_caller]
fn only(capture: &Capture) -> &Connection {
    let [connection] = &capture.connections[..] else { panic!("{:?}", capture.connections) };
    connection
}

/// How far the axis of a way reaches, down and up.
fn reach(connection: &Connection) -> [(i64, i64); 2] {
    connection.ways.each_ref().map(|way| {
        let sent = way.sent.iter().flat_map(|one| [one.start, one.end]);
        let all: Vec<i64> = sent.chain(way.acks.iter().map(|one| one.position)).collect();
        (*all.iter().min().unwrap(), *all.iter().max().unwrap())
    })
}

/// SYN 100, SYN-ACK 500, and data of so many bytes from the server in pieces of 1000, each acknowledged.
fn download(pieces: u32) -> Vec<Made> {
    let mut made = vec![
        from(true, ms(0), SYN, 100, 0, 0).scale(7),
        from(false, ms(20), SYN | ACK, 500, 101, 0).scale(7),
        from(true, ms(21), ACK, 101, 501, 0),
    ];
    for piece in 0..pieces {
        let at = ms(100 + u64::from(piece) * 20);
        made.push(from(false, at, ACK, 501 + piece * 1000, 101, 1000));
        made.push(from(true, at + 10_000, ACK, 101, 1501 + piece * 1000, 0));
    }
    made
}

#[test]
fn an_answer_before_its_call_belongs_to_it() {
    let mut made = download(3);
    made.swap(0, 1);
    let capture = of(&made);
    let connection = only(&capture);
    assert_eq!((connection.packets, connection.strays), (9, 0));
    assert_eq!(connection.ends[0].port(), 40_000, "the caller is first");
    assert_eq!(connection.synchronised, [true; 2]);
    assert_eq!(reach(connection), [(0, 1), (0, 3001)]);
    // The call carried data, which the answer acknowledges.
    made[0] = from(false, ms(0), SYN | ACK, 500, 151, 0).scale(7);
    made[1] = from(true, ms(1), SYN, 100, 0, 50).scale(7);
    let capture = of(&made);
    let [there, _] = reach(only(&capture));
    assert_eq!(there, (0, 51));
    assert_eq!(only(&capture).ways[0].counts.bytes, 50);
    // Another call is another connection.
    made[1] = from(true, ms(1), SYN, 90_000, 0, 0).scale(7);
    assert_eq!(of(&made).connections.len(), 2);
}

#[test]
fn a_challenge_of_an_older_connection_is_left_out() {
    // A reset answers it, and the SYN comes again.
    let mut made = vec![
        from(true, ms(0), SYN, 100, 0, 0).scale(7),
        from(false, ms(20), ACK, 77_777, 1_342_172_380, 0),
        from(true, ms(21), Flags::RST, 1_342_172_380, 0, 0),
    ];
    made.extend(download(3).into_iter().map(|mut one| {
        one.micros += 1_000_000;
        one
    }));
    let capture = of(&made);
    let connection = only(&capture);
    assert_eq!((connection.packets, connection.strays, connection.resets), (12, 1, 1));
    assert_eq!(reach(connection), [(0, 1), (0, 3001)]);
    assert!(
        capture.notes()[0].starts_with("1 packets have numbers outside"),
        "{:?}",
        capture.notes()
    );
}

#[test]
fn a_stranger_is_left_out() {
    for stranger in [
        from(true, ms(205), ACK, 50_330_748, 536_871_412, 0),
        // One of both numbers would do.
        from(true, ms(205), ACK, 101, 536_871_412, 0),
        from(true, ms(205), ACK, 50_330_748, 3501, 0),
        // With data, of either end, behind and before.
        from(false, ms(205), ACK, 1_610_612_736, 101, 1000),
        from(false, ms(205), ACK, 3_000_000_000, 101, 1000),
        from(true, ms(205), ACK, 1_610_612_736, 1, 10),
        from(true, ms(205), SYN | ACK, 50_330_748, 3501, 0),
    ] {
        let mut made = download(9);
        // It comes three times, with others between.
        for place in [20, 15, 10] {
            made.insert(place, stranger.clone());
        }
        let capture = of(&made);
        let connection = only(&capture);
        assert_eq!((connection.packets, connection.strays), (24, 3), "{:?}", stranger.header);
        assert_eq!(reach(connection), [(0, 1), (0, 9001)], "{:?}", stranger.header);
        let counts = connection.ways.each_ref().map(|way| way.counts);
        assert_eq!((counts[1].bytes, counts[1].retransmissions, counts[1].unseen), (9000, 0, 0));
        assert_eq!(connection.ways[1].rtt.len(), 10);
    }
}

#[test]
fn of_two_answers_the_acknowledged_one_counts() {
    let other = from(false, ms(19), SYN | ACK, 2_000_000_000, 101, 0).scale(2);
    // It came first, and the caller believes the second.
    let mut made = download(3);
    made.insert(1, other.clone());
    let capture = of(&made);
    assert_eq!((reach(only(&capture))[1], only(&capture).strays), ((0, 3001), 1));
    assert_eq!(only(&capture).ways[1].acks.last().unwrap().window, Some(128_000));
    // It came second; or late.
    for place in [2, 6] {
        let mut made = download(3);
        made.insert(place, other.clone());
        let capture = of(&made);
        assert_eq!((reach(only(&capture))[1], only(&capture).strays), ((0, 3001), 1), "{place}");
    }
}

/// The capture lacks ten million bytes: more than any window there was.
#[test]
fn after_a_long_gap_both_ends_agree() {
    for ack_first in [false, true] {
        let mut made = download(3);
        for piece in 0..5 {
            let at = ms(900 + u64::from(piece) * 20);
            let seq = 10_000_501 + piece * 1000;
            let mut two = vec![
                from(false, at, ACK, seq, 101, 1000),
                from(true, at + 10_000, ACK, 101, seq + 1000, 0),
            ];
            if ack_first {
                two.reverse();
            }
            made.extend(two);
        }
        let capture = of(&made);
        let connection = only(&capture);
        assert_eq!(reach(connection)[1], (0, 10_005_001), "{ack_first}");
        assert_eq!(connection.strays, 1, "{ack_first}: the first of them is alone");
    }
    // Of one way alone: no acknowledgement agrees, but three in a row do.
    let one_way: Vec<Made> = (0..6)
        .map(|piece| {
            let gap = if piece < 2 { 0 } else { 200_000_000 };
            from(false, ms(piece.into()), Flags::PSH, 1 + piece * 1000 + gap, 0, 1000)
        })
        .collect();
    let capture = of(&one_way);
    assert_eq!(only(&capture).strays, 2);
    assert_eq!(only(&capture).ways[0].sent.last().unwrap().end, 200_006_000);
}

#[test]
fn ports_that_are_used_again() {
    // The data of an older connection, without its SYN, from the end that answers then.
    let mut made = vec![from(false, ms(0), ACK, 9_000_000, 1, 1000)];
    made.extend(download(2));
    let capture = of(&made);
    assert_eq!(capture.connections.len(), 2);
    assert_eq!(reach(&capture.connections[1]), [(0, 1), (0, 2001)]);
}

#[test]
fn packets_longer_than_their_length_field() {
    let six = ["[2001:db8::1]:40000", "[2001:db8::2]:80"].map(|end| end.parse().unwrap());
    // The whole frame of 150,000 bytes of data, of which the capture keeps the headers.
    let big = |packet: Vec<u8>, data: usize| {
        let original = packet.len() + data;
        Cut { micros: ms(0), bytes: packet, original }
    };
    let mut four = from(false, ms(0), ACK, 1, 1, 0).packet();
    four[2..4].fill(0);
    let mut plain = from(false, ms(0), ACK, 1, 1, 0).between(six).packet();
    plain[4..6].fill(0);
    // The option behind two others, and frames that have something behind the packet.
    let mut jumbo = plain[..40].to_vec();
    jumbo[6] = 0;
    let length = (16 + 20 + 150_000u32).to_be_bytes();
    jumbo.extend([
        6, 1, 1, 0, 0xc2, 4, length[0], length[1], length[2], length[3], 1, 4, 0, 0, 0, 0,
    ]);
    jumbo.extend(&plain[40..]);
    for (packet, data) in [(four, 150_000), (plain, 150_000), (jumbo, 150_004)] {
        let version = packet[0] >> 4;
        let capture = Capture::read(&pcap(101, &[big(packet, data)], true)[..]).unwrap();
        let bytes = only(&capture).ways[0].counts.bytes;
        assert_eq!(bytes, 150_000, "IPv{version}: {:?}", capture.notes());
        assert!(capture.notes().is_empty());
    }
}

#[test]
fn a_length_beyond_the_frame_is_cut_and_said() {
    let mut packet = from(false, ms(0), ACK, 1, 1, 500).packet();
    packet[2..4].copy_from_slice(&9000u16.to_be_bytes());
    let original = packet.len();
    let cut = [Cut { micros: ms(0), bytes: packet.clone(), original }];
    let capture = Capture::read(&pcap(101, &cut, false)[..]).unwrap();
    assert_eq!((only(&capture).ways[0].counts.bytes, capture.beyond), (500, 1));
    assert!(capture.notes()[0].contains("beyond the end of their frame"), "{:?}", capture.notes());
    // A frame that was cut by the capture is as long as it was.
    let cut = [Cut { micros: ms(0), bytes: packet, original: 9000 }];
    let capture = Capture::read(&pcap(101, &cut, false)[..]).unwrap();
    assert_eq!((only(&capture).ways[0].counts.bytes, capture.beyond), (8960, 0));
    // Nothing of the TCP header is in the packet, though it is in the frame.
    let mut packet = from(false, ms(0), ACK, 1, 1, 500).packet();
    packet[2..4].copy_from_slice(&30u16.to_be_bytes());
    let original = packet.len();
    let cut = [Cut { micros: ms(0), bytes: packet, original }];
    let capture = Capture::read(&pcap(101, &cut, false)[..]).unwrap();
    assert_eq!(capture.skipped[&Skipped::Malformed], 1);
}

/// Blocks of the older kind, simple ones, and one that nobody knows.
#[test]
fn every_block_with_a_packet_is_read_or_said() {
    for big in [false, true] {
        let word = |value: u32| if big { value.to_be_bytes() } else { value.to_le_bytes() };
        let half = |value: u16| if big { value.to_be_bytes() } else { value.to_le_bytes() };
        let all = frames(&transfer(), &ETHERNET, 80);
        let mut file = pcapng(1, &all[..1], big);
        for (number, frame) in all.iter().enumerate().skip(1) {
            let lengths = [word(frame.bytes.len() as u32), word(frame.original as u32)].concat();
            let (kind, body) = if number % 2 == 0 {
                (3, [&word(frame.original as u32)[..], &frame.bytes].concat())
            } else {
                let ticks = ((frame.micros << 20) / 1_000_000) - (7 << 20);
                let time = [word((ticks >> 32) as u32), word(ticks as u32)].concat();
                let head = [half(0), half(65_535)].concat();
                let padding = vec![0; frame.bytes.len().next_multiple_of(4) - frame.bytes.len()];
                let comment = [&half(1)[..], &half(4), b"here", &half(0), &half(0)].concat();
                (2, [&head[..], &time, &lengths, &frame.bytes, &padding, &comment].concat())
            };
            file.extend(block(kind, &body, big));
        }
        file.extend(block(0x0bad, b"whatever", big));
        file.extend(block(2, &[9; 24], big));
        let capture = Capture::read(&file[..]).unwrap();
        let connection = only(&capture);
        assert_eq!((connection.packets, connection.ways[0].counts.bytes), (12, 400));
        assert!(connection.first > Instant::ZERO, "what has no time does not begin in 1970");
        let notes = capture.notes().join("\n");
        for part in ["1 blocks make no sense", "1 blocks are of kinds", "5 packets have no time"] {
            assert!(notes.contains(part), "no {part:?} in {notes}");
        }
        let mut blocks = crate::file::Blocks::new(&file[..]).unwrap();
        let mut comments = Vec::new();
        while let Some(item) = blocks.next_item().unwrap() {
            comments.extend(item.comments());
        }
        assert_eq!(comments, ["here"; 6]);
    }
}
