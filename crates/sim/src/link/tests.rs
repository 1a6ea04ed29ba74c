//! Schedules worked out by hand, and the frequencies of the random effects.

use std::sync::{Arc, Mutex};

use transom_tcp::time::Duration;
use transom_wire::checksum::Sum;
use transom_wire::{IpPacket, Ipv4Header, Protocol};

use super::*;

mod traced;

fn link<P: Clone + Send + 'static>(options: &str) -> LinkModel<P> {
    seeded(options, 1, 1)
}

fn seeded<P: Clone + Send + 'static>(options: &str, seed: u64, entity: u64) -> LinkModel<P> {
    LinkModel::new(&options.parse().unwrap(), Streams::new(seed), entity)
}

/// Everything that comes out, however long it takes.
fn drain<P: Clone + Send + 'static>(link: &mut LinkModel<P>) -> Vec<Delivered<P>> {
    std::iter::from_fn(|| link.deliver(Instant::FAR_FUTURE)).collect()
}

/// Offers `count` packets of 1000 bytes, a microsecond apart, and returns what comes out.
fn send_many(link: &mut LinkModel<u64>, count: u64) -> Vec<Delivered<u64>> {
    for i in 0..count {
        link.send(Instant::from_micros(i), i, 1000);
    }
    drain(link)
}

#[track_caller]
fn assert_frequency(count: u64, draws: u64, p: f64) {
    let n = draws as f64;
    let tolerance = 4.0 * (n * p * (1.0 - p)).sqrt();
    assert!((count as f64 - n * p).abs() <= tolerance, "{count} of {draws}, expected {}", n * p);
}

#[test]
fn a_burst_arrives_at_the_rate_after_the_delay() {
    // D + ceil(k·L·8·10^9 / R) nanoseconds, k from 1: rates that divide and rates that do not.
    for (rate, len) in
        [(10_000_000u64, 1250u64), (3_000_000_000, 1), (7, 1500), (999_999_937, 1499)]
    {
        let mut link = link::<u64>(&format!("rate={rate}bit/s, delay=20ms, queue=unlimited"));
        for k in 1..=1000 {
            assert_eq!(link.send(Instant::ZERO, k, len as usize), Admission::Queued);
        }
        for k in 1..=1000u64 {
            let transmission = (u128::from(k * len) * 8_000_000_000).div_ceil(u128::from(rate));
            let expected = Instant::from_nanos(20_000_000 + transmission as u64);
            assert_eq!(link.next_delivery(), Some(expected), "packet {k} at {rate} bit/s");
            assert!(link.deliver(expected - Duration::from_nanos(1)).is_none());
            let delivered = link.deliver(expected).unwrap();
            assert_eq!((delivered.packet, delivered.due), (k, expected));
        }
        assert!(link.deliver(Instant::FAR_FUTURE).is_none());
    }
}

/// A discipline that is asked for each packet gives the same, to the nanosecond, as a queue whose future is computed.
#[test]
fn a_managed_queue_does_not_lose_time() {
    for (rate, len) in
        [(10_000_000u64, 1250u64), (3_000_000_000, 1), (999_999_937, 1499), (10_000_000_000, 64)]
    {
        for queue in ["drop-head(unlimited)", "codel(unlimited, target=1min, interval=1min)"] {
            let mut link = link::<u64>(&format!("rate={rate}bit/s, delay=20ms, queue={queue}"));
            (1..=1000).for_each(|k| {
                link.send(Instant::ZERO, k, len as usize);
            });
            for delivered in drain(&mut link) {
                let k = delivered.packet;
                let transmission = (u128::from(k * len) * 8_000_000_000).div_ceil(u128::from(rate));
                let expected = Instant::from_nanos(20_000_000 + transmission as u64);
                assert_eq!(delivered.due, expected, "packet {k} at {rate} bit/s, {queue}");
            }
        }
    }
}

#[test]
fn a_perfect_link_delivers_at_once() {
    let mut link = link::<&str>("");
    let now = Instant::from_secs(3);
    assert_eq!(link.send(now, "a", 70_000), Admission::Queued);
    assert_eq!(
        link.deliver(now),
        Some(Delivered {
            packet: "a",
            len: 70_000,
            index: 0,
            sent: now,
            due: now,
            duplicate: false,
            marked: false,
            bleach: Bleach::default(),
            corruption: None,
        })
    );
}

