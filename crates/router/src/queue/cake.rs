//! A queue like CAKE: flows and hosts get equal shares, COBALT keeps each queue short, and a shaper makes the queue stand here.
//!
//! What is as in Linux' `sch_cake` (Høiland-Jørgensen, Täht, Morton, "Piece of CAKE", LANMAN 2018):
//!
//! - a hash with sets of eight queues: flows share a queue only where nine meet in one set;
//! - sparse flows go first, then bulk flows in rounds ([`rounds`](super::rounds));
//! - the quantum of a flow is divided by the number of its host's bulk flows ([`hosts`]), so that hosts and then flows are equal;
//! - COBALT in each queue ([`cobalt`]), with `target` a twentieth of `rtt`, or the time of one and a half packets at the shaper's rate;
//! - when all queues are full, the longest loses its oldest packet, and BLUE learns of it;
//! - the shaper ([`shaper`]): `bandwidth`, with `overhead` and `mpu` for what the link adds to packets.
//!
//! What is left out: DiffServ tins and washing, the ACK filter, NAT look-ups, the estimate of the incoming rate (`autorate-ingress`) and ingress
//! mode, the framing of ATM and PTM, and splitting super-segments. The longest queue is found by looking at all that wait, not in a heap.
//!
//! The divided quantum is rounded down, and one byte at least; Linux rounds at random.

mod cobalt;
mod hosts;
mod shaper;

use alloc::vec::Vec;
use core::num::NonZeroU64;

use transom_base::time::{Duration, Instant};

use super::config::above_zero;
use super::rounds::{List, Rounds, Turn};
use super::{
    Admission, Cause, ConfigError, Discipline, Event, Fifo, Flow, Item, Length, Limit,
    QueueStatistics, RandomSource, Sink, mark, refuse,
};
use crate::parameters::{CHOICE, DURATION, Kind, LENGTH, LIMIT, SOME_RATE, Shown, Walk, number};

use cobalt::{Cobalt, Times, Wish};
use hosts::Hosts;
use shaper::Shaper;

/// Queues in a set of the hash.
const WAYS: usize = 8;
/// The most queues: their state is made at once.
const MOST_FLOWS: u32 = 65_536;
/// A full packet with its Ethernet header.
const QUANTUM: u32 = 1514;

/// The parties that get equal shares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum Isolation {
    /// Source hosts and destination hosts, and the flows of each.
    #[default]
    Triple,
    /// Source hosts, and the flows of each.
    DualSource,
    /// Destination hosts, and the flows of each.
    DualDestination,
    /// Flows alone.
    Flows,
}

const ISOLATION: Kind<Isolation> = Kind {
    example: "triple, source, destination or flows",
    read: |word| {
        Some(match word {
            "triple" => Isolation::Triple,
            "source" => Isolation::DualSource,
            "destination" => Isolation::DualDestination,
            "flows" => Isolation::Flows,
            _ => return None,
        })
    },
    show: |isolation| {
        let word = match isolation {
            Isolation::Triple => "triple",
            Isolation::DualSource => "source",
            Isolation::DualDestination => "destination",
            Isolation::Flows => "flows",
        };
        Shown::Value(word.into())
    },
};

/// The parameters of [`Cake`]. The default has those of Linux' `sch_cake`, with a single tin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct CakeConfig {
    /// The capacity of all queues together.
    pub(super) limit: Limit,
    /// How many queues there are: a multiple of eight.
    pub(super) flows: u32,
    /// The shaper's rate, in bits per second; without it only the link limits.
    pub(super) bandwidth: Option<NonZeroU64>,
    /// Bytes that each packet takes besides its own on the link that limits; may be negative.
    pub(super) overhead: i32,
    /// The least that a packet takes there, in bytes.
    pub(super) mpu: u32,
    /// The round-trip time that is usual on the path: COBALT's interval.
    pub(super) rtt: Duration,
    /// The parties that get equal shares.
    pub(super) isolation: Isolation,
    /// Whether packets of ECN-capable transports are marked instead of dropped.
    pub(super) ecn: bool,
}

impl Default for CakeConfig {
    fn default() -> Self {
        CakeConfig {
            limit: Limit::Bytes(4 << 20),
            flows: 1024,
            bandwidth: None,
            overhead: 0,
            mpu: 0,
            rtt: Duration::from_millis(100),
            isolation: Isolation::Triple,
            ecn: true,
        }
    }
}

