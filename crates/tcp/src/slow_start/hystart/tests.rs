//! Examples of Linux' formulas by hand, and a bottleneck in a loop with a sender.

use super::*;
use crate::slow_start::test_bottleneck::{PLAIN, Path};

const MSS: u64 = 1000;

fn window(segments: u64) -> Window {
    Window { cwnd: segments * MSS, cwnd_cnt: 0, ssthresh: u64::MAX, mss: 1000 }
}

/// Acknowledgements of a round, one each `gap` microseconds from `start` milliseconds on. Says at which one slow start ended.
fn round(
    unit: &mut HyStart,
    window: &mut Window,
    start: u64,
    gap: u64,
    acks: u64,
    rtt: u64,
) -> Option<u64> {
    for i in 0..acks {
        let rtt = Duration::from_millis(rtt);
        let ack = AckContext {
            now: Instant::ZERO + Duration::from_micros(start * 1000 + i * gap),
            rtt: Some(rtt),
            estimate: Some(crate::rto::Estimate::first(rtt)),
            round_start: i == 0,
            ..AckContext::default()
        };
        unit.on_sample(window, &ack);
        if !window.in_slow_start() {
            return Some(i);
        }
    }
    None
}

/// The least round-trip time is 20 ms, and the allowance 1 ms (16 segments of 1000 bytes: 262,144 bytes at 1.6 MB/s take longer). So the limit is
/// 10.5 ms: the twelfth acknowledgement of one each millisecond is 11 ms after the first.
#[test]
fn a_train_of_half_a_round_trip_ends_slow_start() {
    let (mut unit, mut w) = (HyStart::new(false), window(16));
    assert_eq!(round(&mut unit, &mut w, 100, 1000, 30, 20), Some(11));
    assert_eq!(w.ssthresh, w.cwnd);
}

/// A paced sender spaces the acknowledgements itself: 21 ms are the limit, and the 23rd acknowledgement is the first beyond.
#[test]
fn a_paced_train_lasts_a_whole_round_trip() {
    let (mut unit, mut w) = (HyStart::new(true), window(16));
    assert_eq!(round(&mut unit, &mut w, 100, 1000, 30, 20), Some(22));
}

#[test]
fn a_gap_ends_the_train_until_the_next_round() {
    let (mut unit, mut w) = (HyStart::new(false), window(16));
    assert_eq!(round(&mut unit, &mut w, 100, 2001, 30, 20), None);
    assert_eq!(round(&mut unit, &mut w, 200, 2000, 30, 20), Some(6));
}

#[test]
fn small_windows_are_left_alone() {
    let (mut unit, mut w) = (HyStart::new(false), window(15));
    assert_eq!(round(&mut unit, &mut w, 100, 1000, 30, 20), None);
}

/// At 400 MB/s (4,000,000 bytes in 20 ms, twice) the four super-segments take 655.36 µs: 10.33 ms are the limit.
#[test]
fn the_allowance_shrinks_with_the_rate() {
    let (mut unit, mut w) = (HyStart::new(false), window(4000));
    assert_eq!(round(&mut unit, &mut w, 100, 10, 2000, 20), Some(1033));
}

/// The ninth sample of a round is the first that is judged. An eighth of 80 ms is 10.
#[test]
fn a_risen_delay_ends_slow_start() {
    for (rtt, ended) in [(90, None), (91, Some(8))] {
        let (mut unit, mut w) = (HyStart::new(false), window(16));
        assert_eq!(round(&mut unit, &mut w, 100, 3000, 10, 80), None);
        assert_eq!(round(&mut unit, &mut w, 200, 3000, 10, rtt), ended, "{rtt} ms");
    }
}

#[test]
fn the_delay_may_rise_by_4_to_16_ms() {
    for (before, after, ended) in
        [(8, 12, None), (8, 13, Some(8)), (400, 416, None), (400, 417, Some(8))]
    {
        let (mut unit, mut w) = (HyStart::new(false), window(16));
        assert_eq!(round(&mut unit, &mut w, 100, 3000, 10, before), None);
        assert_eq!(round(&mut unit, &mut w, 900, 3000, 10, after), ended, "{before}, {after}");
    }
}

