//! A policer: packets beyond a rate are dropped at once, and none waits for it.
//!
//! A token bucket (RFC 2697 with one colour, Linux' `police`): it fills at the rate up to the burst, a packet takes its length out of it, and one for which
//! there is not enough is dropped. Operators have them where a subscriber's rate is less than the line's.

use core::fmt;
use core::str::FromStr;

use transom_tcp::time::Instant;

use super::LinkConfigError;
use crate::units::{Rate, serde_as_text};
use transom_router::quantity::parse_size;

/// The rate that passes, and how many bytes may pass at once after a silence. Written "20Mbit/s burst 50kB".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Policer {
    /// The rate, of whole packets.
    pub(crate) rate: Rate,
    /// The capacity of the bucket, in bytes.
    pub(crate) burst: u64,
}

const NANOS: u128 = 1_000_000_000;

/// A policer at work. Its bucket begins full.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bucket {
    policer: Policer,
    /// In billionths of a bit, so that nothing is rounded.
    level: u128,
    at: Instant,
}

impl Bucket {
    pub(super) fn new(policer: Policer) -> Self {
        Bucket { policer, level: Bucket::full(policer), at: Instant::ZERO }
    }

    fn full(policer: Policer) -> u128 {
        u128::from(policer.burst) * 8 * NANOS
    }

    /// Whether a packet of `len` bytes passes.
    pub(super) fn passes(&mut self, now: Instant, len: usize) -> bool {
        let gained = u128::from(now.since(self.at).as_nanos())
            * u128::from(self.policer.rate.bits_per_sec());
        self.level = self.level.saturating_add(gained).min(Bucket::full(self.policer));
        self.at = self.at.max(now);
        match self.level.checked_sub(len as u128 * 8 * NANOS) {
            Some(left) => {
                self.level = left;
                true
            }
            None => false,
        }
    }
}

impl FromStr for Policer {
    type Err = LinkConfigError;

    fn from_str(text: &str) -> Result<Policer, LinkConfigError> {
        let Some((rate, burst)) = text.split_once(" burst ") else {
            return Err(LinkConfigError::Form {
                what: "policer",
                text: text.into(),
                forms: "RATE burst SIZE, such as 20Mbit/s burst 50kB",
            });
        };
        let (rate, burst) = (rate.trim().parse()?, parse_size(burst.trim())?);
        if burst == 0 {
            let why = "a policer without a burst lets nothing pass";
            return Err(LinkConfigError::Nonsense { text: text.into(), why });
        }
        Ok(Policer { rate, burst })
    }
}

impl fmt::Display for Policer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} burst {}B", self.rate, self.burst)
    }
}

serde_as_text!(Policer, "a policer such as \"20Mbit/s burst 50kB\"");

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    /// 8 Mbit/s are a byte in each microsecond.
    #[test]
    fn the_bucket_fills_at_the_rate_up_to_the_burst() {
        let mut bucket = Bucket::new("8Mbit/s burst 3kB".parse().unwrap());
        let mut at =
            |micros: u64, len: usize| bucket.passes(Instant::from_nanos(micros * 1000), len);
        assert!(at(0, 1500) && at(0, 1500) && !at(0, 1));
        // After 1499 µs there are 1499 bytes. What was dropped took nothing.
        assert!(!at(1499, 1500) && at(1500, 1500) && !at(1500, 1));
        // It holds no more than the burst, after however long.
        assert!(!at(1_000_000_000, 3001) && at(1_000_000_000, 3000) && !at(1_000_000_000, 1));
        // A clock that goes back gives nothing.
        assert!(!at(5, 1));
    }

    #[test]
    fn the_text() {
        let read = |text: &str| text.parse::<Policer>();
        assert_eq!(read("20Mbit/s burst 50kB").unwrap().to_string(), "20Mbit/s burst 50000B");
        for wrong in ["20Mbit/s", "burst 5kB", "20Mbit/s burst 0B", "fast burst 5kB"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
