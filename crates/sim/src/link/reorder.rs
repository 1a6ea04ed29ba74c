//! Reordering: some packets are held back so that those behind overtake them.

use core::fmt;
use core::str::FromStr;

use transom_tcp::time::Duration;

use super::LinkConfigError;
use super::jitter::Jitter;
use crate::random::Rng;
use crate::units::{DurationText, Probability, parse_duration, serde_as_text};

/// How often a packet is held back, and how long. Written "1% by 10ms", or "1% by normal(25ms, 8ms)".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reorder {
    /// The probability that a packet is held back.
    pub(crate) probability: Probability,
    /// The extra time it then takes.
    pub(crate) extra: Extra,
}

/// The extra time that a packet takes which is held back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extra {
    /// Always the same.
    Constant(Duration),
    /// Drawn for each.
    Drawn(Jitter),
}

impl Default for Extra {
    fn default() -> Self {
        Extra::Constant(Duration::ZERO)
    }
}

impl From<Duration> for Extra {
    fn from(extra: Duration) -> Self {
        Extra::Constant(extra)
    }
}

impl Extra {
    /// Whether a packet is held back for no time at all.
    pub(crate) fn is_none(self) -> bool {
        const NONE: Duration = Duration::ZERO;
        matches!(
            self,
            Extra::Constant(NONE)
                | Extra::Drawn(
                    Jitter::Uniform { max: NONE, .. }
                        | Jitter::Normal { mean: NONE, deviation: NONE }
                        | Jitter::Pareto { max: NONE, .. }
                )
        )
    }
}

impl FromStr for Extra {
    type Err = LinkConfigError;

    fn from_str(text: &str) -> Result<Extra, LinkConfigError> {
        if text.contains('(') {
            return text.parse().map(Extra::Drawn);
        }
        Ok(Extra::Constant(parse_duration(text)?))
    }
}

impl fmt::Display for Extra {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Extra::Constant(extra) => DurationText(*extra).fmt(f),
            Extra::Drawn(jitter) => jitter.fmt(f),
        }
    }
}

impl Reorder {
    /// The next packet's extra delay, if it is held back.
    pub(super) fn draw(&self, rng: &mut Rng) -> Option<Duration> {
        let held_back = rng.bernoulli(self.probability);
        held_back.then(|| match self.extra {
            Extra::Constant(extra) => extra,
            Extra::Drawn(jitter) => jitter.draw(rng),
        })
    }
}

impl FromStr for Reorder {
    type Err = LinkConfigError;

    fn from_str(text: &str) -> Result<Reorder, LinkConfigError> {
        let Some((probability, extra)) = text.split_once(" by ") else {
            return Err(LinkConfigError::Form {
                what: "reordering",
                text: text.into(),
                forms: "PROBABILITY by DURATION, such as 1% by 10ms, or by a distribution, such as 1% by normal(25ms, 8ms)",
            });
        };
        let (probability, extra): (Probability, Extra) = (probability.parse()?, extra.parse()?);
        if extra.is_none() && !probability.is_zero() {
            let why = "a packet held back for no time is not reordered";
            return Err(LinkConfigError::Nonsense { text: text.into(), why });
        }
        Ok(Reorder { probability, extra })
    }
}

impl fmt::Display for Reorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} by {}", self.probability, self.extra)
    }
}

serde_as_text!(Reorder, "a reordering such as \"1% by 10ms\"");
