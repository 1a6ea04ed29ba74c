//! Delaying acknowledgements while the queue is long (the paper's references 15 and 16).
//!
//! An acknowledgement is delayed until the part of the queue above a threshold has drained. The data that it releases then
//! finds the queue at the threshold. It needs no memory of flows and changes no packet. It raises the round-trip time, which
//! senders measure.
//!
//! Deviation: the references' schemes differ among each other, and their texts could not be consulted. This is the rule that
//! they share, with a limit for the delay.

use core::num::NonZeroU64;

use transom_base::time::{Duration, Instant};

use super::policy::{AckAction, AckContext, Policy};
use crate::queue::Length;

/// Holds acknowledgements back. Its parameters are those of [`PolicyConfig::AckDelay`](super::PolicyConfig::AckDelay).
#[derive(Clone, Copy, Debug)]
pub(super) struct AckDelay {
    pub(super) above: u64,
    pub(super) rate: NonZeroU64,
    pub(super) most: Duration,
}

impl Policy for AckDelay {
    fn on_arrival(&mut self, _: Instant, _: usize, _: Length) {}

    fn on_ack(&mut self, _: Instant, ack: &AckContext) -> AckAction {
        let excess = ack.queue.bytes.saturating_sub(self.above);
        let nanos = u128::from(excess) * 8 * 1_000_000_000 / u128::from(self.rate.get());
        let delay = Duration::from_nanos(nanos.try_into().unwrap_or(u64::MAX));
        match delay.min(self.most) {
            Duration::ZERO => AckAction::AsItIs,
            delay => AckAction::Hold(delay),
        }
    }

    fn per_flow(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_acknowledgement_waits_for_the_excess_to_drain() {
        let mut policy = AckDelay {
            above: 15_000,
            rate: NonZeroU64::new(10_000_000).unwrap(),
            most: Duration::from_millis(20),
        };
        let mut wish = |bytes| {
            policy.on_ack(
                Instant::ZERO,
                &AckContext {
                    queue: Length { packets: 1, bytes },
                    advertised: 0,
                    newly_acked: 0,
                    mss: 0,
                    rtt: None,
                    active: 1,
                },
            )
        };
        assert_eq!(wish(15_000), AckAction::AsItIs);
        // 10,000 bytes at 10 Mbit/s.
        assert_eq!(wish(25_000), AckAction::Hold(Duration::from_millis(8)));
        assert_eq!(wish(75_000), AckAction::Hold(Duration::from_millis(20)));
    }
}
