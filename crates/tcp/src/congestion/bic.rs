//! BIC (Xu, Harfoush, Rhee: "Binary Increase Congestion Control for Fast, Long Distance Networks", INFOCOM 2004).
//!
//! The window at which the last loss happened is too large, the one after it is not. A binary search between them finds the right
//! one, in steps of at most `smax` and at least `smin` segments a round trip. Once the old maximum is passed, a new one is probed
//! for: with 1, 2, 4 … segments a round trip, then with `smax`. Below `low` segments it is Reno.
//!
//! Differences from the paper, and choices that it leaves open:
//! - Fast convergence compares with the window at the last loss. In the paper's listing it compares with the default maximum after a search that
//!   passed the old one, and would then give up bandwidth on the way up.
//! - The midpoint moves with each acknowledgement, as in the listing. So the distance to the maximum shrinks by the factor 1/√e each
//!   round trip rather than by one half.
//! - Growth counts bytes, exactly. A timeout takes the same share as a loss from ssthresh.

use super::arithmetic::Carry;
use super::built_in::{BuiltIn, Value, is_share, require};
use super::controller::Kind;
use super::{CongestionControl, Window, half, restore};
use crate::ack_context::AckContext;
use crate::arguments::{ArgumentError, Arguments, Fraction};
use crate::time::Instant;
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

#[cfg(test)]
mod tests;

/// BIC's parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bic {
    /// S_max: the most segments added in a round trip.
    pub(crate) smax: u64,
    /// S_min: the least, in segments.
    pub(crate) smin: Fraction,
    /// β: the share of the window that a loss takes.
    pub(crate) beta: Fraction,
    /// low_window: below this many segments it is Reno.
    pub(crate) low: u64,
}

impl Default for Bic {
    fn default() -> Self {
        let (smin, beta) = (Fraction::from_millionths(10_000), Fraction::from_millionths(125_000));
        Bic { smax: 32, smin, beta, low: 14 }
    }
}

impl BuiltIn for Bic {
    const NAME: &'static str = "bic";
    const SOURCE: &'static str = "Xu, Harfoush, Rhee: BIC, INFOCOM 2004";
    const SUMMARY: &'static str =
        "a binary search between the window of the last loss and the reduced window";

    fn parameters(&mut self) -> Vec<(&'static str, &mut dyn Value)> {
        vec![
            ("smax", &mut self.smax),
            ("smin", &mut self.smin),
            ("beta", &mut self.beta),
            ("low", &mut self.low),
        ]
    }

    fn check(&self, given: &Arguments<'_>) -> Result<(), ArgumentError> {
        let Bic { smax, smin, beta, .. } = *self;
        let least = u128::from(smin.millionths());
        let fits = smax > 0 && least > 0 && least <= u128::from(smax) * 1_000_000;
        let value = format_args!("{smin} with smax = {smax}");
        require(given, fits, "smin is above 0 and at most smax", value)?;
        require(given, is_share(beta), "beta is between 0 and 1", beta)
    }

    fn kind(&self) -> Kind {
        let state = State { maximum: None, last_loss: None, probe: None };
        Kind::Bic(Box::new(Controller {
            parameters: *self,
            state,
            before: None,
            carry: Carry::default(),
        }))
    }
}

/// The state that a loss changes, and an undo restores. In bytes.
#[derive(Clone, Copy, Debug)]
struct State {
    /// max_win; `None` while it is not known (default_max_win).
    maximum: Option<u64>,
    /// The window at the last loss.
    last_loss: Option<u64>,
    /// The probe for a new maximum.
    probe: Option<Probe>,
}

/// Max probing: as in slow start, the step doubles when its target is reached.
#[derive(Clone, Copy, Debug)]
struct Probe {
    /// ss_cwnd.
    step: u64,
    /// ss_target.
    target: u64,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Controller {
    parameters: Bic,
    state: State,
    before: Option<State>,
    carry: Carry,
}

impl Controller {
    fn is_low(&self, window: &Window) -> bool {
        window.cwnd < self.parameters.low.saturating_mul(window.segment())
    }

    /// S_max in bytes.
    fn most(&self, window: &Window) -> u64 {
        self.parameters.smax.saturating_mul(window.segment())
    }

    /// Bytes to add in a round trip.
    fn step(&self, window: &Window) -> u64 {
        let most = self.most(window);
        match (self.state.probe, self.state.maximum) {
            (Some(probe), _) => probe.step.min(most),
            (None, None) => most,
            (None, Some(maximum)) => {
                let least = self.parameters.smin.of(window.segment()).max(1);
                (maximum.saturating_sub(window.cwnd) / 2).min(most).max(least.min(most))
            }
        }
    }

    /// Whether the window has passed what it was on the way to.
    fn advance(&mut self, window: &Window) {
        if let Some(probe) = &mut self.state.probe {
            if window.cwnd >= probe.target {
                probe.step = probe.step.saturating_mul(2);
                probe.target = window.cwnd.saturating_add(probe.step);
                if probe.step >= self.most(window) {
                    self.state.probe = None;
                }
            }
        } else if self.state.maximum.is_some_and(|maximum| window.cwnd >= maximum) {
            let step = window.segment();
            self.state.probe = Some(Probe { step, target: window.cwnd.saturating_add(step) });
            self.state.maximum = None;
        }
    }
}

impl CongestionControl for Controller {
    fn name(&self) -> &'static str {
        "bic"
    }

    fn on_ack(&mut self, window: &mut Window, acked: u64, _ack: &AckContext) {
        if self.is_low(window) {
            window.additive_increase(acked, window.cwnd);
            return;
        }
        let bytes = u128::from(self.step(window)) * u128::from(acked);
        let grown = self.carry.divide(bytes, u128::from(window.cwnd));
        window.resize(window.cwnd.saturating_add(grown));
        self.advance(window);
    }

    fn ssthresh(&mut self, window: &Window, flight: u64, _now: Instant) -> u64 {
        self.before = Some(self.state);
        let flight = flight.min(window.cwnd);
        if self.is_low(window) {
            return half(window, flight);
        }
        let left = (flight - self.parameters.beta.of(flight)).max(window.floor());
        let falls = self.state.last_loss.is_some_and(|last| window.cwnd < last);
        // Fast convergence: the search goes for the middle already.
        let maximum = if falls { (window.cwnd + left) / 2 } else { window.cwnd };
        let last_loss = Some(window.cwnd);
        self.state = State { maximum: Some(maximum), last_loss, probe: None };
        left
    }

    fn on_undo(&mut self, window: &mut Window, prior: Window, _now: Instant) {
        if let Some(before) = self.before.take() {
            self.state = before;
        }
        restore(window, prior);
    }
}
