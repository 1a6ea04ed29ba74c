//! Westwood+ by hand: segments of 1000 bytes, round trips of 100 ms.

use super::super::test_trace::{Trace, ms};
use super::*;
use crate::congestion::CongestionChoice;

fn westwood() -> CongestionChoice {
    CongestionChoice::from(Westwood::default())
}

/// A window of 50 segments in each 100 ms is 500 kB/s; times 100 ms that is 50 segments again. A random loss costs nothing.
#[test]
fn a_loss_leaves_what_the_path_carried() {
    let mut trace = Trace::avoiding(&westwood(), 50);
    trace.cwnd_limited = false; // so that the window stays
    trace.rounds(20, ms(100));
    trace.loss();
    assert_eq!((trace.window.cwnd, trace.window.ssthresh), (50_000, 50_000));
    // With a queue of 100 ms the same window is 250 kB/s, 25 segments in the least round trip. From 500: 0.9·500 + 0.1·250 = 475, then
    // 452.5, 432.25, 414.025, … 250 + 250·0.9ⁿ; n = 10: 337.17.
    trace.rounds(10, ms(200));
    trace.loss();
    let got = trace.window.cwnd;
    assert!((33_715..=33_717).contains(&got), "{got}: each filtering rounds down");
}

/// The filter: 500 kB/s, then one sample of 1000 kB/s: 0.9·500 + 0.1·1000 = 550 kB/s. 50 ms at the least: shorter samples wait.
#[test]
fn the_filter() {
    let filter = Westwood::default().filter;
    let controller = Controller { filter, estimate: Some(500_000), min_rtt: None, sample: None };
    let mut trace = Trace::avoiding(&westwood(), 100);
    trace.controller = crate::congestion::Controller::custom(controller);
    trace.now += ms(10);
    trace.ack(1000, ms(10), true);
    trace.now += ms(40);
    trace.ack(40_000, ms(10), true);
    trace.loss();
    assert_eq!(trace.window.ssthresh, 5000, "40 ms are too short: 500 kB/s for 10 ms");
    trace.now += ms(10);
    trace.ack(10_000, ms(10), true);
    trace.loss();
    assert_eq!(trace.window.ssthresh, 5500, "50000 bytes in 50 ms are 1000 kB/s");
}

/// Reno's growth; without an estimate, Reno's halving; a reduction never widens the window; a timeout leaves one segment.
#[test]
fn the_rest_is_reno() {
    let mut trace = Trace::avoiding(&westwood(), 20);
    trace.loss();
    assert_eq!(trace.window.cwnd, 10_000);
    let mut trace = Trace::avoiding(&westwood(), 20);
    assert_eq!(trace.rounds(3, ms(100)), [21_000, 22_000, 23_000]);
    trace.timeout();
    assert_eq!(trace.window.cwnd, 1000);
    assert!(trace.window.ssthresh >= 20_000, "{}", trace.window.ssthresh);
    trace.loss();
    assert_eq!(trace.window.cwnd, 1000);
}
