//! Prague by hand: g = 1/16, segments of 1000 bytes.

use super::super::test_trace::{Trace, ms};
use super::*;
use crate::congestion::{CongestionChoice, Entry};
use std::string::ToString;
use std::vec::Vec;

fn choice(text: &str) -> CongestionChoice {
    let mut arguments = crate::arguments::Arguments::read(text).unwrap();
    (Entry::of::<Prague>().read)(&mut arguments).unwrap()
}

/// In congestion avoidance with α known: a first mark outside slow start takes half, as α is one.
fn averaging(text: &str, segments: u64) -> Trace {
    let mut trace = Trace::avoiding(&choice(text), segments);
    trace.marked = Some(0);
    trace
}

/// A round trip of `rtt` in which `marked` of the segments carry marks. A reduction that is due comes at its end.
fn round(trace: &mut Trace, marked: u64, rtt: u64) -> u64 {
    let segments = trace.window.cwnd / 1000;
    trace.now += ms(rtt);
    for i in 0..segments {
        trace.marked = Some(if i < marked { 1000 } else { 0 });
        trace.ecn_echo = i < marked;
        trace.ack(1000, ms(rtt), i == 0);
        if i == 0 && marked > 0 {
            trace.mark();
        }
    }
    trace.window.cwnd
}

/// A golden trace at 100 ms, α from the start on 0.5: every round a twentieth of the segments is marked.
///
/// The first round: α is still 0.5, the mark takes a quarter of 100 segments. What is acknowledged behind it adds less than a segment. At the start of
/// each later round α moves by (F − α)/16, and the mark takes α/2.
#[test]
fn a_golden_trace() {
    let mut trace = averaging("prague(alpha=0.5, fallback=off)", 100);
    let course: Vec<u64> = (0..6).map(|_| round(&mut trace, 5, 100)).collect();
    let expected = golden(100_000, 500_000, 5, 6);
    for (at, (seen, expected)) in course.iter().zip(&expected).enumerate() {
        assert!(seen.abs_diff(*expected) <= 1500, "{at}: {course:?} {expected:?}");
    }
}

/// The same in real numbers: α in millionths, the window in bytes.
fn golden(cwnd: u64, alpha: u64, marked: u64, rounds: usize) -> Vec<u64> {
    let (mut cwnd, mut alpha) = (cwnd as f64, alpha as f64 / 1e6);
    let mut before = (0.0, 0.0);
    let mut course = Vec::new();
    for number in 0..rounds {
        let segments = (cwnd / 1000.0).floor();
        if number > 0 {
            let share: f64 = before.1 / before.0;
            alpha += (share - alpha) / 16.0;
        }
        cwnd *= 1.0 - alpha / 2.0;
        cwnd += (segments - marked as f64) * 1000.0 * 1000.0 / cwnd;
        before = (segments, marked as f64);
        course.push(cwnd as u64);
    }
    course
}

/// The first mark ends slow start and takes nothing. A round trip later the window comes down by the share of marks in it: all of them halve it, one of
/// fifty hardly changes it.
#[test]
fn the_start_does_not_collapse_on_the_first_mark() {
    for (marked, least, most) in [(50, 25_000, 26_500), (1, 49_000, 51_000), (25, 37_000, 39_000)] {
        let mut trace = Trace::new(&choice("prague"), 50);
        trace.marked = Some(0);
        trace.mark();
        assert_eq!((trace.window.cwnd, trace.window.ssthresh), (50_000, 50_000));
        // What was in flight is acknowledged within a round trip; then the share is known.
        trace.now += ms(20);
        for i in 0..50 {
            trace.marked = Some(if i < marked { 1000 } else { 0 });
            trace.ecn_echo = i < marked;
            trace.ack(1000, ms(40), false);
        }
        trace.now += ms(20);
        trace.marked = Some(0);
        trace.ecn_echo = false;
        trace.ack(1000, ms(40), true);
        assert!((least..=most).contains(&trace.window.cwnd), "{marked}: {}", trace.window.cwnd);
    }
}

/// A segment a round trip at 25 ms and more; at 5 ms a 25th of it: as much in 25 ms as a fifth, which is what keeps the rate growing alike.
#[test]
fn growth_does_not_favour_short_round_trips() {
    let grown = |rtt: u64, rounds: usize| {
        let mut trace = averaging("prague", 100);
        trace.rounds(rounds, ms(rtt));
        trace.window.cwnd - 100_000
    };
    assert_eq!((grown(25, 1), grown(100, 1), grown(50, 3)), (1000, 1000, 3000));
    assert_eq!((grown(5, 24), grown(5, 26)), (0, 1000));
    let mut trace = averaging("prague(rtt=0)", 100);
    assert_eq!(trace.rounds(1, ms(5)), [101_000]);
}

/// Growth goes on while the window is reduced for a mark, and marked bytes do not count.
#[test]
fn growth_is_for_unmarked_bytes_in_every_state() {
    let mut trace = averaging("prague(alpha=0)", 100);
    trace.mark();
    for i in 0..100 {
        trace.marked = Some(if i % 2 == 0 { 1000 } else { 0 });
        trace.ack(1000, ms(50), false);
    }
    assert_eq!(trace.window.cwnd, 100_000);
    (0..50).for_each(|_| {
        trace.marked = Some(0);
        trace.ack(1000, ms(50), false);
    });
    assert_eq!(trace.window.cwnd, 101_000);
}

