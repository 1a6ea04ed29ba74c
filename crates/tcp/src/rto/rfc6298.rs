//! The standard retransmission timer (RFC 6298).
//!
//! One parameter differs from the text by default: the lower bound is 200 ms instead of one second, as in the large
//! deployed stacks. RFC 8961 section 4 permits this for a sender that keeps to its principles. Like them it also keeps
//! the timeout 200 ms above SRTT. With a sample for every acknowledgement the variation of a steady path decays to zero,
//! and the first delayed acknowledgement would cause a timeout. The text's one second hides that on most paths.

use super::{Estimate, RetransmissionTimer};
use crate::arguments::{ArgumentError, Arguments};
use crate::time::{Duration, Instant};

/// The parameters of RFC 6298.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rfc6298Config {
    /// The timeout before the first sample (section 2.1: one second).
    pub initial: Duration,
    /// The lower bound (section 2.4).
    pub min: Duration,
    /// The least the timeout exceeds SRTT by.
    pub min_variation: Duration,
    /// The upper bound (section 2.5: at least 60 seconds).
    pub max: Duration,
    /// The clock's granularity, G.
    pub granularity: Duration,
}

transom_base::setters! {
    const Rfc6298Config:
    with_initial = initial: Duration,
    with_min = min: Duration,
    with_min_variation = min_variation: Duration,
    with_max = max: Duration,
    with_granularity = granularity: Duration,
}

impl Default for Rfc6298Config {
    fn default() -> Self {
        Rfc6298Config {
            initial: Duration::from_secs(1),
            min: Duration::from_millis(200),
            min_variation: Duration::from_millis(200),
            max: Duration::from_secs(60),
            granularity: Duration::from_millis(1),
        }
    }
}

impl Rfc6298Config {
    /// Takes the parameters.
    pub(crate) fn read(given: &mut Arguments<'_>) -> Result<Self, ArgumentError> {
        let default = Rfc6298Config::default();
        let min = given.duration("min")?;
        Ok(Rfc6298Config {
            initial: given.duration("initial")?.unwrap_or(default.initial),
            min: min.unwrap_or(default.min),
            // With a minimum below the default's, the variation's minimum falls as well.
            min_variation: given
                .duration("variation")?
                .unwrap_or(default.min_variation.min(min.unwrap_or(default.min))),
            max: given.duration("max")?.unwrap_or(default.max),
            granularity: default.granularity,
        })
    }
}

/// SRTT, RTTVAR and the back-off, and what is needed of the parameters.
#[derive(Clone, Debug)]
pub struct Rfc6298 {
    min: Duration,
    max: Duration,
    /// The least the timeout exceeds SRTT by.
    least: Duration,
    estimate: Option<Estimate>,
    initial: Duration,
    backoffs: u32,
}

impl Rfc6298 {
    /// A timer without samples.
    pub fn new(config: Rfc6298Config) -> Self {
        let Rfc6298Config { initial, min, min_variation, max, granularity } = config;
        let least = granularity.max(min_variation);
        Rfc6298 { min, max, least, estimate: None, initial, backoffs: 0 }
    }

    /// A timer that continues from another one's measurements.
    pub fn from_estimate(config: Rfc6298Config, estimate: Estimate) -> Self {
        Rfc6298 { estimate: Some(estimate), ..Rfc6298::new(config) }
    }

    fn base(&self) -> Duration {
        match self.estimate {
            None => self.initial,
            // (2.3) RTO = SRTT + max(G, 4·RTTVAR)
            Some(Estimate { srtt, rttvar }) => srtt + rttvar.times(4).max(self.least),
        }
    }
}

