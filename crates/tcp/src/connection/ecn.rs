//! ECN on the connection's two halves (RFC 3168 section 6.1): marks that arrive, echoes that come back [SHLD-8].

use super::accurate::Accurate;
use super::timers::Timer;
use super::{Connection, output::Plan};
use crate::accurate_ecn::{self, Agreement};
use crate::control::{MarkBounds, Outcome};
use crate::ecn::{EcnFeedback, FeedbackUnit};
use crate::pos::Pos;
use crate::recovery::Phase;
use crate::segment::Segment;
use crate::time::Instant;
use alloc::boxed::Box;
use transom_wire::{Ecn, Flags};

/// The feedback of marks, in both directions.
#[derive(Debug)]
pub(super) enum Feedback {
    /// By an echo (RFC 3168, RFC 8257); the receiving half.
    Echo(FeedbackUnit),
    /// By counts (RFC 9768).
    Accurate(Box<Accurate>),
}

/// The connection's state of ECN.
#[derive(Debug)]
pub(super) struct EcnState {
    /// The feedback of marks.
    feedback: Feedback,
    /// Nothing leaves ECN-capable.
    pub(super) silent: bool,
    /// An acknowledgement that must leave first: up to where, and with the echo or not.
    pub(super) early_ack: Option<(Pos, bool)>,
    /// The next new data tells the receiver that the window was reduced.
    pub(super) cwr_due: bool,
    /// SND.NXT when the window was last reduced: an echo for earlier data is ignored.
    reduced_upto: Pos,
    /// The window does not grow before this is acknowledged: it was reduced for a mark.
    hold_upto: Pos,
    /// Segments that arrived marked.
    pub(super) marked_segments: u64,
    /// Reductions for echoes.
    pub(super) reductions: u64,
}

impl EcnState {
    pub(super) fn new(feedback: Feedback) -> Self {
        EcnState {
            feedback,
            silent: false,
            early_ack: None,
            cwr_due: false,
            reduced_upto: Pos::INITIAL,
            hold_upto: Pos::INITIAL,
            marked_segments: 0,
            reductions: 0,
        }
    }

    pub(super) fn accurate(&self) -> Option<&Accurate> {
        match &self.feedback {
            Feedback::Accurate(state) => Some(state),
            Feedback::Echo(_) => None,
        }
    }

    pub(super) fn accurate_mut(&mut self) -> Option<&mut Accurate> {
        match &mut self.feedback {
            Feedback::Accurate(state) => Some(state),
            Feedback::Echo(_) => None,
        }
    }

    /// The handshake brought the mark of a SYN or SYN-ACK of ours, and `nxt` is SND.NXT.
    pub(super) fn note_handshake_mark(&mut self, nxt: Pos) {
        self.reduced_upto = nxt;
        self.reductions += 1;
    }
}

impl Connection {
    /// The flags that acknowledgements use now to report marks: ECE, or the field ACE.
    pub(super) fn echo(&self) -> Flags {
        match self.ecn.as_ref().map(|ecn| &ecn.feedback) {
            Some(Feedback::Echo(feedback)) if feedback.echo() => Flags::ECE,
            Some(Feedback::Accurate(state)) => state.field(),
            _ => Flags::empty(),
        }
    }

    /// The flags by which our SYN-ACK agrees to ECN.
    pub(super) fn syn_ack_flags(&self) -> Flags {
        match self.accurate() {
            Some(state) => state.syn_ack_flags(),
            None if self.agreed.ecn => Flags::ECE,
            None => Flags::empty(),
        }
    }

    /// The flags by which our SYN offers ECN. If a SYN gets no answer, a middlebox may drop its flags: RFC 3168 section 6.1.1.1 then stops offering
    /// at once, RFC 9768 section 3.1.4.1 tries twice.
    pub(super) fn offer(&self) -> Flags {
        let accurate = self.profile.ecn.accurate().is_some();
        let (offer, attempts) = match accurate {
            true => (Flags::AE | Flags::ECE | Flags::CWR, 2),
            false => (Flags::ECE | Flags::CWR, 1),
        };
        if self.offers_ecn() && self.snd.syn.transmissions <= attempts {
            offer
        } else {
            Flags::empty()
        }
    }