/// One low sample among the first eight hides a queue, as it does in Linux.
#[test]
fn one_low_sample_keeps_the_delay_silent() {
    let (mut unit, mut w) = (HyStart::new(false), window(16));
    assert_eq!(round(&mut unit, &mut w, 100, 3000, 10, 80), None);
    assert_eq!(round(&mut unit, &mut w, 200, 3000, 1, 80), None);
    for i in 0..20 {
        let now = Instant::ZERO + Duration::from_millis(210 + 3 * i);
        let rtt = Some(Duration::from_millis(120));
        unit.on_sample(&mut w, &AckContext { now, rtt, ..AckContext::default() });
    }
    assert!(w.in_slow_start());
}

#[test]
fn it_ends_slow_start_once_until_a_timeout() {
    let (mut unit, mut w) = (HyStart::new(false), window(16));
    round(&mut unit, &mut w, 100, 1000, 30, 20);
    for (timeout, again) in [(false, None), (true, Some(11))] {
        unit.on_reduction(timeout);
        w.ssthresh = 100_000;
        assert_eq!(round(&mut unit, &mut w, 200, 1000, 30, 20), again);
    }
}

#[test]
fn the_window_doubles_meanwhile() {
    let mut w = window(100);
    assert_eq!(HyStart::new(false).grow(&mut w, 64_000, &AckContext::default()), 0);
    assert_eq!(w.cwnd, 164_000);
}

fn end(path: Path) -> Option<(u64, u64)> {
    path.run(&mut HyStart::new(path.paced))
}

/// The path holds 100 segments. The rounds of 10, 20 and 40 acknowledgements are too short. In the fourth one, of 80, the limit is 50.5 ms after the first:
/// the window has grown by as many segments as milliseconds, from 80.
#[test]
fn a_golden_trace_of_a_full_bottleneck() {
    assert_eq!(end(PLAIN), Some((131, 451)));
}

/// Segments that leave eight at a time come back one by one: the bottleneck spaces them. Each of them waits for seven others at most.
#[test]
fn super_segments_change_little() {
    let (window, _) = end(Path { burst: 8, ..PLAIN }).unwrap();
    assert!((110..=140).contains(&window), "{window}");
}

/// Without a train the delay tells, a round trip later or two: a round's first acknowledgements meet what the one before has left in the queue.
#[test]
fn stretched_acknowledgements_and_jitter_break_the_train_and_the_delay_ends_it() {
    for (what, path, most) in [
        ("stretched", Path { stretch: 8, ..PLAIN }, 350),
        ("jitter", Path { jitter: 30, ..PLAIN }, 350),
        ("both, and super-segments", Path { burst: 8, stretch: 8, jitter: 30, ..PLAIN }, 600),
    ] {
        let (window, after) = end(path).unwrap_or_else(|| panic!("{what}: no end"));
        assert!((140..=most).contains(&window), "{what}: {window} after {after} ms");
    }
}

/// The train of a sender that paces has to last a whole round trip: 101 ms in the fifth round, which begins with 160 segments.
#[test]
fn a_paced_start_ends_a_round_later() {
    assert_eq!(end(Path { paced: true, ..PLAIN }), Some((262, 602)));
}

/// An application that sends a fifth of what the bottleneck takes, in bursts: no train, and no queue. With a half, slow start ends before the application is
/// what holds the sender back.
#[test]
fn an_application_that_sends_little_ends_nothing() {
    assert_eq!(end(Path { application: Some(2), ..PLAIN }), None);
    assert_eq!(end(Path { application: Some(2), stretch: 4, ..PLAIN }), None);
    assert_eq!(end(Path { application: Some(5), ..PLAIN }), end(PLAIN));
}
