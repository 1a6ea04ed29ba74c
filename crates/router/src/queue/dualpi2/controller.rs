//! DualPI2's base probability, and the even spacing of signals (RFC 9332, figures 4 to 6).
//!
//! As PIE's controller: probabilities are parts of 2^63, delays nanoseconds and gains millionths; a step is rounded towards zero.

use transom_base::time::Duration;

use super::DualPi2Config;
use crate::probability::Probability;

const PARTS: i128 = Probability::PARTS as i128;

/// p′, and the delay that it was last moved by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Controller {
    base: Probability,
    delay: Duration,
}

impl Controller {
    /// p′.
    #[cfg(test)]
    pub(super) const fn base(&self) -> Probability {
        self.base
    }

    /// The classic probability, p_C.
    pub(super) const fn classic(&self) -> Probability {
        self.base.and(self.base)
    }

    /// The coupled probability, p_CL, at most one.
    pub(super) const fn coupled(&self, coupling: u32) -> Probability {
        self.base.scaled(coupling as u64, 1)
    }

    /// Whether p_CL is certain, and can say no more.
    pub(super) const fn is_overloaded(&self, coupling: u32) -> bool {
        self.coupled(coupling).parts() == Probability::PARTS
    }

    /// The update that is due every Tupdate, with the present queueing delay.
    pub(super) fn update(&mut self, config: &DualPi2Config, delay: Duration) {
        let nanos = |span: Duration| i128::from(span.as_nanos());
        // At most 2^32 · 2^64 each; in millionths of nanoseconds.
        let integral =
            i128::from(config.alpha.millionths()) * (nanos(delay) - nanos(config.target));
        let proportional =
            i128::from(config.beta.millionths()) * (nanos(delay) - nanos(self.delay));
        const SECOND: i128 = 1_000_000 * 1_000_000_000;
        // A change by more than certainty is as good as one by certainty; so the product fits.
        let change = (integral + proportional).clamp(-SECOND, SECOND);
        let parts = i128::from(self.base.parts()) + change * PARTS / SECOND;
        self.base = Probability::from_parts(parts.clamp(0, PARTS) as u64);
        self.delay = delay;
    }

    /// The same with another p′.
    #[cfg(test)]
    pub(super) fn with_base(self, base: Probability) -> Self {
        Controller { base, ..self }
    }
}

/// Signals with a probability, evenly spaced: the sum of the probabilities since the last one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Recurrence(u64);

impl Recurrence {
    /// Whether the next packet gets the signal (`recur` in the RFC).
    pub(super) fn signals(&mut self, probability: Probability) -> bool {
        // Both are at most 2^63.
        let sum = u128::from(self.0) + u128::from(probability.parts());
        let signals = sum > u128::from(Probability::PARTS);
        let rest = if signals { sum - u128::from(Probability::PARTS) } else { sum };
        self.0 = u64::try_from(rest).unwrap_or(Probability::PARTS);
        signals
    }
}
