//! Every byte comes once, at its place, as soon as it has arrived; the peer sees what it would see of a stream.

use super::*;
use crate::ordering::in_order::InOrder;
use crate::pos::SeqSpace;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::vec::Vec;
use transom_wire::{SackBlocks, Seq};

fn p(n: u64) -> Pos {
    Pos::FIRST_DATA + n
}

fn stream(from: u64, to: u64) -> Vec<u8> {
    (from..to).map(|i| (i * 7 + i / 256) as u8).collect()
}

fn give(buffer: &mut dyn Ordering, from: u64, to: u64) -> Accepted {
    buffer.accept(p(from), Payload::borrowed(&stream(from, to)), 1 << 20)
}

/// What one read gives: where, and how much, after the contents have been checked.
fn read(buffer: &mut Unordered) -> (u64, u64) {
    let mut out = [0; 10_000];
    let at = buffer.front_pos().stream_offset();
    let n = buffer.read(&mut out) as u64;
    assert_eq!(out[..n as usize], stream(at, at + n));
    (at, n)
}

fn blocks(buffer: &dyn Ordering) -> Vec<(u32, u32)> {
    let mut blocks = SackBlocks::default();
    let space = SeqSpace::new(Seq::new(u32::MAX)); // first data byte is number 0
    buffer.received().sack_blocks(&mut blocks, 4, &|pos| space.to_wire(pos));
    blocks.iter().map(|b| (b.left.get(), b.right.get())).collect()
}

#[test]
fn data_beyond_a_hole_is_read_at_once_and_only_once() {
    let mut buffer = Unordered::new(p(0));
    give(&mut buffer, 0, 1000);
    assert_eq!(give(&mut buffer, 2000, 3000).new_bytes, 1000);
    assert_eq!(buffer.readable(), 2000);
    assert_eq!(read(&mut buffer), (0, 1000));
    assert_eq!(read(&mut buffer), (2000, 1000));
    assert_eq!((buffer.next(), buffer.readable()), (p(1000), 0));
    // It stays reported, and does not come again.
    assert_eq!(blocks(&buffer), [(2000, 3000)]);
    let again = give(&mut buffer, 1900, 3000);
    assert_eq!((again.new_bytes, again.duplicate), (100, Some((p(2000), p(3000)))));
    assert_eq!(read(&mut buffer), (1900, 100));
    assert_eq!(give(&mut buffer, 1000, 2500).new_bytes, 900);
    assert_eq!(read(&mut buffer), (1000, 900));
    assert_eq!(buffer.next(), p(3000));
    assert_eq!(give(&mut buffer, 500, 600).duplicate, Some((p(500), p(600))));
    assert_eq!(buffer.memory() - buffer.store.memory() - buffer.received.memory(), {
        buffer.pieces.capacity() * size_of::<(Pos, Piece)>()
    });
}

#[test]
fn reading_opens_the_window_and_receiving_leaves_it() {
    let mut buffer = Unordered::new(p(0));
    let limit = 10_000;
    let edge = |buffer: &Unordered| (buffer.window_base() + limit).stream_offset();
    assert_eq!(edge(&buffer), 10_000);
    give(&mut buffer, 1000, 5000);
    assert_eq!(edge(&buffer), 10_000, "what is held takes its own room");
    read(&mut buffer);
    // 1000 may still come before it, 9000 behind it: 10,000 bytes in all.
    assert_eq!(edge(&buffer), 14_000);
    give(&mut buffer, 0, 1000);
    assert_eq!((buffer.next(), edge(&buffer)), (p(5000), 14_000));
    read(&mut buffer);
    assert_eq!(edge(&buffer), 15_000);
    buffer.consume_fin();
    assert_eq!(edge(&buffer), 15_000);
}

#[test]
fn abandoned_data_becomes_a_hole() {
    let mut buffer = Unordered::new(p(0));
    give(&mut buffer, 100, 200);
    give(&mut buffer, 300, 400);
    let base = buffer.window_base();
    assert_eq!(buffer.skip(p(250)), 150);
    assert_eq!(buffer.next(), p(250));
    assert_eq!(buffer.window_base(), base + 150);
    assert_eq!(buffer.skip(p(250)), 0);
    assert_eq!(buffer.skip(p(260)), 10);
    assert_eq!(buffer.skip(p(300)), 40);
    assert_eq!(buffer.next(), p(400), "it goes on with what is held");
    assert_eq!(buffer.take_hole(), Some(p(0)..p(100)));
    assert_eq!(buffer.take_hole(), Some(p(200)..p(300)));
    assert_eq!((buffer.hole(), buffer.take_hole()), (None, None));
    // It comes after all: too late.
    assert_eq!(give(&mut buffer, 0, 100).new_bytes, 0);
    assert_eq!((read(&mut buffer), read(&mut buffer)), ((100, 100), (300, 100)));
}

