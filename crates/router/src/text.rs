//! The small syntax of parameters: `name(first, second=value)`, and quantities with their units.
//!
//! Decimal digits are scaled with integer arithmetic, so "0.1%" is the same number on every machine.

use alloc::vec::Vec;
use core::fmt;

use transom_tcp::time::Duration;

use crate::probability::Probability;
use crate::queue::{Gain, Limit};

/// Splits `name(a, b)`, or `name` alone, into the name and its trimmed arguments.
pub(crate) fn call(text: &str) -> Option<(&str, Vec<&str>)> {
    let text = text.trim();
    let Some((name, rest)) = text.split_once('(') else {
        return Some((text, Vec::new()));
    };
    let arguments = rest.strip_suffix(')')?;
    if arguments.trim().is_empty() {
        return Some((name.trim(), Vec::new()));
    }
    Some((name.trim(), arguments.split(',').map(str::trim).collect()))
}

/// `mantissa × 10^exponent`, exactly as written.
#[derive(Clone, Copy)]
struct Decimal {
    mantissa: u64,
    exponent: i32,
}

impl Decimal {
    /// Splits `text` into a leading unsigned number and the trimmed rest, its unit. `None` if there is no number, or
    /// one of more digits than 64 bits hold.
    fn split(text: &str) -> Option<(Decimal, &str)> {
        let text = text.trim();
        let mut decimal = Decimal { mantissa: 0, exponent: 0 };
        let (mut digits, mut fraction) = (0, false);
        let mut end = text.len();
        for (at, c) in text.char_indices() {
            match c.to_digit(10) {
                Some(digit) => {
                    decimal.mantissa =
                        decimal.mantissa.checked_mul(10)?.checked_add(u64::from(digit))?;
                    decimal.exponent -= i32::from(fraction);
                    digits += 1;
                }
                None if c == '.' && !fraction => fraction = true,
                None => {
                    end = at;
                    break;
                }
            }
        }
        let mut unit = text.get(end..)?;
        if let Some((exponent, rest)) = power(unit) {
            decimal.exponent = decimal.exponent.checked_add(exponent)?;
            unit = rest;
        }
        (digits > 0).then_some((decimal, unit.trim()))
    }

    /// Times `factor`, to the nearest integer. `None` if that does not fit, or is zero and the number is not.
    fn scaled(self, factor: u64) -> Option<u64> {
        let product = u128::from(self.mantissa) * u128::from(factor);
        if product == 0 {
            return Some(0);
        }
        let power = 10u128.checked_pow(self.exponent.unsigned_abs())?;
        let scaled = if self.exponent >= 0 {
            product.checked_mul(power)?
        } else {
            product / power + u128::from(product % power >= power.div_ceil(2))
        };
        u64::try_from(scaled).ok().filter(|scaled| *scaled > 0)
    }
}

/// Splits "e-5 rest" into -5 and " rest".
fn power(text: &str) -> Option<(i32, &str)> {
    let after = text.strip_prefix(['e', 'E'])?;
    let unsigned = after.strip_prefix(['-', '+']).unwrap_or(after);
    let end = unsigned.find(|c: char| !c.is_ascii_digit()).unwrap_or(unsigned.len());
    let value: i32 = unsigned.get(..end)?.parse().ok()?;
    Some((if after.starts_with('-') { -value } else { value }, unsigned.get(end..)?))
}

/// A probability: "1/50", "2%", "0.02".
pub(crate) fn probability(text: &str) -> Option<Probability> {
    if let Some((numerator, denominator)) = text.split_once('/') {
        let numerator: u64 = numerator.trim().parse().ok()?;
        let denominator: u64 = denominator.trim().parse().ok()?;
        let possible = denominator > 0 && numerator <= denominator;
        return possible.then(|| Probability::ratio(numerator, denominator));
    }
    let (mut number, unit) = Decimal::split(text)?;
    match unit {
        "" => {}
        "%" => number.exponent = number.exponent.checked_sub(2)?,
        _ => return None,
    }
    let parts = number.scaled(Probability::PARTS)?;
    (parts <= Probability::PARTS).then(|| Probability::from_parts(parts))
}

/// A number without a unit, with up to six decimals.
pub(crate) fn gain(text: &str) -> Option<Gain> {
    let (number, unit) = Decimal::split(text)?;
    let millionths = u32::try_from(number.scaled(1_000_000)?).ok()?;
    unit.is_empty().then(|| Gain::from_millionths(millionths))
}

