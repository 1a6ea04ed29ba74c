//! Acknowledgements as Linux 6.18 sends them: quick ones at the start, then delayed ones whose delay follows the arrivals, and
//! later ones where the two ends take turns.
//!
//! Three mechanisms decide. *Quick acknowledgements*: some arrivals are acknowledged at once when the first data arrives, after
//! an idle period longer than the retransmission timeout, and after a duplicate or out-of-order arrival. Their number is that of
//! the segments in half of the offered window, 2 at least and 16 at most. *The delay* starts at 40 ms and follows the time
//! between arrivals, up to the smoothed round-trip time and 200 ms. *Ping-pong mode*: when a reply leaves within the delay, the
//! two ends take turns. Then an acknowledgement waits for the next reply, and there are no quick acknowledgements. It ends when
//! a delay passes without a reply.
//!
//! More than one full segment is acknowledged at once, as in RFC 5681 section 4.2. So is data that the application has read to
//! the end, if a partial segment (or a full one with PSH) shows that the peer had no more to send.
//!
//! A difference from Linux: it does not wait for the reader if an acknowledgement could not move the window.

use super::{AckDecision, AckPolicy, Arrival};
use crate::rto::RetransmissionTimer as _;
use crate::time::{Duration, Instant};

/// Arrivals acknowledged at once, at most (Linux' `TCP_MAX_QUICKACKS`).
const MAX_QUICK: u64 = 16;

/// Linux' `TCP_ATO_MIN` and `TCP_DELACK_MIN`.
const MIN_DELAY: Duration = Duration::from_millis(40);
/// Linux' `TCP_DELACK_MAX`.
const MAX_DELAY: Duration = Duration::from_millis(200);
/// Without the peer's small segments the delay may follow the arrivals up to half a second, before the limit above.
const SLOW_ARRIVALS: Duration = Duration::from_millis(500);

/// The policy of Linux.
#[derive(Clone, Debug)]
pub(crate) struct QuickAck {
    max: Duration,
    /// The delay that follows the arrivals; zero before the first.
    delay: Duration,
    last_arrival: Instant,
    quick: u64,
    ping_pong: bool,
    unacknowledged: u64,
    /// A segment has arrived that ended what the peer had to send; a second one.
    pushed: bool,
    pushed_again: bool,
    /// An acknowledgement waits.
    waits: bool,
}

impl QuickAck {
    /// A policy that waits at most `max`; anything above half a second becomes half a second.
    pub(crate) fn new(max: Duration) -> Self {
        QuickAck {
            max: max.min(Duration::from_millis(500)),
            delay: Duration::ZERO,
            last_arrival: Instant::ZERO,
            quick: 0,
            ping_pong: false,
            unacknowledged: 0,
            pushed: false,
            pushed_again: false,
            waits: false,
        }
    }

    /// Linux' `tcp_incr_quickack`.
    fn add_quick(&mut self, arrival: &Arrival<'_>) {
        let half = arrival.window / (2 * arrival.segment.max(1));
        let quick = if half == 0 { 2 } else { half.min(MAX_QUICK) };
        self.quick = self.quick.max(quick);
    }

    /// Linux' `tcp_event_data_recv`.
    fn follow(&mut self, arrival: &Arrival<'_>) {
        let since = arrival.now.since(self.last_arrival);
        if self.delay.is_zero() {
            self.add_quick(arrival);
            self.delay = MIN_DELAY;
        } else if since <= MIN_DELAY.over(2) {
            self.delay = self.delay.over(2) + MIN_DELAY.over(2);
        } else if since < self.delay {
            self.delay = (self.delay.over(2) + since).min(arrival.timer.rto());
        } else if since > arrival.timer.rto() {
            self.add_quick(arrival);
        }
        self.last_arrival = arrival.now;
    }

    /// Linux' `tcp_send_delayed_ack`.
    fn delay(&self, arrival: &Arrival<'_>) -> Duration {
        let mut delay = self.delay;
        if delay > MIN_DELAY {
            let turns = self.ping_pong || self.pushed;
            let most = if turns { MAX_DELAY } else { SLOW_ARRIVALS };
            let rtt = arrival.timer.estimate().map_or(most, |known| known.srtt.max(MIN_DELAY));
            delay = delay.min(most).min(rtt);
        }
        delay.min(self.max)
    }
}

