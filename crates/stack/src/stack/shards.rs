//! One host as several stacks: each has its own connections, and each packet should come to the one that has its connection.
//!
//! Packets may be steered to the wrong stack. The first packets after a pause, ICMP errors and reassembled packets go by another hash than the
//! connection's segments. So a packet whose connection is not here goes on to the next stack, first to the one whose ports include its own. The last
//! one to see it knows that nobody has its connection, and answers as RFC 9293 section 3.10.7.1 says. Nothing is shared among the stacks for this,
//! and a packet that arrives where its connection is costs nothing.
//!
//! A SYN for a listener is served where it arrives, for all of the stacks have the same listeners.

use super::Stack;
use super::receive::Origin;
use crate::flow::FlowKey;
use crate::totals::HostCounts;
use alloc::vec::Vec;
use transom_wire::offload::RxOffload;

/// Which of how many stacks of one host a stack is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// From 0.
    pub index: u32,
    /// 1 to `Shard::MOST`.
    pub count: u32,
}

impl Shard {
    /// So many stacks can be one host.
    const MOST: u32 = 64;
    /// A host that is one stack.
    pub(crate) const ALONE: Shard = Shard { index: 0, count: 1 };

    /// The stack whose active connections have this port.
    const fn of_port(self, port: u16) -> u32 {
        port as u32 % if self.count == 0 { 1 } else { self.count }
    }

    pub(crate) fn is_possible(self) -> bool {
        self.index < self.count && self.count <= Shard::MOST
    }

    /// Whether an active connection of this stack may have this port.
    pub(crate) fn has_port(self, port: u16) -> bool {
        self.of_port(port) == self.index
    }
}

/// A packet on its way to the stack that has its connection.
#[derive(Clone, Debug)]
pub struct ForwardedPacket {
    /// The stack to be asked next, by its index.
    pub to: u32,
    packet: Vec<u8>,
    offload: RxOffload,
    /// The stacks that have seen it, one bit for each.
    seen: u64,
}

/// A shard tells the others of its memory when that has changed by such a part of what is pressure.
const STEPS_TO_PRESSURE: usize = 64;

/// Packets that may wait to be taken to other stacks; more are dropped, as anybody can send any number of them.
const MAX_FORWARDED: usize = 1024;

impl Stack {
    /// A packet for another stack of the host. The owner takes it there: [`Stack::on_forwarded`].
    pub fn poll_forwarded(&mut self) -> Option<ForwardedPacket> {
        self.forwarded.pop_front()
    }

    /// A packet arrived at another stack of the host, which does not have its connection.
    pub fn on_forwarded(&mut self, now: transom_tcp::time::Instant, forwarded: ForwardedPacket) {
        let ForwardedPacket { packet, offload, seen, .. } = forwarded;
        self.receive(now, &packet, offload, Origin::Shard(seen));
    }

    /// Nobody here has the connection of a packet. Passes the packet on and returns whether somebody is left to be asked.
    pub(super) fn pass_on(
        &mut self,
        key: &FlowKey,
        bytes: &[u8],
        offload: RxOffload,
        origin: Origin,
    ) -> bool {
        let shard = self.config.shard;
        let before = match origin {
            Origin::Outside => 0,
            Origin::Ourselves => return false,
            Origin::Shard(seen) => seen,
        };
        let seen = before | 1 << shard.index;
        let unasked = |index: &u32| seen >> index & 1 == 0;
        let others = (1..shard.count).map(|step| (shard.index + step) % shard.count);
        let first = core::iter::once(shard.of_port(key.local_port));
        let Some(to) = first.chain(others).find(unasked) else { return false };
        if self.forwarded.len() < MAX_FORWARDED {
            self.counters.passed_on += 1;
            self.forwarded.push_back(ForwardedPacket { to, packet: bytes.to_vec(), offload, seen });
        } else {
            self.counters.forwards_dropped += 1;
        }
        true
    }
}

impl Stack {
    /// Tells the other shards what is here, if it has changed. With a step of memory it learns what they hold.
    pub(super) fn tell_counts(&mut self) {
        let Shard { index, count } = self.config.shard;
        if count == 1 {
            return;
        }
        let held = self.memory.info().held;
        let step = self.config.memory.pressure / STEPS_TO_PRESSURE;
        let moved = held.abs_diff(self.told.memory) > step;
        let counts = HostCounts {
            connections: self.slots.len(),
            half_open: self.halves.len() + self.held.len(),
            time_wait: self.waits.len(),
            memory: if moved { held } else { self.told.memory },
        };
        if counts != self.told {
            self.totals.tell(index, counts);
            self.told = counts;
        }
        if moved {
            self.refresh_memory();
        }
    }

    /// More connections are in TIME-WAIT than may be. A shard keeps its equal part of them, whatever the others have.
    pub(super) fn has_too_many_waits(&self) -> bool {
        let most = self.config.max_time_wait.max(1);
        let part = most.div_ceil(self.config.shard.count.max(1) as usize);
        self.waits.len() >= part && self.waits.len() + self.elsewhere().time_wait >= most
    }

    /// What the other shards of the host have.
    pub(super) fn elsewhere(&self) -> HostCounts {
        self.totals.others(self.config.shard.index)
    }

    /// The host has as many connections as it may have.
    pub(super) fn is_full(&self) -> bool {
        self.slots.len() + self.elsewhere().connections >= self.config.max_connections
    }

    /// The host has as many half-open connections and held SYNs as it may have, `without` so many of them.
    pub(super) fn is_crowded(&self, without: usize) -> bool {
        let here = (self.halves.len() + self.held.len()).saturating_sub(without);
        here + self.elsewhere().half_open >= self.config.max_half_open
    }
}
