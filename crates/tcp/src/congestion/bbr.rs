//! BBR, version 1 (draft-cardwell-iccrg-bbr-congestion-control-00; Cardwell, Cheng, Gunn, Yeganeh, Jacobson: "BBR: Congestion-Based Congestion
//! Control", ACM Queue 2016).
//!
//! BBR models the path by its bottleneck bandwidth (the largest delivery rate of the last ten round trips) and its round-trip propagation time (the
//! least of the last ten seconds). It paces at the bandwidth and keeps about twice their product in flight. It measures them in turn:
//! - STARTUP doubles the rate each round trip until the bandwidth has not grown by a quarter for three; DRAIN empties the queue that left.
//! - PROBE_BW paces for a round-trip time each at 5/4, 3/4 and six times 1 of the bandwidth.
//! - PROBE_RTT, when the propagation time was not seen for ten seconds, leaves four segments in flight for 200 ms.
//!
//! It needs pacing; without it bursts of the whole window hide what it measures.
//!
//! Differences from the draft, and choices that it leaves open:
//! - The phase of PROBE_BW's first cycle is a parameter instead of a random number (section 4.3.4.2): runs repeat.
//! - Data sent until a round-trip time after PROBE_RTT counts as limited by the application, by its delivery count instead of a mark in the
//!   connection. The draft marks the data sent until the end of PROBE_RTT. But the next packets' samples reach back into the pause. On a path with
//!   more than ten round trips in 200 ms they would become the bandwidth, because nothing else is remembered.
//! - A retransmission timeout's recovery ends when as much has been delivered as was in flight.
//! - After an undo the search for a full pipe starts again, as in Linux.
//! - It ignores ECN marks, like version 1.
//! - `linux=on` adds what Linux has beyond the draft: room in the window for what acknowledgements aggregate, a search for policers, and pacing a hundredth
//!   below the bandwidth. See `linux.rs`.

use super::arithmetic::{bytes_in, mul_div};
use super::built_in::{BuiltIn, Value, require};
use super::controller::Kind;
use super::filter::MaxByRound;
use super::full_pipe::FullPipe;
use super::{CongestionControl, CongestionEvent, Takeover, Window, initial_window, restore};
use crate::ack_context::AckContext;
use crate::arguments::{ArgumentError, Arguments};
use crate::rate::LostTransmission;
use crate::time::{Duration, Instant};
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

mod linux;
#[cfg(test)]
mod tests;

use linux::{Delivery, Linux, Outcome, PACED};

/// BBR's parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bbr {
    /// How many phases after the first PROBE_BW's first cycle begins: 0 to 6; the second phase, that of 3/4, is never the first.
    pub(crate) phase: u64,
    /// Whether it is Linux' BBR, with what that has beyond the draft.
    pub(crate) linux: bool,
}

impl BuiltIn for Bbr {
    const NAME: &'static str = "bbr";
    const SOURCE: &'static str = "draft-cardwell-iccrg-bbr-congestion-control-00";
    const SUMMARY: &'static str =
        "paces at the measured bottleneck bandwidth, with two bandwidth-delay products in flight";

    fn parameters(&mut self) -> Vec<(&'static str, &mut dyn Value)> {
        vec![("phase", &mut self.phase), ("linux", &mut self.linux)]
    }

    fn check(&self, given: &Arguments<'_>) -> Result<(), ArgumentError> {
        require(given, self.phase <= 6, "phase is between 0 and 6", self.phase)
    }

    fn kind(&self) -> Kind {
        Kind::Bbr(Box::new(Controller::new(*self)))
    }
}

/// BBRHighGain, 2/ln 2: the least that doubles the rate each round trip. Gains are in thousandths.
const HIGH_GAIN: u64 = 2885;
/// PROBE_BW's pacing gains.
const CYCLE: [u64; 8] = [1250, 750, 1000, 1000, 1000, 1000, 1000, 1000];
/// PROBE_BW's gain for the window.
const WINDOW_GAIN: u64 = 2000;
/// BtlBwFilterLen.
const BANDWIDTH_ROUNDS: usize = 10;
/// RTpropFilterLen.
const MIN_RTT_LIFETIME: Duration = Duration::from_secs(10);
/// ProbeRTTDuration.
const PROBE_RTT_TIME: Duration = Duration::from_millis(200);
/// BBRMinPipeCwnd, in segments.
const LEAST_WINDOW: u64 = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Startup,
    Drain,
    /// In this phase of the cycle since that moment.
    ProbeBw {
        phase: usize,
        since: Instant,
    },
    /// Until that moment, once the flight has fallen to four segments; and a round trip at least.
    ProbeRtt {
        until: Option<Instant>,
        round_done: bool,
    },
}

