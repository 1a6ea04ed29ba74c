//! A measured rate that changes with time.
//!
//! The format is mahimahi's (Netravali et al., "Mahimahi: Accurate Record-and-Replay for HTTP", USENIX ATC 2015, section 3). Each line is a
//! whole number of milliseconds since the start, at which one packet of the largest size can be delivered. Several lines may have the same
//! number. After the last line the trace begins again at that moment. An opportunity without a packet is lost. Small packets share an
//! opportunity, and a packet may need several.
//!
//! mahimahi counts 1504 bytes, of which four are what its TUN device puts before a packet. Lengths here are those of IP packets, so an
//! opportunity is 1500 bytes. As there, one carries a packet of 1500 bytes, and a trace with one line for each millisecond has 12 Mbit/s.
//!
//! A rate that changes in steps needs no file: its trace is made of its text.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use transom_tcp::time::{Duration, Instant};

use super::LinkConfigError;
use super::text::call;
use crate::units::{Rate, parse_duration, serde_as_text};

/// The bytes of IP packets that one opportunity delivers.
pub const OPPORTUNITY: u64 = 1500;

const NANOS: u64 = 1_000_000;

/// A trace of delivery opportunities: the name of its file and, once that has been read, what is in it.
///
/// Written as the file's name, or as steps: "steps(40Mbit/s for 10s, 10Mbit/s for 10s)".
#[derive(Clone, PartialEq, Eq)]
pub struct RateTrace {
    text: String,
    opportunities: Option<Opportunities>,
}

impl RateTrace {
    /// The trace in a file that has not been read.
    pub(crate) fn named(file: impl Into<String>) -> Self {
        RateTrace { text: file.into(), opportunities: None }
    }

    /// The trace in a file with these contents: a whole number of milliseconds on each line, none less than the one before. Empty lines, and
    /// those that begin with `#`, say nothing.
    ///
    /// # Errors
    /// [`RateTraceError`], with the line that is wrong.
    pub fn read(file: &str, contents: &str) -> Result<Self, RateTraceError> {
        Ok(RateTrace::named(file).with(Opportunities::parse(contents)?))
    }

    /// The same with what is in the file, or follows from the steps.
    pub(super) fn with(self, opportunities: Opportunities) -> Self {
        RateTrace { opportunities: Some(opportunities), ..self }
    }

    /// The name of the file that has still to be [`read`](Self::read), if it is in one.
    pub fn unread(&self) -> Option<&str> {
        self.opportunities.is_none().then_some(self.text.as_str())
    }

    /// The contents of the file; `None` if it has not been read.
    pub(crate) fn opportunities(&self) -> Option<&Opportunities> {
        self.opportunities.as_ref()
    }
}

impl fmt::Debug for RateTrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RateTrace({}, {:?})", self.text, self.opportunities)
    }
}

/// A file's name, or the steps of a rate, which are known at once. What begins as steps and is not right is an error.
impl FromStr for RateTrace {
    type Err = LinkConfigError;

    fn from_str(text: &str) -> Result<Self, LinkConfigError> {
        let trace = RateTrace::named(text);
        if !text.trim_start().starts_with("steps(") {
            return Ok(trace);
        }
        let steps = call(text).and_then(|(_, steps)| steps.into_iter().map(step).collect());
        let made = steps.and_then(|steps: Vec<_>| Opportunities::of_steps(&steps));
        let opportunities = made.ok_or_else(|| LinkConfigError::Form {
            what: "rate in steps",
            text: text.into(),
            forms: "steps(RATE for DURATION, ...), with whole milliseconds, at most 2^20 packets and an hour in all",
        })?;
        Ok(trace.with(opportunities))
    }
}

impl fmt::Display for RateTrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

serde_as_text!(RateTrace, "a rate trace such as \"cellular.trace\" or \"steps(40Mbit/s for 10s)\"");

/// As long as the steps may take, milliseconds.
const MOST_MILLIS: u64 = 3_600_000;
/// As many opportunities as they may have: each link holds its own in memory, as soon as its text is read.
const MOST_OPPORTUNITIES: u64 = 1 << 20;

/// A rate and how many milliseconds it lasts.
fn step(text: &str) -> Option<(Rate, u64)> {
    let (rate, duration) = text.split_once(" for ")?;
    let duration = parse_duration(duration).ok()?.as_nanos();
    let whole = duration.is_multiple_of(NANOS) && duration > 0;
    whole.then_some((rate.parse().ok()?, duration / NANOS))
}

/// When a packet can be delivered: at these times, again and again. Copies share them.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Opportunities {
    /// Milliseconds, in order, at least one and the last above zero: that is the period.
    millis: Arc<[u32]>,
}

