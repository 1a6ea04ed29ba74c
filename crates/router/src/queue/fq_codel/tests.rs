//! FQ-CoDel by hand.

use std::vec::Vec;

use super::super::test_bench::Bench;
use super::*;

/// RFC 8290, section 4.2: each flow sends a quantum in its turn, and a flow that begins to wait goes first.
#[test]
fn flows_send_in_turn_and_new_ones_first() {
    let mut bench = Bench::new("fq-codel");
    for flow in [1, 1, 1, 1, 2, 2, 2] {
        bench.arrive(flow, 1514, Ecn::NotEct);
    }
    assert_eq!(bench.flows(3), [1, 2, 1]);
    bench.arrive(3, 100, Ecn::NotEct);
    assert_eq!(bench.flows(9), [3, 2, 1, 2, 1]);
}

/// Shares are of bytes: small packets go several at a time. The credit lets one packet more go than fits (section 4.2).
#[test]
fn a_turn_is_a_quantum_of_bytes() {
    let mut bench = Bench::new("fq-codel(quantum=1000B)");
    for _ in 0..9 {
        bench.arrive(1, 400, Ecn::NotEct);
        bench.arrive(2, 1000, Ecn::NotEct);
    }
    // 1200 bytes of flow 1 are 200 too many, so that it is left with 800 in its second turn.
    assert_eq!(bench.flows(9), [1, 1, 1, 2, 1, 1, 2, 1, 1]);
}

/// Section 4.2: a flow whose queue runs empty while it is new becomes old first. Otherwise one packet after another would always be served first.
#[test]
fn a_flow_that_comes_and_goes_does_not_starve_others() {
    let mut bench = Bench::new("fq-codel");
    (0..20).for_each(|_| {
        let _ = bench.arrive(1, 1514, Ecn::NotEct);
    });
    let mut order = Vec::new();
    for _ in 0..8 {
        bench.arrive(2, 1514, Ecn::NotEct);
        order.extend(bench.flows(1));
    }
    let others = order.iter().filter(|flow| **flow == 1).count();
    assert!(others >= 3, "{order:?}");
}

/// Section 4.1: an overflow takes half of the longest queue from its front, 64 packets at most.
#[test]
fn the_longest_queue_makes_room() {
    let mut bench = Bench::new("fq-codel(100 packets)");
    (0..60).for_each(|_| {
        let _ = bench.arrive(1, 1000, Ecn::NotEct);
    });
    (0..40).for_each(|_| {
        let _ = bench.arrive(2, 500, Ecn::NotEct);
    });
    assert_eq!(bench.arrive(3, 100, Ecn::NotEct), Admission::Queued);
    let dropped: Vec<_> =
        bench.dropped.iter().map(|(_, packet, cause)| (*packet, *cause)).collect();
    let expected: Vec<_> = (0..30).map(|number| ((1, number), Cause::Head)).collect();
    assert_eq!(dropped, expected);
    let mut bench = Bench::new("fq-codel(200 packets)");
    (0..201).for_each(|_| {
        let _ = bench.arrive(1, 1000, Ecn::NotEct);
    });
    assert_eq!(bench.dropped.len(), 64);
}

/// A flow that sends as it likes has its share and loses the rest; one that sends little never waits for it.
#[test]
fn a_flood_harms_only_itself() {
    let mut bench = Bench::new("fq-codel(1000 packets)");
    // A packet each 100 µs leaves. Flow 1 offers ten times as much, flow 2 a tenth.
    bench.run(3000, 100, &[(1, 10, Ecn::Ect0), (2, 1000, Ecn::NotEct)]);
    assert_eq!(bench.drops(2), 0);
    assert!(bench.longest(2, Instant::ZERO) <= 200, "{}", bench.longest(2, Instant::ZERO));
    assert!(bench.count(2) >= 2998, "{}", bench.count(2));
    assert!(bench.queue.length().packets <= 1000);
    assert!(bench.statistics("bulk").dropped > 100_000);
}

/// Flows that have more than their share get the same.
#[test]
fn busy_flows_get_equal_shares() {
    let mut bench = Bench::new("fq-codel(300 packets)");
    bench.run(1000, 100, &[(1, 60, Ecn::NotEct), (2, 150, Ecn::NotEct), (3, 300, Ecn::Ect0)]);
    let counts = [1, 2, 3].map(|flow| bench.count(flow));
    assert!(counts.iter().all(|count| (3200..3500).contains(count)), "{counts:?}");
}

/// Section 5.2.7: what has waited beyond the threshold is marked; with `l4s` ECT(1) alone.
#[test]
fn a_threshold_marks_at_once() {
    let marks = |text: &str| {
        let mut bench = Bench::new(text);
        for ecn in [Ecn::Ect0, Ecn::Ect1, Ecn::NotEct, Ecn::Ce] {
            bench.arrive(1, 100, ecn);
        }
        bench.now += Duration::from_millis(2);
        let marks: Vec<bool> =
            (0..4).filter_map(|_| bench.leave()).map(|item| item.marked).collect();
        (marks, bench.statistics("sparse").marked)
    };
    assert_eq!(marks("fq-codel(ce-threshold=1ms)"), (Vec::from([true, true, false, false]), 2));
    let l4s = "fq-codel(ce-threshold=1ms, l4s)";
    assert_eq!(marks(l4s), (Vec::from([false, true, false, false]), 1));
    assert_eq!(marks("fq-codel(ce-threshold=2ms)").1, 0);
}

#[test]
fn codel_keeps_each_queue_short_by_itself() {
    let mut bench = Bench::new("fq-codel");
    // Flow 1 offers a quarter more than its half, flow 2 less than its half.
    bench.run(2000, 100, &[(1, 160, Ecn::Ect0), (2, 250, Ecn::Ect0)]);
    let (bulk, sparse) = (bench.statistics("bulk"), bench.statistics("sparse"));
    assert!(bulk.marked > 5, "{bulk:?}");
    assert!(sparse.sent.packets + bulk.sent.packets >= 19_900);
    assert_eq!(bench.drops(2), 0);
}
