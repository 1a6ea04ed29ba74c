//! Random times and sizes: "2s", "uniform(1s, 3s)", "exponential(2s)", "pareto(10kB, 1.2, 10MB)".

use super::quantity::{Size, Time, serde_as_text};
use std::fmt;
use std::str::FromStr;
use transom_sim::Shape;
use transom_sim::units::UnitError;
use transom_tcp::quantity;

/// How a time or a size is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Distribution<Q> {
    /// Always the same.
    Constant(Q),
    /// From the one to the other, both included.
    Uniform(Q, Q),
    /// Exponential with this mean.
    Exponential(Q),
    /// Pareto of the first type.
    Pareto {
        /// The smallest value.
        scale: Q,
        /// How fast the tail falls: below two the variance, at one and below the mean is infinite.
        shape: Shape,
        /// The largest value, to which greater draws are cut; without it there is none.
        max: Option<Q>,
    },
}

/// How a time is drawn.
pub(crate) type TimeDistribution = Distribution<Time>;

/// How a size is drawn.
pub(crate) type SizeDistribution = Distribution<Size>;

impl<Q: Copy> Distribution<Q> {
    /// Always the same.
    pub(crate) const fn constant(value: Q) -> Self {
        Distribution::Constant(value)
    }

    /// The least that can be drawn and the values by which the rest is given, all of which may have to be above zero.
    pub(crate) fn parameters(&self) -> Vec<Q> {
        match *self {
            Distribution::Constant(value) | Distribution::Exponential(value) => vec![value],
            Distribution::Uniform(_, high) => vec![high],
            Distribution::Pareto { scale, .. } => vec![scale],
        }
    }
}

/// Why a text is not a distribution.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum DistributionError {
    /// A value in it is wrong.
    #[error(transparent)]
    Value(#[from] UnitError),
    /// It has another form.
    #[error(
        "`{0}` is not a distribution: write a single value, uniform(LOW, HIGH), exponential(MEAN) or pareto(SCALE, SHAPE[, MAX])"
    )]
    Form(String),
    /// The first value is above the second.
    #[error("in `{0}` the smallest value is above the largest")]
    Order(String),
}

impl<Q: FromStr<Err = UnitError> + PartialOrd> FromStr for Distribution<Q> {
    type Err = DistributionError;

    fn from_str(text: &str) -> Result<Self, DistributionError> {
        let text = text.trim();
        let form = || DistributionError::Form(text.into());
        let (name, Some(inside)) = quantity::call(text).ok_or_else(form)? else {
            return Ok(Distribution::Constant(text.parse()?));
        };
        let drawn = match (name, &quantity::list(inside)[..]) {
            ("uniform", [low, high]) => Distribution::Uniform(low.parse()?, high.parse()?),
            ("exponential", [mean]) => Distribution::Exponential(mean.parse()?),
            ("pareto", [scale, shape]) => {
                Distribution::Pareto { scale: scale.parse()?, shape: shape.parse()?, max: None }
            }
            ("pareto", [scale, shape, max]) => Distribution::Pareto {
                scale: scale.parse()?,
                shape: shape.parse()?,
                max: Some(max.parse()?),
            },
            _ => return Err(form()),
        };
        let ordered = match &drawn {
            Distribution::Uniform(low, high) => low <= high,
            Distribution::Pareto { scale, max: Some(max), .. } => scale <= max,
            _ => true,
        };
        if ordered { Ok(drawn) } else { Err(DistributionError::Order(text.into())) }
    }
}

impl<Q: fmt::Display> fmt::Display for Distribution<Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Distribution::Constant(value) => value.fmt(f),
            Distribution::Uniform(low, high) => write!(f, "uniform({low}, {high})"),
            Distribution::Exponential(mean) => write!(f, "exponential({mean})"),
            Distribution::Pareto { scale, shape, max: None } => {
                write!(f, "pareto({scale}, {shape})")
            }
            Distribution::Pareto { scale, shape, max: Some(max) } => {
                write!(f, "pareto({scale}, {shape}, {max})")
            }
        }
    }
}

serde_as_text!(TimeDistribution, "a time such as \"2s\" or \"exponential(2s)\"");
serde_as_text!(SizeDistribution, "a size such as \"10kB\" or \"pareto(10kB, 1.2)\"");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distributions_print_as_they_are_read() {
        for (text, printed) in [
            ("2s", "2s"),
            ("uniform( 1s,1500ms )", "uniform(1s, 1500ms)"),
            ("exponential(0.5s)", "exponential(500ms)"),
            ("pareto(10ms, 1.2)", "pareto(10ms, 1.200)"),
            ("pareto(10ms, 1.2, 1s)", "pareto(10ms, 1.200, 1s)"),
        ] {
            let read: TimeDistribution = text.parse().unwrap();
            assert_eq!(read.to_string(), printed);
            assert_eq!(printed.parse(), Ok(read));
        }
        for text in ["", "2", "uniform(1s)", "normal(1s, 2s)", "uniform(2s, 1s)", "pareto(1s, 0)"] {
            assert!(text.parse::<TimeDistribution>().is_err(), "{text}");
        }
        assert!("pareto(10kB, 1.2, 1kB)".parse::<SizeDistribution>().is_err());
    }
}
