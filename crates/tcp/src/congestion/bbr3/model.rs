//! BBR's model of the path (draft-ietf-ccwg-bbr-06 section 5.5): its delivery rate, its round-trip time, and the flight that it carries.
//!
//! The long-term model is the demonstrated capacity of the path; it is probed periodically. The short-term model is reduced by losses since the
//! last probe; the next probe resets it. `None` means the draft's infinity.

use super::super::Window;
use super::super::arithmetic::{bytes_in, mul_div};
use super::super::filter::MaxByRound;
use crate::ack_context::AckContext;
use crate::pos::Pos;
use crate::rate::LostTransmission;
use crate::time::{Duration, Instant};

/// BBR.Beta, in thousandths.
pub(super) const BETA: u64 = 700;
/// BBR.LossThresh, in thousandths.
const LOSS_THRESHOLD: u64 = 20;
/// BBR.Headroom, in thousandths.
const HEADROOM: u64 = 150;
/// BBR.MaxBwFilterLen, in cycles of probing.
const BANDWIDTH_CYCLES: usize = 2;
/// BBR.ExtraAckedFilterLen, in round trips.
const EXTRA_ROUNDS: usize = 10;
/// BBR.MinRTTFilterLen.
const MIN_RTT_LIFETIME: Duration = Duration::from_secs(10);
/// BBR.ProbeRTTInterval.
const PROBE_RTT_INTERVAL: Duration = Duration::from_secs(5);
/// BBR.MinPipeCwnd, in segments.
pub(super) const LEAST_WINDOW: u64 = 4;

/// The sample of an acknowledgement: the draft's RS.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sample {
    /// Bytes per second; zero for none.
    pub(super) rate: u64,
    /// Bytes delivered in its interval.
    pub(super) delivered: u64,
    /// Bytes that the acknowledgement newly delivered.
    pub(super) newly: u64,
    /// Bytes delivered when its transmission left, if there was one.
    pub(super) prior_delivered: Option<u64>,
    /// Bytes in flight just after.
    pub(super) in_flight: u64,
    /// Bytes found lost since.
    pub(super) lost: u64,
    pub(super) limited: bool,
}

impl Sample {
    /// The sample of an acknowledgement that delivers `newly` bytes; data sent before `limited_until` had been delivered is limited by BBR
    /// itself.
    pub(super) fn of(ack: &AckContext, newly: u64, limited_until: u64) -> Self {
        let Some(rate) = ack.rate else {
            return Sample { newly, limited: true, ..Sample::default() };
        };
        Sample {
            rate: rate.bytes_per_second().unwrap_or(0),
            delivered: rate.delivered,
            newly,
            prior_delivered: Some(rate.prior_delivered),
            in_flight: rate.in_flight,
            lost: rate.lost,
            limited: rate.app_limited || rate.prior_delivered < limited_until,
        }
    }

    /// IsInflightTooHigh.
    pub(super) fn is_too_high(&self, sack: bool) -> bool {
        too_much(self.lost, self.in_flight, sack)
    }
}

fn too_much(lost: u64, in_flight: u64, sack: bool) -> bool {
    u128::from(lost) * 1000 > u128::from(in_flight) * u128::from(LOSS_THRESHOLD)
        || (lost > 0 && !sack)
}

/// IsInflightTooHigh for a transmission that was lost, and then InflightAtLoss: with how much in flight the losses became too many.
pub(super) fn inflight_at_loss(lost: &LostTransmission, sack: bool) -> Option<u64> {
    if !too_much(lost.lost, lost.in_flight, sack) {
        return None;
    }
    let size = lost.range.end.since(lost.range.start);
    let in_flight = i128::from(lost.in_flight.saturating_sub(size));
    let before = i128::from(lost.lost.saturating_sub(size));
    let threshold = i128::from(LOSS_THRESHOLD);
    let prefix = (threshold * in_flight - 1000 * before) / (1000 - threshold);
    Some(u64::try_from((in_flight + prefix).max(0)).unwrap_or(u64::MAX))
}

/// The larger of two, either of which may be infinite.
pub(super) fn larger(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    Some(one?.max(other?))
}

/// Packet-timed round trips (section 5.5.1).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rounds {
    pub(super) count: u64,
    /// Whether one began with the last acknowledgement.
    pub(super) starts: bool,
    next_delivered: u64,
}