impl Default for QuickAck {
    fn default() -> Self {
        QuickAck::new(MAX_DELAY)
    }
}

impl AckPolicy for QuickAck {
    fn on_arrival(&mut self, arrival: &Arrival<'_>) -> AckDecision {
        self.unacknowledged = self.unacknowledged.saturating_add(arrival.bytes);
        self.waits = true;
        self.follow(arrival);
        if arrival.pushed {
            self.pushed_again |= self.pushed;
            self.pushed = true;
        }
        if !arrival.in_order {
            self.add_quick(arrival);
            self.ping_pong = false;
            self.delay = MIN_DELAY;
            return AckDecision::Now;
        }
        let at_once = arrival.fin
            || self.unacknowledged > arrival.segment
            || (self.quick > 0 && !self.ping_pong);
        if at_once { AckDecision::Now } else { AckDecision::By(arrival.now + self.delay(arrival)) }
    }

    fn on_ack_sent(&mut self) {
        self.unacknowledged = 0;
        self.pushed = false;
        self.pushed_again = false;
        if core::mem::take(&mut self.waits) && self.quick > 0 {
            self.quick -= 1;
            if self.quick == 0 {
                self.delay = MIN_DELAY;
            }
        }
    }

    fn on_data_sent(&mut self, now: Instant) {
        // A reply.
        self.ping_pong |= !self.delay.is_zero() && now.since(self.last_arrival) < self.delay;
    }

    fn on_delay_over(&mut self, rto: Duration) {
        if self.ping_pong {
            self.ping_pong = false;
            self.delay = MIN_DELAY;
        } else {
            self.delay = self.delay.doubled(1).min(rto);
        }
    }

    fn on_drained(&mut self) -> bool {
        self.waits && (self.pushed_again || (self.pushed && !self.ping_pong))
    }

    /// Leaves ping-pong mode, or enters it (`TCP_QUICKACK`).
    fn quick(&mut self, arrivals: u32) {
        self.ping_pong = arrivals == 0;
    }

    fn is_quick(&self) -> bool {
        !self.ping_pong
    }

    fn begin_late(&mut self) {
        self.delay = MIN_DELAY;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rto::rfc6298::{Rfc6298, Rfc6298Config};
    use crate::rto::{Estimate, TimerUnit};
    use alloc::boxed::Box;

    const SEGMENT: u64 = 1000;

    /// After one sample of so many milliseconds, the round-trip time: of 100, the timeout is 300.
    fn arrival(srtt: u64, at: u64) -> Arrival<'static> {
        let timer = Rfc6298::from_estimate(
            Rfc6298Config { min_variation: Duration::ZERO, ..Rfc6298Config::default() },
            Estimate::first(Duration::from_millis(srtt)),
        );
        Arrival {
            now: Instant::from_millis(at),
            bytes: SEGMENT,
            segment: SEGMENT,
            in_order: true,
            pushed: false,
            fin: false,
            window: 64_000,
            timer: Box::leak(Box::new(TimerUnit::Rfc6298(timer))),
        }
    }

    /// How many arrivals are acknowledged at once before one waits.
    fn quick_ones(policy: &mut QuickAck, from: u64, window: u64) -> u64 {
        for n in 0..100 {
            match policy.on_arrival(&Arrival { window, ..arrival(100, from + n) }) {
                AckDecision::Now => policy.on_ack_sent(),
                AckDecision::By(_) => return n,
            }
        }
        panic!("they never end");
    }

    #[test]
    fn the_first_arrivals_are_acknowledged_at_once_as_many_as_half_the_window_holds() {
        for (window, expected) in
            [(64_000, 16), (33_000, 16), (20_000, 10), (2_000, 1), (1_000, 2), (0, 2)]
        {
            assert_eq!(quick_ones(&mut QuickAck::default(), 1000, window), expected, "{window}");
        }
    }

    #[test]
    fn a_silence_longer_than_the_timeout_brings_quick_ones_again() {
        let mut policy = QuickAck::default();
        quick_ones(&mut policy, 1000, 64_000);
        policy.on_ack_sent();
        assert_eq!(quick_ones(&mut policy, 1200, 64_000), 0, "not that long");
        policy.on_ack_sent();
        assert_eq!(quick_ones(&mut policy, 1600, 20_000), 10);
    }

