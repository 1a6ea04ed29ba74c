//! The paper's policy: the Target Window Modifier (section 3.2 and appendix B).
//!
//! One target window for all flows. At each packet that arrives:
//!
//! ```text
//! queue > upper:   count += size;  if count ≥ halve_after { target /= 2; count = 0 }
//! queue < lower:   target += size / 2^shift
//! ```
//!
//! and for an acknowledgement of a flow whose window is `desired`, in the Window Marker:
//!
//! ```text
//! desired > target:   desired −= newly acknowledged
//! desired < target:   desired = target
//! ```
//!
//! Differences from the paper, and choices where the paper is silent:
//! - The paper calls the counter's limit `div_const` in section 3.2 and `add_const` in appendix B, and the fraction the other
//!   way round. Here they are `halve_after` and `raise` ("1/64").
//! - The target's first value is not given: 64 KiB, the largest window without scaling.
//! - The target is kept between one small segment (536 bytes) and a limit (1 MiB unless set). With an empty queue it would
//!   otherwise rise without end, and be of no use when the queue fills.
//! - The paper has two rules for windows above the target ([`Rule`]). Section 3.2 has each flow's window brought to it as acknowledgements come. Appendix
//!   B, "the formal description of our algorithm", lowers it only while the queue is above the upper threshold. Figures 7 to 10 come out with the latter,
//!   which is the default. Figure 5 needs the former, `rule=section-3.2`: with appendix B unequal windows stay unequal between the thresholds.
//! - A new flow is granted what its receiver's SYN says, up to 64 KiB, whatever the target has come down to. The paper rewrites no SYNs.
//!   With `syn_windows` the SYN gets the target too, so that there is nothing to use up first. Appendix B's condition is about windows
//!   that fall, and does not apply: the first one does not.
//! - The appendix's reduction can go below the target by less than one acknowledgement and is then set to it; so it is here.

use core::num::NonZeroU64;

use transom_base::time::Instant;

use super::policy::{AckAction, AckContext, Policy, SynContext};
use crate::queue::{Length, Threshold};

/// When windows above the target fall.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Rule {
    /// While the queue is above the upper threshold (appendix B).
    #[default]
    AppendixB,
    /// Whenever something is acknowledged (section 3.2).
    Section32,
}

/// The parameters of `TargetWindow`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TargetWindowConfig {
    /// Above it the target comes down (th_U).
    pub upper: Threshold,
    /// Below it the target rises (th_L); not zero, or it never would.
    pub lower: Threshold,
    /// How much has to arrive while the queue is above `upper` before the target is halved.
    pub halve_after: Threshold,
    /// The target rises by each packet's size divided by two to this power.
    pub raise_shift: u8,
    /// The first target, in bytes.
    pub initial: NonZeroU64,
    /// The highest target, in bytes.
    pub most: NonZeroU64,
    /// When windows above the target fall.
    pub rule: Rule,
    /// The receiver's SYN gets the target as well.
    pub syn_windows: bool,
    /// Writes the target into every acknowledgement without a memory of its flow, as if no window were scaled. For
    /// demonstrations of what happens then.
    pub naive: bool,
}

/// The smallest target.
pub(super) const LEAST: u64 = 536;

impl TargetWindowConfig {
    /// The paper's parameters (figure 5), for these thresholds.
    pub const fn new(upper: Threshold, lower: Threshold) -> Self {
        const fn bytes(bytes: u64) -> NonZeroU64 {
            match NonZeroU64::new(bytes) {
                Some(bytes) => bytes,
                None => NonZeroU64::MIN,
            }
        }
        TargetWindowConfig {
            upper,
            lower,
            halve_after: Threshold::Packets(15),
            raise_shift: 6,
            initial: bytes(1 << 16),
            most: bytes(1 << 20),
            rule: Rule::AppendixB,
            syn_windows: false,
            naive: false,
        }
    }
}

/// The Target Window Modifier.
#[derive(Clone, Debug)]
pub(crate) struct TargetWindow {
    config: TargetWindowConfig,
    target: u64,
    /// The arrivals above the upper threshold, in the unit of `halve_after`.
    count: u64,
}

impl TargetWindow {
    /// With its first target.
    pub(crate) const fn new(config: TargetWindowConfig) -> Self {
        TargetWindow { config, target: config.initial.get(), count: 0 }
    }
}

impl Policy for TargetWindow {
    fn on_arrival(&mut self, _: Instant, len: usize, queue: Length) {
        let TargetWindow { config, target, count } = self;
        if config.upper.amount() < config.upper.measure(queue) {
            let arrived = Length { packets: 1, bytes: len as u64 };
            *count = count.saturating_add(config.halve_after.measure(arrived));
            if *count >= config.halve_after.amount() {
                *target = (*target / 2).max(LEAST);
                *count = 0;
            }
        } else if config.lower.amount() > config.lower.measure(queue) {
            let rise = (len as u64) >> config.raise_shift.min(63);
            *target = target.saturating_add(rise).min(config.most.get());
        }
    }

    fn on_ack(&mut self, _: Instant, ack: &AckContext) -> AckAction {
        let TargetWindowConfig { rule, upper, .. } = self.config;
        let fall = rule == Rule::Section32 || upper.amount() < upper.measure(ack.queue);
        AckAction::Window { bytes: self.target, fall }
    }

    fn on_syn(&mut self, _: Instant, _: &SynContext) -> Option<u64> {
        self.config.syn_windows.then_some(self.target)
    }

    fn target(&self) -> Option<u64> {
        Some(self.target)
    }

    fn per_flow(&self) -> bool {
        !self.config.naive
    }
}

#[cfg(test)]
mod tests;
