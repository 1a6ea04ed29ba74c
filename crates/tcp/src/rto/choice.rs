//! Functions of every choice of timer that need no connection.

use super::eifel::EifelConfig;
use super::fixed::FixedConfig;
use super::rfc6298::Rfc6298Config;
use crate::profile::{ProfileError, TimerChoice};
use crate::time::Duration;

impl TimerChoice {
    /// The timeout before anything has been measured.
    pub(crate) fn initial(&self) -> Duration {
        match *self {
            TimerChoice::Rfc6298(config) => config.initial,
            TimerChoice::Eifel(config) => config.initial,
            TimerChoice::Fixed(config) => config.rto,
        }
    }

    /// The most that back-off makes of the timeout.
    pub(crate) fn max(&self) -> Duration {
        match *self {
            TimerChoice::Rfc6298(config) => config.max,
            TimerChoice::Eifel(config) => config.max,
            TimerChoice::Fixed(config) => config.max,
        }
    }

    /// Whether the bounds can be kept.
    pub(crate) fn validate(&self) -> Result<(), ProfileError> {
        let (initial, min, max) = match *self {
            TimerChoice::Rfc6298(Rfc6298Config { initial, min, max, .. }) => (initial, min, max),
            TimerChoice::Eifel(EifelConfig { initial, max, .. }) => (initial, Duration::ZERO, max),
            TimerChoice::Fixed(FixedConfig { rto, max, .. }) => (rto, rto, max),
        };
        if initial.is_zero() || min > max || max.is_zero() {
            return Err(ProfileError::TimerBounds { initial, min, max });
        }
        Ok(())
    }
}