/// Why a text is not a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RateTraceError {
    /// A line is not what it should be.
    #[error("line {line} {what}")]
    Line {
        /// The line's number, from one.
        line: usize,
        /// The defect.
        what: &'static str,
    },
    /// There are no opportunities.
    #[error("there are no lines")]
    Empty,
    /// The trace takes no time.
    #[error("the last line is 0, but a trace must last longer than that")]
    Timeless,
}

impl Opportunities {
    /// Reads the contents of a file.
    pub(super) fn parse(text: &str) -> Result<Self, RateTraceError> {
        let mut millis: Vec<u32> = Vec::new();
        for (line, content) in (1..).zip(text.lines()) {
            let content = content.trim();
            if content.is_empty() || content.starts_with('#') {
                continue;
            }
            let wrong = |what| RateTraceError::Line { line, what };
            let at = content
                .parse()
                .map_err(|_| wrong("is not a whole number of milliseconds from 0 to 4294967295"))?;
            if millis.last().is_some_and(|before| *before > at) {
                return Err(wrong("goes back in time"));
            }
            millis.push(at);
        }
        match millis.last() {
            None => Err(RateTraceError::Empty),
            Some(0) => Err(RateTraceError::Timeless),
            Some(_) => Ok(Opportunities { millis: millis.into() }),
        }
    }

    /// The opportunities of a rate that changes in steps, and begins again after the last. Each is due when the rate has had the time for it; the one
    /// that is due at the end, or not quite yet, is at the end. `None` if there are no steps, or too many opportunities.
    fn of_steps(steps: &[(Rate, u64)]) -> Option<Self> {
        const PACKET: u128 = OPPORTUNITY as u128 * 8 * 1000;
        let end = steps.iter().try_fold(0u64, |sum, (_, millis)| sum.checked_add(*millis))?;
        let packets = steps
            .iter()
            .map(|(rate, millis)| u128::from(rate.bits_per_sec()) * u128::from(*millis) / PACKET);
        if end > MOST_MILLIS || packets.sum::<u128>() > u128::from(MOST_OPPORTUNITIES) {
            return None;
        }
        let mut millis = Vec::new();
        // Thousandths of bits that the rate has had the time for, and that no packet has taken.
        let mut left = 0;
        let mut now = 0;
        for (rate, duration) in steps {
            for _ in 0..*duration {
                now += 1;
                left += u128::from(rate.bits_per_sec());
                while left >= PACKET {
                    left -= PACKET;
                    millis.push(now);
                }
            }
        }
        if millis.last().is_none_or(|last| *last < now) {
            millis.push(now);
        }
        (now > 0).then(|| Opportunities { millis: millis.into() })
    }

    /// After this time the trace begins again.
    fn period(&self) -> Duration {
        Duration::from_millis(self.last().into())
    }

    /// How many there are in a period.
    fn len(&self) -> usize {
        self.millis.len()
    }

    /// The mean rate, rounded down, but at least one bit per second.
    pub(crate) fn mean_rate(&self) -> Rate {
        let bits = self.millis.len() as u128 * u128::from(OPPORTUNITY) * 8 * 1000;
        let rate = u64::try_from(bits / u128::from(self.last())).unwrap_or(u64::MAX);
        // A trace of 49 days with one line is above a bit per second as little as it is below.
        Rate::from_bits_per_sec(rate.max(1)).unwrap_or_else(|| unreachable!("at least one"))
    }

    /// How many there have been from the start to `at`, that moment included.
    pub(crate) fn until(&self, at: Instant) -> u64 {
        let (periods, within) = self.split(at);
        let here = self.millis.partition_point(|millis| u64::from(*millis) * NANOS <= within);
        periods.saturating_mul(self.millis.len() as u64).saturating_add(here as u64)
    }

