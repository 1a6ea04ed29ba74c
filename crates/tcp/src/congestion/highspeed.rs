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

use super::built_in::BuiltIn;
use super::controller::Kind;
use super::{CongestionControl, Window};
use crate::ack_context::AckContext;
use crate::time::Instant;

#[cfg(test)]
mod tests;

/// HighSpeed TCP, with the RFC's parameters.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HighSpeed;

impl BuiltIn for HighSpeed {
    const NAME: &'static str = "highspeed";
    const SOURCE: &'static str = "RFC 3649";
    const SUMMARY: &'static str =
        "growth and reduction depend on the window: a(w) segments a round trip, b(w) after a loss";

    fn kind(&self) -> Kind {
        Kind::HighSpeed(*self)
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
