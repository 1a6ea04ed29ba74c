//! Quantities as people write them: "10Mbit/s", "20ms", "64KiB", "0.5%".
//!
//! Each quantity is a type that holds an integer. It is parsed from text once, and its text parses back
//! to the same value. An error for wrong text says what to write instead. Decimal digits are scaled
//! with integer arithmetic, so "0.1%" is the same number on every machine.

pub(crate) mod duration_text;
pub(crate) mod probability_text;
mod rate;

pub use rate::Rate;
pub use transom_router::Probability;
pub use transom_router::quantity::{DurationText, UnitError, parse_duration};
pub use transom_router::queue::Limit;

pub(crate) use transom_router::quantity::Decimal;

/// Serialises a type through its `Display` and deserialises it through its `FromStr`. With `number`, a number will do as well as a text:
/// through its shortest decimal form, so that 0.005 means "0.005".
///
/// For this crate and those that add units of their own; a crate that uses it depends on serde.
#[doc(hidden)]
#[macro_export]
macro_rules! serde_as_text {
    ($type:ty, $expecting:literal) => {
        $crate::serde_as_text!(@ $type, $expecting, deserialize_str, );
    };
    ($type:ty, $expecting:literal, number) => {
        $crate::serde_as_text!(@ $type, $expecting, deserialize_any,
            visit_f64(f64) visit_i64(i64) visit_u64(u64)
        );
    };
    (@ $type:ty, $expecting:literal, $deserialize:ident, $($visit:ident($number:ty))*) => {
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
                    $(fn $visit<E: serde::de::Error>(self, number: $number) -> Result<$type, E> {
                        self.visit_str(&number.to_string())
                    })*
                }
                deserializer.$deserialize(Text)
            }
        }
    };
}
pub(crate) use serde_as_text;

#[cfg(test)]
mod tests;
