//! Flow queues in rounds, each with a rate: Linux' `fq` as far as a router can have it.
//!
//! Every flow has its own queue: two flows never share one. Flows send in turn by bytes, new ones first ([`rounds`](super::rounds)). With `maxrate`
//! each flow is paced: after a packet it waits for as long as the packet takes at that rate. So it is a reference for tests of pacing: what comes out
//! is as even as it can be. A flow that was idle for longer than `refill` begins as a new one again.
//!
//! Not here, because it belongs to the kernel's sockets: the rate and the earliest departure time that a socket gives with each packet (`SO_MAX_PACING_RATE`,
//! `SO_TXTIME`), the priority bands, the horizon and the timer slack. There is no control of the delay but `ce-threshold`.

use alloc::collections::{BTreeMap, BTreeSet};
use core::num::NonZeroU64;

use transom_base::time::{Duration, Instant};
use transom_wire::ip::Ecn;

use super::config::above_zero;
use super::rounds::{List, Rounds, Turn};
use super::{
    Admission, Cause, ConfigError, Discipline, Fifo, Item, Length, Limit, QueueStatistics,
    RandomSource, Sink, mark, refuse,
};
use crate::parameters::{DURATION, LENGTH, LIMIT, SOME_DURATION, SOME_RATE, Walk, number};

/// The parameters of [`Fq`]. The default has those of Linux' `fq`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct FqConfig {
    /// The capacity of all queues together.
    pub(super) limit: Limit,
    /// How many packets of one flow wait at most.
    pub(super) flow_limit: u32,
    /// The bytes that a flow may send in its turn.
    pub(super) quantum: u32,
    /// The bytes that a new flow may send in its first turn.
    pub(super) initial_quantum: u32,
    /// The rate of each flow, in bits per second; without it flows are not paced.
    pub(super) maxrate: Option<NonZeroU64>,
    /// How long a flow must have been idle to begin as a new one.
    pub(super) refill: Duration,
    /// Packets of ECN-capable transports that have waited longer are marked.
    pub(super) ce_threshold: Option<Duration>,
}

impl Default for FqConfig {
    fn default() -> Self {
        FqConfig {
            limit: Limit::Packets(10_000),
            flow_limit: 100,
            quantum: 3028,
            initial_quantum: 15_140,
            maxrate: None,
            refill: Duration::from_millis(40),
            ce_threshold: None,
        }
    }
}

impl FqConfig {
    /// # Errors
    /// [`ConfigError`] if the parameters make no sense together.
    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        above_zero(&[
            ("flow-limit", self.flow_limit == 0),
            ("quantum", self.quantum == 0),
            ("initial-quantum", self.initial_quantum == 0),
        ])
    }

    /// All parameters.
    pub(super) fn walk(&mut self, walk: &mut Walk<'_>) {
        walk.at("limit", &mut self.limit, LIMIT);
        walk.at("flow-limit", &mut self.flow_limit, number("1024"));
        walk.at("quantum", &mut self.quantum, LENGTH);
        walk.at("initial-quantum", &mut self.initial_quantum, LENGTH);
        walk.at("refill", &mut self.refill, DURATION);
        walk.at("maxrate", &mut self.maxrate, SOME_RATE);
        walk.at("ce-threshold", &mut self.ce_threshold, SOME_DURATION);
    }
}

/// The most idle flows that are remembered.
const MOST_IDLE: usize = 65_536;

/// A flow that has something waiting, or had a moment ago.
#[derive(Clone, Debug)]
struct Queue<P> {
    fifo: Fifo<P>,
    turn: Turn,
    /// When its next packet may leave.
    next: Instant,
    /// When it will be forgotten, if nothing comes.
    forgotten_at: Option<Instant>,
}

/// A queue for each flow, paced.
#[derive(Clone, Debug)]
pub(super) struct Fq<P> {
    config: FqConfig,
    flows: BTreeMap<u64, Queue<P>>,
    rounds: Rounds<u64>,
    /// Flows that wait for their time.
    paced: BTreeSet<(Instant, u64)>,
    /// Flows that have nothing waiting, and when they will be forgotten.
    idle: BTreeSet<(Instant, u64)>,
    length: Length,
    statistics: QueueStatistics,
}

impl<P> Fq<P> {
    /// Without flows.
    pub(super) fn new(config: FqConfig) -> Result<Self, ConfigError> {
        config.validate()?;
        Ok(Fq {
            config,
            flows: BTreeMap::new(),
            rounds: Rounds::new(),
            paced: BTreeSet::new(),
            idle: BTreeSet::new(),
            length: Length::default(),
            statistics: QueueStatistics::default(),
        })
    }

