//! A record, as values. As 64 bytes it is written in one file and read in the other; the layout is in docs/event-log.md.

mod read;
mod write;

use alloc::string::String;
use core::net::SocketAddr;
use transom_tcp::extension::{DepartureReason, Fault, LayerChange, Ruling, Variable};
use transom_tcp::time::Instant;
use transom_tcp::{ConnectionError, LimitReason, LimitedBy, Phase, State};

pub(super) use write::{SEQUENCE, Words, cut, finish};

/// Something that happened to a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// When.
    pub at: Instant,
    /// To which ([`ConnectionId::as_u64`](crate::stack::ConnectionId::as_u64)).
    pub connection: u64,
    /// The state of RFC 9293, afterwards.
    pub state: State,
    /// The congestion phase, afterwards.
    pub phase: Phase,
    /// The limit of the sender, afterwards.
    pub limited_by: LimitedBy,
    /// The event.
    pub what: What,
}

/// The kinds of events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// The connection exists from now on.
    Opened {
        /// Our end.
        local: SocketAddr,
        /// The other.
        remote: SocketAddr,
    },
    /// Something moved.
    Flow(FlowEvent, Values),
    /// The state of RFC 9293 changed, to the record's.
    State {
        /// From this one.
        from: State,
        /// Why the connection ended, if it did, and not in order.
        error: Option<EndedBy>,
    },
    /// The layers together ask for something else than before.
    Request {
        /// Of this variable.
        variable: Variable,
        /// The present request and its outcome; the safe range is not recorded and reads as any value.
        ruling: Ruling,
    },
    /// A layer came or went.
    Layer {
        /// Which it is, if it ever was attached.
        layer: Option<u32>,
        /// The change.
        fate: LayerFate,
        /// The beginning of its name.
        name: String,
    },
    /// Something else than before limits the sender.
    Limited {
        /// Why.
        because: LimitReason,
    },
}

/// The events of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum FlowEvent {
    /// An acknowledgement: `position` is SND.UNA, `bytes` what it newly acknowledged, cumulatively or selectively (none: a duplicate), `window` the
    /// peer's, `extra` the last round-trip time in microseconds.
    Acknowledged = 2,
    /// New data of the peer: `position` is RCV.NXT, `bytes` how much, `window` the advertised window. Arrivals within a tenth of a millisecond, with
    /// no other event of the host's connections between them, are one event, with the time of the first.
    Arrived = 3,
    /// Data, or a SYN, FIN or RST, left for the first time: `position` is where it begins, `bytes` what it takes of the sequence space, `window` the peer's,
    /// `extra` the TCP flags.
    Sent = 4,
    /// The same, again.
    Retransmitted = 5,
    /// `bytes` are newly believed lost; `position` is SND.UNA.
    Lost = 6,
    /// Fast recovery began; `position` is SND.UNA.
    Recovery = 7,
    /// The retransmission timer expired; `position` is SND.UNA, `extra` how often it has backed off by now.
    TimedOut = 8,
    /// A reduction of the window was taken back; `position` is SND.UNA.
    Undone = 9,
}

/// The values of a record about data. Each is the connection's own afterwards; a value that does not fit is cut to the largest that does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Values {
    /// A position in one of the sequence spaces; see [`FlowEvent`]. The first byte of data is at 2³² + 1.
    pub position: u64,
    /// How many bytes; see [`FlowEvent`].
    pub bytes: u32,
    /// The window named by [`FlowEvent`], in bytes.
    pub window: u32,
    /// The congestion window, bytes.
    pub cwnd: u32,
    /// The slow-start threshold, bytes; `u32::MAX` before the first reduction.
    pub ssthresh: u32,
    /// Believed to be in the network, bytes.
    pub in_flight: u32,
    /// The smoothed round-trip time, microseconds; zero before there is one.
    pub srtt: u32,
    /// The retransmission timeout with its back-off, microseconds; zero where it is not recorded: with acknowledgements, arrivals, first
    /// transmissions and what was undone.
    pub rto: u32,
    /// See [`FlowEvent`].
    pub extra: u32,
}

/// Why a connection ended other than in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum EndedBy {
    /// The peer refused it.
    Refused = 1,
    /// The peer reset it.
    Reset = 2,
    /// The peer was silent for too long.
    TimedOut = 3,
    /// The application ended it.
    Aborted = 4,
    /// Something else, such as an unreachable network.
    Other = 5,
}

