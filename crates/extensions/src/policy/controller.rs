//! The same deciders as a congestion controller, which is trusted.

use super::observation::{Observer, Seen};
use super::{Decider, Period};
use transom_tcp::AckContext;
use transom_tcp::congestion::{CongestionControl, Controller, Window, half};
use transom_tcp::time::Instant;

/// A controller whose window `decider` sets. After a loss it has half of the window, as RFC 5681 has it, until the next decision.
pub fn controller(period: Period, decider: Box<dyn Decider>) -> Controller {
    let observer = Observer::default();
    Controller::custom(Steered { period, decider, observer, lost: 0, reductions: 0 })
}

#[derive(Debug)]
struct Steered {
    period: Period,
    decider: Box<dyn Decider>,
    observer: Observer,
    lost: u64,
    reductions: u64,
}

impl CongestionControl for Steered {
    fn name(&self) -> &'static str {
        "steered"
    }

    fn has_own_slow_start(&self) -> bool {
        true
    }

    fn on_sample(&mut self, window: &mut Window, ack: &AckContext) {
        let bytes = ack.acked.saturating_add(ack.sacked);
        self.observer.ack(ack.rtt, bytes, ack.ecn_echo);
        self.lost = self.lost.saturating_add(ack.lost);
        let decides = match self.period {
            Period::Round => ack.round_start,
            Period::Ack => ack.round_start || bytes > 0,
        };
        if !decides || ack.recovering {
            return;
        }
        let seen = Seen {
            now: ack.now,
            mss: window.segment(),
            window: window.cwnd,
            in_flight: ack.in_flight,
            delivered: ack.delivered,
            lost: self.lost,
            base: ack.min_rtt,
            reductions: self.reductions,
        };
        let observation = self.observer.observe(&seen);
        if let Some(action) = self.decider.decide(&observation, &seen) {
            window.resize(action.apply(window.cwnd, window.segment()));
        }
    }

    fn on_ack(&mut self, _: &mut Window, _: u64, _: &AckContext) {}

    fn ssthresh(&mut self, window: &Window, flight: u64, _now: Instant) -> u64 {
        self.reductions += 1;
        half(window, flight)
    }
}
