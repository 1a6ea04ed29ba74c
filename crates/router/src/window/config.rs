//! Which window control, with which parameters.

mod text;

use alloc::boxed::Box;
use alloc::string::String;
use core::num::NonZeroU64;

use transom_base::time::Duration;

use super::{
    AckDelay, ExplicitWindow, FairShare, Nothing, Policy, TargetWindow, TargetWindowConfig,
};
use crate::parameters::ArgumentError;
use crate::queue::Limit;

/// A policy and its parameters.
///
/// As text, the name and its parameters: `target-window(upper=35 packets, lower=15 packets)`.
///
/// | policy | parameters (defaults) |
/// |---|---|
/// | `target-window` | `upper`, `lower` (needed; in packets or bytes), `halve-after` (15 packets), `raise` (1/64), `initial` (64KiB), `most` (1MiB), `rule` (appendix-b, or section-3.2), `syn-windows`, `naive` |
/// | `explicit-window` | `queue` (needed; in packets), `mss` (1460B), `interval` (10ms) |
/// | `ack-delay` | `above` (needed; in bytes), `rate` (from the link), `most` (500ms) |
/// | `fair-share` | `queue` (needed; in bytes), `rate` (from the link), `rtt` (100ms), `syn-windows` |
/// | `none` | |
///
/// `rule` says when windows above the target fall ([`Rule`](super::Rule)). `syn-windows` and `naive` are switches, off by default. `syn-windows` also rewrites the receiver's SYN, whose window is
/// the first one that a sender sees; the paper does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PolicyConfig {
    /// The paper's: one target window for all flows.
    TargetWindow(TargetWindowConfig),
    /// Explicit window adaptation: a window from the free space of the queue.
    ExplicitWindow {
        /// The queue's length, in packets (B).
        queue: u64,
        /// The size of a full segment, in bytes.
        mss: u16,
        /// How often α is adapted.
        interval: Duration,
    },
    /// Acknowledgements are held back while the queue is long.
    AckDelay {
        /// The queue below which acknowledgements are not delayed, in bytes.
        above: u64,
        /// The link's rate, in bits per second; `None` until it is known which link.
        rate: Option<NonZeroU64>,
        /// The longest delay.
        most: Duration,
    },
    /// Each active flow gets its share of the bandwidth-delay product.
    FairShare {
        /// The queue length to aim for, in bytes.
        queue: u64,
        /// The link's rate, in bits per second; `None` until it is known which link.
        rate: Option<NonZeroU64>,
        /// The round-trip time of flows whose handshake was not timed.
        rtt: Duration,
        /// The receiver's SYN gets a share as well.
        syn_windows: bool,
    },
    /// `Nothing`: flows are followed and counted, no packet is changed or held. As text `none` alone, without parentheses.
    None,
}

/// The parameters of a [`WindowControl`](super::WindowControl).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ControlConfig {
    /// The policy.
    pub policy: PolicyConfig,
    /// How many flows are remembered at most; 64 bytes each.
    pub flows: u32,
    /// How long a flow may be silent before it is forgotten.
    pub idle: Duration,
    /// Only returning packets pass here; data takes another path. So the answer to a SYN is accepted without the SYN. A host behind the
    /// queue can then fill the table.
    pub returns_only: bool,
    /// Flows are searched for one by one, as in the paper, instead of by a hash.
    pub searched: bool,
    /// The least window for policies that remember no flows, in bytes.
    pub mss: u16,
}

impl ControlConfig {
    /// This policy, with 65536 flows, forgotten after five minutes.
    pub const fn new(policy: PolicyConfig) -> Self {
        ControlConfig {
            policy,
            flows: 1 << 16,
            idle: Duration::from_secs(300),
            returns_only: false,
            searched: false,
            mss: 1460,
        }
    }

