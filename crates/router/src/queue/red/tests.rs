//! RED by hand, with powers of two where exact results are compared.

use std::vec::Vec;

use transom_wire::ip::Ecn;

use super::*;
use crate::queue::Event;

/// Pseudo-random numbers (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", 2014: SplitMix64).
fn splitmix(mut state: u64) -> impl FnMut() -> u64 {
    move || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
}

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

/// An arrival of `len` bytes; the coin shows `coin`.
fn arrive(queue: &mut Red<()>, millis: u64, len: usize, coin: u64) -> Admission {
    queue.enqueue(at(millis), Item::new((), len, Ecn::NotEct), &mut || coin, &mut |_| {})
}

fn leave(queue: &mut Red<()>, millis: u64) {
    queue.dequeue(at(millis), &mut || panic!("no coin"), &mut |_| panic!()).unwrap();
}

/// A coin that never shows heads.
const TAILS: u64 = u64::MAX;

#[test]
fn the_average_follows_the_queue() {
    let config = RedConfig { weight: Probability::ratio(1, 4), ..RedConfig::default() };
    let mut queue = Red::new(config).unwrap();
    // Arrivals find 0, 1, 2 and 3 packets: 0; 1/4; 3/16 + 2/4 = 11/16; 33/64 + 3/4 = 81/64.
    for expected in [0.0, 0.25, 0.6875, 1.265625] {
        assert_eq!(arrive(&mut queue, 0, 1500, TAILS), Admission::Queued);
        assert_eq!(queue.average(), expected);
    }
    // Departures do not change it; the next arrival finds 2: 243/256 + 2/4 = 371/256.
    leave(&mut queue, 1);
    leave(&mut queue, 1);
    assert_eq!(queue.average(), 1.265625);
    arrive(&mut queue, 2, 1500, TAILS);
    assert_eq!(queue.average(), 371.0 / 256.0);
}

/// A queue whose average is 1.265625 and which became empty at 10 ms.
fn idle(transmission: Option<Duration>) -> Red<()> {
    let weight = Probability::ratio(1, 4);
    let mut queue = Red::new(RedConfig { weight, transmission, ..RedConfig::default() }).unwrap();
    for _ in 0..4 {
        arrive(&mut queue, 0, 1500, TAILS);
    }
    for _ in 0..4 {
        leave(&mut queue, 10);
    }
    queue
}

#[test]
fn an_idle_period_counts_as_the_packets_that_could_have_been_sent() {
    // 2.5 transmissions of 2 ms: two empty samples, (3/4)².
    let mut queue = idle(Some(Duration::from_millis(2)));
    arrive(&mut queue, 15, 1500, TAILS);
    assert_eq!(queue.average(), 1.265625 * 0.5625);
    // No time, no sample.
    let mut queue = idle(Some(Duration::from_millis(2)));
    arrive(&mut queue, 10, 1500, TAILS);
    assert_eq!(queue.average(), 1.265625);
    // A day later nothing is left.
    let mut queue = idle(Some(Duration::from_millis(2)));
    arrive(&mut queue, 86_400_000, 1500, TAILS);
    assert_eq!(queue.average(), 0.0);
    // Without a transmission time: one sample, however long.
    let mut queue = idle(None);
    arrive(&mut queue, 86_400_000, 1500, TAILS);
    assert_eq!(queue.average(), 1.265625 * 0.75);
}

#[test]
fn idle_time_is_not_counted_twice_when_the_packet_that_ends_it_is_dropped() {
    let config = RedConfig {
        weight: Probability::ratio(1, 2),
        min: Threshold::Packets(1),
        max: Threshold::Packets(2),
        transmission: Some(Duration::from_millis(2)),
        ..RedConfig::default()
    };
    let mut queue = Red::new(config).unwrap();
    // The average is 2 by decree, the queue empty since 0.
    queue.average = 2 << FRACTION;
    // Two of 2.5 samples: 1/2, below `min`…
    arrive(&mut queue, 5, 1500, 0);
    assert_eq!(queue.average(), 0.5);
    // …so that one is queued. Now let one be dropped: 3 transmissions on, 16 becomes 2, `max`: forced.
    leave(&mut queue, 5);
    queue.average = 16 << FRACTION;
    assert_eq!(arrive(&mut queue, 12, 1500, TAILS), Admission::Dropped(Cause::Forced));
    assert_eq!(queue.average(), 2.0);
    // Still empty. Half a transmission was left over: one millisecond later it makes another one, not five.
    assert_eq!(arrive(&mut queue, 13, 1500, TAILS), Admission::Queued);
    assert_eq!(queue.average(), 1.0);
}

