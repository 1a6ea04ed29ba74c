//! How long a packet that arrives now would have to wait (RFC 8033, sections 4.3 and 5.2).

use transom_base::time::{Duration, Instant};

/// DQ_THRESHOLD, in bytes.
const THRESHOLD: u64 = 1 << 14;

/// Measures the queueing delay.
#[derive(Clone, Debug)]
pub(super) enum Estimator {
    /// How long the last packet that left had waited; nothing while the queue is empty.
    Timestamps { latest: Duration },
    /// The queue's length over the departure rate, which is measured while at least 16 KiB wait.
    DepartureRate(DepartureRate),
}

/// The state of a measurement of the departure rate.
#[derive(Clone, Debug, Default)]
pub(super) struct DepartureRate {
    /// Since when, and how many bytes have left since then.
    measuring: Option<(Instant, u64)>,
    /// The average time in which `THRESHOLD` bytes leave, once there is a measurement.
    average: Option<Duration>,
}

impl Estimator {
    pub(super) fn new(departure_rate: bool) -> Self {
        match departure_rate {
            false => Estimator::Timestamps { latest: Duration::ZERO },
            true => Estimator::DepartureRate(DepartureRate::default()),
        }
    }

    /// A packet has left after `waited`, and `left` bytes wait behind it.
    pub(super) fn on_departure(&mut self, now: Instant, len: usize, waited: Duration, left: u64) {
        match self {
            Estimator::Timestamps { latest } => *latest = waited,
            Estimator::DepartureRate(rate) => rate.on_departure(now, len, left),
        }
    }

    /// The queueing delay with `queued` bytes in the queue.
    pub(super) fn delay(&self, queued: u64) -> Duration {
        match self {
            Estimator::Timestamps { .. } if queued == 0 => Duration::ZERO,
            Estimator::Timestamps { latest } => *latest,
            Estimator::DepartureRate(rate) => {
                let Some(average) = rate.average else { return Duration::ZERO };
                let nanos =
                    u128::from(queued) * u128::from(average.as_nanos()) / u128::from(THRESHOLD);
                Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
            }
        }
    }
}

impl DepartureRate {
    fn on_departure(&mut self, now: Instant, len: usize, left: u64) {
        if let Some((since, bytes)) = &mut self.measuring {
            *bytes = bytes.saturating_add(len as u64);
            if *bytes >= THRESHOLD {
                // The RFC takes the time as that of the threshold; a super-segment overshoots it by far.
                let nanos = u128::from(now.since(*since).as_nanos()) * u128::from(THRESHOLD);
                let sample = (nanos / u128::from(*bytes)) as u64;
                // The weight is DQ_THRESHOLD / 2^16 = 1/4.
                let average = self.average.map_or(sample, |average| {
                    let sum = u128::from(sample) + 3 * u128::from(average.as_nanos());
                    (sum / 4) as u64
                });
                self.average = Some(Duration::from_nanos(average));
                self.measuring = None;
            }
        }
        if self.measuring.is_none() && left >= THRESHOLD {
            self.measuring = Some((now, 0));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_stamps_count_only_while_packets_wait() {
        let mut estimator = Estimator::new(false);
        assert_eq!(estimator.delay(1), Duration::ZERO);
        estimator.on_departure(Instant::from_millis(9), 1500, Duration::from_millis(7), 1500);
        assert_eq!(estimator.delay(1500), Duration::from_millis(7));
        assert_eq!(estimator.delay(0), Duration::ZERO);
    }

    #[test]
    fn the_departure_rate_is_measured_over_the_threshold() {
        let mut estimator = Estimator::new(true);
        let mut leave = |millis, len, left| {
            estimator.on_departure(Instant::from_millis(millis), len, Duration::ZERO, left);
            // The delay of half the threshold: half the average time of the threshold.
            estimator.delay(8192).as_nanos()
        };
        // Too short a queue starts no measurement.
        assert_eq!(leave(0, 8192, 16_383), 0);
        assert_eq!(leave(5, 8192, 16_384), 0);
        // The packet that started it does not count; 16 KiB leave from 5 ms to 13 ms.
        assert_eq!(leave(9, 8192, 16_384), 0);
        assert_eq!(leave(13, 8192, 16_384), 4_000_000);
        // The next 32 KiB in one piece take 8 ms, or 4 per threshold: (4 + 3·8) / 4 = 7.
        assert_eq!(leave(21, 32_768, 0), 3_500_000);
        // Nothing is measured any more, and the last estimate stays.
        assert_eq!(leave(99, 32_768, 0), 3_500_000);
    }
}
