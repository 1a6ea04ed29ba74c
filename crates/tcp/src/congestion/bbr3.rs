//! BBR, version 3 (draft-ietf-ccwg-bbr-06; Cardwell, Swett, Beshay: "BBR Congestion Control").
//!
//! Like its first version it models the path by its delivery rate and its round-trip propagation time, and paces at the rate. It also responds to
//! losses: a loss of more than 2 % of the flight means that the flight was too large. The model (section 5.5), PROBE_BW and PROBE_RTT have their
//! own files. The use of the model:
//! - STARTUP paces at 2.77 times the rate until that has not grown by a quarter for three round trips, or until a round trip of fast recovery
//!   shows losses above the threshold. DRAIN empties the queue that this left, at half of the rate.
//! - PROBE_BW cycles. DOWN paces at 0.9 until the queue is gone and there is room for others. CRUISE paces at the rate for two to three seconds,
//!   or as many round trips as Reno would need. REFILL lasts a round trip. UP paces at 1.25 until the rate does not grow, or losses show that the
//!   flight is too large.
//! - PROBE_RTT, when the propagation time was not seen for five seconds, has half of the product in flight for 200 ms.
//!
//! Differences from the draft, and choices that it leaves open:
//! - PickProbeWait's random numbers are a hash of the time and of what has been delivered: runs repeat.
//! - The state for an undo is saved when a recovery begins, not again with the first loss of each of its round trips (the prose of section
//!   5.5.11.1 says the one, NoteLoss the other). The window that PROBE_RTT returns to is the last one before it.
//! - Data sent before the end of PROBE_RTT counts as limited by the application. The delivery count tells it, instead of a mark in the connection.
//! - An acknowledgement without a sample of the rate, because that would be of less than a round trip, ends no round trip.
//! - Restarting from idle is what follows a silence longer than the retransmission timeout.
//! - A retransmission timeout's recovery ends when as much has been delivered as was in flight.
//! - Section 3.7 treats CE marks as congestion and leaves open how. Here an echo counts as a loss in its round trip. In STARTUP it ends STARTUP.
//!   In a probe it ends the probe, as losses above the threshold do, and the flight counts as too large.
//! - Section 4.1.3.3 (asking the receiver for fewer acknowledgements) needs an option that there is not.

mod model;
mod probe_bw;
mod probe_rtt;

use self::model::{BETA, Bounds, LEAST_WINDOW, Model, Sample, Seen, inflight_at_loss, larger};
use super::arithmetic::{bytes_in, mul_div};
use super::built_in::BuiltIn;
use super::controller::Kind;
use super::full_pipe::FullPipe;
use super::{CongestionControl, CongestionEvent, Takeover, Window, initial_window};
use crate::ack_context::AckContext;
use crate::rate::LostTransmission;
use crate::time::{Duration, Instant};
use alloc::boxed::Box;

#[cfg(test)]
mod tests;

/// BBR's third version. It has no parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bbr3;

impl BuiltIn for Bbr3 {
    const NAME: &'static str = "bbr3";
    const SOURCE: &'static str = "draft-ietf-ccwg-bbr-06";
    const SUMMARY: &'static str = "BBR that responds to losses and leaves room for other flows";

    fn kind(&self) -> Kind {
        Kind::Bbr3(Box::new(Controller::new(Instant::ZERO)))
    }
}

/// BBR.StartupPacingGain. Gains are in thousandths.
const STARTUP_GAIN: u64 = 2770;
/// The share of the rate to pace at: BBR.PacingMarginPercent is 1.
const MARGIN: u64 = 990;
/// BBRStartupFullLossCnt.
const STARTUP_LOSS_RANGES: u32 = 6;
/// BBR.ProbeRTTDuration.
const PROBE_RTT_TIME: Duration = Duration::from_millis(200);
/// T_reno_bound, in round trips.
const RENO_ROUNDS: u64 = 63;
/// The least of T_bbr, and how much longer it may be, in nanoseconds.
const PROBE_WAIT: Duration = Duration::from_secs(2);
const PROBE_WAIT_SPREAD: u64 = 1_000_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Startup,
    /// Since that round.
    Drain(u64),
    Down,
    Cruise,
    Refill,
    Up,
    /// Until that moment, once the flight has fallen to half of the product; and a round trip at least.
    ProbeRtt {
        until: Option<Instant>,
        round_done: bool,
    },
}