    /// Checks that the parameters are consistent.
    ///
    /// # Errors
    /// [`ControlConfigError`] that says which does not.
    pub fn validate(&self) -> Result<(), ControlConfigError> {
        if self.idle < Duration::from_secs(1) {
            return Err(ControlConfigError::Idle);
        }
        if self.flows > MAX_FLOWS {
            return Err(ControlConfigError::Flows { flows: self.flows });
        }
        if self.mss == 0 {
            return Err(ControlConfigError::Zero { policy: "window control", parameter: "mss" });
        }
        self.policy.validate()
    }
}

/// The most flows that can be configured: 1 GiB.
const MAX_FLOWS: u32 = 1 << 24;

/// Why there is no such window control.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ControlConfigError {
    /// It names no policy, or its parentheses do not match.
    #[error(
        "`{0}` is not a window policy: write target-window, explicit-window, ack-delay or fair-share with parameters in \
         parentheses, such as target-window(upper=35 packets, lower=15 packets), or none"
    )]
    NotAPolicy(String),
    /// The policy has no such parameter, or the parameter no such value.
    #[error(transparent)]
    Argument(#[from] ArgumentError),
    /// A parameter has no default and was not given.
    #[error("{policy} needs `{parameter}`, such as {parameter}={example}")]
    Missing {
        /// The policy.
        policy: &'static str,
        /// The parameter.
        parameter: &'static str,
        /// An example of a valid configuration.
        example: &'static str,
    },
    /// A parameter must be above zero.
    #[error("{policy}'s `{parameter}` must be above zero")]
    Zero {
        /// The policy.
        policy: &'static str,
        /// The parameter.
        parameter: &'static str,
    },
    /// The thresholds do not count the same.
    #[error("target-window's `upper` and `lower` must both count packets, or both bytes")]
    MixedUnits,
    /// The thresholds are the wrong way round.
    #[error("target-window's `lower` ({lower}) must be below its `upper` ({upper})")]
    Thresholds {
        /// The lower one.
        lower: Limit,
        /// The upper one.
        upper: Limit,
    },
    /// The target can only fall.
    #[error(
        "target-window's `lower` must be above zero: no queue is shorter, so the target could never rise"
    )]
    NeverRises,
    /// The target begins above its limit.
    #[error("target-window's `initial` ({initial} B) is above its `most` ({most} B)")]
    Initial {
        /// The first target.
        initial: u64,
        /// The highest.
        most: u64,
    },
    /// A threshold lies beyond what the queue holds.
    #[error(
        "a queue limited to {limit} never exceeds {policy}'s `{parameter}` ({value}); lower it"
    )]
    NeverReached {
        /// The policy.
        policy: &'static str,
        /// The parameter.
        parameter: &'static str,
        /// Its value.
        value: Limit,
        /// The queue's capacity.
        limit: Limit,
    },
    /// A SYN may be repeated, so its earlier edge has to be remembered.
    #[error(
        "target-window's `syn-windows` needs a flow table, which `naive` does not have; leave one of them out"
    )]
    NaiveSyns,
    /// Flows would be forgotten while they go on.
    #[error("flows must stay in the table until they have been silent for at least a second")]
    Idle,
    /// The table cannot be so large.
    #[error("the flow table has room for at most {MAX_FLOWS} flows, not {flows}")]
    Flows {
        /// The configured number.
        flows: u32,
    },
}

