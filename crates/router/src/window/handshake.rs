//! The SYNs of both directions, and when they are accepted.
//!
//! The scale of a receiver's windows is in its SYN, and in force only if the sender's SYN had one too (RFC 7323 2.2). So the control waits
//! for both SYNs, and then for a proof of the completed handshake. An attacker with forged addresses on one side gets no further than a
//! half-open record, and half-open records make room for each other.
//!
//! Proofs that a handshake is complete which the sender began:
//!
//! - The sender acknowledges the receiver's SYN. The receiver chooses the number, and only a host that gets its packets knows it.
//! - The receiver acknowledges more than its SYN did. It takes data only after it got that acknowledgement (RFC 9293 3.10.7.4).
//!   This is no proof if the sender's SYN carried data, which a receiver may take at once (RFC 7413).
//!
//! An ACK of the receiver for only the sender's SYN proves nothing. A receiver in SYN-RECEIVED answers any segment outside its window with
//! such an ACK (RFC 9293 3.10.7.4), so a forged SYN and a forged segment behind it cause one. Such an ACK passes unchanged, and its edge is
//! remembered.
//!
//! If the receiver began, its own ACK of the sender's SYN is the proof. The receiver can know the sender's number only if it got it.
//!
//! The window in the receiver's SYN is the first one that the sender sees, and may be lowered in passing. There is no edge yet that it
//! could move. That holds for the first SYN only. The router cannot know which of several SYNs reaches the sender. So it remembers the
//! furthest edge of all of them, and no later one moves it back. This matters when a SYN is repeated, both ends call at once, or another
//! host answers. A SYN that passes unchanged counts as well.
//!
//! The router only knows the packets that it has seen. If the sender gets a copy of the SYN by another path, with a larger window, it will
//! send data beyond the edge here, and get it acknowledged. The router treats such acknowledgements as foreign: they pass unchanged, and
//! after a few the whole flow does. That is correct, because a flow with two paths cannot be controlled on one.

use transom_wire::Seq;
use transom_wire::tcp::{Flags, Options};

use super::flow::{Open, Opening, Phase, Step, SynFlags};
use super::marker::WindowMarker;
use super::segment::Segment;

/// The largest shift; a larger one counts as this (RFC 7323 2.3).
const MAX_SCALE: u8 = 14;
/// The default segment size without the option (RFC 9293 3.7.1). IPv6 has a larger one, but a lower bound that is too low is harmless.
const DEFAULT_MSS: u16 = 536;
/// Data that a SYN may carry (RFC 7413), as far as its answer may acknowledge it.
const MAX_SYN_DATA: u32 = 65_535;
/// This much beyond the edge may be acknowledged: window probes are sent into a closed window (RFC 9293 3.8.6.1).
pub(super) const PROBE: u32 = 1;

/// A SYN of the receiver on its way to the sender.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReceiverSyn<'a> {
    pub(super) segment: &'a Segment,
    /// `None` if they cannot be read; then nothing is learned from them.
    pub(super) options: Option<&'a Options>,
    /// The window that the policy wishes for, in bytes; `None` if it is to stay.
    pub(super) wish: Option<u64>,
}

impl ReceiverSyn<'_> {
    /// The window to forward, if the sender has seen an edge this many bytes beyond the acknowledgement.
    pub(super) fn window(&self, told: u32) -> u16 {
        match (self.wish, self.options) {
            (Some(wish), Some(options)) => {
                WindowMarker::first(self.segment.window, told, mss(options), wish)
            }
            _ => self.segment.window,
        }
    }
}

/// The bytes of data that a segment acknowledges besides the SYN with this number, unless it answers another SYN.
pub(super) fn data_beside(syn: Seq, segment: &Segment) -> Option<u32> {
    let data = (segment.ack - 1).distance_from(syn).cast_unsigned();
    (data <= MAX_SYN_DATA).then_some(data)
}

/// The segment size of a receiver with these options, in bytes.
pub(super) fn mss(options: &Options) -> u16 {
    options.mss.filter(|mss| *mss > 0).unwrap_or(DEFAULT_MSS)
}

