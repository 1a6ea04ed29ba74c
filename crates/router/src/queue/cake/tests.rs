//! CAKE by hand.

use std::vec::Vec;

use transom_wire::ip::Ecn;

use super::super::test_bench::Bench;
use super::*;
use crate::probability::Probability;

/// The shaper sends at its rate however fast the link asks, and counts what the link adds.
#[test]
fn the_shaper_keeps_its_rate() {
    let sent = |text: &str| {
        let mut bench = Bench::new(text);
        bench.run(1000, 10, &[(1, 100, Ecn::NotEct)]);
        bench.count(1)
    };
    // 1500 bytes at 12 Mbit/s are a millisecond.
    assert!((999..=1001).contains(&sent("cake(bandwidth=12Mbit/s)")));
    // With 300 bytes more they are 1.2 ms.
    let with_overhead = sent("cake(bandwidth=12Mbit/s, overhead=300)");
    assert!((833..=835).contains(&with_overhead), "{with_overhead}");
    let least = sent("cake(bandwidth=12Mbit/s, mpu=3000)");
    assert!((500..=501).contains(&least), "{least}");
}

#[test]
fn a_shaped_queue_says_when_it_is_ready() {
    let mut bench = Bench::new("cake(bandwidth=12Mbit/s)");
    assert_eq!(bench.queue.ready_at(), None);
    (0..2).for_each(|_| {
        let _ = bench.arrive(1, 1500, Ecn::NotEct);
    });
    let start = bench.now;
    assert!(bench.leave().is_some() && bench.leave().is_none());
    assert_eq!(bench.queue.ready_at(), Some(start + Duration::from_millis(1)));
    bench.now = start + Duration::from_millis(1);
    assert!(bench.leave().is_some());
    assert_eq!(bench.queue.ready_at(), None);
}

/// Three flows of one host and one of another: the hosts get the same, and then the flows of each. By flows alone, all get the same.
#[test]
fn hosts_get_equal_shares() {
    let shares = |isolation: &str| {
        let mut bench = Bench::new(&std::format!("cake(unlimited, isolation={isolation})"));
        let flows = [101, 102, 103, 201].map(|flow| (flow, 100, Ecn::NotEct));
        bench.run(1000, 100, &flows);
        [101, 102, 103, 201].map(|flow| bench.count(flow) as f64 / 10_000.0)
    };
    let by_host = shares("source");
    assert!((by_host[3] - 0.5).abs() < 0.03, "{by_host:?}");
    assert!(by_host[..3].iter().all(|share| (share - 0.167).abs() < 0.03), "{by_host:?}");
    let by_flow = shares("flows");
    assert!(by_flow.iter().all(|share| (share - 0.25).abs() < 0.02), "{by_flow:?}");
    // All have one destination: triple isolation counts four flows there, and for each of them alike.
    let triple = shares("triple");
    assert!(triple.iter().all(|share| (share - 0.25).abs() < 0.02), "{triple:?}");
}

/// Eight flows in a set have a queue each, where a plain hash would let them share one.
#[test]
fn flows_of_a_set_do_not_share() {
    let mut bench = Bench::new("cake(flows=64)");
    // All eight meet at the same place: 5.
    let flows: Vec<u64> = (0..8).map(|number| 5 + 64 * number).collect();
    for _ in 0..2 {
        flows.iter().for_each(|flow| {
            let _ = bench.arrive(*flow, 1514, Ecn::NotEct);
        });
    }
    let first: Vec<u64> = bench.flows(8);
    assert_eq!(first, flows);
    let flows = ["sparse", "bulk"].map(|name| bench.statistics(name).flows);
    assert_eq!(flows, [1, 7]);
}

/// BLUE: each overflow makes drops a 256th more likely, each empty queue a 4096th less, once a target.
#[test]
fn blue_by_hand() {
    let times = Times { target: Duration::from_millis(5), interval: Duration::from_millis(100) };
    let mut cobalt = Cobalt::default();
    let at = Instant::from_millis;
    cobalt.on_full(at(10), &times);
    assert_eq!(cobalt.probability(), Probability::ratio(1, 256));
    cobalt.on_full(at(12), &times);
    assert_eq!(cobalt.probability(), Probability::ratio(1, 256));
    cobalt.on_full(at(16), &times);
    assert_eq!(cobalt.probability(), Probability::ratio(2, 256));
    cobalt.on_empty(at(22), &times);
    assert_eq!(cobalt.probability(), Probability::ratio(31, 4096));
}

/// CoDel's part: the first signal an interval after the delay rose, the next ones after 1/√n of it.
#[test]
fn signals_come_at_a_growing_rate() {
    let times = Times { target: Duration::from_millis(5), interval: Duration::from_millis(100) };
    let mut cobalt = Cobalt::default();
    let wait = Duration::from_millis(10);
    let signals: Vec<u64> = (0..400)
        .filter(|millis| {
            let now = Instant::from_millis(*millis);
            cobalt.on_packet(now, wait, Duration::ZERO, &times, &mut || u64::MAX) == Wish::Signal
        })
        .collect();
    // 100, then 100/√2 = 70.7, 57.7, 50, 44.7 later.
    assert_eq!(signals, [100, 171, 229, 279, 324, 364]);
}

#[test]
fn a_flow_that_ignores_signals_is_held_by_blue() {
    let mut bench = Bench::new("cake(100kB, isolation=flows)");
    bench.run(4000, 100, &[(1, 20, Ecn::Ect0), (2, 1000, Ecn::NotEct)]);
    assert_eq!(bench.drops(2), 0);
    assert!(bench.longest(2, Instant::ZERO) <= 300);
    let probability = bench.statistics("bulk").probability.as_f64();
    assert!(probability > 0.5, "{probability}");
    assert!(bench.queue.length().bytes <= 100_000);
}
