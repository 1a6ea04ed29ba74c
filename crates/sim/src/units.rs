//! Quantities as people write them: "10Mbit/s", "20ms", "64KiB", "0.5%".
//!
//! Each quantity is a type that holds an integer. It is parsed from text once, and its text parses back
//! to the same value. An error for wrong text says what to write instead. Decimal digits are scaled
//! with integer arithmetic, so "0.1%" is the same number on every machine.

pub(crate) mod duration_text;
pub(crate) mod probability_text;
mod rate;

use core::fmt;

use serde::de::{self, Deserializer, Unexpected, Visitor};

pub use rate::Rate;
pub use transom_router::Probability;
pub use transom_router::quantity::{DurationText, UnitError, parse_duration};
pub use transom_router::queue::Limit;

pub(crate) use transom_router::quantity::Decimal;

/// Reads a text, or with `numbers` also a number: through its shortest decimal form, so that 0.005 means "0.005".
///
/// # Errors
/// Those of `parse`; or something else is there than what is `expecting`.
#[doc(hidden)]
pub fn deserialize_text<'de, D: Deserializer<'de>, T, E: fmt::Display>(
    deserializer: D,
    expecting: &'static str,
    numbers: bool,
    parse: fn(&str) -> Result<T, E>,
) -> Result<T, D::Error> {
    let text = Text { expecting, numbers, parse };
    match numbers {
        true => deserializer.deserialize_any(text),
        false => deserializer.deserialize_str(text),
    }
}

struct Text<T, E> {
    expecting: &'static str,
    numbers: bool,
    parse: fn(&str) -> Result<T, E>,
}

impl<T, E: fmt::Display> Text<T, E> {
    fn number<D: de::Error>(self, number: impl ToString, found: Unexpected<'_>) -> Result<T, D> {
        match self.numbers {
            true => self.visit_str(&number.to_string()),
            false => Err(D::invalid_type(found, &self)),
        }
    }
}

impl<T, E: fmt::Display> Visitor<'_> for Text<T, E> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expecting)
    }

    fn visit_str<D: de::Error>(self, text: &str) -> Result<T, D> {
        (self.parse)(text).map_err(D::custom)
    }

    fn visit_f64<D: de::Error>(self, number: f64) -> Result<T, D> {
        self.number(number, Unexpected::Float(number))
    }

    fn visit_i64<D: de::Error>(self, number: i64) -> Result<T, D> {
        self.number(number, Unexpected::Signed(number))
    }

    fn visit_u64<D: de::Error>(self, number: u64) -> Result<T, D> {
        self.number(number, Unexpected::Unsigned(number))
    }
}

/// Serialises a type through its `Display` and deserialises it through its `FromStr`; with `number`, from a number as well.
///
/// For this crate and those that add units of their own; a crate that uses it depends on serde.
#[doc(hidden)]
#[macro_export]
macro_rules! serde_as_text {
    ($type:ty, $expecting:literal) => {
        $crate::serde_as_text!(@ $type, $expecting, false);
    };
    ($type:ty, $expecting:literal, number) => {
        $crate::serde_as_text!(@ $type, $expecting, true);
    };
    (@ $type:ty, $expecting:literal, $numbers:literal) => {
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                $crate::units::deserialize_text(from, $expecting, $numbers, str::parse)
            }
        }
    };
}
pub(crate) use serde_as_text;

#[cfg(test)]
mod tests;
