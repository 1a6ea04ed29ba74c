//! The small syntax of parameters: `name(first, second=value)`, and the quantities in them.

use alloc::vec::Vec;
use core::fmt;
use core::num::NonZeroU64;

use crate::quantity::Decimal;
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

/// A number without a unit, with up to six decimals.
pub(crate) fn gain(text: &str) -> Option<Gain> {
    let (number, unit) = Decimal::split(text)?;
    let millionths = u32::try_from(number.scaled(1_000_000)?).ok()?;
    unit.is_empty().then(|| Gain::from_millionths(millionths))
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

const RATES: [(&str, u64); 4] =
    [("Gbit/s", 1_000_000_000), ("Mbit/s", 1_000_000), ("kbit/s", 1_000), ("bit/s", 1)];

/// A rate in bits per second, above zero, from text such as "10Mbit/s"; `None` if it is none.
pub fn rate(text: &str) -> Option<NonZeroU64> {
    let (number, unit) = Decimal::split(text)?;
    let (_, factor) = RATES.iter().find(|(name, _)| *name == unit)?;
    NonZeroU64::new(number.scaled(*factor)?)
}

/// Writes a rate in the largest unit of which it is a whole number.
pub(crate) struct RateText(pub(crate) NonZeroU64);

impl fmt::Display for RateText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rate = self.0.get();
        let (name, factor) =
            RATES.iter().find(|(_, factor)| rate.is_multiple_of(*factor)).unwrap_or(&("bit/s", 1));
        write!(f, "{}{name}", rate / factor)
    }
}

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
    fn lengths() {
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
