//! An active open that holds its last acknowledgement.
//!
//! A proxy opens a connection to the second end before the first one is certain. If it acknowledged the SYN-ACK at once, the second end would
//! accept a connection that may never be used, and a flood of such would fill its accept queue. So the owner may have the answer held. It hears
//! that the peer would accept ([`Signal::Answered`]), and nothing more leaves until it says so. A connection that ends before resets the peer.
//!
//! The peer repeats its SYN-ACK meanwhile. The newest one is kept, because its timestamp is the one to echo. Data that comes with it is dropped: the
//! peer has no acknowledgement of it, and sends it again.

use super::timers::Timer;
use super::{Connection, Opening, Signal, State};
use crate::packet::Payload;
use crate::segment::Segment;
use crate::time::{Duration, Instant};
use alloc::boxed::Box;
use transom_wire::{Ecn, Flags, Seq, TcpHeader};

/// The state of an open that holds its last acknowledgement.
#[derive(Debug)]
pub(super) struct HeldOpen {
    /// How long an answer is held.
    limit: Duration,
    answer: Option<Answer>,
}

/// A SYN-ACK that is held.
#[derive(Clone, Copy, Debug)]
struct Answer {
    /// Of the newest one.
    header: TcpHeader,
    ecn: Ecn,
    /// When the first one arrived.
    at: Instant,
}

impl Connection {
    /// See [`Setting::HoldAnswer`](super::Setting::HoldAnswer).
    pub(super) fn hold_answer(&mut self, limit: Duration) {
        if self.state == State::SynSent && !self.is_answered() {
            let held = HeldOpen { limit, answer: None };
            self.handshake.opening = Some(Box::new(Opening::Held(held)));
        }
    }

    /// Whether the peer would accept: its answer to our SYN is held.
    pub(super) fn is_answered(&self) -> bool {
        self.state == State::SynSent && self.answer().is_some()
    }

    /// Continues an opening that was held. A SYN that [waits for data](super::OpeningState::holds_syn) leaves with the present data. A held answer
    /// completes the handshake, at once if the peer has answered, or else when it does; data that was written meanwhile leaves with it.
    pub fn release(&mut self, now: Instant) {
        self.release_syn();
        let Some(answer) = self.take_held() else { return };
        let Some(Answer { header, ecn, at }) = answer.filter(|_| self.state == State::SynSent)
        else {
            return;
        };
        self.timers.clear(Timer::State);
        self.snd.syn.due = false;
        // The round trip ended when the answer came.
        self.snd.syn.sent_at += now.since(at);
        let payload = Payload::borrowed(&[]);
        let answer = Segment { header: &header, payload, segment_size: None, ecn };
        self.on_segment_in_syn_sent(now, &answer);
    }

    fn answer(&self) -> Option<&Answer> {
        match self.handshake.opening.as_deref()? {
            Opening::Held(held) => held.answer.as_ref(),
            Opening::Early(_) => None,
        }
    }

    /// Ends the holding, if there was any, and gives the answer, if it has come.
    fn take_held(&mut self) -> Option<Option<Answer>> {
        match self.handshake.opening.as_deref()? {
            Opening::Held(held) => {
                let answer = held.answer;
                self.handshake.opening = None;
                Some(answer)
            }
            Opening::Early(_) => None,
        }
    }

    /// Keeps an acceptable SYN, if it is to be held. Returns whether it was.
    pub(super) fn holds(&mut self, now: Instant, segment: &Segment<'_>) -> bool {
        let Some(Opening::Held(held)) = self.handshake.opening.as_deref_mut() else { return false };
        if !segment.header.flags.contains(Flags::ACK) {
            // A simultaneous open: an answer would complete the peer's handshake. The peer's answer to our SYN comes as well.
            return true;
        }
        let at = held.answer.map_or(now, |answer| answer.at);
        let mut header = *segment.header;
        header.flags.remove(Flags::FIN | Flags::URG);
        let is_first = held.answer.replace(Answer { header, ecn: segment.ecn, at }).is_none();
        if is_first {
            let end = now + held.limit;
            self.snd.syn.due = false;
            self.control.stop_timers();
            self.timers.set(Timer::State, end);
            self.raise(Signal::Answered);
        }
        true
    }

    /// Whether a reset is the word of a peer whose answer is held: it stands exactly where that peer would send next (RFC 5961 section 3.2).
    pub(super) fn takes_answer_back(&self, seq: Seq) -> bool {
        self.answer().is_some_and(|answer| seq == answer.header.seq + 1)
    }

    /// The connection ends with an answer that is held: the peer, which waits for our acknowledgement, is reset.
    pub(super) fn refuse_answer(&mut self) {
        let Some(answer) = self.take_held().flatten() else { return };
        if self.state == State::SynSent {
            let seq = answer.header.ack;
            self.replies.reset =
                Some(Box::new(TcpHeader { seq, flags: Flags::RST, ..self.base_header() }));
        }
    }
}
