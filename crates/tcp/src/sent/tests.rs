//! The scoreboard against a byte-by-byte model, and the cases worked by hand.

use super::*;
use proptest::prelude::*;
use std::vec::Vec;

pub(super) fn p(n: u64) -> Pos {
    Pos::FIRST_DATA + n
}

pub(super) fn at(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

pub(super) fn ten_segments() -> SentList {
    let mut sent = SentList::new(p(0), at(0));
    for i in 1..=10 {
        sent.push(p(i * 100), at(i));
    }
    sent
}

#[test]
fn pipe_follows_rfc_6675() {
    let mut sent = ten_segments();
    let mut d = Delivered::default();
    assert_eq!(sent.in_flight(), 1000);
    // Segments 3 to 6 arrive, 0 to 2 are missing.
    sent.sack(p(300)..p(700), 100, at(20), &mut d);
    assert_eq!(d.sacked, 400);
    assert_eq!(sent.in_flight(), 600);
    // More than two segments' worth of bytes lie above everything below 300.
    assert_eq!(sent.is_lost_boundary(3, 100), Some(p(300)));
    assert_eq!(sent.mark_lost_below(p(300)), 300);
    assert_eq!(sent.in_flight(), 300);
    assert_eq!(sent.next_lost(), Some(p(0)..p(100)));
    assert_eq!(sent.retransmit(p(0), 250, 100, at(21)), p(0)..p(200), "whole segments only");
    assert_eq!(sent.in_flight(), 500);
    assert_eq!(sent.next_lost(), Some(p(200)..p(300)));
    sent.check().unwrap();
    // The cumulative acknowledgement takes all of it.
    let mut d = Delivered::default();
    sent.acknowledge(p(700), at(40), &mut d);
    assert_eq!((d.acked, d.acked_not_sacked), (700, 300));
    assert!(d.included_retransmission);
    assert_eq!(sent.in_flight(), 300);
    sent.check().unwrap();
}

#[test]
fn three_discontiguous_ranges_are_enough() {
    let mut sent = ten_segments();
    let mut d = Delivered::default();
    sent.sack(p(200)..p(300), 100, at(20), &mut d);
    sent.sack(p(400)..p(500), 100, at(20), &mut d);
    assert_eq!(sent.is_lost_boundary(3, 100), None, "200 bytes are not more than two segments");
    sent.sack(p(600)..p(700), 100, at(20), &mut d);
    assert_eq!(sent.is_lost_boundary(3, 100), Some(p(200)));
}

#[test]
fn only_segments_sent_once_give_a_round_trip_time() {
    let mut sent = ten_segments();
    let mut d = Delivered::default();
    sent.acknowledge(p(200), at(30), &mut d);
    assert_eq!(d.rtt, Some(Duration::from_millis(28)), "the most recently sent of the two");
    sent.mark_all_lost();
    sent.retransmit(p(200), 100, 100, at(40));
    let mut d = Delivered::default();
    sent.acknowledge(p(300), at(50), &mut d);
    assert_eq!(d.rtt, None);
}

#[test]
fn part_of_a_segment_does_not_count_as_arrived() {
    let mut sent = SentList::new(p(0), at(0));
    sent.push(p(1000), at(0)); // one super-segment of ten
    let mut d = Delivered::default();
    sent.sack(p(150)..p(449), 100, at(9), &mut d);
    assert_eq!(d.sacked, 200);
    assert_eq!(sent.sacked().iter().collect::<Vec<_>>(), [p(200)..p(400)]);
    sent.sack(p(950)..p(1000), 100, at(9), &mut d);
    assert_eq!(d.sacked, 200, "less than the last segment");
    sent.sack(p(900)..p(2000), 100, at(9), &mut d);
    assert_eq!(d.sacked, 300, "data never sent is ignored");
    sent.check().unwrap();
}

#[test]
fn records_are_not_split_without_end() {
    let mut sent = SentList::new(p(0), at(0));
    let most = MAX_RECORDS as u64;
    sent.push(p(most * 4), at(0));
    let mut d = Delivered::default();
    for i in 0..most * 2 {
        sent.sack(p(2 * i)..p(2 * i + 1), 1, at(9), &mut d);
    }
    assert_eq!(d.sacked, most / 2, "each block adds a record before it and one behind it");
    assert!(sent.list.len() <= MAX_RECORDS + 1);
    // Whole records are still taken, and so is everything.
    sent.sack(p(1)..p(2), 1, at(9), &mut d);
    assert_eq!(d.sacked, most / 2 + 1);
    sent.sack(p(0)..p(most * 4), 1, at(9), &mut d);
    sent.acknowledge(p(most * 4), at(10), &mut d);
    assert_eq!(sent.in_flight(), 0);
    sent.check().unwrap();
}

#[test]
fn a_timeout_finds_reneging() {
    let mut sent = ten_segments();
    let mut d = Delivered::default();
    sent.sack(p(500)..p(700), 100, at(20), &mut d);
    assert_eq!(sent.mark_all_lost(), 800);
    assert_eq!(sent.in_flight(), 0);
    sent.sack(p(0)..p(100), 100, at(20), &mut d);
    sent.mark_all_lost();
    assert_eq!(sent.lost_bytes(), 1000, "nothing selectively acknowledged is believed");
    assert!(sent.sacked().is_empty());
    sent.check().unwrap();
}

#[derive(Clone, Debug)]
enum Step {
    Push(u64),
    Ack(u64),
    Sack(u64, u64),
    MarkBelow(u64),
    MarkHead(u64),
    Timeout,
    Retransmit(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1u64..1500).prop_map(Step::Push),
        3 => (0u64..1200).prop_map(Step::Ack),
        4 => (0u64..3000, 1u64..1000).prop_map(|(a, b)| Step::Sack(a, b)),
        2 => (0u64..3000).prop_map(Step::MarkBelow),
        1 => (1u64..200).prop_map(Step::MarkHead),
        1 => Just(Step::Timeout),
        3 => (1u64..900).prop_map(Step::Retransmit),
    ]
}