#[test]
fn a_burst_into_a_queue_of_k_loses_the_rest() {
    // One is transmitted, seven wait, of twenty.
    let mut link = link::<u32>("rate=8Mbit/s, queue=7 packets");
    let admissions: Vec<_> = (0..20).map(|i| link.send(Instant::ZERO, i, 1000)).collect();
    assert!(admissions[..8].iter().all(|admission| *admission == Admission::Queued));
    let full = Admission::QueueFull;
    assert!(admissions[8..].iter().all(|admission| *admission == full));
    let counters = link.counters();
    assert_eq!(counters.queue_full, Traffic { packets: 12, bytes: 12_000 });
    assert_eq!(counters.queue_peak, Traffic { packets: 7, bytes: 7_000 });
    // A packet takes 1 ms. At 0.999999 ms nothing has moved, at 1 ms there is room for one more.
    assert_eq!(link.queued(Instant::from_nanos(999_999)).packets, 7);
    assert_eq!(link.queued(Instant::from_millis(1)), Traffic { packets: 6, bytes: 6_000 });
    assert_eq!(link.send(Instant::from_millis(1), 99, 1000), Admission::Queued);
    assert_eq!(link.send(Instant::from_millis(1), 99, 1000), full);
    assert_eq!(drain(&mut link).len(), 9);
}

#[test]
fn a_queue_in_bytes_takes_small_packets_when_large_ones_do_not_fit() {
    let mut link = link::<()>("rate=8Mbit/s, queue=3000B");
    let results: Vec<bool> = [1000, 1500, 1400, 200, 101, 100, 1]
        .into_iter()
        .map(|len| link.send(Instant::ZERO, (), len) == Admission::Queued)
        .collect();
    // 1000 is transmitted; 1500 + 1400 wait; 200 and 101 would exceed 3000; 100 fills it; 1 is too much.
    assert_eq!(results, [true, true, true, false, false, true, false]);
}

#[test]
fn a_queue_of_zero_still_transmits() {
    let mut link = link::<()>("rate=8Mbit/s, queue=0 packets");
    assert_eq!(link.send(Instant::ZERO, (), 1000), Admission::Queued);
    assert_ne!(link.send(Instant::from_nanos(999_999), (), 1000), Admission::Queued);
    assert_eq!(link.send(Instant::from_millis(1), (), 1000), Admission::Queued);
}

#[test]
fn the_queue_observer_sees_the_schedule() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&seen);
    let mut link = link::<()>("rate=8Mbit/s, queue=2 packets, delay=1s");
    link.observe_queue(move |sample: QueueSample| {
        let event = match sample.event {
            QueueEvent::Enqueued => '+',
            QueueEvent::Dequeued => '-',
            QueueEvent::Dropped => 'x',
        };
        sink.lock().unwrap().push((sample.at.as_micros(), event, sample.length.packets));
    });
    for _ in 0..4 {
        link.send(Instant::ZERO, (), 1000);
    }
    // A late caller: what happened in between is reported with its own times.
    assert_eq!(link.queued(Instant::from_millis(50)).packets, 0);
    assert_eq!(
        *seen.lock().unwrap(),
        [(0, '+', 1), (0, '+', 2), (0, 'x', 2), (1000, '-', 1), (2000, '-', 0)]
    );
}

#[test]
fn the_mtu_counts_the_whole_packet() {
    let mut link = link::<()>("mtu=1500");
    assert_eq!(link.send(Instant::ZERO, (), 1500), Admission::Queued);
    assert_eq!(link.send(Instant::ZERO, (), 1501), Admission::TooBig);
    assert_eq!(link.counters().too_big, Traffic { packets: 1, bytes: 1501 });
}

#[test]
fn scripted_loss_is_exact() {
    let mut link = link::<u64>("loss=packets(0, 3, 5-7)");
    let arrived: Vec<u64> = send_many(&mut link, 10).into_iter().map(|d| d.packet).collect();
    assert_eq!(arrived, [1, 2, 4, 8, 9]);
    assert_eq!(link.counters().lost.packets, 5);
}

#[test]
fn a_packet_that_the_wire_loses_has_used_the_serialiser() {
    let mut link = link::<u64>("rate=8Mbit/s, loss=packets(0)");
    link.send(Instant::ZERO, 0, 1000);
    link.send(Instant::ZERO, 1, 1000);
    assert_eq!(link.next_delivery(), Some(Instant::from_millis(2)));
}

#[test]
fn bernoulli_loss_frequency() {
    let mut link = link::<u64>("loss=2%");
    let arrived = send_many(&mut link, 200_000);
    assert_frequency(link.counters().lost.packets, 200_000, 0.02);
    assert_eq!(arrived.len() as u64 + link.counters().lost.packets, 200_000);
}

