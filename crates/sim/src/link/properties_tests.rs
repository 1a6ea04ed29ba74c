//! Properties of every link and every schedule of packets.

use proptest::prelude::*;
use transom_tcp::time::Duration;

use super::corruption::Corrupt;
use super::jitter::Jitter;
use super::rate_trace::Opportunities;
use super::reorder::{Extra, Reorder};
use super::*;
use crate::random::Shape;
use crate::units::{Limit, Probability, Rate};

/// A configuration in which each piece is there or not.
fn config() -> impl Strategy<Value = LinkConfig> {
    let probability =
        || prop_oneof![Just(0u64), 0..=1000u64].prop_map(|n| Probability::ratio(n, 2000));
    let micros = |most: u64| (0..=most).prop_map(Duration::from_micros);
    let queue = prop_oneof![
        (0..30u64).prop_map(Limit::Packets),
        (0..50_000u64).prop_map(Limit::Bytes),
        Just(Limit::Unlimited),
    ]
    .prop_map(QueueConfig::from);
    let managed = prop_oneof![
        Just("drop-head(5 packets)"),
        Just("red(20 packets, min=2, max=8, w=0.1, gentle)"),
        Just("codel(target=100us, interval=1ms)"),
        Just("pie(20 packets, target=200us, update=200us, burst=0ms)"),
    ]
    .prop_map(|text| text.parse().unwrap());
    let queue = prop_oneof![2 => queue, 1 => managed];
    let jitter = prop_oneof![
        (micros(500), micros(500)).prop_map(|(min, max)| Jitter::Uniform { min, max }),
        (micros(500), micros(500)).prop_map(|(mean, deviation)| Jitter::Normal { mean, deviation }),
        (micros(500), 1..5000u32).prop_map(|(scale, shape)| Jitter::Pareto {
            scale,
            shape: Shape::from_thousandths(shape).unwrap(),
            max: Duration::from_secs(1),
        }),
    ];
    let extra =
        prop_oneof![micros(300).prop_map(Extra::Constant), jitter.clone().prop_map(Extra::Drawn),];
    let loss = prop_oneof![
        probability().prop_map(Loss::Bernoulli),
        (probability(), probability(), probability(), probability()).prop_map(
            |(good_to_bad, bad_to_good, bad_loss, good_loss)| {
                Loss::GilbertElliott { good_to_bad, bad_to_good, bad_loss, good_loss }
            }
        ),
        proptest::collection::vec((0..200u64, 0..10u64), 0..5).prop_map(|ranges| Loss::Scripted(
            ranges.into_iter().map(|(first, more)| first..=first + more).collect()
        )),
    ];
    let rate = prop_oneof![
        Just((None, None)),
        (1_000..10_000_000_000u64).prop_map(|rate| (Rate::from_bits_per_sec(rate), None)),
        trace().prop_map(|trace| (None, Some(RateTrace::named("trace").with(trace)))),
    ];
    (
        (rate, queue, micros(2_000)),
        (proptest::option::of(jitter), any::<bool>(), loss),
        (probability(), probability(), probability(), extra),
        proptest::option::of(1..3_000u32),
    )
        .prop_map(|((rate, queue, delay), (jitter, free, loss), effects, mtu)| LinkConfig {
            rate: rate.0,
            rate_trace: rate.1,
            rate_trace_sha256: None,
            policer: None,
            queue,
            window: None,
            delay,
            jitter,
            delay_spread: Duration::ZERO,
            bleach: Bleach::default(),
            jitter_order: if free { JitterOrder::Free } else { JitterOrder::Keep },
            loss,
            duplicate: effects.0,
            corrupt: Corrupt { probability: effects.1, bits: 1 },
            reorder: Reorder { probability: effects.2, extra: effects.3 },
            mtu: mtu.and_then(core::num::NonZeroU32::new),
        })
}

/// Up to twenty opportunities, some at the same time, in up to 60 milliseconds.
fn trace() -> impl Strategy<Value = Opportunities> {
    (proptest::collection::vec(0..=3u32, 0..20), 1..=3u32).prop_map(|(gaps, last)| {
        let mut at = 0;
        let lines = gaps.into_iter().chain([last]).map(|gap| {
            at += gap;
            format!("{at}\n")
        });
        Opportunities::parse(&lines.collect::<String>()).unwrap()
    })
}

