//! LTCP: layered congestion control (Bhandarkar, Jain, Reddy: "LTCP: Improving the Performance of TCP in Highspeed Networks").
//!
//! In two dimensions. Macroscopically, a flow has K layers, one more whenever its window passes the next threshold W_K, one fewer when a
//! loss takes it below that of the layer it is in. Microscopically, a flow with K layers is K flows: each round trip adds K segments.
//! A loss takes the share β of the window. With one layer it is Reno.
//!
//! Which thresholds converge is what section III of the paper asks for; [`Layers`] checks it, and a rule that breaks it is refused.
//!
//! Differences from the paper, and choices that it leaves open:
//! - The layers end: the paper's β = 0.15 keeps equation 13 (β < 3/(K+1)) up to K = 18, and so 18 layers are the default. (The paper speaks
//!   of K = 19, where both sides are equal.) Above the last threshold the flow stays in the last layer.
//! - A loss in slow start halves the window, as slow start is not modified; so does the ssthresh of a timeout.
//! - Growth counts bytes, as Reno's does here; an acknowledgement that crosses several thresholds adds several layers.

mod layers;

use super::built_in::BuiltIn;
use super::controller::Kind;
use super::{CongestionControl, CongestionEvent, Window, half, react, restore};
use crate::ack_context::AckContext;
use crate::arguments::{ArgumentError, Arguments, ChoiceText, Fraction};
use crate::time::Instant;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

#[cfg(test)]
mod tests;

pub use layers::{Layers, Rule, RuleError};

/// LTCP's parameters, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ltcp {
    layers: Layers,
}

impl Ltcp {
    /// LTCP with these layers and this β.
    fn new(rule: Rule, beta: Fraction) -> Result<Self, RuleError> {
        Ok(Ltcp { layers: Layers::new(rule, beta)? })
    }
}

/// The paper's choice: W_T = 50 packets, β = 0.15, 18 layers.
impl Default for Ltcp {
    fn default() -> Self {
        Ltcp { layers: Layers::default() }
    }
}

impl BuiltIn for Ltcp {
    const NAME: &'static str = "ltcp";
    const SOURCE: &'static str = "Bhandarkar, Jain, Reddy: LTCP, sections III and IV";
    const SUMMARY: &'static str = "K layers behave like K flows; one more layer at each threshold, 0.15 of the window less after a loss";

    fn kind(&self) -> Kind {
        let state = State { layer: 1, unknown: true };
        Kind::Ltcp(Box::new(Controller { layers: self.layers.clone(), state, before: None }))
    }

    fn read(given: &mut Arguments<'_>) -> Result<Self, ArgumentError> {
        let beta = given.fraction("beta")?.unwrap_or(layers::BETA);
        let rule = if let Some(text) = given.text("thresholds") {
            let thresholds: Option<Vec<u64>> =
                text.split('/').map(|number| number.trim().parse().ok()).collect();
            let thresholds = thresholds.ok_or_else(|| {
                given.impossible("thresholds are packets, written like thresholds=50/200/500")
            })?;
            Rule::Thresholds(thresholds)
        } else {
            let wt = given.number("wt")?.unwrap_or(layers::WT);
            let count = given.number("layers")?.unwrap_or(u64::from(layers::COUNT));
            let count = u32::try_from(count).unwrap_or(u32::MAX);
            let words = [("paper", false), ("double", true)];
            if given.word("rule", &words)?.unwrap_or(false) {
                Rule::Double { wt, layers: count }
            } else {
                Rule::Paper { wt, layers: count }
            }
        };
        Ltcp::new(rule, beta).map_err(|error| given.impossible(error))
    }

    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let beta = self.layers.beta();
        let text = ChoiceText::new(f, "ltcp").parameter("beta", beta, beta == layers::BETA);
        let (double, wt, count) = match self.layers.rule() {
            Rule::Paper { wt, layers } => (false, *wt, *layers),
            Rule::Double { wt, layers } => (true, *wt, *layers),
            Rule::Thresholds(_) => {
                return text.parameter("thresholds", Slashed(&self.layers), false).finish();
            }
        };
        text.parameter("rule", "double", !double)
            .parameter("wt", wt, wt == layers::WT)
            .parameter("layers", count, count == layers::COUNT)
            .finish()
    }
}

/// The thresholds with slashes between them.
struct Slashed<'a>(&'a Layers);

impl fmt::Display for Slashed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for layer in 2..=self.0.count() {
            let before = if layer > 2 { "/" } else { "" };
            write!(f, "{before}{}", self.0.threshold(layer))?;
        }
        Ok(())
    }
}

/// The state that a loss changes, and an undo restores.
#[derive(Clone, Copy, Debug)]
struct State {
    /// K.
    layer: u32,
    /// Whether slow start has yet to end, after which K follows from the window.
    unknown: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Controller {
    layers: Layers,
    state: State,
    before: Option<State>,
}

impl Controller {
    /// W_K in bytes.
    fn threshold(&self, layer: u32, window: &Window) -> u64 {
        self.layers.threshold(layer).saturating_mul(window.segment())
    }

    /// The window after a loss, outside slow start.
    fn reduced(&self, window: &Window, flight: u64) -> u64 {
        let flight = flight.min(window.cwnd);
        (flight - self.layers.beta().of(flight)).max(window.floor())
    }

    /// Slow start has ended, or an idle window was reduced: K follows from the window.
    fn settle(&mut self, window: &Window) {
        if self.state.unknown {
            self.state = State { layer: 1, unknown: false };
            self.climb(window);
        }
    }

    /// Adds the layers that the window has reached.
    fn climb(&mut self, window: &Window) {
        while self.state.layer < self.layers.count()
            && window.cwnd >= self.threshold(self.state.layer + 1, window)
        {
            self.state.layer += 1;
        }
    }
}

impl CongestionControl for Controller {
    fn name(&self) -> &'static str {
        "ltcp"
    }

    fn counts_acknowledged_bytes(&self) -> bool {
        true
    }

    fn on_ack(&mut self, window: &mut Window, acked: u64, _ack: &AckContext) {
        self.settle(window);
        window.additive_increase(acked, window.cwnd / u64::from(self.state.layer));
        self.climb(window);
    }

    fn ssthresh(&mut self, window: &Window, flight: u64, _now: Instant) -> u64 {
        if self.state.layer == 1 || window.in_slow_start() {
            half(window, flight)
        } else {
            self.reduced(window, flight)
        }
    }

    fn on_event(&mut self, window: &mut Window, event: CongestionEvent, now: Instant) {
        match event {
            CongestionEvent::Loss { .. } | CongestionEvent::Ecn { .. } => {
                self.before = Some(self.state);
                if window.in_slow_start() {
                    self.state.unknown = true;
                } else {
                    self.settle(window);
                }
                react(self, window, event, now);
                if window.cwnd < self.threshold(self.state.layer, window) {
                    self.state.layer = (self.state.layer - 1).max(1);
                }
            }
            CongestionEvent::Timeout { first, .. } => {
                if first {
                    self.before = Some(self.state);
                }
                self.state = State { layer: 1, unknown: true };
                react(self, window, event, now);
            }
            CongestionEvent::Unvalidated { .. } | CongestionEvent::HandshakeLoss => {
                self.state.unknown = true;
                react(self, window, event, now);
            }
            CongestionEvent::RecoveryEnd { .. } => react(self, window, event, now),
        }
    }

    fn on_undo(&mut self, window: &mut Window, prior: Window, _now: Instant) {
        if let Some(before) = self.before.take() {
            self.state = before;
        }
        restore(window, prior);
    }
}
