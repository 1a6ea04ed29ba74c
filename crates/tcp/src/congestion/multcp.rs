//! MulTCP (Crowcroft, Oechslin: "Differentiated end-to-end Internet services using a weighted proportional fair sharing TCP", CCR 1998).
//!
//! One connection that behaves as N do: N segments more each round trip, and after a loss, which hits one of the N, half of that one's
//! share less, so that (N − 1/2)/N of the window is left.
//!
//! A difference from the paper: slow start is that of one flow. (The paper triples the window up to the size that N doubling flows would reach. That
//! was for an initial window of one segment.) A timeout affects the whole connection; ssthresh becomes half of the flight.

use super::arithmetic::mul_div;
use super::controller::{self, Kind};
use super::{
    Algorithm, CongestionChoice, CongestionControl, CongestionEvent, Entry, Window, half, react,
};
use crate::ack_context::AckContext;
use crate::arguments::ChoiceText;
use crate::time::Instant;
use alloc::boxed::Box;
use core::fmt;

#[cfg(test)]
mod tests;

/// MulTCP's parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MulTcp {
    /// N: the number of connections that it behaves like.
    pub(crate) n: u32,
}

impl Default for MulTcp {
    fn default() -> Self {
        MulTcp { n: 2 }
    }
}

/// The largest N.
const MOST: u32 = 1000;

/// How it is chosen by name.
pub(crate) const ENTRY: Entry = Entry {
    name: "multcp",
    source: "Crowcroft, Oechslin: MulTCP, CCR 28(3), 1998",
    summary: "one connection that behaves like n connections",
    read: |arguments| {
        let n = arguments.number("n")?.unwrap_or(u64::from(MulTcp::default().n));
        match u32::try_from(n).ok().filter(|n| (1..=MOST).contains(n)) {
            Some(n) => Ok(CongestionChoice::new(MulTcp { n })),
            None => Err(arguments.impossible(format_args!("n is between 1 and {MOST}, not {n}"))),
        }
    },
};

impl Algorithm for MulTcp {
    fn controller(&self) -> controller::Controller {
        controller::Controller(Kind::MulTcp(Box::new(Controller {
            flows: u64::from(self.n.max(1)),
            timeout: false,
        })))
    }
}

impl fmt::Display for MulTcp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        ChoiceText::new(f, "multcp").parameter("n", self.n, self.n == MulTcp::default().n).finish()
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
