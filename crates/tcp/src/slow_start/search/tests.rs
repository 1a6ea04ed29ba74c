//! Examples of the draft's formulas by hand, and a bottleneck in a loop with a sender.

use super::*;
use crate::pos::Pos;
use std::collections::VecDeque;
use std::vec::Vec;

const MSS: u64 = 1000;

fn window() -> Window {
    Window { cwnd: 10 * MSS, cwnd_cnt: 0, ssthresh: u64::MAX, mss: 1000 }
}

/// Acknowledgements by hand: the first at 1 s with a round-trip time of 100 ms. So bins have 35 ms, and the n-th ends 35 n ms later.
struct Hand {
    unit: Search,
    window: Window,
    bin: u64,
    sent: u64,
    delivered: u64,
}

impl Hand {
    fn new() -> Self {
        let mut hand =
            Hand { unit: Search::default(), window: window(), bin: 0, sent: 0, delivered: 0 };
        hand.acknowledge(0, 100);
        hand
    }

    fn acknowledge(&mut self, after: u64, rtt: u64) {
        let ack = AckContext {
            now: Instant::from_secs(1) + Duration::from_millis(after),
            rtt: Some(Duration::from_millis(rtt)),
            nxt: Pos::FIRST_DATA + self.sent,
            delivered: self.delivered,
            ..AckContext::default()
        };
        self.unit.on_sample(&mut self.window, &ack);
    }

    /// A bin in which so much is sent and delivered, and its end. Says whether that ended slow start.
    fn bin(&mut self, sent: u64, delivered: u64, rtt: u64) -> bool {
        self.bin += 1;
        self.sent += sent;
        self.delivered += delivered;
        self.acknowledge(35 * self.bin + 1, rtt);
        !self.window.in_slow_start()
    }

    fn bins(&mut self, count: u64, sent: u64, delivered: u64, rtt: u64) -> Option<u64> {
        (0..count).find_map(|_| self.bin(sent, delivered, rtt).then_some(self.bin))
    }
}

/// Of 2000 bytes a bin, 1480 arrive: 26 % are missing. A round trip is two bins and a part, and the eleventh bin is the first that may end the earlier
/// window. So the thirteenth is the first that can be judged. One byte more in each bin is enough.
#[test]
fn a_quarter_missing_ends_slow_start() {
    assert_eq!(Hand::new().bins(40, 2000, 1480, 100), Some(13));
    assert_eq!(Hand::new().bins(40, 2000, 1481, 100), None);
    let mut hand = Hand::new();
    hand.bins(13, 2000, 1000, 100);
    assert_eq!(hand.window.ssthresh, hand.window.cwnd);
}

/// While the window doubles each round trip, and each byte arrives one later, nothing is missing.
#[test]
fn growth_alone_ends_nothing() {
    let sent_until = |bin: u64| (1000.0 * 2f64.powf(bin as f64 * 0.35)) as u64;
    let mut hand = Hand::new();
    for bin in 1..60 {
        let sent = sent_until(bin) - sent_until(bin - 1);
        // 100 ms are 2.857 bins.
        let then = |bin: u64| (1000.0 * 2f64.powf(bin as f64 * 0.35 - 1.0)) as u64;
        assert!(!hand.bin(sent, then(bin) - then(bin - 1), 100), "bin {bin}");
    }
}

/// A round trip of 52.5 ms is a bin and a half. 100,000 bytes are sent in the twelfth bin, and nothing else. At the end of the thirteenth, the window a
/// bin ago has all of it, and the window two bins ago nothing: 50,000 are expected. 37,000 of them are 26 % too few.
#[test]
fn a_part_of_a_bin_is_looked_up_further_back() {
    for (delivered, ended) in [(37_000, true), (37_001, false)] {
        let mut hand = Hand::new();
        assert_eq!(hand.bins(11, 0, 0, 100), None);
        // Everything arrives at once, so nothing is missing here.
        assert!(!hand.bin(100_000, delivered, 52));
        hand.bin += 1;
        let ack = AckContext {
            now: Instant::from_secs(1) + Duration::from_millis(35 * 13 + 1),
            rtt: Some(Duration::from_micros(52_500)),
            nxt: Pos::FIRST_DATA + hand.sent,
            delivered: hand.delivered,
            ..AckContext::default()
        };
        hand.unit.on_sample(&mut hand.window, &ack);
        assert_eq!(!hand.window.in_slow_start(), ended, "{delivered}");
    }
}

/// Fifteen bins are 525 ms: a round trip as long reaches back further than there are bins.
#[test]
fn a_round_trip_that_is_too_long_is_not_judged() {
    for (rtt, ended) in [(524, true), (525, false)] {
        let mut hand = Hand::new();
        hand.bins(60, 2000, 2000, 100);
        assert_eq!(hand.bins(40, 2000, 0, rtt).is_some(), ended, "{rtt} ms");
    }
}

/// Ten bins may pass without an acknowledgement. After eleven, bins are as long as the new round-trip time says.
#[test]
fn a_long_silence_begins_anew() {
    for (missed, anew) in [(10, false), (11, true)] {
        let mut hand = Hand::new();
        hand.bins(20, 2000, 2000, 100);
        hand.bin += missed - 1;
        hand.bin(2000, 2000, 200);
        let bins = hand.unit.bins.unwrap();
        let expected = if anew { (70, 0) } else { (35, 20 + missed) };
        assert_eq!((bins.duration, bins.latest), (Duration::from_millis(expected.0), expected.1));
    }
}

