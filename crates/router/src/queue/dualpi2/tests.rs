//! DualPI2 by hand, and its properties.

use std::vec::Vec;

use super::super::test_bench::Bench;
use super::*;

fn parts(numerator: u64, denominator: u64) -> Probability {
    Probability::ratio(numerator, denominator)
}

/// RFC 9332, appendix A.1: p′ moves by α times the distance from the target and β times the change, once an update.
#[test]
fn the_controller_by_hand() {
    let config = DualPi2Config::default();
    let mut controller = Controller::default();
    // 0.16 · (0.025 − 0.015) + 3.2 · 0.025 = 0.0016 + 0.08.
    controller.update(&config, Duration::from_millis(25));
    assert!((controller.base().as_f64() - 0.0816).abs() < 1e-12);
    // The delay stands: the integral alone.
    controller.update(&config, Duration::from_millis(25));
    assert!((controller.base().as_f64() - 0.0832).abs() < 1e-12);
    // Empty: 0.0832 − 0.0024 − 0.08, and then nothing less than nothing.
    controller.update(&config, Duration::ZERO);
    assert!((controller.base().as_f64() - 0.0008).abs() < 1e-12);
    controller.update(&config, Duration::ZERO);
    assert!(controller.base().is_zero());
    controller.update(&config, Duration::MAX);
    assert_eq!(controller.base(), Probability::ONE);
}

/// Section 2.1: p_C = p′², p_CL = k·p′, so p_CL = k·√p_C. With k of 2, marks are certain where a quarter is dropped (p_Cmax = 1/k²).
#[test]
fn the_coupling_law() {
    let at = |base| Controller::default().with_base(base);
    for percent in 1..50 {
        let controller = at(parts(percent, 100));
        let (classic, coupled) = (controller.classic().as_f64(), controller.coupled(2).as_f64());
        assert!((coupled - 2.0 * classic.sqrt()).abs() < 1e-9, "{percent}");
        assert!(!controller.is_overloaded(2));
    }
    let saturated = at(parts(1, 2));
    assert_eq!(saturated.classic(), parts(1, 4));
    assert!(saturated.is_overloaded(2) && saturated.coupled(2) == Probability::ONE);
    assert!(!at(parts(1, 2)).is_overloaded(1) && at(parts(1, 3)).is_overloaded(4));
}

/// Figure 6 (`recur`): signals are as frequent as their probability, and evenly spaced.
#[test]
fn signals_are_evenly_spaced() {
    let mut signals = Recurrence::default();
    let pattern: Vec<bool> = (0..9).map(|_| signals.signals(parts(1, 4))).collect();
    assert_eq!(pattern.iter().filter(|signal| **signal).count(), 2);
    assert_eq!(pattern, [false, false, false, false, true, false, false, false, true]);
    let mut signals = Recurrence::default();
    let certain: Vec<bool> = (0..4).map(|_| signals.signals(Probability::ONE)).collect();
    assert_eq!(certain, [false, true, true, true]);
    assert!(!signals.signals(Probability::ZERO));
}

/// Appendix A.1, `laqm`: nothing up to minTh, certain from maxTh on, and a ramp between. A queue of one packet is not marked.
#[test]
fn the_ramp_by_hand() {
    let config = DualPi2Config::default();
    let ramp = |micros| config.ramp(Duration::from_micros(micros));
    assert_eq!((ramp(0), ramp(800)), (Probability::ZERO, Probability::ZERO));
    assert_eq!((ramp(900), ramp(1000)), (parts(1, 4), parts(1, 2)));
    assert_eq!((ramp(1200), ramp(9000)), (Probability::ONE, Probability::ONE));
    let step = DualPi2Config { range: Duration::ZERO, ..config };
    assert_eq!(step.ramp(Duration::from_micros(800)), Probability::ZERO);
    assert_eq!(step.ramp(Duration::from_micros(801)), Probability::ONE);

    let mut bench = Bench::new("dualpi2");
    (0..4).for_each(|_| {
        let _ = bench.arrive(1, 1500, Ecn::Ect1);
    });
    bench.now += Duration::from_millis(2);
    let marks: Vec<bool> = (0..4).filter_map(|_| bench.leave()).map(|item| item.marked).collect();
    // The sum has to come above one: the first certain packet makes it one. Behind the third there is one packet.
    assert_eq!(marks, [false, true, false, false]);
}

