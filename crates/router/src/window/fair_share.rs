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

/// An equal share for each flow. Its parameters are those of [`PolicyConfig::FairShare`](super::PolicyConfig::FairShare).
#[derive(Clone, Copy, Debug)]
pub(super) struct FairShare {
    pub(super) queue: u64,
    pub(super) rate: NonZeroU64,
    pub(super) rtt: Duration,
    pub(super) syn_windows: bool,
}

impl FairShare {
    /// The share of one of several flows, in bytes.
    fn share(&self, rtt: Duration, flows: u32) -> u64 {
        let bits = u128::from(self.rate.get()) * u128::from(rtt.as_nanos());
        let bytes = bits / (8 * 1_000_000_000) + u128::from(self.queue);
        let share = bytes / u128::from(flows.max(1));
        share.try_into().unwrap_or(u64::MAX)
    }
}

impl Policy for FairShare {
    fn on_arrival(&mut self, _: Instant, _: usize, _: Length) {}

    fn on_ack(&mut self, _: Instant, ack: &AckContext) -> AckAction {
        let rtt = ack.rtt.unwrap_or(self.rtt);
        AckAction::Window { bytes: self.share(rtt, ack.active), fall: true }
    }

    fn on_syn(&mut self, _: Instant, syn: &SynContext) -> Option<u64> {
        let flows = syn.active.saturating_add(1);
        self.syn_windows.then(|| self.share(self.rtt, flows))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: FairShare = FairShare {
        queue: 15_000,
        rate: NonZeroU64::new(10_000_000).unwrap(),
        rtt: Duration::from_millis(100),
        syn_windows: true,
    };

    #[test]
    fn shares() {
        let mut policy = FairShare { syn_windows: false, ..POLICY };
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
        let syn = |active| SynContext { queue: Length::default(), advertised: 9, mss: 0, active };
        let wish = |mut policy: FairShare, active| policy.on_syn(Instant::ZERO, &syn(active));
        assert_eq!((wish(POLICY, 0), wish(POLICY, 3)), (Some(140_000), Some(35_000)));
        assert_eq!(wish(POLICY, u32::MAX), Some(0));
        assert_eq!(wish(FairShare { syn_windows: false, ..POLICY }, 0), None);
    }
}
