//! LEDBAT by hand: TARGET = 100 ms, GAIN = 1, segments of 1000 bytes, a base delay of 50 ms.

use super::super::test_trace::{Trace, ms};
use super::*;
use crate::congestion::CongestionChoice;
use std::string::ToString;

fn ledbat(parameters: Ledbat, segments: u64) -> Trace {
    let mut trace = Trace::new(&CongestionChoice::from(parameters), segments);
    trace.ack(1, ms(50), false);
    trace.window.cwnd = segments * 1000;
    trace
}

fn round_trips() -> Ledbat {
    Ledbat { delay: DelaySource::RoundTrip, ..Ledbat::default() }
}

/// One segment at a window of 100, with q ms in the queue: 1000·1000/100000·(100 − q)/100 bytes. q = 0: 10; 50: 5; 100: 0; 200: −10; 600: −50.
#[test]
fn an_acknowledgement() {
    for (queued, change) in [(0, 10), (50, 5), (100, 0), (200, -10), (600, -50)] {
        let mut trace = ledbat(round_trips(), 100);
        trace.now += ms(700);
        trace.ack(1000, ms(50 + queued), false);
        assert_eq!(trace.window.cwnd as i64 - 100_000, change, "{queued} ms");
    }
}

/// GAIN and TARGET: half the gain, a fifth of the target. At 30 ms: 10·0.5·(20 − 30)/20 = −2.5.
#[test]
fn gain_and_target() {
    let parameters =
        Ledbat { gain: Fraction::from_millionths(500_000), target: ms(20), ..round_trips() };
    let mut trace = ledbat(parameters, 100);
    let mut total = 0;
    for _ in 0..4 {
        trace.now += ms(100);
        trace.ack(1000, ms(80), false);
        total = trace.window.cwnd as i64 - 100_000;
    }
    assert_eq!(total, -10);
}

/// A path that carries 100 segments in 50 ms, 2 a millisecond. The window grows by one a round while the queue is empty; the queue of
/// TARGET holds 200 segments, so it settles near 300.
#[test]
fn it_settles_at_the_target() {
    let mut trace = ledbat(round_trips(), 90);
    for _ in 0..2000 {
        let rtt = (trace.window.cwnd / 2000).max(50);
        trace.round(ms(rtt));
    }
    assert!((294..=302).contains(&trace.segments()), "{}", trace.segments());
}

/// It grows to one segment above the flight at most, and does not shrink.
#[test]
fn an_unused_window_does_not_grow() {
    let mut trace = ledbat(round_trips(), 100);
    trace.flight = Some(20_000);
    trace.rounds(10, ms(50));
    assert_eq!(trace.window.cwnd, 100_000);
    trace.flight = Some(99_100);
    trace.rounds(10, ms(50));
    assert_eq!(trace.window.cwnd, 100_100);
}

/// It begins with two segments and no slow start; a loss halves, a timeout leaves one, and two are the least after that.
#[test]
fn starts_and_losses() {
    let mut trace = Trace::new(&CongestionChoice::from(round_trips()), 10);
    assert_eq!(trace.window.cwnd, 2000);
    assert_eq!(trace.rounds(1, ms(50)), [2900]); // 1000·1000/2000 = 500, then 1000·1000/2500 = 400
    trace.window.cwnd = 50_000;
    trace.loss();
    assert_eq!(trace.window.cwnd, 25_000);
    trace.timeout();
    assert_eq!(trace.window.cwnd, 1000);
    trace.round(ms(1000));
    assert_eq!(trace.window.cwnd, 2000);
}

/// Slow start, where it is wanted, ends at half the target.
#[test]
fn slow_start() {
    let mut trace =
        Trace::new(&CongestionChoice::from(Ledbat { slow_start: true, ..round_trips() }), 10);
    assert_eq!(trace.rounds(4, ms(50)), [4000, 8000, 16_000, 32_000]);
    trace.round(ms(99));
    assert_eq!(trace.window.cwnd, 64_000);
    trace.now += ms(400);
    trace.ack(1000, ms(100), false);
    assert_eq!(trace.window.ssthresh, 64_000);
}

#[test]
fn texts() {
    assert_eq!(CongestionChoice::from(Ledbat::default()).to_string(), "ledbat");
    let other = Ledbat { target: ms(25), ..round_trips() };
    assert_eq!(CongestionChoice::from(other).to_string(), "ledbat(target=25ms, delay=round-trip)");
}
