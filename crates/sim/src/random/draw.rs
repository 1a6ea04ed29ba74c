//! Random amounts: how a size or a time is drawn.

use super::fixed::{LOG_BITS, neg_ln_fraction};
use super::{Rng, Shape};

/// A distribution of numbers from zero on, such as bytes or nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Draw {
    /// Always the same.
    Constant(u64),
    /// From the one to the other, both included, every one equally likely.
    Uniform(u64, u64),
    /// Exponential with this mean.
    Exponential(u64),
    /// Pareto of the first type, cut off.
    Pareto {
        /// The least.
        scale: u64,
        /// The tail's exponent.
        shape: Shape,
        /// The most.
        most: u64,
    },
}

impl Draw {
    /// The next one.
    pub fn draw(self, rng: &mut Rng) -> u64 {
        match self {
            Draw::Constant(value) => value,
            Draw::Uniform(first, last) => rng.between(first, last),
            Draw::Exponential(mean) => rng.exponential(mean),
            Draw::Pareto { scale, shape, most } => rng.pareto(scale, shape).min(most),
        }
    }
}

impl Rng {
    /// An exponential variate: −`mean`·ln U for U uniform in (0, 1); at most 44.4 times the mean.
    fn exponential(&mut self, mean: u64) -> u64 {
        let neg_ln = u128::from(neg_ln_fraction(self.next_u64().max(1)));
        u64::try_from((u128::from(mean) * neg_ln) >> LOG_BITS).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Streams;

    #[test]
    fn exponential_variates_have_their_mean_and_their_tail() {
        let mut rng = Streams::new(1).rng(0, 0);
        let draws: Vec<u64> = (0..100_000).map(|_| rng.exponential(1_000_000)).collect();
        let mean = draws.iter().sum::<u64>() / 100_000;
        // The standard error is 1/√100000 of the mean.
        assert!((987_000..1_013_000).contains(&mean), "{mean}");
        // P(X > 3 means) is e^-3, 4.979 %.
        let tail = draws.iter().filter(|draw| **draw > 3_000_000).count();
        assert!((4_700..5_260).contains(&tail), "{tail}");
    }

    #[test]
    fn bounds_are_kept() {
        let mut rng = Streams::new(1).rng(0, 0);
        let shape = Shape::from_thousandths(500).unwrap();
        for _ in 0..1000 {
            assert!((3..=5).contains(&Draw::Uniform(3, 5).draw(&mut rng)));
            let pareto = Draw::Pareto { scale: 10, shape, most: 50 };
            assert!((10..=50).contains(&pareto.draw(&mut rng)));
            assert_eq!(Draw::Constant(7).draw(&mut rng), 7);
        }
    }
}
