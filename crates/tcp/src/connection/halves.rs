//! The two halves of a connection, as far as neither the send engine ([`control`](crate::control)) nor a unit owns it.

use crate::ack_policy::AckUnit;
use crate::flow::FlowUnit;
use crate::options::TimestampState;
use crate::ordering::{Ordering as _, OrderingUnit};
use crate::pos::{Pos, SeqSpace};
use crate::send_buffer::SendBuffer;
use crate::time::{Duration, Instant};
use core::ops::Range;

/// The sending half: what is written, and what the peer permits.
#[derive(Debug)]
pub(super) struct Sender {
    pub(super) space: SeqSpace,
    pub(super) syn: OwnSyn,
    pub(super) buffer: SendBuffer,
    pub(super) peer: PeerWindow,
    pub(super) probes: WindowProbes,
    /// End of the last segment sent with less than a full payload (Minshall's refinement of Nagle's algorithm).
    pub(super) small_upto: Pos,
    /// A FIN follows everything that the application wrote.
    pub(super) fin_queued: bool,
    /// SND.UP: one past the last urgent byte. Acknowledged data is not urgent any more, and neither is data before the first byte.
    pub(super) urgent: Pos,
    /// The last write was cut short; the application waits for room.
    pub(super) writer_waits: bool,
    /// Retransmissions of the oldest segment.
    pub(super) retransmits: u32,
    /// Since when the data at SND.UNA has waited to be acknowledged, for the user timeout: since it was written, if it has not been sent, or else
    /// since it was first sent. A closed window that is confirmed starts it anew. [`Instant::FAR_FUTURE`] without any.
    pub(super) unacked_since: Instant,
}

/// Our SYN or SYN-ACK.
#[derive(Debug)]
pub(super) struct OwnSyn {
    /// It has to leave (again).
    pub(super) due: bool,
    /// The first one was answered for an older connection, so that the second one repeats none that was lost.
    pub(super) was_answered: bool,
    pub(super) sent_at: Instant,
    pub(super) transmissions: u32,
}

/// What the peer permits to be sent.
#[derive(Debug)]
pub(super) struct PeerWindow {
    /// SND.UNA + SND.WND: one past what it permits.
    pub(super) edge: Pos,
    /// SND.WL1, a position of the peer's.
    pub(super) wl1: Pos,
    /// SND.WL2.
    pub(super) wl2: Pos,
    /// The largest window it ever offered.
    pub(super) most: u64,
}

impl PeerWindow {
    /// A segment at `start` offers so many bytes beyond its acknowledgement. The edge may move left: what is beyond it simply has no room
    /// [MUST-34] [SHLD-15].
    pub(super) fn take(&mut self, start: Pos, ack: Pos, window: u64) {
        let most = self.most.max(window);
        *self = PeerWindow { edge: ack + window, wl1: start, wl2: ack, most };
    }

    /// Whether a segment at `start` with this acknowledgement is newer than the one the window was last taken from (RFC 9293 section 3.10.7.4).
    pub(super) fn is_older_than(&self, start: Pos, ack: Pos) -> bool {
        start > self.wl1 || (start == self.wl1 && ack >= self.wl2)
    }
}

/// Probes of a closed window.
#[derive(Debug, Default)]
pub(super) struct WindowProbes {
    /// One of one unit was sent beyond SND.NXT.
    pub(super) outstanding: bool,
    /// A probe, or a segment overriding silly-window avoidance, has to leave.
    pub(super) due: bool,
    /// How many were sent since the window last was open: the exponent of their back-off.
    pub(super) sent: u32,
    /// How many were sent since the last arrival.
    pub(super) unanswered: u32,
}

impl Sender {
    pub(super) fn new(space: SeqSpace, buffer: usize, now: Instant) -> Self {
        let edge = Pos::FIRST_DATA;
        Sender {
            space,
            syn: OwnSyn { due: false, was_answered: false, sent_at: now, transmissions: 0 },
            buffer: SendBuffer::new(Pos::FIRST_DATA, buffer),
            peer: PeerWindow { edge, wl1: Pos::INITIAL, wl2: Pos::INITIAL, most: 0 },
            probes: WindowProbes::default(),
            small_upto: Pos::INITIAL,
            fin_queued: false,
            urgent: Pos::INITIAL,
            writer_waits: false,
            retransmits: 0,
            unacked_since: Instant::FAR_FUTURE,
        }
    }

