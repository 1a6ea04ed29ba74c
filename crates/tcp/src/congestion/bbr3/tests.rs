//! BBR's third version against its draft: scripted samples for each decision, and a bottleneck in virtual time for the whole.

use super::super::test_bottleneck;
use super::super::test_trace::{Trace, ms};
use super::*;
use crate::congestion::CongestionChoice;
use crate::pos::Pos;
use std::println;
use std::vec::Vec;

type Path = test_bottleneck::Path<Controller>;

fn path(rate: u64, propagation: Duration) -> Path {
    Path::new(Controller::new(Instant::ZERO), rate, propagation)
}

/// A round trip of 100 ms in which a rate of `rate` bytes per second shows: one acknowledgement for everything.
fn round(trace: &mut Trace, rate: u64) {
    trace.now += ms(100);
    trace.rate = Some(rate);
    trace.ack(rate / 10, ms(100), true);
}

fn paced(trace: &Trace) -> u64 {
    trace.controller.pacing_rate(&trace.window).unwrap()
}

/// STARTUP: 2.77 · 0.99 = 2.7423 times the rate, until that has not grown by a quarter for three rounds: 1.0, 1.25 (a quarter), 1.5, 1.56 and 1.56
/// MB/s. DRAIN at 0.5 · 0.99 until the flight is down to the product, 156000 bytes; with nothing above it CRUISE follows at once.
#[test]
fn startup_ends_with_a_full_pipe() {
    let mut trace = Trace::new(&CongestionChoice::from(Bbr3), 10);
    // A window of 10 segments in a millisecond, before there is a round-trip time.
    assert_eq!(paced(&trace), 27_700_000);
    trace.flight = Some(1 << 30);
    for (rate, expected) in [
        (1_000_000, 2_742_300),
        (1_250_000, 3_427_875),
        (1_500_000, 4_113_450),
        (1_560_000, 4_277_988),
        (1_560_000, 772_200),
    ] {
        round(&mut trace, rate);
        assert_eq!(paced(&trace), expected);
    }
    trace.flight = Some(156_001 + 156_000);
    round(&mut trace, 1_560_000);
    assert_eq!(paced(&trace), 772_200);
    trace.flight = Some(156_000 + 156_000);
    round(&mut trace, 1_560_000);
    assert_eq!(paced(&trace), 1_544_400);
    // The window: twice the product, and what was acknowledged in one piece as aggregation. Each acknowledgement brings all of 100 ms at once:
    // 156000 bytes more than expected.
    for _ in 0..3 {
        round(&mut trace, 1_560_000);
    }
    assert_eq!(trace.window.cwnd, 3 * 156_000);
}

/// DRAIN lasts three round trips at most, however much is in flight.
#[test]
fn draining_ends() {
    let mut trace = Trace::new(&CongestionChoice::from(Bbr3), 10);
    trace.flight = Some(1 << 30);
    for _ in 0..4 {
        round(&mut trace, 1_000_000);
    }
    for _ in 0..4 {
        assert_eq!(paced(&trace), 495_000);
        round(&mut trace, 1_000_000);
    }
    // DOWN: 0.9 · 0.99.
    assert_eq!(paced(&trace), 891_000);
}

/// Samples that the application limited neither end STARTUP nor lower the rate.
#[test]
fn limited_samples_say_little() {
    let mut trace = Trace::new(&CongestionChoice::from(Bbr3), 10);
    trace.flight = Some(1 << 30);
    round(&mut trace, 1_000_000);
    trace.app_limited = true;
    for _ in 0..20 {
        round(&mut trace, 500_000);
    }
    assert_eq!(paced(&trace), 2_742_300);
    round(&mut trace, 1_200_000);
    assert_eq!(paced(&trace), 3_290_760);
}

// ----- scripted states -----

const WINDOW: Window = Window { cwnd: 200_000, cwnd_cnt: 0, ssthresh: 2000, mss: 1000 };
const START: Instant = Instant::from_secs(1);

/// In PROBE_BW, on a path of 1 MB/s and 100 ms: a product of 100000 bytes, 100 segments.
fn probing(mode: Mode) -> Controller {
    let mut controller = Controller::new(START);
    let seen = AckContext { now: START, rtt: Some(ms(100)), ..AckContext::default() };
    controller.model.update_min_rtt(&seen);
    let sample = Sample { rate: 1_000_000, delivered: 100_000, ..Sample::default() };
    controller.model.update_rates(&sample, 0);
    controller.model.finish(&sample);
    controller.full_pipe.reached = true;
    controller.pacing_rate = 990_000;
    controller.cycle.since = START;
    controller.cycle.wait = ms(2500);
    controller.cycle.acks = AckPhase::Init;
    controller.mode = mode;
    controller
}