impl PolicyConfig {
    /// The policy's name.
    pub const fn name(&self) -> &'static str {
        match self {
            PolicyConfig::TargetWindow(_) => "target-window",
            PolicyConfig::ExplicitWindow { .. } => "explicit-window",
            PolicyConfig::AckDelay { .. } => "ack-delay",
            PolicyConfig::FairShare { .. } => "fair-share",
            PolicyConfig::None => "none",
        }
    }

    /// The policy.
    ///
    /// # Errors
    /// [`ControlConfigError`] if the parameters make no sense, or the link's rate is missing.
    pub fn build(&self) -> Result<Box<dyn Policy>, ControlConfigError> {
        self.validate()?;
        Ok(match *self {
            PolicyConfig::TargetWindow(config) => Box::new(TargetWindow::new(config)),
            PolicyConfig::ExplicitWindow { queue, mss, interval } => {
                Box::new(ExplicitWindow::new(queue, mss, interval))
            }
            PolicyConfig::AckDelay { above, rate, most } => {
                Box::new(AckDelay { above, rate: rate.ok_or(self.no_rate())?, most })
            }
            PolicyConfig::FairShare { queue, rate, rtt, syn_windows } => {
                let rate = rate.ok_or(self.no_rate())?;
                Box::new(FairShare { queue, rate, rtt, syn_windows })
            }
            PolicyConfig::None => Box::new(Nothing),
        })
    }

    /// Whether it arrives at one window for all flows: see [`Policy::target`].
    pub const fn has_target(&self) -> bool {
        matches!(self, PolicyConfig::TargetWindow(_) | PolicyConfig::ExplicitWindow { .. })
    }

    fn no_rate(&self) -> ControlConfigError {
        let policy = self.name();
        ControlConfigError::Missing { policy, parameter: "rate", example: "10Mbit/s" }
    }

    /// The same policy in front of a link of this rate: fills in what follows from it and was left out.
    #[must_use]
    pub fn on_link(mut self, bits_per_second: u64) -> Self {
        if let PolicyConfig::AckDelay { rate, .. } | PolicyConfig::FairShare { rate, .. } =
            &mut self
        {
            *rate = rate.or(NonZeroU64::new(bits_per_second));
        }
        self
    }

    /// Checks that the parameters are consistent.
    fn validate(&self) -> Result<(), ControlConfigError> {
        let policy = self.name();
        let above_zero = |parameter, zero: bool| match zero {
            true => Err(ControlConfigError::Zero { policy, parameter }),
            false => Ok(()),
        };
        match self {
            PolicyConfig::TargetWindow(config) => {
                above_zero("upper", config.upper.amount() == 0)?;
                above_zero("halve-after", config.halve_after.amount() == 0)?;
                let (upper, lower) = (config.upper.as_limit(), config.lower.as_limit());
                if config.upper.counts_bytes() != config.lower.counts_bytes() {
                    return Err(ControlConfigError::MixedUnits);
                }
                if config.lower.amount() >= config.upper.amount() {
                    return Err(ControlConfigError::Thresholds { lower, upper });
                }
                if config.lower.amount() == 0 {
                    return Err(ControlConfigError::NeverRises);
                }
                let (initial, most) = (config.initial.get(), config.most.get());
                if initial > most {
                    return Err(ControlConfigError::Initial { initial, most });
                }
                if config.naive && config.syn_windows {
                    return Err(ControlConfigError::NaiveSyns);
                }
                Ok(())
            }
            PolicyConfig::ExplicitWindow { queue, mss, interval } => {
                above_zero("queue", *queue == 0)?;
                above_zero("mss", *mss == 0)?;
                above_zero("interval", interval.is_zero())
            }
            PolicyConfig::AckDelay { most, .. } => above_zero("most", most.is_zero()),
            PolicyConfig::FairShare { rtt, .. } => above_zero("rtt", rtt.is_zero()),
            PolicyConfig::None => Ok(()),
        }
    }

    /// Whether it can have an effect at a queue with this limit.
    ///
    /// # Errors
    /// [`ControlConfigError::NeverReached`].
    pub fn fits(&self, limit: Limit) -> Result<(), ControlConfigError> {
        let (parameter, value) = match self {
            PolicyConfig::TargetWindow(config) => ("upper", config.upper.as_limit()),
            PolicyConfig::AckDelay { above, .. } => ("above", Limit::Bytes(*above)),
            PolicyConfig::None
            | PolicyConfig::FairShare { .. }
            | PolicyConfig::ExplicitWindow { .. } => return Ok(()),
        };
        let never = match (value, limit) {
            (Limit::Packets(value), Limit::Packets(limit))
            | (Limit::Bytes(value), Limit::Bytes(limit)) => value >= limit,
            _ => false,
        };
        match never {
            true => Err(ControlConfigError::NeverReached {
                policy: self.name(),
                parameter,
                value,
                limit,
            }),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
