//! How often a connection answers segments that it does not accept.
//!
//! Challenge acknowledgements (RFC 5961) and acknowledgements of unacceptable segments answer a possibly forged
//! packet, so their rate is limited. Without a limit, two peers that each find the other's segments unacceptable
//! would answer each other for ever. Each connection has its own budget, so that using it reveals nothing about
//! other connections (a shared budget is a side channel).

use crate::time::{Duration, Instant};

/// Replies per [`INTERVAL`].
const BUDGET: u8 = 10;
const INTERVAL: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ReplyLimiter {
    started: Instant,
    used: u8,
}

impl ReplyLimiter {
    /// Whether one more reply may leave at `now`; counts it if so.
    pub(super) fn allow(&mut self, now: Instant) -> bool {
        if now.since(self.started) >= INTERVAL {
            *self = ReplyLimiter { started: now, used: 0 };
        }
        let allowed = self.used < BUDGET;
        self.used += u8::from(allowed);
        allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_per_second() {
        let mut limiter = ReplyLimiter::default();
        let start = Instant::from_secs(100);
        let allowed =
            (0..100).filter(|i| limiter.allow(start + Duration::from_millis(i * 9))).count();
        assert_eq!(allowed, 10);
        assert!(limiter.allow(start + Duration::from_secs(1)));
    }
}
