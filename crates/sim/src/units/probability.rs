//! Probabilities as integer thresholds.

use core::fmt;
use core::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::{Decimal, UnitError};

const QUANTITY: &str = "probability";

/// A probability between 0 and 1 in parts per 2^63, compared with 63 random bits.
///
/// Written "0.5%" or "0.005" (or "1e-9"); a configuration file may also hold the bare number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Probability(u64);

impl Probability {
    /// Never.
    pub const ZERO: Probability = Probability(0);
    /// Always.
    pub const ONE: Probability = Probability(Self::PARTS);
    /// The parts that make up certainty: 2^63.
    pub const PARTS: u64 = 1 << 63;

    /// `numerator / denominator` rounded to the nearest part; `None` if the fraction exceeds one or divides by zero.
    pub fn ratio(numerator: u64, denominator: u64) -> Option<Probability> {
        if numerator > denominator {
            return None;
        }
        let product = u128::from(numerator) * u128::from(Self::PARTS);
        let parts = (product + u128::from(denominator / 2)).checked_div(denominator.into())?;
        u64::try_from(parts).ok().map(Probability)
    }

    /// Parts per [`PARTS`](Self::PARTS).
    pub const fn parts(self) -> u64 {
        self.0
    }

    /// Whether this is never.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
}

impl FromStr for Probability {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Probability, UnitError> {
        let malformed = || UnitError::Malformed {
            quantity: QUANTITY,
            text: text.into(),
            example: "0.5% or 0.005",
        };
        let (number, unit) = Decimal::split(text).ok_or_else(malformed)?;
        let parts = match unit {
            "" => number.scaled(Self::PARTS),
            // Dividing last keeps "0.5%" and "0.005" the same number.
            "%" => number.hundredth().scaled(Self::PARTS),
            _ => return Err(malformed()),
        };
        match parts {
            Some(parts) if parts <= Self::PARTS && (parts > 0 || number.is_zero()) => {
                Ok(Probability(parts))
            }
            _ => Err(UnitError::OutOfRange {
                quantity: QUANTITY,
                text: text.into(),
                range: "from 0 to 1 (or 0% to 100%), and not below 1e-19 unless 0",
            }),
        }
    }
}

impl fmt::Display for Probability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The fewest decimals that read back as the same value; 19 always do, since 10^-19 < 2^-63.
        let mut decimals = 0;
        loop {
            let scale = 10u128.pow(decimals);
            let parts = u128::from(Self::PARTS);
            let digits = (u128::from(self.0) * scale + parts / 2) / parts;
            if decimals == 19 || (digits * parts + scale / 2) / scale == u128::from(self.0) {
                return write_decimal(f, digits, scale, decimals as usize);
            }
            decimals += 1;
        }
    }
}

impl fmt::Debug for Probability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Probability({self})")
    }
}

/// Writes `digits / scale` where `scale` is `10^decimals`.
fn write_decimal(
    f: &mut fmt::Formatter<'_>,
    digits: u128,
    scale: u128,
    decimals: usize,
) -> fmt::Result {
    if decimals == 0 {
        write!(f, "{digits}")
    } else {
        write!(f, "{}.{:0decimals$}", digits / scale, digits % scale)
    }
}

impl Serialize for Probability {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Probability {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextOrNumber;
        impl de::Visitor<'_> for TextOrNumber {
            type Value = Probability;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a probability such as \"0.5%\" or 0.005")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Probability, E> {
                text.parse().map_err(E::custom)
            }
            // A number goes through its shortest decimal form, so that 0.005 means "0.005".
            fn visit_f64<E: de::Error>(self, number: f64) -> Result<Probability, E> {
                self.visit_str(&number.to_string())
            }
            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Probability, E> {
                self.visit_str(&number.to_string())
            }
            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Probability, E> {
                self.visit_str(&number.to_string())
            }
        }
        deserializer.deserialize_any(TextOrNumber)
    }
}
