//! BBR against its draft: scripted samples for each decision, and a bottleneck in virtual time for the whole.

use super::super::test_bottleneck;
use super::super::test_trace::{Trace, ms};
use super::*;
use crate::congestion::CongestionChoice;
use std::vec::Vec;

fn bbr() -> CongestionChoice {
    CongestionChoice::from(Bbr::default())
}

/// A round trip of 100 ms in which a rate of `rate` bytes per second shows: one acknowledgement for everything.
fn round(trace: &mut Trace, rate: u64) {
    trace.now += ms(100);
    trace.rate = Some(rate);
    let bytes = rate / 10;
    trace.ack(bytes, ms(100), true);
}

/// STARTUP: the pacing rate is 2.885 times the bandwidth. It ends after three rounds without a quarter more: 1.0, 1.25 (a quarter), 1.5, 1.56
/// and 1.56 MB/s (none of them a quarter above 1.25).
#[test]
fn startup_ends_with_a_full_pipe() {
    let mut trace = Trace::new(&bbr(), 10);
    let rate = |trace: &Trace| trace.controller.pacing_rate(&trace.window).unwrap();
    // A window of 10 segments in a millisecond, before there is a round-trip time.
    assert_eq!(rate(&trace), 28_850_000);
    trace.flight = Some(1 << 30);
    for (bandwidth, paced) in [
        (1_000_000, 2_885_000),
        (1_250_000, 3_606_250),
        (1_500_000, 4_327_500),
        (1_560_000, 4_500_600),
    ] {
        round(&mut trace, bandwidth);
        assert_eq!(rate(&trace), paced);
    }
    round(&mut trace, 1_560_000);
    // DRAIN: 1/2.885 = 0.346 of 1560000.
    assert_eq!(rate(&trace), 539_760);
    // And on to PROBE_BW when the flight is no more than the product of 156000 bytes, and three quanta (of two segments).
    trace.flight = Some(163_000 + 156_000);
    round(&mut trace, 1_560_000);
    assert_eq!(rate(&trace), 539_760);
    trace.flight = Some(162_000 + 156_000);
    round(&mut trace, 1_560_000);
    assert_eq!(rate(&trace), 1_950_000, "the first phase: 5/4");
    // The window grows by what is delivered, up to twice the product and three quanta: 2·156000 + 6000.
    for _ in 0..3 {
        round(&mut trace, 1_560_000);
    }
    assert_eq!(trace.window.cwnd, 318_000);
}

/// Samples that the application limited neither end STARTUP nor lower the bandwidth.
#[test]
fn limited_samples_say_little() {
    let mut trace = Trace::new(&bbr(), 10);
    trace.flight = Some(1 << 30);
    round(&mut trace, 1_000_000);
    trace.app_limited = true;
    for _ in 0..20 {
        round(&mut trace, 500_000);
    }
    assert_eq!(trace.controller.pacing_rate(&trace.window), Some(2_885_000));
    round(&mut trace, 1_200_000);
    assert_eq!(trace.controller.pacing_rate(&trace.window), Some(3_462_000));
}

type Path = test_bottleneck::Path<Controller>;

fn path(rate: u64, propagation: Duration, phase: u64) -> Path {
    Path::new(Controller::new(Bbr { phase, linux: false }), rate, propagation)
}

/// 10 MB/s and 40 ms: 400 segments. STARTUP finds the bandwidth within ten round trips; afterwards the estimate is within two percent, and
/// the flight between 3/4 of the product less what is on its way, and twice the product.
#[test]
fn it_finds_the_bandwidth_and_keeps_it() {
    let mut path = path(10_000_000, ms(40), 0);
    path.run(ms(700), |_| ());
    assert!(path.controller.full_pipe.reached);
    path.run(ms(1000), |_| ());
    let mut phases = Vec::new();
    let mut flights = Vec::new();
    path.run(ms(3000), |path| {
        let bandwidth = path.controller.bandwidth.get();
        assert!((9_800_000..=10_200_000).contains(&bandwidth), "{bandwidth}");
        flights.push(path.flight());
        if let Mode::ProbeBw { phase, since } = path.controller.mode
            && phases.last() != Some(&(phase, since))
        {
            phases.push((phase, since));
        }
    });
    // Twice 400 segments and three quanta of 10 kB; and in steady state about one product.
    assert!(flights.iter().all(|&flight| (280_000..=830_000).contains(&flight)));
    let mean = flights.iter().sum::<u64>() / flights.len() as u64;
    assert!((380_000..=480_000).contains(&mean), "{mean}");
    // The cycle: each phase after the one before; each about a round-trip time long.
    assert!(phases.windows(2).all(|pair| pair[1].0 == (pair[0].0 + 1) % 8));
    let spans = phases.windows(2).map(|pair| (pair[0].0, pair[1].1.since(pair[0].1)));
    for (phase, span) in spans.skip(1) {
        // 3/4 ends as soon as the queue is gone.
        let least = if phase == 1 { ms(0) } else { ms(40) };
        assert!(span >= least && span <= ms(60), "{phase}: {span:?}");
    }
}

