//! Delays worked out by hand: a packet of 1250 bytes takes a millisecond.

use super::*;
use crate::link::LinkModel;
use crate::random::Streams;
use transom_tcp::time::Instant;

fn link(queue: &str) -> LinkModel<u32> {
    let config = format!("rate=10Mbit/s, delay=7ms, queue={queue}").parse().unwrap();
    let mut link = LinkModel::new(&config, Streams::new(1), 0);
    link.measure_delays();
    link
}

fn at(micros: u64) -> Instant {
    Instant::from_micros(micros)
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Every discipline that leaves four packets alone.
const DISCIPLINES: [&str; 9] = [
    "10 packets",
    "drop-head(10 packets)",
    "red(20 packets, min=5, max=15)",
    "codel(target=50ms, interval=100ms)",
    "pie(target=50ms)",
    "fq-codel(target=50ms)",
    "dualpi2(target=50ms)",
    "cake",
    "fq",
];

#[test]
fn four_at_once() {
    for queue in DISCIPLINES {
        let mut link = link(queue);
        let before = LinkSample::take(&mut link, at(0));
        (0..4).for_each(|number| {
            link.send(at(0), number, 1250);
        });
        // The first leaves at once, the second after 1 ms.
        let early = LinkSample::take(&mut link, at(1500));
        assert_eq!(early.counters.dequeued, 2, "{queue}");
        assert_eq!(early.counters.queue_delay, ms(1), "{queue}");
        assert_eq!(early.delays.max(), Some(ms(1)), "{queue}");
        let late = LinkSample::take(&mut link, at(3000));
        assert_eq!((late.counters.dequeued, late.waiting.packets), (4, 0), "{queue}");
        assert_eq!(late.delays.count(), 2, "{queue}");
        let all = QueueDelay::between(&[before, early.clone(), late.clone()], Lane::All).unwrap();
        assert_eq!(
            (all.packets(), all.mean(), all.percentile(100.0)),
            (4, 1.5e6, ms(3)),
            "{queue}"
        );
        assert_eq!(all.percentile(0.0), Duration::ZERO);
        let near = |measured: Duration, exact: u64| {
            let ratio = measured.as_nanos() as f64 / exact as f64;
            assert!((1.0..1.01).contains(&ratio), "{queue}: {measured:?}");
        };
        assert_eq!(all.percentile(25.0), Duration::ZERO);
        near(all.percentile(50.0), 1_000_000);
        near(all.percentile(75.0), 2_000_000);
        assert_eq!(all.percentile(100.0), ms(3));
        // √((1.5² + 0.5² + 0.5² + 1.5²) / 4) ms
        assert!((all.deviation() / 1.25f64.sqrt() / 1e6 - 1.0).abs() < 0.01, "{queue}");
        // 2 ms and 3 ms.
        let second = QueueDelay::between(&[early, late], Lane::All).unwrap();
        assert_eq!((second.packets(), second.mean()), (2, 2.5e6), "{queue}");
        let least = second.percentile(0.0).as_nanos();
        assert!((1_980_000..=2_000_000).contains(&least), "{queue}: {least}");
    }
}

#[test]
fn packets_that_find_the_link_idle_count() {
    for queue in DISCIPLINES {
        let mut link = link(queue);
        let before = LinkSample::take(&mut link, at(0));
        (0..10).for_each(|number| {
            link.send(at(1000 * u64::from(number)), number, 1250);
        });
        let after = LinkSample::take(&mut link, at(50_000));
        assert!(after.delays.is_empty(), "{queue}");
        let delay = QueueDelay::between(&[before.clone(), after], Lane::All).unwrap();
        assert_eq!((delay.packets(), delay.mean()), (10, 0.0), "{queue}");
        assert_eq!(
            (delay.percentile(100.0), delay.percentile(99.0)),
            (Duration::ZERO, Duration::ZERO)
        );
        assert!(QueueDelay::between(&[before.clone(), before], Lane::All).is_none());
    }
}

#[test]
fn dropped_packets_do_not_count() {
    // One is on the wire and two wait; the fourth is refused, or drives out the second.
    for (queue, total) in [("2 packets", ms(3)), ("drop-head(2 packets)", ms(3))] {
        let mut link = link(queue);
        (0..4).for_each(|number| {
            link.send(at(0), number, 1250);
        });
        let after = LinkSample::take(&mut link, at(10_000));
        assert_eq!((after.counters.dequeued, after.counters.queue_delay), (3, total), "{queue}");
    }
    // Lost on the wire: it has waited all the same.
    let mut link = link("2 packets, loss=packets(1)");
    (0..3).for_each(|number| {
        link.send(at(0), number, 1250);
    });
    let after = LinkSample::take(&mut link, at(10_000));
    assert_eq!((after.counters.dequeued, after.counters.queue_delay), (3, ms(3)));
}

#[test]
fn unmeasured_links_count_and_remember_nothing() {
    for queue in DISCIPLINES {
        let config = format!("rate=10Mbit/s, queue={queue}").parse().unwrap();
        let mut link: LinkModel<u32> = LinkModel::new(&config, Streams::new(1), 0);
        link.send(at(0), 0, 1250);
        link.send(at(0), 1, 1250);
        let after = LinkSample::take(&mut link, at(5_000));
        assert_eq!((after.counters.dequeued, after.counters.queue_delay), (2, ms(1)), "{queue}");
        assert!(after.delays.is_empty());
    }
}

/// Packets of both lanes of a dual queue: those with ECT(1) go first, and each lane has its own delays.
#[test]
fn lanes_are_told_apart() {
    use transom_router::queue::Flow;
    use transom_wire::ip::Ecn;

    let mut link = link("dualpi2(target=50ms)");
    let before = LinkSample::take(&mut link, at(0));
    for (number, ecn) in [Ecn::Ect0, Ecn::Ect0, Ecn::Ect1, Ecn::Ect0].into_iter().enumerate() {
        link.send_of(at(0), number as u32, 1250, (ecn, Flow::default()));
    }
    let after = LinkSample::take(&mut link, at(10_000));
    let of = |lane| QueueDelay::between(&[before.clone(), after.clone()], lane).unwrap();
    let (all, low, classic) = (of(Lane::All), of(Lane::LowLatency), of(Lane::Classic));
    assert_eq!((all.packets(), low.packets(), classic.packets()), (4, 1, 3));
    // The first was on its way already; the third overtakes the second.
    assert_eq!((low.mean(), low.percentile(100.0)), (1e6, ms(1)));
    assert!((classic.mean() - 5e6 / 3.0).abs() < 1.0, "{}", classic.mean());
    assert_eq!(all.percentile(100.0), ms(3));
}

/// A shaper in the queue holds packets back although the link is free: the model asks again when the queue is ready.
#[test]
fn a_queue_that_waits_is_asked_again() {
    // 1250 bytes take 2 ms at 5 Mbit/s, and a millisecond on the link.
    let mut link = link("cake(bandwidth=5Mbit/s)");
    (0..3).for_each(|number| {
        link.send(at(0), number, 1250);
    });
    let mut times = Vec::new();
    while let Some(due) = link.next_delivery() {
        times.extend(link.deliver(due).map(|packet| (packet.packet, packet.due)));
    }
    let expected = [(0, at(8_000)), (1, at(10_000)), (2, at(12_000))];
    assert_eq!(times, expected);
}
