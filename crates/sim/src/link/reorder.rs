//! Reordering: some packets are held back so that those behind overtake them.

use core::fmt;
use core::str::FromStr;

use transom_tcp::time::Duration;

use super::text::SyntaxError;
use crate::random::Rng;
use crate::units::{DurationText, Probability, parse_duration, serde_as_text};

/// How often a packet is held back, and how long. Written "1% by 10ms".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reorder {
    /// The probability that a packet is held back.
    pub probability: Probability,
    /// The extra time it then takes.
    pub extra: Duration,
}

impl Reorder {
    /// The next packet's extra delay, if it is held back.
    pub(super) fn draw(&self, rng: &mut Rng) -> Option<Duration> {
        rng.bernoulli(self.probability).then_some(self.extra)
    }
}

impl FromStr for Reorder {
    type Err = SyntaxError;

    fn from_str(text: &str) -> Result<Reorder, SyntaxError> {
        let Some((probability, extra)) = text.split_once(" by ") else {
            return Err(SyntaxError::Form {
                what: "reordering",
                text: text.into(),
                forms: "PROBABILITY by DURATION, such as 1% by 10ms",
            });
        };
        let (probability, extra): (Probability, _) = (probability.parse()?, parse_duration(extra)?);
        if extra.is_zero() && !probability.is_zero() {
            let why = "a packet held back for no time is not reordered";
            return Err(SyntaxError::Nonsense { text: text.into(), why });
        }
        Ok(Reorder { probability, extra })
    }
}

impl fmt::Display for Reorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} by {}", self.probability, DurationText(self.extra))
    }
}

serde_as_text!(Reorder, "a reordering such as \"1% by 10ms\"");
