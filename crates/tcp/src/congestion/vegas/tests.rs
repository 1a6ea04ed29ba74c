//! Vegas by hand: α = 2, β = 4, γ = 1, BaseRTT = 100 ms, segments of 1000 bytes.

use super::super::test_trace::{Trace, ms};
use super::*;
use crate::congestion::CongestionChoice;
use std::string::ToString;

/// In linear mode with `segments`, and a BaseRTT of 100 ms.
fn linear(segments: u64) -> Trace {
    let mut trace = Trace::avoiding(&CongestionChoice::from(Vegas::default()), segments * 2);
    trace.ack(1, ms(100), false);
    trace.loss();
    trace
}

/// 40 segments and a round trip of 104 ms: 40·4/104 = 1.538 in queues: one more. At 106: 40·6/106 = 2.264: stay; at 111: 40·11/111 =
/// 3.964: stay; at 112: 40·12/112 = 4.286: one less.
#[test]
fn a_segment_each_round() {
    for (rtt, after) in
        [(100, 41_000), (104, 41_000), (106, 40_000), (111, 40_000), (112, 39_000), (300, 39_000)]
    {
        let mut trace = linear(40);
        assert_eq!(trace.window.cwnd, 40_000);
        trace.round(ms(rtt));
        assert_eq!(trace.window.cwnd, after, "{rtt} ms");
    }
}

/// A path that carries 50 segments in 100 ms: a window of w takes max(100, 2w) ms. A window is judged by the
/// samples of the round before: rising, w by the 2(w − 1) ms of w − 1. 52·2/102 = 1.02 is too little, 53·4/104 = 2.04 is not.
/// Falling, the least sample is its own: 55·10/110 = 5 is too much, 54·8/108 = 4 is not.
#[test]
fn it_settles_between_alpha_and_beta() {
    for (from, settled) in [(40, 53_000), (70, 54_000)] {
        let mut trace = linear(from);
        for _ in 0..30 {
            let rtt = (trace.window.cwnd / 500).max(100);
            trace.round(ms(rtt));
        }
        assert_eq!(trace.window.cwnd, settled, "from {from}");
    }
}

/// The least sample of a round counts.
#[test]
fn delayed_acknowledgements_are_no_queue() {
    let mut trace = linear(40);
    trace.now += ms(140);
    trace.ack(1000, ms(140), false);
    trace.ack(1000, ms(102), false);
    trace.ack(1000, ms(140), true);
    assert_eq!(trace.window.cwnd, 41_000);
}

/// Doubling every other round: 10 → 20, 20, 40, 40, 80, 80. With 80 segments and 102 ms 1.57 are in queues at the end of a round
/// of comparison: slow start is over, and the window stays.
#[test]
fn slow_start() {
    let mut trace = Trace::new(&CongestionChoice::from(Vegas::default()), 10);
    // The first acknowledgement of a round ends the one before.
    trace.controller = crate::congestion::Controller::custom(Controller::new(Vegas::default()));
    let windows = trace.rounds(6, ms(100));
    assert_eq!(windows, [10_000, 20_000, 20_000, 40_000, 40_000, 80_000]);
    assert_eq!(trace.window.ssthresh, u64::MAX);
    trace.round(ms(102));
    assert_eq!(
        (trace.window.cwnd, trace.window.ssthresh),
        (80_000, u64::MAX),
        "that round doubled"
    );
    trace.round(ms(102));
    assert_eq!((trace.window.cwnd, trace.window.ssthresh), (80_000, 80_000));
    // From there on by ones: 80·2/102 = 1.57.
    trace.round(ms(102));
    assert_eq!(trace.window.cwnd, 81_000);
}

#[test]
fn an_unused_window_does_not_grow() {
    let mut trace = linear(40);
    trace.cwnd_limited = false;
    trace.rounds(5, ms(100));
    assert_eq!(trace.window.cwnd, 40_000);
}

/// A loss halves, a timeout goes back to slow start; two segments are the least.
#[test]
fn losses() {
    let mut trace = linear(40);
    trace.loss();
    assert_eq!(trace.window.cwnd, 20_000);
    trace.timeout();
    assert_eq!((trace.window.cwnd, trace.window.ssthresh), (1000, 10_000));
    let windows = trace.rounds(9, ms(100));
    assert_eq!(windows, [1000, 2000, 2000, 4000, 4000, 8000, 8000, 10_000, 11_000]);
    let one = Fraction::from_millionths(1_000_000);
    let strict = Vegas { alpha: one, beta: one, gamma: one, noise: Duration::ZERO };
    let mut trace = Trace::avoiding(&CongestionChoice::from(strict), 8);
    trace.ack(1, ms(100), false);
    trace.loss();
    trace.rounds(10, ms(1000));
    assert_eq!((trace.window.cwnd, trace.window.ssthresh), (2000, 2000));
}

/// A reduction that was undone does not end slow start either.
#[test]
fn an_undo_resumes_slow_start() {
    let mut trace = Trace::new(&CongestionChoice::from(Vegas::default()), 10);
    trace.rounds(2, ms(100));
    let before = trace.window;
    assert_eq!(before.cwnd, 20_000);
    trace.loss();
    trace.undo(before);
    assert_eq!(trace.window, before);
    assert_eq!(trace.rounds(2, ms(100)), [20_000, 40_000]);
}

/// 25 ms of each delay are noise, with 40 segments. At 125 ms nothing is left: one more. At 130 ms 40·5/130 = 1.538: one more. At 135 ms 40·10/135 =
/// 2.963: stay. At 140 ms 40·15/140 = 4.286: one less.
#[test]
fn noise_is_no_queue() {
    for (rtt, after) in [(125, 41_000), (130, 41_000), (135, 40_000), (140, 39_000)] {
        let vegas = Vegas { noise: ms(25), ..Vegas::default() };
        let mut trace = Trace::avoiding(&CongestionChoice::from(vegas), 80);
        trace.ack(1, ms(100), false);
        trace.loss();
        trace.round(ms(rtt));
        assert_eq!(trace.window.cwnd, after, "{rtt} ms");
    }
}

#[test]
fn noise_has_bounds() {
    let read = |text| Vegas::read(&mut Arguments::read(text).unwrap());
    assert_eq!(read("vegas(noise=200us)").unwrap().noise, Duration::from_micros(200));
    for text in ["vegas(noise=1001ms)", "vegas(noise=1500ns)", "vegas(noise=x)"] {
        let error = read(text).unwrap_err().to_string();
        assert!(error.contains("noise"), "{text}: {error}");
    }
}

#[test]
fn texts() {
    let noise = Duration::from_micros(200);
    assert_eq!(
        CongestionChoice::from(Vegas { noise, ..Vegas::default() }).to_string(),
        "vegas(noise=200us)"
    );
    assert_eq!(CongestionChoice::from(Vegas::default()).to_string(), "vegas");
    let alpha = Fraction::from_millionths(1_500_000);
    assert_eq!(
        CongestionChoice::from(Vegas { alpha, ..Vegas::default() }).to_string(),
        "vegas(alpha=1.5)"
    );
}
