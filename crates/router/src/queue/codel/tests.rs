//! CoDel by hand. Times are milliseconds from the origin; defaults: target 5 ms, interval 100 ms.

use std::vec::Vec;

use transom_wire::ip::Ecn;

use super::*;

/// A queue and what became of its packets.
struct Bench {
    queue: CoDel<u32>,
    sent: Vec<(u64, u32)>,
    dropped: Vec<(u64, u32)>,
    marked: Vec<(u64, u32)>,
}

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

impl Bench {
    fn new(config: CoDelConfig) -> Self {
        let queue = CoDel::new(CoDelConfig { limit: Limit::Unlimited, ..config }).unwrap();
        Bench { queue, sent: Vec::new(), dropped: Vec::new(), marked: Vec::new() }
    }

    fn arrive(&mut self, millis: u64, packets: core::ops::Range<u32>, ecn: Ecn) {
        for packet in packets {
            let item = Item::new(packet, 1500, ecn);
            self.queue.enqueue(at(millis), item, &mut || 0, &mut |event| panic!("{event:?}"));
        }
    }

    /// Sends one packet every millisecond of a range.
    fn send(&mut self, millis: core::ops::RangeInclusive<u64>) {
        for millis in millis {
            let (dropped, marked) = (&mut self.dropped, &mut self.marked);
            let item = self.queue.dequeue(at(millis), &mut || 0, &mut |event| match event {
                Event::Dropped { cause: Cause::Delay, item, at: when } => {
                    assert_eq!(when, at(millis));
                    dropped.push((millis, item.packet));
                }
                Event::Marked { cause: Cause::Delay, item, .. } => {
                    marked.push((millis, item.packet))
                }
                other => panic!("{other:?}"),
            });
            self.sent.extend(item.map(|item| (millis, item.packet)));
        }
    }

    fn drop_times(&self) -> Vec<u64> {
        self.dropped.iter().map(|(millis, _)| *millis).collect()
    }
}

#[test]
fn the_first_drop_comes_an_interval_after_the_first_packet_above_target() {
    let mut bench = Bench::new(CoDelConfig::default());
    // One packet a millisecond leaves; the packet that leaves at 5 is the first to have waited 5 ms.
    bench.arrive(0, 0..1000, Ecn::NotEct);
    bench.send(0..=104);
    assert_eq!(bench.dropped, []);
    bench.send(105..=105);
    // The 106th packet (number 105) is dropped and the next one sent in its place.
    assert_eq!(bench.dropped, [(105, 105)]);
    assert_eq!(bench.sent.last(), Some(&(105, 106)));
    assert_eq!(bench.queue.drop_next(), Some(at(205)));
}

#[test]
fn drops_follow_the_control_law() {
    let mut bench = Bench::new(CoDelConfig::default());
    bench.arrive(0, 0..2000, Ecn::NotEct);
    bench.send(0..=450);
    // 105; + 100/√1 = 205; + 100/√2 = 275.71; + 100/√3 = 333.45; + 100/√4 = 383.45; + 100/√5 = 428.17. A drop
    // happens at the first departure not before its time.
    assert_eq!(bench.drop_times(), [105, 205, 276, 334, 384, 429]);
    // 428.168 + 100/√6 = 468.99, each root rounded down to the nanosecond.
    let expected = [100_000_000u64, 70_710_678, 57_735_026, 50_000_000, 44_721_359, 40_824_829];
    let sum: u64 = expected.iter().sum();
    assert_eq!(bench.queue.drop_next(), Some(Instant::from_nanos(105_000_000 + sum)));
}

#[test]
fn several_drops_may_be_due_at_once() {
    let mut bench = Bench::new(CoDelConfig::default());
    bench.arrive(0, 0..2000, Ecn::NotEct);
    bench.send(0..=105);
    // The link stops until 400: the drops of 205, 275.7, 333.5 and 383.5 are made up for at once.
    bench.send(400..=400);
    assert_eq!(bench.dropped[1..], [(400, 107), (400, 108), (400, 109), (400, 110)]);
    assert_eq!(bench.sent.last(), Some(&(400, 111)));
}

#[test]
fn one_packet_below_target_ends_it() {
    let mut bench = Bench::new(CoDelConfig::default());
    bench.arrive(0, 0..106, Ecn::NotEct);
    bench.arrive(100, 106..108, Ecn::NotEct);
    // 107 would have been next to leave at 105, having waited for 5 ms; it leaves at 106.
    bench.arrive(103, 108..200, Ecn::NotEct);
    bench.send(0..=105);
    assert_eq!((bench.drop_times(), bench.sent.last()), (Vec::from([105]), Some(&(105, 106))));
    assert!(bench.queue.drop_next().is_some());
    bench.send(106..=106);
    assert!(bench.queue.drop_next().is_some());
    // 108 leaves at 107 after 4 ms.
    bench.send(107..=107);
    assert_eq!((bench.queue.drop_next(), bench.drop_times()), (None, Vec::from([105])));
}

