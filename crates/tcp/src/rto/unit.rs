//! The retransmission timer of a connection, whichever it is.

use super::eifel::Eifel;
use super::fixed::Fixed;
use super::rfc6298::Rfc6298;
use super::{Estimate, RetransmissionTimer};
use crate::profile::TimerChoice;
use crate::time::{Duration, Instant};
use alloc::boxed::Box;

/// One of the retransmission timers.
#[derive(Debug)]
pub(crate) enum TimerUnit {
    /// RFC 6298.
    Rfc6298(Rfc6298),
    /// Ludwig and Sklower, CCR 2000.
    Eifel(Box<Eifel>),
    /// Always the same.
    Fixed(Box<Fixed>),
}

/// Calls whichever unit it is.
macro_rules! each {
    ($self:expr, $unit:ident => $call:expr) => {
        match $self {
            TimerUnit::Rfc6298($unit) => $call,
            TimerUnit::Eifel($unit) => $call,
            TimerUnit::Fixed($unit) => $call,
        }
    };
}

impl TimerUnit {
    /// The timer of this choice.
    pub(crate) fn new(choice: &TimerChoice) -> Self {
        match *choice {
            TimerChoice::Rfc6298(config) => TimerUnit::Rfc6298(Rfc6298::new(config)),
            TimerChoice::Eifel(config) => TimerUnit::Eifel(Box::new(Eifel::new(config))),
            TimerChoice::Fixed(config) => TimerUnit::Fixed(Box::new(Fixed::new(config))),
        }
    }
}

impl RetransmissionTimer for TimerUnit {
    #[inline]
    fn name(&self) -> &'static str {
        each!(self, one => one.name())
    }

    #[inline]
    fn on_sample(&mut self, rtt: Duration, now: Instant) {
        each!(self, one => one.on_sample(rtt, now))
    }

    #[inline]
    fn on_flight(&mut self, segments: u64) {
        each!(self, one => one.on_flight(segments))
    }

    #[inline]
    fn on_round(&mut self) {
        each!(self, one => one.on_round())
    }

    #[inline]
    fn estimate(&self) -> Option<Estimate> {
        each!(self, one => one.estimate())
    }

    #[inline]
    fn rto(&self) -> Duration {
        each!(self, one => one.rto())
    }

    #[inline]
    fn restart(&self, now: Instant, sent: Instant) -> Instant {
        each!(self, one => one.restart(now, sent))
    }

    #[inline]
    fn back_off(&mut self) {
        each!(self, one => one.back_off())
    }

    #[inline]
    fn backoffs(&self) -> u32 {
        each!(self, one => one.backoffs())
    }

    #[inline]
    fn on_handshake_loss(&mut self) {
        each!(self, one => one.on_handshake_loss())
    }
}
