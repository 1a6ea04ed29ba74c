//! PIE's queue by hand: when updates happen and what they lead to. The controller's arithmetic is tested beside it.

use std::vec::Vec;

use transom_wire::ip::Ecn;

use super::*;
use crate::queue::Event;

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

/// An arrival of 1500 bytes; the coin shows `coin`.
fn arrive(queue: &mut Pie<()>, millis: u64, coin: u64) -> Admission {
    queue.enqueue(at(millis), Item::new((), 1500, Ecn::NotEct), &mut || coin, &mut |_| {})
}

fn leave(queue: &mut Pie<()>, millis: u64) {
    queue.dequeue(at(millis), &mut || panic!("no coin"), &mut |_| panic!()).unwrap();
}

/// A queue of `packets` that came at 0 and of which the first left at 10 ms.
fn standing(config: PieConfig, packets: u32) -> Pie<()> {
    let mut queue = Pie::new(config).unwrap();
    for _ in 0..=packets {
        assert_eq!(arrive(&mut queue, 0, 0), Admission::Queued);
    }
    leave(&mut queue, 10);
    queue
}

#[track_caller]
fn assert_probability(queue: &Pie<()>, expected: f64) {
    let actual = queue.drop_probability().as_f64();
    assert!((actual - expected).abs() < 1e-12, "{actual:e} instead of {expected:e}");
}

#[test]
fn updates_happen_every_15_ms_from_the_first_packet_on() {
    let mut queue = standing(PieConfig::default(), 9);
    leave(&mut queue, 14);
    assert_probability(&queue, 0.0);
    // At 15: the last packet waited for 14 ms. 0.125·(14 − 15) ms + 1.25·14 ms = 0.017375, by 2048.
    leave(&mut queue, 15);
    let first = 0.017375 / 2048.0;
    assert_probability(&queue, first);
    leave(&mut queue, 29);
    assert_probability(&queue, first);
    // At 30: 29 ms. 0.125·14 ms + 1.25·15 ms = 0.0205, by 512, since 8.5e-6 is below 1e-5.
    leave(&mut queue, 30);
    assert_probability(&queue, first + 0.0205 / 512.0);
}

#[test]
fn updates_are_made_up_for_as_of_their_own_time() {
    let mut queue = standing(PieConfig::default(), 9);
    leave(&mut queue, 14);
    leave(&mut queue, 29);
    // Nothing happens until 75: updates at 30, 45, 60 and 75 with 29 ms. β adds to the first one only.
    arrive(&mut queue, 75, u64::MAX);
    let mut p = 0.017375 / 2048.0 + 0.0205 / 512.0;
    for _ in 0..3 {
        // 4.9e-5 and what follows is below 1e-4.
        p += 0.00175 / 128.0;
    }
    assert_probability(&queue, p);
    // A queue that is asked every millisecond computes the same.
    let mut other = standing(PieConfig::default(), 9);
    leave(&mut other, 14);
    leave(&mut other, 29);
    for millis in 30..=75 {
        arrive(&mut other, millis, u64::MAX);
    }
    assert_eq!(queue.drop_probability(), other.drop_probability());
}

#[test]
fn a_long_idle_period_forgets_everything_in_few_steps() {
    let mut queue = standing(PieConfig::default(), 0);
    queue.controller = controller_at(Probability::ONE);
    // An idle year.
    assert_eq!(arrive(&mut queue, 365 * 86_400_000, 0), Admission::Queued);
    assert_eq!(queue.drop_probability(), Probability::ZERO);
    assert!(queue.controller.tolerates_burst());
    // And the timer goes on in step: a year is a whole number of periods, hence the next update is 15 ms later.
    assert_eq!(queue.next_update, Some(at(365 * 86_400_000 + 15)));
}

/// A controller with this probability, a delay above target and no burst allowance left.
fn controller_at(p: Probability) -> Controller {
    let long = Duration::from_millis(20);
    // Ten updates at most use up the allowance; the probability is then set to what is asked for.
    let config = PieConfig { burst: Duration::ZERO, ..PieConfig::default() };
    let mut controller = Controller::new(&config);
    controller.update(&config, long);
    controller.with_probability(p)
}

#[test]
fn a_burst_is_let_through_for_150_ms() {
    let mut queue = standing(PieConfig::default(), 9);
    queue.controller = Controller::new(&PieConfig::default()).with_probability(Probability::ONE);
    // Updates at 15, 30, …, 150 use up the allowance. The coin says "drop" from the beginning.
    for millis in 11..150 {
        assert_eq!(arrive(&mut queue, millis, 0), Admission::Queued, "{millis}");
        queue.controller = queue.controller.with_probability(Probability::ONE);
    }
    assert_eq!(arrive(&mut queue, 150, 0), Admission::Dropped(Cause::Early));
}

