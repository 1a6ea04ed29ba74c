//! The state of a connection: one type for whoever watches one.
//!
//! [`Connection::info`](crate::connection::Connection::info) fills it for Transom's own. Other sources fill it too, such as the kernel's sockets; what a
//! source [cannot tell](Untold) stays as it is in [`ConnectionState::unknown`].

mod linux;
mod name;

pub use crate::connection::glance::Glance;
pub use name::Name;

use crate::connection::{AccurateInfo, FastOpenInfo, PartialInfo, State};
use crate::named::named;
use crate::ordering::UnitFaults;
use crate::pos::Pos;
use crate::recovery::Phase;
use crate::time::{Duration, Instant};
use bitflags::bitflags;
use core::net::IpAddr;

bitflags! {
    /// Values that a source cannot tell.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
    pub struct Untold: u8 {
        /// The phase of recovery.
        const PHASE = 1 << 0;
        /// The peer's window.
        const SND_WND = 1 << 1;
        /// The advertised window.
        const RCV_WND = 1 << 2;
        /// The limit of the sender.
        const LIMIT = 1 << 3;
        /// Retransmission timeouts.
        const TIMEOUTS = 1 << 4;
        /// The bytes sent.
        const BYTES_SENT = 1 << 5;
        /// The state of RFC 9293: it is none that is known.
        const STATE = 1 << 6;
        /// The reason of the limit.
        const REASON = 1 << 7;
    }
}

/// The limit of the sender, if any.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum LimitedBy {
    /// The application had nothing (more) to send.
    #[default]
    Application,
    /// The peer's receive window.
    PeerWindow,
    /// The congestion window.
    CongestionWindow,
    /// Pacing.
    Pacing,
    /// An extension that keeps the congestion window lower than TCP would.
    VirtualWindow,
    /// The send buffer, of a TCP that counts that.
    SendBuffer,
}

named! {
    LimitedBy:
    Application = "application",
    PeerWindow = "peer-window",
    CongestionWindow = "cwnd",
    Pacing = "pacing",
    VirtualWindow = "virtual-cwnd",
    SendBuffer = "send-buffer",
}

/// The reason why the sender is limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum LimitReason {
    /// There is nothing to send.
    #[default]
    NoData,
    /// A small segment waits for an acknowledgement (Nagle's algorithm, RFC 9293 section 3.7.4).
    Nagle,
    /// The application has said that more follows.
    Cork,
    /// The peer's window is closed or too small for a segment (RFC 9293 section 3.8.6).
    PeerWindow,
    /// A segment would be silly (RFC 9293 section 3.8.6.2.1).
    SillyWindow,
    /// The congestion window is full.
    CongestionWindow,
    /// The congestion window is full only because extensions keep it lower.
    VirtualWindow,
    /// Pacing has not released the next segment.
    Pacing,
}

named! {
    LimitReason:
    NoData = "no-data",
    Nagle = "nagle",
    Cork = "cork",
    PeerWindow = "peer-window",
    SillyWindow = "silly-window",
    CongestionWindow = "cwnd",
    VirtualWindow = "virtual-cwnd",
    Pacing = "pacing",
}

impl LimitReason {
    /// The limit that it is a case of.
    pub const fn limit(self) -> LimitedBy {
        match self {
            LimitReason::NoData | LimitReason::Nagle | LimitReason::Cork => LimitedBy::Application,
            LimitReason::PeerWindow | LimitReason::SillyWindow => LimitedBy::PeerWindow,
            LimitReason::CongestionWindow => LimitedBy::CongestionWindow,
            LimitReason::VirtualWindow => LimitedBy::VirtualWindow,
            LimitReason::Pacing => LimitedBy::Pacing,
        }
    }
}

