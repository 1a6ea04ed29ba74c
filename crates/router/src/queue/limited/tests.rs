//! Drop-tail and drop-head.

use std::vec::Vec;

use transom_wire::ip::Ecn;

use super::*;

/// Offers packets of these lengths to a queue with this limit. Returns which were admitted, and the length afterwards.
fn offer_to_tail(limit: Limit, lens: &[usize]) -> (Vec<bool>, Length) {
    let mut queue = Limited::new(limit, Victim::Arriving);
    let mut refused = Vec::new();
    let admitted = lens
        .iter()
        .enumerate()
        .map(|(id, len)| {
            let item = Item::new(id, *len, Ecn::NotEct);
            let outcome = queue.enqueue(Instant::ZERO, item, &mut || 0, &mut |event| match event {
                Event::Dropped { item, cause: Cause::Tail, .. } => refused.push(item.packet),
                other => panic!("{other:?}"),
            });
            outcome == Admission::Queued
        })
        .collect::<Vec<_>>();
    for (id, admitted) in admitted.iter().enumerate() {
        assert_ne!(refused.contains(&id), *admitted);
    }
    (admitted, queue.length())
}

#[test]
fn a_limit_in_packets_ignores_their_size() {
    let (admitted, length) = offer_to_tail(Limit::Packets(2), &[9000, 1, 1]);
    assert_eq!(admitted, [true, true, false]);
    assert_eq!(length, Length { packets: 2, bytes: 9001 });
}

#[test]
fn a_limit_in_bytes_is_met_exactly_and_a_smaller_packet_may_still_fit() {
    let (admitted, length) = offer_to_tail(Limit::Bytes(3000), &[1500, 1501, 1499, 2, 1, 0, 1]);
    assert_eq!(admitted, [true, false, true, false, true, true, false]);
    assert_eq!(length, Length { packets: 4, bytes: 3000 });
}

#[test]
fn limits_of_nothing_and_none() {
    assert_eq!(offer_to_tail(Limit::Packets(0), &[1]).0, [false]);
    assert_eq!(offer_to_tail(Limit::Bytes(0), &[1, 0]).0, [false, true]);
    assert_eq!(offer_to_tail(Limit::Bytes(u64::MAX), &[usize::MAX, 1]).0, [true, false]);
    assert!(offer_to_tail(Limit::Unlimited, &[1500; 5000]).0.iter().all(|admitted| *admitted));
}

#[test]
fn packets_leave_in_order_with_the_time_they_came() {
    let mut queue = Limited::new(Limit::Unlimited, Victim::Arriving);
    for id in 1..=3 {
        let item = Item::new(id, 100, Ecn::Ect0);
        queue.enqueue(Instant::from_millis(id), item, &mut || 0, &mut |_| panic!());
    }
    let now = Instant::from_millis(10);
    for id in 1..=3 {
        let item = queue.dequeue(now, &mut || 0, &mut |_| panic!()).unwrap();
        assert_eq!((item.packet, item.waited(now).as_millis()), (id, 10 - id));
        assert_eq!((item.ecn, item.marked), (Ecn::Ect0, false));
    }
    assert!(queue.is_empty() && queue.dequeue(now, &mut || 0, &mut |_| panic!()).is_none());
}

/// Offers packets numbered from 0 of these lengths; gives what was dropped, in order, and what is left.
fn offer_to_head(limit: Limit, lens: &[usize]) -> (Vec<(usize, Cause)>, Vec<usize>) {
    let mut queue = Limited::new(limit, Victim::Oldest);
    let mut dropped = Vec::new();
    for (id, len) in lens.iter().enumerate() {
        let item = Item::new(id, *len, Ecn::NotEct);
        queue.enqueue(Instant::ZERO, item, &mut || 0, &mut |event| match event {
            Event::Dropped { item, cause, .. } => dropped.push((item.packet, cause)),
            other => panic!("{other:?}"),
        });
    }
    let next = || queue.dequeue(Instant::ZERO, &mut || 0, &mut |_| panic!());
    let left = core::iter::from_fn(next).map(|item| item.packet).collect();
    (dropped, left)
}

#[test]
fn the_oldest_makes_room() {
    let (dropped, left) = offer_to_head(Limit::Packets(2), &[1, 1, 1, 1]);
    assert_eq!(dropped, [(0, Cause::Head), (1, Cause::Head)]);
    assert_eq!(left, [2, 3]);
}

#[test]
fn a_large_packet_pushes_out_as_many_as_it_needs() {
    let (dropped, left) = offer_to_head(Limit::Bytes(3000), &[1000, 1000, 1000, 1500]);
    assert_eq!(dropped, [(0, Cause::Head), (1, Cause::Head)]);
    assert_eq!(left, [2, 3]);
}

#[test]
fn a_packet_larger_than_the_queue_pushes_out_nothing() {
    let (dropped, left) = offer_to_head(Limit::Bytes(3000), &[1000, 3001]);
    assert_eq!((dropped, left), (Vec::from([(1, Cause::Tail)]), Vec::from([0])));
    assert_eq!(offer_to_head(Limit::Packets(0), &[1]).0, [(0, Cause::Tail)]);
}
