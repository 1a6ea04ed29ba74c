//! The one value that carries what an acknowledgement meant to every unit.
//!
//! The connection fills it once. Loss recovery (what to send), congestion control (how much), pacing (when) and observers read
//! it. No unit has its own view of what was acknowledged.

use crate::pos::Pos;
use crate::rate::RateSample;
use crate::rto::Estimate;
use crate::time::{Duration, Instant};
use transom_wire::Timestamps;

/// The latest transmissions that an acknowledgement delivered: when each had left, and its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Newest {
    /// Among those sent once.
    pub original: Option<(Instant, Pos)>,
    /// Among those sent more than once.
    pub again: Option<(Instant, Pos)>,
}

/// Everything that one acknowledgement means to the sender. The default is an acknowledgement without information.
#[derive(Clone, Copy, Debug, Default)]
pub struct AckContext {
    /// When it arrived.
    pub now: Instant,
    /// SND.UNA after it.
    pub una: Pos,
    /// SND.NXT.
    pub nxt: Pos,
    /// Bytes newly acknowledged cumulatively.
    pub acked: u64,
    /// Of those, bytes that had been given up: that the receiver has moved over them does not say that they arrived.
    pub given_up: u64,
    /// Bytes newly acknowledged selectively.
    pub sacked: u64,
    /// Bytes newly delivered, by whichever of the two; without SACK a duplicate counts as a segment.
    pub newly_delivered: u64,
    /// The lowest position newly delivered that was sent once only.
    pub lowest_original: Option<Pos>,
    /// When the latest transmission that was newly delivered had left, and its end: among those sent once, and among those sent
    /// again.
    pub newest: Newest,
    /// Bytes that recovery newly believes lost.
    pub lost: u64,
    /// Bytes the receiver says it got twice (RFC 2883).
    pub duplicated: u64,
    /// Whether it is a duplicate acknowledgement by RFC 5681 section 2 (or, with SACK, by RFC 6675 section 2).
    pub duplicate: bool,
    /// Whether it carried selective acknowledgements.
    pub has_sack: bool,
    /// Whether selective acknowledgements were agreed on: without them one loss a round trip can be found.
    pub sack_agreed: bool,
    /// Whether any newly delivered byte had been retransmitted.
    pub included_retransmission: bool,
    /// The round-trip time sample, if it gave one.
    pub rtt: Option<Duration>,
    /// The estimate of the round-trip time, once there is a sample.
    pub estimate: Option<Estimate>,
    /// The least round-trip time seen on the connection.
    pub min_rtt: Option<Duration>,
    /// The peer's timestamp and its echo of ours, if it sends them.
    pub timestamps: Option<Timestamps>,
    /// Whether a round trip ended: everything that was outstanding at its beginning is acknowledged. The next one begins.
    pub round_start: bool,
    /// Bytes delivered on the connection so far.
    pub delivered: u64,
    /// Whether the connection stays in fast recovery.
    pub recovering: bool,
    /// The delivery-rate sample, if it gave one.
    pub rate: Option<RateSample>,
    /// Bytes in flight before it.
    pub prior_in_flight: u64,
    /// Bytes in flight after it.
    pub in_flight: u64,
    /// Whether the congestion window was what held the sender back since the last acknowledgement; a window
    /// that was not used must not grow (RFC 7661).
    pub cwnd_limited: bool,
    /// The receiver echoed congestion experienced (RFC 3168), or counted more of it (RFC 9768).
    pub ecn_echo: bool,
    /// Bytes newly reported as marked, with accurate ECN (RFC 9768).
    pub marked: Option<u64>,
    /// The segment size, SMSS of RFC 5681, in bytes.
    pub mss: u32,
}

impl AckContext {
    /// The smoothed round-trip time, once there is a sample.
    #[inline]
    pub fn srtt(&self) -> Option<Duration> {
        self.estimate.map(|estimate| estimate.srtt)
    }
}
