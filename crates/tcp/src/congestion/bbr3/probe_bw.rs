//! PROBE_BW, the cycle that probes for bandwidth and leaves room for others (section 5.3.3).

use super::*;

impl Controller {
    /// StartProbeBW_DOWN, with PickProbeWait.
    pub(super) fn start_down(&mut self, now: Instant) {
        self.model.reset_signals();
        let random = scramble(now.as_nanos() ^ self.delivered.rotate_left(32));
        let spread = Duration::from_nanos((random >> 1) % (PROBE_WAIT_SPREAD + 1));
        self.cycle.acked_per_segment = None;
        self.cycle.rounds_since_up = random & 1;
        self.cycle.wait = PROBE_WAIT + spread;
        self.cycle.since = now;
        self.cycle.acks = AckPhase::ProbeStopping;
        self.model.rounds.restart(self.delivered);
        self.mode = Mode::Down;
    }

    /// StartProbeBW_REFILL.
    pub(super) fn start_refill(&mut self) {
        self.model.reset_shortterm();
        self.cycle.up_rounds = 0;
        self.cycle.up_acked = 0;
        self.cycle.precautionary = false;
        self.cycle.acks = AckPhase::Refilling;
        self.model.rounds.restart(self.delivered);
        self.mode = Mode::Refill;
    }

    /// StartProbeBW_UP.
    pub(super) fn start_up(&mut self, window: &Window, sample: &Sample) {
        self.cycle.acks = AckPhase::ProbeStarting;
        self.model.rounds.restart(self.delivered);
        self.full_pipe.reset(sample.rate);
        self.mode = Mode::Up;
        self.raise_slope(window);
    }

    /// UpdateProbeBWCyclePhase.
    pub(super) fn advance_cycle(&mut self, window: &Window, ack: &AckContext, sample: &Sample) {
        if !self.full_pipe.reached || self.adapt_longterm(window, ack, sample) {
            return;
        }
        if self.mode == Mode::Up && self.is_time_to_go_down(window, ack, sample) {
            self.cycle.too_high = false;
            self.start_down(ack.now);
            return;
        }
        match self.mode {
            Mode::Down | Mode::Cruise if self.is_time_to_probe(window, ack.now) => {
                self.start_refill();
            }
            Mode::Down if self.is_time_to_cruise(window, ack) => self.mode = Mode::Cruise,
            Mode::Refill if self.model.rounds.starts => {
                self.cycle.is_probe_sample = true;
                self.start_up(window, sample);
            }
            _ => {}
        }
    }

    /// IsTimeToProbeBW.
    pub(super) fn is_time_to_probe(&self, window: &Window, now: Instant) -> bool {
        let reno = (self.target_inflight(window) / window.segment()).min(RENO_ROUNDS);
        now > self.cycle.since + self.cycle.wait || self.cycle.rounds_since_up >= reno
    }

    /// IsTimeToCruise.
    pub(super) fn is_time_to_cruise(&self, window: &Window, ack: &AckContext) -> bool {
        let room = self.model.inflight_with_headroom(window).unwrap_or(u64::MAX);
        let product = self.product(self.model.max_rate(), 1000, window);
        ack.in_flight <= room.min(self.quantized(product, window))
    }

    /// IsTimeToGoDown.
    pub(super) fn is_time_to_go_down(
        &mut self,
        window: &Window,
        ack: &AckContext,
        sample: &Sample,
    ) -> bool {
        let longterm = self.model.bounds.inflight_longterm.unwrap_or(u64::MAX);
        if self.cycle.too_high && ack.in_flight >= longterm {
            self.cycle.precautionary = true;
            return true;
        }
        if ack.cwnd_limited && window.cwnd >= longterm {
            self.full_pipe.reset(sample.rate);
            return false;
        }
        self.full_pipe.now
    }

    /// RaiseInflightLongtermSlope.
    pub(super) fn raise_slope(&mut self, window: &Window) {
        let growth = 1 << self.cycle.up_rounds;
        self.cycle.up_rounds = (self.cycle.up_rounds + 1).min(30);
        self.cycle.acked_per_segment = Some((window.cwnd / growth).max(window.segment()));
    }

    /// ProbeInflightLongtermUpward.
    pub(super) fn raise_longterm(&mut self, window: &Window, ack: &AckContext, sample: &Sample) {
        let Some(longterm) = self.model.bounds.inflight_longterm else { return };
        if !ack.cwnd_limited || window.cwnd < longterm {
            return;
        }
        let cycle = &mut self.cycle;
        cycle.up_acked = cycle.up_acked.saturating_add(sample.newly);
        if let Some(each) = cycle.acked_per_segment {
            let segments = cycle.up_acked / each.max(1);
            cycle.up_acked %= each.max(1);
            let raised = longterm.saturating_add(segments.saturating_mul(window.segment()));
            self.model.bounds.inflight_longterm = Some(raised.min(Window::WIDEST));
        }
        if self.model.rounds.starts {
            self.raise_slope(window);
        }
    }

    /// AdaptLongTermModel. Returns whether it has decided about the next state.
    pub(super) fn adapt_longterm(
        &mut self,
        window: &Window,
        ack: &AckContext,
        sample: &Sample,
    ) -> bool {
        let starts = self.model.rounds.starts;
        match self.cycle.acks {
            AckPhase::ProbeStarting if starts => self.cycle.acks = AckPhase::ProbeFeedback,
            AckPhase::ProbeStopping if starts => {
                self.cycle.is_probe_sample = false;
                self.cycle.acks = AckPhase::Init;
                if self.mode.is_probe_bw() {
                    if !sample.limited {
                        self.model.advance_cycle();
                    }
                    if self.cycle.precautionary && !self.cycle.too_high {
                        self.start_refill();
                        return true;
                    }
                }
            }
            _ => {}
        }
        if let Some(longterm) = self.model.bounds.inflight_longterm
            && !sample.is_too_high(ack.sack_agreed)
        {
            self.model.bounds.inflight_longterm = Some(longterm.max(sample.in_flight));
            if self.mode == Mode::Up {
                self.raise_longterm(window, ack, sample);
            }
        }
        false
    }

    /// HandleInflightTooHigh.
    pub(super) fn on_too_high(
        &mut self,
        window: &Window,
        in_flight: u64,
        limited: bool,
        now: Instant,
    ) {
        self.cycle.too_high = true;
        self.cycle.is_probe_sample = false;
        if !limited {
            let least = mul_div(self.target_inflight(window), BETA, 1000);
            self.model.bounds.inflight_longterm = Some(in_flight.max(least).min(Window::WIDEST));
        }
        if self.mode == Mode::Up {
            self.left = Some(Left::Up);
            self.start_down(now);
        }
    }
}