impl Rounds {
    /// StartRound.
    pub(super) fn restart(&mut self, delivered: u64) {
        self.next_delivered = delivered;
    }

    fn update(&mut self, sample: &Sample, delivered: u64) {
        self.starts = sample.prior_delivered.is_some_and(|prior| prior >= self.next_delivered);
        if self.starts {
            self.restart(delivered);
            self.count += 1;
        }
    }
}

/// A round-trip time, and when it was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) rtt: Duration,
    pub(super) at: Instant,
}

/// Losses, counted in round trips of their own: the first of one begins it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LossRound {
    /// is_loss_in_round.
    pub(super) lossy: bool,
    /// Whether one ends with the last acknowledgement.
    pub(super) ends: bool,
    /// Discontiguous ranges that were lost in it.
    pub(super) ranges: u32,
    last_range: Option<Pos>,
    next_delivered: u64,
}

/// The degree of aggregation of acknowledgements (section 5.5.9).
#[derive(Clone, Copy, Debug)]
struct Aggregation {
    begun: Instant,
    delivered: u64,
    extra: MaxByRound<EXTRA_ROUNDS>,
}

/// The bounds that losses set, and an undo restores (section 5.5.11).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Bounds {
    pub(super) rate_shortterm: Option<u64>,
    pub(super) inflight_shortterm: Option<u64>,
    pub(super) inflight_longterm: Option<u64>,
}

/// The model.
#[derive(Clone, Copy, Debug)]
pub(super) struct Model {
    pub(super) rounds: Rounds,
    /// BBR.max_bw, by cycles of probing.
    max_rate: MaxByRound<BANDWIDTH_CYCLES>,
    cycle: u64,
    /// BBR.bw.
    pub(super) rate: u64,
    pub(super) bounds: Bounds,
    /// BBR.bw_latest and BBR.inflight_latest.
    rate_latest: u64,
    pub(super) inflight_latest: u64,
    pub(super) losses: LossRound,
    min_rtt: Option<Seen>,
    /// BBR.probe_rtt_min_delay.
    pub(super) probe_rtt: Option<Seen>,
    pub(super) probe_rtt_expired: bool,
    aggregation: Aggregation,
}

impl Model {
    pub(super) fn new(now: Instant) -> Self {
        Model {
            rounds: Rounds::default(),
            max_rate: MaxByRound::default(),
            cycle: 0,
            rate: 0,
            bounds: Bounds::default(),
            rate_latest: 0,
            inflight_latest: 0,
            losses: LossRound::default(),
            min_rtt: None,
            probe_rtt: None,
            probe_rtt_expired: false,
            aggregation: Aggregation { begun: now, delivered: 0, extra: MaxByRound::default() },
        }
    }

    /// BBR.max_bw.
    pub(super) fn max_rate(&self) -> u64 {
        self.max_rate.get()
    }

    /// BBR.min_rtt.
    pub(super) fn min_rtt(&self) -> Option<Duration> {
        self.min_rtt.map(|seen| seen.rtt)
    }

    /// BBR.bdp.
    pub(super) fn product(&self) -> u64 {
        self.min_rtt().map_or(0, |rtt| bytes_in(rtt, self.rate))
    }

    /// BBR.extra_acked: of one round trip while the pipe is not known to be `full`.
    pub(super) fn extra(&self, full: bool) -> u64 {
        self.aggregation.extra.of_last(if full { EXTRA_ROUNDS as u64 } else { 1 })
    }

    /// UpdateLatestDeliverySignals and UpdateMaxBw.
    pub(super) fn update_rates(&mut self, sample: &Sample, delivered: u64) {
        self.rate_latest = self.rate_latest.max(sample.rate);
        self.inflight_latest = self.inflight_latest.max(sample.delivered);
        let losses = &mut self.losses;
        losses.ends = sample.prior_delivered.is_some_and(|prior| prior >= losses.next_delivered);
        if losses.ends {
            losses.next_delivered = delivered;
        }
        self.rounds.update(sample, delivered);
        if sample.rate > 0 && (sample.rate >= self.max_rate() || !sample.limited) {
            self.max_rate.add(self.cycle, sample.rate);
        }
    }

    /// AdvanceMaxBwFilter.
    pub(super) fn advance_cycle(&mut self) {
        self.cycle += 1;
    }

