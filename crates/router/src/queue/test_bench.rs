//! A link with a queue before it, for tests by hand.

use std::boxed::Box;
use std::vec::Vec;

use super::*;

/// A packet: its flow's number, and its number in that flow.
pub(super) type Packet = (u64, u64);

/// A queue, and what became of the packets of each flow.
pub(super) struct Bench {
    pub(super) queue: Box<dyn Discipline<Packet>>,
    pub(super) now: Instant,
    pub(super) sent: Vec<(Instant, Item<Packet>)>,
    pub(super) dropped: Vec<(Instant, Packet, Cause)>,
    state: u64,
    offered: std::collections::BTreeMap<u64, u64>,
}

impl Bench {
    pub(super) fn new(text: &str) -> Self {
        let config: Config = text.parse().unwrap();
        Bench {
            queue: config.build().unwrap(),
            now: Instant::from_secs(1),
            sent: Vec::new(),
            dropped: Vec::new(),
            state: 1,
            offered: Default::default(),
        }
    }

    /// A packet of a flow arrives; the flow's host is its hundreds.
    pub(super) fn arrive(&mut self, flow: u64, len: usize, ecn: Ecn) -> Admission {
        let number = self.offered.entry(flow).or_default();
        let item = Item::new((flow, *number), len, ecn);
        *number += 1;
        let item = item.of_flow(Flow::numbered(flow, flow / 100, 7));
        let Bench { queue, now, dropped, state, .. } = self;
        queue.enqueue(*now, item, &mut || next(state), &mut |event| {
            if let Event::Dropped { at, cause, item } = event {
                dropped.push((at, item.packet, cause));
            }
        })
    }

    /// The link takes a packet.
    pub(super) fn leave(&mut self) -> Option<Item<Packet>> {
        let Bench { queue, now, dropped, state, .. } = self;
        let item = queue.dequeue(*now, &mut || next(state), &mut |event| {
            if let Event::Dropped { at, cause, item } = event {
                dropped.push((at, item.packet, cause));
            }
        });
        self.sent.extend(item.clone().map(|item| (*now, item)));
        item
    }

    /// For this time, each flow offers packets at its rate, and the link sends at its own: both in microseconds for a packet of 1500 bytes.
    pub(super) fn run(&mut self, millis: u64, link: u64, flows: &[(u64, u64, Ecn)]) {
        for micros in 0..millis * 1000 {
            self.now += Duration::from_micros(1);
            for (flow, every, ecn) in flows {
                if micros % every == 0 {
                    self.arrive(*flow, 1500, *ecn);
                }
            }
            if micros % link == 0 {
                self.leave();
            }
        }
    }

    pub(super) fn flows(&mut self, packets: usize) -> Vec<u64> {
        (0..packets).map_while(|_| self.leave()).map(|item| item.packet.0).collect()
    }

    /// How many packets of a flow were sent.
    pub(super) fn count(&self, flow: u64) -> usize {
        self.sent.iter().filter(|(_, item)| item.packet.0 == flow).count()
    }

    pub(super) fn drops(&self, flow: u64) -> usize {
        self.dropped.iter().filter(|(_, packet, _)| packet.0 == flow).count()
    }

    /// The longest that the packets of a flow that left from `from` on have waited, in microseconds.
    pub(super) fn longest(&self, flow: u64, from: Instant) -> u64 {
        let of = |(at, item): &(Instant, Item<Packet>)| {
            (item.packet.0 == flow && *at >= from).then(|| item.waited(*at).as_micros())
        };
        self.sent.iter().filter_map(of).max().unwrap_or(0)
    }

    pub(super) fn statistics(&self, wanted: &str) -> QueueStatistics {
        let mut found = None;
        self.queue.queues(&mut |name, one| {
            if name == wanted {
                found = Some(*one);
            }
        });
        found.unwrap()
    }
}

fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state ^ (*state >> 29)
}
