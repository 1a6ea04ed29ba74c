//! Delayed acknowledgements (RFC 1122 section 4.2.3.2, RFC 5681 section 4.2).
//!
//! An acknowledgement at least for every second full-sized segment, at once when a segment is out of order or fills
//! a gap, and never later than the delay (at most 500 ms; 40 ms here). The first segments of a connection are
//! acknowledged at once, so that the peer's slow start is not held up by a timer.

use super::{AckDecision, AckPolicy, Arrival};
use crate::time::Duration;

/// Arrivals acknowledged at once at the start.
const QUICK_AT_START: u32 = 16;

/// The policy of RFC 5681 section 4.2.
#[derive(Clone, Debug)]
pub(crate) struct DelayedAck {
    delay: Duration,
    unacknowledged: u64,
    quick: u32,
}

impl DelayedAck {
    /// A policy that waits at most `delay`; anything above half a second becomes half a second.
    pub(crate) fn new(delay: Duration) -> Self {
        DelayedAck {
            delay: delay.min(Duration::from_millis(500)),
            unacknowledged: 0,
            quick: QUICK_AT_START,
        }
    }
}

impl Default for DelayedAck {
    fn default() -> Self {
        DelayedAck::new(Duration::from_millis(40))
    }
}

impl AckPolicy for DelayedAck {
    // [SHLD-18] delayed; [SHLD-19] every second segment; [MAY-13] what does not come in order at once
    fn on_arrival(&mut self, arrival: &Arrival<'_>) -> AckDecision {
        self.unacknowledged = self.unacknowledged.saturating_add(arrival.bytes);
        if self.quick > 0 {
            self.quick -= 1;
            return AckDecision::Now;
        }
        if !arrival.in_order || arrival.fin || self.unacknowledged >= 2 * arrival.segment {
            return AckDecision::Now;
        }
        AckDecision::By(arrival.now + self.delay)
    }

    fn on_ack_sent(&mut self) {
        self.unacknowledged = 0;
    }

    fn quick(&mut self, arrivals: u32) {
        self.quick = arrivals;
    }

    fn is_quick(&self) -> bool {
        self.quick > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rto::TimerUnit;
    use crate::rto::rfc6298::{Rfc6298, Rfc6298Config};
    use crate::time::Instant;
    use alloc::boxed::Box;

    fn arrival(bytes: u64, in_order: bool) -> Arrival<'static> {
        Arrival {
            now: Instant::ZERO,
            bytes,
            segment: 1000,
            in_order,
            pushed: false,
            fin: false,
            window: 64_000,
            timer: Box::leak(Box::new(TimerUnit::Rfc6298(Rfc6298::new(Rfc6298Config::default())))),
        }
    }

    #[test]
    fn every_second_full_segment_and_every_surprise() {
        let mut policy = DelayedAck::default();
        policy.quick(0);
        let later = AckDecision::By(Instant::from_millis(40));
        assert_eq!(policy.on_arrival(&arrival(1000, true)), later);
        assert_eq!(policy.on_arrival(&arrival(1000, true)), AckDecision::Now);
        policy.on_ack_sent();
        assert_eq!(policy.on_arrival(&arrival(1000, true)), later);
        policy.on_ack_sent();
        assert_eq!(policy.on_arrival(&arrival(1, false)), AckDecision::Now);
        policy.on_ack_sent();
        assert_eq!(policy.on_arrival(&arrival(64_000, true)), AckDecision::Now);
    }

    #[test]
    fn the_delay_is_never_more_than_half_a_second() {
        assert_eq!(DelayedAck::new(Duration::from_secs(3)).delay, Duration::from_millis(500));
    }
}
