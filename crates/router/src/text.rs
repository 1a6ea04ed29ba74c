//! The small syntax of parameters: `name(first, second=value)`, and the quantities in them.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

use transom_base::arguments::Fraction;

use crate::quantity::{self, Decimal, UnitError, parse_size};
use crate::queue::Limit;

/// Splits `name(a, b)`, or `name` alone, into the name and its trimmed arguments.
pub(crate) fn call(text: &str) -> Option<(&str, Vec<&str>)> {
    let (name, inside) = quantity::call(text)?;
    Some((name, inside.map_or_else(Vec::new, quantity::list)))
}

/// A number without a unit, with up to six decimals, of at most 32 bits in millionths.
pub(crate) fn gain(text: &str) -> Option<Fraction> {
    let (number, unit) = Decimal::split(text)?;
    let millionths = u32::try_from(number.scaled(1_000_000)?).ok()?;
    unit.is_empty().then(|| Fraction::from_millionths(millionths.into()))
}

/// A length in bytes that fits 32 bits: "1500", "1500B", "64KiB".
pub(crate) fn length(text: &str) -> Option<u32> {
    if let Ok(bare) = text.trim().parse() {
        return Some(bare);
    }
    match text.parse().ok()? {
        Limit::Bytes(bytes) => u32::try_from(bytes).ok(),
        _ => None,
    }
}

impl FromStr for Limit {
    type Err = UnitError;

    /// "100 packets", "64KiB", "1500 bytes" or "unlimited".
    fn from_str(text: &str) -> Result<Limit, UnitError> {
        const QUANTITY: &str = "queue limit";
        if text.trim() == "unlimited" {
            return Ok(Limit::Unlimited);
        }
        let Some((number, unit)) = Decimal::split(text) else {
            return Err(UnitError::Malformed {
                quantity: QUANTITY,
                text: text.into(),
                example: "100 packets, 64KiB or unlimited",
            });
        };
        let no_unit = || UnitError::Unit {
            quantity: QUANTITY,
            text: text.into(),
            units: "packets, bytes, kB, MB, GB, KiB, MiB, GiB",
        };
        let amount = match unit {
            "packet" | "packets" | "p" => number.scaled(1).map(Limit::Packets),
            "byte" => number.scaled(1).map(Limit::Bytes),
            // Of what, has to be said.
            "" => return Err(no_unit()),
            _ => match parse_size(text) {
                Ok(bytes) => Some(Limit::Bytes(bytes)),
                Err(UnitError::Unit { .. }) => return Err(no_unit()),
                Err(_) => None,
            },
        };
        amount.ok_or_else(|| UnitError::OutOfRange {
            quantity: QUANTITY,
            text: text.into(),
            range: "a whole number of packets or bytes below 2^64",
        })
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Limit::Packets(1) => f.write_str("1 packet"),
            Limit::Packets(packets) => write!(f, "{packets} packets"),
            Limit::Bytes(bytes) => {
                let (number, unit) = whole(bytes, |unit| !matches!(unit, "GB" | "MB"));
                write!(f, "{number}{unit}")
            }
            Limit::Unlimited => f.write_str("unlimited"),
        }
    }
}

/// Units of bytes. The first that leaves a whole number is written.
const BYTES: [(&str, u64); 7] = [
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("kB", 1_000),
    ("B", 1),
];

/// A limit as parameters have it, with the largest unit. [`Limit`] by itself is never written in MB or GB: its text is part of what names stored runs.
pub(crate) fn limit(limit: Limit) -> String {
    let Limit::Bytes(bytes) = limit else { return limit.to_string() };
    let (number, unit) = whole(bytes, |_| true);
    format!("{number}{unit}")
}

/// The first of these units that leaves a whole number of bytes, with that number.
fn whole(bytes: u64, units: impl Fn(&str) -> bool) -> (u64, &'static str) {
    let fits =
        |(name, unit): &&(&str, u64)| bytes > 0 && bytes.is_multiple_of(*unit) && units(name);
    let (name, unit) = BYTES.iter().find(fits).unwrap_or(&("B", 1));
    (bytes / unit, name)
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
    fn gains_as_text() {
        for (millionths, text) in
            [(125_000, "0.125"), (1_250_000, "1.25"), (2_000_000, "2"), (1, "0.000001"), (0, "0")]
        {
            assert_eq!(gain(text), Some(Fraction::from_millionths(millionths)));
            assert_eq!(Fraction::from_millionths(millionths).to_string(), text);
        }
    }

    #[test]
    fn limits_of_parameters_have_the_largest_unit() {
        for text in
            ["1MB", "3GB", "2MiB", "1GiB", "1500kB", "1501B", "0B", "7 packets", "unlimited"]
        {
            assert_eq!(limit(text.parse().unwrap()), text);
        }
        assert_eq!(Limit::Bytes(1_000_000).to_string(), "1000kB");
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
            assert_eq!(text.parse(), Ok(expected));
            assert_eq!(expected.to_string(), text);
        }
        for text in ["100", "packets", "-1 packets", "5 bits", "0.4 packets"] {
            assert!(text.parse::<Limit>().is_err(), "{text}");
        }
    }
}
