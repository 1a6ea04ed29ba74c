//! Which thresholds LTCP may have: the two convergence conditions of the paper's section III, and at most one layer less for a loss.
//!
//! With δ_K = W_(K+1) − W_K, for every pair of layers from the second on:
//! - Equation 2: δ_K/K rises with K, so that the larger flow adds layers more slowly.
//! - Equation 3: the larger flow takes longer to recover from a loss. In its worst case, where the larger flow keeps its layer and
//!   the smaller one does not, this is equation 8: W_(K+1) > K/(K−2) · W_(K−1).
//! - Equation 12: β·W_K < δ_(K−1), so that a loss just after reaching layer K costs one layer at most. For the paper's
//!   thresholds that is equation 13: β < 3/(K+1).
//!
//! It is enough to check neighbours. The last layer has no end, and nothing to compare with.

use crate::arguments::Fraction;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// W_T of the paper in packets: the window up to which LTCP is Reno.
pub(super) const WT: u64 = 50;
/// β of the paper: the share of the window that a loss takes.
pub(super) const BETA: Fraction = Fraction::from_millionths(150_000);
/// The layers for which [`BETA`] keeps equation 13.
pub(super) const COUNT: u32 = 18;
/// The most layers there may be.
const MOST: u32 = 64;
/// The largest threshold in packets: beyond any window.
const WIDEST: u64 = 1 << 34;

/// How thresholds follow from each other. All in packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Equations 9 and 10: W_K = (K+1)/(K−2) · W_(K−1), from W_2 = W_T; in closed form K(K+1)(K−1)/6 · W_T.
    Paper {
        /// W_T.
        wt: u64,
        /// The number of layers.
        layers: u32,
    },
    /// The alternate design of section IV: W_K = 2·W_(K−1), from W_2 = W_T.
    Double {
        /// W_T.
        wt: u64,
        /// The number of layers.
        layers: u32,
    },
    /// W_2, W_3 and so on.
    Thresholds(Vec<u64>),
}

/// Why layers cannot work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RuleError {
    /// Too few or too many layers.
    #[error("there are between 2 and {MOST} layers, not {0}")]
    Count(u32),
    /// Thresholds that do not rise, or are too small or too large.
    #[error(
        "W_{layer} = {window} packets is not above W_{} = {below}, or is more than {WIDEST}",
        layer - 1
    )]
    Threshold {
        /// K.
        layer: u32,
        /// W_K.
        window: u64,
        /// W_(K−1).
        below: u64,
    },
    /// Equation 2.
    #[error(
        "flows would not converge: from layer {} to {layer} the step per flow has to rise (equation 2), and {step_below}/{} is not below {step}/{layer}",
        layer - 1, layer - 1
    )]
    Growth {
        /// K.
        layer: u32,
        /// δ_K.
        step: u64,
        /// δ_(K−1).
        step_below: u64,
    },
    /// Equation 8.
    #[error(
        "flows would not converge: W_{} = {above} is not above {layer}/{} of W_{} = {below} (equation 8), so the larger flow could recover first",
        layer + 1, layer - 2, layer - 1
    )]
    Reduction {
        /// K.
        layer: u32,
        /// W_(K+1).
        above: u64,
        /// W_(K−1).
        below: u64,
    },
    /// Equation 12.
    #[error(
        "beta = {beta} has to be below {limit} for layer {layer}: a loss at W_{layer} = {window} could cost more than one layer, as W_{} = {below} (equation 12)",
        layer - 1
    )]
    Beta {
        /// β.
        beta: Fraction,
        /// Its upper bound: δ_(K−1)/W_K, rounded down.
        limit: Fraction,
        /// K.
        layer: u32,
        /// W_K.
        window: u64,
        /// W_(K−1).
        below: u64,
    },
}

/// Layers that satisfy the conditions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layers {
    rule: Rule,
    beta: Fraction,
    /// W_1 = 0, W_2 and so on.
    thresholds: Arc<[u64]>,
}

impl Default for Layers {
    fn default() -> Self {
        let rule = Rule::Paper { wt: WT, layers: COUNT };
        Layers { thresholds: rule.thresholds().into(), rule, beta: BETA }
    }
}

impl Rule {
    /// How many layers there are.
    fn count(&self) -> u32 {
        match self {
            Rule::Paper { layers, .. } | Rule::Double { layers, .. } => *layers,
            Rule::Thresholds(given) => {
                u32::try_from(given.len()).unwrap_or(u32::MAX).saturating_add(1)
            }
        }
    }

