//! Examples of the draft's formulas by hand, and a bottleneck in a loop with a sender.

use super::*;
use crate::pos::Pos;
use crate::slow_start::test_bottleneck::{PLAIN, Path};

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

/// The path is full in the fourth round trip, before 400 ms. From then on, each millisecond delivers a segment and adds one to the window. The window of 350
/// ms has to be half in the past and half beyond the end of growth, and that is seen a round trip later, which the queue has made longer. So the end comes
/// at 5.7 times what the path holds.
#[test]
fn a_golden_trace_of_a_full_bottleneck() {
    assert_eq!(PLAIN.run(&mut Search::default()), Some((566, 906)));
}

#[test]
fn bursts_stretched_acknowledgements_pacing_and_jitter_move_the_end_little() {
    let (golden, _) = PLAIN.run(&mut Search::default()).unwrap();
    for (what, path) in [
        ("super-segments", Path { burst: 8, ..PLAIN }),
        ("stretched", Path { stretch: 8, ..PLAIN }),
        ("paced", Path { paced: true, ..PLAIN }),
        ("jitter", Path { jitter: 30, ..PLAIN }),
        ("all", Path { burst: 8, stretch: 8, paced: true, jitter: 30, ..PLAIN }),
    ] {
        let (window, after) =
            path.run(&mut Search::default()).unwrap_or_else(|| panic!("{what}: no end"));
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
        assert_eq!(path.run(&mut Search::default()), None);
    }
}