    /// The rest of UpdateCongestionSignals: once for each round trip with losses, unless the flow is `probing`, the short-term model falls
    /// towards the delivered rate.
    pub(super) fn adapt_to_losses(&mut self, probing: bool, window: &Window) {
        if !self.losses.ends {
            return;
        }
        if self.losses.lossy && !probing {
            let max_rate = self.max_rate();
            let Bounds { rate_shortterm, inflight_shortterm, .. } = &mut self.bounds;
            let rate = rate_shortterm.unwrap_or(max_rate);
            let inflight = inflight_shortterm.unwrap_or(window.cwnd);
            *rate_shortterm = Some(mul_div(rate, BETA, 1000).max(self.rate_latest));
            *inflight_shortterm = Some(mul_div(inflight, BETA, 1000).max(self.inflight_latest));
        }
        self.losses.lossy = false;
    }

    /// AdvanceLatestDeliverySignals and BoundBWForModel.
    pub(super) fn finish(&mut self, sample: &Sample) {
        if self.losses.ends {
            self.rate_latest = sample.rate;
            self.inflight_latest = sample.delivered;
            self.losses.ranges = 0;
        }
        let bound = self.bounds.rate_shortterm.unwrap_or(u64::MAX);
        self.rate = self.max_rate().min(bound);
    }

    /// NoteLoss, without saving the state.
    pub(super) fn note_loss(&mut self, delivered: u64) {
        if !core::mem::replace(&mut self.losses.lossy, true) {
            self.losses.next_delivered = delivered;
        }
    }

    /// Counts the range of a transmission that was lost.
    pub(super) fn count_range(&mut self, lost: &LostTransmission) {
        let losses = &mut self.losses;
        if losses.last_range.replace(lost.range.end) != Some(lost.range.start) {
            losses.ranges = losses.ranges.saturating_add(1);
        }
    }

    /// ResetCongestionSignals.
    pub(super) fn reset_signals(&mut self) {
        self.losses.lossy = false;
        self.rate_latest = 0;
        self.inflight_latest = 0;
    }

    /// ResetShortTermModel.
    pub(super) fn reset_shortterm(&mut self) {
        self.bounds.rate_shortterm = None;
        self.bounds.inflight_shortterm = None;
    }

    /// UpdateMinRTT.
    pub(super) fn update_min_rtt(&mut self, ack: &AckContext) {
        let now = ack.now;
        let old = |seen: Option<Seen>, lifetime: Duration| {
            seen.is_some_and(|seen| now > seen.at + lifetime)
        };
        let less = |one: Duration, seen: Option<Seen>| seen.is_none_or(|seen| one < seen.rtt);
        self.probe_rtt_expired = old(self.probe_rtt, PROBE_RTT_INTERVAL);
        if let Some(rtt) = ack.rtt
            && (self.probe_rtt_expired || less(rtt, self.probe_rtt))
        {
            self.probe_rtt = Some(Seen { rtt, at: now });
        }
        if let Some(probe) = self.probe_rtt
            && (less(probe.rtt, self.min_rtt) || old(self.min_rtt, MIN_RTT_LIFETIME))
        {
            self.min_rtt = self.probe_rtt;
        }
    }

    /// UpdateACKAggregation.
    pub(super) fn update_aggregation(&mut self, now: Instant, newly: u64, window: &Window) {
        let Aggregation { begun, delivered, extra } = &mut self.aggregation;
        let mut expected = bytes_in(now.since(*begun), self.rate);
        if *delivered <= expected {
            (*begun, *delivered) = (now, 0);
            expected = 0;
        }
        *delivered = delivered.saturating_add(newly);
        extra.add(self.rounds.count, delivered.saturating_sub(expected).min(window.cwnd));
    }

    /// Data leaves after a silence, in which nothing could be acknowledged.
    pub(super) fn restart_aggregation(&mut self, now: Instant) {
        self.aggregation.begun = now;
    }

    /// InflightWithHeadroom.
    pub(super) fn inflight_with_headroom(&self, window: &Window) -> Option<u64> {
        let longterm = self.bounds.inflight_longterm?;
        let headroom = mul_div(longterm, HEADROOM, 1000).max(window.segment());
        Some(longterm.saturating_sub(headroom).max(LEAST_WINDOW * window.segment()))
    }
}
