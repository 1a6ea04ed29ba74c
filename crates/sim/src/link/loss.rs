//! Loss on the wire.
//!
//! - **Bernoulli**: each packet on its own.
//! - **Gilbert–Elliott**: a Markov chain of two states, good and bad, each with its own probability of loss
//!   (Gilbert, "Capacity of a Burst-Noise Channel", 1960; Elliott, "Estimates of Error Rates for Codes on
//!   Burst-Noise Channels", 1963). With p the probability of going from good to bad and r back, the chain
//!   is bad for p/(p+r) of the packets, in bursts of 1/r packets on average.
//! - **Scripted**: exactly the packets named, counted from zero in the order they are offered to the link.

use core::fmt;
use core::ops::RangeInclusive;
use core::str::FromStr;

use super::LinkConfigError;
use super::text::call;
use crate::random::Rng;
use crate::units::{Probability, serde_as_text};

/// Which packets the wire loses.
///
/// Written "0.5%" (Bernoulli), "gilbert(1%, 25%)" with optional third and fourth arguments for the loss in
/// the bad and the good state, or "packets(0, 7, 20-29)".
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Loss {
    /// Each packet independently.
    Bernoulli(Probability),
    /// In bursts: the model of Gilbert and Elliott.
    GilbertElliott {
        /// The probability, after each packet in the good state, of going to the bad one: p.
        good_to_bad: Probability,
        /// The probability, after each packet in the bad state, of going back: r.
        bad_to_good: Probability,
        /// The probability of losing a packet in the bad state (1 − h in the papers).
        bad_loss: Probability,
        /// The probability of losing a packet in the good state (1 − k in the papers).
        good_loss: Probability,
    },
    /// The packets with these indices.
    Scripted(Vec<RangeInclusive<u64>>),
}

impl Default for Loss {
    fn default() -> Self {
        Probability::ZERO.into()
    }
}

impl From<Probability> for Loss {
    fn from(each: Probability) -> Self {
        Loss::Bernoulli(each)
    }
}

/// A loss model at work. The chain of the Gilbert–Elliott model begins in the good state.
#[derive(Clone, Debug)]
pub(crate) struct LossProcess {
    model: Loss,
    rng: Rng,
    bad: bool,
}

impl LossProcess {
    /// Starts the model.
    pub(crate) fn new(model: &Loss, rng: Rng) -> Self {
        LossProcess { model: model.clone(), rng, bad: false }
    }

    /// Whether the packet with this index is lost. To be asked once for each packet that reaches the wire.
    pub(crate) fn loses(&mut self, index: u64) -> bool {
        match &self.model {
            Loss::Bernoulli(probability) => self.rng.bernoulli(*probability),
            Loss::GilbertElliott { good_to_bad, bad_to_good, bad_loss, good_loss } => {
                let (loss, change) =
                    if self.bad { (bad_loss, bad_to_good) } else { (good_loss, good_to_bad) };
                let lost = self.rng.bernoulli(*loss);
                self.bad ^= self.rng.bernoulli(*change);
                lost
            }
            Loss::Scripted(ranges) => ranges.iter().any(|range| range.contains(&index)),
        }
    }
}

const FORMS: &str = "a probability (0.5%), gilbert(GOOD-TO-BAD, BAD-TO-GOOD[, BAD-LOSS[, GOOD-LOSS]]), \
                     or packets(3, 7, 20-29)";

impl FromStr for Loss {
    type Err = LinkConfigError;

    fn from_str(text: &str) -> Result<Loss, LinkConfigError> {
        let malformed =
            || LinkConfigError::Form { what: "loss model", text: text.into(), forms: FORMS };
        let Some((name, arguments)) = call(text) else {
            return match text.parse() {
                Ok(probability) => Ok(Loss::Bernoulli(probability)),
                Err(_) if !text.trim().starts_with(|c: char| c.is_ascii_digit()) => {
                    Err(malformed())
                }
                Err(error) => Err(error.into()),
            };
        };
        match name {
            "gilbert" => {
                let arguments: Vec<Probability> =
                    arguments.into_iter().map(str::parse).collect::<Result<_, _>>()?;
                let (good_to_bad, bad_to_good, bad_loss, good_loss) = match arguments[..] {
                    [p, r] => (p, r, Probability::ONE, Probability::ZERO),
                    [p, r, bad] => (p, r, bad, Probability::ZERO),
                    [p, r, bad, good] => (p, r, bad, good),
                    _ => return Err(malformed()),
                };
                if bad_to_good.is_zero() && !good_to_bad.is_zero() {
                    let why = "the link would never leave the bad state";
                    return Err(LinkConfigError::Nonsense { text: text.into(), why });
                }
                Ok(Loss::GilbertElliott { good_to_bad, bad_to_good, bad_loss, good_loss })
            }
            "packets" => {
                let range = |item: &str| {
                    let (first, last) = item.split_once('-').unwrap_or((item, item));
                    let (first, last) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
                    (first <= last).then_some(first..=last)
                };
                let named = arguments.into_iter().filter(|item| !item.is_empty());
                let ranges = named.map(range).collect::<Option<_>>();
                ranges.map(Loss::Scripted).ok_or_else(malformed)
            }
            _ => Err(malformed()),
        }
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Loss::Bernoulli(probability) => write!(f, "{probability}"),
            Loss::GilbertElliott { good_to_bad, bad_to_good, bad_loss, good_loss } => {
                write!(f, "gilbert({good_to_bad}, {bad_to_good}, {bad_loss}, {good_loss})")
            }
            Loss::Scripted(ranges) => {
                f.write_str("packets(")?;
                for (i, range) in ranges.iter().enumerate() {
                    let separator = if i > 0 { ", " } else { "" };
                    write!(f, "{separator}{}-{}", range.start(), range.end())?;
                }
                f.write_str(")")
            }
        }
    }
}

serde_as_text!(Loss, "a loss model such as \"0.5%\" or \"gilbert(1%, 25%)\"");