impl CakeConfig {
    /// # Errors
    /// [`ConfigError`] if the parameters make no sense together.
    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        above_zero(&[("flows", self.flows / WAYS as u32 == 0)])?;
        if self.flows > MOST_FLOWS {
            return Err(ConfigError::TooLarge { parameter: "flows", most: MOST_FLOWS.into() });
        }
        above_zero(&[("rtt", self.rtt.is_zero())])
    }

    /// All parameters.
    pub(super) fn walk(&mut self, walk: &mut Walk<'_>) {
        walk.at("limit", &mut self.limit, LIMIT);
        walk.at("flows", &mut self.flows, number("1024"));
        walk.at("bandwidth", &mut self.bandwidth, SOME_RATE);
        walk.at("overhead", &mut self.overhead, number("18 or -4"));
        walk.at("mpu", &mut self.mpu, LENGTH);
        walk.at("rtt", &mut self.rtt, DURATION);
        walk.at("isolation", &mut self.isolation, ISOLATION);
        walk.at("ecn", &mut self.ecn, CHOICE);
    }
}

/// A flow's queue.
#[derive(Clone, Debug)]
struct Queue<P> {
    /// Whose it is, while it is in use.
    owner: Flow,
    fifo: Fifo<P>,
    cobalt: Cobalt,
    turn: Turn,
    /// Whether its host counts it as bulk.
    bulk: bool,
}

/// Queues for flows and hosts, behind a shaper.
#[derive(Clone, Debug)]
pub(super) struct Cake<P> {
    config: CakeConfig,
    times: Times,
    /// How long a packet of an MTU takes at the shaper's rate.
    packet_time: Duration,
    queues: Vec<Queue<P>>,
    hosts: Hosts,
    rounds: Rounds<u32>,
    shaper: Option<Shaper>,
    length: Length,
    /// Bulk flows in all.
    bulk_flows: u32,
    /// What flows have sent as sparse ones, and as bulk ones.
    sparse: QueueStatistics,
    bulk: QueueStatistics,
}

impl<P> Cake<P> {
    /// Empty queues.
    pub(super) fn new(config: CakeConfig) -> Result<Self, ConfigError> {
        config.validate()?;
        let shaper = config.bandwidth.map(|rate| Shaper::new(rate, config.overhead, config.mpu));
        let packet_time = shaper.map_or(Duration::ZERO, |shaper| shaper.takes(QUANTUM as usize));
        let target = config.rtt.over(20).max(packet_time.times(3).over(2));
        // The interval grows with the target, so that the one stays small beside the other.
        let interval = config.rtt.max(config.rtt + target - config.rtt.over(20));
        let queue = || Queue {
            owner: Flow::default(),
            fifo: Fifo::new(),
            cobalt: Cobalt::default(),
            turn: Turn::default(),
            bulk: false,
        };
        let queues = config.flows as usize / WAYS * WAYS;
        Ok(Cake {
            times: Times { target, interval },
            packet_time,
            queues: core::iter::repeat_with(queue).take(queues).collect(),
            hosts: Hosts::new(),
            rounds: Rounds::new(),
            shaper,
            length: Length::default(),
            bulk_flows: 0,
            sparse: QueueStatistics::default(),
            bulk: QueueStatistics::default(),
            config,
        })
    }

    /// The number of the queue for a flow: its own, a free one in its set, or one that it has to share.
    fn find(&self, flow: Flow) -> u32 {
        let direct = flow.id % self.queues.len().max(1) as u64;
        let set = (direct / WAYS as u64 * WAYS as u64) as usize;
        let ways = self.queues.get(set..set + WAYS).unwrap_or_default();
        let used = |queue: &Queue<P>| queue.turn.list != List::Idle;
        let own = ways.iter().position(|queue| used(queue) && queue.owner.id == flow.id);
        // One that is free and the direct one, for the state that a flow left there.
        let direct_is_free = ways.get(direct as usize % WAYS).is_some_and(|queue| !used(queue));
        let free = || match direct_is_free {
            true => Some(direct as usize % WAYS),
            false => ways.iter().position(|queue| !used(queue)),
        };
        let way = own.or_else(free).unwrap_or(direct as usize % WAYS);
        (set + way) as u32
    }

    /// Drops the oldest packet of the longest queue. Whether that emptied queue `arrived`.
    fn make_room(&mut self, now: Instant, arrived: u32, sink: &mut Sink<'_, P>) -> bool {
        let longest = self.rounds.iter().max_by_key(|&flow| {
            let length = self.queues.get(flow as usize).map(|queue| queue.fifo.length());
            length.map_or((0, 0), |length| (length.bytes, length.packets))
        });
        let found =
            longest.and_then(|flow| self.queues.get_mut(flow as usize).map(|queue| (flow, queue)));
        let Some((flow, queue)) = found else { return false };
        queue.cobalt.on_full(now, &self.times);
        if let Some(item) = queue.fifo.pop() {
            self.length.take(item.len);
            self.bulk.dropped += 1;
            sink(Event::Dropped { at: now, cause: Cause::Head, item });
        }
        flow == arrived && queue.fifo.is_empty()
    }
}