    /// When the `number`-th is, from zero.
    pub(super) fn time(&self, number: u64) -> Instant {
        let len = self.millis.len() as u64;
        let (period, place) = (number / len, (number % len) as usize);
        let within = self.millis.get(place).copied().unwrap_or(0);
        let millis = u128::from(period) * u128::from(self.last()) + u128::from(within);
        let nanos = millis.saturating_mul(u128::from(NANOS));
        Instant::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// Periods that are over at `at`, and what has passed of the present one.
    fn split(&self, at: Instant) -> (u64, u64) {
        let period = u64::from(self.last()) * NANOS;
        (at.as_nanos() / period, at.as_nanos() % period)
    }

    fn last(&self) -> u32 {
        self.millis.last().copied().unwrap_or(1)
    }
}

impl fmt::Debug for Opportunities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in {:?}", self.len(), self.period())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(text: &str) -> Opportunities {
        Opportunities::parse(text).unwrap_or_else(|error| panic!("{text:?}: {error}"))
    }

    #[test]
    fn it_begins_again_at_its_last_moment() {
        let trace = trace("0\n3\n3\n5\n");
        let times: Vec<u64> = (0..9).map(|n| trace.time(n).as_nanos() / NANOS).collect();
        assert_eq!(times, [0, 3, 3, 5, 5, 8, 8, 10, 10]);
        assert_eq!((trace.len(), trace.period()), (4, Duration::from_millis(5)));
        // 4 · 1500 · 8 bits in 5 ms.
        assert_eq!(trace.mean_rate().bits_per_sec(), 9_600_000);
        for (nanos, count) in [
            (0, 1),
            (2_999_999, 1),
            (3_000_000, 3),
            (4_999_999, 3),
            (5_000_000, 5),
            (10_000_000, 9),
        ] {
            assert_eq!(trace.until(Instant::from_nanos(nanos)), count, "{nanos}");
        }
    }

    #[test]
    fn a_wrong_trace_is_refused() {
        let error = |text: &str| Opportunities::parse(text).unwrap_err().to_string();
        assert_eq!(error(""), "there are no lines");
        assert_eq!(error("# nothing\n\n"), "there are no lines");
        assert_eq!(error("0\n0\n"), "the last line is 0, but a trace must last longer than that");
        assert_eq!(error("5\n\n4\n"), "line 3 goes back in time");
        let whole = "is not a whole number of milliseconds from 0 to 4294967295";
        for text in ["1.5", "-1", "x", "1 2", "4294967296", "99999999999999999999999", "\u{feff}1"]
        {
            assert_eq!(error(&format!("1\n{text}\n")), format!("line 2 {whole}"), "{text}");
        }
        assert_eq!(Opportunities::parse("# a comment\r\n7\r\n"), Opportunities::parse("7"));
    }

    #[test]
    fn steps_of_a_rate() {
        // Each millisecond a packet, then two: with 12 Mbit/s one takes just a millisecond.
        let steps = |text: &str| text.parse::<RateTrace>().unwrap().opportunities().cloned();
        let trace = steps("steps(12Mbit/s for 2ms, 24Mbit/s for 2ms)").unwrap();
        assert_eq!(Some(trace.clone()), Some(self::trace("1\n2\n3\n3\n4\n4")));
        assert_eq!(trace.period(), Duration::from_millis(4));
        // What one step leaves over goes to the next; the last is at the end.
        assert_eq!(steps("steps(6Mbit/s for 3ms, 12Mbit/s for 2ms)"), Some(self::trace("2\n4\n5")));
        assert_eq!(steps("steps(1bit/s for 7ms)"), Some(self::trace("7")));
        // The rates are right over a long time.
        let trace = steps("steps(40Mbit/s for 10s, 10Mbit/s for 10s)").unwrap();
        assert_eq!(trace.period(), Duration::from_secs(20));
        assert!(trace.mean_rate().bits_per_sec().abs_diff(25_000_000) < 1000);
        let half = trace.until(Instant::from_secs(10)) * OPPORTUNITY * 8;
        assert!(half.abs_diff(400_000_000) <= OPPORTUNITY * 8, "{half}");
        // What does not begin so is a file.
        assert_eq!("steps.trace".parse(), Ok(RateTrace::named("steps.trace")));
    }

    #[test]
    fn malformed_steps_are_refused() {
        for text in [
            "steps()",
            "steps(12Mbit/s for 1s",
            "steps(12Mbit/s)",
            "steps(12Mbit/s for 0ms)",
            "steps(12Mbit/s for 100us)",
            "steps(0bit/s for 1s)",
            "steps(1s for 12Mbit/s)",
            "steps(1Mbit/s for 1s,)",
            "steps(1kbit/s for 3601s)",
            "steps(1kbit/s for 1h, 1kbit/s for 1ms)",
            "steps(1000Gbit/s for 1h)",
        ] {
            let error = text.parse::<RateTrace>().map(|trace| panic!("{trace:?}")).unwrap_err();
            assert!(error.to_string().contains("steps(RATE for DURATION, ...)"), "{text}: {error}");
        }
    }

    #[test]
    fn the_end_of_time() {
        let trace = trace("4294967295");
        assert_eq!(trace.time(u64::MAX), Instant::FAR_FUTURE);
        assert_eq!(trace.mean_rate().bits_per_sec(), 1);
        assert_eq!(trace.until(Instant::FAR_FUTURE), u64::MAX / (4_294_967_295 * NANOS));
    }
}
