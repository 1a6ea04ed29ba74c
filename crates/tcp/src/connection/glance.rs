//! A look at a connection that reads only what is asked for.

use super::{Connection, State};
use crate::pos::Pos;
use crate::recovery::Phase;
use crate::rto::RetransmissionTimer as _;
use crate::state::LimitedBy;
use crate::time::Duration;

/// A look at a connection for subscribers of its events. Each value is that of the field of the same name in
/// [`ConnectionState`](crate::state::ConnectionState).
///
/// Filling the whole state costs more than the record of an event may: there are thousands of records in a millisecond.
#[derive(Clone, Copy, Debug)]
pub struct Glance<'a>(&'a Connection);

impl<'a> Glance<'a> {
    /// Looks at a connection.
    #[inline]
    pub fn at(connection: &'a Connection) -> Self {
        Glance(connection)
    }

    /// The state of RFC 9293, section 3.3.2.
    #[inline]
    pub fn state(self) -> State {
        self.0.state
    }

    /// The phase of loss recovery.
    #[inline]
    pub fn phase(self) -> Phase {
        self.0.control.phase()
    }

    /// The limit of the sender.
    #[inline]
    pub fn limited_by(self) -> LimitedBy {
        self.0.limited.current()
    }

    /// The congestion window, in bytes.
    #[inline]
    pub fn cwnd(self) -> u64 {
        self.0.control.window().cwnd
    }

    /// The slow start threshold, in bytes; `u64::MAX` while there is none.
    #[inline]
    pub fn ssthresh(self) -> u64 {
        self.0.control.window().ssthresh
    }

    /// Bytes in flight, as recovery counts them.
    #[inline]
    pub fn in_flight(self) -> u64 {
        self.0.in_flight()
    }

    /// SND.UNA.
    #[inline]
    pub fn snd_una(self) -> Pos {
        self.0.una()
    }

    /// The peer's window from SND.UNA on, in bytes.
    #[inline]
    pub fn snd_wnd(self) -> u64 {
        self.0.snd.peer.edge.since(self.0.una())
    }

    /// RCV.NXT.
    #[inline]
    pub fn rcv_nxt(self) -> Pos {
        self.0.rcv.next()
    }

    /// The advertised window from RCV.NXT on, in bytes.
    #[inline]
    pub fn rcv_wnd(self) -> u64 {
        self.0.rcv.edge.since(self.0.rcv.next())
    }

    /// The smoothed round-trip time.
    #[inline]
    pub fn srtt(self) -> Option<Duration> {
        self.0.control.timer().srtt()
    }

    /// The last round-trip time that was measured.
    #[inline]
    pub fn last_rtt(self) -> Option<Duration> {
        self.0.control.last_rtt()
    }

    /// TCP's own retransmission timeout.
    #[inline]
    pub fn rto(self) -> Duration {
        self.0.control.timer().rto()
    }

    /// How often the timeout has been doubled since the last acknowledgement.
    #[inline]
    pub fn backoffs(self) -> u32 {
        self.0.control.timer().backoffs()
    }

    /// Bytes acknowledged towards the next increase of the congestion window.
    #[inline]
    pub(crate) fn cwnd_cnt(self) -> u64 {
        self.0.control.window().cwnd_cnt
    }

    /// Sent and not acknowledged cumulatively, in bytes.
    #[inline]
    pub(crate) fn outstanding(self) -> u64 {
        self.0.control.board().outstanding()
    }

    /// Written by the application and not sent yet, in bytes.
    #[inline]
    pub(crate) fn unsent(self) -> u64 {
        self.0.snd.buffer.end().since(self.0.nxt())
    }

    /// SND.NXT.
    #[inline]
    pub(crate) fn snd_nxt(self) -> Pos {
        self.0.nxt()
    }

    /// Bytes delivered to the peer, cumulatively or selectively acknowledged.
    #[inline]
    pub(crate) fn delivered(self) -> u64 {
        self.0.control.board().delivery().delivered()
    }

    /// The least round-trip time.
    #[inline]
    pub(crate) fn min_rtt(self) -> Option<Duration> {
        self.0.control.min_rtt()
    }

    /// The variation of the round-trip time.
    #[inline]
    pub(crate) fn rttvar(self) -> Option<Duration> {
        self.0.control.timer().rttvar()
    }

    /// Timeouts in a row.
    #[inline]
    pub(crate) fn retransmits(self) -> u32 {
        self.0.snd.retransmits
    }
}