#[test]
fn the_probability_rises_from_min_to_max() {
    let config = RedConfig {
        max_p: Probability::ratio(1, 8),
        min: Threshold::Packets(4),
        max: Threshold::Packets(12),
        ..RedConfig::default()
    };
    let p = |config: &RedConfig, eighths: u64| config.probability(eighths << (FRACTION - 3));
    assert_eq!(p(&config, 4 * 8 - 1), Some(Probability::ZERO));
    assert_eq!(p(&config, 4 * 8), Some(Probability::ZERO));
    // A quarter, half and almost all of the way.
    assert_eq!(p(&config, 6 * 8), Some(Probability::ratio(1, 32)));
    assert_eq!(p(&config, 8 * 8), Some(Probability::ratio(1, 16)));
    assert_eq!(p(&config, 12 * 8 - 1), Some(Probability::ratio(63, 64 * 8)));
    assert_eq!(p(&config, 12 * 8), None);
    // Gently: from 1/8 at 12 to 1 at 24; 1/8 + 7/8 · 1/4 at 15.
    let gentle = RedConfig { gentle: true, ..config };
    assert_eq!(p(&gentle, 8 * 8), Some(Probability::ratio(1, 16)));
    assert_eq!(p(&gentle, 12 * 8), Some(Probability::ratio(1, 8)));
    assert_eq!(p(&gentle, 15 * 8), Some(Probability::ratio(11, 32)));
    assert_eq!(p(&gentle, 18 * 8), Some(Probability::ratio(9, 16)));
    assert_eq!(p(&gentle, 24 * 8), None);
}

#[test]
fn the_probability_grows_with_the_packets_since_the_last_signal() {
    // p = 1/8: 1/8, 1/7, 1/6, … 1/2, 1, and certain from then on.
    let p = Probability::ratio(1, 8);
    for count in 0..8 {
        let (actual, expected) = (spread(p, count), Probability::ratio(1, 8 - count));
        assert!(actual.parts().abs_diff(expected.parts()) <= 1, "{count}: {actual}");
    }
    assert_eq!(spread(p, 8), Probability::ONE);
    assert_eq!(spread(p, u64::MAX), Probability::ONE);
    assert_eq!(spread(Probability::ZERO, u64::MAX), Probability::ZERO);
}

/// A queue in which every arrival finds exactly eight packets: with weight one, the average is 8 and p is 1/16.
fn steady(ecn: bool) -> Red<()> {
    let config = RedConfig {
        min: Threshold::Packets(4),
        max: Threshold::Packets(12),
        weight: Probability::ONE,
        max_p: Probability::ratio(1, 8),
        ecn,
        ..RedConfig::default()
    };
    let mut queue = Red::new(config).unwrap();
    for _ in 0..8 {
        arrive(&mut queue, 0, 1500, TAILS);
    }
    queue.count = Some(0);
    queue
}

#[test]
fn distances_between_drops_are_uniform() {
    let mut queue = steady(false);
    let mut coin = splitmix(1);
    let mut distances = [0u32; 20];
    let mut distance = 0;
    for _ in 0..160_000 {
        distance += 1;
        let item = Item::new((), 1500, Ecn::NotEct);
        match queue.enqueue(at(0), item, &mut coin, &mut |_| {}) {
            Admission::Queued => leave(&mut queue, 0),
            Admission::Dropped(cause) => {
                assert_eq!(cause, Cause::Early);
                distances[distance] += 1;
                distance = 0;
            }
        }
    }
    // Figure 2 makes them uniform on 1, …, 1/p − 1 = 15, with mean 8 = 1/(2p): 20,000 drops, 1333 of each distance with
    // a standard deviation of √(20,000 · 1/15 · 14/15) = 35; five of them are allowed.
    let drops: u32 = distances.iter().sum();
    assert!(drops.abs_diff(20_000) < 400, "{drops}");
    for (distance, times) in distances.into_iter().enumerate() {
        let expected = if (1..=15).contains(&distance) { 1333 } else { 0 };
        assert!(times.abs_diff(expected) <= if expected > 0 { 180 } else { 0 }, "{distances:?}");
    }
}

