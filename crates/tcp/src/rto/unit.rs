//! The retransmission timer of a connection, whichever it is.

use super::eifel::Eifel;
use super::fixed::Fixed;
use super::rfc6298::Rfc6298;
use super::{Estimate, RetransmissionTimer};
use crate::one_of::one_of;
use crate::profile::TimerChoice;
use crate::time::{Duration, Instant};
use alloc::boxed::Box;

one_of! {
    /// One of the retransmission timers.
    #[derive(Debug)]
    pub(crate) enum TimerUnit as RetransmissionTimer {
        /// RFC 6298.
        Rfc6298(Rfc6298),
        /// Ludwig and Sklower, CCR 2000.
        Eifel(Box<Eifel>),
        /// Always the same.
        Fixed(Box<Fixed>),
    }

    fn name(&self) -> &'static str;
    fn on_sample(&mut self, rtt: Duration, now: Instant);
    fn on_flight(&mut self, segments: u64);
    fn on_round(&mut self);
    fn estimate(&self) -> Option<Estimate>;
    fn rto(&self) -> Duration;
    fn restart(&self, now: Instant, sent: Instant) -> Instant;
    fn back_off(&mut self);
    fn backoffs(&self) -> u32;
    fn on_handshake_loss(&mut self);
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
