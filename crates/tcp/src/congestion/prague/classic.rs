//! Whether the marks come from a queue with classic ECN, which Prague shares with flows that a mark halves (RFC 9331 section 4.3).
//!
//! Such a queue is long and its length moves; an L4S queue is neither. After each round trip with marks on the path, a score moves by the logarithms
//! of how much the round-trip time varies, against [`VARIES`], and of how far it is above the least one, against [`DEEP`]. Below [`SURE`] the score says
//! L4S, one further it says classic, and between them the response blends. The score is held within bounds, so that either belief can be given up.
//!
//! Source: Briscoe and Ahmed, "TCP Prague Fall-back on Detection of a Classic ECN AQM" (2019). What differs: the reference of the variation is at least
//! two packets at the flow's own rate, because on a slow link a packet of somebody else's makes more than 750 µs.

use super::ONE;
use crate::ack_context::AckContext;
use crate::congestion::Window;
use crate::congestion::arithmetic::log2;
use crate::time::Duration;

/// The variation of an L4S queue's round-trip time.
const VARIES: Duration = Duration::from_micros(750);
/// The depth that an L4S queue does not reach.
const DEEP: Duration = Duration::from_millis(2);
/// The score, in 2^-32, from which on the response begins to be a classic one.
const SURE: i64 = 8 << 32;
/// The score does not go beyond this.
const MOST: i64 = 17 << 32;

/// The round-trip times of the connection: their averages, as of now.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Round {
    /// The mean, an eighth of which each sample replaces.
    srtt: Duration,
    /// The mean deviation, in 1/8 ns.
    deviation: u64,
    least: Duration,
}

impl Round {
    pub(super) fn on_sample(&mut self, ack: &AckContext) {
        let (Some(rtt), Some(least)) = (ack.rtt, ack.min_rtt) else { return };
        self.least = least;
        if self.srtt.is_zero() {
            self.srtt = rtt;
            return;
        }
        let off = rtt.abs_diff(self.srtt);
        self.deviation = (self.deviation - self.deviation / 8).saturating_add(off.as_nanos());
        let step = off.over(8);
        self.srtt = if rtt > self.srtt { self.srtt + step } else { self.srtt - step };
    }

    fn deviation(&self) -> Duration {
        Duration::from_nanos(self.deviation / 8)
    }
}

/// How sure the marks are a classic queue's.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Suspicion {
    /// In 2^-32.
    score: i64,
}

/// Half of the binary logarithm of a ratio.
fn half_log(value: Duration, reference: Duration) -> i64 {
    let log = |span: Duration| i64::try_from(log2(span.as_nanos().max(1))).unwrap_or(i64::MAX);
    (log(value) - log(reference)) / 2
}

impl Suspicion {
    /// A round trip has ended.
    pub(super) fn on_round(&mut self, round: &Round, window: &Window) {
        if round.srtt.is_zero() {
            return;
        }
        let packets = (window.cwnd / window.segment()).max(1);
        let two_packets = round.srtt.times(2).over(packets);
        let varies = half_log(round.deviation(), VARIES.max(two_packets));
        let deep = half_log(round.srtt - round.least, DEEP.max(two_packets)).max(0);
        self.score = (self.score + varies + deep).clamp(0, MOST);
    }

    /// The strength of a reduction, of [`ONE`]: α where the queue is an L4S queue, one where it is a classic one.
    pub(super) fn blend(&self, alpha: u64) -> u64 {
        let classic = (self.score - SURE).clamp(0, 1 << 32).unsigned_abs();
        alpha.max(classic.min(ONE))
    }
}
