//! Properties of every discipline.

use std::boxed::Box;
use std::vec::Vec;

use proptest::prelude::*;

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
    ]
    .iter()
    .map(|text| text.parse().unwrap_or_else(|error| panic!("{text}: {error}")))
    .collect()
}

/// A call, after some nanoseconds.
#[derive(Clone, Debug)]
enum Call {
    Enqueue { after: u64, len: usize, ecn: Ecn },
    Dequeue { after: u64 },
}

fn calls() -> impl Strategy<Value = Vec<Call>> {
    let ecn = prop_oneof![Just(Ecn::NotEct), Just(Ecn::Ect0), Just(Ecn::Ect1), Just(Ecn::Ce)];
    // Mostly up to 2 ms, sometimes nothing at all or an hour.
    let after = || prop_oneof![8 => 0..2_000_000u64, 3 => Just(0), 1 => Just(3_600_000_000_000)];
    let len = prop_oneof![8 => 0..2000usize, 1 => Just(65_536)];
    let enqueue =
        (after(), len, ecn).prop_map(|(after, len, ecn)| Call::Enqueue { after, len, ecn });
    let dequeue = after().prop_map(|after| Call::Dequeue { after });
    prop::collection::vec(prop_oneof![5 => enqueue, 4 => dequeue], 0..300)
}

/// A packet that knows its number and the codepoint it came with.
type Packet = (usize, Ecn);

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
    // The packets that should be waiting: number, length, arrival.
    let mut waiting: Vec<(usize, usize, Instant)> = Vec::new();
    let mut log = Vec::new();

    // At the end, take out what is left.
    let drain = core::iter::repeat_n(Call::Dequeue { after: 500_000 }, calls.len());
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
            Call::Enqueue { after, len, ecn } => {
                now += Duration::from_nanos(after);
                let item = Item::new((offered, ecn), len, ecn);
                waiting.push((offered, len, now));
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
                // A queue that had something either sends it or says why not.
                prop_assert!(sent.is_some() || !events.is_empty() || before.packets == 0);
            }
        }
        let fates = events.into_iter().chain(sent.map(|item| {
            let fate = Fate::Sent { marked: item.marked };
            (now, item, fate)
        }));
        for (when, item, fate) in fates {
            prop_assert_eq!(when, now);
            let (number, ecn) = item.packet;
            let place = waiting.iter().position(|(waits, ..)| *waits == number);
            let Some(place) = place else {
                return Err(TestCaseError::fail(std::format!(
                    "packet {number} came out of nowhere"
                )));
            };
            prop_assert_eq!((item.len, item.enqueued), (waiting[place].1, waiting[place].2));
            // First in, first out; only the packet that just came may be dropped out of turn.
            let leaves = matches!(fate, Fate::Sent { .. });
            prop_assert!(place == 0 || (number + 1 == offered && !leaves));
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
        let bytes = waiting.iter().map(|(_, len, _)| *len as u64).sum();
        let length = queue.length();
        prop_assert_eq!(length, Length { packets: waiting.len() as u64, bytes });
        match config.limit() {
            Limit::Packets(limit) => prop_assert!(length.packets <= limit),
            Limit::Bytes(limit) => prop_assert!(length.bytes <= limit),
            Limit::Unlimited => {}
        }
    }
    prop_assert!(waiting.is_empty() && queue.is_empty());
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
                Call::Enqueue { after, len: random(2000) as usize, ecn }
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
        let (expected, ecn) = match config {
            Config::DropTail { limit: Limit::Unlimited } => (None, false),
            Config::DropTail { .. } => (Some(Cause::Tail), false),
            Config::DropHead { .. } => (Some(Cause::Head), false),
            Config::Red(red) => (Some(Cause::Early), red.ecn),
            Config::CoDel(codel) => (Some(Cause::Delay), codel.ecn),
            Config::Pie(pie) => (Some(Cause::Early), pie.ecn),
        };
        assert!(expected.is_none_or(drops), "{config}");
        assert_eq!((marks, sends_marked), (ecn, ecn), "{config}");
    }
}