/// Whether the configuration could have been read from text.
fn makes_sense(config: &LinkConfig) -> bool {
    let drawn =
        |jitter: Option<Jitter>| !matches!(jitter, Some(Jitter::Uniform { min, max }) if min > max);
    let extra = match config.reorder.extra {
        Extra::Drawn(jitter) => drawn(Some(jitter)),
        Extra::Constant(_) => true,
    };
    let jitter = drawn(config.jitter) && extra;
    let loss =
        !matches!(config.loss, Loss::GilbertElliott { bad_to_good, .. } if bad_to_good.is_zero());
    jitter && loss && !config.reorder.extra.is_none()
}

/// Packets as (nanoseconds since the one before, length).
fn packets() -> impl Strategy<Value = Vec<(u64, usize)>> {
    proptest::collection::vec((prop_oneof![Just(0), 0..100_000u64], 0..3_000usize), 0..200)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn packets_and_bytes_are_conserved(config in config(), packets in packets(), seed: u64) {
        let mut link = LinkModel::new(&config, Streams::new(seed), 0);
        let mut now = Instant::ZERO;
        let (mut offered, mut refused, mut out) = (Traffic::default(), Traffic::default(), Traffic::default());
        for (gap, len) in packets {
            now += Duration::from_nanos(gap);
            offered.count(len);
            if !matches!(link.send(now, len, len), Admission::Queued | Admission::Duplicated) {
                refused.count(len);
            }
            while let Some(delivered) = link.deliver(now) {
                prop_assert_eq!(delivered.packet, delivered.len);
                out.count(delivered.len);
            }
            let counters = link.counters();
            prop_assert_eq!(counters.offered, offered);
            if config.queue.drop_tail().is_some() {
                // Nothing that was admitted is dropped afterwards.
                prop_assert_eq!(counters.dropped(), refused);
            }
            prop_assert_eq!(counters.delivered, out);
            prop_assert_eq!(
                offered.packets + counters.duplicated.packets,
                out.packets + counters.dropped().packets + link.in_flight() as u64
            );
            prop_assert!(link.queued(now).packets <= link.in_flight() as u64 + counters.lost.packets);
        }
        while let Some(delivered) = link.deliver(Instant::FAR_FUTURE) {
            out.count(delivered.len);
        }
        let counters = link.counters();
        prop_assert_eq!(link.in_flight(), 0);
        prop_assert_eq!(link.queued(Instant::FAR_FUTURE), Traffic::default());
        let dropped = counters.dropped();
        prop_assert_eq!(counters.offered.packets + counters.duplicated.packets, out.packets + dropped.packets);
        prop_assert_eq!(counters.offered.bytes + counters.duplicated.bytes, out.bytes + dropped.bytes);
    }

    #[test]
    fn it_does_not_matter_when_somebody_looks(config in config(), packets in packets(), seed: u64) {
        let run = |curious: bool| {
            let mut link = LinkModel::new(&config, Streams::new(seed), 0);
            let mut now = Instant::ZERO;
            let mut out = Vec::new();
            for &(gap, len) in &packets {
                if curious {
                    // At every event on the way, and in between.
                    let until = now + Duration::from_nanos(gap);
                    while let Some(at) = link.next_delivery().filter(|at| *at < until) {
                        link.queued(at);
                        out.extend(link.deliver(at));
                    }
                }
                now += Duration::from_nanos(gap);
                link.send(now, len, len);
            }
            while let Some(at) = link.next_delivery() {
                out.extend(link.deliver(at));
            }
            // Packets that come at the same time may have been asked for one by one.
            out.sort_by_key(|delivered| (delivered.due, delivered.index, delivered.duplicate));
            (out, link.counters())
        };
        prop_assert_eq!(run(false), run(true));
    }

    #[test]
    fn without_a_reordering_piece_the_link_is_first_in_first_out(
        config in config(),
        packets in packets(),
        seed: u64,
    ) {
        let config = LinkConfig {
            jitter_order: JitterOrder::Keep,
            reorder: Reorder::default(),
            ..config
        };
        let mut link = LinkModel::new(&config, Streams::new(seed), 0);
        let mut now = Instant::ZERO;
        for (gap, len) in packets {
            now += Duration::from_nanos(gap);
            link.send(now, (), len);
        }
        let mut last = (0, false, Instant::ZERO);
        while let Some(Delivered { index, duplicate, due, .. }) = link.deliver(Instant::FAR_FUTURE) {
            prop_assert!((index, duplicate) >= (last.0, last.1), "{index} after {}", last.0);
            prop_assert!(due >= last.2);
            last = (index, duplicate, due);
        }
    }

    #[test]
    fn nothing_arrives_before_the_serialiser_and_the_delay_allow(
        config in config(),
        packets in packets(),
        seed: u64,
    ) {
        let mut link = LinkModel::new(&config, Streams::new(seed), 0);
        let mut now = Instant::ZERO;
        for (gap, len) in packets {
            now += Duration::from_nanos(gap);
            link.send(now, (), len);
        }
        while let Some(delivered) = link.deliver(Instant::FAR_FUTURE) {
            let bits = delivered.len as u128 * 8_000_000_000;
            let transmission = config.rate.map_or(0, |rate| bits / u128::from(rate.bits_per_sec()));
            let least = config.delay + Duration::from_nanos(transmission as u64);
            prop_assert!(delivered.due - delivered.sent >= least);
        }
    }

    #[test]
    fn a_queue_never_exceeds_its_limit(config in config(), packets in packets(), seed: u64) {
        let mut link = LinkModel::new(&config, Streams::new(seed), 0);
        let mut now = Instant::ZERO;
        for (gap, len) in packets {
            now += Duration::from_nanos(gap);
            link.send(now, (), len);
            let queued = link.queued(now);
            match config.queue.drop_tail().unwrap_or(Limit::Unlimited) {
                Limit::Packets(limit) => prop_assert!(queued.packets <= limit),
                Limit::Bytes(limit) => prop_assert!(queued.bytes <= limit),
                Limit::Unlimited => {}
            }
        }
    }

    #[test]
    fn a_configuration_survives_being_written(
        config in config().prop_filter("what makes no sense is not read back", makes_sense),
    ) {
        let written = serde_json::to_string(&config).unwrap();
        let unread = config.rate_trace.as_ref().map(|trace| RateTrace::named(trace.to_string()));
        let config = LinkConfig { rate_trace: unread, ..config };
        prop_assert_eq!(serde_json::from_str::<LinkConfig>(&written).unwrap(), config);
    }

    /// Of the packets that arrive in any window, all but the first were begun in it: what they have of bytes, opportunities in it had
    /// to deliver.
    #[test]
    fn a_trace_delivers_no_more_than_its_opportunities(
        trace in trace(),
        queue in prop_oneof![Just("unlimited"), Just("5 packets"), Just("codel(target=100us, interval=1ms)"), Just("drop-head(4 packets)")],
        packets in packets(),
    ) {
        let config = LinkConfig {
            rate_trace: Some(RateTrace::named("trace").with(trace.clone())),
            queue: queue.parse().unwrap(),
            ..LinkConfig::default()
        };
        let mut link = LinkModel::new(&config, Streams::new(1), 0);
        let mut now = Instant::ZERO;
        for (gap, len) in packets {
            now += Duration::from_nanos(gap);
            link.send(now, (), len);
        }
        let mut out = Vec::new();
        while let Some(delivered) = link.deliver(Instant::FAR_FUTURE) {
            prop_assert!(delivered.due > delivered.sent);
            out.push((delivered.due, delivered.len as u64));
        }
        // Each arrives with an opportunity.
        let until_before = |at: Instant| trace.until(Instant::from_nanos(at.as_nanos() - 1));
        prop_assert!(out.iter().all(|(due, _)| trace.until(*due) > until_before(*due)));
        for (index, (from, _)) in out.iter().enumerate() {
            let before = until_before(*from);
            let mut bytes = 0;
            for (due, len) in &out[index + 1..] {
                bytes += len;
                prop_assert!(bytes <= (trace.until(*due) - before) * OPPORTUNITY);
            }
            let all: u64 = out[..=index].iter().map(|(_, len)| len).sum();
            prop_assert!(all <= trace.until(*from) * OPPORTUNITY);
        }
    }
}