    /// Agrees on ECN, from the flags of the peer's first SYN-ACK, or of a SYN that crosses ours.
    pub(super) fn agree_on_ecn(&mut self, flags: Flags) {
        let is_answer = flags.contains(Flags::ACK);
        if self.offers_ecn() && self.profile.ecn.accurate().is_some() {
            // It says which of our SYNs it answers, if one of them did not offer.
            let agreement = if is_answer {
                accurate_ecn::agreed_by_syn_ack(flags)
            } else {
                accurate_ecn::answer_to_syn(flags)
            };
            self.agreed.accurate = agreement == Agreement::Accurate;
            self.agreed.ecn = agreement == Agreement::Classic;
            return;
        }
        // Section 6.1.1 of RFC 3168: a SYN-ACK agrees by ECE alone (both flags would be ours, sent back), a SYN that crosses ours by both.
        let said = flags & (Flags::ECE | Flags::CWR);
        let agrees = if is_answer { Flags::ECE } else { Flags::ECE | Flags::CWR };
        // Nor is there ECN once a SYN without the offer has left: the peer may have heard the one or the other.
        let offered = self.offers_ecn() && self.snd.syn.transmissions <= 1;
        self.agreed.ecn = offered && said == agrees;
    }

    /// The state for what is agreed on.
    pub(super) fn ecn_state(&self) -> Option<Box<EcnState>> {
        let accurate = self.profile.ecn.accurate().filter(|_| self.agreed.accurate);
        let feedback = match accurate {
            Some(options) => Feedback::Accurate(Box::new(Accurate::new(options))),
            None => {
                Feedback::Echo(FeedbackUnit::new(self.profile.ecn).filter(|_| self.agreed.ecn)?)
            }
        };
        Some(Box::new(EcnState::new(feedback)))
    }

    /// The peer's SYN-ACK arrived, or a SYN that crosses ours.
    pub(super) fn on_answer_to_syn(&mut self, now: Instant, segment: &Segment<'_>) {
        let is_answer = segment.header.flags.contains(Flags::ACK);
        // After a SYN without the offer, the peer may believe that this end has no ECN, unless it has answered the offer with accurate ECN
        // (RFC 9768 section 3.1.5).
        let withdrawn = self.offer().is_empty() && !(is_answer && self.agreed.accurate);
        let Some(ecn) = self.ecn.as_deref_mut() else { return };
        ecn.silent = withdrawn;
        match &mut ecn.feedback {
            Feedback::Echo(_) => self.on_marked_syn_ack(segment),
            Feedback::Accurate(_) if is_answer => self.on_accurate_syn_ack(now, segment),
            Feedback::Accurate(state) => state.on_syn(segment.ecn),
        }
    }

    /// The acknowledgement of our SYN-ACK arrived.
    pub(super) fn on_handshake_ack(&mut self, now: Instant, segment: &Segment<'_>) {
        if self.agreed.accurate {
            self.on_accurate_handshake_ack(now, segment);
        } else {
            self.on_syn_ack_echo(now, segment.header.flags);
        }
    }

    /// The SYN-ACK arrived with a mark, which is possible with peers that extend ECN to control packets. The mark is echoed like one on data. (A
    /// plain RFC 3168 peer does not make it markable; the echo would only cause a needless reduction.)
    fn on_marked_syn_ack(&mut self, segment: &Segment<'_>) {
        let Some(ecn) = &mut self.ecn else { return };
        let Feedback::Echo(feedback) = &mut ecn.feedback else { return };
        if segment.ecn == Ecn::Ce {
            ecn.marked_segments += 1;
            feedback.on_data(true, false);
        }
    }