/// Running totals of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Counters {
    /// Segments sent (a super-segment counts once).
    pub segments_sent: u64,
    /// Segments received (a merged super-segment counts once).
    pub segments_received: u64,
    /// Payload bytes sent, retransmissions included.
    pub bytes_sent: u64,
    /// Payload bytes received, duplicates included.
    pub bytes_received: u64,
    /// Payload bytes received that were new.
    pub bytes_accepted: u64,
    /// Segments sent again.
    pub retransmitted_segments: u64,
    /// Bytes of sequence space sent again.
    pub retransmitted_bytes: u64,
    /// Bytes believed lost.
    pub lost_bytes: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Times fast recovery began.
    pub fast_recoveries: u64,
    /// Bytes that arrived here twice.
    pub duplicate_bytes_received: u64,
    /// Bytes the peer reported as having arrived there twice (DSACK).
    pub duplicate_bytes_reported: u64,
    /// Segments that arrived out of order.
    pub out_of_order_segments: u64,
    /// Acknowledgements sent without data.
    pub pure_acks_sent: u64,
    /// Answers to segments that were not acceptable.
    pub challenge_acks: u64,
    /// Segments rejected by PAWS.
    pub paws_rejected: u64,
    /// Zero-window probes sent.
    pub window_probes: u64,
    /// Keep-alive probes sent.
    pub keep_alives: u64,
    /// Segments sent as probes (tail loss probes, RFC 8985).
    pub tail_probes: u64,
    /// Reductions of the window that were undone as spurious.
    pub spurious_reductions: u64,
    /// ICMP messages that quoted nothing in flight.
    pub icmp_rejected: u64,
}