/// PROBE_RTT: once in ten seconds four segments for 200 ms at least, and the propagation time is found again after it grew.
#[test]
fn it_probes_the_round_trip_time() {
    let mut path = path(10_000_000, ms(40), 3);
    path.run(ms(5000), |_| ());
    assert_eq!(path.controller.min_rtt.unwrap().0.as_millis(), 40);
    path.propagation = ms(60);
    let mut probes: Vec<(Instant, Instant)> = Vec::new();
    path.run(ms(35_000), |path| {
        if let Mode::ProbeRtt { until: Some(_), .. } = path.controller.mode {
            assert!(path.window.cwnd <= 4000 && path.flight() <= 4000);
            match probes.last_mut() {
                Some(probe) if path.now.since(probe.1) < ms(1000) => probe.1 = path.now,
                _ => probes.push((path.now, path.now)),
            }
        }
    });
    assert!((2..=4).contains(&probes.len()), "{} probes", probes.len());
    for (begin, end) in &probes {
        let span = end.since(*begin);
        assert!(span >= ms(130) && span <= ms(400), "{span:?}");
    }
    let (min_rtt, _) = path.controller.min_rtt.unwrap();
    assert_eq!(min_rtt.as_millis(), 60);
    let bandwidth = path.controller.bandwidth.get();
    assert!((9_800_000..=10_200_000).contains(&bandwidth), "{bandwidth}");
    assert!(matches!(path.controller.mode, Mode::ProbeBw { .. }));
}

/// Forty round trips of PROBE_RTT, with hardly anything in flight, are no reason to forget the bandwidth.
#[test]
fn probing_the_round_trip_time_does_not_cost_the_bandwidth() {
    let mut path = path(10_000_000, ms(5), 0);
    path.run(ms(2000), |_| ());
    path.propagation = ms(6);
    let mut probed = 0;
    path.run(ms(12_000), |path| {
        probed += u64::from(matches!(path.controller.mode, Mode::ProbeRtt { until: Some(_), .. }));
        let bandwidth = path.controller.bandwidth.get();
        assert!((9_800_000..=10_200_000).contains(&bandwidth), "{bandwidth}");
    });
    assert!(probed > 50, "{probed}");
}

/// A bottleneck that falls to a half is believed after ten round trips, one that doubles after a few cycles (a quarter each).
#[test]
fn it_follows_the_bandwidth() {
    let mut path = path(10_000_000, ms(40), 0);
    path.run(ms(3000), |_| ());
    path.rate = 5_000_000;
    path.run(ms(3000), |_| ());
    let bandwidth = path.controller.bandwidth.get();
    assert!((4_900_000..=5_100_000).contains(&bandwidth), "{bandwidth}");
    path.rate = 10_000_000;
    // Four cycles of eight round trips: 1.25⁴ = 2.44.
    path.run(ms(4 * 8 * 50), |_| ());
    let bandwidth = path.controller.bandwidth.get();
    assert!(bandwidth >= 9_800_000, "{bandwidth}");
}

/// When a phase is over (section 4.3.4.2's conditions), with a product of 1 MB/s · 100 ms = 100000 bytes and quanta of two segments: 106000 in flight at
/// a gain of 1, 131000 at 5/4.
#[test]
fn the_phases_of_a_cycle() {
    let table = [
        // phase, milliseconds in it, in flight before, lost, whether it is over
        (0, 101, 130_999, 0, false),
        (0, 101, 131_000, 0, true),
        (0, 101, 50_000, 1000, true),
        (0, 100, 131_000, 1000, false),
        (1, 1, 106_001, 0, false),
        (1, 1, 106_000, 0, true),
        (1, 101, 200_000, 0, true),
        (2, 100, 100_000, 0, false),
        (2, 101, 100_000, 0, true),
        (7, 101, 100_000, 0, true),
    ];
    for (phase, millis, prior_in_flight, lost, over) in table {
        let since = Instant::from_secs(1);
        let mut controller = Controller::new(Bbr::default());
        controller.mode = Mode::ProbeBw { phase, since };
        controller.min_rtt = Some((ms(100), since));
        controller.bandwidth.add(1, 1_000_000);
        controller.pacing_rate = 1_000_000;
        let window = Window { cwnd: 200_000, cwnd_cnt: 0, ssthresh: u64::MAX, mss: 1000 };
        let now = since + ms(millis);
        let ack = AckContext { now, prior_in_flight, lost, mss: 1000, ..AckContext::default() };
        controller.advance_cycle(&window, &ack);
        let next = Mode::ProbeBw { phase: (phase + 1) % 8, since: now };
        assert_eq!(controller.mode == next, over, "{phase} {millis} {prior_in_flight} {lost}");
    }
}

/// Where the cycle begins is the parameter's choice, and never in the phase of 3/4.
#[test]
fn the_first_phase() {
    let mut first = Vec::new();
    for phase in 0..=6 {
        let mut controller = Controller::new(Bbr { phase, linux: false });
        controller.probe_bandwidth(Instant::ZERO);
        let Mode::ProbeBw { phase, .. } = controller.mode else { panic!("not probing") };
        first.push(phase);
    }
    assert_eq!(first, [0, 7, 6, 5, 4, 3, 2]);
}

/// A loss: first as much is sent as is delivered; after recovery the window is what it was. A timeout leaves one segment.
#[test]
fn recovery() {
    let mut path = path(10_000_000, ms(40), 0);
    path.run(ms(3000), |_| ());
    let before = path.window.cwnd;
    path.lose = true;
    path.recovering = true;
    path.run(Duration::from_nanos(1), |_| ());
    let now = path.now;
    let flight = path.flight();
    path.controller.on_event(&mut path.window, CongestionEvent::Loss { flight }, now);
    assert_eq!(path.window.cwnd, path.controller.last.in_flight + 1000);
    let flight = path.flight();
    path.run(ms(20), |path| assert!(path.flight() <= flight + 1000));
    path.recovering = false;
    path.run(ms(1), |_| ());
    assert!(path.window.cwnd + 40_000 >= before, "{} of {before}", path.window.cwnd);
    let flight = path.flight();
    path.controller.on_event(
        &mut path.window,
        CongestionEvent::Timeout { flight, first: true },
        now,
    );
    assert_eq!(path.window.cwnd, 1000);
    path.run(ms(500), |_| ());
    assert!(path.window.cwnd + 40_000 >= before, "{} of {before}", path.window.cwnd);
}
