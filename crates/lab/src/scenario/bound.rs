//! Units of measures, and values that measures are compared with.

use super::quantity::{Number, Size, Time};
use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use std::fmt;
use transom_sim::units::{Rate, UnitError};

/// The unit of a measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Bits per second.
    Rate,
    /// Time.
    Time,
    /// Bytes.
    Size,
    /// None.
    Number,
}

/// A text or a number, before the unit of its measure is known.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema)]
#[schemars(transparent, rename = "Bound")]
pub(super) struct Scalar(#[schemars(with = "super::schema::TextOrNumber")] String);

impl std::str::FromStr for Scalar {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Scalar(text.into()))
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

super::quantity::serde_as_text!(
    Scalar,
    "a text such as \"9Mbit/s\", or a number if the measure has no unit",
    number
);

/// A bound of a band.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// Bits per second.
    Rate(Rate),
    /// A time.
    Time(Time),
    /// Bytes.
    Size(Size),
    /// A number without a unit.
    Number(Number),
}

impl Bound {
    pub(super) fn read(scalar: &Scalar, unit: Unit) -> Result<Bound, UnitError> {
        let text = &scalar.0;
        Ok(match unit {
            Unit::Rate => Bound::Rate(text.parse()?),
            Unit::Time => Bound::Time(text.parse()?),
            Unit::Size => Bound::Size(text.parse()?),
            Unit::Number => Bound::Number(text.parse()?),
        })
    }

    /// The value as an integer: bits per second, nanoseconds, bytes, or billionths.
    pub(super) fn as_integer(self) -> u64 {
        match self {
            Bound::Rate(rate) => rate.bits_per_sec(),
            Bound::Time(time) => time.0.as_nanos(),
            Bound::Size(size) => size.0,
            Bound::Number(number) => number.billionths,
        }
    }

    /// The value in bits per second, nanoseconds, bytes, or without a unit.
    pub fn as_number(self) -> f64 {
        match self {
            Bound::Number(number) => number.billionths as f64 / 1e9,
            _ => self.as_integer() as f64,
        }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bound::Rate(rate) => rate.fmt(f),
            Bound::Time(time) => time.fmt(f),
            Bound::Size(size) => size.fmt(f),
            Bound::Number(number) => number.fmt(f),
        }
    }
}

impl Serialize for Bound {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