    /// Flows whose time has come go on.
    fn release(&mut self, now: Instant) {
        while let Some(&(at, id)) = self.paced.first().filter(|(at, _)| *at <= now) {
            self.paced.remove(&(at, id));
            if let Some(flow) = self.flows.get_mut(&id) {
                self.rounds.resume(id, &mut flow.turn);
            }
        }
    }

    /// Forgets flows that were idle for long enough, or are too many. Two at a call: each call makes one idle at most.
    fn forget(&mut self, now: Instant) {
        for _ in 0..2 {
            let due = self.idle.first().copied();
            let Some((at, id)) = due.filter(|(at, _)| *at <= now || self.idle.len() > MOST_IDLE)
            else {
                return;
            };
            self.idle.remove(&(at, id));
            self.flows.remove(&id);
        }
    }

    /// How long a packet takes at a flow's rate.
    fn spacing(&self, len: usize) -> Duration {
        let Some(rate) = self.config.maxrate else { return Duration::ZERO };
        let nanos = len as u128 * 8 * 1_000_000_000 / u128::from(rate.get());
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// Marks a packet that has waited beyond `ce-threshold`.
    fn mark_late(&mut self, now: Instant, item: &mut Item<P>, sink: &mut Sink<'_, P>) {
        let late = self.config.ce_threshold.is_some_and(|threshold| item.waited(now) > threshold);
        if late && matches!(item.ecn, Ecn::Ect0 | Ecn::Ect1) {
            self.statistics.marked += 1;
            mark(now, Cause::Delay, item, sink);
        }
    }
}

impl<P: Send> Discipline<P> for Fq<P> {
    fn enqueue(
        &mut self,
        now: Instant,
        item: Item<P>,
        _: &mut dyn RandomSource,
        sink: &mut Sink<'_, P>,
    ) -> Admission {
        self.forget(now);
        let (id, len) = (item.flow.id, item.len);
        let waits = self.flows.get(&id).map_or(0, |flow| flow.fifo.length().packets);
        if !self.config.limit.admits(self.length, len) || waits >= self.config.flow_limit.into() {
            self.statistics.dropped += 1;
            return refuse(now, Cause::Tail, item, sink);
        }
        let initial = i64::from(self.config.initial_quantum);
        let flow = self.flows.entry(id).or_insert_with(|| Queue {
            fifo: Fifo::new(),
            turn: Turn { list: List::Idle, credit: initial },
            next: Instant::ZERO,
            forgotten_at: None,
        });
        if let Some(at) = flow.forgotten_at.take() {
            self.idle.remove(&(at, id));
        }
        // It has the credit that it was left with.
        let credit = flow.turn.credit;
        self.rounds.wake(id, &mut flow.turn, credit);
        flow.fifo.push(now, item);
        self.length.put(len);
        Admission::Queued
    }

    fn dequeue(
        &mut self,
        now: Instant,
        _: &mut dyn RandomSource,
        sink: &mut Sink<'_, P>,
    ) -> Option<Item<P>> {
        self.release(now);
        loop {
            let id = self.rounds.first()?;
            let flow = self.flows.get_mut(&id)?;
            if flow.fifo.is_empty() {
                if self.rounds.finish(&mut flow.turn) {
                    let at = flow.next.max(now + self.config.refill);
                    flow.forgotten_at = Some(at);
                    self.idle.insert((at, id));
                }
                continue;
            }
            if flow.turn.credit <= 0 {
                self.rounds.pass(&mut flow.turn, self.config.quantum.into());
                continue;
            }
            let mut item = flow.fifo.pop()?;
            self.length.take(item.len);
            flow.turn.spend(item.len);
            let spacing = self.spacing(item.len);
            if let Some(flow) = self.flows.get_mut(&id).filter(|_| !spacing.is_zero()) {
                // What a late caller has missed is not made up for. The flow waits also if it has nothing: something may come meanwhile.
                flow.next = now + spacing;
                self.rounds.suspend(&mut flow.turn);
                self.paced.insert((flow.next, id));
            }
            self.statistics.count_sent(now, &item);
            self.mark_late(now, &mut item, sink);
            return Some(item);
        }
    }

    fn length(&self) -> Length {
        self.length
    }

    fn ready_at(&self) -> Option<Instant> {
        // Those in the rounds need not wait. A flow keeps its time also when it has nothing.
        match self.rounds.first() {
            None if self.length.packets > 0 => self.paced.first().map(|(at, _)| *at),
            _ => None,
        }
    }

    fn queues(&self, each: &mut dyn FnMut(&'static str, &QueueStatistics)) {
        let waits = self.flows.values().filter(|flow| !flow.fifo.is_empty());
        let flows = waits.count() as u64;
        each("flows", &QueueStatistics { waiting: self.length, flows, ..self.statistics });
    }
}

#[cfg(test)]
mod tests;