impl Opening {
    /// The sender's SYN comes first.
    pub(super) fn called(segment: &Segment, options: &Options, micros: u32) -> Self {
        Opening {
            iss: segment.seq,
            irs: Seq::new(0),
            began: micros,
            seen_edge: 0,
            mss: DEFAULT_MSS,
            syn_flags: SynFlags::default()
                .sender_scales(options.window_scale.is_some())
                .early_if(segment.payload > 0),
            step: Step::Called,
        }
    }

    /// The receiver's SYN comes first; its window is not forwarded yet. `None` if its options cannot be read.
    pub(super) fn called_back(syn: &ReceiverSyn<'_>, micros: u32) -> Option<Self> {
        let options = syn.options?;
        let mut opening = Opening::called(syn.segment, options, micros);
        opening.step = Step::CalledBack;
        opening.syn_flags = SynFlags::default();
        opening.receiver_says(syn.segment, options);
        Some(opening)
    }

    /// The receiver answers a SYN that went another way; the same. An answer scales only if the question did.
    pub(super) fn answer_alone(syn: &ReceiverSyn<'_>, micros: u32) -> Option<Self> {
        let mut opening = Opening::called_back(syn, micros)?;
        opening.step = Step::Answered;
        opening.iss = syn.segment.ack - 1;
        opening.syn_flags = opening.syn_flags.sender_scales(true);
        Some(opening)
    }

    fn receiver_says(&mut self, segment: &Segment, options: &Options) {
        self.irs = segment.seq;
        self.mss = mss(options);
        self.syn_flags =
            self.syn_flags.receiver_scale(options.window_scale.map(|scale| scale.min(MAX_SCALE)));
    }

    /// The window to forward in a SYN that acknowledges this many bytes of data besides the sender's SYN; remembers it.
    pub(super) fn tell(&mut self, early: u32, syn: &ReceiverSyn<'_>) -> u16 {
        let window = syn.window(self.seen_edge.saturating_sub(early));
        self.seen_edge = self.seen_edge.max(early + u32::from(window));
        if window < syn.segment.window {
            self.syn_flags = self.syn_flags.lowered();
        }
        window
    }

    /// Keeps the edge that the sender has seen when another handshake replaces this one, because it may be the same.
    fn keep_seen_edge(&mut self, before: &Opening) {
        self.seen_edge = before.seen_edge;
        if before.syn_flags.is_lowered() {
            self.syn_flags = self.syn_flags.lowered();
        }
    }

    /// The sender's SYN without ACK, when there has been one already of either side.
    pub(super) fn called_again(&mut self, segment: &Segment, options: &Options, micros: u32) {
        match self.step {
            // A repeated SYN belongs to the same handshake, which began with the first.
            Step::Called | Step::AskedAgain | Step::AnsweredBack if segment.seq == self.iss => {
                self.syn_flags = self.syn_flags.early_if(segment.payload > 0);
            }
            Step::Answered if segment.seq == self.iss => {
                self.step = Step::AskedAgain;
                self.began = micros;
                self.syn_flags = self.syn_flags.early_if(segment.payload > 0);
            }
            step => {
                let mut new = Opening::called(segment, options, micros);
                // Perhaps both call at once, and then the sender gets the receiver's SYN as well.
                if step == Step::CalledBack {
                    new.keep_seen_edge(self);
                }
                *self = new;
            }
        }
    }

    /// The receiver's SYN without ACK, after an earlier one of either side. Returns the window to forward.
    pub(super) fn called_back_again(&mut self, syn: &ReceiverSyn<'_>, micros: u32) -> u16 {
        if self.step != Step::Called && syn.segment.seq == self.irs {
            if self.step == Step::AnsweredBack {
                self.began = micros;
            }
        } else if let Some(mut new) = Opening::called_back(syn, micros) {
            // Perhaps both call at once.
            if self.step == Step::Called {
                new.keep_seen_edge(self);
            }
            *self = new;
        }
        self.tell(0, syn)
    }

