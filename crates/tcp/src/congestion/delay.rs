//! Measuring delay, for controllers that keep queues short: from round trips or from the peer's timestamps, with a base that forgets and a
//! filter for the present.
//!
//! A delay is a signed number of nanoseconds from an unknown origin. Only differences of one-way delays mean something, because the clocks of
//! the two ends are not synchronized (RFC 6817 section 3.4.2).

use super::built_in::Value;
use crate::ack_context::AckContext;
use crate::arguments::{ArgumentError, Arguments};
use crate::time::{Duration, Instant};
use alloc::string::String;
use transom_wire::Timestamps;

#[cfg(test)]
mod tests;

/// The source of delays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DelaySource {
    /// The timestamps option (RFC 7323): only queues on the way there count. Round trips, where the peer sends no
    /// timestamps or its clock does not tick in milliseconds.
    OneWay,
    /// Round-trip times: queues on the way back count as well.
    RoundTrip,
}

impl Value for DelaySource {
    fn take(&mut self, given: &mut Arguments<'_>, name: &'static str) -> Result<(), ArgumentError> {
        let words = [("one-way", DelaySource::OneWay), ("round-trip", DelaySource::RoundTrip)];
        *self = given.word(name, &words)?.unwrap_or(*self);
        Ok(())
    }

    fn text(&self) -> String {
        match self {
            DelaySource::OneWay => "one-way".into(),
            DelaySource::RoundTrip => "round-trip".into(),
        }
    }
}

/// One measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sample {
    /// In nanoseconds from some origin.
    pub(super) delay: i64,
    /// The origin is another one than before.
    pub(super) restarted: bool,
}

/// Takes delays out of acknowledgements.
#[derive(Clone, Copy, Debug)]
pub(super) struct Meter {
    source: DelaySource,
    clock: Option<Clock>,
}

/// The two clocks whose difference is the one-way delay.
#[derive(Clone, Copy, Debug)]
struct Clock {
    last: Timestamps,
    /// Milliseconds that the peer's clock counted since the first acknowledgement.
    theirs: i64,
    /// When the first acknowledgement came, and when what it acknowledged had left.
    since: Instant,
    left: Instant,
}

/// How long the peer's clock is watched before its rate is judged.
const WATCH: Duration = Duration::from_secs(2);

impl Meter {
    pub(super) const fn new(source: DelaySource) -> Self {
        Meter { source, clock: None }
    }

    /// How finely it measures, in nanoseconds.
    pub(super) const fn resolution(&self) -> i64 {
        match self.source {
            DelaySource::OneWay => 1_000_000,
            DelaySource::RoundTrip => 0,
        }
    }

    /// The delay that an acknowledgement of new data shows.
    pub(super) fn sample(&mut self, ack: &AckContext) -> Option<Sample> {
        let round_trip = |restarted| {
            let nanos = ack.rtt?.as_nanos().min(i64::MAX as u64 / 4);
            Some(Sample { delay: i64::try_from(nanos).ok()?, restarted })
        };
        if self.source == DelaySource::RoundTrip {
            return round_trip(false);
        }
        let (Some(rtt), Some(stamps)) = (ack.rtt, ack.timestamps) else {
            if ack.timestamps.is_some() {
                return None;
            }
            self.source = DelaySource::RoundTrip;
            return round_trip(true);
        };
        match self.one_way(stamps, rtt, ack.now) {
            Some(delay) => Some(Sample { delay, restarted: false }),
            None => {
                self.source = DelaySource::RoundTrip;
                round_trip(true)
            }
        }
    }

    /// The one-way delay against that of the first acknowledgement; `None` if the peer's clock does not tick in milliseconds.
    ///
    /// The data left a round-trip time ago. Our own timestamp, which the acknowledgement echoes, would be that of the oldest segment
    /// which it covers (RFC 7323 section 4.3), and the receiver's delay would count.
    fn one_way(&mut self, stamps: Timestamps, rtt: Duration, now: Instant) -> Option<i64> {
        let left = now - rtt;
        let Some(clock) = &mut self.clock else {
            self.clock = Some(Clock { last: stamps, theirs: 0, since: now, left });
            return Some(0);
        };
        // Differences of a 32-bit clock, however often it wraps.
        clock.theirs += i64::from(stamps.value.wrapping_sub(clock.last.value) as i32);
        clock.last = stamps;
        let ours = now.since(clock.since);
        if ours >= WATCH {
            // A tenth, and what delays may have changed meanwhile.
            let ours = i64::try_from(ours.as_millis()).unwrap_or(i64::MAX);
            if clock.theirs.abs_diff(ours) > ours.unsigned_abs() / 10 + 1000 {
                return None;
            }
        }
        let nanos = |at: Instant| i64::try_from(at.as_nanos()).unwrap_or(i64::MAX);
        let passed = nanos(left).saturating_sub(nanos(clock.left));
        Some(clock.theirs.saturating_mul(1_000_000).saturating_sub(passed))
    }
}

