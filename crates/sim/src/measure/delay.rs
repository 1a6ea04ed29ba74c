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

/// Which packets of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// All of them.
    All,
    /// Those that came through the low-latency queue of a dual queue.
    LowLatency,
    /// The others.
    Classic,
}

impl QueueDelay {
    /// Between the first and the last of these samples, which follow each other in one series, of the packets of one lane. `None` if none of them
    /// left the queue. The greatest delay of the classic lane is to 1 %.
    pub fn between(samples: &[LinkSample], lane: Lane) -> Option<Self> {
        let (first, later) = samples.split_first()?;
        let last = later.last()?;
        let counts = |sample: &LinkSample| {
            let counters = &sample.counters;
            let all = (counters.dequeued, counters.queue_delay.as_nanos());
            let low = (counters.low_dequeued, counters.low_queue_delay.as_nanos());
            match lane {
                Lane::All => all,
                Lane::LowLatency => low,
                Lane::Classic => (all.0.saturating_sub(low.0), all.1.saturating_sub(low.1)),
            }
        };
        let ((before, delay_before), (after, delay_after)) = (counts(first), counts(last));
        let packets = after.saturating_sub(before);
        if packets == 0 {
            return None;
        }
        let total = Duration::from_nanos(delay_after.saturating_sub(delay_before));
        let recorded = |low: bool| {
            let mut histogram = Histogram::<u64>::new(2).ok()?;
            let delays = |sample: &LinkSample| {
                if low { sample.low_delays.clone() } else { sample.delays.clone() }
            };
            for sample in later {
                for (delay, count) in delays(sample).counts() {
                    histogram.record_n(delay.as_nanos(), count).ok()?;
                }
            }
            Some(histogram)
        };
        let mut histogram = recorded(lane == Lane::LowLatency)?;
        if lane == Lane::Classic {
            histogram.subtract(recorded(true)?).ok()?;
        }
        let at_once = packets.saturating_sub(histogram.len());
        histogram.record_n(0, at_once).ok()?;
        let delays = later.iter().map(|sample| match lane {
            Lane::LowLatency => &sample.low_delays,
            Lane::All | Lane::Classic => &sample.delays,
        });
        let mut max = delays.filter_map(|delays| delays.max()).max().unwrap_or_default();
        if lane == Lane::Classic {
            max = max.min(Duration::from_nanos(histogram.max()));
        }
        Some(QueueDelay { packets, total, max, histogram })
    }

    /// How many packets.
    #[cfg(test)]
    fn packets(&self) -> u64 {
        self.packets
    }

    /// The mean in nanoseconds.
    pub fn mean(&self) -> f64 {
        self.total.as_nanos() as f64 / self.packets as f64
    }

    /// The value that `percent` of a hundred packets do not exceed, by the nearest rank; at most 1 % more than it is. Zero gives the least, at
    /// most 1 % below it. A hundred gives the greatest, exactly but for the classic lane.
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
