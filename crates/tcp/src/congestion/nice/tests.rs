//! Nice by hand: f = 0.5, t = 0.1, segments of 1000 bytes, round-trip times from 100 to 200 ms: delayed is what takes more than 110.

use super::super::test_trace::{Trace, ms};
use super::*;
use crate::congestion::CongestionChoice;
use std::string::ToString;
use std::vec::Vec;

/// Linear, with `segments` segments, and both ends of the round-trip times seen.
fn nice(segments: u64) -> Trace {
    let mut trace = Trace::avoiding(&CongestionChoice::from(Nice::default()), segments * 2);
    trace.ack(1, ms(100), false);
    trace.ack(1, ms(200), false);
    trace.loss();
    trace
}

/// A round of ten packets, `delayed` of which took 111 ms, the others 110; then the acknowledgement that ends it.
fn round(trace: &mut Trace, delayed: u64) {
    for i in 0..10 {
        let rtt = if i < delayed { ms(111) } else { ms(110) };
        trace.ack(1000, rtt, i == 9);
    }
}

/// Five of ten are no more than half; with six the window is halved. At 110 ms 20 segments keep 20·10/110 = 1.8 in queues: fewer than α.
#[test]
fn more_than_half() {
    for (delayed, after) in [(0, 21_000), (5, 21_000), (6, 10_000), (9, 10_000)] {
        let mut trace = nice(20);
        round(&mut trace, delayed);
        assert_eq!(trace.window.cwnd, after, "{delayed}");
    }
}

/// Only what takes longer than the threshold counts: all at 110 ms are 10% of the way, all at 200 the whole.
#[test]
fn the_threshold() {
    let mut trace = nice(20);
    trace.rounds(1, ms(110));
    assert_eq!(trace.window.cwnd, 21_000);
    trace.rounds(1, ms(200));
    // The first acknowledgement of a round ends the one before: one of 21 was delayed. Vegas: 110 is the least, 21·10/110 = 1.9.
    assert_eq!(trace.window.cwnd, 22_000);
    trace.rounds(1, ms(200));
    assert_eq!(trace.window.cwnd, 11_000);
}

/// With 10 ms of noise 120 ms are no delay, and 121 are. At 120 ms 21 segments keep 21·10/120 = 1.75 in queues, and Vegas lets the window grow.
#[test]
fn noise_is_no_delay() {
    for (rtt, after) in [(120, 22_000), (121, 10_500)] {
        let vegas = Vegas { noise: ms(10), ..Vegas::default() };
        let mut trace =
            Trace::avoiding(&CongestionChoice::from(Nice { vegas, ..Nice::default() }), 42);
        trace.ack(1, ms(100), false);
        trace.ack(1, ms(200), false);
        trace.loss();
        for i in 0..10 {
            trace.ack(1000, ms(rtt), i == 9);
        }
        assert_eq!(trace.window.cwnd, after, "{rtt} ms");
    }
}

/// From four segments, with all that can be seen delayed: 2, 1. Then two are tried, and one segment takes 2, 4, 8, 16, 32, 48, 48 round trips of 200
/// ms: 1000 bytes in 0.4 s are 2500 bytes per second. Then back, without queues.
#[test]
fn below_one_segment() {
    one_in_n_round_trips(false);
}

/// The same where a rest of n round trips is longer than a retransmission timeout, so that the connection takes it for a silence.
#[test]
fn a_rest_is_no_silence() {
    one_in_n_round_trips(true);
}

fn one_in_n_round_trips(silences: bool) {
    let mut trace = nice(4);
    let mut rounds = |count: usize, rtt: Duration| {
        let one = |_| {
            trace.now += rtt;
            let cwnd = trace.window.cwnd;
            if silences && trace.controller.pacing_rate(&trace.window).is_some() {
                // Asked again and again while what is to leave is held back.
                silence(&mut trace);
                silence(&mut trace);
            }
            trace.ack(cwnd, rtt, true);
            (trace.window.cwnd, trace.controller.pacing_rate(&trace.window))
        };
        (0..count).map(one).collect::<Vec<_>>()
    };
    // Two that are to show what one does not are not spread.
    const TOGETHER: Option<u64> = Some(1 << 40);
    let alternating = |rates: &[u64]| {
        let pair = |&rate: &u64| [(2000, TOGETHER), (1000, Some(rate))];
        rates.iter().flat_map(pair).collect::<Vec<_>>()
    };
    assert_eq!(rounds(2, ms(200)), [(2000, None), (1000, None)]);
    // The last two: 1000 bytes in 9.6 s.
    assert_eq!(rounds(14, ms(200)), alternating(&[2500, 1250, 625, 312, 156, 104, 104]));
    // 24, 12, 6, 3 round trips of 100 ms.
    assert_eq!(rounds(8, ms(100)), alternating(&[416, 833, 1666, 3333]));
    let back = [(2000, TOGETHER), (1000, None), (2000, TOGETHER), (3000, None), (4000, None)];
    assert_eq!(rounds(5, ms(100)), back);
}

/// Nothing was outstanding for longer than a retransmission timeout; the initial window is no less than what there is.
fn silence(trace: &mut Trace) {
    trace.event(CongestionEvent::Unvalidated { cwnd: 10_000, ssthresh: 0, idle: true });
}

/// One segment in two round trips, and a timeout: slow start doubles every other round trip, rests or not, and ends with two segments.
#[test]
fn a_rest_does_not_begin_slow_start_anew() {
    let mut trace = nice(4);
    for _ in 0..4 {
        trace.now += ms(200);
        let cwnd = trace.window.cwnd;
        trace.ack(cwnd, ms(200), true);
    }
    let one_in_two = Some(2500);
    let seen = |trace: &Trace| (trace.window.cwnd, trace.controller.pacing_rate(&trace.window));
    assert_eq!(seen(&trace), (1000, one_in_two));
    trace.timeout();
    trace.now += ms(400);
    silence(&mut trace);
    trace.ack(1000, ms(200), true);
    assert_eq!(seen(&trace), (1000, one_in_two));
    trace.now += ms(400);
    silence(&mut trace);
    trace.ack(1000, ms(200), true);
    assert_eq!(trace.window.cwnd, 2000);
}

#[test]
fn texts() {
    assert_eq!(CongestionChoice::from(Nice::default()).to_string(), "nice");
    let vegas = Vegas { beta: Fraction::from_millionths(3_000_000), ..Vegas::default() };
    let threshold = Fraction::from_millionths(200_000);
    let nice = Nice { vegas, threshold, ..Nice::default() };
    assert_eq!(CongestionChoice::from(nice).to_string(), "nice(beta=3, threshold=0.2)");
}