/// A transmission of `bytes` is found lost, with so much in flight and lost.
fn loss(at: u64, bytes: u64, in_flight: u64, lost: u64) -> LostTransmission {
    let start = Pos::FIRST_DATA + at;
    LostTransmission {
        now: START,
        range: start..start + bytes,
        in_flight,
        lost,
        delivered: 1_000_000,
        app_limited: false,
    }
}

/// InflightAtLoss. Two of a hundred segments are 2 %, and not above. With the third: 99000 in flight before, of which 2000 were lost: (1980 −
/// 2000)/0.98 = −20. And a burst of 60 segments behind 100 others, all of it lost: 100000 + 2000/0.98.
#[test]
fn the_inflight_at_a_loss_follows_the_draft() {
    assert_eq!(inflight_at_loss(&loss(0, 1000, 100_000, 2000), true), None);
    assert_eq!(inflight_at_loss(&loss(0, 1000, 100_000, 3000), true), Some(98_980));
    assert_eq!(inflight_at_loss(&loss(0, 60_000, 160_000, 60_000), true), Some(102_040));
    // Without SACK any loss is one too many.
    assert_eq!(inflight_at_loss(&loss(0, 1000, 100_000, 1000), false), Some(101_020));
}

/// Section 5.5.10.2: losses of what was sent while probing say what may be in flight in the long term, 0.7 of the target at least; the probe is over.
#[test]
fn a_probe_that_went_too_far() {
    for (in_flight, lost, longterm) in [
        (120_000, 2000, None),
        (120_000, 3000, Some(120_000 - 1000 + 387)),
        (50_000, 2000, Some(70_000)),
    ] {
        let mut controller = probing(Mode::Up);
        controller.cycle.is_probe_sample = true;
        controller.on_lost(&mut { WINDOW }, &loss(0, 1000, in_flight, lost));
        assert_eq!(controller.model.bounds.inflight_longterm, longterm);
        let too_high = longterm.is_some();
        assert_eq!(controller.mode == Mode::Down, too_high);
        assert_eq!(
            (controller.cycle.too_high, controller.cycle.is_probe_sample),
            (too_high, !too_high)
        );
    }
    // Data that was not sent while probing does not count, and neither does data that the application limited.
    let mut controller = probing(Mode::Cruise);
    controller.on_lost(&mut { WINDOW }, &loss(0, 1000, 100_000, 50_000));
    assert_eq!(controller.model.bounds, Bounds::default());
    let mut controller = probing(Mode::Up);
    controller.cycle.is_probe_sample = true;
    let limited = LostTransmission { app_limited: true, ..loss(0, 1000, 100_000, 50_000) };
    controller.on_lost(&mut { WINDOW }, &limited);
    assert_eq!((controller.model.bounds, controller.mode), (Bounds::default(), Mode::Down));
}

/// Section 5.5.10.3: a round trip with a loss outside of probing brings the short-term model down to 0.7, or what was delivered if that is more.
#[test]
fn losses_while_cruising() {
    for (rate, delivered, expected) in
        [(900_000, 90_000, (900_000, 140_000)), (500_000, 150_000, (700_000, 150_000))]
    {
        let mut controller = probing(Mode::Cruise);
        controller.model.reset_signals();
        controller.on_lost(&mut { WINDOW }, &loss(0, 1000, 100_000, 1000));
        let round = |trip: u64| AckContext {
            now: START + ms(100 * trip),
            rtt: Some(ms(100)),
            delivered: 1_000_000 + trip * 100_000,
            newly_delivered: 100_000,
            in_flight: 100_000,
            rate: Some(crate::rate::RateSample {
                delivered,
                interval: Duration::from_nanos(delivered * 1_000_000_000 / rate),
                prior_delivered: 900_000 + trip * 100_000,
                in_flight: 100_000,
                lost: 0,
                app_limited: false,
            }),
            sack_agreed: true,
            mss: 1000,
            ..AckContext::default()
        };
        let mut window = WINDOW;
        controller.on_sample(&mut window, &round(1));
        let Bounds { rate_shortterm, inflight_shortterm, .. } = controller.model.bounds;
        assert_eq!((rate_shortterm.unwrap(), inflight_shortterm.unwrap()), expected);
        assert_eq!(controller.pacing_rate, expected.0 / 100 * 99);
        assert_eq!(window.cwnd, expected.1);
        // A round trip without: nothing more. And the next probe forgets it.
        controller.on_sample(&mut window, &round(2));
        assert_eq!(controller.model.bounds.rate_shortterm, Some(expected.0));
        controller.start_refill();
        assert_eq!(controller.model.bounds, Bounds::default());
    }
}

