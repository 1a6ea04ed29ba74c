//! FAST by hand: α = 20, γ = 0.5, segments of 1000 bytes, baseRTT = 100 ms.

use super::super::test_trace::{Trace, ms};
use super::*;
use crate::congestion::CongestionChoice;
use std::string::ToString;

/// A round that ends with the averaged round-trip time at `rtt`.
fn settled(segments: u64, rtt: u64) -> u64 {
    let mut trace = Trace::avoiding(&CongestionChoice::from(Fast::default()), segments);
    trace.ack(1, ms(100), false);
    for _ in 0..8000 {
        trace.ack(1, ms(rtt), false);
    }
    trace.ack(1, ms(rtt), true);
    trace.window.cwnd
}

/// w = (w + w·100/RTT + 20)/2. At 100 ms: ten more. 100 segments at 125 ms: (100 + 80 + 20)/2 = 100. At 200: (100 + 50 + 20)/2 = 85.
/// 1000 at 125: (1000 + 800 + 20)/2 = 910. Four at 100: at most twice as many.
#[test]
fn a_round() {
    for (segments, rtt, after) in [
        (100, 100, 110_000),
        (100, 125, 100_000),
        (100, 200, 85_000),
        (1000, 125, 910_000),
        (4, 100, 8000),
    ] {
        assert!(
            settled(segments, rtt).abs_diff(after) <= 1,
            "{segments} at {rtt}: {}",
            settled(segments, rtt)
        );
    }
}

/// The average: 1/4 for a sample up to twelve segments, 3/w above: a sample of 200 after 100 makes 125, and at 60 segments 105.
#[test]
fn the_average() {
    for (segments, micros) in [(4, 125_000), (12, 125_000), (60, 105_000), (300, 101_000)] {
        let window = Window { cwnd: segments * 1000, cwnd_cnt: 0, ssthresh: 2000, mss: 1000 };
        let mut controller =
            Controller { parameters: Fast::default(), average: Some(ms(100)), least: None };
        controller.average(ms(200), &window);
        assert_eq!(controller.average, Some(Duration::from_micros(micros)));
        controller.average = Some(ms(200));
        controller.average(ms(100), &window);
        assert_eq!(controller.average, Some(Duration::from_micros(300_000 - micros)));
    }
}

/// A path that carries 100 segments in 100 ms settles with 20 in the queue.
#[test]
fn it_settles_with_alpha_in_the_queue() {
    for from in [60, 200] {
        let mut trace = Trace::avoiding(&CongestionChoice::from(Fast::default()), from);
        trace.ack(1, ms(100), false);
        for _ in 0..60 {
            let rtt = Duration::from_micros((trace.window.cwnd).max(100_000));
            trace.round(rtt);
        }
        assert!((119..=121).contains(&trace.segments()), "{} from {from}", trace.segments());
    }
}

/// Slow start ends with ten segments in the queue: 80·14/114 = 9.8 is not enough, 80·15/115 = 10.4 is. Losses are Reno's.
#[test]
fn slow_start_and_losses() {
    for (rtt, ssthresh) in [(114, u64::MAX), (115, 80_000)] {
        let mut trace = Trace::new(&CongestionChoice::from(Fast::default()), 10);
        assert_eq!(trace.rounds(3, ms(100)), [20_000, 40_000, 80_000]);
        trace.cwnd_limited = false;
        trace.ack(1, ms(100), true);
        trace.ack(1, ms(rtt), false);
        trace.ack(1, ms(rtt), true);
        assert_eq!(trace.window.ssthresh, ssthresh);
        trace.loss();
        assert_eq!(trace.window.cwnd, 40_000);
    }
}

#[test]
fn texts() {
    assert_eq!(CongestionChoice::from(Fast::default()).to_string(), "fast");
    assert_eq!(
        CongestionChoice::from(Fast { alpha: 200, ..Fast::default() }).to_string(),
        "fast(alpha=200)"
    );
}
