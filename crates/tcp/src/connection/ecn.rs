//! ECN on the connection's two halves (RFC 3168 section 6.1): marks that arrive, echoes that come back [SHLD-8].

use super::timers::Timer;
use super::{Connection, output::Plan};
use crate::ack_context::AckContext;
use crate::congestion::CongestionEvent;
use crate::ecn::EcnFeedback;
use crate::pos::Pos;
use crate::recovery::Phase;
use crate::segment::Segment;
use crate::time::Instant;
#[cfg(fixed_units)]
use crate::units::direct::*;
use alloc::boxed::Box;
use transom_wire::{Ecn, Flags};

/// What the connection knows of marks.
#[derive(Debug)]
pub(super) struct EcnState {
    /// The receiving half.
    feedback: Box<dyn EcnFeedback>,
    /// What has to be acknowledged before anything else: up to where, and with the echo or not.
    pub(super) early_ack: Option<(Pos, bool)>,
    /// The next new data tells the receiver that the window was reduced.
    pub(super) cwr_due: bool,
    /// SND.NXT when the window was last reduced: an echo of what was sent before it is no news.
    reduced_upto: Pos,
    /// The window does not grow before this is acknowledged: it was reduced for a mark.
    hold_upto: Pos,
    /// Segments that arrived marked.
    pub(super) marked_segments: u64,
    /// Reductions for echoes.
    pub(super) reductions: u64,
}

impl EcnState {
    pub(super) fn new(feedback: Box<dyn EcnFeedback>) -> Self {
        EcnState {
            feedback,
            early_ack: None,
            cwr_due: false,
            reduced_upto: Pos::INITIAL,
            hold_upto: Pos::INITIAL,
            marked_segments: 0,
            reductions: 0,
        }
    }
}

impl Connection {
    /// ECE, if acknowledgements carry it now.
    pub(super) fn echo(&self) -> Flags {
        match &self.ecn {
            Some(ecn) if ecn.feedback.echo() => Flags::ECE,
            _ => Flags::empty(),
        }
    }

    /// The SYN-ACK arrived with a mark, as those of peers that extend ECN to control packets can: it is told to them like data's. (A plain RFC 3168
    /// peer does not make it markable, and has no use for the echo but a reduction too many.)
    pub(super) fn on_marked_syn_ack(&mut self, segment: &Segment<'_>) {
        let Some(ecn) = &mut self.ecn else { return };
        if segment.ecn == Ecn::Ce {
            ecn.marked_segments += 1;
            ecn.feedback.on_data(true, false);
        }
    }

    /// The handshake is complete, and its last acknowledgement tells of a mark on our SYN-ACK: the initial window is one segment, as if the
    /// SYN-ACK had been lost (draft-ietf-tcpm-generalized-ecn, section 3.2.2).
    pub(super) fn on_syn_ack_echo(&mut self, now: Instant, flags: Flags) {
        let extended = self.profile.ecn.config().is_some_and(|config| config.control_packets);
        if self.active || !extended || !flags.contains(Flags::ECE) {
            return;
        }
        let nxt = self.nxt();
        let Some(ecn) = &mut self.ecn else { return };
        ecn.cwr_due = true;
        ecn.reduced_upto = nxt;
        ecn.reductions += 1;
        self.reduce(CongestionEvent::HandshakeLoss, now);
    }

    /// The marks of an acceptable segment. Only those of data count (RFC 3168 section 6.1.5): other segments are not marked by an
    /// honest path, and an attacker must not have a reduction for a guess.
    pub(super) fn on_mark(&mut self, segment: &Segment<'_>) {
        let Some(ecn) = &mut self.ecn else { return };
        if segment.payload.is_empty() {
            return;
        }
        let marked = segment.ecn == Ecn::Ce;
        ecn.marked_segments += u64::from(marked);
        let before = ecn.feedback.echo();
        let at_once = ecn.feedback.on_data(marked, segment.header.flags.contains(Flags::CWR));
        if at_once && (self.rcv.ack_now || self.timers.is_set(Timer::Ack)) {
            ecn.early_ack = Some((self.rcv.next, before));
        }
    }

    /// An acknowledgement with the echo: the window is reduced as by a loss, once for each window of data (RFC 3168 section
    /// 6.1.2).
    pub(super) fn on_echo(&mut self, ack: &AckContext) {
        let nxt = self.nxt();
        match &mut self.ecn {
            Some(ecn) if ack.una > ecn.reduced_upto && !ack.recovering => {
                ecn.reductions += 1;
                ecn.hold_upto = nxt;
            }
            _ => return,
        }
        let flight = self.snd.validation.on_mark(self.snd.sent.outstanding() + ack.acked);
        self.reduce(CongestionEvent::Ecn { flight }, ack.now);
    }

    /// Whether data that was sent before the last reduction for a mark is not acknowledged yet, and nothing else is repaired.
    pub(super) fn is_reduced_for_mark(&self) -> bool {
        let calm = matches!(self.snd.recovery.phase(), Phase::Open | Phase::Disorder);
        calm && self.ecn.as_ref().is_some_and(|ecn| self.una() < ecn.hold_upto)
    }

    /// Whether the window may grow again after a mark.
    pub(super) fn may_grow(&self, ack: &AckContext) -> bool {
        self.ecn.as_ref().is_none_or(|ecn| ack.una >= ecn.hold_upto)
    }

    /// The window was reduced, for whatever reason: the receiver is told with the next new data.
    pub(super) fn note_reduction(&mut self, event: CongestionEvent) {
        let counts = matches!(
            event,
            CongestionEvent::Loss { .. }
                | CongestionEvent::Timeout { .. }
                | CongestionEvent::Ecn { .. }
        );
        let nxt = self.nxt();
        if let Some(ecn) = self.ecn.as_mut().filter(|_| counts) {
            ecn.cwr_due = true;
            ecn.reduced_upto = nxt;
        }
    }

    /// The codepoint of what leaves. Only new data is ECN-capable (RFC 3168 sections 5.2 and 6.1.4 to 6.1.6) unless the profile says so: then
    /// retransmissions, probes, FINs and resets are too, but never pure acknowledgements, whose marks could not be fed back. Nothing is for a
    /// controller that does not answer marks.
    pub(super) fn codepoint(&self, plan: &Plan) -> Ecn {
        let extended = self.profile.ecn.config().is_some_and(|config| config.control_packets);
        let capable = self.ecn.is_some()
            && self.snd.congestion.answers_marks()
            && match plan {
                Plan::Data(range, _) | Plan::TailProbe(range, Some(_)) => {
                    extended || range.end > range.start
                }
                Plan::Retransmit(..) | Plan::TailProbe(_, None) | Plan::Probe | Plan::Reset(_) => {
                    extended
                }
                Plan::Syn | Plan::KeepAlive | Plan::Ack | Plan::EarlyAck(..) => false,
            };
        if capable { Ecn::Ect0 } else { Ecn::NotEct }
    }
}
