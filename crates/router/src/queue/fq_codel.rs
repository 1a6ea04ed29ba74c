//! FQ-CoDel: a queue with CoDel for each flow, in rounds (RFC 8290).
//!
//! A keyed hash of its header puts each packet into one of `flows` queues ([`FlowHasher`](super::FlowHasher)). The queues send in turn by bytes,
//! those that have just begun to wait before the others ([`rounds`](super::rounds)), and each has a CoDel of its own. When all queues together are
//! full, the longest one loses half of its packets from its front, 64 at most (section 4.1).
//!
//! `ce-threshold` marks each ECN-capable packet that has waited longer, whatever CoDel thinks of its queue (section 5.2.7). With `l4s` it does so for
//! ECT(1) alone, the identifier of RFC 9331. Such a queue is what RFC 9331 calls an FQ with L4S support.
//!
//! What the RFC leaves open: CoDel lets a last MTU pass unharmed, and here that is the last MTU of the flow's queue, not of all queues.

use alloc::vec::Vec;

use transom_base::time::{Duration, Instant};
use transom_wire::ip::Ecn;

use super::codel::{self, CoDelConfig};
use super::config::above_zero;
use super::rounds::{List, Rounds, Turn};
use super::{
    Admission, Cause, ConfigError, Discipline, Event, Fifo, Item, Length, Limit, QueueStatistics,
    RandomSource, Sink, mark, refuse,
};
use crate::parameters::{CHOICE, DURATION, LENGTH, LIMIT, SOME_DURATION, SWITCH, Walk, number};

/// Packets that one overflow drops at most.
const DROP_BATCH: u32 = 64;

/// The most queues: their state is made at once.
const MOST_FLOWS: u32 = 65_536;

/// The parameters of [`FqCoDel`]. The default has those of RFC 8290, section 5.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct FqCoDelConfig {
    /// The capacity of all queues together.
    pub(super) limit: Limit,
    /// How many queues there are.
    pub(super) flows: u32,
    /// CoDel's acceptable waiting time.
    pub(super) target: Duration,
    /// How long packets must have waited longer before CoDel acts.
    pub(super) interval: Duration,
    /// The bytes that a flow may send in its turn.
    pub(super) quantum: u32,
    /// A packet is not dropped if no more than this many bytes of its flow remain behind it.
    pub(super) mtu: u32,
    /// Whether packets of ECN-capable transports are marked instead of dropped.
    pub(super) ecn: bool,
    /// Packets of ECN-capable transports that have waited longer are marked in any case.
    pub(super) ce_threshold: Option<Duration>,
    /// Whether only ECT(1) is marked for that.
    pub(super) l4s: bool,
}

impl Default for FqCoDelConfig {
    fn default() -> Self {
        FqCoDelConfig {
            limit: Limit::Packets(10_240),
            flows: 1024,
            target: Duration::from_millis(5),
            interval: Duration::from_millis(100),
            quantum: 1514,
            mtu: 1500,
            ecn: true,
            ce_threshold: None,
            l4s: false,
        }
    }
}

impl FqCoDelConfig {
    /// # Errors
    /// [`ConfigError`] if the parameters make no sense together.
    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        above_zero(&[("flows", self.flows == 0), ("quantum", self.quantum == 0)])?;
        if self.flows > MOST_FLOWS {
            return Err(ConfigError::TooLarge { parameter: "flows", most: MOST_FLOWS.into() });
        }
        self.codel().validate()
    }

    /// All parameters.
    pub(super) fn walk(&mut self, walk: &mut Walk<'_>) {
        walk.at("limit", &mut self.limit, LIMIT);
        walk.at("flows", &mut self.flows, number("1024"));
        walk.at("target", &mut self.target, DURATION);
        walk.at("interval", &mut self.interval, DURATION);
        walk.at("quantum", &mut self.quantum, LENGTH);
        walk.at("mtu", &mut self.mtu, LENGTH);
        walk.at("ce-threshold", &mut self.ce_threshold, SOME_DURATION);
        walk.at("l4s", &mut self.l4s, SWITCH);
        walk.at("ecn", &mut self.ecn, CHOICE);
    }

    /// The CoDel of each queue.
    const fn codel(&self) -> CoDelConfig {
        let FqCoDelConfig { target, interval, mtu, ecn, .. } = *self;
        CoDelConfig { limit: Limit::Unlimited, target, interval, mtu, ecn }
    }
}

/// A flow's queue.
#[derive(Clone, Debug)]
struct Queue<P> {
    fifo: Fifo<P>,
    codel: codel::State,
    turn: Turn,
}

impl<P> Queue<P> {
    const fn new() -> Self {
        let turn = Turn { list: List::Idle, credit: 0 };
        Queue { fifo: Fifo::new(), codel: codel::State::new(), turn }
    }
}

/// Queues for flows, each kept short by CoDel.
#[derive(Clone, Debug)]
pub(super) struct FqCoDel<P> {
    config: FqCoDelConfig,
    queues: Vec<Queue<P>>,
    rounds: Rounds<u32>,
    length: Length,
    /// What flows have sent as new ones, and as old ones.
    sparse: QueueStatistics,
    bulk: QueueStatistics,
}

