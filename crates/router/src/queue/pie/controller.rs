//! PIE's controller: the drop probability and the burst allowance (RFC 8033, sections 4.2, 4.4 and 5.5).
//!
//! The RFC computes with real numbers. Here probabilities are parts of 2^63, delays nanoseconds and gains millionths;
//! a step is rounded towards zero, by less than 2^-63.

use transom_base::time::Duration;

use super::PieConfig;
use crate::probability::Probability;

const PARTS: i128 = Probability::PARTS as i128;

/// The state that changes from update to update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Controller {
    drop_probability: Probability,
    /// The delay at the last update (`qdelay_old_`).
    delay: Duration,
    burst_allowance: Duration,
}

impl Controller {
    pub(super) fn new(config: &PieConfig) -> Self {
        Controller {
            drop_probability: Probability::ZERO,
            delay: Duration::ZERO,
            burst_allowance: config.burst,
        }
    }

    pub(super) fn drop_probability(&self) -> Probability {
        self.drop_probability
    }

    /// The queueing delay at the last update.
    pub(super) fn delay(&self) -> Duration {
        self.delay
    }

    /// Whether what arrives may still be a burst.
    pub(super) fn tolerates_burst(&self) -> bool {
        !self.burst_allowance.is_zero()
    }

    /// The same with another probability.
    #[cfg(test)]
    pub(super) fn with_probability(self, drop_probability: Probability) -> Self {
        Controller { drop_probability, ..self }
    }

    /// The update that is due every T_UPDATE, with the present queueing delay.
    pub(super) fn update(&mut self, config: &PieConfig, delay: Duration) {
        let was = i128::from(self.drop_probability.parts());
        let step = step(config, was, delay, self.delay);
        let mut parts = was + step;
        // Without a queue the integral alone would take long to forget a congestion that is over.
        if delay.is_zero() && self.delay.is_zero() {
            parts = parts * 98 / 100;
        }
        self.drop_probability = Probability::from_parts(parts.clamp(0, PARTS) as u64);

        self.burst_allowance = self.burst_allowance - config.update;
        // The RFC's pseudocode asks this of every arriving packet; between two updates the answer does not change.
        let half = config.target.over(2);
        if self.drop_probability.is_zero() && delay < half && self.delay < half {
            self.burst_allowance = config.burst;
        }
        self.delay = delay;
    }
}

/// By how much the probability changes: α·(delay − target) + β·(delay − old), scaled to the size of the probability.
fn step(config: &PieConfig, was: i128, delay: Duration, old: Duration) -> i128 {
    let nanos = |span: Duration| i128::from(span.as_nanos());
    // At most 2^32 · 2^64 each; in millionths of nanoseconds.
    let error = i128::from(config.alpha.millionths()) * (nanos(delay) - nanos(config.target))
        + i128::from(config.beta.millionths()) * (nanos(delay) - nanos(old));
    // A step beyond certainty is certainty, whatever the tuning: 2^62 of the 10^15 that make up one is 4611.
    let error = error.clamp(-(1 << 62), 1 << 62);
    let step = error * PARTS / (1_000_000_000_000_000 * tuning(was));
    // Section 5.5: no leaps once the probability is considerable.
    if was >= PARTS / 10 { step.min(PARTS / 50) } else { step }
}

