//! PROBE_RTT, which empties the queue to see the propagation time (section 5.3.4).

use super::*;

impl Controller {
    /// CheckProbeRTT.
    pub(super) fn check_probe_rtt(&mut self, window: &mut Window, ack: &AckContext) {
        let probing = matches!(self.mode, Mode::ProbeRtt { .. });
        if !probing && self.model.probe_rtt_expired && !self.idle_restart {
            self.save_window(window);
            self.mode = Mode::ProbeRtt { until: None, round_done: false };
            self.cycle.acks = AckPhase::ProbeStopping;
            self.model.rounds.restart(self.delivered);
        }
        if let Mode::ProbeRtt { until, round_done } = self.mode {
            self.limited_until = ack.delivered.saturating_add(ack.in_flight).max(1);
            match until {
                None if ack.in_flight <= self.probe_rtt_window(window) => {
                    let until = Some(ack.now + PROBE_RTT_TIME);
                    self.mode = Mode::ProbeRtt { until, round_done: false };
                    self.model.rounds.restart(self.delivered);
                }
                None => {}
                Some(_) => {
                    let round_done = round_done || self.model.rounds.starts;
                    self.mode = Mode::ProbeRtt { until, round_done };
                    if round_done {
                        self.check_probe_rtt_done(window, ack.now);
                    }
                }
            }
        }
        if ack.rate.is_some_and(|rate| rate.delivered > 0) {
            self.idle_restart = false;
        }
    }

    /// CheckProbeRTTDone and ExitProbeRTT.
    pub(super) fn check_probe_rtt_done(&mut self, window: &mut Window, now: Instant) {
        let Mode::ProbeRtt { until: Some(until), .. } = self.mode else { return };
        if now <= until {
            return;
        }
        self.model.probe_rtt = self.model.probe_rtt.map(|seen| Seen { at: now, ..seen });
        window.resize(window.cwnd.max(self.prior_cwnd));
        self.model.reset_shortterm();
        if self.full_pipe.reached {
            self.start_down(now);
            self.mode = Mode::Cruise;
        } else {
            self.mode = Mode::Startup;
        }
    }
}
