//! How far an emulated run can be believed.
//!
//! Theory of operation. Everything that the emulator hands to a kernel, and every time at which one of its applications must act, is due at a certain
//! moment. The *lag* is how much later it was handled. When a kernel hands over a packet, its exact time is unknown, but it was after the last time
//! at which the kernel had nothing. The time since then counts as its lag, which may be less and is not more. To the hosts a lag is a delay that the
//! scenario does not have. A run is *late*, and its numbers are invalid, if one of these is true:
//!
//! - the 99th percentile of the lag is above a bound. The bound is a tenth of the shortest round-trip time between the affected hosts, at least 250
//!   µs and at most 1 ms. 1 ms is a quarter of the least increase in delay that a kernel's TCP treats as a queue (HyStart, RFC 9406, section 4.2: 4
//!   ms). A tenth of the round-trip time is the least that shows in a curve. Below a quarter of a millisecond the system's scheduler decides.
//! - the longest lag is above 100 ms, half of the shortest retransmission timeout of a kernel's TCP (200 ms). The pause may have made
//!   timers expire that had no reason to.
//! - packets were lost between a kernel and the emulator, because the queue of an interface was full or memory was short: losses that
//!   the scenario does not have.
//!
//! A single long pause of a busy machine therefore does not condemn a run, as long as 99 in 100 of what was due was punctual.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use std::fmt;
use transom_tcp::time::{Duration, Instant};

/// The bound of the 99th percentile of the lag, whatever the round-trip time.
const MOST: Duration = Duration::from_millis(1);
/// The least bound.
const LEAST: Duration = Duration::from_micros(250);
/// The longest lag that may happen once.
const LONGEST: Duration = Duration::from_millis(100);

/// How late everything was.
#[derive(Clone, Debug)]
pub(super) struct Lags(Histogram<u64>);

impl Lags {
    pub(super) fn new() -> Self {
        // From a nanosecond to an hour, to one part in a thousand.
        let bounds = Histogram::new_with_bounds(1, 3_600_000_000_000, 3);
        Lags(bounds.unwrap_or_else(|error| unreachable!("{error}")))
    }

    /// Records an action due at `due` and done at `now`.
    pub(super) fn record(&mut self, due: Instant, now: Instant) {
        self.0.saturating_record(now.since(due).as_nanos());
    }

    /// The same for several actions that were due together.
    pub(super) fn record_all(&mut self, due: Instant, now: Instant, count: usize) {
        self.0.saturating_record_n(now.since(due).as_nanos(), count as u64);
    }

    pub(super) fn add(&mut self, other: &Lags) {
        // They have the same bounds.
        let _ = self.0.add(&other.0);
    }

    pub(super) fn summary(&self) -> Lag {
        let at = |quantile| Duration::from_nanos(self.0.value_at_quantile(quantile));
        Lag {
            events: self.0.len(),
            median: at(0.5),
            p99: at(0.99),
            max: if self.0.is_empty() {
                Duration::ZERO
            } else {
                Duration::from_nanos(self.0.max())
            },
        }
    }
}

/// How late everything was, in a few numbers. As text, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Lag {
    /// How much there was to be late.
    pub(crate) events: u64,
    /// Half of it was not later than this.
    #[serde(rename = "median_us", with = "micros")]
    pub(crate) median: Duration,
    /// Of 100, 99 were not later than this.
    #[serde(rename = "p99_us", with = "micros")]
    pub(crate) p99: Duration,
    /// The worst.
    #[serde(rename = "max_us", with = "micros")]
    pub(crate) max: Duration,
}

/// Times in microseconds.
mod micros {
    use serde::{Deserialize, Deserializer, Serializer};
    use transom_tcp::time::Duration;

    pub(super) fn serialize<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_f64(time.as_nanos() as f64 / 1e3)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        // Times beyond what there is are cut off.
        let nanos = (f64::deserialize(from)? * 1e3).round() as u64;
        Ok(Duration::from_nanos(nanos))
    }
}

