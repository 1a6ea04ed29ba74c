//! A timeout that nothing is measured for: the same on every path.
//!
//! For experiments, and for paths that are known. The round-trip time is still smoothed as RFC 6298 does, as other units ask for it; only
//! the timeout does not follow it. It backs off exponentially, as RFC 8961 section 4 (4) demands of every sender, unless that is switched off.

use super::rfc6298::{Rfc6298, Rfc6298Config};
use super::{Estimate, RetransmissionTimer};
use crate::arguments::{ArgumentError, Arguments};
use crate::time::{Duration, Instant};

/// The timer's parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FixedConfig {
    /// The timeout.
    pub rto: Duration,
    /// With its back-off, at most this.
    pub max: Duration,
    /// Whether it doubles each time it expires.
    pub back_off: bool,
}

transom_base::setters! {
    const FixedConfig:
    with_rto = rto: Duration,
    with_max = max: Duration,
    with_back_off = back_off: bool,
}

impl Default for FixedConfig {
    fn default() -> Self {
        FixedConfig { rto: Duration::from_secs(1), max: Duration::from_secs(60), back_off: true }
    }
}

impl FixedConfig {
    /// Takes the parameters.
    pub(crate) fn read(given: &mut Arguments<'_>) -> Result<Self, ArgumentError> {
        let default = FixedConfig::default();
        let rto = given.duration("rto")?.unwrap_or(default.rto);
        Ok(FixedConfig {
            rto,
            max: given.duration("max")?.unwrap_or(default.max.max(rto)),
            back_off: given
                .word("back-off", &[("on", true), ("off", false)])?
                .unwrap_or(default.back_off),
        })
    }
}

/// The timeout and its back-off.
#[derive(Clone, Debug)]
pub(crate) struct Fixed {
    config: FixedConfig,
    /// For the round-trip time and the count of expiries.
    measured: Rfc6298,
}

impl Fixed {
    /// A timer without samples.
    pub(crate) fn new(config: FixedConfig) -> Self {
        Fixed { config, measured: Rfc6298::new(Rfc6298Config::default()) }
    }
}

impl RetransmissionTimer for Fixed {
    fn name(&self) -> &'static str {
        "fixed"
    }

    fn on_sample(&mut self, rtt: Duration, now: Instant) {
        self.measured.on_sample(rtt, now);
    }

    fn estimate(&self) -> Option<Estimate> {
        self.measured.estimate()
    }

    fn rto(&self) -> Duration {
        let FixedConfig { rto, max, back_off } = self.config;
        if back_off { rto.doubled(self.measured.backoffs()).min(max) } else { rto }
    }

    fn back_off(&mut self) {
        self.measured.back_off();
    }

    fn backoffs(&self) -> u32 {
        self.measured.backoffs()
    }

    fn on_handshake_loss(&mut self) {
        self.measured.on_handshake_loss();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secs(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    #[test]
    fn nothing_that_is_measured_moves_it() {
        let mut timer = Fixed::new(FixedConfig { max: secs(5), ..FixedConfig::default() });
        assert_eq!((timer.rto(), timer.srtt()), (secs(1), None));
        timer.on_sample(Duration::from_millis(100), Instant::ZERO);
        timer.on_sample(Duration::from_millis(180), Instant::ZERO);
        // RFC 6298 section 2.3: 7/8·100 + 180/8.
        assert_eq!(timer.srtt(), Some(Duration::from_millis(110)));
        assert_eq!(timer.rto(), secs(1));
        timer.on_sample(secs(3), Instant::ZERO);
        assert_eq!(timer.rto(), secs(1));
    }

    #[test]
    fn it_backs_off_until_a_sample_unless_told_not_to() {
        let mut timer = Fixed::new(FixedConfig { max: secs(5), ..FixedConfig::default() });
        for wait in [2, 4, 5, 5] {
            timer.back_off();
            assert_eq!(timer.rto(), secs(wait));
        }
        timer.on_sample(secs(1), Instant::ZERO);
        assert_eq!((timer.rto(), timer.backoffs()), (secs(1), 0));
        let mut timer = Fixed::new(FixedConfig { back_off: false, ..FixedConfig::default() });
        timer.back_off();
        assert_eq!((timer.rto(), timer.backoffs()), (secs(1), 1));
    }
}
