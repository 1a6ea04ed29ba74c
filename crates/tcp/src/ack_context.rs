//! The one value that carries what an acknowledgement meant to every unit.
//!
//! It is filled once, by the connection, and read by loss recovery (what to send), congestion control (how
//! much), pacing (when) and whoever observes. No unit keeps its own idea of what was acknowledged.

use crate::pos::Pos;
use crate::rate::RateSample;
use crate::time::{Duration, Instant};

/// Everything one acknowledgement told the sender.
#[derive(Clone, Copy, Debug)]
pub struct AckContext {
    /// When it arrived.
    pub now: Instant,
    /// SND.UNA after it.
    pub una: Pos,
    /// SND.NXT.
    pub nxt: Pos,
    /// Bytes newly acknowledged cumulatively.
    pub acked: u64,
    /// Bytes newly acknowledged selectively.
    pub sacked: u64,
    /// Bytes that recovery newly believes lost.
    pub lost: u64,
    /// Bytes the receiver says it got twice (RFC 2883).
    pub duplicated: u64,
    /// Whether it is a duplicate acknowledgement by RFC 5681 section 2 (or, with SACK, by RFC 6675 section 2).
    pub duplicate: bool,
    /// Whether it carried selective acknowledgements.
    pub has_sack: bool,
    /// Whether any newly delivered byte had been retransmitted.
    pub included_retransmission: bool,
    /// The round-trip time sample, if it gave one.
    pub rtt: Option<Duration>,
    /// The delivery-rate sample, if it gave one.
    pub rate: Option<RateSample>,
    /// Bytes in flight before it.
    pub prior_in_flight: u64,
    /// Bytes in flight after it.
    pub in_flight: u64,
    /// Whether the congestion window was what held the sender back since the last acknowledgement; a window
    /// that was not used must not grow (RFC 7661).
    pub cwnd_limited: bool,
    /// The receiver echoed congestion experienced (RFC 3168).
    pub ecn_echo: bool,
    /// The segment size, SMSS of RFC 5681, in bytes.
    pub mss: u32,
}