/// How far an emulated run can be believed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Fidelity {
    /// How late the emulator was.
    pub(crate) lag: Lag,
    /// Packets that kernels sent and the emulator never saw: the queues of their interfaces were full.
    pub lost_before: u64,
    /// Packets that the emulator could not hand to a kernel for lack of memory.
    pub lost_behind: u64,
    /// Packets that came out of the network and were none any more to a kernel: damaged on a wire, or longer than its interface takes. No
    /// fault of the emulator's.
    pub refused: u64,
    /// The share of one processor that the emulator itself took.
    pub cpu_share: f64,
    /// Why it is not to be believed; nothing if it is.
    pub late: Vec<String>,
}

impl Fidelity {
    /// Judges a run whose hosts are so far from each other.
    pub(super) fn judged(self, shortest_round_trip: Option<Duration>) -> Self {
        let mut late = Vec::new();
        let limit = limit(shortest_round_trip);
        let Lag { p99, max, .. } = self.lag;
        if p99 > limit {
            late.push(format!(
                "99 % of the packets were late by up to {p99:?}, and {limit:?} is the most"
            ));
        }
        if max > LONGEST {
            late.push(format!("the emulator stood still for {max:?}, and {LONGEST:?} is the most"));
        }
        if self.lost_before > 0 {
            late.push(format!("it lost {} packets from the hosts", self.lost_before));
        }
        if self.lost_behind > 0 {
            late.push(format!("it lost {} packets to the hosts", self.lost_behind));
        }
        Fidelity { late, ..self }
    }
}

/// The bound of the 99th percentile of the lag.
fn limit(shortest_round_trip: Option<Duration>) -> Duration {
    let tenth = shortest_round_trip.map_or(MOST, |time| Duration::from_nanos(time.as_nanos() / 10));
    tenth.clamp(LEAST, MOST)
}

impl fmt::Display for Fidelity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Fidelity { lag, lost_before, lost_behind, cpu_share, .. } = self;
        write!(
            f,
            "lag {:?} median, {:?} p99, {:?} max; {} packets lost by the emulator; {:.0} % of a processor",
            lag.median,
            lag.p99,
            lag.max,
            lost_before + lost_behind,
            cpu_share * 100.0,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn micros(micros: u64) -> Duration {
        Duration::from_micros(micros)
    }

    #[test]
    fn the_lag_allowed_depends_on_the_path_delay() {
        assert_eq!(limit(None), micros(1000));
        assert_eq!(limit(Some(Duration::from_millis(100))), micros(1000));
        assert_eq!(limit(Some(Duration::from_millis(5))), micros(500));
        assert_eq!(limit(Some(Duration::ZERO)), micros(250));
    }

    #[test]
    fn percentiles_by_hand() {
        let mut lags = Lags::new();
        assert_eq!(lags.summary(), Lag::default());
        for index in 1..=100 {
            lags.record(Instant::from_millis(1), Instant::from_millis(1) + micros(index));
        }
        let Lag { events, median, p99, max } = lags.summary();
        assert_eq!(events, 100);
        // To one part in a thousand.
        assert!(median.as_nanos().abs_diff(50_000) <= 50, "{median:?}");
        assert!(p99.as_nanos().abs_diff(99_000) <= 99, "{p99:?}");
        assert!(max.as_nanos().abs_diff(100_000) <= 100, "{max:?}");
    }

    #[test]
    fn each_reason_is_given() {
        let punctual = Fidelity {
            lag: Lag { events: 1000, median: micros(5), p99: micros(900), max: micros(99_000) },
            ..Fidelity::default()
        };
        let way = Some(Duration::from_millis(40));
        assert!(punctual.clone().judged(way).late.is_empty());
        let slow = Fidelity { lag: Lag { p99: micros(1001), ..punctual.lag }, ..punctual.clone() };
        assert!(!slow.judged(way).late.is_empty());
        // The same is too much where the way is short.
        assert!(!punctual.clone().judged(Some(Duration::from_millis(4))).late.is_empty());
        let stood =
            Fidelity { lag: Lag { max: micros(100_001), ..punctual.lag }, ..punctual.clone() };
        assert!(stood.judged(way).late[0].contains("stood still"));
        let lost = Fidelity { lost_before: 1, lost_behind: 2, ..punctual };
        assert_eq!(lost.judged(way).late.len(), 2);
    }
}
