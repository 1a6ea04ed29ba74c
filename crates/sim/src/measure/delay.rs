//! How long packets waited at a link over a span of time.

use super::LinkSample;
use hdrhistogram::Histogram;
use transom_tcp::time::Duration;

/// The delays of all packets that left a queue for the serialiser between two samples, those that found it idle included, with a delay
/// of zero. A packet that was dropped, before it waited or after, is not among them.
///
/// Number, mean and maximum are exact; the other values are to 1 %.
#[derive(Clone, Debug)]
pub struct QueueDelay {
    packets: u64,
    total: Duration,
    max: Duration,
    histogram: Histogram<u64>,
}

impl QueueDelay {
    /// Between the first and the last of these samples, which follow each other in one series. `None` if no packet left the queue.
    pub fn between(samples: &[LinkSample]) -> Option<Self> {
        let (first, later) = samples.split_first()?;
        let last = later.last()?;
        let packets = last.counters.dequeued - first.counters.dequeued;
        if packets == 0 {
            return None;
        }
        let total = Duration::from_nanos(
            last.counters.queue_delay.as_nanos() - first.counters.queue_delay.as_nanos(),
        );
        let mut histogram = Histogram::new(2).ok()?;
        for (delay, count) in later.iter().flat_map(|sample| sample.delays.counts()) {
            histogram.record_n(delay.as_nanos(), count).ok()?;
        }
        let at_once = packets.saturating_sub(histogram.len());
        histogram.record_n(0, at_once).ok()?;
        let max = later.iter().filter_map(|sample| sample.delays.max()).max();
        Some(QueueDelay { packets, total, max: max.unwrap_or_default(), histogram })
    }

    /// How many packets.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// The mean in nanoseconds.
    pub fn mean(&self) -> f64 {
        self.total.as_nanos() as f64 / self.packets as f64
    }

    /// The greatest.
    pub fn max(&self) -> Duration {
        self.max
    }

    /// The least.
    pub fn min(&self) -> Duration {
        Duration::from_nanos(self.histogram.lowest_equivalent(self.histogram.min()))
    }

    /// The value that `percent` of a hundred packets do not exceed, by the nearest rank; at most 1 % more than it is.
    pub fn percentile(&self, percent: f64) -> Duration {
        Duration::from_nanos(self.histogram.value_at_percentile(percent)).min(self.max)
    }

    /// The standard deviation in nanoseconds.
    pub fn deviation(&self) -> f64 {
        self.histogram.stdev()
    }
}

#[cfg(test)]
mod tests;
