//! The slow start of RFC 5681, counting bytes.
//!
//! Appropriate Byte Counting (RFC 3465) limits what one acknowledgement may count for to L segments, and after a timeout, when a peer may acknowledge
//! at once what had arrived before, to one. That is a parameter, 2 at most by section 2.3, which is not enforced. Without it, as in QUIC (RFC 9002)
//! and today's kernels, the window at most doubles each round trip however the receiver divides its acknowledgements. (Congestion avoidance counts
//! bytes in any case, as RFC 3465 section 2.1 has it.)
//!
//! ssthresh begins arbitrarily high (RFC 5681 section 3.1). Linux keeps that of earlier connections with the route, and begins with it. That is a
//! parameter as well.

use super::SlowStart;
use crate::ack_context::AckContext;
use crate::congestion::Window;
use core::num::NonZeroU32;

/// The slow start of RFC 5681.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Standard {
    /// RFC 3465's L, in segments per acknowledgement; `None` for no limit.
    pub(crate) limit: Option<NonZeroU32>,
    /// ssthresh at the beginning, in segments, until the window first grows.
    ssthresh: Option<NonZeroU32>,
    /// In the slow start that follows a timeout.
    after_timeout: bool,
}

impl Standard {
    /// With RFC 3465's L, in segments per acknowledgement; without one, or with zero, there is no limit.
    pub fn new(limit: Option<u32>) -> Self {
        let limit = limit.and_then(NonZeroU32::new);
        Standard { limit, ssthresh: None, after_timeout: false }
    }

    /// Beginning with an ssthresh in segments, as Linux does if it knows one of the route.
    pub(crate) fn beginning_at(self, ssthresh: NonZeroU32) -> Self {
        Standard { ssthresh: Some(ssthresh), ..self }
    }
}

impl SlowStart for Standard {
    fn name(&self) -> &'static str {
        "standard"
    }

    // [MUST-19] slow start
    fn grow(&mut self, window: &mut Window, acked: u64, _ack: &AckContext) -> u64 {
        if let Some(known) = self.ssthresh.take() {
            window.ssthresh = window.ssthresh.min(u64::from(known.get()) * u64::from(window.mss));
        }
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
        self.ssthresh = None;
        self.after_timeout = timeout;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The known ssthresh ends slow start there. The rest of the acknowledgement is congestion avoidance's, and a reduction makes the knowledge void.
    #[test]
    fn slow_start_ends_at_a_known_ssthresh() {
        let known = Standard::new(None).beginning_at(NonZeroU32::new(12).unwrap());
        let (mut fresh, mut void) = (known, known);
        let mut window = Window { cwnd: 10_000, cwnd_cnt: 0, ssthresh: u64::MAX, mss: 1000 };
        assert_eq!(fresh.grow(&mut window, 5000, &AckContext::default()), 3000);
        assert_eq!((window.cwnd, window.ssthresh), (12_000, 12_000));
        void.on_reduction(true);
        let mut window = Window { cwnd: 10_000, cwnd_cnt: 0, ssthresh: 50_000, mss: 1000 };
        assert_eq!(void.grow(&mut window, 5000, &AckContext::default()), 0);
        assert_eq!(window.ssthresh, 50_000);
    }

    /// RFC 3465 section 2.3: an acknowledgement of five segments counts for L = 2, and for one after a timeout, until the next reduction that is
    /// none.
    #[test]
    fn an_acknowledgement_counts_for_the_limit_at_most() {
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
