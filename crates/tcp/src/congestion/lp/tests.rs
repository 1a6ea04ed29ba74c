//! TCP-LP by hand: δ = 0.15, segments of 1000 bytes, round-trip times from 100 to 200 ms: congestion begins at 115.

use super::super::test_trace::{Trace, ms};
use super::*;
use crate::congestion::CongestionChoice;
use std::string::ToString;

/// With `segments` segments, and both ends of the delays seen; the smoothed one is back at 100.
fn lp(segments: u64) -> Trace {
    let lp = Lp { delay: DelaySource::RoundTrip, ..Lp::default() };
    let mut trace = Trace::avoiding(&CongestionChoice::from(lp), segments);
    trace.recovering = true;
    trace.ack(1, ms(200), false);
    for _ in 0..200 {
        trace.ack(1, ms(100), false);
    }
    trace.recovering = false;
    trace
}

/// Smoothed with 1/8: after one sample of 200, 100 + 100/8 = 112.5, which is no congestion; after another, 112.5 + 87.5/8 = 123.4, which is.
#[test]
fn early_congestion() {
    let mut trace = lp(40);
    trace.now += ms(100);
    trace.ack(1000, ms(200), false);
    assert_eq!(trace.window.cwnd, 40_000);
    trace.ack(1000, ms(200), false);
    assert_eq!((trace.window.cwnd, trace.window.ssthresh), (20_000, 20_000));
    // 112.5 + 17.5/8 = 114.7 is just none, 114.7 + 10.3/8 = 116 is.
    let mut trace = lp(40);
    trace.ack(1000, ms(200), false);
    trace.ack(1000, ms(130), false);
    assert_eq!(trace.window.cwnd, 40_000);
    trace.ack(1000, ms(125), false);
    assert_eq!(trace.window.cwnd, 20_000);
}

/// A round trip in which indications say nothing new, then one that takes the window to one segment; three round trips later, without congestion, it
/// grows again.
#[test]
fn the_inference_phase() {
    let mut trace = lp(40);
    trace.ack(1000, ms(200), false);
    trace.ack(1000, ms(200), false);
    trace.now += ms(199);
    trace.ack(1000, ms(200), false);
    assert_eq!(trace.window.cwnd, 20_000);
    trace.now += ms(1);
    trace.ack(1000, ms(200), false);
    assert_eq!(trace.window.cwnd, 1000);
    for _ in 0..30 {
        trace.now += ms(9);
        trace.ack(1000, ms(100), false);
    }
    assert_eq!(trace.window.cwnd, 1000, "it only watches");
    trace.now += ms(400);
    assert_eq!(trace.rounds(3, ms(100)), [2000, 3000, 4000]);
}

/// With nothing to see after the first halving the window stays where it is for three round trips, and grows then.
#[test]
fn watching() {
    let mut trace = lp(40);
    trace.ack(1000, ms(200), false);
    trace.ack(1000, ms(200), false);
    for _ in 0..20 {
        trace.ack(1000, ms(100), false);
    }
    assert_eq!(trace.rounds(5, ms(100)), [20_000; 5]);
    assert_eq!(trace.rounds(2, ms(100)), [21_000, 22_000], "600 ms are over");
}

/// A sample that the receiver may have delayed says nothing: a single segment that takes 200 ms.
#[test]
fn a_segment_alone() {
    let mut trace = lp(40);
    (trace.window.cwnd, trace.flight) = (1000, Some(1000));
    for cwnd in [2000, 3000, 4000] {
        trace.ack(1000, ms(200), false);
        assert_eq!(trace.window.cwnd, cwnd);
    }
}

/// A loss and a timeout are Reno's, and so is slow start.
#[test]
fn the_rest_is_reno() {
    let mut trace = lp(40);
    trace.loss();
    assert_eq!(trace.window.cwnd, 20_000);
    trace.timeout();
    assert_eq!((trace.window.cwnd, trace.window.ssthresh), (1000, 10_000));
    assert_eq!(
        trace.rounds(5, ms(100)),
        [2000, 4000, 8000, 10_600, 11_600].map(|w| w / 1000 * 1000)
    );
}

/// The clock's step of a millisecond is not congestion: one-way delays of 0 and 1 ms, 0.15 of which would be 0.15 ms.
#[test]
fn clock_steps() {
    let mut trace = Trace::avoiding(&CongestionChoice::from(Lp::default()), 40);
    trace.cwnd_limited = false;
    let delay = |trace: &mut Trace, i: u32, queued: u32| {
        let sent = 1000 + 10 * i;
        trace.now = Instant::from_millis(u64::from(sent + 50 + queued / 10 * 10));
        let (value, echo) = (sent + 30 + queued, sent);
        trace.timestamps = Some(transom_wire::Timestamps { value, echo });
        trace.ack(1000, ms(u64::from(50 + queued / 10 * 10)), false);
    };
    for i in 0..100 {
        delay(&mut trace, i, i % 2);
    }
    assert_eq!(trace.window.cwnd, 40_000);
    // Ten milliseconds are.
    for i in 100..140 {
        delay(&mut trace, i, 10);
    }
    assert!(trace.window.cwnd < 40_000);
}

#[test]
fn texts() {
    assert_eq!(CongestionChoice::from(Lp::default()).to_string(), "lp");
    assert_eq!(
        CongestionChoice::from(Lp { delay: DelaySource::RoundTrip, ..Lp::default() }).to_string(),
        "lp(delay=round-trip)"
    );
}
