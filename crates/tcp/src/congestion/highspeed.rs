//! HighSpeed TCP (RFC 3649).
//!
//! Above 38 segments the window grows by a(w) segments a round trip instead of one, and a loss takes the share b(w) instead of a half. The
//! response function becomes w = 0.12/p^0.835: 83000 segments at a loss rate of 10⁻⁷.
//!
//! As the RFC's appendix B has it, a(w) and b(w) come from a table with a line for each whole a(w); between two lines those of the
//! lower one hold. Slow start and retransmission timeouts are Reno's, but for the share that a timeout leaves ssthresh, which is that of
//! a loss (section 5: "the congestion response function" governs ssthresh).
//!
//! Choices that the RFC leaves open: the share b(w) is taken of the flight, bounded by cwnd. Limited Slow-Start (RFC 3742), which the RFC
//! recommends with it, is a slow-start unit.

mod table;

use super::controller::{self, Kind};
use super::{Algorithm, CongestionChoice, CongestionControl, Entry, Window};
use crate::ack_context::AckContext;
use crate::time::Instant;
use core::fmt;

#[cfg(test)]
mod tests;

/// HighSpeed TCP, with the RFC's parameters.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HighSpeed;

/// How it is chosen by name.
pub const ENTRY: Entry = Entry {
    name: "highspeed",
    source: "RFC 3649",
    summary: "growth and reduction depend on the window: a(w) segments a round trip, b(w) after a loss",
    read: |_| Ok(CongestionChoice::new(HighSpeed)),
};

impl Algorithm for HighSpeed {
    fn controller(&self) -> controller::Controller {
        controller::Controller(Kind::HighSpeed(*self))
    }
}

impl fmt::Display for HighSpeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("highspeed")
    }
}

impl CongestionControl for HighSpeed {
    fn name(&self) -> &'static str {
        "highspeed"
    }

    fn counts_acknowledged_bytes(&self) -> bool {
        true
    }

    fn on_ack(&mut self, window: &mut Window, acked: u64, _ack: &AckContext) {
        let line = table::line(window.cwnd / window.segment());
        window.additive_increase(acked, window.cwnd / u64::from(line.increase));
    }

    fn ssthresh(&mut self, window: &Window, flight: u64, _now: Instant) -> u64 {
        let flight = flight.min(window.cwnd);
        let line = table::line(window.cwnd / window.segment());
        let lost = (u128::from(flight) * u128::from(line.decrease)) >> table::DECREASE_BITS;
        let lost = u64::try_from(lost).unwrap_or(flight);
        flight.saturating_sub(lost).max(window.floor())
    }
}
