//! Equation-based congestion control (TFRC, RFC 5348) as an extension: icTCP-Eqn (section 5.4.7).
//!
//! Instead of halving and growing, it uses an equation for the average rate of a TCP with the same losses (section 3.1):
//!
//! ```text
//! X = s / (R·(√(2bp/3) + (t_RTO/R)·3·√(3bp/8)·p·(1 + 32p²))), with b = 1 and t_RTO = 4R
//! ```
//!
//! The loss event rate p is the reciprocal of an average over the lengths of the last eight loss intervals, in segments. The older half of
//! them have falling weights. The present interval counts as soon as it makes the average longer (section 5.4). As t_RTO is a multiple of
//! R, X·R = s/f(p) is a window that depends on p alone.
//!
//! The request is an upper bound of cwnd, or of the pacing rate. So the window grows more gradually than Reno's, as in icTCP, but falls with
//! it: if the equation's reduction is smaller, TCP's own half is effective.
//!
//! Differences from the RFC, and choices that it leaves open:
//! - It is the sender that finds the loss events. One begins with a fast recovery or a timeout, unless the one before began within a round
//!   trip or at the same byte; all that is lost in a recovery is one event. A loss that turns out to have been none stays in the average.
//! - The first interval is the one for which the equation gives the window that the first reduction leaves, instead of one from the rate at
//!   which data was received (section 6.3.1).
//! - Before the first loss event there is no limit: slow start is TCP's. Nor is there one by the received rate, as TCP's window is fed by what
//!   is acknowledged.
//! - R is TCP's smoothed round-trip time. No history discounting (section 5.5), no oscillation prevention (4.5).
//! - The present interval reaches to SND.UNA. The average is calculated once each round trip, as a receiver would report it.
//! - The window is at least a segment; the rate at least one in 64 seconds.

use crate::catalogue::{Entry, choice};
use transom_tcp::Pos;
use transom_tcp::extension::{Extension, Limits, Occasion, Value, View, Wake};
use transom_tcp::time::{Duration, Instant};

/// Which variable it limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LimitedVariable {
    /// cwnd.
    Window,
    /// The pacing rate.
    Rate,
}