#[test]
fn the_count_starts_anew_below_min_and_after_every_signal() {
    let mut queue = steady(false);
    queue.count = None;
    // 1/16 is 2^60 of 2^64: with `count` at 0 the coin has to be below it.
    assert_eq!(arrive(&mut queue, 0, 1500, 1 << 60), Admission::Queued);
    leave(&mut queue, 0);
    // Then it has to be below 1/15: it is.
    assert_eq!(arrive(&mut queue, 0, 1500, 1 << 60), Admission::Dropped(Cause::Early));
    assert_eq!(queue.count, Some(0));
    for _ in 0..5 {
        leave(&mut queue, 0);
    }
    assert_eq!(arrive(&mut queue, 0, 1500, 0), Admission::Queued);
    assert_eq!(queue.count, None);
}

#[test]
fn in_bytes_small_packets_are_rarely_dropped() {
    let config = RedConfig {
        min: Threshold::Bytes(4096),
        max: Threshold::Bytes(12_288),
        weight: Probability::ONE,
        max_p: Probability::ratio(1, 8),
        packet_size: 1024,
        ..RedConfig::default()
    };
    // Eight packets of 1024 bytes: half way, p = 1/16 for 1024 bytes, 1/1024 for 16 and all of it for 16 KiB.
    let full = || {
        let mut queue = Red::new(config).unwrap();
        for _ in 0..8 {
            arrive(&mut queue, 0, 1024, TAILS);
        }
        queue.count = None;
        queue
    };
    for (len, log) in [(1024, 60), (16, 54), (2048, 61)] {
        assert_eq!(arrive(&mut full(), 0, len, 1 << log), Admission::Queued, "{len}");
        let below = arrive(&mut full(), 0, len, (1 << log) - 2);
        assert_eq!(below, Admission::Dropped(Cause::Early), "{len}");
    }
    assert_eq!(arrive(&mut full(), 0, 16_384, TAILS), Admission::Dropped(Cause::Early));
    assert_eq!(full().average(), 7.0 * 1024.0);
}

#[test]
fn early_signals_mark_and_forced_ones_drop() {
    let offer = |queue: &mut Red<()>, ecn, coin: u64| {
        let mut events = Vec::new();
        let mut note = |event: Event<'_, ()>| match event {
            Event::Marked { cause, item, .. } => events.push((true, cause, item.ecn)),
            Event::Dropped { cause, item, .. } => events.push((false, cause, item.ecn)),
        };
        let outcome = queue.enqueue(at(0), Item::new((), 1500, ecn), &mut || coin, &mut note);
        (outcome, events)
    };
    let mut queue = steady(true);
    let marked = (Admission::Queued, Vec::from([(true, Cause::Early, Ecn::Ce)]));
    assert_eq!(offer(&mut queue, Ecn::Ect1, 0), marked);
    assert_eq!(queue.count, Some(0));
    let dropped = Admission::Dropped(Cause::Early);
    assert_eq!(
        offer(&mut queue, Ecn::NotEct, 0),
        (dropped, Vec::from([(false, Cause::Early, Ecn::NotEct)]))
    );
    // Without the option nothing is marked.
    let mut queue = steady(false);
    assert_eq!(offer(&mut queue, Ecn::Ect0, 0).0, dropped);
    // Beyond the range of control marks are over.
    let mut queue = steady(true);
    while queue.length().packets < 12 {
        offer(&mut queue, Ecn::Ect0, TAILS);
    }
    assert_eq!(offer(&mut queue, Ecn::Ect0, TAILS).0, Admission::Dropped(Cause::Forced));
    assert_eq!(queue.count, Some(0));
}

#[test]
fn a_full_queue_drops_without_a_mark() {
    let limit = Limit::Packets(8);
    let mut queue = steady(true);
    queue.config.limit = limit;
    let item = Item::new((), 1500, Ecn::Ect0);
    let mut events = Vec::new();
    let outcome = queue.enqueue(at(0), item, &mut || 0, &mut |event| match event {
        Event::Dropped { cause, item, .. } => events.push((cause, item.marked)),
        other => panic!("{other:?}"),
    });
    assert_eq!(outcome, Admission::Dropped(Cause::Tail));
    assert_eq!(events, [(Cause::Tail, false)]);
}
