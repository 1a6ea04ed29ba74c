//! The small syntax of parameters: `name(first, second=value)`, and the quantities in them.

use alloc::vec::Vec;
use core::fmt;
use core::num::NonZeroU64;

use crate::quantity::{self, Decimal, parse_rate, parse_size};
use crate::queue::{Gain, Limit};

/// Splits `name(a, b)`, or `name` alone, into the name and its trimmed arguments.
pub(crate) fn call(text: &str) -> Option<(&str, Vec<&str>)> {
    let (name, inside) = quantity::call(text)?;
    Some((name, inside.map_or_else(Vec::new, quantity::list)))
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

/// A rate in bits per second, above zero, from text such as "10Mbit/s"; `None` if it is none.
pub fn rate(text: &str) -> Option<NonZeroU64> {
    parse_rate(text).ok()
}

/// How much a queue holds: "100 packets", "64KiB", "unlimited".
pub(crate) fn limit(text: &str) -> Option<Limit> {
    if text.trim() == "unlimited" {
        return Some(Limit::Unlimited);
    }
    match Decimal::split(text)? {
        (number, "packet" | "packets" | "p") => number.scaled(1).map(Limit::Packets),
        // Of what, has to be said.
        (_, "") => None,
        (number, "byte") => number.scaled(1).map(Limit::Bytes),
        _ => parse_size(text).ok().map(Limit::Bytes),
    }
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