impl<P: Send> Discipline<P> for Cake<P> {
    fn enqueue(
        &mut self,
        now: Instant,
        item: Item<P>,
        _: &mut dyn RandomSource,
        sink: &mut Sink<'_, P>,
    ) -> Admission {
        // A packet that would not fit into empty queues must not empty them.
        let fits = self.config.limit.admits(Length::default(), item.len)
            && self.length.bytes.checked_add(item.len as u64).is_some();
        let number = self.find(item.flow);
        let Some(queue) = self.queues.get_mut(number as usize).filter(|_| fits) else {
            self.bulk.dropped += 1;
            return refuse(now, Cause::Tail, item, sink);
        };
        if self.length.packets == 0
            && let Some(shaper) = &mut self.shaper
        {
            shaper.on_idle(now);
        }
        let (len, flow) = (item.len, item.flow);
        if queue.turn.list == List::Idle {
            queue.owner = flow;
        }
        let quantum = QUANTUM / self.hosts.load(queue.owner, self.config.isolation);
        self.rounds.wake(number, &mut queue.turn, quantum.max(1).into());
        queue.fifo.push(now, item);
        self.length.put(len);
        let mut fate = Admission::Queued;
        while !self.config.limit.holds(self.length) && self.length.packets > 0 {
            if self.make_room(now, number, sink) {
                fate = Admission::Dropped(Cause::Head);
            }
        }
        fate
    }

    fn dequeue(
        &mut self,
        now: Instant,
        random: &mut dyn RandomSource,
        sink: &mut Sink<'_, P>,
    ) -> Option<Item<P>> {
        if self.shaper.is_some_and(|shaper| shaper.next() > now) {
            return None;
        }
        loop {
            let number = self.rounds.first()?;
            let queue = self.queues.get_mut(number as usize)?;
            if queue.turn.credit <= 0 {
                if !queue.bulk {
                    queue.bulk = true;
                    self.bulk_flows += 1;
                    self.hosts.enter(queue.owner);
                }
                let quantum = QUANTUM / self.hosts.load(queue.owner, self.config.isolation);
                self.rounds.pass(&mut queue.turn, quantum.max(1).into());
                continue;
            }
            let Some(mut item) = queue.fifo.pop() else {
                queue.cobalt.on_empty(now, &self.times);
                if self.rounds.finish(&mut queue.turn) && queue.bulk {
                    queue.bulk = false;
                    self.bulk_flows = self.bulk_flows.saturating_sub(1);
                    self.hosts.leave(queue.owner);
                }
                continue;
            };
            self.length.take(item.len);
            // With many flows on a slow link a packet of each takes longer than the target.
            let late = self.packet_time.times(u64::from(self.bulk_flows) * 2);
            let late = late.max(self.packet_time.times(4));
            let waited = item.waited(now);
            let wish = queue.cobalt.on_packet(now, waited, late, &self.times, random);
            let last = queue.fifo.is_empty();
            let sparse = queue.turn.list == List::New;
            let statistics = if sparse { &mut self.sparse } else { &mut self.bulk };
            match wish {
                Wish::Signal if self.config.ecn && item.is_ecn_capable() => {
                    statistics.marked += 1;
                    mark(now, Cause::Delay, &mut item, sink);
                }
                // The last packet of a flow goes: without one there is nothing that could tell the sender.
                Wish::Signal | Wish::Drop if !last => {
                    statistics.dropped += 1;
                    let cause = if wish == Wish::Drop { Cause::Forced } else { Cause::Delay };
                    sink(Event::Dropped { at: now, cause, item });
                    continue;
                }
                _ => {}
            }
            queue.turn.spend(item.len);
            statistics.count_sent(now, &item);
            if let Some(shaper) = &mut self.shaper {
                shaper.on_sent(item.len);
            }
            return Some(item);
        }
    }

    fn length(&self) -> Length {
        self.length
    }

    fn ready_at(&self) -> Option<Instant> {
        self.shaper.filter(|_| self.length.packets > 0).map(|shaper| shaper.next())
    }

    fn queues(&self, each: &mut dyn FnMut(&'static str, &QueueStatistics)) {
        let (mut sparse, mut bulk) = (self.sparse, self.bulk);
        for queue in self.rounds.iter().filter_map(|number| self.queues.get(number as usize)) {
            let one = if queue.turn.list == List::New { &mut sparse } else { &mut bulk };
            one.count_waiting(queue.fifo.length());
            one.probability = one.probability.max(queue.cobalt.probability());
        }
        each("sparse", &sparse);
        each("bulk", &bulk);
    }
}

#[cfg(test)]
mod tests;
