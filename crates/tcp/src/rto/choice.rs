//! Functions of every choice of timer that need no connection.

use super::RetransmissionTimer;
use super::eifel::{Eifel, EifelConfig};
use super::fixed::{Fixed, FixedConfig};
use super::rfc6298::{Rfc6298, Rfc6298Config};
use crate::profile::{ProfileError, TimerChoice};
use crate::time::Duration;
use alloc::boxed::Box;

impl TimerChoice {
    /// The timeout before anything has been measured.
    pub fn initial(&self) -> Duration {
        match *self {
            TimerChoice::Rfc6298(config) => config.initial,
            TimerChoice::Eifel(config) => config.initial,
            TimerChoice::Fixed(config) => config.rto,
        }
    }

    /// The most that back-off makes of the timeout.
    pub fn max(&self) -> Duration {
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

    pub(crate) fn timer(&self) -> Box<dyn RetransmissionTimer> {
        match *self {
            TimerChoice::Rfc6298(config) => Box::new(Rfc6298::new(config)),
            TimerChoice::Eifel(config) => Box::new(Eifel::new(config)),
            TimerChoice::Fixed(config) => Box::new(Fixed::new(config)),
        }
    }
}