/// Reductions come once a round trip, or once in 25 ms where that is longer.
#[test]
fn reductions_keep_their_distance() {
    let mut trace = averaging("prague(alpha=0.5, fallback=off)", 100);
    trace.ack(1000, ms(5), false);
    trace.mark();
    assert_eq!(trace.window.cwnd, 75_000);
    trace.now += ms(24);
    trace.mark();
    assert_eq!(trace.window.cwnd, 75_000);
    trace.now += ms(1);
    trace.mark();
    assert_eq!(trace.window.cwnd, 56_250);
}

/// A mark that comes 20 ms after a reduction, which is a round trip, is answered 5 ms later, by an acknowledgement without a mark. Nothing is reduced
/// twice for it, and a loss answers it too. One that comes after 19 ms is of a packet that left before the reduction.
#[test]
fn a_mark_that_comes_too_early_is_answered_in_time() {
    let early = |text: &str, wait: u64| {
        let mut trace = averaging(text, 100);
        trace.ack(1000, ms(20), false);
        trace.mark();
        trace.now += ms(wait);
        trace.mark();
        assert_eq!(trace.window.cwnd, 75_000);
        trace
    };
    let mut trace = early("prague(alpha=0.5, fallback=off)", 20);
    for (wait, cwnd) in [(4, 75_000), (1, 56_250), (25, 56_250), (100, 56_250)] {
        trace.now += ms(wait);
        trace.ack(1, ms(20), false);
        assert_eq!(trace.window.cwnd, cwnd, "after {wait} ms more");
    }
    let mut trace = early("prague(alpha=0.5, fallback=off)", 20);
    trace.loss();
    let cwnd = trace.window.cwnd;
    trace.now += ms(30);
    trace.ack(1, ms(20), false);
    assert_eq!(trace.window.cwnd, cwnd);
    let mut trace = early("prague(alpha=0.5, fallback=off)", 19);
    trace.now += ms(30);
    trace.ack(1, ms(20), false);
    assert_eq!(trace.window.cwnd, 75_000);
}

/// RFC 9331 section 4.3: a loss halves, whatever α is; a timeout leaves one segment; two segments are the least after marks.
#[test]
fn losses_are_answered_as_by_reno() {
    let mut trace = averaging("prague(alpha=0)", 100);
    trace.loss();
    assert_eq!(trace.window.cwnd, 50_000);
    trace.timeout();
    assert_eq!((trace.window.cwnd, trace.window.ssthresh), (1000, 25_000));
    let mut trace = averaging("prague", 2);
    trace.mark();
    assert_eq!(trace.window.cwnd, 2000);
}

/// With RFC 3168's echo it is Reno, and says so.
#[test]
fn without_accurate_feedback_it_is_classic() {
    let mut trace = Trace::avoiding(&choice("prague(alpha=0)"), 100);
    assert_eq!(trace.controller.name(), "prague");
    trace.ecn_echo = true;
    trace.ack(1000, ms(50), false);
    trace.mark();
    assert_eq!(trace.window.cwnd, 50_000);
    assert_eq!(trace.controller.name(), CLASSIC_NAME);
}

/// Round-trip times that swing by milliseconds far above the least one are a classic queue's: after a while a mark halves. Ones that stay within
/// half a millisecond of it are not.
#[test]
fn a_classic_queue_is_found_out() {
    let after = |swing: u64, fallback: &str| {
        let mut trace = averaging(&std::format!("prague(alpha=0, fallback={fallback})"), 100);
        trace.ack(1000, ms(20), true);
        trace.mark();
        for number in 0..30 {
            trace.now += ms(50);
            for i in 0..100 {
                let rtt = 20_000 + if (i + number) % 2 == 0 { swing } else { swing * 3 };
                trace.ack(1000, Duration::from_micros(rtt), i == 0);
            }
        }
        let before = trace.window.cwnd;
        trace.now += ms(50);
        trace.mark();
        trace.window.cwnd as f64 / before as f64
    };
    assert!((after(10_000, "on") - 0.5).abs() < 0.01, "{}", after(10_000, "on"));
    assert!(after(10_000, "off") > 0.99);
    assert!(after(100, "on") > 0.99, "{}", after(100, "on"));
}

/// A window in a round trip, and two while it doubles.
#[test]
fn the_pace() {
    let mut trace = Trace::new(&choice("prague"), 50);
    assert_eq!(trace.controller.pacing_rate(&trace.window), None);
    trace.cwnd_limited = false;
    trace.ack(1000, ms(50), false);
    assert_eq!(trace.controller.pacing_rate(&trace.window), Some(2_000_000));
    trace.window.ssthresh = 50_000;
    assert_eq!(trace.controller.pacing_rate(&trace.window), Some(1_000_000));
}

#[test]
fn texts() {
    assert_eq!(CongestionChoice::from(Prague::default()).to_string(), "prague");
    let other = Prague { rtt: ms(5), fallback: false, ..Prague::default() };
    assert_eq!(CongestionChoice::from(other).to_string(), "prague(rtt=5ms, fallback=off)");
}
