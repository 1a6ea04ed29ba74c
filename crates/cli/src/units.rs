//! Sizes, rates and durations as people write and read them.

use std::fmt;
use std::time::Duration;

/// Parses a number of bytes: `1500`, `64K`, `10MB`, `2GiB`. Letters mean powers of 1024, as for most tools that move
/// files, whether or not an `iB` or `B` follows.
pub(crate) fn parse_bytes(text: &str) -> Result<u64, String> {
    let wrong = || format!("`{text}` is not a size: write a number of bytes, 64K, 10M, 2G or 1T");
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit = unit.trim().to_ascii_lowercase();
    let unit = unit.strip_suffix("ib").or_else(|| unit.strip_suffix('b')).unwrap_or(&unit);
    let shift = match unit {
        "" => 0,
        "k" => 10,
        "m" => 20,
        "g" => 30,
        "t" => 40,
        _ => return Err(wrong()),
    };
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(1 << shift).ok_or_else(wrong);
    }
    let number: f64 = number.parse().map_err(|_| wrong())?;
    let bytes = number * (1u64 << shift) as f64;
    // Beyond 2^53 a fraction could not have been meant.
    if bytes.fract() == 0.0 && bytes < 9e15 { Ok(bytes as u64) } else { Err(wrong()) }
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
            ("10MB", 10 << 20),
            ("1.5k", 1536),
            ("2g", 2 << 30),
            ("1T", 1 << 40),
        ] {
            assert_eq!(parse_bytes(text), Ok(bytes), "{text}");
        }
        for text in ["", "K", "1X", "-1", "1.0001K", "99999999999T", "1e3", "0x10", "."] {
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
