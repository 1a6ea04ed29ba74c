//! Properties of every discipline.

use std::boxed::Box;
use std::vec::Vec;

use proptest::prelude::*;

use super::config::Choice;
use super::*;

/// One of each, with parameters that make them act on short queues.
fn configs() -> Vec<Config> {
    [
        "drop-tail(7 packets)",
        "drop-tail(5000B)",
        "drop-tail(unlimited)",
        "drop-head(7 packets)",
        "drop-head(5000B)",
        "red(9 packets, min=1, max=5, w=1/2, p=1/4, transmission=1ms)",
        "red(9 packets, min=1, max=5, w=1/2, p=1/4, gentle, ecn)",
        "red(limit=9kB, min=1kB, max=5kB, w=1/4, p=1/2, packet=1kB, gentle, ecn)",
        "codel(9 packets, target=1ms, interval=3ms, mtu=1000)",
        "codel(9kB, target=1ms, interval=3ms, mtu=1000, ecn)",
        "pie(9 packets, target=1ms, update=1ms, burst=2ms, alpha=50, beta=500, packet=500)",
        "pie(40kB, target=1ms, update=1ms, burst=0, alpha=90, bytes, departure-rate, derandomize, packet=500, ecn, \
         ecn-limit=1)",
        "fq-codel(9 packets, flows=3, target=1ms, interval=3ms, quantum=700B, mtu=500)",
        "fq-codel(9kB, flows=2, target=1ms, interval=3ms, mtu=500, ce-threshold=2ms)",
        "dualpi2(9 packets, target=1ms, update=1ms, alpha=50, beta=500, mtu=100)",
        "dualpi2(9kB, target=1ms, update=1ms, alpha=50, beta=500, mtu=100, classic=1/3, ecn=false)",
        "cake(9kB, flows=8, rtt=2ms)",
        "cake(9 packets, flows=8, rtt=2ms, bandwidth=50Mbit/s, overhead=20, mpu=84, isolation=source, ecn=false)",
        "fq(9 packets, flow-limit=3, quantum=700B, initial-quantum=700B)",
        "fq(9kB, flow-limit=5, refill=1ms, maxrate=30Mbit/s, ce-threshold=1ms)",
    ]
    .iter()
    .map(|text| text.parse().unwrap_or_else(|error| panic!("{text}: {error}")))
    .collect()
}

/// A call, after some nanoseconds.
#[derive(Clone, Debug)]
enum Call {
    Enqueue { after: u64, len: usize, ecn: Ecn, flow: u64 },
    Dequeue { after: u64 },
}

fn calls() -> impl Strategy<Value = Vec<Call>> {
    let ecn = prop_oneof![Just(Ecn::NotEct), Just(Ecn::Ect0), Just(Ecn::Ect1), Just(Ecn::Ce)];
    // Mostly up to 2 ms, sometimes nothing at all or an hour.
    let after = || prop_oneof![8 => 0..2_000_000u64, 3 => Just(0), 1 => Just(3_600_000_000_000)];
    let len = prop_oneof![8 => 0..2000usize, 1 => Just(65_536)];
    let enqueue = (after(), len, ecn, 0..5u64).prop_map(|(after, len, ecn, flow)| Call::Enqueue {
        after,
        len,
        ecn,
        flow,
    });
    let dequeue = after().prop_map(|after| Call::Dequeue { after });
    prop::collection::vec(prop_oneof![5 => enqueue, 4 => dequeue], 0..300)
}

/// A packet that knows its number, the codepoint it came with, and its flow.
type Packet = (usize, Ecn, u64);

/// Which queue of the discipline a packet is in: within one, the first in is the first out.
fn queue_of(config: Config, ecn: Ecn, flow: u64) -> u64 {
    match config.0 {
        Choice::DualPi2(_) => u64::from(matches!(ecn, Ecn::Ect1 | Ecn::Ce)),
        // Flows that share a queue keep their order with each other, too; here they are not expected to.
        _ if config.tells_flows_apart() => flow,
        _ => 0,
    }
}

