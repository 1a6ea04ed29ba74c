//! Probabilities as integers, so that every machine takes the same decisions.

use core::fmt;
use core::str::FromStr;

use crate::quantity::{Decimal, UnitError};
use crate::queue::RandomSource;

/// A probability in parts per 2^63, compared with 63 random bits.
///
/// Written "1/50", "2%", "0.02" or "1e-9".
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Probability(u64);

impl Probability {
    /// Never.
    pub const ZERO: Probability = Probability(0);
    /// Always.
    pub const ONE: Probability = Probability(Self::PARTS);
    /// The parts that make up certainty: 2^63.
    pub const PARTS: u64 = 1 << 63;

    /// This many parts per [`PARTS`](Self::PARTS); more than certainty counts as certainty.
    pub(crate) const fn from_parts(parts: u64) -> Self {
        Probability(if parts < Self::PARTS { parts } else { Self::PARTS })
    }

    /// `numerator / denominator` rounded to the nearest part; at most one. Zero divided by zero is zero.
    pub const fn ratio(numerator: u64, denominator: u64) -> Self {
        if numerator >= denominator {
            return if numerator == 0 { Self::ZERO } else { Self::ONE };
        }
        let product = numerator as u128 * Self::PARTS as u128;
        // The fraction is below one, hence the quotient at most 2^63.
        Probability(((product + denominator as u128 / 2) / denominator as u128) as u64)
    }

    /// Parts per [`PARTS`](Self::PARTS).
    pub const fn parts(self) -> u64 {
        self.0
    }

    /// Whether this is never.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// For display and plots only.
    pub fn as_f64(self) -> f64 {
        self.0 as f64 / Self::PARTS as f64
    }

    /// The probability of the opposite.
    pub(crate) const fn complement(self) -> Self {
        Probability(Self::PARTS - self.0)
    }

    /// The probability of both of two independent events.
    pub(crate) const fn and(self, other: Self) -> Self {
        let product = self.0 as u128 * other.0 as u128;
        Probability(((product + (1 << 62)) >> 63) as u64)
    }

    /// The probability that an event happens every one of `times` independent times: the `times`-th power, in at most
    /// 128 multiplications.
    pub(crate) const fn every(self, mut times: u64) -> Self {
        let (mut result, mut square) = (Self::ONE, self);
        while times > 0 {
            if times & 1 == 1 {
                result = result.and(square);
            }
            square = square.and(square);
            times >>= 1;
        }
        result
    }

    /// Times `numerator / denominator`, rounded down and at most one; a zero denominator gives one.
    pub(crate) const fn scaled(self, numerator: u64, denominator: u64) -> Self {
        match (self.0 as u128 * numerator as u128).checked_div(denominator as u128) {
            Some(parts) if parts < Self::PARTS as u128 => Probability(parts as u64),
            _ => Self::ONE,
        }
    }

    /// Tosses a coin that shows heads with this probability.
    pub(crate) fn toss(self, random: &mut dyn RandomSource) -> bool {
        (random.uniform() >> 1) < self.0
    }
}

impl FromStr for Probability {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Probability, UnitError> {
        const QUANTITY: &str = "probability";
        let out_of_range = || UnitError::OutOfRange {
            quantity: QUANTITY,
            text: text.into(),
            range: "from 0 to 1 (or 0% to 100%), and not below 1e-19 unless 0",
        };
        if let Some((numerator, denominator)) = fraction(text) {
            let possible = denominator > 0 && numerator <= denominator;
            return possible
                .then(|| Probability::ratio(numerator, denominator))
                .ok_or_else(out_of_range);
        }
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
        parts.filter(|parts| *parts <= Self::PARTS).map(Probability).ok_or_else(out_of_range)
    }
}

/// The numbers of "1/50".
fn fraction(text: &str) -> Option<(u64, u64)> {
    let (numerator, denominator) = text.split_once('/')?;
    Some((numerator.trim().parse().ok()?, denominator.trim().parse().ok()?))
}

impl fmt::Display for Probability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The fewest decimals that read back as the same value; 19 always do, since 10^-19 < 2^-63.
        let parts = u128::from(Self::PARTS);
        let mut decimals = 0u32;
        loop {
            let scale = 10u128.pow(decimals);
            let digits = (u128::from(self.0) * scale + parts / 2) / parts;
            if decimals == 19 || (digits * parts + scale / 2) / scale == u128::from(self.0) {
                return match decimals as usize {
                    0 => write!(f, "{digits}"),
                    places => write!(f, "{}.{:0places$}", digits / scale, digits % scale),
                };
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

#[cfg(test)]
mod tests {
    use std::string::ToString;

    use super::*;

    #[test]
    fn fractions_and_powers() {
        let half = Probability::ratio(1, 2);
        assert_eq!(half.parts(), 1 << 62);
        assert_eq!(half.every(3), Probability::ratio(1, 8));
        assert_eq!(half.every(0), Probability::ONE);
        assert_eq!(half.every(63).parts(), 1);
        // 2^-64 of certainty is half a part: it rounds up once and can then only stay or vanish.
        assert_eq!(half.every(u64::MAX), Probability::ZERO);
        assert_eq!(Probability::ONE.every(u64::MAX), Probability::ONE);
        assert_eq!(Probability::ratio(3, 4).complement(), Probability::ratio(1, 4));
        assert_eq!(Probability::ratio(0, 0), Probability::ZERO);
        assert_eq!(Probability::ratio(2, 1), Probability::ONE);
        assert_eq!(half.scaled(1, 4), Probability::ratio(1, 8));
        assert_eq!(half.scaled(3, 1), Probability::ONE);
    }

    #[test]
    fn the_edges_of_the_coin() {
        assert!(!Probability::ZERO.toss(&mut || 0));
        assert!(Probability::ONE.toss(&mut || u64::MAX));
        let half = Probability::ratio(1, 2);
        assert!(half.toss(&mut || (1 << 63) - 1));
        assert!(!half.toss(&mut || 1 << 63));
    }

    #[test]
    fn shown_as_the_shortest_decimal() {
        for (numerator, denominator, text) in
            [(0, 1, "0"), (1, 1, "1"), (1, 50, "0.02"), (2, 1000, "0.002"), (1, 8, "0.125")]
        {
            assert_eq!(Probability::ratio(numerator, denominator).to_string(), text);
        }
    }

    #[test]
    fn texts() {
        let read = |text: &str| text.parse::<Probability>().ok();
        let fiftieth = Some(Probability::ratio(1, 50));
        for text in ["1/50", "2%", "0.02", " 2e-2 ", "2 %"] {
            assert_eq!(read(text), fiftieth, "{text}");
        }
        assert_eq!(read("1"), Some(Probability::ONE));
        assert_eq!(read("0%"), Some(Probability::ZERO));
        for text in ["", "x", "1.1", "101%", "1/0", "3/2", "-1", "1e-30", "0.5p", "1e999999999999"]
        {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
