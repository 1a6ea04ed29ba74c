//! The acknowledgement policy of a connection, whichever it is.

use super::delayed::DelayedAck;
use super::immediate::Immediate;
use super::quick::QuickAck;
use super::{AckDecision, AckPolicy, Arrival};
use crate::profile::AckChoice;
use crate::time::{Duration, Instant};

/// One of the acknowledgement policies.
#[derive(Debug)]
pub(crate) enum AckUnit {
    /// RFC 5681 section 4.2.
    Delayed(DelayedAck),
    /// As soon as everything that came together has been taken in.
    Immediate(Immediate),
    /// As Linux.
    Quick(QuickAck),
}

/// Calls whichever unit it is.
macro_rules! each {
    ($self:expr, $unit:ident => $call:expr) => {
        match $self {
            AckUnit::Delayed($unit) => $call,
            AckUnit::Immediate($unit) => $call,
            AckUnit::Quick($unit) => $call,
        }
    };
}

impl AckUnit {
    /// The policy of this choice.
    pub(crate) fn new(choice: AckChoice) -> Self {
        match choice {
            AckChoice::Delayed(delay) => AckUnit::Delayed(DelayedAck::new(delay)),
            AckChoice::Immediate => AckUnit::Immediate(Immediate),
            AckChoice::Quick(max) => AckUnit::Quick(QuickAck::new(max)),
        }
    }
}

impl AckPolicy for AckUnit {
    #[inline]
    fn on_arrival(&mut self, arrival: &Arrival) -> AckDecision {
        each!(self, one => one.on_arrival(arrival))
    }

    #[inline]
    fn on_ack_sent(&mut self) {
        each!(self, one => one.on_ack_sent())
    }

    #[inline]
    fn on_data_sent(&mut self, now: Instant) {
        each!(self, one => one.on_data_sent(now))
    }

    #[inline]
    fn on_delay_over(&mut self, rto: Duration) {
        each!(self, one => one.on_delay_over(rto))
    }

    #[inline]
    fn on_drained(&mut self) -> bool {
        each!(self, one => one.on_drained())
    }

    #[inline]
    fn quick(&mut self, arrivals: u32) {
        each!(self, one => one.quick(arrivals))
    }

    #[inline]
    fn is_quick(&self) -> bool {
        each!(self, one => one.is_quick())
    }

    #[inline]
    fn begin_late(&mut self) {
        each!(self, one => one.begin_late())
    }
}
