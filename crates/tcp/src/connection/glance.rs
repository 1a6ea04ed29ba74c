//! A look at a connection that reads only what is asked for.

use super::extensions::Observed;
use super::{Connection, State};
use crate::pos::Pos;
use crate::recovery::Phase;
use crate::rto::RetransmissionTimer as _;
use crate::state::LimitedBy;
use crate::time::Duration;

/// A look at a connection, for subscribers of its events and for extensions. Each value is that of the field of the same name in
/// [`ConnectionState`](crate::state::ConnectionState).
///
/// Filling the whole state costs more than the record of an event may: there are thousands of records in a millisecond.
#[derive(Clone, Copy, Debug)]
pub struct Glance<'a>(pub(super) Source<'a>);

/// The source of the values.
#[derive(Clone, Copy, Debug)]
pub(super) enum Source<'a> {
    Connection(&'a Connection),
    /// One that another TCP runs.
    Observed(&'a Observed),
}

/// The value of a field of the state: how a connection of Transom's has it.
macro_rules! look {
    ($glance:ident.$field:ident, $tcp:ident => $own:expr) => {
        match $glance.0 {
            Source::Connection($tcp) => $own,
            Source::Observed(from) => from.state.$field,
        }
    };
}

impl<'a> Glance<'a> {
    /// Looks at a connection.
    #[inline]
    pub fn at(connection: &'a Connection) -> Self {
        Glance(Source::Connection(connection))
    }

    /// The state of RFC 9293, section 3.3.2.
    #[inline]
    pub fn state(&self) -> State {
        look!(self.state, tcp => tcp.state)
    }

    /// The phase of loss recovery.
    #[inline]
    pub fn phase(&self) -> Phase {
        look!(self.phase, tcp => tcp.control.phase())
    }

    /// The limit of the sender.
    #[inline]
    pub fn limited_by(&self) -> LimitedBy {
        look!(self.limited_by, tcp => tcp.limited.current())
    }

    /// The congestion window, in bytes.
    #[inline]
    pub fn cwnd(&self) -> u64 {
        look!(self.cwnd, tcp => tcp.control.window().cwnd)
    }

    /// Bytes acknowledged towards the next increase of cwnd.
    #[inline]
    pub fn cwnd_cnt(&self) -> u64 {
        look!(self.cwnd_cnt, tcp => tcp.control.window().cwnd_cnt)
    }

    /// The slow-start threshold, in bytes; `u64::MAX` before the first reduction.
    #[inline]
    pub fn ssthresh(&self) -> u64 {
        look!(self.ssthresh, tcp => tcp.control.window().ssthresh)
    }

    /// Believed to be in the network, in bytes (the pipe of RFC 6675).
    #[inline]
    pub fn in_flight(&self) -> u64 {
        look!(self.in_flight, tcp => tcp.in_flight())
    }

    /// Sent and not acknowledged cumulatively, in bytes (FlightSize of RFC 5681).
    #[inline]
    pub fn outstanding(&self) -> u64 {
        look!(self.outstanding, tcp => tcp.control.board().outstanding())
    }

    /// Written by the application and not sent yet, in bytes.
    #[inline]
    pub fn unsent(&self) -> u64 {
        look!(self.unsent, tcp => tcp.snd.buffer.end().since(tcp.nxt()))
    }

    /// The oldest position not acknowledged.
    #[inline]
    pub fn snd_una(&self) -> Pos {
        look!(self.snd_una, tcp => tcp.una())
    }

    /// The next position to be sent.
    #[inline]
    pub fn snd_nxt(&self) -> Pos {
        look!(self.snd_nxt, tcp => tcp.nxt())
    }

    /// The peer's window beyond snd_una, in bytes.
    #[inline]
    pub fn snd_wnd(&self) -> u64 {
        look!(self.snd_wnd, tcp => tcp.snd.peer.edge.since(tcp.una()))
    }

    /// The next position expected of the peer.
    #[inline]
    pub fn rcv_nxt(&self) -> Pos {
        look!(self.rcv_nxt, tcp => tcp.rcv.next())
    }

    /// The advertised window beyond rcv_nxt, in bytes.
    #[inline]
    pub fn rcv_wnd(&self) -> u64 {
        look!(self.rcv_wnd, tcp => tcp.rcv.edge.since(tcp.rcv.next()))
    }

    /// The smoothed round-trip time, once there is a sample.
    #[inline]
    pub fn srtt(&self) -> Option<Duration> {
        look!(self.srtt, tcp => tcp.control.timer().srtt())
    }

    /// The round-trip time variation, once there is a sample.
    #[inline]
    pub fn rttvar(&self) -> Option<Duration> {
        look!(self.rttvar, tcp => tcp.control.timer().rttvar())
    }

    /// The least round-trip time seen.
    #[inline]
    pub fn min_rtt(&self) -> Option<Duration> {
        look!(self.min_rtt, tcp => tcp.control.min_rtt())
    }

    /// The last round-trip time.
    #[inline]
    pub fn last_rtt(&self) -> Option<Duration> {
        look!(self.last_rtt, tcp => tcp.control.last_rtt())
    }

    /// TCP's own retransmission timeout, with its back-off.
    #[inline]
    pub fn rto(&self) -> Duration {
        look!(self.rto, tcp => tcp.control.timer().rto())
    }

    /// How often the timer has backed off since the last sample.
    #[inline]
    pub fn backoffs(&self) -> u32 {
        look!(self.backoffs, tcp => tcp.control.timer().backoffs())
    }

    /// Timeouts in a row.
    #[inline]
    pub fn retransmits(&self) -> u32 {
        look!(self.retransmits, tcp => tcp.snd.retransmits)
    }

    /// Bytes delivered to the peer so far, cumulatively or selectively acknowledged.
    #[inline]
    pub fn delivered(&self) -> u64 {
        look!(self.delivered, tcp => tcp.control.board().delivery().delivered())
    }
}