const DURATIONS: [(&str, u64); 5] =
    [("min", 60_000_000_000), ("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("ns", 1)];

/// A duration: "20ms", "1.5s", "0".
pub(crate) fn duration(text: &str) -> Option<Duration> {
    let (number, unit) = Decimal::split(text)?;
    let nanos = match unit {
        "" if number.mantissa == 0 => 1,
        // Both the micro sign (U+00B5) and the Greek letter (U+03BC) are in use.
        "\u{b5}s" | "\u{3bc}s" => 1_000,
        _ => DURATIONS.iter().find(|(name, _)| *name == unit)?.1,
    };
    number.scaled(nanos).map(Duration::from_nanos)
}

/// Shows a duration in the largest unit that divides it.
pub(crate) struct DurationText(pub(crate) Duration);

impl fmt::Display for DurationText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0.as_nanos();
        match DURATIONS.iter().skip(1).find(|(_, unit)| nanos.is_multiple_of(*unit)) {
            Some((name, unit)) if nanos > 0 => write!(f, "{}{name}", nanos / unit),
            _ => write!(f, "{nanos}ms"),
        }
    }
}

const BYTES: [(&str, u64); 7] = [
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("kB", 1_000),
    ("B", 1),
];

/// How much a queue holds: "100 packets", "64KiB", "unlimited".
pub(crate) fn limit(text: &str) -> Option<Limit> {
    if text.trim() == "unlimited" {
        return Some(Limit::Unlimited);
    }
    let (number, unit) = Decimal::split(text)?;
    let (of, factor): (fn(u64) -> Limit, u64) = match unit {
        "packet" | "packets" | "p" => (Limit::Packets, 1),
        "byte" | "bytes" => (Limit::Bytes, 1),
        _ => (Limit::Bytes, BYTES.iter().find(|(name, _)| *name == unit)?.1),
    };
    number.scaled(factor).map(of)
}

/// A length in bytes that fits 32 bits: "1500", "1500B", "64KiB".
pub(crate) fn length(text: &str) -> Option<u32> {
    if let Ok(bare) = text.trim().parse() {
        return Some(bare);
    }
    match limit(text)? {
        Limit::Bytes(bytes) => u32::try_from(bytes).ok(),
        _ => None,
    }
}

impl fmt::Display for Limit {
    /// "100 packets", "64KiB" or "unlimited".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Limit::Packets(1) => f.write_str("1 packet"),
            Limit::Packets(packets) => write!(f, "{packets} packets"),
            Limit::Bytes(bytes) => {
                let whole = |(_, unit): &&(&str, u64)| bytes > 0 && bytes.is_multiple_of(*unit);
                let (name, unit) = BYTES.iter().find(whole).unwrap_or(&("B", 1));
                write!(f, "{}{name}", bytes / unit)
            }
            Limit::Unlimited => f.write_str("unlimited"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::string::ToString;

    use super::*;

    #[test]
    fn calls() {
        assert_eq!(call(" red ( a=1 , b ) "), Some(("red", Vec::from(["a=1", "b"]))));
        assert_eq!(call("red"), Some(("red", Vec::new())));
        assert_eq!(call("red()"), Some(("red", Vec::new())));
        assert_eq!(call("red(a"), None);
    }

    #[test]
    fn probabilities() {
        let fiftieth = Some(Probability::ratio(1, 50));
        for text in ["1/50", "2%", "0.02", " 2e-2 ", "2 %"] {
            assert_eq!(probability(text), fiftieth, "{text}");
        }
        assert_eq!(probability("1"), Some(Probability::ONE));
        assert_eq!(probability("0%"), Some(Probability::ZERO));
        for text in ["", "x", "1.1", "101%", "1/0", "3/2", "-1", "1e-30", "0.5p", "1e999999999999"]
        {
            assert_eq!(probability(text), None, "{text}");
        }
    }

    #[test]
    fn durations_and_lengths() {
        assert_eq!(duration("1.5ms"), Some(Duration::from_micros(1500)));
        assert_eq!(duration("0"), Some(Duration::ZERO));
        for text in ["5", "ms", "1.5", "0.1ns", "1000000min1", "99999999999999999999s"] {
            assert_eq!(duration(text), None, "{text}");
        }
        for nanos in [1, 1_500, 20_000_000, 3_000_000_000, 61_000_000_001, 0] {
            let span = Duration::from_nanos(nanos);
            assert_eq!(duration(&DurationText(span).to_string()), Some(span));
        }
        assert_eq!(
            (length("1500"), length("1500B"), length("9kB")),
            (Some(1500), Some(1500), Some(9000))
        );
        assert_eq!((length("3 packets"), length("5GB"), length("unlimited")), (None, None, None));
    }

    #[test]
    fn limits() {
        for (text, expected) in [
            ("1 packet", Limit::Packets(1)),
            ("100 packets", Limit::Packets(100)),
            ("64KiB", Limit::Bytes(65_536)),
            ("100kB", Limit::Bytes(100_000)),
            ("1501B", Limit::Bytes(1501)),
            ("0B", Limit::Bytes(0)),
            ("unlimited", Limit::Unlimited),
        ] {
            assert_eq!(limit(text), Some(expected));
            assert_eq!(expected.to_string(), text);
        }
        for text in ["100", "packets", "-1 packets", "5 bits", "0.4 packets"] {
            assert_eq!(limit(text), None, "{text}");
        }
    }
}