/// The state of a connection at one moment. It grows: make one with [`ConnectionState::unknown`]. The default is zero in everything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct ConnectionState {
    /// The peer's address, where the host has said it ([`Setting::Remote`](crate::connection::Setting::Remote)).
    pub remote: Option<IpAddr>,
    /// The state of RFC 9293.
    pub state: State,
    /// The congestion phase.
    pub phase: Phase,
    /// The congestion controller's name.
    pub congestion: Name,
    /// The recovery unit's name.
    pub recovery: Name,
    /// The window was reduced for a mark, and data sent before that is not acknowledged yet (CWR of Linux).
    pub reduced_for_mark: bool,
    /// Payload bytes of a full segment.
    pub mss: u32,
    /// Payload bytes of the largest segments that the peer was offered to send.
    pub advertised_mss: u32,
    /// The path MTU in use.
    pub path_mtu: u32,
    /// Probes for a larger path MTU that were sent (RFC 4821).
    pub path_mtu_probes: u64,
    /// Times that segments were found to be too large for the path without a report of a router.
    pub black_holes: u64,
    /// Congestion window, bytes.
    pub cwnd: u64,
    /// Bytes acknowledged towards the next increase of cwnd.
    pub cwnd_cnt: u64,
    /// Slow-start threshold, bytes (`u64::MAX` before the first reduction).
    pub ssthresh: u64,
    /// Bytes in flight.
    pub in_flight: u64,
    /// Bytes in flight that the peer has acknowledged selectively.
    pub sacked: u64,
    /// Bytes in flight that are believed lost.
    pub lost: u64,
    /// Bytes in flight that were sent again.
    pub retransmitted: u64,
    /// Bytes sent and not acknowledged cumulatively (FlightSize of RFC 5681).
    pub outstanding: u64,
    /// Bytes written by the application and not sent yet.
    pub unsent: u64,
    /// SND.UNA.
    pub snd_una: Pos,
    /// SND.NXT.
    pub snd_nxt: Pos,
    /// SND.WND, bytes.
    pub snd_wnd: u64,
    /// RCV.NXT.
    pub rcv_nxt: Pos,
    /// RCV.WND, bytes: the rest of the advertised window.
    pub rcv_wnd: u64,
    /// The window that TCP by itself would advertise, bytes.
    pub own_rcv_wnd: u64,
    /// The receive buffer's present size, bytes.
    pub rcv_buffer: usize,
    /// The ordering unit's name.
    pub ordering: Name,
    /// The flow-control unit's name.
    pub flow: Name,
    /// Bytes that arrived within the window and were dropped for lack of memory, which no window announces.
    pub rcv_dropped: u64,
    /// Data units that could not be delivered, by cause.
    pub unit_faults: UnitFaults,
    /// The send buffer's present size, bytes.
    pub snd_buffer: usize,
    /// Bytes written and not acknowledged.
    pub unacknowledged: usize,
    /// Bytes that can be read.
    pub readable: usize,
    /// Smoothed round-trip time.
    pub srtt: Option<Duration>,
    /// Round-trip time variation.
    pub rttvar: Option<Duration>,
    /// The last round-trip time sample.
    pub last_rtt: Option<Duration>,
    /// The smallest round-trip time seen.
    pub min_rtt: Option<Duration>,
    /// The retransmission timeout with its back-off.
    pub rto: Duration,
    /// The timeout that is used: another one if an extension sets it.
    pub effective_rto: Duration,
    /// How often it has backed off.
    pub backoffs: u32,
    /// Retransmissions of the oldest segment.
    pub retransmits: u32,
    /// Consecutive duplicate acknowledgements.
    pub duplicate_acks: u32,
    /// How many of them mean a loss now.
    pub dupthresh: u32,
    /// Whether the first of them bring new data out (RFC 3042).
    pub limited_transmit: bool,
    /// After how many timeouts in a row the connection is given up, if it ever is.
    pub give_up_after: Option<u32>,
    /// The rate TCP paces at, if it does, bytes per second.
    pub pacing_rate: Option<u64>,
    /// Over how many segments the path was seen to reorder, at most, and not less than the number of duplicates that mean a loss.
    pub reordering: u32,
    /// Times that reordering was detected: a segment arrived that a later one had overtaken.
    pub reordering_seen: u32,
    /// Whether timestamps were agreed.
    pub timestamps: bool,
    /// Whether SACK was agreed.
    pub sack: bool,
    /// The state of Fast Open (RFC 7413).
    pub fast_open: FastOpenInfo,
    /// Window scales (peer's, ours) if agreed.
    pub window_scale: Option<(u8, u8)>,
    /// Total bytes delivered to the peer (acknowledged or selectively acknowledged).
    pub delivered: u64,
    /// The rate at which data has been delivered to the peer lately, bytes per second, as the last acknowledgement that says something of the path
    /// has it (`DeliveryRate::latest`); nothing before the first.
    pub delivery_rate: Option<u64>,
    /// Whether the application had too little to send when that was measured, so that the path may be faster.
    pub delivery_rate_app_limited: bool,
    /// The smoothed round-trip time as a receiver sees it: from an acknowledgement of ours to the first full segment of the peer's that echoes its
    /// timestamp. In whole milliseconds, and only where timestamps are agreed. A peer that had nothing to send for a while makes it longer.
    pub rcv_rtt: Option<Duration>,
    /// The last sample of it, and when it was taken.
    pub last_rcv_rtt: Option<(Instant, Duration)>,
    /// The present limit of the sender.
    pub limited_by: LimitedBy,
    /// Why, more exactly.
    pub limited_because: LimitReason,
    /// Time spent limited by the application.
    pub limited_application: Duration,
    /// Time spent limited by the peer's window.
    pub limited_peer_window: Duration,
    /// Time spent limited by the congestion window.
    pub limited_congestion_window: Duration,
    /// Time spent limited by pacing.
    pub limited_pacing: Duration,
    /// Time spent limited by an extension that keeps the congestion window lower than TCP would.
    pub limited_virtual_window: Duration,
    /// Time spent limited by the send buffer, of a TCP that counts that.
    pub limited_send_buffer: Duration,
    /// Time during which data was waiting to be acknowledged, sent or not.
    pub busy: Duration,
    /// How long ago data (or a FIN) was last sent; nothing before there was any.
    pub since_data_sent: Option<Duration>,
    /// How long ago data last arrived; nothing before there was any.
    pub since_data_received: Option<Duration>,
    /// How long ago anything acceptable last arrived.
    pub since_heard: Duration,
    /// The state of explicit congestion notification, if it was agreed.
    pub ecn: Option<EcnInfo>,
    /// The state of partial reliability, if this end uses any of it.
    pub partial: Option<PartialInfo>,
    /// Running totals.
    pub counters: Counters,
    /// The values that the source cannot tell: they are zero or absent.
    pub untold: Untold,
}

/// Explicit congestion notification on a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct EcnInfo {
    /// Segments that arrived with the congestion-experienced mark (RFC 3168).
    pub marked_segments: u64,
    /// Reductions of the window for marks that the peer echoed.
    pub reductions: u64,
    /// Packets are no longer ECN-capable, because a node on the path alters codepoints or flags.
    pub disabled: bool,
    /// Counts of bytes and packets, where accurate ECN was agreed (RFC 9768).
    pub accurate: Option<AccurateInfo>,
}

impl ConnectionState {
    /// A connection of which nothing is known yet.
    pub fn unknown() -> Self {
        ConnectionState {
            ssthresh: u64::MAX,
            snd_una: Pos::FIRST_DATA,
            snd_nxt: Pos::FIRST_DATA,
            rcv_nxt: Pos::FIRST_DATA,
            untold: Untold::all(),
            ..ConnectionState::default()
        }
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for Untold {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u8(self.bits())
    }
}

#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for Untold {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <u8 as serde::Deserialize>::deserialize(deserializer).map(Untold::from_bits_truncate)
    }
}