#[test]
fn a_well_filled_buffer_is_kept_and_comes_back() {
    let packet = PacketBuf::from([&[0; 40], &stream(500, 1460)[..]].concat());
    let address = packet[40..].as_ptr();
    let mut buffer = Unordered::new(p(0));
    let payload = Payload::on_offer(&packet[40..], packet.len());
    buffer.accept(p(500), payload, 1 << 20);
    assert!(buffer.supply(packet, 40).is_none());
    assert_eq!(buffer.front().as_ptr(), address);
    assert!(buffer.reclaim().is_none(), "not read yet");
    assert_eq!(read(&mut buffer), (500, 960));
    assert_eq!(buffer.reclaim().unwrap().len(), 1000);
}

#[test]
fn crumbs_are_bounded_and_reading_makes_room() {
    let mut buffer = Unordered::new(p(0));
    let limit = 64 * 1024;
    let crumb = |buffer: &mut Unordered, at| {
        u32::from(buffer.accept(p(at), Payload::borrowed(&[0]), limit).refused)
    };
    let refused: u32 = (0..30_000).map(|i| crumb(&mut buffer, 1 + 2 * i)).sum();
    assert!(refused > 20_000);
    assert!(buffer.memory() < 4 * limit, "{} bytes", buffer.memory());
    // Even the next byte waits for the reader, who has something to read.
    assert_eq!(crumb(&mut buffer, 0), 1);
    let mut out = [0; 1];
    while buffer.read(&mut out) > 0 {}
    assert_eq!(crumb(&mut buffer, 0), 0);
}

proptest! {
    #[test]
    fn any_arrival_order_gives_each_byte_once_and_looks_like_a_stream_to_the_peer(
        cuts in prop::collection::vec((0u64..3000, 1u64..400, any::<bool>()), 1..120),
        reads in prop::collection::vec(0usize..700, 1..20),
        skips in prop::collection::vec(0u64..3400, 0..3),
    ) {
        let mut buffer = Unordered::new(p(0));
        let mut in_order = InOrder::new(p(0));
        let mut got = BTreeMap::new();
        let mut held = BTreeSet::new();
        let mut edge = buffer.window_base();
        let mut out = [0u8; 700];
        let mut holes = BTreeSet::new();
        let take = |buffer: &mut Unordered, got: &mut BTreeMap<u64, u8>, n: usize, out: &mut [u8]| {
            let at = buffer.front_pos().stream_offset();
            let n = buffer.read(&mut out[..n]);
            for (offset, byte) in (at..).zip(&out[..n]) {
                assert!(got.insert(offset, *byte).is_none(), "{offset} came twice");
            }
            n
        };
        for (i, (from, len, shared)) in cuts.iter().enumerate() {
            let to = from + len;
            let bytes = stream(*from, to);
            let packet = PacketBuf::from(&bytes[..]);
            let payload = if *shared {
                Payload::on_offer(&packet, packet.len())
            } else {
                Payload::borrowed(&bytes)
            };
            let accepted = buffer.accept(p(*from), payload, 1 << 20);
            buffer.supply(packet, 0);
            let as_stream = in_order.accept(p(*from), Payload::borrowed(&bytes), 1 << 20);
            if holes.is_empty() {
                prop_assert_eq!(accepted, as_stream);
                prop_assert_eq!(buffer.next(), in_order.next());
                prop_assert_eq!(blocks(&buffer), blocks(&in_order));
            }
            held.extend((*from..to).filter(|at| !holes.contains(at)));
            take(&mut buffer, &mut got, reads[i % reads.len()], &mut out);
            if let Some(upto) = skips.get(i) {
                buffer.skip(p(*upto));
                while let Some(hole) = buffer.take_hole() {
                    for at in hole.start.stream_offset()..hole.end.stream_offset() {
                        prop_assert!(!held.contains(&at) && holes.insert(at));
                    }
                }
            }
            prop_assert!(buffer.window_base() >= edge, "the edge moved left");
            edge = buffer.window_base();
        }
        while take(&mut buffer, &mut got, 700, &mut out) > 0 {}
        let bytes: Vec<u8> = got.values().copied().collect();
        let places: Vec<u64> = got.keys().copied().collect();
        prop_assert_eq!(&places, &held.iter().copied().collect::<Vec<_>>());
        prop_assert!(places.iter().zip(bytes).all(|(&at, byte)| stream(at, at + 1) == [byte]));
        let known = (0..).take_while(|at| held.contains(at) || holes.contains(at)).count() as u64;
        prop_assert_eq!(buffer.next(), p(known));
        prop_assert_eq!(buffer.window_base(), p(held.len() as u64 + holes.len() as u64));
    }
}
