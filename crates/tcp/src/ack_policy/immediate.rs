//! Acknowledgements at once, as the user-level TCP of INRIA sent them: the receiver drains its input, then acknowledges once.
//!
//! Nothing is waited for; but as acknowledgements leave only after the owner has handed over everything that had arrived, what came
//! together is answered together.

use super::{AckDecision, AckPolicy, Arrival};

/// The policy that never waits.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Immediate;

impl AckPolicy for Immediate {
    fn on_arrival(&mut self, _arrival: &Arrival<'_>) -> AckDecision {
        AckDecision::Now
    }

    fn on_ack_sent(&mut self) {}

    fn quick(&mut self, _arrivals: u32) {}

    fn is_quick(&self) -> bool {
        true
    }
}
