//! SEARCH (Chung, Ataei Kachooei, Li and Claypool, draft-chung-ccwg-search-09): slow start ends when less arrives than was sent a round trip ago.
//!
//! While a path has room, whatever was sent arrives a round trip later, however fast the window grows. Beyond the bottleneck's rate it does not. So time
//! is divided into bins of 0.35 of the first round-trip time. Each bin keeps how much had been sent and how much had been delivered at its end. At the end
//! of each bin, what the last ten bins delivered is compared with what ten bins sent, a round trip earlier. Slow start ends when 26 % are missing.
//!
//! Ten bins are 3.5 round trips, so jitter, bursts and stretched acknowledgements average out. The price is that the end comes about two round trips
//! after the bottleneck is full: SEARCH does not end too early on a wireless link, and does overshoot a short queue. A sender that the application holds
//! back sends less, and less arrives: nothing is missing.
//!
//! Differences from the draft:
//! - Bins have 64 bits, so no bin is ever scaled.
//! - Where a round trip ends between two bins, the value between them is looked up further back in time. The draft's formula goes forward, which
//!   its authors agree is a slip.
//! - There is no drain after the end: congestion avoidance takes the window as it is.
//! - After a silence of more than ten bins everything is measured anew; the draft leaves the limit open.
//! - It acts while ssthresh has its first value. After a loss or a timeout, ssthresh says where slow start ends.

#[cfg(test)]
mod tests;

use super::SlowStart;
use crate::ack_context::AckContext;
use crate::congestion::Window;
use crate::time::{Duration, Instant};

/// `W`: bins of a window.
const W: u64 = 10;
/// `EXTRA_BINS`: how far a round trip may reach back, in bins.
const EXTRA_BINS: u64 = 15;
/// `WINDOW_SIZE_FACTOR`: a window is 3.5 of the first round-trip time, here in percent.
const WINDOW_PERCENT: u64 = 350;
/// `THRESH`: the share that is missing at the end, in percent.
const THRESH_PERCENT: u128 = 26;

/// A window reaches over its bins, and one before.
const ACKED: usize = W as usize + 1;
/// A window that ended a round trip ago, and one bin more for a part of one.
const SENT: usize = ACKED + EXTRA_BINS as usize;

/// The slow start of the draft.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Search {
    bins: Option<Bins>,
}

/// Bytes that had been sent and delivered at the end of each bin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bins {
    duration: Duration,
    /// The latest bin that has ended, and when the next one does.
    latest: u64,
    end: Instant,
    acked: [u64; ACKED],
    sent: [u64; SENT],
}

impl Bins {
    fn new(initial_rtt: Duration, ack: &AckContext) -> Self {
        let nanos = initial_rtt.as_nanos().saturating_mul(WINDOW_PERCENT) / 100 / W;
        let duration = Duration::from_nanos(nanos.max(1));
        Bins {
            duration,
            latest: 0,
            end: ack.now + duration,
            acked: [ack.delivered; ACKED],
            sent: [ack.nxt.get(); SENT],
        }
    }

    /// Ends the bins whose time is over. Says how many there were.
    fn advance(&mut self, ack: &AckContext) -> u64 {
        if ack.now <= self.end {
            return 0;
        }
        let nanos = self.duration.as_nanos();
        let passed = ack.now.since(self.end).as_nanos() / nanos + 1;
        if passed > W {
            return passed;
        }
        let (acked, sent) = (self.acked_at(self.latest), self.sent_at(self.latest));
        for skipped in 1..passed {
            self.set(self.latest + skipped, acked, sent);
        }
        self.latest += passed;
        self.end += Duration::from_nanos(nanos.saturating_mul(passed));
        self.set(self.latest, ack.delivered, ack.nxt.get());
        passed
    }

    fn set(&mut self, bin: u64, acked: u64, sent: u64) {
        self.acked[(bin % ACKED as u64) as usize] = acked;
        self.sent[(bin % SENT as u64) as usize] = sent;
    }

    fn acked_at(&self, bin: u64) -> u64 {
        self.acked[(bin % ACKED as u64) as usize]
    }

    fn sent_at(&self, bin: u64) -> u64 {
        self.sent[(bin % SENT as u64) as usize]
    }

    /// Bytes that the window of bins up to this one sent.
    fn sent_until(&self, bin: u64) -> u64 {
        self.sent_at(bin).saturating_sub(self.sent_at(bin - W))
    }

    /// Whether too much of what was sent a round trip ago is missing. Never, while the bins do not reach back far enough.
    fn is_full(&self, rtt: Duration) -> bool {
        let nanos = self.duration.as_nanos();
        let (back, part) = (rtt.as_nanos() / nanos, u128::from(rtt.as_nanos() % nanos));
        let Some(before) = self.latest.checked_sub(back) else { return false };
        if before <= W || back >= EXTRA_BINS {
            return false;
        }
        let whole = u128::from(nanos);
        let sent = (u128::from(self.sent_until(before)) * (whole - part)
            + u128::from(self.sent_until(before - 1)) * part)
            / whole;
        let delivered = self.acked_at(self.latest).saturating_sub(self.acked_at(self.latest - W));
        let missing = sent.saturating_sub(u128::from(delivered));
        sent > 0 && missing * 100 >= sent * THRESH_PERCENT
    }
}

impl SlowStart for Search {
    fn name(&self) -> &'static str {
        "search"
    }

    fn on_sample(&mut self, window: &mut Window, ack: &AckContext) {
        if window.ssthresh != u64::MAX || !window.in_slow_start() {
            return;
        }
        let Some(rtt) = ack.rtt else { return };
        let Some(bins) = &mut self.bins else {
            self.bins = Some(Bins::new(rtt, ack));
            return;
        };
        match bins.advance(ack) {
            0 => {}
            passed if passed > W => self.bins = Some(Bins::new(rtt, ack)),
            _ if bins.is_full(rtt) => window.ssthresh = window.cwnd,
            _ => {}
        }
    }

    fn grow(&mut self, window: &mut Window, acked: u64, _ack: &AckContext) -> u64 {
        window.slow_start(acked)
    }

    fn on_reduction(&mut self, _timeout: bool) {
        *self = Search::default();
    }
}
