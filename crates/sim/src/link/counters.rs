//! The counters of a link.

use transom_tcp::time::Duration;

/// A number of packets and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Packets.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Traffic {
    /// Adds a packet of `len` bytes.
    pub(crate) fn count(&mut self, len: usize) {
        self.packets += 1;
        self.bytes = self.bytes.saturating_add(len as u64);
    }

    /// Takes a packet of `len` bytes away.
    pub(super) fn uncount(&mut self, len: usize) {
        self.packets = self.packets.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(len as u64);
    }
}

/// The totals of a link since it was made.
///
/// At any time, in packets and in bytes: offered + duplicated = delivered + dropped + in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets given to the link.
    pub offered: Traffic,
    /// Packets that came out, copies included.
    pub delivered: Traffic,
    /// Dropped: larger than the MTU.
    pub too_big: Traffic,
    /// Dropped: refused by the queue, or by the policer before it.
    pub queue_full: Traffic,
    /// Dropped after they had waited.
    pub queue_dropped: Traffic,
    /// Marked by the queue.
    pub marked: u64,
    /// Dropped: lost on the wire.
    pub lost: Traffic,
    /// Copies the wire made.
    pub duplicated: Traffic,
    /// Packets (or copies) damaged on the wire.
    pub corrupted: u64,
    /// Packets (or copies) held back so that others may overtake them.
    pub reordered: u64,
    /// Packets that left the queue for the serialiser, those that found it idle included.
    pub dequeued: u64,
    /// How long these were in the queue, all added up: divided by their number, the mean delay.
    pub queue_delay: Duration,
    /// Of these packets, those that came through the low-latency queue of a dual queue.
    pub low_dequeued: u64,
    /// How long those were in the queue, all added up.
    pub low_queue_delay: Duration,
    /// Opportunities to deliver that a rate trace has had, taken or not; zero without one.
    pub opportunities: u64,
    /// The most packets, and the most bytes, that ever waited for the serialiser.
    pub queue_peak: Traffic,
}

impl Counters {
    /// Adds what a discipline has decided.
    pub(super) fn count(&mut self, verdicts: super::managed::Verdicts) {
        let super::managed::Verdicts { dropped, marked } = verdicts;
        self.queue_dropped.packets += dropped.packets;
        self.queue_dropped.bytes = self.queue_dropped.bytes.saturating_add(dropped.bytes);
        self.marked += marked;
    }

    /// All drops, whatever the cause.
    pub fn dropped(&self) -> Traffic {
        let causes = [self.too_big, self.queue_full, self.queue_dropped, self.lost];
        Traffic {
            packets: causes.iter().map(|cause| cause.packets).sum(),
            bytes: causes.iter().fold(0, |sum, cause| sum.saturating_add(cause.bytes)),
        }
    }
}
