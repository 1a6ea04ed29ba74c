//! The acknowledgement policy of a connection, whichever it is.

use super::delayed::DelayedAck;
use super::immediate::Immediate;
use super::quick::QuickAck;
use super::{AckDecision, AckPolicy, Arrival};
use crate::one_of::one_of;
use crate::profile::AckChoice;
use crate::time::{Duration, Instant};

one_of! {
    /// One of the acknowledgement policies.
    #[derive(Debug)]
    pub(crate) enum AckUnit as AckPolicy {
        /// RFC 5681 section 4.2.
        Delayed(DelayedAck),
        /// As soon as everything that came together has been taken in.
        Immediate(Immediate),
        /// As Linux.
        Quick(QuickAck),
    }

    fn on_arrival(&mut self, arrival: &Arrival<'_>) -> AckDecision;
    fn on_ack_sent(&mut self);
    fn on_data_sent(&mut self, now: Instant);
    fn on_delay_over(&mut self, rto: Duration);
    fn on_drained(&mut self) -> bool;
    fn quick(&mut self, arrivals: u32);
    fn is_quick(&self) -> bool;
    fn begin_late(&mut self);
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