    /// The handshake is complete, and its last acknowledgement echoes a mark on our SYN-ACK. The initial window is one segment, as if the SYN-ACK
    /// had been lost (draft-ietf-tcpm-generalized-ecn, section 3.2.2).
    fn on_syn_ack_echo(&mut self, now: Instant, flags: Flags) {
        let extended = self.profile.ecn.config().is_some_and(|config| config.control_packets);
        if self.owner.active || !extended || !flags.contains(Flags::ECE) {
            return;
        }
        let nxt = self.nxt();
        let Some(ecn) = &mut self.ecn else { return };
        ecn.cwr_due = true;
        ecn.note_handshake_mark(nxt);
        self.control.on_handshake_mark(now);
    }

    /// The marks of an acceptable segment. Only those of data count (RFC 3168 section 6.1.5): other segments are not marked by an
    /// honest path, and an attacker must not have a reduction for a guess.
    pub(super) fn on_mark(&mut self, segment: &Segment<'_>) {
        let Some(ecn) = &mut self.ecn else { return };
        let Feedback::Echo(feedback) = &mut ecn.feedback else {
            return self.count_codepoint(segment);
        };
        if segment.payload.is_empty() {
            return;
        }
        let marked = segment.ecn == Ecn::Ce;
        ecn.marked_segments += u64::from(marked);
        let before = feedback.echo();
        let at_once = feedback.on_data(marked, segment.header.flags.contains(Flags::CWR));
        if at_once && (self.rcv.ack_now || self.timers.is_set(Timer::Ack)) {
            ecn.early_ack = Some((self.rcv.next(), before));
        }
    }

    /// Up to where marks are answered already.
    pub(super) fn mark_bounds(&self) -> Option<MarkBounds> {
        let ecn = self.ecn.as_ref()?;
        Some(MarkBounds { reduced_upto: ecn.reduced_upto, hold_upto: ecn.hold_upto })
    }

    /// Whether data that was sent before the last reduction for a mark is not acknowledged yet, and nothing else is repaired.
    pub(super) fn is_reduced_for_mark(&self) -> bool {
        let calm = matches!(self.control.phase(), Phase::Open | Phase::Disorder);
        calm && self.ecn.as_ref().is_some_and(|ecn| self.una() < ecn.hold_upto)
    }

    /// Control has answered an event. If it reduced the window, the next new data tells the receiver (CWR).
    pub(super) fn note_reduction(&mut self, outcome: &Outcome) {
        let nxt = self.nxt();
        let Some(ecn) = self.ecn.as_mut().filter(|_| outcome.reduced) else { return };
        if outcome.answered_mark {
            ecn.reductions += 1;
            ecn.hold_upto = nxt;
        }
        // RFC 9768 has no use for it: the flag is part of a count.
        ecn.cwr_due = ecn.accurate().is_none();
        ecn.reduced_upto = nxt;
    }

    /// The codepoint of a packet. Only new data is ECN-capable (RFC 3168 sections 5.2 and 6.1.4 to 6.1.6). A profile can include retransmissions,
    /// probes, FINs and resets, but never pure acknowledgements, whose marks could not be echoed. If the controller ignores marks, no packet is
    /// ECN-capable. A scalable controller asks for the marks of L4S by ECT(1), and may do so only with accurate feedback (RFC 9331 sections 4.1 and
    /// 4.2).
    pub(super) fn codepoint(&self, plan: &Plan) -> Ecn {
        if self.ecn.as_ref().is_none_or(|ecn| ecn.silent) || !self.control.answers_marks() {
            return Ecn::NotEct;
        }
        let extended = self.profile.ecn.config().is_some_and(|config| config.control_packets);
        let capable = match plan {
            Plan::PathProbe(..) => true,
            Plan::Data(range, _) | Plan::TailProbe(range, Some(_)) => {
                extended || range.end > range.start
            }
            Plan::Retransmit { .. } | Plan::TailProbe(_, None) | Plan::Probe | Plan::Reset => {
                extended
            }
            Plan::Syn | Plan::KeepAlive | Plan::Ack | Plan::EarlyAck(..) => false,
        };
        match capable {
            true if self.agreed.accurate && self.control.is_scalable() => Ecn::Ect1,
            true => Ecn::Ect0,
            false => Ecn::NotEct,
        }
    }
}
