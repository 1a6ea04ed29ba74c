//! Transmission rates in bits per second.

use core::fmt;
use core::num::NonZeroU64;
use core::str::FromStr;

use super::{Decimal, UnitError, serde_as_text};

const QUANTITY: &str = "rate";

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

    /// The bytes that this rate carries in `nanos` nanoseconds, rounded down and saturating: the
    /// bandwidth-delay product when `nanos` is a round-trip time.
    pub fn bytes_in(self, nanos: u64) -> u64 {
        let bits = u128::from(self.bits_per_sec()) * u128::from(nanos) / 1_000_000_000;
        u64::try_from(bits / 8).unwrap_or(u64::MAX)
    }
}

impl FromStr for Rate {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Rate, UnitError> {
        let Some((number, unit)) = Decimal::split(text) else {
            return Err(UnitError::Malformed {
                quantity: QUANTITY,
                text: text.into(),
                example: "10Mbit/s or 1.5Gb/s",
            });
        };
        let Some(bits_per_unit) = bits_per_unit(unit) else {
            return Err(UnitError::Unit {
                quantity: QUANTITY,
                text: text.into(),
                units: "bit/s, kbit/s, Mbit/s, Gbit/s, Tbit/s (also b/s, bps, and B/s for bytes)",
            });
        };
        number.scaled(bits_per_unit).and_then(Rate::from_bits_per_sec).ok_or(
            UnitError::OutOfRange {
                quantity: QUANTITY,
                text: text.into(),
                range: "at least 1bit/s (for a link without a rate limit, leave the rate out)",
            },
        )
    }
}

/// Bits per second in one `unit`, such as 1,000,000 for "Mbit/s".
fn bits_per_unit(unit: &str) -> Option<u64> {
    let (prefix, bits) = ["bit/s", "bits/s", "bit", "b/s", "bps"]
        .iter()
        .find_map(|name| unit.strip_suffix(name).map(|prefix| (prefix, 1)))
        .or_else(|| unit.strip_suffix("B/s").map(|prefix| (prefix, 8)))?;
    let factor = match prefix {
        "" => 1,
        "k" | "K" => 1_000,
        "M" => 1_000_000,
        "G" => 1_000_000_000,
        "T" => 1_000_000_000_000,
        "Ki" => 1 << 10,
        "Mi" => 1 << 20,
        "Gi" => 1 << 30,
        "Ti" => 1 << 40,
        _ => return None,
    };
    Some(factor * bits)
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = self.bits_per_sec();
        let (divisor, unit) = [(1_000_000_000, "Gbit/s"), (1_000_000, "Mbit/s"), (1_000, "kbit/s")]
            .into_iter()
            .find(|(divisor, _)| bits.is_multiple_of(*divisor))
            .unwrap_or((1, "bit/s"));
        write!(f, "{}{unit}", bits / divisor)
    }
}

serde_as_text!(Rate, "a rate such as \"10Mbit/s\"");