#[test]
fn gilbert_elliott_rate_and_burst_length() {
    let mut process = LossProcess::new(
        &"gilbert(1%, 20%)".parse().unwrap(),
        Streams::new(3).rng(1, purpose::LOSS),
    );
    let n = 1_000_000u64;
    let (mut lost, mut bursts, mut before) = (0u64, 0u64, false);
    for index in 0..n {
        let now = process.loses(index);
        lost += u64::from(now);
        bursts += u64::from(now && !before);
        before = now;
    }
    // Stationary: p/(p+r) = 1/21. The variance of the count is n·π(1−π)·(1+λ)/(1−λ), λ = 1−p−r = 0.79.
    let pi = 1.0 / 21.0;
    let deviation = (n as f64 * pi * (1.0 - pi) * 1.79 / 0.21).sqrt();
    assert!((lost as f64 - n as f64 * pi).abs() < 4.0 * deviation, "{lost} lost");
    // Bursts last 1/r = 5 packets on average, geometrically: deviation √(1−r)/r = 4.47.
    let mean = lost as f64 / bursts as f64;
    assert!((mean - 5.0).abs() < 4.0 * 4.47 / (bursts as f64).sqrt(), "bursts of {mean}");
}

#[test]
fn gilbert_elliott_with_partial_losses() {
    // π = 10/(10+30) bad: 0.25·0.5 + 0.75·0.02 = 0.14.
    let mut link = link::<u64>("loss=gilbert(10%, 30%, 50%, 2%)");
    let n = 500_000;
    send_many(&mut link, n);
    let frequency = link.counters().lost.packets as f64 / n as f64;
    // λ = 0.6 adds 2·π(1−π)(0.48)²·λ/(1−λ) to the variance of a coin: 0.120 + 0.130.
    assert!((frequency - 0.14).abs() < 4.0 * (0.25 / n as f64).sqrt(), "{frequency}");
}

#[test]
fn duplicates_follow_their_originals() {
    let mut link = link::<u64>("duplicate=10%, delay=5ms");
    let arrived = send_many(&mut link, 100_000);
    let duplicated = link.counters().duplicated.packets;
    assert_frequency(duplicated, 100_000, 0.1);
    assert_eq!(arrived.len() as u64, 100_000 + duplicated);
    for pair in arrived.windows(2) {
        if pair[1].duplicate {
            assert_eq!((pair[0].index, pair[0].due), (pair[1].index, pair[1].due));
            assert!(!pair[0].duplicate);
        }
    }
}

#[test]
fn corruption_is_announced_as_often_as_asked() {
    let mut link = link::<u64>("corrupt=5% by 3 bits");
    let arrived = send_many(&mut link, 100_000);
    let damaged: Vec<_> = arrived.iter().filter_map(|delivered| delivered.corruption).collect();
    assert_frequency(damaged.len() as u64, 100_000, 0.05);
    assert_eq!(link.counters().corrupted, damaged.len() as u64);
    assert!(damaged.iter().all(|damage| damage.bits == 3));
    let mut bytes = [0u8; 40];
    damaged[0].apply(&mut bytes);
    assert_eq!(bytes.iter().map(|byte| byte.count_ones()).sum::<u32>(), 3);
}

/// What arrives of a burst of packets with a codepoint. They wait for 12 ms each, long enough for a mark by any queue.
fn codepoints(link: &str, sent: Ecn) -> Vec<Ecn> {
    let mut link = self::link::<[u8; 20]>(link);
    let mut bytes = [0; 20];
    let header = Ipv4Header::new([192, 0, 2, 1].into(), [192, 0, 2, 2].into(), Protocol::TCP);
    header.emit(0, &mut bytes).unwrap();
    set_ecn(&mut bytes, sent).unwrap();
    for _ in 0..8 {
        link.send_of(Instant::ZERO, bytes, 1500, (sent, Flow::default()));
    }
    let delivered = std::iter::from_fn(|| link.deliver(Instant::from_secs(1)));
    let arrived = delivered.map(|delivered| delivered.into_packet(|bytes| bytes));
    arrived
        .map(|bytes| {
            assert_eq!(Sum::of(&bytes).checksum(), 0);
            IpPacket::parse(&bytes).unwrap().ecn()
        })
        .collect()
}