    /// Since when data has waited to be acknowledged, if any does.
    pub(super) fn unacked_since(&self) -> Option<Instant> {
        Some(self.unacked_since).filter(|&since| since < Instant::FAR_FUTURE)
    }
}

/// The receiving half.
#[derive(Debug)]
pub(super) struct Receiver {
    pub(super) space: SeqSpace,
    pub(super) ordering: OrderingUnit,
    pub(super) flow: FlowUnit,
    pub(super) policy: AckUnit,
    /// The rightmost edge ever advertised; never moves left.
    pub(super) edge: Pos,
    /// RFC 7323's Last.ACK.sent.
    pub(super) last_ack_sent: Pos,
    pub(super) timestamps: TimestampState,
    /// An acknowledgement has to leave now.
    pub(super) ack_now: bool,
    /// The position of the peer's FIN.
    pub(super) fin: Option<Pos>,
    /// RCV.UP; [`Pos::INITIAL`] before there is any.
    pub(super) urgent: Pos,
    /// A duplicate range that is not yet reported (RFC 2883); empty if there is none.
    pub(super) dsack: Range<Pos>,
    /// The largest segment the peer has sent, an estimate of its SMSS.
    pub(super) segment: u64,
    pub(super) round_trip: RoundTrip,
    pub(super) heard: Heard,
    /// The application will not read any more.
    pub(super) shut: bool,
}

/// The round-trip time as a receiver sees it.
#[derive(Debug)]
pub(super) struct RoundTrip {
    /// [`Duration::MAX`] before there is one.
    pub(super) smoothed: Duration,
    /// The echo that it was last taken from.
    pub(super) echo: u32,
    /// The last sample of it in microseconds, which is finer than any timestamp's tick, and when it was taken.
    pub(super) sample: u32,
    pub(super) sampled_at: Instant,
}

/// When the peer was heard.
#[derive(Debug)]
pub(super) struct Heard {
    /// When anything acceptable last arrived.
    pub(super) last: Instant,
    /// When data last did; [`Instant::FAR_FUTURE`] before there was any.
    pub(super) data: Instant,
    /// Keep-alives since then.
    pub(super) unanswered: u32,
}

impl Receiver {
    pub(super) fn new(
        space: SeqSpace,
        (ordering, flow, policy): (OrderingUnit, FlowUnit, AckUnit),
        timestamps: TimestampState,
        now: Instant,
    ) -> Self {
        let sampled_at = Instant::ZERO;
        Receiver {
            space,
            ordering,
            flow,
            policy,
            edge: Pos::FIRST_DATA,
            last_ack_sent: Pos::INITIAL,
            timestamps,
            ack_now: false,
            fin: None,
            urgent: Pos::INITIAL,
            dsack: Range::default(),
            segment: 536,
            round_trip: RoundTrip { smoothed: Duration::MAX, echo: 0, sample: 0, sampled_at },
            heard: Heard { last: now, data: Instant::FAR_FUTURE, unanswered: 0 },
            shut: false,
        }
    }

    /// RCV.NXT.
    #[inline]
    pub(super) fn next(&self) -> Pos {
        self.ordering.next()
    }

    /// The last sample of the round-trip time as a receiver sees it, and when it was taken.
    pub(super) fn last_rtt(&self) -> Option<(Instant, Duration)> {
        let RoundTrip { sample, sampled_at, .. } = self.round_trip;
        let sample = Duration::from_micros(u64::from(sample));
        (sampled_at > Instant::ZERO).then_some((sampled_at, sample))
    }

    /// That time smoothed, once there is a sample.
    pub(super) fn rtt(&self) -> Option<Duration> {
        Some(self.round_trip.smoothed).filter(|&rtt| rtt < Duration::MAX)
    }
}
