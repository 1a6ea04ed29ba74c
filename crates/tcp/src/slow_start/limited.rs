//! Limited Slow-Start (RFC 3742): above `max_ssthresh` the window no longer doubles, but grows by at most half of `max_ssthresh` a round
//! trip. It counts bytes, where the RFC counts acknowledgements.

use super::SlowStart;
use crate::ack_context::AckContext;
use crate::congestion::Window;

/// The slow start of RFC 3742.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limited {
    /// `max_ssthresh`, in segments.
    pub max_ssthresh: u32,
}

impl Default for Limited {
    // Section 2: 100 segments.
    fn default() -> Self {
        Limited { max_ssthresh: 100 }
    }
}

impl SlowStart for Limited {
    fn name(&self) -> &'static str {
        "limited"
    }

    fn grow(&mut self, window: &mut Window, acked: u64, _ack: &AckContext) -> u64 {
        let max = u64::from(self.max_ssthresh.max(1)) * u64::from(window.mss);
        if window.cwnd <= max {
            return window.slow_start(acked);
        }
        // K = int(cwnd / (0.5 · max_ssthresh)); cwnd grows by a K-th of what is acknowledged.
        let divisor = (window.cwnd.saturating_mul(2) / max).max(1);
        let left = window.slow_start(acked / divisor);
        // Bytes beyond ssthresh count in full again.
        left.saturating_mul(divisor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beyond_the_limit_by_half_of_it_a_round_trip() {
        let mut window = Window { cwnd: 100_000, cwnd_cnt: 0, ssthresh: u64::MAX, mss: 1000 };
        let mut slow_start = Limited::default();
        let mut round = |window: &mut Window| {
            for _ in 0..window.cwnd / 1000 {
                assert_eq!(slow_start.grow(window, 1000, &AckContext::default()), 0);
            }
            window.cwnd
        };
        // At 100 segments the first acknowledgement adds a whole one; then K is 2, until 150 are reached, and then 3.
        let first = round(&mut window);
        assert_eq!(first, 100_000 + 1000 + 98 * 500 + 333);
        // Up to 200 segments, where K would be 4.
        assert_eq!(round(&mut window), first + 150 * 333);
    }

    #[test]
    fn the_rest_at_the_end_counts_in_full() {
        let mut window = Window { cwnd: 200_000, cwnd_cnt: 0, ssthresh: 200_100, mss: 1000 };
        // K = 4: of 1000 bytes 250 would count, of which 100 have room.
        assert_eq!(Limited::default().grow(&mut window, 1000, &AckContext::default()), 600);
        assert_eq!(window.cwnd, 200_100);
    }
}
