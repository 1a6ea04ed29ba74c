//! One TCP connection (RFC 9293), without a clock, a thread or a socket.
//!
//! The connection is a state machine fed by four kinds of calls: segments that arrive ([`Connection::on_segment`]),
//! deadlines that pass ([`Connection::on_timeout`]), what the application does ([`Connection::write`],
//! [`Connection::read`], …) and what the network reports ([`Connection::on_icmp`]). After any of them the owner asks
//! for segments to send until there are none ([`Connection::poll_transmit`]), for signals
//! ([`Connection::poll_signal`]) and for the next deadline ([`Connection::next_timeout`]).
//!
//! Each part has its own file: opening, arrival of segments, acknowledgements, output, timers, closing, network errors, the user timeout, the
//! application's calls, and what can be observed. The connection calls its units (congestion control, recovery, timer, ordering, flow control,
//! acknowledgement policy, pacing) for their decisions. Nothing here depends on the choice of a unit.

mod accurate;
mod acks;
mod api;
mod arrival;
mod close;
mod commit;
mod controls;
mod delivery;
mod duplicates;
mod ecn;
mod exchange;
pub(crate) mod extensions;
mod fast_open;
pub(crate) mod glance;
mod halves;
mod headers;
mod held_open;
mod icmp;
mod limited;
mod limiter;
mod memory;
mod notices;
mod observe;
mod offered;
mod open;
mod output;
mod partial;
mod path_mtu;
mod reports;
mod settings;
mod through;
mod timers;
mod user_timeout;

pub use accurate::AccurateInfo;
pub use api::{ReadError, Received, WriteError};
pub use controls::WriteOptions;
pub use delivery::{Adu, Piece};
pub use exchange::UnitChoice;
pub use fast_open::{FastOpenFailure, FastOpenInfo, FastOpenOutcome, OpeningState};
pub use icmp::IcmpError;
pub use memory::{MemoryState, RESERVE};
pub use open::{Endpoint, PathInfo};
pub use output::Prepared;
pub use partial::PartialInfo;
pub use path_mtu::PathState;
pub use reports::Report;
pub use settings::{Setting, Settings};

pub(crate) use crate::state::Counters;
pub use crate::state::EcnInfo;

use crate::control::Control;
use crate::named::named;
use crate::options::Agreed;
use crate::pos::Pos;
use crate::profile::Profile;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use halves::{Receiver, Sender};
use limiter::ReplyLimiter;
use timers::Timers;
use transom_wire::{Ecn, Seq, TcpHeader};

/// The least payload of a full segment: the smallest path MTU of IPv4, 68 bytes, minus headers and timestamps.
const MIN_SEGMENT: u32 = 16;

/// The states of RFC 9293 section 3.3.2 (LISTEN belongs to the host, not to a connection).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum State {
    /// Nothing is left of the connection.
    #[default]
    Closed,
    /// Our SYN is out.
    SynSent,
    /// Both SYNs are out; ours is not acknowledged.
    SynReceived,
    /// Data flows.
    Established,
    /// We closed; our FIN is not acknowledged.
    FinWait1,
    /// We closed; the peer has not.
    FinWait2,
    /// The peer closed; we have not.
    CloseWait,
    /// Both closed; our FIN is not acknowledged.
    Closing,
    /// The peer closed, then we; our FIN is not acknowledged.
    LastAck,
    /// Both closed and acknowledged; old segments may still arrive.
    TimeWait,
}

named! {
    State:
    Closed = "closed",
    SynSent = "syn-sent",
    SynReceived = "syn-received",
    Established = "established",
    FinWait1 = "fin-wait-1",
    FinWait2 = "fin-wait-2",
    CloseWait = "close-wait",
    Closing = "closing",
    LastAck = "last-ack",
    TimeWait = "time-wait",
}

impl State {
    /// Whether both SYNs are acknowledged (RFC 9293 calls these states synchronized).
    pub fn is_synchronized(self) -> bool {
        !matches!(self, State::Closed | State::SynSent | State::SynReceived)
    }

    /// Whether data of ours may still be sent (for the first time).
    pub fn can_send(self) -> bool {
        matches!(self, State::Established | State::CloseWait)
    }

    /// Whether the peer may still send data.
    pub fn can_receive(self) -> bool {
        matches!(self, State::Established | State::FinWait1 | State::FinWait2)
    }
}

/// Why a connection ended other than in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectionError {
    /// The peer answered our SYN with a reset.
    #[error("connection refused")]
    Refused,
    /// The peer reset the connection.
    #[error("connection reset by peer")]
    Reset,
    /// The peer was silent for too long (R2, the user timeout, or keep-alive).
    #[error("connection timed out")]
    TimedOut,
    /// The peer was silent for too long, and ICMP gave the reason; or the host has no TCP.
    #[error(transparent)]
    Unreachable(IcmpError),
    /// The application aborted it.
    #[error("connection aborted")]
    Aborted,
}

