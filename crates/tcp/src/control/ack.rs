//! The consequences of an acknowledgement: recovery first (what is lost), then congestion control (how much may be in flight).

use super::{Clamp, Control, Outcome};
use crate::ack_context::AckContext;
use crate::congestion::{CongestionControl, CongestionEvent};
use crate::pos::Pos;
use crate::recovery::{Phase, Recovery};
use crate::rto::RetransmissionTimer;
use crate::sent::Delivered;
use crate::slow_start::SlowStart;
use crate::time::Instant;
use crate::validation::{Validation, WindowBounds};
use core::ops::Range;
use transom_wire::Timestamps;

/// An acknowledgement with news, as the connection reads it.
#[derive(Clone, Debug)]
pub(crate) struct AckInput<'a> {
    pub(crate) now: Instant,
    /// SND.UNA before it.
    pub(crate) una_before: Pos,
    /// Bytes in flight before it.
    pub(crate) prior_in_flight: u64,
    /// What it changed on the scoreboard, with the round-trip time by timestamps where there is no better one.
    pub(crate) delivered: Delivered,
    /// It is a duplicate.
    pub(crate) duplicate: bool,
    /// Bytes that the peer says it got twice.
    pub(crate) duplicated: u64,
    /// It has selective acknowledgements.
    pub(crate) has_sack: bool,
    pub(crate) timestamps: Option<Timestamps>,
    /// It reports marks.
    pub(crate) ecn_echo: bool,
    /// How many bytes were marked, if that is reported.
    pub(crate) marked: Option<u64>,
    /// Up to where marks are answered already, if there is ECN.
    pub(crate) bounds: Option<MarkBounds>,
    /// The probe of the path MTU that is in flight.
    pub(crate) probe: Option<&'a Range<Pos>>,
    /// There is no new data that could leave; said only where the profile asks for it.
    pub(crate) starved: bool,
    /// Where the data ends.
    pub(crate) end: Pos,
}

/// What has been done about marks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MarkBounds {
    /// SND.NXT when the window was last reduced: an echo for earlier data is ignored.
    pub(crate) reduced_upto: Pos,
    /// The window does not grow before this is acknowledged: it was reduced for a mark.
    pub(crate) hold_upto: Pos,
}

impl Control {
    /// An acknowledgement with news was entered into the scoreboard.
    pub(crate) fn on_ack(&mut self, input: AckInput<'_>, clamp: &Clamp<'_>) -> Outcome {
        let mut outcome = Outcome::default();
        self.measure(&input, &mut outcome);
        let mut ack = self.context(&input, &outcome);
        let flight = self.sent.outstanding();
        let was_recovering = self.phase() == Phase::Recovery;
        let own = self.own_dupthresh(input.end, || input.starved);
        let threshold = clamp.dupthresh(&self.window, own);
        let verdict = self.recovery.on_ack(&mut self.sent, &ack, threshold);
        ack.lost = verdict.lost;
        ack.in_flight = self.in_flight();
        ack.recovering = self.phase() == Phase::Recovery;
        self.note_lost(ack.now, verdict.lost, &mut outcome);
        if self.window.in_slow_start() {
            self.slow_start.on_sample(&mut self.window, &ack);
        }
        self.controller.on_sample(&mut self.window, &ack);
        if self.was_spurious(&ack) {
            self.undo(ack.now, ack.ecn_echo, &mut outcome);
        } else if self.losses_count(&ack, verdict.entered, input.probe, &mut outcome) {
            self.begin_recovery(&ack, flight, &mut outcome);
        } else if verdict.exited && was_recovering {
            self.end_recovery(verdict.limit_to_flight, &ack, &mut outcome);
        } else if ack.acked > 0
            && ack.cwnd_limited
            && !ack.recovering
            && input.bounds.is_none_or(|bounds| ack.una >= bounds.hold_upto)
        {
            self.grow(&ack, clamp);
        }
        if verdict.exited {
            self.end_episode();
        }
        if let Some(WindowBounds { most_cwnd: cwnd, least_ssthresh: ssthresh }) =
            self.validation.on_ack(&self.window, &ack)
        {
            let event = CongestionEvent::Unvalidated { cwnd, ssthresh, idle: false };
            self.reduce(event, ack.now, &mut outcome);
        }
        if ack.recovering {
            self.go_on_reducing(&ack);
        }
        if ack.ecn_echo {
            self.answer_mark(&ack, input.bounds, &mut outcome);
        }
        if verdict.restart_timer {
            self.restart_timer(ack.now, clamp);
        }
        outcome.given_up = self.give_up(input.end, ack.now);
        self.arm_recovery(ack.now);
        outcome
    }

    /// What was acknowledged cumulatively ends waiting: for a repetition, and for anything at all if nothing is outstanding.
    pub(crate) fn on_progress(&mut self) {
        self.repeat_due = false;
        if self.una() == self.sent.end() {
            self.stop_retransmission();
        }
    }