/// The end of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Sent { marked: bool },
    Dropped(Cause),
    Marked(Cause),
}

/// Makes the calls and checks everything that can be checked on the way.
fn run(
    config: Config,
    calls: &[Call],
    seed: u64,
) -> Result<Vec<(Instant, usize, Fate)>, TestCaseError> {
    let mut state = seed;
    let mut coin = move || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state ^ (state >> 33)
    };
    let mut queue: Box<dyn Discipline<Packet>> = config.build().unwrap();
    let mut now = Instant::ZERO;
    let mut offered = 0;
    // The packets that should be waiting: number, length, arrival, queue.
    let mut waiting: Vec<(usize, usize, Instant, u64)> = Vec::new();
    let mut log = Vec::new();

    // At the end, take out what is left.
    let drain = core::iter::repeat_n(Call::Dequeue { after: 30_000_000 }, calls.len());
    for call in calls.iter().cloned().chain(drain) {
        let before = queue.length();
        let mut events: Vec<(Instant, Item<Packet>, Fate)> = Vec::new();
        let mut sink = |event: Event<'_, Packet>| match event {
            Event::Dropped { at, cause, item } => events.push((at, item, Fate::Dropped(cause))),
            Event::Marked { at, cause, item } => {
                events.push((at, item.clone(), Fate::Marked(cause)))
            }
        };
        let mut sent = None;
        match call {
            Call::Enqueue { after, len, ecn, flow } => {
                now += Duration::from_nanos(after);
                let item = Item::new((offered, ecn, flow), len, ecn);
                let item = item.of_flow(Flow::numbered(flow, flow % 2, flow % 3));
                waiting.push((offered, len, now, queue_of(config, ecn, flow)));
                let outcome = queue.enqueue(now, item, &mut coin, &mut sink);
                let own = events.iter().find_map(|(_, item, fate)| match fate {
                    Fate::Dropped(cause) if item.packet.0 == offered => Some(*cause),
                    _ => None,
                });
                prop_assert_eq!(outcome, own.map_or(Admission::Queued, Admission::Dropped));
                offered += 1;
            }
            Call::Dequeue { after } => {
                now += Duration::from_nanos(after);
                sent = queue.dequeue(now, &mut coin, &mut sink);
                if let Some(item) = &sent {
                    prop_assert!(now >= item.enqueued);
                }
                // A queue that had something either sends it, or says why not, or until when it waits.
                let waits = queue.ready_at().is_some_and(|at| at > now);
                let quiet = sent.is_none() && events.is_empty();
                prop_assert!(!quiet || before.packets == 0 || waits);
            }
        }
        let fates = events.into_iter().chain(sent.map(|item| {
            let fate = Fate::Sent { marked: item.marked };
            (now, item, fate)
        }));
        for (when, item, fate) in fates {
            prop_assert_eq!(when, now);
            let (number, ecn, _) = item.packet;
            let place = waiting.iter().position(|(waits, ..)| *waits == number);
            let Some(place) = place else {
                return Err(TestCaseError::fail(std::format!(
                    "packet {number} came out of nowhere"
                )));
            };
            prop_assert_eq!((item.len, item.enqueued), (waiting[place].1, waiting[place].2));
            // First in, first out; only the packet that just came may be dropped out of turn.
            let leaves = matches!(fate, Fate::Sent { .. });
            let own = waiting[place].3;
            let first = waiting[..place].iter().all(|(.., queue)| *queue != own);
            prop_assert!(first || (number + 1 == offered && !leaves));
            // A mark stays, and only a capable transport's packet has one.
            prop_assert_eq!(item.ecn, if item.marked { Ecn::Ce } else { ecn });
            prop_assert!(!(item.marked && matches!(ecn, Ecn::NotEct | Ecn::Ce)));
            match fate {
                Fate::Marked(_) => prop_assert_eq!(item.ecn, Ecn::Ce),
                Fate::Sent { .. } | Fate::Dropped(_) => {
                    waiting.remove(place);
                }
            }
            log.push((when, number, fate));
        }
        let bytes = waiting.iter().map(|(_, len, ..)| *len as u64).sum();
        let length = queue.length();
        prop_assert_eq!(length, Length { packets: waiting.len() as u64, bytes });
        match config.limit() {
            Limit::Packets(limit) => prop_assert!(length.packets <= limit),
            Limit::Bytes(limit) => prop_assert!(length.bytes <= limit),
            Limit::Unlimited => {}
        }
    }
    prop_assert!(waiting.is_empty() && queue.is_empty());
    // What each queue inside has counted adds up.
    let (mut queues, mut sent, mut dropped) = (0, 0, 0);
    queue.queues(&mut |_, one| {
        queues += 1;
        sent += one.sent.packets;
        dropped += one.dropped;
    });
    if queues > 0 {
        let count = |wanted: &dyn Fn(Fate) -> bool| {
            log.iter().filter(|(.., fate)| wanted(*fate)).count() as u64
        };
        prop_assert_eq!(sent, count(&|fate| matches!(fate, Fate::Sent { .. })));
        prop_assert_eq!(dropped, count(&|fate| matches!(fate, Fate::Dropped(_))));
    }
    Ok(log)
}

