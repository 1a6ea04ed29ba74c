//! Holes stand at their places, whatever arrives in whatever order, and nothing is read across one.

use super::*;
use core::cell::Cell;
use proptest::prelude::*;
use std::vec::Vec;

fn p(n: u64) -> Pos {
    Pos::FIRST_DATA + n
}

fn stream(from: u64, to: u64) -> Vec<u8> {
    (from..to).map(|i| (i * 7 + i / 256) as u8).collect()
}

fn give(buffer: &mut Holed, from: u64, to: u64) -> Accepted {
    buffer.accept(p(from), Payload::borrowed(&stream(from, to)), 1 << 20)
}

/// What a reader gets now: runs of bytes and holes, by their offsets.
fn read_all(buffer: &mut Holed, offset: &mut u64) -> Vec<(char, u64, u64)> {
    let mut got = Vec::new();
    loop {
        let mut out = [0; 64];
        let read = buffer.read(&mut out) as u64;
        assert_eq!(out[..read as usize], stream(*offset, *offset + read));
        if read > 0 {
            got.push(('b', *offset, *offset + read));
            *offset += read;
        } else if let Some(hole) = buffer.take_hole() {
            assert_eq!(hole.start, p(*offset));
            let end = hole.end.since(p(0));
            got.push(('h', *offset, end));
            *offset = end;
        } else {
            return got;
        }
    }
}

#[test]
fn a_hole_is_read_at_its_place() {
    let mut buffer = Holed::new(p(0));
    give(&mut buffer, 0, 10);
    give(&mut buffer, 20, 30);
    give(&mut buffer, 35, 40);
    assert_eq!(buffer.skip(p(32)), 10 + 2);
    assert_eq!(buffer.next(), p(32), "the rest of the second hole may still come");
    assert_eq!((buffer.readable(), buffer.hole()), (10, None));
    assert_eq!(buffer.front(), stream(0, 10));
    let mut out = [0; 40];
    assert_eq!(buffer.peek(&mut out), 10);
    assert_eq!(buffer.read(&mut out[..4]), 4);
    assert_eq!(buffer.discard(100), 6);
    assert_eq!((buffer.readable(), buffer.hole()), (0, Some(p(10)..p(20))));
    assert_eq!((buffer.read(&mut out), buffer.front().len()), (0, 0));
    assert_eq!(buffer.take_hole(), Some(p(10)..p(20)));
    assert_eq!(buffer.take_hole(), None);
    let mut offset = 20;
    assert_eq!(read_all(&mut buffer, &mut offset), [('b', 20, 30), ('h', 30, 32)]);
    assert_eq!(buffer.read_pos(), p(32));
    // Given up as well: a hole that nobody has passed yet grows, here a new one begins.
    assert_eq!(buffer.skip(p(35)), 3);
    assert_eq!(buffer.next(), p(40));
    assert_eq!(read_all(&mut buffer, &mut offset), [('h', 32, 35), ('b', 35, 40)]);
}

#[test]
fn holes_that_touch_are_one_and_what_comes_late_is_old() {
    let mut buffer = Holed::new(p(0));
    assert_eq!(buffer.skip(p(10)), 10);
    assert_eq!(buffer.skip(p(15)), 5);
    assert_eq!(buffer.skip(p(15)), 0);
    assert_eq!(buffer.hole(), Some(p(0)..p(15)));
    let late = give(&mut buffer, 5, 20);
    assert_eq!((late.new_bytes, late.duplicate), (5, Some((p(5), p(15)))));
    assert_eq!(buffer.readable(), 0, "behind the hole");
    let mut offset = 0;
    assert_eq!(read_all(&mut buffer, &mut offset), [('h', 0, 15), ('b', 15, 20)]);
}

#[test]
fn a_hole_before_the_end_of_the_stream_is_told() {
    let mut buffer = Holed::new(p(0));
    give(&mut buffer, 0, 5);
    buffer.skip(p(8));
    buffer.consume_fin();
    assert_eq!(buffer.next(), p(9));
    let mut offset = 0;
    assert_eq!(read_all(&mut buffer, &mut offset), [('b', 0, 5), ('h', 5, 8)]);
}

#[test]
fn nothing_lands_in_the_memory_of_a_reader_that_has_a_hole_before_it() {
    let mut buffer = Holed::new(p(0));
    buffer.skip(p(3));
    let claimed = Cell::new(0);
    buffer.accept(p(3), Payload::in_place(&stream(3, 6), &claimed), 100);
    assert_eq!((claimed.get(), buffer.next()), (0, p(6)));
    let mut offset = 0;
    assert_eq!(read_all(&mut buffer, &mut offset), [('h', 0, 3), ('b', 3, 6)]);
    buffer.accept(p(6), Payload::in_place(&stream(6, 9), &claimed), 100);
    assert_eq!(claimed.get(), 3, "and without one it does");
}

#[test]
fn holes_that_nobody_reads_are_bounded() {
    let mut buffer = Holed::new(p(0));
    for i in 1..=2 * MAX_HOLES as u64 {
        let at = 2 * i;
        give(&mut buffer, at, at + 1);
        buffer.skip(p(at));
    }
    assert_eq!(buffer.holes.len(), MAX_HOLES);
    let stuck = buffer.next();
    assert!(stuck < p(2 * MAX_HOLES as u64 + 10));
    assert_eq!(buffer.skip(stuck + 1), 0);
    let mut offset = 0;
    read_all(&mut buffer, &mut offset);
    assert!(buffer.skip(stuck + 1) > 0, "and RCV.NXT goes on when they have been");
}

#[derive(Clone, Debug)]
enum Step {
    Give(u64, u64),
    Skip(u64),
    Read,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0u64..400, 1u64..40).prop_map(|(at, len)| Step::Give(at, len)),
        1 => (0u64..400).prop_map(Step::Skip),
        1 => Just(Step::Read),
    ];
    prop::collection::vec(step, 1..80)
}

proptest! {
    /// Against a model that knows of each byte whether it arrived in time.
    #[test]
    fn every_byte_is_read_once_or_in_a_hole(steps in steps()) {
        let mut buffer = Holed::new(p(0));
        let mut there = [false; 512];
        let (mut next, mut offset) = (0usize, 0u64);
        let mut got = Vec::new();
        for step in steps.into_iter().chain([Step::Skip(450), Step::Read]) {
            match step {
                Step::Give(at, len) => {
                    give(&mut buffer, at, at + len);
                    let fresh = next.max(at as usize)..(at + len) as usize;
                    there.get_mut(fresh).unwrap_or(&mut []).fill(true);
                }
                Step::Skip(upto) => {
                    let missing = (next..upto as usize).filter(|&i| !there[i]).count();
                    prop_assert_eq!(buffer.skip(p(upto)), missing as u64);
                    next = next.max(upto as usize);
                }
                Step::Read => got.extend(read_all(&mut buffer, &mut offset)),
            }
            while there[next] {
                next += 1;
            }
            prop_assert_eq!(buffer.next(), p(next as u64));
            prop_assert!(buffer.read_pos() <= buffer.next());
        }
        prop_assert_eq!(offset, next as u64);
        for (kind, from, to) in got {
            for i in from..to {
                prop_assert_eq!(there[i as usize], kind == 'b', "byte {}", i);
            }
        }
    }
}
