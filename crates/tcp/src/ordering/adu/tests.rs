//! Units over either order: when they come, what room they take, and where the holes are.

use super::*;
use crate::adu::encoding::encode_unit;
use crate::ordering::holed::Holed;
use crate::ordering::unordered::Unordered;
use alloc::boxed::Box;

fn p(n: usize) -> Pos {
    Pos::FIRST_DATA + n as u64
}

fn stream(units: &[&[u8]]) -> Vec<u8> {
    let mut stream = Vec::new();
    units.iter().for_each(|unit| encode_unit(unit, |bytes| stream.extend_from_slice(bytes)));
    stream
}

fn both() -> [Units; 2] {
    let ordered = OrderingUnit::Holed(Box::new(Holed::new(p(0))));
    [Units::new(ordered, 1000), Units::new(OrderingUnit::Unordered(Unordered::new(p(0))), 1000)]
}

fn give(units: &mut Units, stream: &[u8], range: Range<usize>) -> Accepted {
    units.accept(p(range.start), Payload::borrowed(&stream[range]), 1 << 20)
}

fn next(units: &mut Units) -> Option<Vec<u8>> {
    let mut unit = Vec::new();
    units.take_unit(&mut unit).map(|_| unit)
}

#[test]
fn the_window_is_for_what_is_held_and_never_moves_left() {
    // Five bytes of stream each: 0..5, 5..10, 10..15.
    let stream = stream(&[b"ab", b"cd", b"ef"]);
    let [mut ordered, mut unordered] = both();
    give(&mut unordered, &stream, 8..15);
    // Of "cd" one byte is held, of "ef" three; the zeros are free.
    assert_eq!((unordered.readable(), unordered.buffered()), (3, 4));
    assert_eq!(unordered.window_base(), p(7 - 4));
    assert_eq!(next(&mut unordered), Some(b"ef".to_vec()));
    assert_eq!(unordered.window_base(), p(7 - 1));
    give(&mut unordered, &stream, 0..8);
    assert_eq!((unordered.readable(), unordered.window_base()), (6, p(15 - 6)));
    assert_eq!(unordered.next(), p(15));

    give(&mut ordered, &stream, 8..15);
    assert_eq!((ordered.readable(), ordered.buffered(), ordered.window_base()), (0, 7, p(0)));
    give(&mut ordered, &stream, 0..8);
    assert_eq!((ordered.readable(), ordered.window_base()), (9, p(15 - 9)));
    assert_eq!(ordered.discard(4), 6, "whole units");
    assert_eq!((next(&mut ordered), next(&mut ordered)), (Some(b"ef".to_vec()), None));
    assert_eq!(ordered.window_base(), p(15));
}

#[test]
fn holes_come_at_their_place_or_at_once() {
    let stream = stream(&[b"ab", b"cd", b"ef", b"gh"]);
    let [mut ordered, mut unordered] = both();
    for units in [&mut ordered, &mut unordered] {
        give(units, &stream, 0..5);
        give(units, &stream, 12..20);
        assert_eq!(units.skip(p(12)), 7);
        assert_eq!(units.next(), p(20));
        assert_eq!(units.unit_faults().incomplete, 1, "the rest of \"ef\"");
    }
    let hole = Some(p(5)..p(12));
    assert_eq!(unordered.take_hole(), hole);
    assert_eq!(ordered.take_hole(), None, "\"ab\" comes first");
    assert_eq!((next(&mut ordered), ordered.take_hole()), (Some(b"ab".to_vec()), hole));
    assert_eq!((next(&mut ordered), next(&mut ordered)), (Some(b"gh".to_vec()), None));
    assert_eq!((ordered.hole(), ordered.readable()), (None, 0));
}

/// A peer that gives up every second byte and sends zeros between.
#[test]
fn holes_that_nobody_takes_are_bounded() {
    for mut units in both() {
        for at in 0..5_000 {
            give(&mut units, &[0; 10_001], 2 * at + 1..2 * at + 2);
            units.skip(p(2 * at + 1));
        }
        assert!(units.holes.len() <= MAX_HOLES + 1, "{}", units.holes.len());
        assert!(units.next() < p(4_500));
        assert!(units.memory() < 1 << 20, "{} bytes", units.memory());
        while units.take_hole().is_some() {}
        let before = units.next();
        assert!(units.skip(before + 1) > 0, "and RCV.NXT goes on when they have been");
    }
}