impl<P> FqCoDel<P> {
    /// Empty queues.
    pub(super) fn new(config: FqCoDelConfig) -> Result<Self, ConfigError> {
        config.validate()?;
        Ok(FqCoDel {
            queues: (0..config.flows).map(|_| Queue::new()).collect(),
            rounds: Rounds::new(),
            length: Length::default(),
            sparse: QueueStatistics::default(),
            bulk: QueueStatistics::default(),
            config,
        })
    }

    /// Makes room by dropping from the front of the longest queue. Whether that took the last packet of queue `arrived`.
    fn make_room(&mut self, now: Instant, arrived: u32, sink: &mut Sink<'_, P>) -> bool {
        let longest = self.rounds.iter().max_by_key(|&flow| {
            let length = self.queues.get(flow as usize).map(|queue| queue.fifo.length());
            length.map_or((0, 0), |length| (length.bytes, length.packets))
        });
        let Some((flow, queue)) =
            longest.and_then(|flow| self.queues.get_mut(flow as usize).map(|queue| (flow, queue)))
        else {
            return false;
        };
        let half = queue.fifo.length().bytes / 2;
        for _ in 0..DROP_BATCH {
            let Some(item) = queue.fifo.pop() else { break };
            self.length.take(item.len);
            let event = Event::Dropped { at: now, cause: Cause::Head, item };
            self.bulk.count(&event);
            sink(event);
            if queue.fifo.length().bytes <= half {
                break;
            }
        }
        flow == arrived && queue.fifo.is_empty()
    }

    /// Marks a packet that has waited beyond `ce-threshold`. Whether it has.
    fn mark_late(&self, now: Instant, item: &mut Item<P>, sink: &mut Sink<'_, P>) -> bool {
        let late = self.config.ce_threshold.is_some_and(|threshold| item.waited(now) > threshold);
        let suits = match self.config.l4s {
            true => item.ecn == Ecn::Ect1,
            false => matches!(item.ecn, Ecn::Ect0 | Ecn::Ect1),
        };
        if late && suits {
            mark(now, Cause::Delay, item, sink);
        }
        late && suits
    }
}

impl<P: Send> Discipline<P> for FqCoDel<P> {
    fn enqueue(
        &mut self,
        now: Instant,
        item: Item<P>,
        _: &mut dyn RandomSource,
        sink: &mut Sink<'_, P>,
    ) -> Admission {
        let flow = (item.flow.id % u64::from(self.config.flows)) as u32;
        // A packet that would not fit into empty queues must not empty them.
        if !self.config.limit.admits(Length::default(), item.len) {
            self.bulk.dropped += 1;
            return refuse(now, Cause::Tail, item, sink);
        }
        let len = item.len;
        // Sums that would not fit into the counter are over every limit.
        let mut over = self.length.bytes.checked_add(len as u64).is_none();
        over |= !self.config.limit.admits(self.length, len);
        let Some(queue) = self.queues.get_mut(flow as usize) else {
            return refuse(now, Cause::Tail, item, sink);
        };
        queue.fifo.push(now, item);
        self.rounds.wake(flow, &mut queue.turn, self.config.quantum.into());
        self.length.put(len);
        let mut fate = Admission::Queued;
        while over && self.length.packets > 0 {
            if self.make_room(now, flow, sink) {
                fate = Admission::Dropped(Cause::Head);
            }
            over = !self.config.limit.holds(self.length);
        }
        fate
    }

    fn dequeue(
        &mut self,
        now: Instant,
        _: &mut dyn RandomSource,
        sink: &mut Sink<'_, P>,
    ) -> Option<Item<P>> {
        let codel = self.config.codel();
        loop {
            let flow = self.rounds.first()?;
            let queue = self.queues.get_mut(flow as usize)?;
            if queue.turn.credit <= 0 {
                self.rounds.pass(&mut queue.turn, self.config.quantum.into());
                continue;
            }
            let statistics = match queue.turn.list {
                List::New => &mut self.sparse,
                _ => &mut self.bulk,
            };
            let length = &mut self.length;
            let next = queue.codel.dequeue(&codel, &mut queue.fifo, now, &mut |event| {
                statistics.count(&event);
                if let Event::Dropped { item, .. } = &event {
                    length.take(item.len);
                }
                sink(event);
            });
            let Some(mut item) = next else {
                self.rounds.finish(&mut queue.turn);
                continue;
            };
            self.length.take(item.len);
            queue.turn.spend(item.len);
            statistics.count_sent(now, &item);
            let sparse = queue.turn.list == List::New;
            let late = self.mark_late(now, &mut item, sink);
            let statistics = if sparse { &mut self.sparse } else { &mut self.bulk };
            statistics.marked += u64::from(late);
            return Some(item);
        }
    }

    fn length(&self) -> Length {
        self.length
    }

    fn queues(&self, each: &mut dyn FnMut(&'static str, &QueueStatistics)) {
        let (mut sparse, mut bulk) = (self.sparse, self.bulk);
        for queue in self.rounds.iter().filter_map(|flow| self.queues.get(flow as usize)) {
            let one = if queue.turn.list == List::New { &mut sparse } else { &mut bulk };
            one.count_waiting(queue.fifo.length());
        }
        each("sparse", &sparse);
        each("bulk", &bulk);
    }
}

#[cfg(test)]
mod tests;
