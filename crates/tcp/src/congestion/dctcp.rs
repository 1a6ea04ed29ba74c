//! DCTCP (RFC 8257): the window shrinks by as much as there is congestion.
//!
//! Routers mark packets as soon as a short queue builds, and the receiver echoes exactly which. α estimates the share of marked bytes, once
//! each window. A window with marks is reduced by α/2 (section 3.3). Losses are Reno's matter (section 3.5), and so is growth.
//!
//! The connection has to deliver exact feedback: [`AckContext::marked`] or [`AckContext::ecn_echo`] for each acknowledgement, and one
//! [`CongestionEvent::Ecn`] for each window with marks.
//!
//! Choices that the RFC leaves open: α is a fixed-point number with 20 bits and rounds down. So a flow without marks keeps an α of up to 15/2²⁰;
//! section 4.2 wants it to decay to almost nothing. The reduction is a share of the flight, bounded by cwnd. A window begins when the one before is
//! acknowledged, which is the connection's round.

use super::built_in::{BuiltIn, Value, is_gain, require};
use super::controller::Kind;
use super::{CongestionControl, CongestionEvent, Window, react};
use crate::ack_context::AckContext;
use crate::arguments::{ArgumentError, Arguments, Fraction};
use crate::time::Instant;
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

#[cfg(test)]
mod tests;

/// DCTCP's parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dctcp {
    /// g: the weight of a new window in α (section 4.2).
    pub(crate) g: Fraction,
    /// α at the start: one reacts to the first mark as Reno would.
    pub(crate) alpha: Fraction,
}

impl Default for Dctcp {
    fn default() -> Self {
        Dctcp { g: Fraction::from_millionths(62_500), alpha: Fraction::ONE }
    }
}

/// α's one.
const ONE: u64 = 1 << 20;

impl BuiltIn for Dctcp {
    const NAME: &'static str = "dctcp";
    const SOURCE: &'static str = "RFC 8257";
    const SUMMARY: &'static str =
        "reduces the window by the share of bytes that routers marked; needs ECN";

    fn parameters(&mut self) -> Vec<(&'static str, &mut dyn Value)> {
        vec![("g", &mut self.g), ("alpha", &mut self.alpha)]
    }

    fn check(&self, given: &Arguments<'_>) -> Result<(), ArgumentError> {
        let Dctcp { g, alpha } = *self;
        let fits = is_gain(g) && alpha <= Fraction::ONE;
        let rule = "g is above 0 and, as alpha, at most 1";
        require(given, fits, rule, format_args!("{g} and {alpha}"))
    }

    fn kind(&self) -> Kind {
        Kind::Dctcp(Box::new(Controller {
            g: self.g,
            alpha: self.alpha.of(ONE).min(ONE),
            acked: 0,
            marked: 0,
        }))
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Controller {
    g: Fraction,
    /// DCTCP.Alpha, of [`ONE`].
    alpha: u64,
    /// DCTCP.BytesAcked.
    acked: u64,
    /// DCTCP.BytesMarked.
    marked: u64,
}

impl CongestionControl for Controller {
    fn name(&self) -> &'static str {
        "dctcp"
    }

    fn counts_acknowledged_bytes(&self) -> bool {
        true
    }

    // Section 3.3.
    fn on_sample(&mut self, _window: &mut Window, ack: &AckContext) {
        self.acked = self.acked.saturating_add(ack.acked);
        // Told in bytes, or by an echo that is for all that the acknowledgement covers.
        let echoed = if ack.ecn_echo { ack.acked } else { 0 };
        self.marked = self.marked.saturating_add(ack.marked.unwrap_or(echoed));
        if !ack.round_start || self.acked == 0 {
            return;
        }
        let share = u128::from(self.marked) * u128::from(ONE) / u128::from(self.acked);
        let share = u64::try_from(share).unwrap_or(ONE).min(ONE);
        self.alpha = (self.alpha - self.g.of(self.alpha) + self.g.of(share)).min(ONE);
        (self.acked, self.marked) = (0, 0);
    }

    fn on_ack(&mut self, window: &mut Window, acked: u64, _ack: &AckContext) {
        window.additive_increase(acked, window.cwnd);
    }

    fn on_event(&mut self, window: &mut Window, event: CongestionEvent, now: Instant) {
        let CongestionEvent::Ecn { flight } = event else {
            react(self, window, event, now);
            return;
        };
        // cwnd · (1 − α/2).
        let flight = flight.min(window.cwnd);
        let less = u128::from(flight) * u128::from(self.alpha) / u128::from(2 * ONE);
        let left = flight - u64::try_from(less).unwrap_or(flight).min(flight);
        window.cwnd_cnt = 0;
        window.ssthresh = left.max(window.floor());
        window.resize(window.ssthresh);
    }
}
