//! The statistics of a queue inside a discipline.

use transom_base::time::{Duration, Instant};

use super::{Event, Item, Length};
use crate::probability::Probability;

/// The statistics of one of a discipline's queues, since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueueStatistics {
    /// Packets and bytes that wait now.
    pub waiting: Length,
    /// Flows that have something waiting now; zero where flows are not kept apart.
    pub flows: u64,
    /// Packets and bytes that have left it to be transmitted.
    pub sent: Length,
    /// Packets dropped, those that never entered included.
    pub dropped: u64,
    /// Packets marked.
    pub marked: u64,
    /// How long the packets that were sent had waited, all added up.
    pub delay: Duration,
    /// The longest of these times.
    pub longest: Duration,
    /// The probability of a signal now, where there is one.
    pub probability: Probability,
}

impl QueueStatistics {
    /// Counts what waits in one of its flows.
    pub(super) fn count_waiting(&mut self, waits: Length) {
        self.flows += u64::from(waits.packets > 0);
        self.waiting.packets += waits.packets;
        self.waiting.bytes = self.waiting.bytes.saturating_add(waits.bytes);
    }

    /// Counts a decision.
    pub(super) fn count<P>(&mut self, event: &Event<'_, P>) {
        match event {
            Event::Dropped { .. } => self.dropped += 1,
            Event::Marked { .. } => self.marked += 1,
        }
    }

    /// Counts a packet that is about to be transmitted.
    pub(super) fn count_sent<P>(&mut self, now: Instant, item: &Item<P>) {
        let waited = item.waited(now);
        self.sent.packets += 1;
        self.sent.bytes = self.sent.bytes.saturating_add(item.len as u64);
        self.delay = self.delay + waited;
        self.longest = self.longest.max(waited);
    }
}
