//! Quantities as people write them: "10Mbit/s", "20ms", "64KiB", "0.5%".
//!
//! Each quantity is a type that holds an integer, is parsed from text exactly once, prints as text that
//! parses back to the same value, and refuses nonsense with an error that says what to write instead.
//! Decimal digits are scaled with integer arithmetic, so "0.1%" is the same number on every machine.

mod decimal;
mod duration;
mod probability;
mod queue_limit;
mod rate;

pub use duration::{DurationText, duration_text, parse_duration};
pub use probability::Probability;
pub use queue_limit::QueueLimit;
pub use rate::Rate;

pub(crate) use decimal::Decimal;

/// Why a text is not the quantity it was meant to be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnitError {
    /// The text does not have the quantity's form.
    #[error("`{text}` is not a {quantity}: write it like {example}")]
    Malformed {
        /// What was wanted, such as "rate".
        quantity: &'static str,
        /// What was given.
        text: String,
        /// What would be accepted.
        example: &'static str,
    },
    /// The number has no unit, or one that the quantity does not have.
    #[error("`{text}` needs a unit to be a {quantity}: one of {units}")]
    Unit {
        /// What was wanted.
        quantity: &'static str,
        /// What was given.
        text: String,
        /// The units there are.
        units: &'static str,
    },
    /// The value is too large or too small for the quantity.
    #[error("`{text}` is out of range for a {quantity}: {range}")]
    OutOfRange {
        /// What was wanted.
        quantity: &'static str,
        /// What was given.
        text: String,
        /// The values there are.
        range: &'static str,
    },
}

/// Serialises a type through its `Display` and deserialises it through its `FromStr`.
macro_rules! serde_as_text {
    ($type:ty, $expecting:literal) => {
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Text;
                impl serde::de::Visitor<'_> for Text {
                    type Value = $type;
                    fn expecting(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                        f.write_str($expecting)
                    }
                    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<$type, E> {
                        text.parse().map_err(E::custom)
                    }
                }
                deserializer.deserialize_str(Text)
            }
        }
    };
}
pub(crate) use serde_as_text;

#[cfg(test)]
mod tests;
