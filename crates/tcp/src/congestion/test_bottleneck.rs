//! A bottleneck in virtual time for controllers that follow a model of the path, without any connection. It has a paced sender with
//! endless data in segments of 1000 bytes, and a link with a rate, a propagation time and a queue. The receiver acknowledges each
//! segment.
//!
//! A segment that finds the queue full is lost; the acknowledgement of the next arrival reveals it. It is not retransmitted: a hole in the
//! stream does not matter here. Recovery lasts until all data is acknowledged that had been sent when it began.

use super::test_trace::MSS;
use super::{CongestionControl, CongestionEvent, Window};
use crate::ack_context::AckContext;
use crate::pos::Pos;
use crate::rate::{DeliveryRate, PendingSample, RateStamp};
use crate::time::{Duration, Instant};
use std::collections::VecDeque;

struct Packet {
    number: u64,
    sent: Instant,
    stamp: RateStamp,
    lost: bool,
}

/// The path, and the controller that sends into it.
pub(super) struct Path<C> {
    pub(super) controller: C,
    pub(super) window: Window,
    pub(super) now: Instant,
    /// Bytes per second.
    pub(super) rate: u64,
    pub(super) propagation: Duration,
    /// Bytes that may wait.
    pub(super) queue: u64,
    /// Whether the next acknowledgement reports a spurious loss.
    pub(super) lose: bool,
    pub(super) recovering: bool,
    /// Segments lost so far.
    pub(super) losses: u64,
    account: DeliveryRate,
    in_flight: VecDeque<Packet>,
    /// When the bottleneck is free, and when each packet's acknowledgement arrives.
    free: Instant,
    arrivals: VecDeque<Instant>,
    next_send: Instant,
    sent: u64,
    recovery_point: Option<u64>,
    round_end: u64,
    min_rtt: Option<Duration>,
}

/// How long `bytes` take at `rate`.
fn time(bytes: u64, rate: u64) -> Duration {
    Duration::from_nanos(bytes * 1_000_000_000 / rate.max(1))
}

impl<C: CongestionControl> Path<C> {
    pub(super) fn new(mut controller: C, rate: u64, propagation: Duration) -> Self {
        let now = Instant::from_secs(1);
        let mut window = Window::initial(MSS as u32);
        controller.on_start(&mut window, now);
        Path {
            controller,
            window,
            now,
            rate,
            propagation,
            queue: u64::MAX,
            lose: false,
            recovering: false,
            losses: 0,
            account: DeliveryRate::new(now),
            in_flight: VecDeque::new(),
            free: now,
            arrivals: VecDeque::new(),
            next_send: now,
            sent: 0,
            recovery_point: None,
            round_end: 0,
            min_rtt: None,
        }
    }

    /// Bytes in flight.
    pub(super) fn flight(&self) -> u64 {
        self.in_flight.len() as u64 * MSS
    }

    /// Bytes delivered so far.
    pub(super) fn delivered(&self) -> u64 {
        self.account.delivered()
    }

    fn send(&mut self) {
        let stamp = self.account.on_send(self.now, MSS, self.flight());
        let waiting = u128::from(self.free.since(self.now).as_nanos()) * u128::from(self.rate)
            / 1_000_000_000;
        let lost = waiting + u128::from(MSS) > u128::from(self.queue);
        if !lost {
            self.free = self.free.max(self.now) + time(MSS, self.rate);
            self.arrivals.push_back(self.free + self.propagation);
        }
        self.in_flight.push_back(Packet { number: self.sent, sent: self.now, stamp, lost });
        self.sent += 1;
        let rate = self.controller.pacing_rate(&self.window).expect("a rate");
        self.next_send = self.now + time(MSS, rate);
    }

    fn acknowledge(&mut self) {
        let prior_in_flight = self.flight();
        let mut lost = if core::mem::take(&mut self.lose) { MSS } else { 0 };
        let packet = loop {
            let packet = self.in_flight.pop_front().expect("what is acknowledged was sent");
            if !packet.lost {
                break packet;
            }
            let start = Pos::FIRST_DATA + packet.number * MSS;
            let loss = self.account.on_lost(self.now, start..start + MSS, packet.stamp);
            self.controller.on_lost(&mut self.window, &loss);
            self.losses += 1;
            lost += MSS;
        };
        self.arrivals.pop_front();
        let mut pending = PendingSample::default();
        self.account.on_delivered(self.now, MSS, packet.stamp, packet.sent, &mut pending);
        let rtt = self.now.since(packet.sent);
        self.min_rtt = Some(self.min_rtt.map_or(rtt, |least| least.min(rtt)));
        let delivered = self.account.delivered();
        let round_start = delivered > self.round_end;
        if round_start {
            self.round_end = delivered + self.flight();
        }
        if self.recovery_point.is_some_and(|point| packet.number >= point) {
            self.recovery_point = None;
            self.recovering = false;
        }
        let begins = self.losses > 0 && lost > 0 && !self.recovering;
        if begins {
            self.recovering = true;
            self.recovery_point = Some(self.sent);
        }
        let una = Pos::FIRST_DATA + delivered;
        let ack = AckContext {
            now: self.now,
            una,
            nxt: una + self.flight(),
            acked: MSS,
            newly_delivered: MSS,
            lost,
            sack_agreed: true,
            rtt: Some(rtt),
            estimate: Some(crate::rto::Estimate::first(rtt)),
            min_rtt: self.min_rtt,
            round_start,
            delivered,
            recovering: self.recovering,
            rate: self.account.finish(pending, self.min_rtt),
            prior_in_flight,
            in_flight: self.flight(),
            cwnd_limited: prior_in_flight + MSS > self.window.cwnd,
            mss: MSS as u32,
            ..AckContext::default()
        };
        self.controller.on_sample(&mut self.window, &ack);
        if begins {
            let event = CongestionEvent::Loss { flight: self.flight() };
            self.controller.on_event(&mut self.window, event, self.now);
        }
    }

    /// Runs for `span`, and calls `look` with the path after each acknowledgement.
    pub(super) fn run(&mut self, span: Duration, mut look: impl FnMut(&Path<C>)) {
        let end = self.now + span;
        while self.now < end {
            let can_send = self.flight() + MSS <= self.window.cwnd;
            let arrival = self.arrivals.front().copied().unwrap_or(Instant::FAR_FUTURE);
            if can_send && self.next_send <= arrival {
                self.now = self.now.max(self.next_send);
                self.send();
            } else {
                assert!(arrival < Instant::FAR_FUTURE, "nothing happens any more");
                self.now = self.now.max(arrival);
                self.acknowledge();
                look(self);
            }
        }
    }
}
