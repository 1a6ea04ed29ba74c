//! Durations as text: "20ms", "1.5 s", "250us".

use core::fmt;

use crate::time::Duration;

use super::{Decimal, UnitError};

const UNITS: [(&str, u64); 5] =
    [("min", 60_000_000_000), ("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("ns", 1)];

/// Reads a duration: a number and one of `ns`, `us` (or `µs`), `ms`, `s`, `min`. A bare `0` needs no unit.
///
/// # Errors
/// [`UnitError`] if there is no number, no known unit, or if the value exceeds 584 years or is below half
/// a nanosecond without being zero.
pub fn parse_duration(text: &str) -> Result<Duration, UnitError> {
    const QUANTITY: &str = "duration";
    let Some((number, unit)) = Decimal::split(text) else {
        return Err(UnitError::Malformed {
            quantity: QUANTITY,
            text: text.into(),
            example: "20ms or 1.5s",
        });
    };
    let nanos_per_unit = match unit {
        "" if number.is_zero() => 1,
        "sec" => 1_000_000_000,
        // Both the micro sign (U+00B5) and the Greek letter (U+03BC) are in use.
        "\u{b5}s" | "\u{3bc}s" => 1_000,
        _ => match UNITS.iter().find(|(name, _)| *name == unit) {
            Some((_, nanos)) => *nanos,
            None => {
                return Err(UnitError::Unit {
                    quantity: QUANTITY,
                    text: text.into(),
                    units: "ns, us, ms, s, min",
                });
            }
        },
    };
    match number.scaled(nanos_per_unit) {
        Some(nanos) => Ok(Duration::from_nanos(nanos)),
        None => Err(UnitError::OutOfRange {
            quantity: QUANTITY,
            text: text.into(),
            range: "zero, or from 1ns to 584 years",
        }),
    }
}

/// Shows a duration in the largest unit that divides it: the inverse of [`parse_duration`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DurationText(pub Duration);

impl fmt::Display for DurationText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0.as_nanos();
        match UNITS.iter().skip(1).find(|(_, unit)| nanos.is_multiple_of(*unit)) {
            Some(_) if nanos == 0 => f.write_str("0ms"),
            Some((name, unit)) => write!(f, "{}{name}", nanos / unit),
            None => write!(f, "{nanos}ns"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::string::ToString;

    use super::*;

    #[test]
    fn texts() {
        let read = |text: &str| parse_duration(text).ok();
        assert_eq!(read("1.5ms"), Some(Duration::from_micros(1500)));
        assert_eq!(read("0"), Some(Duration::ZERO));
        for text in ["5", "ms", "1.5", "0.1ns", "1000000min1", "99999999999999999999s"] {
            assert_eq!(read(text), None, "{text}");
        }
        for nanos in [1, 1_500, 20_000_000, 3_000_000_000, 61_000_000_001, 0] {
            let span = Duration::from_nanos(nanos);
            assert_eq!(read(&DurationText(span).to_string()), Some(span));
        }
    }
}