    /// W_1 = 0, W_2 and so on; saturating.
    fn thresholds(&self) -> Vec<u64> {
        let mut all = alloc::vec![0];
        match self {
            Rule::Paper { wt, layers } => all.extend((2..=u64::from(*layers)).map(|k| {
                let shape = u128::from(k) * u128::from(k + 1) * u128::from(k - 1) / 6;
                u64::try_from(shape * u128::from(*wt)).unwrap_or(u64::MAX)
            })),
            Rule::Double { wt, layers } => all.extend(
                (2..=*layers)
                    .map(|k| wt.saturating_mul(1u64.checked_shl(k - 2).unwrap_or(u64::MAX))),
            ),
            Rule::Thresholds(given) => all.extend(given),
        }
        all
    }
}

impl Layers {
    /// The layers of `rule` with `beta`, checked.
    ///
    /// # Errors
    /// [`RuleError`] with the numbers that do not fit.
    pub fn new(rule: Rule, beta: Fraction) -> Result<Self, RuleError> {
        let count = rule.count();
        if !(2..=MOST).contains(&count) {
            return Err(RuleError::Count(count));
        }
        let layers = Layers { thresholds: rule.thresholds().into(), rule, beta };
        for layer in 2..=count {
            let (window, below) = (layers.threshold(layer), layers.threshold(layer - 1));
            if window <= below || window > WIDEST {
                return Err(RuleError::Threshold { layer, window, below });
            }
            layers.check_beta(layer)?;
        }
        for layer in 3..count {
            layers.check_growth(layer)?;
            layers.check_reduction(layer)?;
        }
        Ok(layers)
    }

    /// Equation 12. Between the first two layers, where W_1 is zero, it asks for no more than that something is left.
    fn check_beta(&self, layer: u32) -> Result<(), RuleError> {
        let (window, below) = (self.threshold(layer), self.threshold(layer - 1));
        let beta = self.beta;
        let step = u128::from(window - below) * 1_000_000;
        if u128::from(beta.millionths()) * u128::from(window) < step && beta.millionths() > 0 {
            return Ok(());
        }
        let limit = u64::try_from(step / u128::from(window)).unwrap_or(u64::MAX);
        let limit = Fraction::from_millionths(limit);
        Err(RuleError::Beta { beta, limit, layer, window, below })
    }

    /// Equation 2 for `layer` and the one below.
    fn check_growth(&self, layer: u32) -> Result<(), RuleError> {
        let step = self.threshold(layer + 1) - self.threshold(layer);
        let step_below = self.threshold(layer) - self.threshold(layer - 1);
        let above = u128::from(step) * u128::from(layer - 1);
        let below = u128::from(step_below) * u128::from(layer);
        if above > below { Ok(()) } else { Err(RuleError::Growth { layer, step, step_below }) }
    }

    /// Equation 8.
    fn check_reduction(&self, layer: u32) -> Result<(), RuleError> {
        let (above, below) = (self.threshold(layer + 1), self.threshold(layer - 1));
        if u128::from(above) * u128::from(layer - 2) > u128::from(below) * u128::from(layer) {
            Ok(())
        } else {
            Err(RuleError::Reduction { layer, above, below })
        }
    }

    /// The rule they follow.
    pub(crate) fn rule(&self) -> &Rule {
        &self.rule
    }

    /// β: the share of the window that a loss takes.
    pub fn beta(&self) -> Fraction {
        self.beta
    }

    /// How many there are.
    pub fn count(&self) -> u32 {
        u32::try_from(self.thresholds.len()).unwrap_or(u32::MAX)
    }

    /// W_K in packets: where layer K begins; zero for the first. Beyond the last layer, `u64::MAX`.
    pub fn threshold(&self, layer: u32) -> u64 {
        let index = layer.saturating_sub(1) as usize;
        self.thresholds.get(index).copied().unwrap_or(u64::MAX)
    }

    /// δ_K in packets; `None` for the last layer, which has no end.
    pub fn step(&self, layer: u32) -> Option<u64> {
        (layer < self.count()).then(|| self.threshold(layer + 1) - self.threshold(layer))
    }

    /// The layer of a window of this many packets.
    pub fn of(&self, window: u64) -> u32 {
        let reached = self.thresholds.iter().take_while(|&&begins| begins <= window).count();
        u32::try_from(reached).unwrap_or(u32::MAX).max(1)
    }
}