/// The smaller the probability, the smaller the steps (the table of section 4.2): by how much.
fn tuning(probability: i128) -> i128 {
    const TABLE: [(i128, i128); 6] =
        [(1_000_000, 2048), (100_000, 512), (10_000, 128), (1_000, 32), (100, 8), (10, 2)];
    TABLE
        .iter()
        .find(|(fraction, _)| probability < PARTS / fraction)
        .map_or(1, |(_, divisor)| *divisor)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// Within a part in 10^15: what the rounding of 64-bit floats in the expectations themselves may amount to.
    #[track_caller]
    fn assert_close(controller: &Controller, expected: f64) {
        let actual = controller.drop_probability.as_f64();
        assert!((actual - expected).abs() < 1e-15, "{actual:e} instead of {expected:e}");
    }

    #[test]
    fn the_probability_step_by_step() {
        let config = PieConfig::default();
        let mut controller = Controller::new(&config);
        // From 0: 0.125·(30 − 15) ms + 1.25·(30 − 0) ms = 0.001875 + 0.0375 = 0.039375, by 2048.
        controller.update(&config, millis(30));
        assert_close(&controller, 0.039375 / 2048.0);
        // 1.9226e-5 is below 1e-4: 0.001875 by 128, twice; 3.3875e-5, 4.8523e-5.
        controller.update(&config, millis(30));
        controller.update(&config, millis(30));
        assert_close(&controller, 0.039375 / 2048.0 + 2.0 * 0.001875 / 128.0);
        // 1 s: 0.125·0.985 + 1.25·0.97 = 0.123125 + 1.2125 = 1.335625, by 128: 0.010483…
        controller.update(&config, millis(1000));
        let p = 0.039375 / 2048.0 + (2.0 * 0.001875 + 1.335625) / 128.0;
        assert_close(&controller, p);
        // …which is above 0.01: by 2.
        controller.update(&config, millis(1000));
        let p = p + 0.123125 / 2.0;
        assert_close(&controller, p);
        controller.update(&config, millis(1000));
        let p = p + 0.123125 / 2.0;
        assert_close(&controller, p);
        // 0.1336 is above 0.1: 0.123125 is capped to 0.02.
        controller.update(&config, millis(1000));
        assert_close(&controller, p + 0.02);
        // Back to 10 ms: 0.125·(−5 ms) + 1.25·(−990 ms) is far below zero. No cap downwards.
        controller.update(&config, millis(10));
        assert_close(&controller, 0.0);
    }

    #[test]
    fn the_tuning_table() {
        for (denominator, above, below) in [
            (1_000_000, 512, 2048),
            (100_000, 128, 512),
            (10_000, 32, 128),
            (1_000, 8, 32),
            (100, 2, 8),
            (10, 1, 2),
        ] {
            assert_eq!(tuning(PARTS / denominator), above);
            assert_eq!(tuning(PARTS / denominator - 1), below);
        }
        assert_eq!((tuning(0), tuning(PARTS)), (2048, 1));
    }

    #[test]
    fn without_a_queue_the_probability_decays() {
        let config = PieConfig::default();
        let of = |p, delay| Controller {
            drop_probability: Probability::ratio(p, 10),
            delay,
            burst_allowance: Duration::ZERO,
        };
        // 0.125·(−15 ms) = −0.001875, and 2 % less if the delay was zero before, too.
        let mut controller = of(5, Duration::ZERO);
        controller.update(&config, Duration::ZERO);
        assert_close(&controller, (0.5 - 0.001875) * 0.98);
        // Coming from 1 ms, β·(−1 ms) is added and nothing decays.
        let mut controller = of(5, millis(1));
        controller.update(&config, Duration::ZERO);
        assert_close(&controller, 0.5 - 0.001875 - 0.00125);
    }

    #[test]
    fn the_probability_stays_between_never_and_always() {
        let config = PieConfig::default();
        let mut controller = Controller::new(&config);
        controller.update(&config, Duration::MAX);
        assert_eq!(controller.drop_probability, Probability::ONE);
        controller.update(&config, Duration::MAX);
        assert_eq!(controller.drop_probability, Probability::ONE);
        controller.update(&config, Duration::ZERO);
        assert_eq!(controller.drop_probability, Probability::ZERO);
    }

    #[test]
    fn bursts_are_tolerated_for_150_ms_and_again_after_a_calm() {
        let config = PieConfig::default();
        let mut controller = Controller::new(&config);
        for update in 1..=10 {
            assert!(controller.tolerates_burst(), "before update {update}");
            controller.update(&config, millis(30));
        }
        // 10 · 15 ms.
        assert!(!controller.tolerates_burst());
        // Below half the target once is not enough, nor with a probability above zero.
        controller.drop_probability = Probability::ZERO;
        controller.update(&config, millis(7));
        assert!(!controller.tolerates_burst());
        controller.update(&config, millis(7));
        assert_eq!(
            (controller.drop_probability, controller.burst_allowance),
            (Probability::ZERO, millis(150))
        );
        controller.burst_allowance = Duration::ZERO;
        controller.drop_probability = Probability::ratio(1, 2);
        controller.update(&config, millis(7));
        assert!(!controller.tolerates_burst());
    }
}
