//! Units come out whole however the stream was cut and reordered, and nothing that is sent does more harm than to its own place.

use super::super::encoding::encode_unit;
use super::*;
use proptest::prelude::*;
use std::vec;
use std::vec::Vec;

const ORIGIN: Pos = Pos::FIRST_DATA;

fn stream_of(units: &[&[u8]]) -> Vec<u8> {
    let mut stream = Vec::new();
    for unit in units {
        encode_unit(unit, |bytes| stream.extend_from_slice(bytes));
    }
    stream
}

fn assembler() -> Assembler {
    Assembler::new(ORIGIN, 1000)
}

fn give(assembler: &mut Assembler, stream: &[u8], range: Range<usize>) {
    assembler.accept(ORIGIN + range.start as u64, &stream[range]);
}

fn units(assembler: &mut Assembler) -> Vec<(u64, Vec<u8>)> {
    let mut all = Vec::new();
    let mut unit = Vec::new();
    while let Some(range) = assembler.take(&mut unit) {
        all.push((range.start.stream_offset(), unit.clone()));
    }
    all
}

#[test]
fn a_unit_is_there_when_its_last_byte_is() {
    let stream = stream_of(&[b"hello", b"", b"wor\0ld"]);
    // 0 6 hello 0 | 0 1 0 | 0 4 wor 3 ld 0
    assert_eq!(stream, b"\0\x06hello\0\0\x01\0\0\x04wor\x03ld\0");
    let mut one = assembler();
    for at in 0..7 {
        give(&mut one, &stream, at..at + 1);
        assert_eq!(one.readable(), 0);
    }
    give(&mut one, &stream, 7..8);
    assert_eq!(one.readable(), 6);
    assert_eq!(units(&mut one), [(1, b"hello".to_vec())]);
    give(&mut one, &stream, 8..stream.len());
    assert_eq!(units(&mut one), [(9, vec![]), (12, b"wor\0ld".to_vec())]);
    assert_eq!((one.held(), one.faults()), (0, UnitFaults::default()));
}

#[test]
fn a_part_needs_nothing_before_it() {
    let stream = stream_of(&[b"first", b"second", b"third"]);
    let mut one = assembler();
    // From the middle of the first to the middle of the third.
    give(&mut one, &stream, 4..stream.len() - 3);
    assert_eq!(units(&mut one), [(9, b"second".to_vec())]);
    give(&mut one, &stream, stream.len() - 3..stream.len());
    assert_eq!(units(&mut one), [(18, b"third".to_vec())]);
    give(&mut one, &stream, 0..4);
    assert_eq!(units(&mut one), [(1, b"first".to_vec())]);
}

#[test]
fn an_encoder_that_writes_zeros_only_behind_units_is_understood() {
    let mut one = assembler();
    one.accept(ORIGIN, b"\x03ab\0\x02c\0");
    assert_eq!(units(&mut one), [(0, b"ab".to_vec()), (4, b"c".to_vec())]);
}

#[test]
fn malformed_units_are_counted_and_the_next_one_is_fine() {
    let good = stream_of(&[b"good"]);
    let large = vec![7; 1001];
    let mut one = assembler();
    let mut at = ORIGIN;
    let mut send = |one: &mut Assembler, bytes: &[u8]| {
        one.accept(at, bytes);
        at += bytes.len() as u64;
    };
    send(&mut one, b"\0\x09short\0");
    send(&mut one, &good);
    assert_eq!(one.faults(), UnitFaults { malformed: 1, ..Default::default() });
    // One byte too long, at once and in parts.
    send(&mut one, &stream_of(&[&large]));
    send(&mut one, &good);
    let encoded = stream_of(&[&large]);
    encoded.chunks(100).for_each(|part| send(&mut one, part));
    send(&mut one, &good);
    assert_eq!(one.faults(), UnitFaults { malformed: 1, oversized: 2, ..Default::default() });
    // Without end.
    for _ in 0..100 {
        send(&mut one, &[1; 1000]);
        assert!(one.held() <= 3 * 6 + 1005, "{} bytes held", one.held());
    }
    send(&mut one, &good);
    assert_eq!(one.faults().oversized, 3);
    send(&mut one, b"\0\x05cut");
    one.finish();
    assert_eq!(one.faults().truncated, 1);
    assert_eq!(one.faults().total(), 5);
    let all = units(&mut one);
    assert_eq!(all.len(), 4);
    assert!(all.iter().all(|(_, unit)| unit == b"good"));
    assert_eq!(one.held(), 0);
}

#[test]
fn abandoned_data_takes_its_units_with_it() {
    let stream = stream_of(&[b"first", b"second", b"third", b"fourth"]);
    let at = |n: usize| ORIGIN + n as u64;
    // "first" takes 0..8, "second" 8..17, "third" 17..25, "fourth" 25..34.
    for (hole, left, incomplete) in [
        (10..20, [&b"first"[..], b"fourth"].as_slice(), 2),
        (8..17, &[b"first", b"third", b"fourth"], 0),
        (8..18, &[b"first", b"fourth"], 1),
        // The zero behind "first" is lost, and with it the unit.
        (7..17, &[b"third", b"fourth"], 1),
        (0..9, &[b"third", b"fourth"], 1),
    ] {
        // The hole is known before or after what follows it.
        for before in [true, false] {
            let mut one = assembler();
            give(&mut one, &stream, 0..hole.start);
            if before {
                one.give_up(at(hole.start)..at(hole.end));
            }
            for byte in hole.end..stream.len() {
                give(&mut one, &stream, byte..byte + 1);
            }
            if !before {
                one.give_up(at(hole.start)..at(hole.end));
            }
            let got: Vec<Vec<u8>> = units(&mut one).into_iter().map(|(_, unit)| unit).collect();
            assert_eq!(got, left, "{hole:?}");
            assert_eq!(one.faults().incomplete, incomplete, "{hole:?} before: {before}");
            one.finish();
            assert_eq!((one.held(), one.faults().total()), (0, incomplete));
        }
    }
}

