//! How many bulk flows each host has: its flows share what one host gets.
//!
//! Hosts are told apart by hashes, `SLOTS` for sources and as many for destinations. Two hosts in a slot count as one and get less than their share,
//! as with Linux' `sch_cake`.

use alloc::vec::Vec;

use super::Isolation;
use crate::queue::Flow;

const SLOTS: usize = 1024;

/// Bulk flows by host.
#[derive(Clone, Debug)]
pub(super) struct Hosts {
    sources: Vec<u32>,
    destinations: Vec<u32>,
}

fn slot(hash: u64) -> usize {
    // The remainder is below the number of slots.
    (hash % SLOTS as u64) as usize
}

impl Hosts {
    pub(super) fn new() -> Self {
        Hosts { sources: Vec::from([0; SLOTS]), destinations: Vec::from([0; SLOTS]) }
    }

    fn each(&mut self, flow: Flow, change: impl Fn(u32) -> u32) {
        let counts = [
            self.sources.get_mut(slot(flow.source)),
            self.destinations.get_mut(slot(flow.destination)),
        ];
        counts.into_iter().flatten().for_each(|count| *count = change(*count));
    }

    /// A flow has become bulk.
    pub(super) fn enter(&mut self, flow: Flow) {
        self.each(flow, |count| count.saturating_add(1));
    }

    /// It is bulk no more.
    pub(super) fn leave(&mut self, flow: Flow) {
        self.each(flow, |count| count.saturating_sub(1));
    }

    /// Among how many flows the share of this flow's host is divided.
    pub(super) fn load(&self, flow: Flow, isolation: Isolation) -> u32 {
        let source = self.sources.get(slot(flow.source)).copied().unwrap_or(0);
        let destination = self.destinations.get(slot(flow.destination)).copied().unwrap_or(0);
        let load = match isolation {
            Isolation::Triple => source.max(destination),
            Isolation::DualSource => source,
            Isolation::DualDestination => destination,
            Isolation::Flows => 1,
        };
        load.max(1)
    }
}
