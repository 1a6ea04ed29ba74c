//! LEDBAT++ by hand: TARGET = 60 ms, segments of 1000 bytes.

use super::super::test_trace::{Trace, ms};
use super::*;
use crate::congestion::CongestionChoice;
use std::string::ToString;

fn choice() -> CongestionChoice {
    CongestionChoice::from(LedbatPlusPlus::default())
}

/// In congestion avoidance, with no slowdown in sight.
fn avoiding(base: Duration, segments: u64) -> Trace {
    let mut trace = Trace::new(&choice(), 2);
    let controller = Controller {
        target: ms(60),
        queue: Queue::new(DelaySource::RoundTrip),
        phase: Phase::Avoidance,
        slowdown_at: None,
        divisor: 16,
        excess: Duration::ZERO,
        carry: Carry::default(),
    };
    trace.controller = crate::congestion::Controller::custom(controller);
    trace.cwnd_limited = false;
    trace.ack(1, base, false);
    trace.cwnd_limited = true;
    trace.window.cwnd = segments * 1000;
    trace.window.ssthresh = segments * 1000;
    trace
}

/// GAIN = 1/min(16, ⌈120/base⌉): 1/1 from a base of 120 ms on, 1/2 at 100, 1/3 at 40, 1/12 at 10, 1/16 at 1. A window of 120 segments acknowledged
/// at once adds so much of one.
#[test]
fn the_gain() {
    for (base, grown) in [(200, 1000), (120, 1000), (100, 500), (40, 333), (10, 83), (1, 62)] {
        let mut trace = avoiding(ms(base), 120);
        trace.now += ms(base);
        trace.ack(120_000, ms(base), true);
        assert_eq!(trace.window.cwnd, 120_000 + grown, "base {base} ms");
    }
}

/// A base of 120 ms (GAIN 1), a window of 100 acknowledged at once. 60 ms in the queue: one more. 66 ms: 1 − 100·0.1 = −9. 75: 1 − 25 = −24.
/// 90 and more: −50, half of the window.
#[test]
fn multiplicative_decrease() {
    for (queued, after) in
        [(60, 101_000), (66, 91_000), (75, 76_000), (90, 51_000), (91, 50_000), (600, 50_000)]
    {
        let mut trace = avoiding(ms(120), 100);
        trace.now += ms(2000);
        trace.ack(100_000, ms(120 + queued), true);
        assert_eq!(trace.window.cwnd, after, "{queued} ms");
    }
}

/// From two segments, with a base of 120 ms: doubling. It ends when more than 45 ms are queued.
#[test]
fn the_first_slow_start() {
    let mut trace = Trace::new(&choice(), 10);
    assert_eq!(trace.window.cwnd, 2000);
    assert_eq!(trace.rounds(4, ms(120)), [4000, 8000, 16_000, 32_000]);
    trace.round(ms(165));
    assert_eq!((trace.window.cwnd, trace.window.ssthresh), (64_000, u64::MAX));
    trace.now += ms(300);
    trace.ack(1000, ms(166), true);
    assert_eq!(trace.window.ssthresh, 64_000);
    // With a base of 30 ms, a quarter for each: 2, 2.5, 3 … counted in whole segments acknowledged.
    let mut trace = Trace::new(&choice(), 10);
    assert_eq!(trace.rounds(4, ms(30)), [2500, 3000, 3750, 4500]);
}

/// The slowdown: two round trips after slow start the window is two segments, for two round trips; then 4, 8, 16, 32, 64: back. That took
/// 2 + 5 round trips of 120 ms and one acknowledgement; nine times as long later comes the next.
#[test]
fn slowdowns() {
    let mut trace = Trace::new(&choice(), 10);
    trace.rounds(5, ms(120));
    trace.now += ms(200);
    trace.ack(1000, ms(166), true);
    assert_eq!(trace.window.cwnd, 64_000 + 15, "slow start is over: avoidance, 1000·1000/64000");
    // Two round trips of 166 ms later.
    let over = trace.now;
    let mut windows = trace.rounds(2, ms(120));
    assert_eq!(trace.now.since(over), ms(240));
    assert!(windows.iter().all(|&window| window > 64_000));
    windows = trace.rounds(1, ms(120));
    assert_eq!(windows, [2000], "332 ms are over");
    let began = trace.now;
    assert_eq!(trace.window.ssthresh / 1000, 66);
    assert_eq!(trace.rounds(1, ms(120)), [2000]);
    // The acknowledgement that comes at the end of the two round trips thaws it, and grows it already.
    assert_eq!(trace.rounds(5, ms(120)), [4000, 8000, 16_000, 32_000, 64_000]);
    trace.round(ms(120));
    let back = trace.now;
    assert_eq!(back.since(began), ms(7 * 120));
    // 9 · 7 round trips of avoidance, GAIN 1: one segment each.
    let windows = trace.rounds(62, ms(120));
    assert!(windows.windows(2).all(|pair| pair[1] > pair[0]));
    assert_eq!(trace.rounds(1, ms(120)), [2000]);
    assert_eq!(trace.now.since(back), ms(63 * 120));
}

/// A loss halves; in a slowdown it halves what to return to. A timeout goes back through slow start.
#[test]
fn losses() {
    let mut trace = avoiding(ms(120), 100);
    trace.loss();
    assert_eq!((trace.window.cwnd, trace.window.ssthresh), (50_000, 50_000));
    trace.timeout();
    assert_eq!((trace.window.cwnd, trace.window.ssthresh), (1000, 25_000));
    assert_eq!(trace.rounds(4, ms(120)), [2000, 4000, 8000, 16_000]);
    // Nine acknowledgements lead to ssthresh, the other seven are avoidance: 7·1000/25 = 280 bytes.
    trace.round(ms(120));
    assert!((25_270..=25_280).contains(&trace.window.cwnd), "{}", trace.window.cwnd);
}

#[test]
fn texts() {
    assert_eq!(CongestionChoice::from(LedbatPlusPlus::default()).to_string(), "ledbat++");
    assert_eq!(
        CongestionChoice::from(LedbatPlusPlus { target: ms(40) }).to_string(),
        "ledbat++(target=40ms)"
    );
}
