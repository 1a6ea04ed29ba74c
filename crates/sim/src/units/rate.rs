//! Transmission rates in bits per second.

use core::fmt;
use core::num::NonZeroU64;
use core::str::FromStr;

use super::{UnitError, serde_as_text};
use transom_router::quantity::RateText;

/// A transmission rate, at least one bit per second.
///
/// Written "10Mbit/s", "1.5 Gb/s", "64kbps", or in bytes "1.25MB/s" (a capital B is a byte, eight bits).
/// Prefixes are decimal (k, M, G, T) unless they have an i (Ki, Mi, Gi, Ti).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(NonZeroU64);

impl Rate {
    /// The rate of `bits` per second; `None` for zero, at which nothing would ever arrive.
    pub const fn from_bits_per_sec(bits: u64) -> Option<Rate> {
        match NonZeroU64::new(bits) {
            Some(bits) => Some(Rate(bits)),
            None => None,
        }
    }

    /// Bits per second.
    pub const fn bits_per_sec(self) -> u64 {
        self.0.get()
    }
}

impl FromStr for Rate {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Rate, UnitError> {
        text.parse().map(|RateText(bits)| Rate(bits))
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        RateText(self.0).fmt(f)
    }
}

serde_as_text!(Rate, "a rate such as \"10Mbit/s\"");
