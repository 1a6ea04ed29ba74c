//! The messages between the two processes, as values; their forms are in [`json`] and [`binary`].

pub mod binary;
pub mod json;

use transom_net::Snapshot;
use transom_tcp::extension::{Capabilities, Interval, Variable, Wake};
use transom_tcp::time::{Duration, Instant};

/// The version of the protocol.
const VERSION: u32 = 2;

/// The longest line or frame that a peer may send, in bytes.
pub const LONGEST: usize = 65_536;

/// The longest name of a peer, in bytes.
pub const LONGEST_NAME: usize = 64;

/// How messages are written once a peer is attached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// Lines of JSON.
    #[default]
    Json,
    /// Frames of little-endian numbers.
    Binary,
}

/// The first message of a peer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Attach {
    /// Which connection; nothing for the next that is offered.
    pub connection: Option<u32>,
    /// The name by which reports call it.
    pub name: String,
    /// The events that it wants.
    pub wake: Wake,
    /// The lists that it wants.
    pub lists: Capabilities,
    /// The form of its messages.
    pub form: Form,
}

/// The first message of any peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum First {
    /// It wants to be attached to a connection.
    Attach(Attach),
    /// It wants to be told of each connection that is offered.
    Watch,
}

/// A message of an attached peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// These intervals from now on, [`Interval::ANY`] for no limit; and when the clock is to wake it, if it says anything about that.
    Limits(Vec<(Variable, Interval)>, Option<Option<Instant>>),
    /// It requests the present state.
    Look,
    /// It detaches.
    Detach,
}

/// Why a peer's message was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProtocolError {
    /// It is longer than [`LONGEST`].
    #[error("a message has at most {LONGEST} bytes")]
    TooLong,
    /// The message is not part of the protocol.
    #[error("{0}")]
    Malformed(String),
    /// An interval ends before it begins.
    #[error("the lower limit of {0} is above the upper one")]
    Nonsense(Variable),
}

impl ProtocolError {
    fn malformed(reason: impl Into<String>) -> Self {
        ProtocolError::Malformed(reason.into())
    }
}

/// The kinds of events by name.
const WAKES: [(&str, Wake); 8] = [
    ("ack", Wake::ACK),
    ("duplicate-ack", Wake::DUPLICATE_ACK),
    ("round", Wake::ROUND),
    ("loss", Wake::LOSS),
    ("timeout", Wake::TIMEOUT),
    ("send", Wake::SEND),
    ("timer", Wake::TIMER),
    ("data", Wake::DATA),
];

/// The lists by name.
const LISTS: [(&str, Capabilities); 2] =
    [("acks", Capabilities::ACK_LIST), ("messages", Capabilities::MESSAGE_LIST)];

fn nanos(span: Option<Duration>) -> Option<u64> {
    span.map(Duration::as_nanos)
}

/// What a value of the view is taken from.
type Source = fn(&Snapshot) -> Option<u64>;

/// The values of the view, in their order in the binary form: the name of each, and where it comes from; nothing if there is none yet. Sizes and windows are in
/// bytes, times in nanoseconds.
pub const VIEW: [(&str, Source); 50] = [
    ("state", |s| Some(s.info.state as u64)),
    ("phase", |s| Some(s.info.phase as u64)),
    ("limited_by", |s| Some(s.info.limited_by as u64)),
    ("mss", |s| Some(s.info.mss.into())),
    ("cwnd", |s| Some(s.info.cwnd)),
    ("cwnd_cnt", |s| Some(s.info.cwnd_cnt)),
    ("ssthresh", |s| Some(s.info.ssthresh).filter(|&ssthresh| ssthresh != u64::MAX)),
    ("in_flight", |s| Some(s.info.in_flight)),
    ("outstanding", |s| Some(s.info.outstanding)),
    ("unsent", |s| Some(s.info.unsent)),
    ("snd_una", |s| Some(s.info.snd_una.get())),
    ("snd_nxt", |s| Some(s.info.snd_nxt.get())),
    ("snd_wnd", |s| Some(s.info.snd_wnd)),
    ("rcv_nxt", |s| Some(s.info.rcv_nxt.get())),
    ("rcv_wnd", |s| Some(s.info.rcv_wnd)),
    ("srtt", |s| nanos(s.info.srtt)),
    ("rttvar", |s| nanos(s.info.rttvar)),
    ("min_rtt", |s| nanos(s.info.min_rtt)),
    ("last_rtt", |s| nanos(s.info.last_rtt)),
    ("rto", |s| nanos(Some(s.info.rto))),
    ("backoffs", |s| Some(s.info.backoffs.into())),
    ("retransmits", |s| Some(s.info.retransmits.into())),
    ("duplicate_acks", |s| Some(s.info.duplicate_acks.into())),
    ("dupthresh", |s| Some(s.info.dupthresh.into())),
    ("delivered", |s| Some(s.info.delivered)),
    ("sacked", |s| Some(s.info.sacked)),
    ("lost", |s| Some(s.info.lost)),
    ("retransmitted", |s| Some(s.info.retransmitted)),
    ("acks_seen", |s| Some(s.acks_seen)),
    ("segments_sent", |s| Some(s.info.counters.segments_sent)),
    ("bytes_sent", |s| Some(s.info.counters.bytes_sent)),
    ("segments_received", |s| Some(s.info.counters.segments_received)),
    ("bytes_accepted", |s| Some(s.info.counters.bytes_accepted)),
    ("retransmitted_bytes", |s| Some(s.info.counters.retransmitted_bytes)),
    ("lost_bytes", |s| Some(s.info.counters.lost_bytes)),
    ("timeouts", |s| Some(s.info.counters.timeouts)),
    ("fast_recoveries", |s| Some(s.info.counters.fast_recoveries)),
    ("spurious_reductions", |s| Some(s.info.counters.spurious_reductions)),
    ("acks_rejected", |s| Some(s.request_counters.acks_rejected)),
    ("segments_rejected", |s| Some(s.request_counters.segments_rejected)),
    ("limited_application", |s| nanos(Some(s.info.limited_application))),
    ("limited_peer_window", |s| nanos(Some(s.info.limited_peer_window))),
    ("limited_cwnd", |s| nanos(Some(s.info.limited_congestion_window))),
    ("limited_pacing", |s| nanos(Some(s.info.limited_pacing))),
    ("limited_virtual_cwnd", |s| nanos(Some(s.info.limited_virtual_window))),
    ("delivery_rate", |s| s.info.delivery_rate),
    ("delivery_rate_app_limited", |s| Some(s.info.delivery_rate_app_limited.into())),
    ("rcv_rtt", |s| nanos(s.info.rcv_rtt)),
    ("sack_agreed", |s| Some(s.info.sack.into())),
    ("timestamps_agreed", |s| Some(s.info.timestamps.into())),
];

/// The number that a value of an enumeration has in the view, and its name in JSON.
fn name_of(field: &str, snapshot: &Snapshot) -> Option<&'static str> {
    let name = match field {
        "state" => snapshot.info.state.name(),
        "phase" => snapshot.info.phase.name(),
        "limited_by" => snapshot.info.limited_by.name(),
        _ => return None,
    };
    Some(name)
}

/// The effective value of each variable.
fn effective(snapshot: &Snapshot) -> impl Iterator<Item = (Variable, u64)> {
    Variable::ALL.into_iter().map(|variable| (variable, snapshot.ruling(variable).effective))
}

#[cfg(test)]
mod tests;