/// With a threshold, that one ends slow start. A reduction forgets what was measured.
#[test]
fn only_a_slow_start_without_a_threshold_is_judged() {
    let mut hand = Hand::new();
    hand.window.ssthresh = 1 << 30;
    assert_eq!(hand.bins(40, 2000, 0, 100), None);
    hand.unit.on_reduction(false);
    assert_eq!(hand.unit, Search::default());
}

#[test]
fn no_round_trip_and_no_time_are_harmless() {
    let (mut unit, mut w) = (Search::default(), window());
    for i in 0..100 {
        let now = Instant::from_secs(1) + Duration::from_nanos(i);
        let rtt = (i % 3 == 0).then_some(Duration::ZERO);
        unit.on_sample(&mut w, &AckContext { now, rtt, ..AckContext::default() });
    }
    assert!(w.in_slow_start());
}

/// A sender, a bottleneck that takes a millisecond for a segment, a queue without end, and a round trip of 100 ms: 100 segments fill the path.
#[derive(Clone, Copy)]
struct Path {
    /// Segments that leave together.
    burst: u64,
    /// Segments that one acknowledgement is for.
    stretch: u64,
    /// Whether the sender paces at twice the window in a round trip.
    paced: bool,
    /// Extra delay of acknowledgements: up to this many milliseconds, by a pattern.
    jitter: u64,
    /// Segments that the application gives in 10 ms.
    application: Option<u64>,
}

const PLAIN: Path = Path { burst: 1, stretch: 1, paced: false, jitter: 0, application: None };
const MICROS: u64 = 1000;

impl Path {
    /// The window when slow start ended, in segments, and after how many milliseconds; within 5 s.
    fn run(self) -> Option<(u64, u64)> {
        let (mut unit, mut w) = (Search::default(), window());
        // Arrival of each segment's acknowledgement, and departure; when the sender and the bottleneck are free.
        let mut flying = VecDeque::<(u64, u64)>::new();
        let (mut sender_free, mut link_free, mut last_ack) = (0, 0, 0);
        let (mut left, mut delivered, mut now) = (0u64, 0u64, 0u64);
        let mut rounds = 0u64;
        let mut departures = Vec::new();
        while now < 5_000 * MICROS {
            while w.cwnd / MSS >= flying.len() as u64 + self.burst
                && self.application.is_none_or(|rate| left < 10 + now / (10 * MICROS) * rate)
            {
                let departure = if self.paced { now.max(sender_free) } else { now };
                sender_free = departure + self.burst * 100 * MICROS * MSS / (2 * w.cwnd);
                for _ in 0..self.burst {
                    link_free = link_free.max(departure) + MICROS;
                    rounds += 1;
                    let jitter = rounds * 7919 % (self.jitter + 1) * MICROS;
                    last_ack = last_ack.max(link_free + 99 * MICROS + jitter);
                    flying.push_back((last_ack, departure));
                    departures.push(departure);
                    left += 1;
                }
            }
            if flying.is_empty() {
                now += MICROS;
                continue;
            }
            let group = self.stretch.min(flying.len() as u64);
            let (mut arrival, mut departure) = (now, now);
            for (at, from) in flying.drain(..group as usize) {
                (arrival, departure) = (at, from);
            }
            now = now.max(arrival);
            delivered += group * MSS;
            let sent = departures.partition_point(|&at| at <= now) as u64 * MSS;
            let ack = AckContext {
                now: Instant::from_secs(1) + Duration::from_micros(now),
                rtt: Some(Duration::from_micros(now - departure)),
                nxt: Pos::FIRST_DATA + sent,
                delivered,
                ..AckContext::default()
            };
            unit.on_sample(&mut w, &ack);
            if !w.in_slow_start() {
                return Some((w.cwnd / MSS, now / MICROS));
            }
            if self.application.is_none() {
                unit.grow(&mut w, group * MSS, &ack);
            }
        }
        None
    }
}

/// The path is full in the fourth round trip, before 400 ms. From then on, each millisecond delivers a segment and adds one to the window. The window of 350
/// ms has to be half in the past and half beyond the end of growth, and that is seen a round trip later, which the queue has made longer. So the end comes
/// at 5.7 times what the path holds.
#[test]
fn a_golden_trace_of_a_full_bottleneck() {
    assert_eq!(PLAIN.run(), Some((566, 906)));
}

#[test]
fn bursts_stretched_acknowledgements_pacing_and_jitter_move_the_end_little() {
    let (golden, _) = PLAIN.run().unwrap();
    for (what, path) in [
        ("super-segments", Path { burst: 8, ..PLAIN }),
        ("stretched", Path { stretch: 8, ..PLAIN }),
        ("paced", Path { paced: true, ..PLAIN }),
        ("jitter", Path { jitter: 30, ..PLAIN }),
        ("all", Path { burst: 8, stretch: 8, paced: true, jitter: 30, ..PLAIN }),
    ] {
        let (window, after) = path.run().unwrap_or_else(|| panic!("{what}: no end"));
        assert!(window >= 100, "{what}: before the path was full: {window} after {after} ms");
        assert!(window <= golden * 3 / 2, "{what}: {window} after {after} ms");
    }
}

/// Half of the bottleneck's rate: nothing is missing, whatever the pattern.
#[test]
fn an_application_that_sends_little_ends_nothing() {
    for path in [
        Path { application: Some(5), ..PLAIN },
        Path { application: Some(5), stretch: 4, jitter: 30, ..PLAIN },
    ] {
        assert_eq!(path.run(), None);
    }
}