/// The least delay of the last ten minutes, a minute at a time (RFC 6817 section 3.4.2, BASE_HISTORY).
#[derive(Clone, Copy, Debug)]
pub(super) struct BaseDelay {
    minutes: [i64; 10],
    newest: usize,
    began: Instant,
}

const MINUTE: Duration = Duration::from_secs(60);

impl BaseDelay {
    /// Nothing seen.
    pub(super) const fn new() -> Self {
        BaseDelay { minutes: [i64::MAX; 10], newest: 0, began: Instant::ZERO }
    }

    pub(super) fn add(&mut self, now: Instant, delay: i64) {
        if self.minutes.iter().all(|&least| least == i64::MAX) {
            self.began = now;
        }
        for _ in 0..self.minutes.len() {
            if now.since(self.began) < MINUTE {
                break;
            }
            self.began += MINUTE;
            self.newest = (self.newest + 1) % self.minutes.len();
            self.set(i64::MAX);
        }
        if now.since(self.began) >= MINUTE {
            self.began = now;
        }
        let least = self.minutes.get(self.newest).copied().unwrap_or(i64::MAX);
        self.set(least.min(delay));
    }

    fn set(&mut self, least: i64) {
        if let Some(minute) = self.minutes.get_mut(self.newest) {
            *minute = least;
        }
    }

    /// The base delay; `i64::MAX` if nothing was seen.
    pub(super) fn least(&self) -> i64 {
        self.minutes.iter().copied().fold(i64::MAX, i64::min)
    }
}

/// The least of the last four samples, none of them older than a round trip (RFC 6817 section 3.4.2, CURRENT_FILTER).
#[derive(Clone, Copy, Debug)]
pub(super) struct CurrentDelay {
    samples: [(Instant, i64); 4],
    newest: usize,
}

impl CurrentDelay {
    /// Nothing seen.
    pub(super) const fn new() -> Self {
        CurrentDelay { samples: [(Instant::ZERO, i64::MAX); 4], newest: 0 }
    }

    /// Adds a sample; the delay of the present.
    pub(super) fn add(&mut self, now: Instant, delay: i64, srtt: Option<Duration>) -> i64 {
        self.newest = (self.newest + 1) % self.samples.len();
        if let Some(slot) = self.samples.get_mut(self.newest) {
            *slot = (now, delay);
        }
        let oldest = now - srtt.unwrap_or(Duration::ZERO);
        let fresh = self.samples.iter().filter(|(at, _)| *at >= oldest);
        fresh.map(|&(_, delay)| delay).fold(delay, i64::min)
    }
}

/// Whether the acknowledged segment travelled alone. Then the receiver may have delayed the acknowledgement (RFC 5681 section 4.2), and its timer
/// may look like a queue.
pub(super) fn is_alone(ack: &AckContext) -> bool {
    ack.acked <= u64::from(ack.mss) && ack.in_flight == 0
}

/// Queueing delay: the present above the base.
#[derive(Clone, Copy, Debug)]
pub(super) struct Queue {
    meter: Meter,
    base: BaseDelay,
    current: CurrentDelay,
}

impl Queue {
    pub(super) const fn new(source: DelaySource) -> Self {
        let (base, current) = (BaseDelay::new(), CurrentDelay::new());
        Queue { meter: Meter::new(source), base, current }
    }

    /// The queueing delay after an acknowledgement; `None` if it shows none.
    pub(super) fn measure(&mut self, ack: &AckContext) -> Option<Duration> {
        let Sample { delay, restarted } = self.meter.sample(ack)?;
        if restarted {
            (self.base, self.current) = (BaseDelay::new(), CurrentDelay::new());
        }
        self.base.add(ack.now, delay);
        let current = self.current.add(ack.now, delay, ack.srtt());
        let queued = current.saturating_sub(self.base.least());
        Some(Duration::from_nanos(u64::try_from(queued).unwrap_or(0)))
    }

    /// The base delay, as far as round trips go.
    pub(super) fn base(&self) -> Option<Duration> {
        u64::try_from(self.base.least())
            .ok()
            .filter(|&least| least < i64::MAX as u64)
            .map(Duration::from_nanos)
    }
}
