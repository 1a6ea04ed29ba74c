//! H-TCP (Leith, Shorten: draft-leith-tcp-htcp-06; "H-TCP: TCP for high-speed and long-distance networks", PFLDnet 2004).
//!
//! Growth depends on the time Δ since the last loss: Reno's for the first second, then α(Δ) = 1 + 10(Δ − 1) + ((Δ − 1)/2)² segments each round trip.
//! A loss leaves the share β = RTT_min/RTT_max of the window, between 0.5 and 0.8, which just empties the queue. It leaves half if the throughput
//! changed by more than a fifth since the last loss. Growth is scaled by 2(1 − β), so that Reno's share stays Reno's.
//!
//! Differences from the draft, and choices that it leaves open:
//! - The throughput B(k) of an epoch is the largest delivery-rate sample in it that the application did not limit.
//! - RTT_max is that of the epoch, RTT_min that of the connection. RTT scaling, which the draft leaves optional, is not done.
//! - The last second's α is that of at most 1000 s.
//! - A timeout leaves half in ssthresh, and begins anew.

use super::arithmetic::{Carry, mul_div};
use super::built_in::BuiltIn;
use super::controller::Kind;
use super::{CongestionControl, CongestionEvent, Window, react, restore};
use crate::ack_context::AckContext;
use crate::time::{Duration, Instant};
use alloc::boxed::Box;

#[cfg(test)]
mod tests;

/// H-TCP, with the draft's parameters.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HTcp;

impl BuiltIn for HTcp {
    const NAME: &'static str = "htcp";
    const SOURCE: &'static str = "draft-leith-tcp-htcp-06";
    const SUMMARY: &'static str =
        "growth by the time since the last loss, reduction by the ratio of round-trip times";

    fn kind(&self) -> Kind {
        let state = State { since: None, beta: LEAST, rate: 0, last_rate: None, max_rtt: None };
        Kind::HTcp(Box::new(Controller {
            state,
            before: None,
            min_rtt: None,
            carry: Carry::default(),
            timeout: false,
        }))
    }
}

/// β's bounds, in thousandths.
const LEAST: u64 = 500;
const MOST: u64 = 800;
/// Δ_L: how long growth stays Reno's.
const LOW_SPEED: Duration = Duration::from_secs(1);

/// α(Δ) in millionths of a segment a round trip.
fn alpha(since_loss: Duration) -> u64 {
    let above = (since_loss - LOW_SPEED).as_micros().min(1_000_000_000);
    1_000_000 + 10 * above + above * above / 4_000_000
}

/// The state that a loss changes, and an undo restores.
#[derive(Clone, Copy, Debug)]
struct State {
    /// When the last loss was; before the first, when growth began.
    since: Option<Instant>,
    /// β in thousandths.
    beta: u64,
    /// B(k): the largest rate of this epoch, bytes per second.
    rate: u64,
    /// B(k − 1).
    last_rate: Option<u64>,
    /// RTT_max of this epoch.
    max_rtt: Option<Duration>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Controller {
    state: State,
    before: Option<State>,
    min_rtt: Option<Duration>,
    carry: Carry,
    /// Whether the reduction in hand is a timeout's.
    timeout: bool,
}

impl Controller {
    /// The adaptive backoff of the draft's section 2.2.
    fn backoff(&self) -> u64 {
        let State { rate, last_rate, max_rtt, .. } = self.state;
        let steady =
            last_rate.is_some_and(|last| u128::from(rate.abs_diff(last)) * 5 <= u128::from(last));
        match (self.min_rtt, max_rtt) {
            (Some(min), Some(max)) if steady && !self.timeout => {
                mul_div(min.as_nanos(), 1000, max.as_nanos()).clamp(LEAST, MOST)
            }
            _ => LEAST,
        }
    }
}

impl CongestionControl for Controller {
    fn name(&self) -> &'static str {
        "htcp"
    }

    fn on_sample(&mut self, _window: &mut Window, ack: &AckContext) {
        self.min_rtt = ack.min_rtt;
        self.state.max_rtt = self.state.max_rtt.max(ack.rtt);
        if let Some(rate) = ack.rate.filter(|rate| !rate.app_limited) {
            self.state.rate = self.state.rate.max(rate.bytes_per_second().unwrap_or(0));
        }
    }

    fn on_ack(&mut self, window: &mut Window, acked: u64, ack: &AckContext) {
        let since = *self.state.since.get_or_insert(ack.now);
        // 2(1 − β)·α segments for a window acknowledged.
        let scaled = mul_div(alpha(ack.now.since(since)), 2 * (1000 - self.state.beta), 1000);
        let bytes = u128::from(scaled.max(1)) * u128::from(window.segment()) * u128::from(acked);
        let grown = self.carry.divide(bytes, u128::from(window.cwnd) * 1_000_000);
        window.resize(window.cwnd.saturating_add(grown));
    }

    fn ssthresh(&mut self, window: &Window, flight: u64, now: Instant) -> u64 {
        let beta = self.backoff();
        self.before = Some(self.state);
        self.state = State {
            since: Some(now),
            beta,
            rate: 0,
            last_rate: (!self.timeout && self.state.rate > 0).then_some(self.state.rate),
            max_rtt: None,
        };
        mul_div(flight.min(window.cwnd), beta, 1000).max(window.floor())
    }

    fn on_event(&mut self, window: &mut Window, event: CongestionEvent, now: Instant) {
        self.timeout = matches!(event, CongestionEvent::Timeout { .. });
        if let CongestionEvent::Unvalidated { .. } = event {
            self.state.since = None;
        }
        react(self, window, event, now);
    }

    fn on_undo(&mut self, window: &mut Window, prior: Window, _now: Instant) {
        if let Some(before) = self.before.take() {
            self.state = before;
        }
        restore(window, prior);
    }
}
