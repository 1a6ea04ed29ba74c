//! Quantities of a scenario that the simulator has no type for: times, sizes, counts and numbers.
//!
//! Like those in [`transom_sim::units`], each holds an integer, is written as a text with its unit, and prints as a text that
//! parses back to the same value. A number without a unit where one is needed is an error and never a guess.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;
use transom_sim::units::{DurationText, Limit, UnitError, parse_duration};
use transom_tcp::quantity::{Decimal, parse_size};
use transom_tcp::time::Duration;

/// A span of time, such as "20ms".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time(pub Duration);

impl FromStr for Time {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        parse_duration(text).map(Time)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        DurationText(self.0).fmt(f)
    }
}

/// A number of bytes, such as "64KiB", "1MB" or "1500 bytes".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(pub u64);

impl FromStr for Size {
    type Err = UnitError;

    /// A number alone is no size: bytes of what it counts have to be said.
    fn from_str(text: &str) -> Result<Self, UnitError> {
        const QUANTITY: &str = "size";
        const UNITS: &str = "bytes, kB, MB, GB, KiB, MiB, GiB";
        let bare = Decimal::split(text).is_some_and(|(_, unit)| unit.is_empty());
        match parse_size(text) {
            Ok(bytes) if !bare => Ok(Size(bytes)),
            Ok(_) | Err(UnitError::Unit { .. }) => {
                Err(UnitError::Unit { quantity: QUANTITY, text: text.into(), units: UNITS })
            }
            Err(UnitError::Malformed { .. }) => Err(UnitError::Malformed {
                quantity: QUANTITY,
                text: text.into(),
                example: "64KiB or 1MB",
            }),
            Err(UnitError::OutOfRange { .. }) => Err(UnitError::OutOfRange {
                quantity: QUANTITY,
                text: text.into(),
                range: "a whole number of bytes below 2^64",
            }),
            Err(other) => Err(other),
        }
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Limit::Bytes(self.0).fmt(f)
    }
}

/// A number without a unit, such as 0.95: nine decimal places, nothing below zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Number {
    /// The number times 10^9.
    pub billionths: u64,
}

impl Number {
    const ONE: u64 = 1_000_000_000;
}

impl FromStr for Number {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        const QUANTITY: &str = "number";
        let malformed =
            || UnitError::Malformed { quantity: QUANTITY, text: text.into(), example: "0.95" };
        let out_of_range = || UnitError::OutOfRange {
            quantity: QUANTITY,
            text: text.into(),
            range: "from 0 to 18446744073 with at most nine decimal places",
        };
        let trimmed = text.trim();
        let (whole, fraction) = trimmed.split_once('.').unwrap_or((trimmed, ""));
        let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || !digits(whole) || !digits(fraction) {
            return Err(malformed());
        }
        let fraction = fraction.trim_end_matches('0');
        if fraction.len() > 9 {
            return Err(out_of_range());
        }
        let fraction: u64 = format!("{fraction:0<9}").parse().map_err(|_| malformed())?;
        let whole: u64 = whole.parse().map_err(|_| out_of_range())?;
        let billionths = whole.checked_mul(Self::ONE).and_then(|n| n.checked_add(fraction));
        billionths.map(|billionths| Number { billionths }).ok_or_else(out_of_range)
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, fraction) = (self.billionths / Self::ONE, self.billionths % Self::ONE);
        if fraction == 0 {
            return write!(f, "{whole}");
        }
        write!(f, "{whole}.{}", format!("{fraction:09}").trim_end_matches('0'))
    }
}

/// How many there are of something: a whole number above zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Count(NonZeroU32);

impl Count {
    /// One.
    pub(crate) const ONE: Count = Count(NonZeroU32::MIN);

    /// The count of `number`; `None` for zero.
    pub(crate) const fn new(number: u32) -> Option<Count> {
        match NonZeroU32::new(number) {
            Some(number) => Some(Count(number)),
            None => None,
        }
    }

    /// The number.
    pub(crate) const fn get(self) -> u32 {
        self.0.get()
    }
}

impl Serialize for Count {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u32(self.get())
    }
}

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Whole;
        impl de::Visitor<'_> for Whole {
            type Value = Count;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a whole number above zero")
            }
            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Count, E> {
                u32::try_from(number)
                    .ok()
                    .and_then(Count::new)
                    .ok_or_else(|| E::invalid_value(de::Unexpected::Signed(number), &self))
            }
            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Count, E> {
                self.visit_i64(i64::try_from(number).unwrap_or(i64::MAX))
            }
        }
        deserializer.deserialize_u32(Whole)
    }
}

pub(super) use transom_sim::serde_as_text;

serde_as_text!(Time, "a time such as \"20ms\"");
serde_as_text!(Size, "a size such as \"64KiB\"");
serde_as_text!(Number, "a number such as 0.95", number);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        for (text, bytes) in [("1MB", 1_000_000), ("64KiB", 65_536), ("1500 bytes", 1500)] {
            assert_eq!(text.parse(), Ok(Size(bytes)));
        }
        let error = |text: &str| text.parse::<Size>().unwrap_err().to_string();
        assert_eq!(
            error("100 packets"),
            "`100 packets` needs a unit to be a size: one of bytes, kB, MB, GB, KiB, MiB, GiB"
        );
        assert!(error("unlimited").contains("size"));
        assert_eq!(error("big"), "`big` is not a size: write it like 64KiB or 1MB");
        assert!(error("1e30GB").contains("out of range for a size"));
    }

    #[test]
    fn numbers_are_exact() {
        for (text, billionths, printed) in [
            ("0.95", 950_000_000, "0.95"),
            ("1", 1_000_000_000, "1"),
            ("2.50", 2_500_000_000, "2.5"),
            ("0.000000001", 1, "0.000000001"),
            ("18446744073.709551615", u64::MAX, "18446744073.709551615"),
        ] {
            let number: Number = text.parse().unwrap();
            assert_eq!((number.billionths, number.to_string()), (billionths, printed.into()));
        }
        for text in ["", ".5", "-1", "1e3", "0.0000000001", "18446744074", "nan", "1.2.3"] {
            assert!(text.parse::<Number>().is_err(), "{text}");
        }
    }
}