impl LimitedVariable {
    const WORDS: [(&'static str, LimitedVariable); 2] =
        [("window", LimitedVariable::Window), ("rate", LimitedVariable::Rate)];
}

/// How it is chosen by name.
pub(crate) const ENTRY: Entry = Entry {
    name: "tfrc",
    source: "RFC 5348",
    summary: "limits the rate by the TFRC equation for the rate of loss events; smoother than Reno",
    parameters: &[("by", "window or rate: the variable that is limited")],
    read: |arguments| {
        let by = arguments.word("by", &LimitedVariable::WORDS)?.unwrap_or(LimitedVariable::Window);
        Ok(choice(arguments, Tfrc::new(by)))
    },
};

/// The loss intervals that count.
const INTERVALS: usize = 8;
/// Their weights (section 5.4), in fifths: the newest half counts in full.
const WEIGHTS: [u64; INTERVALS] = [5, 5, 5, 5, 4, 3, 2, 1];
/// t_mbi: one segment in this many seconds may always leave (section 4.3).
const SLOWEST: u64 = 64;
/// The unit of rates of loss events and of f, a millionth of a millionth.
const UNIT: u128 = 1_000_000_000_000;

/// f(p): how many round trips a segment takes.
fn f(p: u128) -> u128 {
    let first = (2 * p * UNIT / 3).isqrt();
    let second = (3 * p * UNIT / 8).isqrt();
    let power = UNIT + 32 * p * p / UNIT;
    first + 12 * second * p / UNIT * power / UNIT
}

/// X·R in bytes, with segments of `s` bytes.
fn window(s: u64, p: u128) -> u64 {
    u64::try_from(u128::from(s) * UNIT / f(p).max(1)).unwrap_or(u64::MAX)
}

/// The least p for which the equation gives no more than this window.
fn invert(s: u64, most: u64) -> u128 {
    let (mut low, mut high) = (1, UNIT);
    while low < high {
        let middle = (low + high) / 2;
        if window(s, middle) <= most {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}

/// The lengths of loss intervals, in bytes.
#[derive(Clone, Debug, Default)]
struct Intervals {
    /// Those that are over, the newest first.
    lengths: [u64; INTERVALS],
    known: usize,
}

impl Intervals {
    fn push(&mut self, length: u64) {
        self.lengths.rotate_right(1);
        if let Some(newest) = self.lengths.first_mut() {
            *newest = length;
        }
        self.known = (self.known + 1).min(INTERVALS);
    }

    /// p, with the present interval so long; nothing before the first loss event.
    fn rate(&self, present: u64, s: u64) -> Option<u128> {
        let over = self.lengths.get(..self.known)?;
        let sum = |lengths: &mut dyn Iterator<Item = u64>| -> u128 {
            lengths.zip(WEIGHTS).map(|(length, w)| u128::from(length) * u128::from(w)).sum()
        };
        // As many intervals as are over, with and without the present one.
        let with = sum(&mut core::iter::once(present).chain(over.iter().copied()).take(self.known));
        let without = sum(&mut over.iter().copied());
        let weights: u64 = WEIGHTS.iter().take(self.known).sum();
        if weights == 0 {
            return None;
        }
        let weighed = u128::from(weights) * u128::from(s) * UNIT;
        Some((weighed / with.max(without).max(1)).clamp(1, UNIT))
    }
}

/// TFRC for one connection.
#[derive(Clone, Debug)]
pub(crate) struct Tfrc {
    /// The variable that it limits.
    pub(crate) by: LimitedVariable,
    intervals: Intervals,
    /// When and where the last loss event began.
    event: Option<(Instant, Pos)>,
}

impl Tfrc {
    /// That limits this.
    fn new(by: LimitedVariable) -> Self {
        Tfrc { by, intervals: Intervals::default(), event: None }
    }

    fn on_loss(&mut self, view: &View<'_>) {
        let (now, una) = (view.now(), view.snd_una());
        match self.event {
            None => {
                let p = invert(view.mss(), view.window().ssthresh);
                let length = u128::from(view.mss()) * UNIT / p;
                self.intervals.push(u64::try_from(length).unwrap_or(u64::MAX));
            }
            Some((at, start)) => {
                if una <= start || now.since(at) < view.srtt().unwrap_or_default() {
                    return;
                }
                self.intervals.push(una.since(start));
            }
        }
        self.event = Some((now, una));
    }

    fn ask(&self, view: &View<'_>, limits: &mut Limits) {
        let Some((_, start)) = self.event else { return };
        let s = view.mss();
        let Some(p) = self.intervals.rate(view.snd_una().since(start), s) else { return };
        let window = window(s, p).max(s);
        match self.by {
            LimitedVariable::Window => limits.at_most(Value::Cwnd(window)),
            LimitedVariable::Rate => {
                let rtt = view.srtt().unwrap_or(Duration::from_secs(1)).as_nanos().max(1);
                let rate = u128::from(window) * 1_000_000_000 / u128::from(rtt);
                let rate = u64::try_from(rate).unwrap_or(u64::MAX).max(s / SLOWEST);
                limits.at_most(Value::PacingRate(rate));
            }
        }
    }
}

impl Extension for Tfrc {
    fn name(&self) -> &str {
        "tfrc"
    }

    fn wake_on(&self) -> Wake {
        Wake::ROUND | Wake::LOSS | Wake::TIMEOUT
    }

    fn on_wake(&mut self, occasion: &Occasion, view: &View<'_>, limits: &mut Limits) {
        if occasion.what.intersects(Wake::LOSS | Wake::TIMEOUT) {
            self.on_loss(view);
        }
        self.ask(view, limits);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// p = 0.01: √(0.02/3) = 0.0816497, √(0.03/8) = 0.0612372, times 12 · 0.01 · 1.0032 = 0.0073720; f = 0.0890217, and a segment of 1000 over
    /// that 11233. At p = 0.0001 the first term is 0.00816497, the second 0.0000073485: 1000/0.00817232 = 122364. With everything
    /// lost 0.816497 + 12 · 0.612372 · 33 = 243.316.
    #[test]
    fn the_equation() {
        assert_eq!(window(1000, UNIT / 100), 11_233);
        assert_eq!(window(1000, UNIT / 10_000), 122_364);
        assert_eq!(window(1000, UNIT), 4);
        // Backwards: an interval of 100 segments.
        let p = invert(1000, 11_233);
        assert_eq!(UNIT / p, 100);
        assert_eq!((invert(1000, u64::MAX), invert(1000, 0)), (1, UNIT));
    }

    /// Section 5.4: four intervals that count in full, four with 0.8, 0.6, 0.4 and 0.2; six in all.
    #[test]
    fn the_average_of_eight() {
        let mut intervals = Intervals::default();
        assert_eq!(intervals.rate(5000, 1), None);
        intervals.push(100);
        assert_eq!(intervals.rate(0, 1), Some(UNIT / 100));
        // The present one counts as soon as it is longer: alone, as one interval is known.
        assert_eq!(intervals.rate(125, 1), Some(UNIT / 125));
        // 700, 600, …, 100 and the first, 100: I_tot1 = 700 + 600 + 500 + 400 + 0.8·300 + 0.6·200 + 0.4·100 + 0.2·100 = 2620, over 6.
        for length in (100..=700).step_by(100) {
            intervals.push(length);
        }
        assert_eq!(intervals.rate(0, 1), Some(6 * UNIT / 2620));
        // I_tot0 with 1000: 1000 + 700 + 600 + 500 + 0.8·400 + 0.6·300 + 0.4·200 + 0.2·100 = 3400.
        assert_eq!(intervals.rate(1000, 1), Some(6 * UNIT / 3400));
        // The ninth pushes the first out: 0.2·100 stays, as the second was 100 too.
        intervals.push(1000);
        assert_eq!(intervals.rate(0, 1), Some(6 * UNIT / 3400));
        // In bytes, of which a segment has ten.
        assert_eq!(intervals.rate(0, 10), Some(60 * UNIT / 3400));
    }
}