/// Loss recovery, as far as the window is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Recovery {
    None,
    /// Fast recovery; `conserving` in its first round trip.
    Fast {
        conserving: bool,
    },
    /// After a timeout, until this much has been delivered.
    Timeout {
        until: u64,
    },
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Controller {
    parameters: Bbr,
    mode: Mode,
    /// BtlBw.
    bandwidth: MaxByRound<BANDWIDTH_ROUNDS>,
    /// Round trips, counted by delivery.
    round: u64,
    next_round_delivered: u64,
    round_start: bool,
    /// RTprop, and when it was seen.
    min_rtt: Option<(Duration, Instant)>,
    full_pipe: FullPipe,
    /// Bytes per second.
    pacing_rate: u64,
    /// prior_cwnd: the window before recovery or PROBE_RTT.
    prior_cwnd: u64,
    recovery: Recovery,
    /// Samples of data sent before this much had been delivered are limited by BBR itself.
    limited_until: u64,
    /// Until when the pipe fills again after PROBE_RTT.
    refilled_at: Instant,
    /// Whether the flow comes out of silence.
    idle_restart: bool,
    /// The results of the last acknowledgement.
    last: Last,
    linux: Option<Linux>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Last {
    delivered: u64,
    newly: u64,
    in_flight: u64,
}

impl Controller {
    fn new(parameters: Bbr) -> Self {
        Controller {
            parameters,
            mode: Mode::Startup,
            bandwidth: MaxByRound::default(),
            round: 0,
            next_round_delivered: 0,
            round_start: false,
            min_rtt: None,
            full_pipe: FullPipe::default(),
            pacing_rate: 0,
            prior_cwnd: 0,
            recovery: Recovery::None,
            limited_until: 0,
            refilled_at: Instant::ZERO,
            idle_restart: false,
            last: Last::default(),
            linux: parameters.linux.then(Linux::default),
        }
    }

    /// The pacing gain of the present, in thousandths.
    fn pacing_gain(&self) -> u64 {
        match self.mode {
            Mode::Startup => HIGH_GAIN,
            // 1/BBRHighGain.
            Mode::Drain => 1_000_000 / HIGH_GAIN,
            Mode::ProbeBw { .. } if self.policed_rate().is_some() => 1000,
            Mode::ProbeBw { phase, .. } => CYCLE.get(phase).copied().unwrap_or(1000),
            Mode::ProbeRtt { .. } => 1000,
        }
    }

    fn window_gain(&self) -> u64 {
        match self.mode {
            Mode::Startup | Mode::Drain => HIGH_GAIN,
            Mode::ProbeBw { .. } => WINDOW_GAIN,
            Mode::ProbeRtt { .. } => 1000,
        }
    }

    /// The long-term rate of a policer, while it is used.
    fn policed_rate(&self) -> Option<u64> {
        self.linux.as_ref().and_then(|linux| linux.policer.rate())
    }

    /// The bandwidth that the window and the pacing rate are made of.
    fn used_bandwidth(&self) -> u64 {
        self.policed_rate().unwrap_or_else(|| self.bandwidth.get())
    }

    /// BBRInflight: `gain` times the bandwidth-delay product, and three quanta to keep both ends busy.
    fn inflight(&self, gain: u64, window: &Window) -> u64 {
        self.fitting(self.bandwidth.get(), gain, 0, window)
    }

    /// The window that BBRSetCwnd goes to.
    fn target(&self, window: &Window) -> u64 {
        let bandwidth = self.used_bandwidth();
        let linux = self.linux.as_ref().filter(|_| self.full_pipe.reached);
        let extra = linux.map_or(0, |linux| linux.aggregation.window(bandwidth));
        self.fitting(bandwidth, self.window_gain(), extra, window)
    }

    /// `gain` times the product of this bandwidth and the delay, `extra`, and three quanta. In Linux it is an even number of segments, and two more while
    /// PROBE_BW probes.
    fn fitting(&self, bandwidth: u64, gain: u64, extra: u64, window: &Window) -> u64 {
        let Some((min_rtt, _)) = self.min_rtt else { return initial_window(window.mss) };
        let product = mul_div(bytes_in(min_rtt, bandwidth), gain, 1000);
        let mut bytes = product.saturating_add(extra).saturating_add(3 * self.quantum(window));
        if self.linux.is_some() {
            let pair = 2 * window.segment();
            let probes = matches!(self.mode, Mode::ProbeBw { phase: 0, .. });
            bytes = (bytes.div_ceil(pair) + u64::from(probes)).saturating_mul(pair);
        }
        bytes.min(Window::WIDEST)
    }

    /// Looks for a policer.
    fn update_policer(&mut self, now: Instant, losses: bool, app_limited: bool) {
        let outcome = Outcome {
            now,
            delivered: self.last.delivered,
            losses,
            app_limited,
            round_start: self.round_start,
            probes: matches!(self.mode, Mode::ProbeBw { .. }),
        };
        if self.linux.as_mut().is_some_and(|linux| linux.policer.update(&outcome)) {
            self.probe_bandwidth(now);
        }
    }

    fn update_aggregation(&mut self, window: &Window, ack: &AckContext) {
        let (bandwidth, newly, round_start) =
            (self.used_bandwidth(), self.last.newly, self.round_start);
        let sampled = ack.rate.is_some_and(|rate| !rate.interval.is_zero());
        if let Some(linux) = &mut self.linux
            && newly > 0
            && sampled
        {
            let (most, segment) = (window.cwnd, window.segment());
            let delivery = Delivery { now: ack.now, newly, round_start, bandwidth, most, segment };
            linux.aggregation.update(&delivery);
        }
    }

    /// BBRSetSendQuantum.
    fn quantum(&self, window: &Window) -> u64 {
        match self.pacing_rate {
            0..150_000 => window.segment(),
            150_000..3_000_000 => 2 * window.segment(),
            rate => (rate / 1000).min(65_536).max(window.segment()),
        }
    }

    /// BBRUpdateRound and BBRUpdateBtlBw.
    fn update_bandwidth(&mut self, ack: &AckContext) {
        self.round_start = false;
        let Some(sample) = ack.rate else { return };
        if sample.prior_delivered >= self.next_round_delivered {
            self.next_round_delivered = ack.delivered;
            self.round += 1;
            self.round_start = true;
        }
        self.update_policer(ack.now, ack.lost > 0, sample.app_limited);
        let Some(rate) = sample.bytes_per_second() else { return };
        if rate >= self.bandwidth.get() || !self.is_limited(ack) {
            self.bandwidth.add(self.round, rate);
        }
    }

    /// Whether the sample says less than the path could carry.
    fn is_limited(&self, ack: &AckContext) -> bool {
        ack.rate.is_none_or(|rate| rate.app_limited || rate.prior_delivered < self.limited_until)
    }

    /// BBRCheckCyclePhase.
    fn advance_cycle(&mut self, window: &Window, ack: &AckContext) {
        let Mode::ProbeBw { phase, since } = self.mode else { return };
        let Some((min_rtt, _)) = self.min_rtt else { return };
        let long = ack.now.since(since) > min_rtt;
        let gain = self.pacing_gain();
        let next = match gain {
            1000 => long,
            // Until the queue that it builds is there, or too long.
            1001.. => long && (ack.lost > 0 || ack.prior_in_flight >= self.inflight(gain, window)),
            // Until the queue is gone.
            _ => long || ack.prior_in_flight <= self.inflight(1000, window),
        };
        if next {
            self.mode = Mode::ProbeBw { phase: (phase + 1) % CYCLE.len(), since: ack.now };
        }
    }

    /// BBRCheckFullPipe.
    fn check_full_pipe(&mut self, ack: &AckContext) {
        if !self.full_pipe.reached {
            let limited = ack.rate.is_none_or(|rate| rate.app_limited);
            self.full_pipe.check(self.round_start, self.bandwidth.get(), limited);
        }
    }

    fn probe_bandwidth(&mut self, now: Instant) {
        // BBREnterProbeBW: seven minus a number from 0 to 6, and one further.
        let phase = (8 - self.parameters.phase.min(6) as usize) % CYCLE.len();
        self.mode = Mode::ProbeBw { phase, since: now };
    }

    /// BBRCheckDrain.
    fn check_drain(&mut self, window: &Window, ack: &AckContext) {
        if self.mode == Mode::Startup && self.full_pipe.reached {
            self.mode = Mode::Drain;
        }
        if self.mode == Mode::Drain && ack.in_flight <= self.inflight(1000, window) {
            self.probe_bandwidth(ack.now);
        }
    }

    /// BBRUpdateRTprop and BBRCheckProbeRTT.
    fn update_min_rtt(&mut self, window: &mut Window, ack: &AckContext) {
        let expired = self.min_rtt.is_some_and(|(_, seen)| ack.now.since(seen) > MIN_RTT_LIFETIME);
        if let Some(rtt) = ack.rtt
            && (expired || self.min_rtt.is_none_or(|(least, _)| rtt <= least))
        {
            self.min_rtt = Some((rtt, ack.now));
        }
        if expired && !self.idle_restart && !matches!(self.mode, Mode::ProbeRtt { .. }) {
            self.save(window);
            self.mode = Mode::ProbeRtt { until: None, round_done: false };
        }
        let probing = matches!(self.mode, Mode::ProbeRtt { .. });
        if probing || ack.now < self.refilled_at {
            self.limited_until = ack.delivered.saturating_add(ack.in_flight).max(1);
        }
        if let Mode::ProbeRtt { until, round_done } = self.mode {
            self.mode = match until {
                None if ack.in_flight <= LEAST_WINDOW * window.segment() => {
                    self.next_round_delivered = ack.delivered;
                    Mode::ProbeRtt { until: Some(ack.now + PROBE_RTT_TIME), round_done: false }
                }
                None => self.mode,
                Some(_) => Mode::ProbeRtt { until, round_done: round_done || self.round_start },
            };
            if let Mode::ProbeRtt { until: Some(until), round_done: true } = self.mode
                && ack.now > until
            {
                if let Some((min_rtt, seen)) = &mut self.min_rtt {
                    *seen = ack.now;
                    self.refilled_at = ack.now + *min_rtt;
                }
                window.resize(window.cwnd.max(self.prior_cwnd));
                // BBRExitProbeRTT.
                if self.full_pipe.reached {
                    self.probe_bandwidth(ack.now);
                } else {
                    self.mode = Mode::Startup;
                }
            }
        }
        self.idle_restart = false;
    }

    /// BBRSaveCwnd.
    fn save(&mut self, window: &Window) {
        let steady = self.recovery == Recovery::None && !matches!(self.mode, Mode::ProbeRtt { .. });
        self.prior_cwnd = if steady { window.cwnd } else { self.prior_cwnd.max(window.cwnd) };
    }

    /// The pacing rate for this bandwidth.
    fn paced(&self, rate: u64) -> u64 {
        if self.linux.is_some() { mul_div(rate, PACED, 1000) } else { rate }
    }

    /// BBRSetPacingRate: before the pipe is full it only rises.
    fn set_pacing_rate(&mut self) {
        let rate = self.paced(mul_div(self.used_bandwidth(), self.pacing_gain(), 1000));
        if rate > 0 && (self.full_pipe.reached || rate > self.pacing_rate) {
            self.pacing_rate = rate;
        }
    }

    /// Updates the state of recovery, which an event began, and ends it.
    fn update_recovery(&mut self, window: &mut Window, ack: &AckContext) {
        self.recovery = match self.recovery {
            Recovery::Fast { conserving } if ack.recovering => {
                Recovery::Fast { conserving: conserving && !self.round_start }
            }
            Recovery::Timeout { until } if ack.delivered < until => self.recovery,
            Recovery::None => return,
            Recovery::Fast { .. } | Recovery::Timeout { .. } => {
                window.resize(window.cwnd.max(self.prior_cwnd));
                Recovery::None
            }
        };
    }

    /// BBRSetCwnd.
    fn set_window(&mut self, window: &mut Window, ack: &AckContext) {
        let Last { newly, in_flight, delivered } = self.last;
        let target = self.target(window);
        let segment = window.segment();
        let mut cwnd = window.cwnd;
        if self.recovery != Recovery::None && ack.lost > 0 {
            cwnd = cwnd.saturating_sub(ack.lost).max(segment);
        }
        if self.recovery == (Recovery::Fast { conserving: true }) {
            cwnd = cwnd.max(in_flight.saturating_add(newly));
        } else {
            if self.full_pipe.reached {
                cwnd = cwnd.saturating_add(newly).min(target);
            } else if cwnd < target || delivered < initial_window(window.mss) {
                cwnd = cwnd.saturating_add(newly);
            }
            cwnd = cwnd.max(LEAST_WINDOW * segment);
        }
        if matches!(self.mode, Mode::ProbeRtt { .. }) {
            cwnd = cwnd.min(LEAST_WINDOW * segment);
        }
        window.resize(cwnd);
    }
}

impl CongestionControl for Controller {
    fn name(&self) -> &'static str {
        "bbr"
    }

    fn answers_marks(&self) -> bool {
        false
    }

    fn on_start(&mut self, window: &mut Window, _now: Instant) {
        // BBRInitPacingRate: without a round-trip time, a millisecond.
        self.pacing_rate = self.paced(mul_div(window.cwnd.min(Window::WIDEST), HIGH_GAIN, 1));
    }

    fn on_takeover(&mut self, window: &mut Window, takeover: &Takeover) {
        let Takeover { now, in_flight, delivered, estimate, min_rtt } = *takeover;
        self.last = Last { delivered, newly: 0, in_flight };
        self.next_round_delivered = delivered;
        self.min_rtt = min_rtt.filter(|rtt| !rtt.is_zero()).map(|rtt| (rtt, now));
        self.on_start(window, now);
        if let Some(rtt) = estimate.map(|known| known.srtt).filter(|rtt| !rtt.is_zero()) {
            // The window in a round trip instead of in a millisecond.
            self.pacing_rate = mul_div(self.pacing_rate, 1_000_000, rtt.as_nanos());
        }
    }

    fn on_leave(&mut self, window: &mut Window) {
        if self.full_pipe.reached {
            // As in Linux: others would take a window without a threshold for one in slow start.
            window.ssthresh = self.inflight(1000, window).max(window.floor());
        }
    }

    fn on_lost(&mut self, _window: &mut Window, lost: &LostTransmission) {
        if let Some(linux) = &mut self.linux {
            linux.policer.lose(lost.range.end.since(lost.range.start));
        }
    }

    fn on_sample(&mut self, window: &mut Window, ack: &AckContext) {
        let newly = ack.delivered.saturating_sub(self.last.delivered);
        self.last = Last { delivered: ack.delivered, newly, in_flight: ack.in_flight };
        if self.min_rtt.is_none()
            && let Some(rtt) = ack.rtt.filter(|rtt| !rtt.is_zero())
        {
            // The first round-trip time replaces the millisecond.
            let nominal = mul_div(initial_window(window.mss), 1_000_000_000, rtt.as_nanos());
            self.pacing_rate = self.paced(mul_div(nominal, HIGH_GAIN, 1000));
        }
        self.update_bandwidth(ack);
        self.update_aggregation(window, ack);
        self.update_recovery(window, ack);
        self.advance_cycle(window, ack);
        self.check_full_pipe(ack);
        self.check_drain(window, ack);
        self.update_min_rtt(window, ack);
        self.set_pacing_rate();
        self.set_window(window, ack);
    }

    fn has_own_slow_start(&self) -> bool {
        true
    }

    fn on_ack(&mut self, _window: &mut Window, _acked: u64, _ack: &AckContext) {
        // The window follows the model, whether it was the limit or not: on_sample sets it.
    }

    fn on_event(&mut self, window: &mut Window, event: CongestionEvent, now: Instant) {
        match event {
            CongestionEvent::Loss { .. } => {
                self.save(window);
                // Section 4.2.3.4: first as much as is delivered, a round trip long.
                let Last { newly, in_flight, delivered } = self.last;
                self.recovery = Recovery::Fast { conserving: true };
                self.next_round_delivered = delivered;
                window.resize(in_flight.saturating_add(newly.max(window.segment())));
            }
            CongestionEvent::Timeout { flight, first } => {
                if first {
                    self.save(window);
                }
                let until = self.last.delivered.saturating_add(flight);
                self.recovery = Recovery::Timeout { until };
                window.resize(window.segment());
                if self.linux.is_some() {
                    // Linux takes a timeout for the end of a round trip, with a loss.
                    self.round_start = true;
                    self.full_pipe.rate = 0;
                    self.update_policer(now, true, false);
                }
            }
            CongestionEvent::Unvalidated { idle: true, .. } => {
                // Section 4.3.4.4: what is measured next is not a queue.
                self.idle_restart = true;
                if matches!(self.mode, Mode::ProbeBw { .. }) {
                    self.pacing_rate = self.paced(self.used_bandwidth()).max(1);
                }
            }
            CongestionEvent::HandshakeLoss => window.resize(window.segment()),
            CongestionEvent::Unvalidated { idle: false, .. }
            | CongestionEvent::Ecn { .. }
            | CongestionEvent::RecoveryEnd { .. } => {}
        }
    }

    fn on_undo(&mut self, window: &mut Window, prior: Window, _now: Instant) {
        self.recovery = Recovery::None;
        self.full_pipe.reset(0);
        if let Some(linux) = &mut self.linux {
            linux.policer.reset();
        }
        restore(window, prior);
    }

    fn pacing_rate(&self, _window: &Window) -> Option<u64> {
        Some(self.pacing_rate.max(1))
    }

    fn needs_pacing(&self) -> bool {
        true
    }

    fn has_own_recovery(&self) -> bool {
        true
    }
}
