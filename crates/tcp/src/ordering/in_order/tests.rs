//! Segments in any order, overlapping in any way, give one stream; the bounds hold.

use super::*;
use crate::ordering::received::MAX_GAPS;
use proptest::prelude::*;
use std::vec::Vec;
use transom_wire::{SackBlocks, Seq};

fn p(n: u64) -> Pos {
    Pos::FIRST_DATA + n
}

fn stream(from: u64, to: u64) -> Vec<u8> {
    (from..to).map(|i| (i * 7 + i / 256) as u8).collect()
}

fn blocks(buffer: &InOrder) -> Vec<(u32, u32)> {
    let mut blocks = SackBlocks::default();
    let space = crate::pos::SeqSpace::new(Seq::new(u32::MAX)); // first data byte is number 0
    buffer.received.sack_blocks(&mut blocks, 4, &|pos| space.to_wire(pos));
    blocks.iter().map(|b| (b.left.get(), b.right.get())).collect()
}

fn give(buffer: &mut InOrder, from: u64, to: u64) -> Accepted {
    buffer.accept(p(from), Payload::borrowed(&stream(from, to)), 1 << 20)
}

#[test]
fn the_most_recent_block_is_reported_first() {
    // RFC 2018 section 8, case 2: segments 1, 3, 5 … lost; here ranges of 500 bytes.
    let mut buffer = InOrder::new(p(0));
    give(&mut buffer, 500, 1000);
    assert_eq!(blocks(&buffer), [(500, 1000)]);
    give(&mut buffer, 1500, 2000);
    assert_eq!(blocks(&buffer), [(1500, 2000), (500, 1000)]);
    give(&mut buffer, 2500, 3000);
    assert_eq!(blocks(&buffer), [(2500, 3000), (1500, 2000), (500, 1000)]);
    // The hole at 1000 closes two ranges into one, which is now the most recent.
    give(&mut buffer, 1000, 1500);
    assert_eq!(blocks(&buffer), [(500, 2000), (2500, 3000)]);
    give(&mut buffer, 0, 500);
    assert_eq!(blocks(&buffer), [(2500, 3000)]);
    assert_eq!(buffer.readable(), 2000);
}

#[test]
fn duplicates_are_named_for_dsack() {
    let mut buffer = InOrder::new(p(0));
    give(&mut buffer, 0, 100);
    assert_eq!(give(&mut buffer, 0, 100).duplicate, Some((p(0), p(100))));
    assert_eq!(give(&mut buffer, 50, 150).duplicate, Some((p(50), p(100))));
    give(&mut buffer, 300, 400);
    assert_eq!(give(&mut buffer, 300, 400).duplicate, Some((p(300), p(400))));
    assert_eq!(give(&mut buffer, 350, 420).duplicate, Some((p(350), p(400))));
}

#[test]
fn the_bytes_that_came_first_stay() {
    let mut buffer = InOrder::new(p(0));
    buffer.accept(p(10), Payload::borrowed(&[1; 10]), 1000);
    let accepted = buffer.accept(p(0), Payload::borrowed(&[2; 30]), 1000);
    assert_eq!(accepted.new_bytes, 20);
    let mut out = [0; 40];
    assert_eq!(buffer.read(&mut out), 30);
    assert_eq!(out[..30], [[2; 10], [1; 10], [2; 10]].concat());
}

#[test]
fn one_byte_out_of_order_segments_are_bounded() {
    let mut buffer = InOrder::new(p(0));
    let limit = 64 * 1024;
    let mut refused = 0;
    for i in 0..30_000 {
        refused += u32::from(buffer.accept(p(1 + 2 * i), Payload::borrowed(&[0]), limit).refused);
    }
    assert!(refused > 20_000);
    assert!(buffer.received.early.len() <= MAX_GAPS);
    assert!(buffer.memory() < 4 * limit, "{} bytes", buffer.memory());
    // The next data in order is still taken.
    assert_eq!(buffer.accept(p(0), Payload::borrowed(&[0]), limit).new_bytes, 1);
}

/// Gives a packet whose payload begins at `start` of its buffer.
fn give_buffer(
    buffer: &mut InOrder,
    at: Pos,
    packet: PacketBuf,
    start: usize,
) -> Option<PacketBuf> {
    let payload = Payload::on_offer(&packet[start..], packet.len());
    buffer.accept(at, payload, 1 << 20);
    buffer.supply(packet, start)
}