/// Section 5.3.3.5: while the window is the limit and at its long-term bound, that grows by 1, 2, 4, 8 segments in successive round trips. (Here it
/// is put back each time, so that a round trip stays 200 segments.)
#[test]
fn the_longterm_bound_is_raised_ever_faster() {
    const BOUND: u64 = 200_000;
    let mut controller = probing(Mode::Up);
    controller.raise_slope(&WINDOW);
    let ack = AckContext { cwnd_limited: true, sack_agreed: true, ..AckContext::default() };
    let mut raise = |ack: &AckContext, newly, starts| {
        controller.model.bounds.inflight_longterm = Some(BOUND);
        controller.model.rounds.starts = starts;
        controller.raise_longterm(&WINDOW, ack, &Sample { newly, ..Sample::default() });
        controller.model.bounds.inflight_longterm.unwrap() - BOUND
    };
    for expected in [1000, 2000, 4000, 8000] {
        let raised: u64 = (1..=200).map(|segment| raise(&ack, 1000, segment == 200)).sum();
        assert_eq!(raised, expected);
    }
    // Not when the window is not the limit.
    assert_eq!(raise(&AckContext { cwnd_limited: false, ..ack }, 1_000_000, false), 0);
}

/// Sections 5.3.3.7 and 5.3.3.6: when UP is over.
#[test]
fn the_end_of_a_probe() {
    let ack =
        |in_flight, cwnd_limited| AckContext { in_flight, cwnd_limited, ..AckContext::default() };
    let sample = Sample { rate: 1_000_000, ..Sample::default() };
    let mut controller = probing(Mode::Up);
    assert!(!controller.is_time_to_go_down(&WINDOW, &ack(125_000, false), &sample));
    controller.full_pipe.now = true;
    assert!(controller.is_time_to_go_down(&WINDOW, &ack(125_000, false), &sample));
    // The bound is what held the rate, not the path: the search for a plateau begins again.
    controller.model.bounds.inflight_longterm = Some(200_000);
    assert!(!controller.is_time_to_go_down(&WINDOW, &ack(200_000, true), &sample));
    assert!(!controller.full_pipe.now);
    // After a probe that went too far only up to where it did, and if that goes well once more without a pause.
    controller.cycle.too_high = true;
    assert!(!controller.is_time_to_go_down(&WINDOW, &ack(199_000, true), &sample));
    assert!(controller.is_time_to_go_down(&WINDOW, &ack(200_000, true), &sample));
    assert!(controller.cycle.precautionary);
    controller.cycle.too_high = false;
    controller.start_down(START);
    controller.model.rounds.starts = true;
    assert!(controller.adapt_longterm(&WINDOW, &ack(150_000, false), &sample));
    assert_eq!((controller.mode, controller.cycle.precautionary), (Mode::Refill, false));
}

/// Section 5.3.3.8: after 2 to 3 s, or as many round trips as there are segments in the product, 63 at most.
#[test]
fn when_to_probe() {
    let mut controller = probing(Mode::Cruise);
    assert!(!controller.is_time_to_probe(&WINDOW, START + ms(2500)));
    assert!(controller.is_time_to_probe(&WINDOW, START + ms(2501)));
    for (cwnd, rounds) in [(200_000, 63), (20_000, 20)] {
        let window = Window { cwnd, ..WINDOW };
        for (since, expected) in [(rounds - 1, false), (rounds, true)] {
            controller.cycle.rounds_since_up = since;
            assert_eq!(controller.is_time_to_probe(&window, START), expected, "{cwnd} {since}");
        }
    }
    let waits: Vec<Duration> = (0..100)
        .map(|second| {
            controller.start_down(Instant::from_secs(second));
            controller.cycle.wait
        })
        .collect();
    assert!(waits.iter().all(|wait| (ms(2000)..=ms(3000)).contains(wait)));
    // Spread over the second: each quarter of it gets some.
    for quarter in 0..4 {
        let (from, until) = (ms(2000 + quarter * 250), ms(2250 + quarter * 250));
        let count = waits.iter().filter(|wait| (from..until).contains(wait)).count();
        assert!((10..=40).contains(&count), "{count}");
    }
}