/// Fills the queue at `from`, lets it stand until `until` and then empties it.
fn congest(bench: &mut Bench, from: u64, until: u64) {
    bench.arrive(from, 0..1000, Ecn::NotEct);
    bench.send(from..=until);
    while !bench.queue.is_empty() {
        // A single packet left is below target by definition.
        bench.send(until..=until);
    }
    assert_eq!(bench.queue.drop_next(), None);
}

#[test]
fn a_queue_that_stands_again_soon_starts_with_the_rate_it_had() {
    let mut bench = Bench::new(CoDelConfig::default());
    congest(&mut bench, 0, 400);
    // Five drops (105, 205, 276, 334, 384): count 5, begun with 1.
    assert_eq!(bench.drop_times(), [105, 205, 276, 334, 384]);
    bench.dropped.clear();
    congest(&mut bench, 1000, 1200);
    // Above target from 1005, first drop at 1105; 5 − 1 = 4: then after 100/√4 and + 100/√5 = 44.72.
    assert_eq!(bench.drop_times(), [1105, 1155, 1200]);
    bench.dropped.clear();
    // count 6, begun with 4: 2. Then 100/√2 = 70.71, + 100/√3 = 57.7.
    congest(&mut bench, 2000, 2240);
    assert_eq!(bench.drop_times(), [2105, 2176, 2234]);
    bench.dropped.clear();
    // count 4, begun with 2, but more than 16 intervals after the last drop was due (2283.9): from the beginning.
    congest(&mut bench, 3780, 4100);
    assert_eq!(bench.drop_times(), [3885, 3985, 4056]);
}

#[test]
fn a_single_drop_is_no_rate_to_begin_with() {
    let mut bench = Bench::new(CoDelConfig::default());
    congest(&mut bench, 0, 150);
    congest(&mut bench, 300, 520);
    // count 1, begun with 1: 0 is not above 1. 405 + 100/√1 = 505.
    assert_eq!(bench.drop_times(), [105, 405, 505]);
}

#[test]
fn nothing_is_dropped_for_the_last_mtu() {
    // Each packet waits for 11 ms and leaves 1500 bytes behind: not more than an MTU.
    let stand = |mtu, rounds| {
        let mut bench = Bench::new(CoDelConfig { mtu, ..CoDelConfig::default() });
        bench.arrive(0, 0..1, Ecn::NotEct);
        for round in 1..=rounds {
            bench.arrive(round * 10 - 1, 0..1, Ecn::NotEct);
            bench.send(round * 10..=round * 10);
        }
        (bench.drop_times(), bench.sent.len())
    };
    assert_eq!(stand(1500, 40), (Vec::new(), 40));
    // With an MTU one byte smaller they stand: since 10, hence until 110. The next one leaves in place of the one
    // dropped, the last of the queue.
    assert_eq!(stand(1499, 11), (Vec::from([110]), 11));
}

#[test]
fn capable_packets_are_marked_on_the_same_schedule() {
    let mut bench = Bench::new(CoDelConfig { ecn: true, ..CoDelConfig::default() });
    bench.arrive(0, 0..2000, Ecn::Ect0);
    bench.send(0..=450);
    let times: Vec<u64> = bench.marked.iter().map(|(millis, _)| *millis).collect();
    assert_eq!(times, [105, 205, 276, 334, 384, 429]);
    assert_eq!((bench.dropped.len(), bench.sent.len()), (0, 451));
    // Others are dropped.
    let mut bench = Bench::new(CoDelConfig { ecn: true, ..CoDelConfig::default() });
    bench.arrive(0, 0..2000, Ecn::NotEct);
    bench.send(0..=300);
    assert_eq!((bench.drop_times(), bench.marked.len()), (Vec::from([105, 205, 276]), 0));
}

#[test]
fn of_several_marks_due_each_departure_carries_one() {
    let mut bench = Bench::new(CoDelConfig { ecn: true, ..CoDelConfig::default() });
    bench.arrive(0, 0..2000, Ecn::Ect0);
    bench.send(0..=105);
    // The link stops until 400: the marks of 205, 275.7, 333.5 and 383.5 go to the next four packets.
    bench.send(400..=410);
    let expected = [(105, 105), (400, 106), (401, 107), (402, 108), (403, 109)];
    assert_eq!((bench.marked.as_slice(), bench.sent.len()), (expected.as_slice(), 117));
}

#[test]
fn the_control_law_takes_any_count() {
    let interval = Duration::from_millis(100);
    let after = |count| control_law(Instant::ZERO, interval, count).as_nanos();
    assert_eq!((after(1), after(4), after(10_000)), (100_000_000, 50_000_000, 1_000_000));
    assert_eq!((after(0), after(u64::MAX)), (100_000_000, 0));
    assert_eq!(control_law(Instant::ZERO, Duration::MAX, 1), Instant::FAR_FUTURE);
}