impl RetransmissionTimer for Rfc6298 {
    fn name(&self) -> &'static str {
        "rfc6298"
    }

    fn on_sample(&mut self, rtt: Duration, _now: Instant) {
        self.estimate = Some(match self.estimate {
            // (2.2)
            None => Estimate::first(rtt),
            // (2.3), RTTVAR before SRTT: β = 1/4, α = 1/8
            Some(Estimate { srtt, rttvar }) => {
                let rttvar = rttvar.times(3).over(4) + srtt.abs_diff(rtt).over(4);
                let srtt = srtt.times(7).over(8) + rtt.over(8);
                Estimate { srtt, rttvar }
            }
        });
        self.backoffs = 0;
    }

    fn estimate(&self) -> Option<Estimate> {
        self.estimate
    }

    fn rto(&self) -> Duration {
        self.base().max(self.min).doubled(self.backoffs).min(self.max)
    }

    // [MUST-19] section 5.5
    fn back_off(&mut self) {
        self.backoffs = self.backoffs.saturating_add(1);
    }

    fn backoffs(&self) -> u32 {
        self.backoffs
    }

    fn on_handshake_loss(&mut self) {
        // (5.7) three seconds once the handshake is complete.
        if self.estimate.is_none() {
            self.initial = self.initial.max(Duration::from_secs(3));
            self.backoffs = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    fn bare() -> Rfc6298Config {
        let (min, min_variation) = (Duration::ZERO, Duration::ZERO);
        Rfc6298Config { min, min_variation, ..Rfc6298Config::default() }
    }

    #[test]
    fn follows_section_2_by_hand() {
        let config = bare();
        let mut timer = Rfc6298::new(config);
        assert_eq!(timer.rto(), ms(1000));
        timer.on_sample(ms(100), Instant::ZERO);
        // SRTT 100, RTTVAR 50: RTO 300.
        assert_eq!(
            (timer.srtt(), timer.rttvar(), timer.rto()),
            (Some(ms(100)), Some(ms(50)), ms(300))
        );
        timer.on_sample(ms(180), Instant::ZERO);
        // RTTVAR = 3/4·50 + 1/4·80 = 57.5; SRTT = 7/8·100 + 180/8 = 110; RTO = 340.
        assert_eq!(timer.srtt(), Some(ms(110)));
        assert_eq!(timer.rttvar(), Some(Duration::from_micros(57_500)));
        assert_eq!(timer.rto(), ms(340));
        timer.back_off();
        timer.back_off();
        assert_eq!(timer.rto(), ms(1360));
        for _ in 0..100 {
            timer.back_off();
        }
        assert_eq!(timer.rto(), Duration::from_secs(60));
        // Karn: only a new sample ends the back-off. SRTT stays at 110, RTTVAR falls to 43.125.
        timer.on_sample(ms(110), Instant::ZERO);
        assert_eq!(timer.rto(), Duration::from_micros(282_500));
    }

    /// The second sample above, after another timer took the first.
    #[test]
    fn goes_on_from_what_another_has_measured() {
        let mut timer = Rfc6298::from_estimate(bare(), Estimate::first(ms(100)));
        assert_eq!(timer.rto(), ms(300));
        timer.on_sample(ms(180), Instant::ZERO);
        assert_eq!(timer.rto(), ms(340));
    }

    #[test]
    fn a_lost_syn_means_three_seconds() {
        let mut timer = Rfc6298::new(Rfc6298Config::default());
        timer.back_off();
        assert_eq!(timer.rto(), Duration::from_secs(2));
        timer.on_handshake_loss();
        assert_eq!(timer.rto(), Duration::from_secs(3));
        timer.on_sample(ms(10), Instant::ZERO);
        assert_eq!(timer.rto(), ms(210));
    }

    #[test]
    fn a_steady_path_leaves_time_for_a_delayed_acknowledgement() {
        let mut timer = Rfc6298::new(Rfc6298Config::default());
        for _ in 0..200 {
            timer.on_sample(ms(300), Instant::ZERO);
        }
        assert!(timer.rto() >= ms(500) && timer.rto() <= ms(501), "{:?}", timer.rto());
    }

    #[test]
    fn the_granularity_is_the_least_variation() {
        let mut timer = Rfc6298::new(bare());
        for _ in 0..200 {
            timer.on_sample(ms(10), Instant::ZERO);
        }
        assert!(timer.rto() >= ms(10) && timer.rto() <= ms(11) + Duration::from_micros(1));
    }
}