#[test]
fn codepoints_are_cleared_on_the_wire() {
    for sent in [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce] {
        assert_eq!(codepoints("bleach=none", sent), [sent; 8]);
        assert_eq!(codepoints("bleach=all", sent), [Ecn::NotEct; 8]);
        let kept = if sent == Ecn::Ect1 { Ecn::NotEct } else { sent };
        assert_eq!(codepoints("bleach=ect1", sent), [kept; 8]);
    }
}

/// The device is behind the queue, which sees the codepoint and whose mark can be lost.
#[test]
fn marks_of_the_queue_are_cleared_too() {
    let marking = "rate=1Mbit/s, queue=dualpi2";
    let marked = codepoints(marking, Ecn::Ect1);
    assert!(marked.contains(&Ecn::Ce) && marked.contains(&Ecn::Ect1), "{marked:?}");
    for (bleach, ect1, ce) in [
        ("ect1", Ecn::NotEct, Ecn::Ce),
        ("ce", Ecn::Ect1, Ecn::NotEct),
        ("all", Ecn::NotEct, Ecn::NotEct),
    ] {
        let arrived = codepoints(&format!("{marking}, bleach={bleach}"), Ecn::Ect1);
        let expected = marked.iter().map(|ecn| if *ecn == Ecn::Ce { ce } else { ect1 });
        assert_eq!(arrived, expected.collect::<Vec<_>>(), "{bleach}");
    }
}

#[test]
fn reordered_packets_are_overtaken_and_no_others() {
    let mut link = link::<u64>("delay=1ms, reorder=1% by 10us");
    let arrived = send_many(&mut link, 100_000);
    assert_frequency(link.counters().reordered, 100_000, 0.01);
    let late =
        arrived.iter().filter(|d| d.due == d.sent + Duration::from_micros(1010)).count() as u64;
    assert_eq!(late, link.counters().reordered);
    let in_time =
        arrived.iter().filter(|d| d.due == d.sent + Duration::from_millis(1)).count() as u64;
    assert_eq!(in_time, 100_000 - late);
    // Packets are 1 µs apart and one in a hundred is 10 µs late. A packet that arrives after a later one
    // is late, and each late packet is overtaken, except at the very end, where no packet follows.
    let mut latest = 0;
    let mut overtaken = 0;
    for delivered in &arrived {
        if delivered.index < latest {
            assert_eq!(delivered.due, delivered.sent + Duration::from_micros(1010));
            overtaken += 1;
        }
        latest = latest.max(delivered.index);
    }
    assert!((late - 1..=late).contains(&overtaken), "{overtaken} of {late}");
}

/// 10^5 packets of which a tenth is held back: mean and deviation of what they are late, to four standard errors.
#[test]
fn packets_are_held_back_for_as_long_as_is_drawn() {
    let mut link = link::<u64>("delay=1ms, reorder=10% by normal(25ms, 8ms)");
    let arrived = send_many(&mut link, 100_000);
    let late: Vec<f64> = arrived
        .iter()
        .map(|one| one.due.since(one.sent + Duration::from_millis(1)).as_nanos() as f64 / 1e6)
        .filter(|late| *late > 0.0)
        .collect();
    // Of a normal distribution with mean 25 and deviation 8, 0.09 % lies below zero and counts as zero.
    let count = late.len() as f64;
    assert_frequency(link.counters().reordered, 100_000, 0.1);
    let mean = late.iter().sum::<f64>() / count;
    let variance = late.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / count;
    assert!((mean - 25.0).abs() < 4.0 * 8.0 / count.sqrt() + 0.03, "{mean}");
    assert!((variance.sqrt() - 8.0).abs() < 4.0 * 8.0 / (2.0 * count).sqrt() + 0.05, "{variance}");
}

#[test]
fn free_jitter_reorders_and_kept_jitter_does_not() {
    let free = send_many(&mut link("delay=1ms, jitter=uniform(100us), jitter-order=free"), 10_000);
    assert!(free.windows(2).any(|pair| pair[0].index > pair[1].index));
    let kept = send_many(&mut link("delay=1ms, jitter=uniform(100us)"), 10_000);
    assert!(kept.windows(2).all(|pair| pair[0].index < pair[1].index));
    // Keeping the order only ever delays, and never beyond the largest jitter.
    for delivered in &kept {
        let delay = delivered.due - delivered.sent;
        assert!((1000..=1100).contains(&delay.as_micros()), "{delay:?}");
    }
}