proptest! {
    #[test]
    fn counters_always_agree_with_the_records(steps in prop::collection::vec(step(), 1..80)) {
        let mut sent = SentList::new(p(0), at(0));
        for (now, step) in (1u64..).zip(steps) {
            let now = at(now);
            let mut d = Delivered::default();
            match step {
                Step::Push(len) => sent.push(sent.end() + len, now),
                Step::Ack(len) => {
                    let upto = (sent.start() + len).min(sent.end());
                    let expected = upto.since(sent.start());
                    sent.acknowledge(upto, now, &mut d);
                    prop_assert_eq!(d.acked, expected);
                }
                Step::Sack(start, len) => {
                    let before = sent.sacked_bytes();
                    let start = sent.start() + start;
                    sent.sack(start..start + len, 100, now, &mut d);
                    prop_assert_eq!(sent.sacked_bytes(), before + d.sacked);
                }
                Step::MarkBelow(len) => {
                    let upto = sent.start() + len;
                    sent.mark_lost_below(upto);
                    for record in sent.records().filter(|r| r.end <= upto) {
                        prop_assert!(record.status.sacked || record.status.lost);
                    }
                }
                Step::MarkHead(len) => { sent.mark_head_lost(len); }
                Step::Timeout => { sent.mark_all_lost(); }
                Step::Retransmit(len) => {
                    let expected = sent.records().find(|r| {
                        r.status.lost && !r.status.retransmitted && !r.status.sacked
                    }).map(|r| r.start..r.end);
                    let next = sent.next_lost();
                    prop_assert_eq!(&next, &expected, "the hint never skips a lost record");
                    if let Some(range) = next {
                        let covered = sent.retransmit(range.start, len, 100, now);
                        prop_assert!(covered.start == range.start && covered.end > covered.start);
                        prop_assert!(covered.end.since(covered.start) <= len);
                    }
                }
            }
            prop_assert_eq!(sent.check(), Ok(()));
            for upto in [sent.end(), sent.start() + sent.outstanding() / 2] {
                let last = sent.records().rev().find(|r| !r.status.sacked && r.start < upto);
                prop_assert_eq!(sent.last_unsacked(upto), last);
                let covering = sent.records().find(|r| r.start <= upto && upto < r.end);
                prop_assert_eq!(sent.at(upto), covering);
            }
        }
    }
}

/// Each loss is told once, oldest first, with what was in flight when it left and what has been lost since; what a path MTU made lost is not.
#[test]
fn losses_are_reported_once() {
    let at = Instant::from_millis;
    let mut list = SentList::new(Pos::FIRST_DATA, at(0));
    for i in 1..=10 {
        list.push(Pos::FIRST_DATA + i * 1000, at(i));
    }
    let told = |list: &mut SentList, bytes| {
        let mut told = std::vec::Vec::new();
        list.report_lost(at(50), bytes, |lost| {
            let start = lost.range.start.stream_offset() / 1000;
            told.push((start, lost.in_flight / 1000, lost.lost / 1000));
        });
        told
    };
    let mut delivered = Delivered::default();
    list.sack(Pos::FIRST_DATA + 1000..Pos::FIRST_DATA + 2000, 1000, at(40), &mut delivered);
    let marked = list.mark_lost_below(Pos::FIRST_DATA + 4000);
    assert_eq!(marked, 3000);
    assert_eq!(told(&mut list, marked), [(0, 1, 1), (2, 3, 2), (3, 4, 3)]);
    assert_eq!(told(&mut list, 0), []);
    // The first leaves again, with the six that are not known to be gone; three have been lost by then.
    list.retransmit(Pos::FIRST_DATA, 1000, 1000, at(60));
    list.forget_lost();
    let marked = list.mark_all_lost();
    assert_eq!(marked, 6000);
    let last = told(&mut list, marked);
    assert_eq!((last[0], last[5]), ((4, 5, 4), (9, 10, 9)));
}
