//! Normal and Pareto variates in integers.

use core::fmt;
use core::str::FromStr;

use super::Rng;
use super::fixed::{LOG_BITS, log2, neg_ln_fraction, times_exp2};
use crate::units::{Decimal, UnitError};

/// The shape α of a Pareto distribution, in thousandths and above zero. The mean is infinite for α ≤ 1,
/// the variance for α ≤ 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shape(u32);

impl Shape {
    /// α = `thousandths` / 1000; `None` for zero.
    pub(crate) const fn from_thousandths(thousandths: u32) -> Option<Shape> {
        if thousandths == 0 { None } else { Some(Shape(thousandths)) }
    }

    /// α × 1000.
    pub(crate) const fn thousandths(self) -> u32 {
        self.0
    }
}

impl FromStr for Shape {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Shape, UnitError> {
        let malformed =
            || UnitError::Malformed { quantity: "Pareto shape", text: text.into(), example: "1.5" };
        let (number, "") = Decimal::split(text).ok_or_else(malformed)? else {
            return Err(malformed());
        };
        number
            .scaled(1000)
            .and_then(|thousandths| u32::try_from(thousandths).ok())
            .and_then(Shape::from_thousandths)
            .ok_or(UnitError::OutOfRange {
                quantity: "Pareto shape",
                text: text.into(),
                range: "from 0.001 to 4294967",
            })
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03}", self.0 / 1000, self.0 % 1000)
    }
}

impl Rng {
    /// A standard normal variate times 2^32.
    ///
    /// Marsaglia's polar method ("A Convenient Method for Generating Normal Variables", 1964): a point
    /// (u, v) drawn from the unit disc gives u·√(−2 ln s / s) with s = u² + v². The arithmetic errs by less
    /// than 10^-6; the magnitude is at most 9.3.
    pub(crate) fn standard_normal(&mut self) -> i64 {
        loop {
            let bits = self.next_u64();
            // Odd numbers between −2^32 and 2^32: symmetric, and never the disc's centre.
            let u = i64::from(bits as u32) * 2 + 1 - (1 << 32);
            let v = i64::from((bits >> 32) as u32) * 2 + 1 - (1 << 32);
            let u_squared = u128::from(u.unsigned_abs()).pow(2);
            let s = u_squared + u128::from(v.unsigned_abs()).pow(2);
            let Ok(s) = u64::try_from(s) else {
                continue; // Outside the disc: one point in 4.7.
            };
            let minus_two_ln = u128::from(neg_ln_fraction(s)) * 2;
            let square = u_squared * minus_two_ln / u128::from(s);
            // A square with 64 fractional bits has a root with 32.
            let magnitude = (square << (64 - LOG_BITS)).isqrt() as i64;
            return if u < 0 { -magnitude } else { magnitude };
        }
    }

    /// A normal variate of the given mean and standard deviation, saturating.
    pub(crate) fn normal(&mut self, mean: i64, deviation: u64) -> i64 {
        let offset = (i128::from(self.standard_normal()) * i128::from(deviation)) >> 32;
        let value = i128::from(mean) + offset;
        i64::try_from(value).unwrap_or(if value < 0 { i64::MIN } else { i64::MAX })
    }

    /// A Pareto (type I) variate: `scale`·U^(−1/α) for U uniform in (0, 1), hence never below `scale`;
    /// saturating. The arithmetic errs by less than one part in 10^12 and one unit.
    pub(crate) fn pareto(&mut self, scale: u64, shape: Shape) -> u64 {
        let uniform = self.next_u64().max(1);
        let neg_log2 = u128::from((64u64 << LOG_BITS) - log2(uniform));
        times_exp2(scale, neg_log2 * 1000 / u128::from(shape.thousandths()))
    }
}