#[test]
fn well_filled_buffers_are_kept_and_not_copied() {
    let packet = PacketBuf::from([&[0; 40], &stream(0, 960)[..]].concat());
    let address = packet[40..].as_ptr();
    let mut buffer = InOrder::new(p(0));
    assert!(give_buffer(&mut buffer, p(0), packet, 40).is_none());
    assert_eq!(buffer.front().as_ptr(), address);
    let mut out = [0; 960];
    assert!(buffer.reclaim().is_none(), "not read yet");
    assert_eq!(buffer.read(&mut out), 960);
    assert_eq!(out[..], stream(0, 960));
    assert_eq!(buffer.reclaim().unwrap().len(), 1000);
}

#[test]
fn a_buffer_is_kept_for_the_part_that_is_new() {
    let mut buffer = InOrder::new(p(0));
    give(&mut buffer, 0, 100);
    // Overlaps what is there at its front, and a piece beyond a gap at its end.
    give(&mut buffer, 3900, 3950);
    let packet = PacketBuf::from([&[9; 40], &stream(50, 4000)[..]].concat());
    assert!(give_buffer(&mut buffer, p(50), packet, 40).is_none());
    let mut out = [0; 4000];
    assert_eq!(buffer.read(&mut out), 4000);
    assert_eq!(out[..], stream(0, 4000));
    // Nothing new, or nothing wanted: the buffer comes back at once.
    assert!(give_buffer(&mut buffer, p(0), stream(0, 500).into(), 0).is_some());
}

#[test]
fn data_that_lies_where_the_reader_wants_it_is_not_taken() {
    let claimed = core::cell::Cell::new(0);
    let mut buffer = InOrder::new(p(0));
    let accepted = buffer.accept(p(0), Payload::in_place(&[1; 10], &claimed), 1000);
    assert_eq!((accepted.new_bytes, claimed.take()), (10, 10));
    assert_eq!((buffer.next(), buffer.readable(), buffer.read_pos()), (p(10), 0, p(10)));
    // Not the next data, a part of which was there before, or while something waits to be read: copied.
    buffer.accept(p(20), Payload::in_place(&[3; 10], &claimed), 1000);
    buffer.accept(p(5), Payload::in_place(&[2; 15], &claimed), 1000);
    assert_eq!(claimed.take(), 0);
    buffer.accept(p(30), Payload::in_place(&[4; 10], &claimed), 1000);
    assert_eq!(claimed.take(), 0);
    let mut out = [0; 40];
    assert_eq!(buffer.read(&mut out), 30);
    assert_eq!(out[..30], [[2; 10], [3; 10], [4; 10]].concat());
}

proptest! {
    #[test]
    fn any_arrival_order_gives_the_stream(
        cuts in prop::collection::vec((0u64..3000, 1u64..400, any::<bool>()), 1..120),
        reads in prop::collection::vec(0usize..700, 1..20),
    ) {
        let mut buffer = InOrder::new(p(0));
        let mut got = Vec::new();
        let mut out = [0u8; 700];
        let mut held = std::collections::BTreeSet::new();
        for (i, (from, len, shared)) in cuts.iter().enumerate() {
            let to = from + len;
            let bytes = stream(*from, to);
            let before: u64 = held.len() as u64;
            held.extend(*from..to);
            let packet = PacketBuf::from(&bytes[..]);
            let payload = if *shared {
                Payload::on_offer(&packet, packet.len())
            } else {
                Payload::borrowed(&bytes)
            };
            let accepted = buffer.accept(p(*from), payload, 1 << 20);
            buffer.supply(packet, 0);
            prop_assert!(!accepted.refused);
            prop_assert_eq!(accepted.new_bytes, held.len() as u64 - before);
            let n = reads[i % reads.len()];
            let peeked = buffer.peek(&mut out[..n]);
            let copy = out[..peeked].to_vec();
            let read = buffer.read(&mut out[..n]);
            prop_assert_eq!(&copy[..], &out[..read]);
            got.extend_from_slice(&out[..read]);
        }
        loop {
            let n = buffer.read(&mut out);
            if n == 0 { break; }
            got.extend_from_slice(&out[..n]);
        }
        let contiguous = (0..).take_while(|b| held.contains(b)).count() as u64;
        prop_assert_eq!(buffer.next(), p(contiguous));
        prop_assert_eq!(got, stream(0, contiguous));
        let mut early = Vec::new();
        buffer.received.early.iter().for_each(|r| early.extend(r.start.stream_offset()..r.end.stream_offset()));
        prop_assert_eq!(early, held.range(contiguous..).copied().collect::<Vec<_>>());
    }
}
