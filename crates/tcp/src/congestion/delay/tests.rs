use super::super::test_trace::ms;
use super::*;

fn ack(now: Instant, rtt: Duration, stamps: Option<(u32, u32)>) -> AckContext {
    AckContext {
        now,
        acked: 1000,
        rtt: Some(rtt),
        estimate: Some(crate::rto::Estimate::first(rtt)),
        min_rtt: Some(rtt),
        timestamps: stamps.map(|(value, echo)| Timestamps { value, echo }),
        mss: 1000,
        ..AckContext::default()
    }
}

/// Data leaves every 100 ms at our t and arrives 30 + q later, on a clock that is 7 000 000 ahead and about to wrap. The answer takes 50 ms
/// more. Only q shows, and nothing of what the receiver waits: the second of two segments is what counts.
#[test]
fn one_way_delays() {
    let mut meter = Meter::new(DelaySource::OneWay);
    let ahead = u32::MAX - 500;
    for (i, queued) in [0u32, 5, 40, 0, 12, 0, 3, 250, 0, 0].into_iter().enumerate() {
        let sent = 1000 + 100 * i as u32;
        let arrived = sent + 30 + queued;
        let now = Instant::from_millis(u64::from(arrived + 50));
        let sample = meter
            .sample(&ack(
                now,
                ms(80 + u64::from(queued)),
                Some((arrived.wrapping_add(ahead), sent - 40)),
            ))
            .unwrap();
        assert_eq!(sample, Sample { delay: i64::from(queued) * 1_000_000, restarted: false });
    }
}

/// A clock that ticks every 10 ms is no use: after two seconds round trips are measured instead. So are they without the option.
#[test]
fn clocks_that_cannot_be_used() {
    let mut meter = Meter::new(DelaySource::OneWay);
    let mut restarts = 0;
    for i in 0..100u32 {
        let sent = 100 * i;
        let now = Instant::from_millis(u64::from(sent + 80));
        let sample = meter.sample(&ack(now, ms(80), Some((sent / 10, sent)))).unwrap();
        restarts += i32::from(sample.restarted);
        assert_eq!(sample.delay == 80_000_000, i >= 20, "{i}");
    }
    assert_eq!(restarts, 1);
    let mut meter = Meter::new(DelaySource::OneWay);
    let sample = meter.sample(&ack(Instant::ZERO, ms(80), None)).unwrap();
    assert_eq!(sample, Sample { delay: 80_000_000, restarted: true });
    assert!(!meter.sample(&ack(Instant::ZERO, ms(80), None)).unwrap().restarted);
}

/// A minimum is forgotten after ten minutes, give or take the one it was seen in.
#[test]
fn the_base_forgets() {
    let mut base = BaseDelay::new();
    base.add(Instant::from_secs(100), 10);
    for minute in 0..10 {
        base.add(Instant::from_secs(110 + 60 * minute), 30);
        assert_eq!(base.least(), 10, "{minute}");
    }
    base.add(Instant::from_secs(110 + 600), 30);
    assert_eq!(base.least(), 30);
    // After an hour of silence nothing is left.
    base.add(Instant::from_secs(4000), 50);
    assert_eq!(base.least(), 50);
    base.add(Instant::from_secs(4050), 60);
    assert_eq!(base.least(), 50);
    // A clock that goes back does no harm.
    base.add(Instant::ZERO, 70);
    assert_eq!(base.least(), 50);
}

#[test]
fn the_present_is_four_samples_of_a_round_trip() {
    let mut current = CurrentDelay::new();
    let mut add = |at, delay| current.add(Instant::from_millis(at), delay, Some(ms(100)));
    assert_eq!(
        [add(1000, 5), add(1010, 9), add(1020, 8), add(1030, 7), add(1040, 6)],
        [5, 5, 5, 5, 6]
    );
    // All others are older than a round trip now.
    assert_eq!(add(1200, 90), 90);
}

/// A segment alone: nothing else is acknowledged, and nothing else on its way.
#[test]
fn alone() {
    for (acked, in_flight, alone) in [(1000, 0, true), (1001, 0, false), (1000, 1, false)] {
        let ack = AckContext { acked, in_flight, ..ack(Instant::ZERO, ms(1), None) };
        assert_eq!(is_alone(&ack), alone);
    }
}