/// Section 5.3.1.3: STARTUP ends with a round trip of fast recovery in which six ranges and more than 2 % were lost.
#[test]
fn startup_ends_with_losses() {
    for (ranges, lost, recovering, ends) in [
        (6, 3000, true, true),
        (5, 3000, true, false),
        (6, 2000, true, false),
        (6, 3000, false, false),
    ] {
        let mut controller = probing(Mode::Startup);
        controller.full_pipe.reached = false;
        // Neighbours are one range.
        controller.on_lost(&mut { WINDOW }, &loss(0, 1000, 100_000, 1000));
        controller.on_lost(&mut { WINDOW }, &loss(1000, 1000, 100_000, 2000));
        for range in 1..ranges {
            controller.on_lost(&mut { WINDOW }, &loss(range * 5000, 1000, 100_000, 3000));
        }
        let ack = AckContext {
            now: START + ms(100),
            rtt: Some(ms(100)),
            delivered: 1_100_000,
            newly_delivered: 1000,
            in_flight: 100_000,
            recovering,
            sack_agreed: true,
            rate: Some(crate::rate::RateSample {
                delivered: 130_000,
                interval: ms(100),
                prior_delivered: 1_000_000,
                in_flight: 100_000,
                lost,
                app_limited: false,
            }),
            mss: 1000,
            ..AckContext::default()
        };
        controller.on_sample(&mut { WINDOW }, &ack);
        assert_eq!(controller.full_pipe.reached, ends, "{ranges} {lost} {recovering}");
        // The product of the rate before this sample is 100000; 130000 were delivered in a round trip.
        assert_eq!(controller.model.bounds.inflight_longterm, ends.then_some(130_000));
        if ends {
            // It was not true: back to where it was.
            controller.on_undo(&mut { WINDOW }, WINDOW, ack.now);
            assert_eq!((controller.mode, controller.full_pipe.reached), (Mode::Startup, false));
            assert_eq!(controller.model.bounds.inflight_longterm, None);
        }
    }
}

/// Section 5.5.11: a probe that ended for nothing begins again, with the bounds and the window as they were.
#[test]
fn an_undone_probe_begins_again() {
    let mut controller = probing(Mode::Up);
    controller.cycle.is_probe_sample = true;
    controller.model.bounds.inflight_longterm = Some(300_000);
    let mut window = WINDOW;
    controller.on_lost(&mut window, &loss(0, 1000, 100_000, 10_000));
    controller.on_event(&mut window, CongestionEvent::Loss { flight: 100_000 }, START);
    assert_eq!(controller.mode, Mode::Down);
    assert!(controller.model.bounds.inflight_longterm.unwrap() < 100_000);
    window.cwnd = 50_000;
    controller.on_undo(&mut window, WINDOW, START);
    assert_eq!((controller.mode, window.cwnd), (Mode::Refill, 200_000));
    assert_eq!(controller.model.bounds.inflight_longterm, Some(300_000));
}

/// A mark is a loss: it ends STARTUP and probes, and otherwise lowers the short-term model when the round trip is over.
#[test]
fn marks() {
    let mark = CongestionEvent::Ecn { flight: 100_000 };
    let mut controller = probing(Mode::Startup);
    controller.full_pipe.reached = false;
    controller.on_event(&mut { WINDOW }, mark, START);
    assert!(controller.full_pipe.reached);
    let mut controller = probing(Mode::Up);
    controller.cycle.is_probe_sample = true;
    controller.in_flight = 130_000;
    controller.on_event(&mut { WINDOW }, mark, START);
    assert_eq!(controller.model.bounds.inflight_longterm, Some(130_000));
    assert_eq!(controller.mode, Mode::Down);
    let mut controller = probing(Mode::Cruise);
    controller.on_event(&mut { WINDOW }, mark, START);
    assert!(controller.model.losses.lossy);
}

// ----- the whole -----

