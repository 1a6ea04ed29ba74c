//! `fq` by hand.

use std::vec::Vec;

use super::super::test_bench::Bench;
use super::*;

/// What comes in a burst leaves at the flow's rate, evenly; the others do not wait for it.
#[test]
fn each_flow_is_paced() {
    // 1500 bytes at 12 Mbit/s are a millisecond.
    let mut bench = Bench::new("fq(maxrate=12Mbit/s)");
    let start = bench.now;
    (0..5).for_each(|_| {
        let _ = bench.arrive(1, 1500, Ecn::NotEct);
    });
    (0..2).for_each(|_| {
        let _ = bench.arrive(2, 1500, Ecn::NotEct);
    });
    while !bench.queue.is_empty() {
        while bench.leave().is_some() {}
        if let Some(at) = bench.queue.ready_at() {
            bench.now = at;
        }
    }
    let times: Vec<(u64, u64)> =
        bench.sent.iter().map(|(at, item)| (item.packet.0, at.since(start).as_micros())).collect();
    let expected = [(1, 0), (2, 0), (1, 1000), (2, 1000), (1, 2000), (1, 3000), (1, 4000)];
    assert_eq!(times, expected);
    // A flow that has sent all has to keep its distance nevertheless.
    bench.arrive(1, 1500, Ecn::NotEct);
    assert!(bench.leave().is_none());
    assert_eq!(bench.queue.ready_at(), Some(start + Duration::from_millis(5)));
}

#[test]
fn new_flows_have_a_longer_first_turn() {
    let mut bench = Bench::new("fq(quantum=1500B, initial-quantum=3000B)");
    for _ in 0..5 {
        bench.arrive(1, 1500, Ecn::NotEct);
        bench.arrive(2, 1500, Ecn::NotEct);
    }
    assert_eq!(bench.flows(7), [1, 1, 2, 2, 1, 2, 1]);
}

#[test]
fn a_flow_may_not_fill_the_queue_alone() {
    let mut bench = Bench::new("fq(flow-limit=3)");
    let fates: Vec<bool> =
        (0..5).map(|_| bench.arrive(1, 100, Ecn::NotEct) == Admission::Queued).collect();
    assert_eq!(fates, [true, true, true, false, false]);
    assert_eq!(bench.arrive(2, 100, Ecn::NotEct), Admission::Queued);
}

/// Flows are remembered for a while, and no more than a bounded number of them.
#[test]
fn idle_flows_are_forgotten() {
    let mut fq: Fq<u64> = Fq::new(FqConfig::default()).unwrap();
    let mut now = Instant::from_secs(1);
    for id in 0..70_000u64 {
        now += Duration::from_nanos(100);
        let item = Item::new(id, 100, Ecn::NotEct).of_flow(super::super::Flow::numbered(id, 0, 0));
        fq.enqueue(now, item, &mut || 0, &mut |_| panic!());
        assert!(fq.dequeue(now, &mut || 0, &mut |_| panic!()).is_some());
        assert!(fq.dequeue(now, &mut || 0, &mut |_| panic!()).is_none());
    }
    assert!(fq.flows.len() <= MOST_IDLE + 2, "{}", fq.flows.len());
    now += Duration::from_secs(1);
    for _ in 0..40_000 {
        fq.forget(now);
    }
    assert!(fq.flows.is_empty() && fq.idle.is_empty());
}
