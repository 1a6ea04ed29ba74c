//! What the SYNs of both directions say, and when they are believed.
//!
//! The scale of a receiver's windows is in its SYN, and in force only if the sender's SYN had one too (RFC 7323 2.2). So both
//! are waited for, and the acknowledgement behind them: somebody who can send packets from one side only, with whatever
//! addresses, gets no further than a half-open record, and those make room for each other.

use transom_wire::seq::Seq;
use transom_wire::tcp::{Flags, Options};

use super::flow::{Open, Opening, Phase, Step};
use super::segment::Segment;

/// The largest shift there is; a larger one is taken for it (RFC 7323 2.3).
const MAX_SCALE: u8 = 14;
/// What may be sent to who does not say (RFC 9293 3.7.1). IPv6 has more, but a lower bound too low is harmless.
const DEFAULT_MSS: u16 = 536;
/// Data that a SYN may carry (RFC 7413), as far as its answer may acknowledge it.
const MAX_SYN_DATA: u32 = 1 << 16;
/// So much beyond the edge may be acknowledged: window probes are sent where there is no window (RFC 9293 3.8.6.1).
pub(super) const PROBE: u32 = 1;

impl Opening {
    /// The sender's SYN comes first.
    pub(super) fn called(segment: &Segment, options: &Options, micros: u32) -> Self {
        Opening {
            iss: segment.seq,
            irs: Seq::new(0),
            began: micros,
            window: 0,
            mss: DEFAULT_MSS,
            scale: None,
            step: Step::Called,
            sender_scales: options.window_scale.is_some(),
        }
    }

    /// The receiver's SYN comes first.
    pub(super) fn called_back(segment: &Segment, options: &Options, micros: u32) -> Self {
        let mut opening = Opening::called(segment, options, micros);
        opening.step = Step::CalledBack;
        opening.sender_scales = false;
        opening.receiver_says(segment, options);
        opening
    }

    /// The receiver answers a SYN that went another way. An answer scales only if the question did.
    pub(super) fn answer_alone(segment: &Segment, options: &Options, micros: u32) -> Self {
        let mut opening = Opening::called_back(segment, options, micros);
        opening.step = Step::Answered;
        opening.iss = segment.ack - 1;
        opening.sender_scales = true;
        opening
    }

    fn receiver_says(&mut self, segment: &Segment, options: &Options) {
        self.irs = segment.seq;
        self.window = segment.window;
        self.mss = options.mss.unwrap_or(DEFAULT_MSS).max(1);
        self.scale = options.window_scale.map(|scale| scale.min(MAX_SCALE));
    }

    /// The receiver's SYN with ACK. Whether it answers the sender's.
    pub(super) fn answered(&mut self, segment: &Segment, options: &Options) -> bool {
        let acked = segment.ack.distance_from(self.iss).cast_unsigned();
        let fits = match self.step {
            Step::Called => (1..=1 + MAX_SYN_DATA).contains(&acked),
            // Once more.
            Step::Answered => acked == 1 && segment.seq == self.irs,
            Step::CalledBack | Step::AnsweredBack => false,
        };
        if fits {
            self.step = Step::Answered;
            self.iss = segment.ack - 1;
            self.receiver_says(segment, options);
        }
        fits
    }

    /// The sender's SYN with ACK.
    pub(super) fn answered_back(&mut self, segment: &Segment, options: &Options) {
        let acks_the_syn = segment.ack == self.irs + 1;
        if matches!(self.step, Step::CalledBack | Step::AnsweredBack) && acks_the_syn {
            self.step = Step::AnsweredBack;
            self.iss = segment.seq;
            self.sender_scales = options.window_scale.is_some();
        }
    }

    /// A segment of the sender without SYN: the flow, if this ends its handshake.
    pub(super) fn sent(&self, segment: &Segment, micros: u32) -> Option<Open> {
        let ends = self.step == Step::Answered
            && segment.flags.contains(Flags::ACK)
            && segment.ack == self.irs + 1;
        ends.then(|| self.open(micros.wrapping_sub(self.began).max(1)))
    }

    /// A returning segment without SYN: the flow, if this ends its handshake.
    pub(super) fn returned(&self, segment: &Segment, micros: u32) -> Option<Open> {
        let acked = segment.ack.distance_from(self.iss + 1);
        let fits = u32::try_from(acked).is_ok_and(|acked| acked <= u32::from(self.window) + PROBE);
        let ended = match self.step {
            Step::Answered | Step::AnsweredBack => fits,
            Step::Called | Step::CalledBack => false,
        };
        // With data behind it, it is no measure of the path alone.
        let measured = self.step == Step::AnsweredBack && acked == 0;
        let rtt = if measured { micros.wrapping_sub(self.began).max(1) } else { 0 };
        ended.then(|| self.open(rtt))
    }

    fn open(&self, rtt: u32) -> Open {
        Open {
            edge: self.iss + 1 + u32::from(self.window),
            ack: self.iss + 1,
            desired: u32::MAX,
            rtt,
            period: 0,
            mss: self.mss,
            scale: self.scale.filter(|_| self.sender_scales).unwrap_or(0),
            strikes: 0,
            closing: false,
        }
    }
}

impl Phase {
    /// Whether a SYN of a new connection may take this one's place. A flow that goes on is not given up because somebody
    /// says so; where its end was missed it has to grow old first.
    pub(super) fn gives_way(&self) -> bool {
        match self {
            Phase::Opening(_) | Phase::Lost => true,
            Phase::Open(open) => open.closing,
        }
    }
}