proptest! {
    /// Conservation, order, limits and marks are checked in `run`.
    #[test]
    fn every_packet_comes_out_once_or_is_accounted_for(calls in calls(), seed: u64) {
        for config in configs() {
            let log = run(config, &calls, seed)?;
            prop_assert_eq!(run(config, &calls, seed)?, log, "{}", config);
        }
    }
}

/// The property above is worth something only if the disciplines act: each gives every kind of signal it has.
#[test]
fn the_properties_are_tested_on_queues_that_act() {
    let mut state = 7u64;
    let mut random = move |below: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let calls: Vec<Call> = (0..20_000)
        .map(|_| {
            let after = random(900_000);
            if random(9) < 5 {
                let ecn = if random(2) == 0 { Ecn::NotEct } else { Ecn::Ect0 };
                Call::Enqueue { after, len: random(2000) as usize, ecn, flow: random(5) }
            } else {
                Call::Dequeue { after: after * 2 }
            }
        })
        .collect();
    for config in configs() {
        let log = run(config, &calls, 1).unwrap();
        let has = |wanted: &dyn Fn(Fate) -> bool| log.iter().any(|(.., fate)| wanted(*fate));
        let drops = |cause| has(&|fate| fate == Fate::Dropped(cause));
        let marks = has(&|fate| matches!(fate, Fate::Marked(_)));
        let sends_marked = has(&|fate| fate == Fate::Sent { marked: true });
        let (expected, ecn) = match config.0 {
            Choice::DropTail { limit: Limit::Unlimited } => (None, false),
            Choice::DropTail { .. } => (Some(Cause::Tail), false),
            Choice::DropHead { .. } => (Some(Cause::Head), false),
            Choice::Red(red) => (Some(Cause::Early), red.ecn),
            Choice::CoDel(codel) => (Some(Cause::Delay), codel.ecn),
            Choice::Pie(pie) => (Some(Cause::Early), pie.ecn),
            Choice::FqCoDel(fq_codel) => (Some(Cause::Head), fq_codel.ecn),
            Choice::DualPi2(dualpi2) => (Some(Cause::Early), dualpi2.ecn),
            Choice::Cake(cake) => (Some(Cause::Head), cake.ecn),
            Choice::Fq(fq) => (Some(Cause::Tail), fq.ce_threshold.is_some()),
        };
        assert!(expected.is_none_or(drops), "{config}");
        assert_eq!((marks, sends_marked), (ecn, ecn), "{config}");
    }
}