/// The stream cut into parts at `cuts`, in an order made of `order`.
fn parts(len: usize, cuts: &[usize], order: &[usize]) -> Vec<Range<usize>> {
    let mut edges: Vec<usize> = cuts.iter().map(|cut| cut % (len + 1)).chain([0, len]).collect();
    edges.sort_unstable();
    edges.dedup();
    let mut parts: Vec<_> = edges.windows(2).map(|pair| pair[0]..pair[1]).collect();
    let count = parts.len();
    for (at, other) in order.iter().enumerate().take(count) {
        parts.swap(at, other % count);
    }
    parts
}

fn unit() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..20),
        prop::collection::vec(prop_oneof![Just(0u8), Just(1)], 0..300),
        prop::collection::vec(1u8..=255, 0..700),
    ]
}

proptest! {
    #[test]
    fn units_survive_any_cuts_in_any_order(
        sent in prop::collection::vec(unit(), 0..12),
        cuts in prop::collection::vec(any::<usize>(), 0..60),
        order in prop::collection::vec(any::<usize>(), 0..60),
    ) {
        let stream = stream_of(&sent.iter().map(Vec::as_slice).collect::<Vec<_>>());
        let mut one = assembler();
        let mut got = Vec::new();
        for part in parts(stream.len(), &cuts, &order) {
            give(&mut one, &stream, part);
            got.extend(units(&mut one));
            prop_assert!(one.held() <= stream.len());
        }
        got.sort();
        let got: Vec<Vec<u8>> = got.into_iter().map(|(_, unit)| unit).collect();
        prop_assert_eq!(got, sent);
        one.finish();
        prop_assert_eq!((one.held(), one.faults().total()), (0, 0));
    }

    /// For any bytes, the order of arrival changes only the order of the units, and nothing is left over.
    #[test]
    fn hostile_bytes_give_the_same_in_any_order(
        bytes in prop::collection::vec(prop_oneof![2 => Just(0u8), 3 => 1u8..6, 1 => any::<u8>()], 0..400),
        cuts in prop::collection::vec(any::<usize>(), 0..40),
        order in prop::collection::vec(any::<usize>(), 0..40),
        max in 0usize..40,
    ) {
        let mut whole = Assembler::new(ORIGIN, max);
        give(&mut whole, &bytes, 0..bytes.len());
        whole.finish();
        let mut one = Assembler::new(ORIGIN, max);
        for part in parts(bytes.len(), &cuts, &order) {
            give(&mut one, &bytes, part);
            let run = max_encoded_len(max) * (cuts.len() + 2) * 2;
            prop_assert!(one.held() <= run + bytes.len());
        }
        one.finish();
        prop_assert_eq!(one.faults().total(), whole.faults().total());
        prop_assert_eq!(one.held(), one.readable());
        let mut got = units(&mut one);
        got.sort();
        prop_assert!(got.iter().all(|(_, unit)| unit.len() <= max));
        prop_assert_eq!(got, units(&mut whole));
    }

    #[test]
    fn holes_in_any_place_lose_only_what_they_touch(
        sent in prop::collection::vec(unit(), 1..12),
        cuts in prop::collection::vec(any::<usize>(), 1..60),
        order in prop::collection::vec(any::<usize>(), 0..60),
        lost in prop::collection::vec(any::<bool>(), 60),
    ) {
        let stream = stream_of(&sent.iter().map(Vec::as_slice).collect::<Vec<_>>());
        let parts = parts(stream.len(), &cuts, &order);
        let mut missing = vec![false; stream.len()];
        let mut one = assembler();
        for (part, &lost) in parts.iter().zip(&lost) {
            if lost {
                missing[part.clone()].fill(true);
                one.give_up(ORIGIN + part.start as u64..ORIGIN + part.end as u64);
            } else {
                give(&mut one, &stream, part.clone());
            }
        }
        one.finish();
        let mut at = 0;
        let mut expected = Vec::new();
        for unit in &sent {
            let encoded = stream_of(&[unit]);
            if !missing[at..at + encoded.len()].contains(&true) {
                expected.push((at as u64 + 1, unit.clone()));
            }
            at += encoded.len();
        }
        let mut got = units(&mut one);
        got.sort();
        // A unit that lost only its first or last zero may still be found by its neighbour's zero.
        prop_assert!(expected.iter().all(|unit| got.contains(unit)));
        for (offset, unit) in &got {
            prop_assert!(sent.contains(unit), "{:?} at {} was never sent", unit, offset);
        }
        prop_assert_eq!(one.held(), 0);
    }
}