/// Section 2.3 and RFC 9331: ECT(1) and CE go to the L queue, all else to the C queue. L goes first.
#[test]
fn codepoints_choose_the_queue() {
    let mut bench = Bench::new("dualpi2");
    for (flow, ecn) in [(1, Ecn::NotEct), (2, Ecn::Ect0), (3, Ecn::Ect1), (4, Ecn::Ce)] {
        bench.arrive(flow, 1500, ecn);
    }
    let sent: Vec<_> = (0..4).filter_map(|_| bench.leave()).collect();
    let order: Vec<_> = sent.iter().map(|item| (item.packet.0, item.low_latency)).collect();
    assert_eq!(order, [(3, true), (4, true), (1, false), (2, false)]);
}

/// Section 4.2.2: L cannot starve C, which gets its share of the bytes.
#[test]
fn a_busy_l_queue_leaves_c_its_share() {
    let mut bench = Bench::new("dualpi2(unlimited, classic=1/10)");
    for _ in 0..4000 {
        bench.arrive(1, 1000, Ecn::Ect1);
        bench.arrive(2, 500, Ecn::NotEct);
    }
    // Within one update no probability has moved: only the turns decide.
    bench.flows(2000);
    let (low, classic) = (bench.count(1) as f64 * 1000.0, bench.count(2) as f64 * 500.0);
    let share = classic / (low + classic);
    assert!((share - 0.1).abs() < 0.01, "{share}");
}

/// Section 4.2 and appendix A.2: an L flow that does not respond is dropped, C stays alive, and the delay of both stays bounded.
#[test]
fn an_l_flow_that_ignores_marks_is_dropped() {
    let mut bench = Bench::new("dualpi2");
    // Flow 1 offers twice what the link takes, flow 2 a twentieth, which is less than C's share.
    bench.run(8000, 100, &[(1, 50, Ecn::Ect1), (2, 2000, Ecn::NotEct)]);
    let settled = Instant::from_secs(5);
    let (low, classic) = (bench.longest(1, settled), bench.longest(2, settled));
    assert!(bench.drops(1) > 30_000, "{}", bench.drops(1));
    assert!(low < 40_000 && classic < 40_000, "{low} {classic}");
    let of_classic = bench.count(2) as f64 / 4000.0;
    // What does not respond is dropped as often in either queue.
    assert!(of_classic > 0.4, "{of_classic}");
    assert!(bench.queue.length().packets < 1000);
}

/// A flow that claims ECT(1) and strips its marks gains the L queue's delay but no more than drops leave it; classic flows go on.
#[test]
fn memory_is_bounded_when_nobody_responds() {
    let mut bench = Bench::new("dualpi2(500 packets)");
    bench.run(2000, 1000, &[(1, 10, Ecn::Ect1), (2, 10, Ecn::Ect0), (3, 10, Ecn::NotEct)]);
    assert!(bench.queue.length().packets <= 500);
    let drained: usize = [1, 2, 3].iter().map(|flow| bench.count(*flow)).sum();
    assert!(drained > 500, "{drained}");
    assert!(bench.count(2) + bench.count(3) > 0);
}

/// The C queue alone is a PI2 queue: with sources that respond as Reno does (rate ∝ 1/√p) the delay is held at the target.
#[test]
fn the_classic_queue_is_held_at_its_target() {
    let mut bench = Bench::new("dualpi2");
    // An unresponsive overload of a ninth: a tenth has to be dropped, so p′ settles at √0.1.
    bench.run(20_000, 100, &[(1, 90, Ecn::NotEct)]);
    let late: Vec<u64> = bench
        .sent
        .iter()
        .filter(|(at, _)| *at > Instant::from_secs(15))
        .map(|(at, item)| item.waited(*at).as_micros())
        .collect();
    let mean = late.iter().sum::<u64>() / late.len() as u64;
    assert!((13_000..17_000).contains(&mean), "{mean}");
    let probability = bench.statistics("classic").probability.as_f64();
    assert!((probability - 0.1).abs() < 0.02, "{probability}");
}

/// A call after an hour does what a timer would have done, and no more than a bounded number of steps.
#[test]
fn a_late_call_is_made_up_for() {
    let mut bench = Bench::new("dualpi2");
    bench.arrive(1, 1500, Ecn::NotEct);
    bench.now += Duration::from_secs(3600);
    assert!(bench.leave().is_some());
    assert_eq!(bench.statistics("classic").probability, Probability::ONE);
    bench.now += Duration::from_secs(3600);
    bench.arrive(1, 1500, Ecn::NotEct);
    assert!(bench.statistics("classic").probability.is_zero());
}