/// 10 MB/s and 40 ms: 400 segments. The rate is found within ten round trips and kept; the cycle is DOWN, CRUISE, REFILL, UP; from one probe to the next it
/// takes two to three seconds, or 63 round trips (2.5 s).
#[test]
fn it_finds_the_rate_and_keeps_it() {
    let mut path = path(10_000_000, ms(40));
    path.run(ms(700), |_| ());
    assert!(path.controller.full_pipe.reached);
    path.run(ms(1000), |_| ());
    let mut modes: Vec<(Mode, Instant)> = Vec::new();
    let before = path.delivered();
    path.run(ms(60_000), |path| {
        let rate = path.controller.model.max_rate();
        assert!((9_800_000..=10_200_000).contains(&rate), "{rate}");
        // 2.25 products, and the aggregation that a quantum of 10 kB makes.
        assert!(path.flight() <= 950_000, "{}", path.flight());
        let mode = path.controller.mode;
        if modes.last().is_none_or(|(last, _)| *last != mode) {
            modes.push((mode, path.now));
        }
    });
    let rate = (path.delivered() - before) / 60;
    assert!(rate > 9_600_000, "{rate} bytes/s");
    let next = |mode| match mode {
        Mode::Down => Mode::Cruise,
        Mode::Cruise => Mode::Refill,
        Mode::Refill => Mode::Up,
        _ => Mode::Down,
    };
    let cycling = modes.windows(2).filter(|pair| pair.iter().all(|(mode, _)| mode.is_probe_bw()));
    assert!(cycling.clone().count() > 15);
    for pair in cycling {
        assert_eq!(pair[1].0, next(pair[0].0));
    }
    // PROBE_RTT begins a cycle anew; without it between them, probes are so far apart.
    let cycles = modes.windows(5).filter(|five| five[0].0 == Mode::Up && five[4].0 == Mode::Up);
    let spans: Vec<Duration> = cycles.map(|five| five[4].1.since(five[0].1)).collect();
    assert!(spans.len() >= 2, "{spans:?}");
    assert!(spans.iter().all(|span| (ms(2000)..=ms(3300)).contains(span)), "{spans:?}");
}

/// PROBE_RTT every five seconds or so, with half of the product in flight; a propagation time that grew is believed after ten seconds.
#[test]
fn it_probes_the_round_trip_time() {
    let mut path = path(10_000_000, ms(40));
    path.run(ms(4000), |_| ());
    assert_eq!(path.controller.model.min_rtt().unwrap().as_millis(), 40);
    path.propagation = ms(60);
    let mut probes: Vec<(Instant, Instant)> = Vec::new();
    path.run(ms(40_000), |path| {
        if let Mode::ProbeRtt { until: Some(_), .. } = path.controller.mode {
            assert!(path.window.cwnd <= 310_000, "{}", path.window.cwnd);
            match probes.last_mut() {
                Some(probe) if path.now.since(probe.1) < ms(1000) => probe.1 = path.now,
                _ => probes.push((path.now, path.now)),
            }
        }
    });
    assert!((6..=9).contains(&probes.len()), "{} probes", probes.len());
    for (begin, end) in &probes {
        let span = end.since(*begin);
        assert!(span >= ms(150) && span <= ms(350), "{span:?}");
    }
    assert_eq!(path.controller.model.min_rtt().unwrap().as_millis(), 60);
    let rate = path.controller.model.max_rate();
    assert!((9_800_000..=10_200_000).contains(&rate), "{rate}");
}

/// A queue of an eighth of the product: what STARTUP and the probes lose teaches how much may be in flight. In the steady state few packets are
/// lost, and the link is used.
#[test]
fn a_shallow_queue() {
    let mut path = path(10_000_000, ms(40));
    path.queue = 50_000;
    path.run(ms(5000), |_| ());
    let (before, lost) = (path.delivered(), path.losses);
    path.run(ms(30_000), |_| ());
    let delivered = path.delivered() - before;
    let share = (path.losses - lost) * 1000 * 1000 / delivered;
    println!("{} bytes/s, {share} lost of 1000", delivered / 30);
    assert!(path.controller.model.bounds.inflight_longterm.is_some());
    assert!(share < 10, "{share} of 1000 packets lost");
    assert!(delivered / 30 > 8_500_000, "{} bytes/s", delivered / 30);
}

/// A bottleneck that falls to a half is believed after two cycles. One that doubles is found by the next probes, which go up as long as the
/// rate grows.
#[test]
fn it_follows_the_rate() {
    let mut path = path(10_000_000, ms(40));
    path.run(ms(3000), |_| ());
    path.rate = 5_000_000;
    path.run(ms(8000), |_| ());
    let rate = path.controller.model.max_rate();
    assert!((4_900_000..=5_100_000).contains(&rate), "{rate}");
    path.rate = 10_000_000;
    path.run(ms(8000), |_| ());
    let rate = path.controller.model.max_rate();
    assert!(rate >= 9_800_000, "{rate}");
}

/// A timeout leaves one segment; when what was in flight has been delivered, the window is what it was.
#[test]
fn a_timeout() {
    let mut path = path(10_000_000, ms(40));
    path.run(ms(3000), |_| ());
    let before = path.window.cwnd;
    let (flight, now) = (path.flight(), path.now);
    let event = CongestionEvent::Timeout { flight, first: true };
    path.controller.on_event(&mut path.window, event, now);
    assert_eq!(path.window.cwnd, 1000);
    path.run(ms(300), |_| ());
    assert!(path.window.cwnd + 100_000 >= before, "{} of {before}", path.window.cwnd);
}