impl Mode {
    /// IsInAProbeBWState.
    fn is_probe_bw(self) -> bool {
        matches!(self, Mode::Down | Mode::Cruise | Mode::Refill | Mode::Up)
    }

    /// IsProbingBW.
    fn is_probing(self) -> bool {
        matches!(self, Mode::Startup | Mode::Refill | Mode::Up)
    }
}

/// BBR.ack_phase: the phase that the present acknowledgements measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AckPhase {
    Init,
    Refilling,
    ProbeStarting,
    ProbeFeedback,
    ProbeStopping,
}

/// The cycle of PROBE_BW.
#[derive(Clone, Copy, Debug)]
struct Cycle {
    since: Instant,
    /// BBR.bw_probe_wait.
    wait: Duration,
    rounds_since_up: u64,
    acks: AckPhase,
    /// is_bw_probe_sample.
    is_probe_sample: bool,
    /// bw_probe_up_rounds, bw_probe_up_acked and probe_up_acked_per_inc (`None`: infinity).
    up_rounds: u32,
    up_acked: u64,
    acked_per_segment: Option<u64>,
    /// prev_probe_too_high and prev_probe_precautionary.
    too_high: bool,
    precautionary: bool,
}

/// Loss recovery, as far as the window is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Recovery {
    None,
    Fast,
    /// Until this much has been delivered.
    Timeout(u64),
}

/// The state that losses ended: undo_state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Left {
    Startup,
    Up,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Controller {
    mode: Mode,
    model: Model,
    full_pipe: FullPipe,
    cycle: Cycle,
    /// Bytes per second.
    pacing_rate: u64,
    /// prior_cwnd: the window before recovery or PROBE_RTT.
    prior_cwnd: u64,
    recovery: Recovery,
    /// The state that an undo restores, and whether the losses that begin a recovery have saved it.
    saved: Bounds,
    is_saved: bool,
    left: Option<Left>,
    /// Samples of data sent before this much had been delivered are limited by BBR itself.
    limited_until: u64,
    /// Whether the flow comes out of silence.
    idle_restart: bool,
    /// C.delivered, and the flight, as of the last acknowledgement.
    delivered: u64,
    in_flight: u64,
    /// Whether SACK was agreed on.
    sack: bool,
}

