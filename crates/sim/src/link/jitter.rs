//! Extra delay that differs from packet to packet.
//!
//! Every packet draws a delay to be added to the propagation delay. A packet that draws less than the one
//! before it would overtake it; [`JitterOrder`] says whether it may. Delays are never negative: a normal
//! draw below zero counts as zero, which raises the mean a little when the deviation is not small beside it.

use core::fmt;
use core::str::FromStr;

use transom_tcp::time::Duration;

use super::LinkConfigError;
use super::text::call;
use crate::random::{Rng, Shape};
use crate::units::{DurationText, parse_duration, serde_as_text};

/// The distribution of the extra delay.
///
/// Written "uniform(5ms)", "uniform(2ms, 5ms)", "normal(10ms, 2ms)" (mean and standard deviation),
/// "pareto(1ms, 1.5)" or "pareto(1ms, 1.5, 200ms)" (scale, shape and the largest delay, to which greater
/// draws are cut).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Jitter {
    /// From `min` to `max`, both included.
    Uniform {
        /// The smallest extra delay.
        min: Duration,
        /// The largest.
        max: Duration,
    },
    /// Normal, cut at zero.
    Normal {
        /// The mean extra delay.
        mean: Duration,
        /// Its standard deviation.
        deviation: Duration,
    },
    /// Pareto of the first type.
    Pareto {
        /// The scale: the smallest extra delay.
        scale: Duration,
        /// How fast the tail falls.
        shape: Shape,
        /// The largest extra delay; [`Duration::MAX`] for none.
        max: Duration,
    },
}

/// Whether jitter may reorder packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum JitterOrder {
    /// No: a packet waits for the one before it, as behind a slow router.
    #[default]
    Keep,
    /// Yes: as over paths of different length.
    Free,
}

impl FromStr for JitterOrder {
    type Err = LinkConfigError;

    fn from_str(text: &str) -> Result<JitterOrder, LinkConfigError> {
        match text.trim() {
            "keep" => Ok(JitterOrder::Keep),
            "free" => Ok(JitterOrder::Free),
            _ => Err(LinkConfigError::Form {
                what: "jitter order",
                text: text.into(),
                forms: "keep or free",
            }),
        }
    }
}

impl Jitter {
    /// The next packet's extra delay.
    pub(crate) fn draw(&self, rng: &mut Rng) -> Duration {
        match *self {
            Jitter::Uniform { min, max } => {
                Duration::from_nanos(rng.between(min.as_nanos(), max.as_nanos()))
            }
            Jitter::Normal { mean, deviation } => {
                let mean = i64::try_from(mean.as_nanos()).unwrap_or(i64::MAX);
                let drawn = rng.normal(mean, deviation.as_nanos());
                Duration::from_nanos(u64::try_from(drawn).unwrap_or(0))
            }
            Jitter::Pareto { scale, shape, max } => {
                Duration::from_nanos(rng.pareto(scale.as_nanos(), shape)).min(max)
            }
        }
    }
}

const FORMS: &str = "uniform(MAX), uniform(MIN, MAX), normal(MEAN, DEVIATION) or \
                     pareto(SCALE, SHAPE[, MAX])";

impl FromStr for Jitter {
    type Err = LinkConfigError;

    fn from_str(text: &str) -> Result<Jitter, LinkConfigError> {
        let malformed = || LinkConfigError::Form {
            what: "jitter distribution",
            text: text.into(),
            forms: FORMS,
        };
        let nonsense = |why| Err(LinkConfigError::Nonsense { text: text.into(), why });
        let (name, arguments) = call(text).ok_or_else(malformed)?;
        match (name, &arguments[..]) {
            ("uniform", [max]) => {
                Ok(Jitter::Uniform { min: Duration::ZERO, max: parse_duration(max)? })
            }
            ("uniform", [min, max]) => {
                let (min, max) = (parse_duration(min)?, parse_duration(max)?);
                if min > max {
                    return nonsense("the smallest delay exceeds the largest");
                }
                Ok(Jitter::Uniform { min, max })
            }
            ("normal", [mean, deviation]) => Ok(Jitter::Normal {
                mean: parse_duration(mean)?,
                deviation: parse_duration(deviation)?,
            }),
            ("pareto", [scale, shape, max @ ..]) if max.len() <= 1 => {
                let max = max.first().map_or(Ok(Duration::MAX), |max| parse_duration(max))?;
                let scale = parse_duration(scale)?;
                if scale > max {
                    return nonsense("the scale, which is the smallest delay, exceeds the largest");
                }
                Ok(Jitter::Pareto { scale, shape: shape.parse()?, max })
            }
            _ => Err(malformed()),
        }
    }
}

impl fmt::Display for Jitter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Jitter::Uniform { min, max } => {
                write!(f, "uniform({}, {})", DurationText(min), DurationText(max))
            }
            Jitter::Normal { mean, deviation } => {
                write!(f, "normal({}, {})", DurationText(mean), DurationText(deviation))
            }
            Jitter::Pareto { scale, shape, max: Duration::MAX } => {
                write!(f, "pareto({}, {shape})", DurationText(scale))
            }
            Jitter::Pareto { scale, shape, max } => {
                write!(f, "pareto({}, {shape}, {})", DurationText(scale), DurationText(max))
            }
        }
    }
}

serde_as_text!(Jitter, "a jitter distribution such as \"uniform(5ms)\"");
