//! Quantities as people write them: "20ms", "0.5%".
//!
//! Decimal digits are scaled with integer arithmetic, so "0.1%" is the same number on every machine. The error for an
//! unreadable text has an example of a valid one.

mod call;
mod decimal;
mod duration;
mod rate;
mod size;

use alloc::string::String;

pub use call::{call, list};
pub use decimal::Decimal;
pub use duration::{DurationText, parse_duration};
pub use rate::RateText;
pub use size::parse_size;

/// Why a text is not the quantity it was meant to be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UnitError {
    /// The text does not have the quantity's form.
    #[error("`{text}` is not a {quantity}: write it like {example}")]
    Malformed {
        /// The expected quantity, such as "rate".
        quantity: &'static str,
        /// The text.
        text: String,
        /// An example of an accepted text.
        example: &'static str,
    },
    /// The number has no unit, or one that the quantity does not have.
    #[error("`{text}` needs a unit to be a {quantity}: one of {units}")]
    Unit {
        /// The expected quantity.
        quantity: &'static str,
        /// The text.
        text: String,
        /// The units there are.
        units: &'static str,
    },
    /// The value is too large or too small for the quantity.
    #[error("`{text}` is out of range for a {quantity}: {range}")]
    OutOfRange {
        /// The expected quantity.
        quantity: &'static str,
        /// The text.
        text: String,
        /// The values there are.
        range: &'static str,
    },
}