    /// The receiver's SYN with ACK. Returns the window to forward, if it belongs to this handshake. `alone` if the sender's SYNs are not
    /// seen.
    pub(super) fn answered(&mut self, syn: &ReceiverSyn<'_>, alone: bool) -> Option<u16> {
        let segment = syn.segment;
        match self.step {
            Step::Called | Step::Answered | Step::AskedAgain => {
                let early = data_beside(self.iss, segment)?;
                let window = self.tell(early, syn);
                self.syn_flags = self.syn_flags.early_if(early > 0);
                // Another answer without another question is not believed. But the sender may.
                let believed = self.step != Step::Answered || segment.seq == self.irs || alone;
                if let Some(options) = syn.options.filter(|_| believed) {
                    self.step = Step::Answered;
                    self.receiver_says(segment, options);
                }
                Some(window)
            }
            Step::CalledBack if segment.seq != self.irs => None,
            Step::CalledBack => {
                let window = self.tell(0, syn);
                if alone {
                    self.step = Step::Answered;
                    self.iss = segment.ack - 1;
                    self.syn_flags = self.syn_flags.sender_scales(true);
                }
                Some(window)
            }
            Step::AnsweredBack if segment.seq != self.irs => None,
            Step::AnsweredBack => Some(self.tell(data_beside(self.iss, segment)?, syn)),
        }
    }

    /// The sender's SYN with ACK.
    pub(super) fn answered_back(&mut self, segment: &Segment, options: &Options) {
        let acks_the_syn = match self.step {
            Step::CalledBack | Step::AnsweredBack => data_beside(self.irs, segment).is_some(),
            // Both called at once, and the receiver's answer came by first. This is the sender's proof.
            Step::Answered | Step::AskedAgain => {
                segment.seq == self.iss && segment.ack == self.irs + 1
            }
            Step::Called => false,
        };
        if acks_the_syn {
            self.step = Step::AnsweredBack;
            self.iss = segment.seq;
            self.syn_flags = self.syn_flags.sender_scales(options.window_scale.is_some());
        }
    }

    /// A segment of the sender without SYN: the flow, if this ends its handshake.
    pub(super) fn sent(&self, segment: &Segment, micros: u32) -> Option<Open> {
        // A host that did not call may well answer the receiver's SYN with a RST.
        let ends = matches!(self.step, Step::Answered | Step::AskedAgain)
            && segment.flags.contains(Flags::ACK)
            && !segment.flags.contains(Flags::RST)
            && segment.ack == self.irs + 1;
        let closing = segment.flags.contains(Flags::FIN);
        ends.then(|| Open { closing, ..self.open(micros.wrapping_sub(self.began).max(1)) })
    }

    /// A returning segment without SYN: returns the flow, if it completes its handshake. If not, it passes unchanged, and its edge is
    /// remembered.
    pub(super) fn returned(&mut self, segment: &Segment, micros: u32) -> Option<Open> {
        let acked = u32::try_from(segment.ack.distance_from(self.iss + 1)).ok();
        let acked = acked.filter(|acked| *acked <= self.seen_edge + PROBE)?;
        let ended = match self.step {
            Step::Answered | Step::AskedAgain => acked > 0 && !self.syn_flags.is_early(),
            Step::AnsweredBack => true,
            Step::Called | Step::CalledBack => return None,
        };
        if !ended {
            let window = u32::from(segment.window) << self.syn_flags.scale();
            self.seen_edge = self.seen_edge.max(acked + window);
            return None;
        }
        // With data behind it, it is no measure of the path alone.
        let measured = self.step == Step::AnsweredBack && acked == 0;
        let rtt = if measured { micros.wrapping_sub(self.began).max(1) } else { 0 };
        Some(self.open(rtt))
    }

    fn open(&self, rtt: u32) -> Open {
        Open {
            edge: self.iss + 1 + self.seen_edge,
            ack: self.iss + 1,
            // A window that was lowered need not come down again.
            desired: if self.syn_flags.is_lowered() { self.seen_edge } else { u32::MAX },
            rtt,
            period: 0,
            mss: self.mss,
            scale: self.syn_flags.scale(),
            implausible_in_a_row: 0,
            closing: false,
        }
    }
}

impl Phase {
    /// Whether a SYN of a new connection may replace this one. An active flow is not replaced by a mere SYN; if its end was missed, it has
    /// to age first.
    pub(super) fn is_replaceable(&self) -> bool {
        match self {
            Phase::Opening(_) | Phase::Lost => true,
            Phase::Open(open) => open.closing,
        }
    }
}
