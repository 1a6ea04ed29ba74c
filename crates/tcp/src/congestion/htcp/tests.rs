//! H-TCP by hand: segments of 1000 bytes.

use super::super::test_trace::{Trace, ms};
use super::*;
use crate::congestion::CongestionChoice;
use std::vec::Vec;

fn htcp() -> CongestionChoice {
    CongestionChoice::from(HTcp)
}

/// α(Δ) = 1 + 10(Δ − 1) + ((Δ − 1)/2)².
#[test]
fn the_increase_function() {
    let table = [
        (0, 1_000_000),
        (1000, 1_000_000),
        (1100, 2_002_500),     // 1 + 1 + 0.05²
        (2000, 11_250_000),    // 1 + 10 + 0.25
        (3000, 22_000_000),    // 1 + 20 + 1
        (11_000, 126_000_000), // 1 + 100 + 25
    ];
    for (millis, millionths) in table {
        assert_eq!(alpha(ms(millis)), millionths, "{millis} ms");
    }
    assert_eq!(alpha(Duration::MAX), alpha(Duration::from_secs(1001)));
}

/// Rounds of 500 ms in which the whole window is acknowledged at once, after a loss at 100 (β = 0.5, so 2(1 − β) = 1). Δ = 0.5 and 1: one
/// segment each; 1.5: 1 + 5 + 0.0625; 2: 11.25; 2.5: 1 + 15 + 0.5625; 3: 22. The
/// half bytes that a division leaves weigh a little less once the window has grown: 85875 lacks one.
#[test]
fn growth_after_a_loss() {
    let mut trace = Trace::avoiding(&htcp(), 100);
    trace.loss();
    let mut windows = Vec::new();
    for _ in 0..6 {
        trace.now += ms(500);
        let cwnd = trace.window.cwnd;
        trace.ack(cwnd, ms(500), true);
        windows.push(trace.window.cwnd);
    }
    assert_eq!(windows, [51_000, 52_000, 58_062, 69_312, 85_874, 107_874]);
}

/// RTT_min = 60 ms, RTT_max = 100 ms, the same throughput in two epochs: β = 0.6. Growth is 2·0.4 = 0.8 of a segment then. With 70 of
/// 80 ms it would be 0.875, which is more than 0.8; with 10 of 100 it would be 0.1, less than 0.5.
#[test]
fn the_adaptive_backoff() {
    for (min, max, left, grown) in
        [(60, 100, 60_000, 800), (70, 80, 80_000, 400), (10, 100, 50_000, 1000)]
    {
        let mut trace = Trace::avoiding(&htcp(), 100);
        trace.rate = Some(1_000_000);
        for _ in 0..2 {
            trace.window.cwnd = 100_000;
            trace.ack(1, ms(min), true);
            trace.ack(1, ms(max), true);
            trace.window.cwnd = 100_000;
            trace.loss();
        }
        assert_eq!(trace.window.cwnd, left);
        trace.now += ms(max);
        let cwnd = trace.window.cwnd;
        trace.ack(cwnd, ms(max), true);
        assert_eq!(trace.window.cwnd - left, grown);
    }
}

/// A throughput that changed by more than a fifth leaves half, and so does the first loss: 1.0 → 1.2 MB/s is a fifth, 1.21 is more.
#[test]
fn a_changed_throughput_leaves_half() {
    for (rate, left) in
        [(1_200_000, 60_000), (1_210_000, 50_000), (790_000, 50_000), (800_000, 60_000)]
    {
        let mut trace = Trace::avoiding(&htcp(), 100);
        for rate in [1_000_000, rate] {
            trace.rate = Some(rate);
            trace.window.cwnd = 100_000;
            trace.ack(1, ms(60), true);
            trace.ack(1, ms(100), true);
            trace.window.cwnd = 100_000;
            let first = rate == 1_000_000 && trace.delivered == 2;
            trace.loss();
            if first {
                assert_eq!(trace.window.cwnd, 50_000, "the first loss");
            }
        }
        assert_eq!(trace.window.cwnd, left, "{rate}");
    }
}

/// A timeout leaves half, whatever was measured; an undo brings the time since the last loss back.
#[test]
fn timeouts_and_undo() {
    let mut trace = Trace::avoiding(&htcp(), 100);
    trace.timeout();
    assert_eq!((trace.window.cwnd, trace.window.ssthresh), (1000, 50_000));
    let mut trace = Trace::avoiding(&htcp(), 100);
    trace.loss();
    trace.now += ms(2000);
    let before = trace.window;
    trace.loss();
    trace.undo(before);
    let cwnd = trace.window.cwnd;
    trace.ack(cwnd, ms(100), true);
    assert_eq!(trace.window.cwnd - cwnd, 11_250, "α(2 s)");
}
