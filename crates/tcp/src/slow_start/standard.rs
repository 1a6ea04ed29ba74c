//! The slow start of RFC 5681, counting bytes.
//!
//! Appropriate Byte Counting (RFC 3465) limits what one acknowledgement may count for to L segments, and after a timeout, when a peer may acknowledge
//! at once what had arrived before, to one. That is a parameter, 2 at most by section 2.3, which is not enforced. Without it, as in QUIC (RFC 9002)
//! and today's kernels, the window at most doubles each round trip however the receiver divides its acknowledgements. (Congestion avoidance counts
//! bytes in any case, as RFC 3465 section 2.1 has it.)

use super::SlowStart;
use crate::ack_context::AckContext;
use crate::congestion::Window;
use core::num::NonZeroU32;

/// The slow start of RFC 5681.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Standard {
    /// RFC 3465's L, in segments per acknowledgement; `None` for no limit.
    pub limit: Option<NonZeroU32>,
    /// In the slow start that follows a timeout.
    after_timeout: bool,
}

impl Standard {
    /// With RFC 3465's L, in segments per acknowledgement; without one, or with zero, there is no limit.
    pub fn new(limit: Option<u32>) -> Self {
        Standard { limit: limit.and_then(NonZeroU32::new), after_timeout: false }
    }
}

impl SlowStart for Standard {
    fn name(&self) -> &'static str {
        "standard"
    }

    // [MUST-19] slow start
    fn grow(&mut self, window: &mut Window, acked: u64, _ack: &AckContext) -> u64 {
        let counted = match self.limit {
            // Section 2.3.
            Some(limit) => {
                let segments = if self.after_timeout { 1 } else { u64::from(limit.get()) };
                acked.min(segments * u64::from(window.mss))
            }
            None => acked,
        };
        window.slow_start(counted)
    }

    fn on_reduction(&mut self, timeout: bool) {
        self.after_timeout = timeout;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 3465 section 2.3: an acknowledgement of five segments counts for L = 2, and for one after a timeout, until the next reduction that is
    /// none.
    #[test]
    fn what_an_acknowledgement_counts_for() {
        let window = Window { cwnd: 10_000, cwnd_cnt: 0, ssthresh: u64::MAX, mss: 1000 };
        for (limit, fresh, later) in
            [(None, 5000, 5000), (Some(2), 2000, 1000), (Some(9), 5000, 1000)]
        {
            let mut unit = Standard::new(limit);
            let mut counted = |timeout: Option<bool>| {
                timeout.into_iter().for_each(|timeout| unit.on_reduction(timeout));
                let mut window = window;
                assert_eq!(unit.grow(&mut window, 5000, &AckContext::default()), 0);
                window.cwnd - 10_000
            };
            let grown = [None, Some(true), None, Some(false)].map(&mut counted);
            assert_eq!(grown, [fresh, later, later, fresh], "{limit:?}");
        }
    }
}
