//! MulTCP (Crowcroft, Oechslin: "Differentiated end-to-end Internet services using a weighted proportional fair sharing TCP", CCR 1998).
//!
//! One connection that behaves as N do: N segments more each round trip, and after a loss, which hits one of the N, half of that one's
//! share less, so that (N − 1/2)/N of the window is left.
//!
//! A difference from the paper: slow start is that of one flow. (The paper triples the window up to the size that N doubling flows would reach. That
//! was for an initial window of one segment.) A timeout affects the whole connection; ssthresh becomes half of the flight.

use super::arithmetic::mul_div;
use super::built_in::{BuiltIn, Value, require};
use super::controller::Kind;
use super::{CongestionControl, CongestionEvent, Window, half, react};
use crate::ack_context::AckContext;
use crate::arguments::{ArgumentError, Arguments};
use crate::time::Instant;
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

#[cfg(test)]
mod tests;

/// MulTCP's parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MulTcp {
    /// N: the number of connections that it behaves like.
    pub(crate) n: u64,
}

impl Default for MulTcp {
    fn default() -> Self {
        MulTcp { n: 2 }
    }
}

/// The largest N.
const MOST: u64 = 1000;

impl BuiltIn for MulTcp {
    const NAME: &'static str = "multcp";
    const SOURCE: &'static str = "Crowcroft, Oechslin: MulTCP, CCR 28(3), 1998";
    const SUMMARY: &'static str = "one connection that behaves like n connections";

    fn parameters(&mut self) -> Vec<(&'static str, &mut dyn Value)> {
        vec![("n", &mut self.n)]
    }

    fn check(&self, given: &Arguments<'_>) -> Result<(), ArgumentError> {
        let rule = format_args!("n is between 1 and {MOST}");
        require(given, (1..=MOST).contains(&self.n), rule, self.n)
    }

    fn kind(&self) -> Kind {
        Kind::MulTcp(Box::new(Controller { flows: self.n.max(1), timeout: false }))
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Controller {
    flows: u64,
    /// Whether the reduction in hand is a timeout's.
    timeout: bool,
}

impl CongestionControl for Controller {
    fn name(&self) -> &'static str {
        "multcp"
    }

    fn counts_acknowledged_bytes(&self) -> bool {
        true
    }

    fn on_ack(&mut self, window: &mut Window, acked: u64, _ack: &AckContext) {
        window.additive_increase(acked, window.cwnd / self.flows);
    }

    fn ssthresh(&mut self, window: &Window, flight: u64, _now: Instant) -> u64 {
        if self.timeout {
            return half(window, flight);
        }
        // (N − 1/2)/N.
        let flight = flight.min(window.cwnd);
        mul_div(flight, 2 * self.flows - 1, 2 * self.flows).max(window.floor())
    }

    fn on_event(&mut self, window: &mut Window, event: CongestionEvent, now: Instant) {
        self.timeout = matches!(event, CongestionEvent::Timeout { .. });
        react(self, window, event, now);
    }
}