/// A pseudo-random number that is the same in every run (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014).
fn scramble(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

impl Controller {
    fn new(now: Instant) -> Self {
        Controller {
            mode: Mode::Startup,
            model: Model::new(now),
            full_pipe: FullPipe::default(),
            cycle: Cycle {
                since: now,
                wait: Duration::ZERO,
                rounds_since_up: 0,
                acks: AckPhase::Init,
                is_probe_sample: false,
                up_rounds: 0,
                up_acked: 0,
                acked_per_segment: None,
                too_high: false,
                precautionary: false,
            },
            pacing_rate: 0,
            prior_cwnd: 0,
            recovery: Recovery::None,
            saved: Bounds::default(),
            is_saved: false,
            left: None,
            limited_until: 0,
            idle_restart: false,
            delivered: 0,
            in_flight: 0,
            sack: true,
        }
    }

    // ----- section 5.6.1's table -----

    fn pacing_gain(&self) -> u64 {
        match self.mode {
            Mode::Startup => STARTUP_GAIN,
            Mode::Drain(_) => 500,
            Mode::Down => 900,
            Mode::Cruise | Mode::Refill | Mode::ProbeRtt { .. } => 1000,
            Mode::Up => 1250,
        }
    }

    fn window_gain(&self) -> u64 {
        match self.mode {
            Mode::Up => 2250,
            Mode::ProbeRtt { .. } => 500,
            _ => 2000,
        }
    }

    // ----- how much in flight (section 5.6.4.2) -----

    /// BDPMultiple.
    fn product(&self, rate: u64, gain: u64, window: &Window) -> u64 {
        match self.model.min_rtt() {
            Some(min_rtt) => mul_div(bytes_in(min_rtt, rate), gain, 1000),
            None => initial_window(window.mss),
        }
    }

    /// SetSendQuantum.
    fn quantum(&self, window: &Window) -> u64 {
        (self.pacing_rate / 1000).min(65_536).max(2 * window.segment())
    }

    /// QuantizationBudget.
    fn quantized(&self, inflight: u64, window: &Window) -> u64 {
        let budget = 3 * self.quantum(window);
        let least = inflight.max(budget).max(LEAST_WINDOW * window.segment());
        let more = if self.mode == Mode::Up { 2 * window.segment() } else { 0 };
        least.saturating_add(more)
    }

    /// TargetInflight.
    fn target_inflight(&self, window: &Window) -> u64 {
        self.model.product().min(window.cwnd)
    }

    /// ProbeRTTCwnd.
    fn probe_rtt_window(&self, window: &Window) -> u64 {
        self.product(self.model.rate, 500, window).max(LEAST_WINDOW * window.segment())
    }

    // ----- STARTUP and DRAIN (sections 5.3.1 and 5.3.2) -----

    /// CheckStartupHighLoss.
    fn check_startup_losses(&mut self, ack: &AckContext, sample: &Sample) {
        if self.mode != Mode::Startup || !ack.recovering {
            return;
        }
        let losses = &self.model.losses;
        let high = if ack.sack_agreed {
            losses.ends && losses.ranges >= STARTUP_LOSS_RANGES && sample.is_too_high(true)
        } else {
            ack.lost > 0
        };
        if high {
            self.end_startup();
        }
    }

    /// Losses or marks say that the pipe is full.
    fn end_startup(&mut self) {
        self.left = Some(Left::Startup);
        self.full_pipe.reached = true;
        let safe = self.model.product().max(self.model.inflight_latest);
        self.model.bounds.inflight_longterm = Some(safe);
    }

    /// CheckStartupDone and CheckDrainDone.
    fn check_drain(&mut self, window: &Window, ack: &AckContext) {
        if self.mode == Mode::Startup && self.full_pipe.reached {
            self.mode = Mode::Drain(self.model.rounds.count);
        }
        if let Mode::Drain(since) = self.mode {
            let product = self.product(self.model.rate, 1000, window);
            let drained = ack.in_flight <= self.quantized(product, window);
            if drained || self.model.rounds.count > since + 3 {
                self.start_down(ack.now);
            }
        }
    }

    // ----- recovery (sections 5.5.11 and 5.6.4.4) -----

    /// SaveCwnd.
    fn save_window(&mut self, window: &Window) {
        let steady = self.recovery == Recovery::None && !matches!(self.mode, Mode::ProbeRtt { .. });
        self.prior_cwnd = if steady { window.cwnd } else { self.prior_cwnd.max(window.cwnd) };
    }

    /// SaveStateUponLoss.
    fn save_state(&mut self, window: &Window) {
        self.save_window(window);
        self.left = None;
        self.saved = self.model.bounds;
    }

    /// Recovery begins, usually after reported losses.
    fn begin_recovery(&mut self, window: &Window) {
        let is_saved = core::mem::take(&mut self.is_saved);
        if self.recovery == Recovery::None && !is_saved {
            self.save_state(window);
        }
    }

    /// Updates the state of recovery, which an event began, and ends it.
    fn update_recovery(&mut self, window: &mut Window, ack: &AckContext) {
        let goes_on = match self.recovery {
            Recovery::None => true,
            Recovery::Fast => ack.recovering,
            Recovery::Timeout(until) => ack.delivered < until,
        };
        if !goes_on {
            self.recovery = Recovery::None;
            window.resize(window.cwnd.max(self.prior_cwnd));
        }
    }

    // ----- the control parameters (section 5.6) -----

    /// SetPacingRateWithGain: before the pipe is full it only rises.
    fn set_pacing_rate(&mut self, gain: u64) {
        let rate = mul_div(mul_div(self.model.rate, gain, 1000), MARGIN, 1000);
        if rate > 0 && (self.full_pipe.reached || rate > self.pacing_rate) {
            self.pacing_rate = rate;
        }
    }

    /// SetCwnd, with BoundCwndForProbeRTT and BoundCwndForModel.
    fn set_window(&mut self, window: &mut Window, newly: u64) {
        let least = LEAST_WINDOW * window.segment();
        let product = self.product(self.model.rate, self.window_gain(), window);
        let extra = self.model.extra(self.full_pipe.reached);
        let most = self.quantized(product.saturating_add(extra), window);
        let mut cwnd = window.cwnd;
        if self.full_pipe.reached {
            cwnd = cwnd.saturating_add(newly).min(most);
        } else if cwnd < most || self.delivered < initial_window(window.mss) {
            cwnd = cwnd.saturating_add(newly);
        }
        cwnd = cwnd.max(least);
        if matches!(self.mode, Mode::ProbeRtt { .. }) {
            cwnd = cwnd.min(self.probe_rtt_window(window));
        }
        let longterm = match self.mode {
            Mode::Down | Mode::Refill | Mode::Up => self.model.bounds.inflight_longterm,
            Mode::Cruise | Mode::ProbeRtt { .. } => self.model.inflight_with_headroom(window),
            Mode::Startup | Mode::Drain(_) => None,
        };
        let shortterm = self.model.bounds.inflight_shortterm.unwrap_or(u64::MAX);
        let cap = longterm.unwrap_or(u64::MAX).min(shortterm).max(least);
        window.resize(cwnd.min(cap));
    }
}

impl CongestionControl for Controller {
    fn name(&self) -> &'static str {
        "bbr3"
    }

    fn on_start(&mut self, window: &mut Window, now: Instant) {
        *self = Controller::new(now);
        // It has no use for a threshold. Above it the window counts as the limit when it is, and not already when half of it is used.
        window.ssthresh = window.floor();
        // InitPacingRate: without a round-trip time, a millisecond.
        self.pacing_rate = mul_div(window.cwnd.min(Window::WIDEST), STARTUP_GAIN, 1);
    }

    fn on_takeover(&mut self, window: &mut Window, takeover: &Takeover) {
        let Takeover { now, in_flight, delivered, estimate, min_rtt: _ } = *takeover;
        self.on_start(window, now);
        // Rounds and totals go on from what has been delivered; what the path can carry is found out anew.
        (self.delivered, self.in_flight) = (delivered, in_flight);
        self.model.rounds.restart(delivered);
        if let Some(rtt) = estimate.map(|known| known.srtt).filter(|rtt| !rtt.is_zero()) {
            // The window in a round trip instead of in a millisecond.
            self.pacing_rate = mul_div(self.pacing_rate, 1_000_000, rtt.as_nanos());
        }
    }

    fn on_leave(&mut self, window: &mut Window) {
        // Others grow below a threshold as in slow start. A pipe that was found full is one whose end is known.
        window.ssthresh =
            if self.full_pipe.reached { window.cwnd.max(window.floor()) } else { u64::MAX };
    }

    fn on_lost(&mut self, window: &mut Window, lost: &LostTransmission) {
        self.delivered = lost.delivered;
        self.model.note_loss(lost.delivered);
        if self.recovery == Recovery::None && !self.is_saved {
            self.save_state(window);
            self.is_saved = true;
        }
        self.model.count_range(lost);
        if self.cycle.is_probe_sample
            && let Some(in_flight) = inflight_at_loss(lost, self.sack)
        {
            self.on_too_high(window, in_flight, lost.app_limited, lost.now);
        }
    }

    fn on_sample(&mut self, window: &mut Window, ack: &AckContext) {
        let newly = ack.newly_delivered;
        self.delivered = ack.delivered;
        self.in_flight = ack.in_flight;
        self.sack = ack.sack_agreed;
        if self.model.min_rtt().is_none()
            && let Some(rtt) = ack.rtt.filter(|rtt| !rtt.is_zero())
        {
            // The first round-trip time replaces the millisecond.
            let nominal = mul_div(initial_window(window.mss), 1_000_000_000, rtt.as_nanos());
            self.pacing_rate = mul_div(nominal, STARTUP_GAIN, 1000);
        }
        self.update_recovery(window, ack);
        // UpdateModelAndState.
        let sample = Sample::of(ack, newly, self.limited_until);
        self.model.update_rates(&sample, ack.delivered);
        self.cycle.rounds_since_up += u64::from(self.model.rounds.starts);
        self.model.adapt_to_losses(self.mode.is_probing(), window);
        self.model.update_aggregation(ack.now, newly, window);
        // CheckFullBWReached (section 5.3.1.2).
        self.full_pipe.check(self.model.rounds.starts, sample.rate, sample.limited);
        self.check_startup_losses(ack, &sample);
        self.check_drain(window, ack);
        self.advance_cycle(window, ack, &sample);
        self.model.update_min_rtt(ack);
        self.check_probe_rtt(window, ack);
        self.model.finish(&sample);
        // UpdateControlParameters.
        self.set_pacing_rate(self.pacing_gain());
        self.set_window(window, newly);
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
                self.begin_recovery(window);
                self.recovery = Recovery::Fast;
            }
            CongestionEvent::Timeout { flight, first } => {
                self.begin_recovery(window);
                if first {
                    self.save_window(window);
                }
                self.recovery = Recovery::Timeout(self.delivered.saturating_add(flight));
                window.resize(window.segment());
            }
            CongestionEvent::Ecn { .. } => {
                self.model.note_loss(self.delivered);
                if self.mode == Mode::Startup {
                    self.end_startup();
                } else if self.cycle.is_probe_sample {
                    self.on_too_high(window, self.in_flight, false, now);
                }
            }
            CongestionEvent::Unvalidated { idle: true, .. } => {
                // HandleRestartFromIdle.
                self.idle_restart = true;
                self.model.restart_aggregation(now);
                if self.mode.is_probe_bw() {
                    self.set_pacing_rate(1000);
                } else {
                    self.check_probe_rtt_done(window, now);
                }
            }
            CongestionEvent::HandshakeLoss => window.resize(window.segment()),
            CongestionEvent::Unvalidated { idle: false, .. }
            | CongestionEvent::RecoveryEnd { .. } => {}
        }
    }

    // HandleSpuriousLossDetection.
    fn on_undo(&mut self, window: &mut Window, _prior: Window, _now: Instant) {
        self.recovery = Recovery::None;
        window.resize(window.cwnd.max(self.prior_cwnd));
        self.model.losses.lossy = false;
        self.full_pipe.reset(0);
        let Bounds { rate_shortterm, inflight_shortterm, inflight_longterm } = self.saved;
        let bounds = &mut self.model.bounds;
        bounds.rate_shortterm = larger(bounds.rate_shortterm, rate_shortterm);
        bounds.inflight_shortterm = larger(bounds.inflight_shortterm, inflight_shortterm);
        bounds.inflight_longterm = larger(bounds.inflight_longterm, inflight_longterm);
        let probing_rtt = matches!(self.mode, Mode::ProbeRtt { .. });
        match self.left.take() {
            Some(Left::Startup) if self.mode != Mode::Startup => {
                self.full_pipe.reached = false;
                if !probing_rtt {
                    self.mode = Mode::Startup;
                }
            }
            Some(Left::Up) if self.mode != Mode::Up && !probing_rtt => self.start_refill(),
            _ => {}
        }
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