/// The changes of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum LayerFate {
    /// It was attached.
    Attached = 0,
    /// It was detached on request.
    Detached = 1,
    /// It panicked.
    Panicked = 2,
    /// It took longer than it may.
    Overran = 3,
    /// It requested an interval that ends before it begins.
    Nonsense = 4,
    /// Its process has gone.
    Gone = 5,
    /// Its process broke the protocol.
    Protocol = 6,
    /// The profile names it, and it could not be attached.
    NotAttached = 7,
    /// It kept asking to be woken at times that had passed.
    Restless = 8,
    /// The connection was closed and did not end in time.
    Orphaned = 9,
}

/// A record that is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// Of a kind that this version does not know.
    #[error("a record of the unknown kind {0}")]
    Kind(u8),
    /// A field has a value that it cannot have.
    #[error("the record's {0} is not valid")]
    Field(&'static str),
}

impl FlowEvent {
    /// All of them, in the order of their numbers.
    pub const ALL: [FlowEvent; 8] = [
        FlowEvent::Acknowledged,
        FlowEvent::Arrived,
        FlowEvent::Sent,
        FlowEvent::Retransmitted,
        FlowEvent::Lost,
        FlowEvent::Recovery,
        FlowEvent::TimedOut,
        FlowEvent::Undone,
    ];

    /// Its name in logs as text.
    pub const fn name(self) -> &'static str {
        match self {
            FlowEvent::Acknowledged => "ack",
            FlowEvent::Arrived => "data",
            FlowEvent::Sent => "sent",
            FlowEvent::Retransmitted => "retransmitted",
            FlowEvent::Lost => "lost",
            FlowEvent::Recovery => "recovery",
            FlowEvent::TimedOut => "timeout",
            FlowEvent::Undone => "undone",
        }
    }
}

impl EndedBy {
    /// All of them, in the order of their numbers.
    pub const ALL: [EndedBy; 5] =
        [EndedBy::Refused, EndedBy::Reset, EndedBy::TimedOut, EndedBy::Aborted, EndedBy::Other];

    /// Its name in logs as text.
    pub const fn name(self) -> &'static str {
        match self {
            EndedBy::Refused => "refused",
            EndedBy::Reset => "reset",
            EndedBy::TimedOut => "timed-out",
            EndedBy::Aborted => "aborted",
            EndedBy::Other => "other",
        }
    }
}

impl LayerFate {
    /// All of them, in the order of their numbers.
    pub const ALL: [LayerFate; 10] = [
        LayerFate::Attached,
        LayerFate::Detached,
        LayerFate::Panicked,
        LayerFate::Overran,
        LayerFate::Nonsense,
        LayerFate::Gone,
        LayerFate::Protocol,
        LayerFate::NotAttached,
        LayerFate::Restless,
        LayerFate::Orphaned,
    ];

    /// Its name in logs as text.
    pub const fn name(self) -> &'static str {
        match self {
            LayerFate::Attached => "attached",
            LayerFate::Detached => "detached",
            LayerFate::Panicked => "panicked",
            LayerFate::Overran => "overran",
            LayerFate::Nonsense => "nonsense",
            LayerFate::Gone => "gone",
            LayerFate::Protocol => "protocol",
            LayerFate::NotAttached => "not-attached",
            LayerFate::Restless => "restless",
            LayerFate::Orphaned => "orphaned",
        }
    }
}

const OPENED: u8 = 1;
const STATE: u8 = 10;
const REQUEST: u8 = 11;
const LAYER: u8 = 12;
const LIMITED: u8 = 13;

/// Bytes of a name that are kept.
const NAME: usize = 32;
const NO_LAYER: u32 = u32::MAX;

impl From<ConnectionError> for EndedBy {
    fn from(error: ConnectionError) -> Self {
        match error {
            ConnectionError::Refused => EndedBy::Refused,
            ConnectionError::Reset => EndedBy::Reset,
            ConnectionError::TimedOut => EndedBy::TimedOut,
            ConnectionError::Aborted => EndedBy::Aborted,
            _ => EndedBy::Other,
        }
    }
}

impl From<LayerChange> for LayerFate {
    fn from(change: LayerChange) -> Self {
        match change {
            LayerChange::Attached => LayerFate::Attached,
            LayerChange::Detached => LayerFate::Detached,
            LayerChange::Departed(DepartureReason::NotAttached(_)) => LayerFate::NotAttached,
            LayerChange::Departed(DepartureReason::Orphaned) => LayerFate::Orphaned,
            LayerChange::Departed(DepartureReason::Fault(fault)) => match fault {
                Fault::Panicked => LayerFate::Panicked,
                Fault::Overran { .. } | Fault::NoTime => LayerFate::Overran,
                Fault::Restless => LayerFate::Restless,
                Fault::Nonsense(_) => LayerFate::Nonsense,
                Fault::Gone => LayerFate::Gone,
                Fault::Protocol => LayerFate::Protocol,
            },
        }
    }
}
