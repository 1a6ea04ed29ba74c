//! Scalable TCP (Kelly: "Scalable TCP: Improving Performance in Highspeed Wide Area Networks", CCR 2003).
//!
//! The window grows by a constant for each acknowledged segment, so by a constant share each round trip. A loss takes a constant
//! share. So recovery takes the same number of round trips at every window. Up to `low` segments (the paper's legacy window) it is
//! Reno.
//!
//! A difference from the paper: growth counts acknowledged bytes instead of acknowledgements, so that delayed acknowledgements do not
//! halve it. A timeout's ssthresh takes the same share as a loss.

use super::arithmetic::Carry;
use super::built_in::{BuiltIn, Value, is_gain, is_share, require};
use super::controller::Kind;
use super::{CongestionControl, Window, half};
use crate::ack_context::AckContext;
use crate::arguments::{ArgumentError, Arguments, Fraction};
use crate::time::Instant;
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

#[cfg(test)]
mod tests;

/// Scalable TCP's parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scalable {
    /// a: segments added for each segment acknowledged.
    pub(crate) a: Fraction,
    /// b: the share of the window that a loss takes.
    pub(crate) b: Fraction,
    /// lwnd: the window in segments up to which Reno's rules hold.
    pub(crate) low: u64,
}

impl Default for Scalable {
    fn default() -> Self {
        let (a, b) = (Fraction::from_millionths(10_000), Fraction::from_millionths(125_000));
        Scalable { a, b, low: 16 }
    }
}

impl BuiltIn for Scalable {
    const NAME: &'static str = "scalable";
    const SOURCE: &'static str = "Kelly: Scalable TCP, CCR 33(2), 2003";
    const SUMMARY: &'static str =
        "0.01 of a segment more for each segment acknowledged, an eighth less after a loss";

    fn parameters(&mut self) -> Vec<(&'static str, &mut dyn Value)> {
        vec![("a", &mut self.a), ("b", &mut self.b), ("low", &mut self.low)]
    }

    fn check(&self, given: &Arguments<'_>) -> Result<(), ArgumentError> {
        let Scalable { a, b, .. } = *self;
        let rule = "a is above 0 and at most 1, b between 0 and 1";
        require(given, is_gain(a) && is_share(b), rule, format_args!("{a} and {b}"))
    }

    fn kind(&self) -> Kind {
        Kind::Scalable(Box::new(Controller { parameters: *self, carry: Carry::default() }))
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Controller {
    parameters: Scalable,
    carry: Carry,
}

impl Controller {
    fn is_low(&self, window: &Window) -> bool {
        window.cwnd <= self.parameters.low.saturating_mul(window.segment())
    }
}

impl CongestionControl for Controller {
    fn name(&self) -> &'static str {
        "scalable"
    }

    fn on_ack(&mut self, window: &mut Window, acked: u64, _ack: &AckContext) {
        if self.is_low(window) {
            window.additive_increase(acked, window.cwnd);
        } else {
            let millionths = u128::from(acked) * u128::from(self.parameters.a.millionths());
            let grown = self.carry.divide(millionths, 1_000_000);
            window.resize(window.cwnd.saturating_add(grown));
        }
    }

    fn ssthresh(&mut self, window: &Window, flight: u64, _now: Instant) -> u64 {
        if self.is_low(window) {
            return half(window, flight);
        }
        let flight = flight.min(window.cwnd);
        (flight - self.parameters.b.of(flight)).max(window.floor())
    }
}