#[test]
fn jitter_moments() {
    // Mean and deviation in microseconds: uniform (a+b)/2 and (b−a)/√12; normal cut at zero ten deviations
    // away; Pareto αx/(α−1) and x/(α−1)·√(α/(α−2)).
    for (jitter, mean, deviation) in [
        ("uniform(2ms, 5ms)", 3500.0, 866.025),
        ("normal(10ms, 1ms)", 10_000.0, 1000.0),
        ("pareto(1ms, 6)", 1200.0, 244.949),
    ] {
        let mut link = link(&format!("delay=7ms, jitter={jitter}, jitter-order=free"));
        let n = 100_000u64;
        let extra: Vec<f64> = send_many(&mut link, n)
            .iter()
            .map(|d| (d.due - d.sent).as_nanos() as f64 / 1e3 - 7000.0)
            .collect();
        let average = extra.iter().sum::<f64>() / n as f64;
        let variance = extra.iter().map(|x| (x - average).powi(2)).sum::<f64>() / n as f64;
        assert!(
            (average - mean).abs() < 4.0 * deviation / (n as f64).sqrt(),
            "{jitter}: {average}"
        );
        assert!((variance.sqrt() / deviation - 1.0).abs() < 0.04, "{jitter}: {}", variance.sqrt());
    }
}

#[test]
fn a_pareto_delay_is_cut_at_its_maximum() {
    let mut link = link("jitter=pareto(1ms, 1, 3ms), jitter-order=free");
    let arrived = send_many(&mut link, 30_000);
    let most = arrived.iter().map(|d| d.due - d.sent).max();
    assert_eq!(most, Some(Duration::from_millis(3)));
    // P(X > 3x_m) = 1/3 for α = 1.
    let cut = arrived.iter().filter(|d| d.due - d.sent == Duration::from_millis(3)).count();
    assert_frequency(cut as u64, 30_000, 1.0 / 3.0);
}

const EVERYTHING: &str = "rate=50Mbit/s, delay=3ms, queue=20 packets, loss=2%, duplicate=1%, \
                          corrupt=1%, reorder=1% by 4ms, jitter=normal(1ms, 1ms)";

#[test]
fn the_same_seed_gives_the_same_schedule() {
    let run = |seed, entity| send_many(&mut seeded(EVERYTHING, seed, entity), 5_000);
    assert_eq!(run(1, 1), run(1, 1));
    assert_ne!(run(1, 1), run(1, 2));
    assert_ne!(run(1, 1), run(2, 1));
}

#[test]
fn one_effect_does_not_shift_the_decisions_of_another() {
    let lost = |options: &str| -> Vec<u64> {
        let mut link = seeded(options, 9, 1);
        (0..5_000)
            .filter(|i| {
                let admission = link.send(Instant::from_millis(*i), *i, 1000);
                admission == Admission::Lost
            })
            .collect()
    };
    let alone = lost("loss=2%");
    assert!(alone.len() > 50);
    let others = "loss=2%, duplicate=1%, corrupt=1%, reorder=1% by 4ms, jitter=normal(1ms, 1ms)";
    assert_eq!(alone, lost(others));
}

#[test]
fn time_does_not_run_backwards() {
    let mut link = link::<u32>("rate=8Mbit/s, delay=1ms");
    link.send(Instant::from_millis(10), 1, 1000);
    link.send(Instant::from_millis(2), 2, 1000);
    let arrived = drain(&mut link);
    assert_eq!(arrived[0].due, Instant::from_millis(12));
    assert_eq!(
        (arrived[1].sent, arrived[1].due),
        (Instant::from_millis(10), Instant::from_millis(13))
    );
}

#[test]
fn an_absurd_delay_saturates() {
    let mut link = link::<()>("delay=1e10s");
    assert!(link.next_delivery().is_none());
    link.send(Instant::FAR_FUTURE, (), 1);
    assert_eq!(link.next_delivery(), Some(Instant::FAR_FUTURE));
}

#[test]
fn beginning_again_repeats_what_is_random() {
    let mut link = seeded::<u64>("loss=5%, duplicate=3%", 7, 1);
    for number in 0..2000 {
        if number == 1000 {
            link.reseed(Streams::new(7), 1);
        }
        link.send(Instant::from_micros(number), number, 1000);
    }
    let lost = link.counters().lost.packets;
    let arrived: Vec<u64> = drain(&mut link).into_iter().map(|one| one.packet).collect();
    let (first, again): (Vec<u64>, Vec<u64>) = arrived.iter().partition(|number| **number < 1000);
    assert!((50..200).contains(&lost), "{lost}");
    assert_eq!(first, again.iter().map(|number| number - 1000).collect::<Vec<_>>());
}
