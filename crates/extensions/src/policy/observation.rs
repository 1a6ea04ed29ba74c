//! The observation of a policy: a vector of 14 numbers of 16 bits, since its last decision.
//!
//! `docs/learning.md` lists their names and meanings. Unless the list says otherwise, 1024 stands for one. Values that do not fit are cut to -32,767
//! and 32,767. All arithmetic has 64 bits, so a place that has no more, such as a program in the kernel, can do the same.

use transom_tcp::congestion::Window;
use transom_tcp::time::{Duration, Instant};

/// The version of the observation. A policy of another version is refused.
pub(crate) const OBSERVATION: u16 = 1;

/// The number of values.
pub const INPUTS: usize = 14;

/// The vector.
pub type Observation = [i16; INPUTS];

/// The state of a connection at a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// When.
    pub now: Instant,
    /// Payload of a full segment, in bytes.
    pub mss: u64,
    /// The window in use, in bytes.
    pub window: u64,
    /// Bytes in flight.
    pub in_flight: u64,
    /// Bytes delivered so far.
    pub delivered: u64,
    /// Bytes believed lost so far.
    pub lost: u64,
    /// The least round-trip time of all.
    pub base: Option<Duration>,
    /// Fast recoveries and timeouts so far.
    pub reductions: u64,
}

/// Collects acknowledgements between two decisions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Observer {
    before: Option<Seen>,
    least: Option<Duration>,
    /// The sum of round-trip times in nanoseconds, and how many there were.
    sum: (u64, u64),
    max: Duration,
    /// Bytes with a round-trip time, those that were late, all that were acknowledged, and those with marks.
    timed: u64,
    late: u64,
    acked: u64,
    marked: u64,
    /// The mean at the last decision.
    mean: Option<u64>,
    /// The highest rate, bytes per second; it fades by a 64th with each decision.
    rate: u64,
    calm: u16,
    /// The least round-trip time as of the last decision, for what is late.
    base: Option<Duration>,
}

/// `part` of `whole` in 1024ths, cut to 16 bits.
fn ratio(part: u64, whole: u64) -> i16 {
    let value = part.min(1 << 53) * 1024 / whole.max(1);
    value.min(32_767) as i16
}

impl Observer {
    /// From this state on.
    pub(crate) fn begin(seen: &Seen) -> Observer {
        Observer { before: Some(*seen), base: seen.base, ..Observer::default() }
    }

    /// An acknowledgement of `bytes`.
    pub(crate) fn ack(&mut self, rtt: Option<Duration>, bytes: u64, marked: bool) {
        self.acked = self.acked.saturating_add(bytes);
        if marked {
            self.marked = self.marked.saturating_add(bytes);
        }
        let Some(rtt) = rtt else { return };
        self.max = self.max.max(rtt);
        self.least = Some(self.least.map_or(rtt, |least| least.min(rtt)));
        self.sum = (self.sum.0.saturating_add(rtt.as_nanos()), self.sum.1 + 1);
        let base = self.base.map_or(rtt, |base| base.min(rtt));
        self.base = Some(base);
        let bytes = bytes.max(1);
        self.timed = self.timed.saturating_add(bytes);
        if rtt.as_nanos() > base.as_nanos().saturating_add(self.span(base) / 10) {
            self.late = self.late.saturating_add(bytes);
        }
    }

    /// From the least round-trip time to the largest, in nanoseconds.
    fn span(&self, base: Duration) -> u64 {
        let largest = self.max.as_nanos().max(base.as_nanos().saturating_mul(2));
        largest.saturating_sub(base.as_nanos()).max(1)
    }

    /// The observation at a decision; the next period begins.
    pub(crate) fn observe(&mut self, seen: &Seen) -> Observation {
        let before = self.before.replace(*seen).unwrap_or(*seen);
        let base = seen.base.or(self.base).unwrap_or(Duration::from_nanos(1));
        let nanos = base.as_nanos().max(1);
        let mean = match self.sum {
            (_, 0) => self.mean.unwrap_or(nanos),
            (sum, count) => sum / count,
        };
        let least = self.least.map_or(mean, |least| least.as_nanos());
        let (above, above_least) = (mean.saturating_sub(nanos), least.saturating_sub(nanos));
        let delivered = seen.delivered.saturating_sub(before.delivered);
        let lost = seen.lost.saturating_sub(before.lost);
        let elapsed = seen.now.as_nanos().saturating_sub(before.now.as_nanos());
        let rate = per_second(delivered, elapsed);
        self.rate = (self.rate - self.rate / 64).max(rate);
        self.calm =
            if seen.reductions > before.reductions { 0 } else { self.calm.saturating_add(1) };
        let trend = match self.mean {
            Some(last) if mean < last => -ratio(last - mean, nanos),
            Some(last) => ratio(mean - last, nanos),
            None => 0,
        };
        // Microseconds, and a minute at most, so that the products fit.
        let micros = |nanos: u64| (nanos / 1000).min(1 << 26);
        let product = self.rate.min(1 << 37) * micros(nanos) / 1_000_000;
        let window = seen.window.clamp(1, Window::WIDEST);
        let segments = window.min(1 << 29) * 256 / seen.mss.max(1);
        let queued = segments.min(1 << 37) * micros(above_least) / micros(least).max(1);
        let observation = [
            1024,
            ratio(above_least, nanos),
            ratio(above, nanos),
            ratio(above, self.span(base)),
            ratio(self.late, self.timed),
            trend,
            ratio(lost, delivered.saturating_add(lost)),
            ratio(self.marked, self.acked),
            logarithm(window, seen.mss.max(1)),
            ratio(rate, self.rate),
            ratio(seen.in_flight.saturating_add(delivered), window),
            ratio(window, product),
            (self.calm.min(64) * 16) as i16,
            queued.min(32_767) as i16,
        ];
        self.mean = Some(mean);
        self.base = Some(base);
        self.least = None;
        self.sum = (0, 0);
        (self.timed, self.late, self.acked, self.marked) = (0, 0, 0, 0);
        observation
    }
}

fn per_second(bytes: u64, nanos: u64) -> u64 {
    match nanos / 1000 {
        0 => 0,
        micros => bytes.min(1 << 43) * 1_000_000 / micros,
    }
}

/// The binary logarithm of a quotient, at least zero; linear between powers of two.
fn logarithm(part: u64, whole: u64) -> i16 {
    let value = (part.min(1 << 53) * 1024 / whole).max(1024);
    let power = value.ilog2() - 10;
    let fraction = (value >> power) - 1024;
    (u64::from(power) * 1024 + fraction).min(32_767) as i16
}
