//! Rates as text: "10Mbit/s", "1.5 Gb/s", "1.25MB/s".

use super::{Decimal, UnitError};
use core::fmt;
use core::num::NonZeroU64;
use core::str::FromStr;

const QUANTITY: &str = "rate";

/// A rate in bits per second, as text.
///
/// Written "10Mbit/s", "1.5 Gb/s", "64kbps", or in bytes "1.25MB/s" (a capital B is a byte, eight bits).
/// Prefixes are decimal (k, M, G, T) unless they have an i (Ki, Mi, Gi, Ti). It is shown in the largest unit of which it is a whole number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateText(pub NonZeroU64);

impl FromStr for RateText {
    type Err = UnitError;

    /// Fails if there is no number, no known unit, or a rate at which nothing would ever arrive.
    fn from_str(text: &str) -> Result<Self, UnitError> {
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
        let rate = number.scaled(bits_per_unit).and_then(NonZeroU64::new);
        rate.map(RateText).ok_or(UnitError::OutOfRange {
            quantity: QUANTITY,
            text: text.into(),
            range: "at least 1bit/s (for a link without a rate limit, leave the rate out)",
        })
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

impl fmt::Display for RateText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = self.0.get();
        let (divisor, unit) = [(1_000_000_000, "Gbit/s"), (1_000_000, "Mbit/s"), (1_000, "kbit/s")]
            .into_iter()
            .find(|(divisor, _)| bits.is_multiple_of(*divisor))
            .unwrap_or((1, "bit/s"));
        write!(f, "{}{unit}", bits / divisor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn texts() {
        let read = |text: &str| text.parse().ok().map(|RateText(rate)| rate.get());
        assert_eq!(read("10Mbit/s"), Some(10_000_000));
        assert_eq!(read("1.5 Gb/s"), Some(1_500_000_000));
        assert_eq!(read("1.25MB/s"), Some(10_000_000));
        assert_eq!(read("1Kibit/s"), Some(1024));
        for text in ["", "fast", "10", "0bit/s", "10MB"] {
            assert_eq!(read(text), None, "{text}");
        }
        for text in ["10Mbit/s", "1500kbit/s", "1Gbit/s", "7bit/s"] {
            assert_eq!(text.parse::<RateText>().map(|rate| rate.to_string()).as_deref(), Ok(text));
        }
    }
}
