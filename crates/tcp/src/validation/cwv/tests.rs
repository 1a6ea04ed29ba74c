//! RFC 7661 by hand: segments of 1000 bytes, a round trip of 100 ms, so a sampling period of a second.

use super::*;
use std::vec::Vec;

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

fn window(segments: u64) -> Window {
    Window { cwnd: segments * 1000, cwnd_cnt: 0, ssthresh: u64::MAX, mss: 1000 }
}

/// `segments` are acknowledged at a time, which begins a round trip.
fn round(unit: &mut Cwv, window: &Window, millis: u64, segments: u64) -> Option<WindowBounds> {
    let ack = AckContext {
        now: at(millis),
        newly_delivered: segments * 1000,
        round_start: true,
        estimate: Some(crate::rto::Estimate::first(Duration::from_millis(100))),
        ..AckContext::default()
    };
    unit.on_ack(window, &ack)
}

fn silence(from: u64, until: u64) -> IdlePeriod {
    IdlePeriod {
        now: at(until),
        since: at(from),
        estimate: Some(crate::rto::Estimate::first(Duration::from_millis(100))),
    }
}

#[test]
fn the_largest_round_trip_of_a_second() {
    let (mut unit, window) = (Cwv::default(), window(40));
    // The first is not over before the second begins: until then nothing is known.
    round(&mut unit, &window, 0, 30);
    assert!(unit.samples.is_none() && unit.nonvalidated.is_none());
    round(&mut unit, &window, 100, 10);
    assert_eq!((unit.pipe_ack, unit.nonvalidated), (30_000, None));
    for millis in (200..=1100).step_by(100) {
        round(&mut unit, &window, millis, 10);
        assert_eq!((unit.pipe_ack, unit.nonvalidated), (30_000, None), "{millis}");
    }
    // 30 segments were known at 0.1 s: at 1.2 s they are too old. 10 are less than half of 40.
    round(&mut unit, &window, 1200, 10);
    assert_eq!((unit.pipe_ack, unit.nonvalidated), (10_000, Some(at(1200))));
    // Half of the window is enough.
    round(&mut unit, &window, 1300, 20);
    assert_eq!(unit.nonvalidated, Some(at(1200)));
    round(&mut unit, &window, 1400, 10);
    assert_eq!((unit.pipe_ack, unit.nonvalidated), (20_000, None));
}

#[test]
fn a_long_round_trip_has_a_long_period() {
    assert_eq!(period(None), Duration::from_secs(1));
    assert_eq!(period(Some(Duration::from_millis(333))), Duration::from_secs(1));
    assert_eq!(period(Some(Duration::from_millis(500))), Duration::from_millis(1500));
}

/// Section 4.4.1: max(pipeACK, LossFlightSize)/2, and with R = 2 of 12 segments sent again (12 − 2)/2 = 5 at the end.
#[test]
fn a_loss_reduces_what_was_used() {
    let (mut unit, mut window) = (Cwv::default(), window(40));
    for millis in [0, 100, 200] {
        round(&mut unit, &window, millis, 12);
    }
    assert_eq!((unit.on_mark(8_000), unit.on_mark(15_000)), (12_000, 15_000));
    assert_eq!(unit.on_loss(8_000, 7_000), 12_000);
    window.ssthresh = 6_000;
    assert_eq!(unit.on_recovered(&window, 9_000), Some(5_000));
    // Then nothing is known: the standard rules.
    assert_eq!(unit.on_loss(8_000, 9_000), 8_000);
    assert_eq!(unit.on_recovered(&window, 11_000), None);
}

/// In the validated phase a reduction is nobody else's business.
#[test]
fn a_window_that_is_used_is_left_alone() {
    let (mut unit, window) = (Cwv::default(), window(20));
    for millis in [0, 100, 200] {
        round(&mut unit, &window, millis, 12);
    }
    assert_eq!(unit.on_loss(8_000, 0), 8_000);
    assert_eq!(unit.on_recovered(&window, 2_000), None);
}

/// Section 4.4.3, after a silence. 40 segments are kept for five minutes; then 20, with ssthresh at 30; after ten minutes 10, which is IW, and not less.
#[test]
fn five_minutes() {
    for (seconds, cwnd, ssthresh) in [
        (2, None, 0),
        (300, None, 0),
        (301, Some(20_000), 30_000),
        (601, Some(10_000), 30_000),
        (100_000, Some(10_000), 30_000),
    ] {
        let (mut unit, window) = (Cwv::default(), window(40));
        for millis in [0, 100, 200] {
            round(&mut unit, &window, millis, 40);
        }
        let silence = silence(200, seconds * 1000);
        let worth = unit.on_restart(&window, &silence);
        let cwnd = cwnd.unwrap_or(Window::WIDEST);
        assert_eq!(
            worth,
            WindowBounds { most_cwnd: cwnd, least_ssthresh: ssthresh },
            "{seconds} s"
        );
        // A second call before anything has left changes nothing.
        let after = Window { cwnd: window.cwnd.min(worth.most_cwnd), ..window };
        assert_eq!(unit.on_restart(&after, &silence), WindowBounds::UNCHANGED);
    }
    // A window below IW is not widened.
    let (mut unit, small) = (Cwv::default(), window(6));
    round(&mut unit, &small, 0, 6);
    round(&mut unit, &small, 100, 6);
    let worth = unit.on_restart(&small, &silence(100, 301_000));
    assert_eq!(worth.most_cwnd, 6_000);
}

/// The same for a sender that is not silent, but sends too little: two segments a round trip with a window of 40.
#[test]
fn five_minutes_of_little() {
    let (mut unit, window) = (Cwv::default(), window(40));
    let mut found = Vec::new();
    for millis in (0..=610_000).step_by(100) {
        if let Some(worth) = round(&mut unit, &window, millis, 2) {
            found.push((millis, worth));
        }
    }
    // The first sample is there at 0.1 s.
    let worth = WindowBounds { most_cwnd: 20_000, least_ssthresh: 30_000 };
    assert_eq!(found, [(300_100, worth), (600_100, worth)]);
}
