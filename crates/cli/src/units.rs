//! Sizes, rates and durations as people write and read them.

use std::fmt;
use std::time::Duration;
use transom_tcp::quantity::{Decimal, parse_size};

/// Parses a number of bytes: `1500`, `10MB` (ten million), `2GiB`. A letter alone means a power of 1024, as for most tools that move files: `64K`.
pub(crate) fn parse_bytes(text: &str) -> Result<u64, String> {
    let letter = text.trim().strip_suffix(|c: char| "kKmMgGtT".contains(c));
    let binary = letter.filter(|rest| rest.ends_with(|c: char| c.is_ascii_digit() || c == ' '));
    let Some(number) = binary else {
        return parse_size(text).map_err(|error| error.to_string());
    };
    let shift = match text.trim().to_ascii_lowercase().chars().last() {
        Some('k') => 10,
        Some('m') => 20,
        Some('g') => 30,
        _ => 40,
    };
    let whole = Decimal::split(number).filter(|(_, rest)| rest.is_empty());
    whole.and_then(|(number, _)| number.scaled(1 << shift)).ok_or_else(|| {
        format!("`{text}` is not a size: write a number of bytes, 10MB, 64KiB, or 64K, 10M, 2G, 1T")
    })
}

/// Parses a duration above zero: `10` (seconds), `1.5s`, `200ms`.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    let with_unit =
        if text.ends_with(|c: char| c.is_ascii_digit()) { format!("{text}s") } else { text.into() };
    let duration: Duration =
        transom_sim::units::parse_duration(&with_unit).map_err(|error| error.to_string())?.into();
    if duration.is_zero() { Err("it must be above zero".into()) } else { Ok(duration) }
}

/// Writes `value`, which is in the first of `units`, in the one that suits it; each is `step` times the one before.
fn scaled(
    f: &mut fmt::Formatter<'_>,
    mut value: f64,
    step: f64,
    units: &[&'static str],
) -> fmt::Result {
    let mut units = units.iter();
    let mut unit = units.next().copied().unwrap_or_default();
    for &larger in units {
        // A value that would be printed as 1024.00, if that is the step, is printed as 1.00 of the next unit.
        if value < step - 0.005 {
            break;
        }
        value /= step;
        unit = larger;
    }
    write!(f, "{value:.2} {unit}")
}

/// A number of bytes with a binary prefix.
pub(crate) struct Bytes(pub(crate) u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 < 1024 {
            return write!(f, "{} B", self.0);
        }
        scaled(f, self.0 as f64, 1024.0, &["B", "KiB", "MiB", "GiB", "TiB", "PiB"])
    }
}

/// Bits per second with a decimal prefix.
pub(crate) struct BitRate(pub(crate) f64);

impl BitRate {
    /// The rate at which `bytes` in `span` went; zero for no time at all.
    pub(crate) fn of(bytes: u64, span: Duration) -> Self {
        let seconds = span.as_secs_f64();
        BitRate(if seconds > 0.0 { bytes as f64 * 8.0 / seconds } else { 0.0 })
    }
}

impl fmt::Display for BitRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        scaled(f, self.0, 1000.0, &["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"])
    }
}

/// A number of things: "1 run", "2 runs".
pub(crate) fn counted(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read() {
        for (text, bytes) in [
            ("0", 0),
            ("1500", 1500),
            ("64K", 65_536),
            ("64 KiB", 65_536),
            ("10MB", 10_000_000),
            ("10MiB", 10 << 20),
            ("10M", 10 << 20),
            ("1.5k", 1536),
            ("2g", 2 << 30),
            ("1T", 1 << 40),
        ] {
            assert_eq!(parse_bytes(text), Ok(bytes), "{text}");
        }
        for text in ["", "K", "1X", "-1", "99999999999T", "0x10", "."] {
            assert!(parse_bytes(text).is_err(), "{text}");
        }
    }

    #[test]
    fn durations_are_read() {
        assert_eq!(parse_duration("10"), Ok(Duration::from_secs(10)));
        assert_eq!(parse_duration("200ms"), Ok(Duration::from_millis(200)));
        assert_eq!(parse_duration("1.5s"), Ok(Duration::from_millis(1500)));
        for text in ["", "0", "0ms", "-1", "ten", "1 year"] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn numbers_are_shown_with_prefixes() {
        for (bytes, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.00 KiB"),
            (64 << 20, "64.00 MiB"),
            ((1 << 20) - 1, "1.00 MiB"),
            (3 << 40, "3.00 TiB"),
        ] {
            assert_eq!(Bytes(bytes).to_string(), text);
        }
        assert_eq!(BitRate(0.0).to_string(), "0.00 bit/s");
        assert_eq!(BitRate(38.5e9).to_string(), "38.50 Gbit/s");
        assert_eq!(BitRate(999_999.0).to_string(), "1.00 Mbit/s");
        let rate = BitRate::of(1_250_000, Duration::from_secs(1));
        assert_eq!(rate.to_string(), "10.00 Mbit/s");
        assert_eq!(BitRate::of(1, Duration::ZERO).to_string(), "0.00 bit/s");
    }
}