    #[test]
    fn in_ping_pong_mode_acknowledgements_wait_for_the_reply() {
        let arrival = |at| arrival(100, at);
        let mut policy = QuickAck::default();
        assert_eq!(policy.on_arrival(&arrival(1000)), AckDecision::Now);
        policy.on_ack_sent();
        policy.on_data_sent(Instant::from_millis(1010));
        assert!(!policy.is_quick());
        let later = AckDecision::By(Instant::from_millis(1060));
        assert_eq!(policy.on_arrival(&arrival(1020)), later);
        // No reply came in time.
        policy.on_delay_over(Duration::from_millis(300));
        assert!(policy.is_quick());
        assert_eq!(policy.on_arrival(&arrival(1100)), AckDecision::Now);
        // One that leaves long after the last arrival is no reply.
        policy.on_ack_sent();
        policy.on_data_sent(Instant::from_millis(1160));
        assert!(policy.is_quick());
        policy.quick(0);
        assert!(!policy.is_quick());
        policy.quick(16);
        assert!(policy.is_quick());
    }

    #[test]
    fn the_delay_follows_the_arrivals_up_to_a_round_trip() {
        let mut policy = QuickAck::default();
        policy.begin_late();
        let wait = |policy: &mut QuickAck, at: u64, srtt: u64| {
            let decision = policy.on_arrival(&Arrival { bytes: 10, ..arrival(srtt, at) });
            policy.on_ack_sent();
            let AckDecision::By(by) = decision else { panic!("at once") };
            by.since(Instant::from_millis(at)).as_millis()
        };
        // A first arrival long after the clock's zero would bring quick ones.
        policy.last_arrival = Instant::from_millis(1000);
        assert_eq!(wait(&mut policy, 1010, 100), 40);
        // 20 + 30 ms between arrivals, then 25 + 30, towards twice the time between them.
        assert_eq!(wait(&mut policy, 1040, 100), 50);
        assert_eq!(wait(&mut policy, 1070, 100), 55);
        // The timer doubles it, the round-trip time bounds it.
        policy.on_delay_over(Duration::from_millis(300));
        assert_eq!(wait(&mut policy, 1180, 100), 100);
        assert_eq!(wait(&mut policy, 1290, 60), 60);
        assert_eq!(wait(&mut policy, 1300, 100), 75, "half of 110, and 20");
        let mut short = QuickAck { max: Duration::from_millis(10), ..policy };
        assert_eq!(wait(&mut short, 1310, 100), 10);
    }

    #[test]
    fn more_than_a_full_segment_and_every_surprise_at_once() {
        let arrival = |at| arrival(100, at);
        let mut policy = QuickAck::default();
        policy.begin_late();
        policy.last_arrival = Instant::from_millis(1000);
        assert_ne!(policy.on_arrival(&arrival(1001)), AckDecision::Now);
        assert_eq!(policy.on_arrival(&Arrival { bytes: 1, ..arrival(1002) }), AckDecision::Now);
        policy.on_ack_sent();
        let surprise = Arrival { in_order: false, bytes: 1, ..arrival(1003) };
        policy.quick(0);
        assert_eq!(policy.on_arrival(&surprise), AckDecision::Now);
        policy.on_ack_sent();
        assert_eq!(policy.on_arrival(&arrival(1004)), AckDecision::Now, "quick ones follow");
    }

    #[test]
    fn data_read_to_the_end_is_acknowledged_unless_a_reply_is_to_be_expected() {
        let arrival = |at| arrival(100, at);
        let mut policy = QuickAck::default();
        policy.begin_late();
        policy.last_arrival = Instant::from_millis(1000);
        let small = |at| Arrival { bytes: 10, pushed: true, ..arrival(at) };
        policy.on_arrival(&Arrival { bytes: 10, ..arrival(1001) });
        assert!(!policy.on_drained(), "more is to come");
        policy.on_arrival(&small(1002));
        assert!(policy.on_drained());
        policy.on_ack_sent();
        assert!(!policy.on_drained());
        policy.quick(0);
        policy.on_arrival(&small(1003));
        assert!(!policy.on_drained(), "the reply will tell");
        policy.on_arrival(&small(1004));
        assert!(policy.on_drained(), "the peer did not wait for one");
    }
}