#[test]
fn a_short_queue_and_a_short_delay_are_spared() {
    let config = PieConfig::default();
    // Two packets of the mean size are not more than two packets of the mean size.
    let mut queue = standing(config, 2);
    queue.controller = controller_at(Probability::ONE);
    assert_eq!(arrive(&mut queue, 11, 0), Admission::Queued);
    assert_eq!(arrive(&mut queue, 11, 0), Admission::Dropped(Cause::Early));

    // A delay below half the target (7.5 ms), while the probability is below a fifth.
    let mut queue = standing(config, 9);
    let mut with = |p, delay| {
        let none = PieConfig { burst: Duration::ZERO, ..config };
        queue.controller = Controller::new(&none);
        queue.controller.update(&none, delay);
        queue.controller = queue.controller.with_probability(p);
        arrive(&mut queue, 11, 0)
    };
    let (short, half) = (Duration::from_micros(7499), Duration::from_micros(7500));
    let below = Probability::from_parts(Probability::ratio(1, 5).parts() - 1);
    assert_eq!(with(below, short), Admission::Queued);
    assert_eq!(with(below, half), Admission::Dropped(Cause::Early));
    assert_eq!(with(Probability::ratio(1, 5), short), Admission::Dropped(Cause::Early));
}

#[test]
fn in_bytes_the_probability_is_in_proportion_to_the_length() {
    let config = PieConfig { bytes: true, packet_size: 1024, ..PieConfig::default() };
    // 1/4 for 1024 bytes: 1/64 for 64.
    for (len, log) in [(1024, 62), (64, 58), (2048, 63)] {
        for (coin, expected) in
            [((1 << log) - 2, Admission::Dropped(Cause::Early)), (1 << log, Admission::Queued)]
        {
            let mut queue = standing(config, 9);
            queue.controller = controller_at(Probability::ratio(1, 4));
            let item = Item::new((), len, Ecn::NotEct);
            assert_eq!(queue.enqueue(at(11), item, &mut || coin, &mut |_| {}), expected, "{len}");
        }
    }
}

#[test]
fn derandomized_drops_are_neither_too_close_nor_too_far() {
    let config = PieConfig { derandomize: true, ..PieConfig::default() };
    // The distances to the next signals with a probability of 1/4, for a coin that always or never shows heads.
    let distances = |coin: u64| {
        let mut queue = standing(config, 9);
        queue.controller = controller_at(Probability::ratio(1, 4));
        let mut since = 0;
        let mut distances = Vec::new();
        for _ in 0..70 {
            since += 1;
            match arrive(&mut queue, 11, coin) {
                Admission::Queued => {}
                Admission::Dropped(cause) => distances.push((core::mem::take(&mut since), cause)),
            }
        }
        distances
    };
    // 4 · 0.25 is the first sum that is not below 0.85, 34 · 0.25 the first not below 8.5.
    assert_eq!(distances(0)[..2], [(4, Cause::Early), (4, Cause::Early)]);
    assert_eq!(distances(u64::MAX), [(34, Cause::Forced), (34, Cause::Forced)]);
}

#[test]
fn marks_replace_drops_below_ten_per_cent() {
    let config = PieConfig { ecn: true, ..PieConfig::default() };
    let tenth = Probability::ratio(1, 10);
    let offer = |p, ecn| {
        let mut queue = standing(config, 9);
        queue.controller = controller_at(p);
        let mut marks = 0;
        let item = Item::new((), 1500, ecn);
        let outcome = queue.enqueue(at(11), item, &mut || 0, &mut |event| {
            if let Event::Marked { cause: Cause::Early, item, .. } = event {
                assert_eq!((item.ecn, item.marked), (Ecn::Ce, true));
                marks += 1;
            }
        });
        (outcome, marks)
    };
    let below = Probability::from_parts(tenth.parts() - 1);
    assert_eq!(offer(below, Ecn::Ect0), (Admission::Queued, 1));
    assert_eq!(offer(below, Ecn::NotEct), (Admission::Dropped(Cause::Early), 0));
    assert_eq!(offer(tenth, Ecn::Ect0), (Admission::Dropped(Cause::Early), 0));
}

#[test]
fn with_the_departure_rate_the_delay_is_known_before_packets_have_waited() {
    let config = PieConfig { departure_rate: true, ..PieConfig::default() };
    let mut queue = Pie::new(config).unwrap();
    // 16 KiB leave in 8 ms (from 1 ms on, when measuring starts, to 9 ms), in packets of 2 KiB.
    let item = || Item::new((), 2048, Ecn::NotEct);
    for _ in 0..32 {
        queue.enqueue(at(0), item(), &mut || 0, &mut |_| panic!());
    }
    for millis in 1..=9 {
        leave(&mut queue, millis);
    }
    // 23 packets are left, or 23/8 thresholds: 23 ms. At 15: 0.125·8 ms + 1.25·23 ms = 0.02975, by 2048.
    leave(&mut queue, 15);
    assert_probability(&queue, 0.02975 / 2048.0);
}
