//! Windows that give each active flow its share of the bandwidth-delay product and of a small queue.
//!
//! ```text
//! window = (rate · RTT + queue) / active flows
//! ```
//!
//! The RTT is what the flow's own handshake took, so that flows of different lengths get the same rate, or a parameter where that was not
//! seen. The handshake's time has in it what waited in the queue then, and the window is too large by that. The queue's part makes up for
//! it. With `syn_windows` the receiver's SYN gets a share as well: that of one flow more than are active, over the parameter's RTT, as
//! nothing has been timed yet. A flow that cannot use its share leaves it unused: this is for links whose flows can.
//!
//! Transom's own; the paper does not have it.

use core::num::NonZeroU64;

use transom_base::time::{Duration, Instant};

use super::policy::{AckAction, AckContext, Policy, SynContext};
use crate::queue::Length;

/// The parameters of `FairShare`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FairShareConfig {
    /// The link's rate, in bits per second; `None` until it is known which link.
    pub(crate) rate: Option<NonZeroU64>,
    /// The round-trip time of flows whose handshake was not timed.
    pub(crate) rtt: Duration,
    /// The queue length to aim for, in bytes.
    pub(crate) queue: u64,
    /// The receiver's SYN gets a share as well.
    pub(crate) syn_windows: bool,
}

/// An equal share for each flow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FairShare {
    config: FairShareConfig,
    rate: NonZeroU64,
}

impl FairShare {
    /// With these parameters; `None` without a rate.
    pub(crate) fn new(config: FairShareConfig) -> Option<Self> {
        Some(FairShare { config, rate: config.rate? })
    }

    /// The share of one of several flows, in bytes.
    fn share(&self, rtt: Duration, flows: u32) -> u64 {
        let bits = u128::from(self.rate.get()) * u128::from(rtt.as_nanos());
        let bytes = bits / (8 * 1_000_000_000) + u128::from(self.config.queue);
        let share = bytes / u128::from(flows.max(1));
        share.try_into().unwrap_or(u64::MAX)
    }
}

impl Policy for FairShare {
    fn on_arrival(&mut self, _: Instant, _: usize, _: Length) {}

    fn on_ack(&mut self, _: Instant, ack: &AckContext) -> AckAction {
        let rtt = ack.rtt.unwrap_or(self.config.rtt);
        AckAction::Window { bytes: self.share(rtt, ack.active), fall: true }
    }

    fn on_syn(&mut self, _: Instant, syn: &SynContext) -> Option<u64> {
        let flows = syn.active.saturating_add(1);
        self.config.syn_windows.then(|| self.share(self.config.rtt, flows))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares() {
        let mut policy = FairShare::new(FairShareConfig {
            rate: NonZeroU64::new(10_000_000),
            rtt: Duration::from_millis(100),
            queue: 15_000,
            syn_windows: false,
        })
        .unwrap();
        let mut wish = |rtt, active| {
            policy.on_ack(
                Instant::ZERO,
                &AckContext {
                    queue: Length::default(),
                    advertised: 0,
                    newly_acked: 0,
                    mss: 0,
                    rtt,
                    active,
                },
            )
        };
        // 10 Mbit/s for 100 ms are 125,000 bytes; for 20 ms, 25,000.
        assert_eq!(wish(None, 1), AckAction::Window { bytes: 140_000, fall: true });
        let rtt = Some(Duration::from_millis(20));
        assert_eq!(wish(rtt, 10), AckAction::Window { bytes: 4_000, fall: true });
        assert_eq!(wish(rtt, 0), AckAction::Window { bytes: 40_000, fall: true });
    }

    #[test]
    fn a_new_flow_takes_its_share_of_one_more() {
        let config = FairShareConfig {
            rate: NonZeroU64::new(10_000_000),
            rtt: Duration::from_millis(100),
            queue: 15_000,
            syn_windows: true,
        };
        let syn = |active| SynContext { queue: Length::default(), advertised: 9, mss: 0, active };
        let wish =
            |config, active| FairShare::new(config).unwrap().on_syn(Instant::ZERO, &syn(active));
        assert_eq!((wish(config, 0), wish(config, 3)), (Some(140_000), Some(35_000)));
        assert_eq!(wish(config, u32::MAX), Some(0));
        assert_eq!(wish(FairShareConfig { syn_windows: false, ..config }, 0), None);
    }
}