/// A signal for the owner of the connection: something has to be done or can be done now.
///
/// RFC 9293 calls it so ("signal the user"). It is no [event](crate::event::Event): each kind waits once, however often it has happened, until the owner
/// takes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Signal {
    /// The peer has answered our SYN, and the answer is held ([`Setting::HoldAnswer`]).
    Answered,
    /// The handshake is complete.
    Connected,
    /// There is data to read, or the end of the stream.
    Readable,
    /// There is room to write again after a write that was cut short.
    Writable,
    /// Urgent data is announced, or more of it [MUST-32].
    Urgent,
    /// A soft error or excessive retransmission: the connection is in trouble but lives [MUST-47] [SHLD-9].
    Trouble,
    /// TIME-WAIT begins: the owner may replace the connection by a [`crate::time_wait::TimeWait`].
    TimeWait,
    /// The connection is gone; [`Connection::error`] says why, if not in order.
    Closed,
}

/// What an opening leaves behind.
#[derive(Debug)]
struct Handshake {
    /// The state of Fast Open, if it is used.
    fast: Option<Box<fast_open::FastOpenState>>,
    /// What an open keeps until it is complete.
    opening: Option<Box<Opening>>,
}

/// What an active open keeps until the handshake is complete: one of these, so that an established connection pays for no more than a pointer.
#[derive(Debug)]
enum Opening {
    /// The data and options of the peer's SYN.
    Early(Early),
    /// The last acknowledgement is held.
    Held(held_open::HeldOpen),
}

/// The contents of a SYN besides the SYN.
#[derive(Debug)]
struct Early {
    header: TcpHeader,
    data: Vec<u8>,
    ecn: Ecn,
}

/// What answers segments that are not accepted.
#[derive(Debug, Default)]
struct Replies {
    limiter: ReplyLimiter,
    /// A reset to send before anything else.
    reset: Option<Box<TcpHeader>>,
}

/// What the owner wants, besides data.
#[derive(Debug)]
struct Owner {
    /// It was the owner who opened the connection, with the first SYN [MUST-11].
    active: bool,
    /// The application has closed its handle: nothing will be read or written any more.
    gone: bool,
    /// It was closed, and its extensions have had their time.
    dismissed: bool,
    /// Small segments do not wait.
    nodelay: bool,
}

/// One TCP connection.
#[derive(Debug)]
pub struct Connection {
    profile: Arc<Profile>,
    state: State,
    endpoint: Endpoint,
    path: PathInfo,
    /// Once there was a doubt about the path MTU.
    path_mtu: Option<Box<path_mtu::PathMtu>>,
    agreed: Agreed,
    handshake: Handshake,
    /// How much may be in flight, what is sent again, and when.
    control: Control,
    snd: Sender,
    rcv: Receiver,
    /// While ECN is agreed.
    ecn: Option<Box<ecn::EcnState>>,
    timers: Timers,
    replies: Replies,
    /// State for data that may be given up, by either end.
    partial: Option<Box<partial::PartialState>>,
    /// While there are any.
    extensions: extensions::Layers,
    notices: notices::Notices,
    error: Option<ConnectionError>,
    owner: Owner,
    /// The state of the host's memory.
    memory: MemoryState,
    /// The controls, while any is set.
    controls: Option<Box<controls::Controls>>,
    /// Boxed, as most connections have none.
    user_timeout: user_timeout::UserTimeouts,
    counters: Counters,
    limited: limited::LimitedAccount,
}

impl Connection {
    /// The state of RFC 9293.
    pub fn state(&self) -> State {
        self.state
    }

    /// Why the connection ended, if not in order.
    pub fn error(&self) -> Option<ConnectionError> {
        self.error
    }

    /// The present profile: the one it was opened with, and the units [exchanged](Connection::exchange) since.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// Our initial sequence number.
    pub fn iss(&self) -> Seq {
        self.snd.space.initial()
    }

    /// SND.UNA.
    #[inline]
    fn una(&self) -> Pos {
        self.control.una()
    }

    /// SND.NXT.
    fn nxt(&self) -> Pos {
        self.control.nxt()
    }

    /// Whether our FIN has left.
    fn fin_sent(&self) -> bool {
        self.nxt() > self.snd.buffer.end()
    }

    /// Whether our FIN is acknowledged.
    fn fin_acked(&self) -> bool {
        self.fin_sent() && self.una() == self.nxt()
    }

    /// Payload bytes of a full segment as it leaves (RFC 9293 Eff.snd.MSS) [MUST-16].
    fn mss(&self) -> u32 {
        self.agreed
            .peer_mss
            .min(self.path.mss())
            .saturating_sub(self.agreed.data_option_len())
            .max(MIN_SEGMENT)
    }

    /// The next signal, oldest kind first. Each kind waits once, however often it has happened, and delays nothing: an application that does not
    /// want reports of errors ignores them [SHLD-20].
    #[inline]
    pub fn poll_signal(&mut self) -> Option<Signal> {
        const ALL: [Signal; 8] = [
            Signal::Answered,
            Signal::Connected,
            Signal::Readable,
            Signal::Writable,
            Signal::Urgent,
            Signal::Trouble,
            Signal::TimeWait,
            Signal::Closed,
        ];
        let signal = *ALL.get(self.notices.signals.trailing_zeros() as usize)?;
        self.notices.signals &= self.notices.signals - 1;
        Some(signal)
    }

    fn raise(&mut self, signal: Signal) {
        self.notices.signals |= 1 << signal as u8;
    }
}