    /// A segment that acknowledges nothing reports marks of so many bytes.
    pub(crate) fn on_marks(
        &mut self,
        now: Instant,
        marked: Option<u64>,
        bounds: Option<MarkBounds>,
    ) -> Outcome {
        let mut outcome = Outcome::default();
        let ack = self.no_acknowledgement(now, 0);
        let ack = AckContext { ecn_echo: true, marked, ..ack };
        self.answer_mark(&ack, bounds, &mut outcome);
        outcome
    }

    /// Samples the round-trip time, once the round and the flight that it belongs to are known.
    fn measure(&mut self, input: &AckInput<'_>, outcome: &mut Outcome) {
        let AckInput { now, prior_in_flight, delivered, .. } = input;
        // A round trip lasts until what was outstanding at its beginning is acknowledged.
        outcome.round_start = self.una() > self.round_end;
        if outcome.round_start {
            self.round_end = self.sent.end();
            self.timer.on_round();
        }
        self.timer.on_flight(prior_in_flight.div_ceil(self.window.segment()));
        if let Some(rtt) = delivered.rtt {
            self.sample_rtt(rtt, *now);
        }
    }

    /// What it means to every unit.
    fn context(&mut self, input: &AckInput<'_>, outcome: &Outcome) -> AckContext {
        let AckInput { now, prior_in_flight, duplicate, duplicated, has_sack, .. } = *input;
        let delivered = &input.delivered;
        let newly_delivered = self.newly_delivered(delivered, duplicate);
        let min_rtt = self.min_rtt();
        let rate = self.sent.rate_sample(delivered.rate, min_rtt);
        AckContext {
            now,
            una: self.una(),
            nxt: self.sent.end(),
            acked: delivered.acked,
            given_up: delivered.given_up,
            sacked: delivered.sacked,
            newly_delivered,
            lowest_original: delivered.lowest_original,
            newest: delivered.newest,
            lost: 0,
            duplicated,
            duplicate,
            has_sack,
            sack_agreed: self.sack,
            included_retransmission: delivered.included_retransmission,
            rtt: delivered.rtt,
            estimate: self.timer.estimate(),
            min_rtt,
            timestamps: input.timestamps,
            round_start: outcome.round_start,
            delivered: self.sent.delivery().delivered(),
            recovering: false,
            rate,
            prior_in_flight,
            in_flight: 0,
            cwnd_limited: self.was_limited(input.una_before, prior_in_flight),
            ecn_echo: input.ecn_echo,
            marked: input.marked,
            mss: self.window.mss,
        }
    }

    /// DeliveredData of RFC 9937 section 6.2: without SACK each duplicate counts as a segment, which the next advance must not
    /// count again.
    fn newly_delivered(&mut self, delivered: &Delivered, duplicate: bool) -> u64 {
        if self.sack {
            return delivered.acked_not_sacked + delivered.sacked;
        }
        if delivered.acked > 0 {
            let advance = delivered.acked.saturating_sub(delivered.given_up);
            let counted = self.duplicates_delivered.min(advance);
            // The rest was counted too, and belongs to a later advance.
            let rest = self.duplicates_delivered - counted;
            self.duplicates_delivered = rest.min(self.sent.outstanding());
            return advance - counted;
        }
        // More cannot have arrived than is out there.
        let left = self.sent.outstanding().saturating_sub(self.duplicates_delivered);
        let segment = if duplicate { u64::from(self.window.mss).min(left) } else { 0 };
        self.duplicates_delivered += segment;
        segment
    }

    /// The recovery unit has newly marked `bytes` lost.
    pub(super) fn note_lost(&mut self, now: Instant, bytes: u64, outcome: &mut Outcome) {
        self.lost += bytes;
        outcome.lost += bytes;
        if bytes > 0 {
            let Control { sent, controller, window, .. } = self;
            sent.report_lost(now, bytes, |lost| controller.on_lost(window, lost));
        }
    }

    /// Whether losses that were just found make the window come down: those with which recovery has `entered` its phase do, unless it was a `probe` of
    /// the path MTU (RFC 4821 section 7.6.2).
    pub(super) fn losses_count(
        &mut self,
        ack: &AckContext,
        entered: bool,
        probe: Option<&Range<Pos>>,
        outcome: &mut Outcome,
    ) -> bool {
        if !entered {
            // In a recovery that began for a probe, something else was found lost: the window has to come down for it.
            return ack.recovering && ack.lost > 0 && core::mem::take(&mut self.repairs_probe);
        }
        self.repairs_probe = false;
        let Some(probe) = probe else { return true };
        if !self.sent.at(probe.start).is_some_and(|record| record.status.lost) {
            return true;
        }
        outcome.probe_lost = true;
        self.repairs_probe = ack.lost == probe.end.since(probe.start);
        !self.repairs_probe
    }
}
