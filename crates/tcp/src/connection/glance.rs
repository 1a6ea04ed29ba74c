//! A look at a connection that reads only what is asked for.

use super::extensions::Observed;
use super::{Connection, State};
use crate::congestion::Window;
use crate::extension::Variable;
use crate::pos::Pos;
use crate::recovery::Phase;
use crate::rto::{Estimate, RetransmissionTimer as _};
use crate::state::{ConnectionState, LimitedBy};
use crate::time::{Duration, Instant};
use core::net::IpAddr;

/// A look at a connection, for subscribers of its events and for extensions. Each value is that of the field of the same name in
/// [`ConnectionState`](crate::state::ConnectionState), unless its description says otherwise.
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

impl<'a> From<&'a Connection> for Glance<'a> {
    #[inline]
    fn from(connection: &'a Connection) -> Self {
        Glance(Source::Connection(connection))
    }
}

impl Glance<'_> {
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

    /// The variables of congestion control: TCP's own.
    #[inline]
    pub fn window(&self) -> Window {
        match self.0 {
            Source::Connection(tcp) => tcp.control.window(),
            Source::Observed(Observed { state, .. }) => {
                let ConnectionState { cwnd, cwnd_cnt, ssthresh, mss, .. } = *state;
                Window { cwnd, cwnd_cnt, ssthresh, mss }
            }
        }
    }

    /// Payload of a full segment, in bytes, at least one.
    #[inline]
    pub fn mss(&self) -> u64 {
        self.window().segment()
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

    /// srtt and rttvar, once there is a sample.
    #[inline]
    pub fn estimate(&self) -> Option<Estimate> {
        match self.0 {
            Source::Connection(tcp) => tcp.control.timer().estimate(),
            Source::Observed(Observed { state, .. }) => {
                Some(Estimate { srtt: state.srtt?, rttvar: state.rttvar? })
            }
        }
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

    /// How many duplicate acknowledgements mean a loss to TCP now.
    #[inline]
    pub fn dupthresh(&self) -> u32 {
        look!(self.dupthresh, tcp => tcp.own_loss_threshold())
    }

    /// The peer's address ([`Setting::Remote`](super::Setting::Remote)). It is known where the profile names extensions and the host has said it. For a
    /// connection that another TCP runs, it is what its state says.
    #[inline]
    pub fn remote(&self) -> Option<IpAddr> {
        look!(self.remote, tcp => tcp.remote())
    }

    /// The smoothed round-trip time as a receiver sees it: from an acknowledgement of ours to the first full segment of the peer's that
    /// echoes its timestamp. In whole milliseconds, and only where timestamps are agreed. A peer that had nothing to send for a while
    /// makes it longer.
    #[inline]
    pub fn rcv_rtt(&self) -> Option<Duration> {
        look!(self.rcv_rtt, tcp => tcp.rcv.rtt())
    }

    /// The last sample of it, and when it was taken.
    #[inline]
    pub fn last_rcv_rtt(&self) -> Option<(Instant, Duration)> {
        look!(self.last_rcv_rtt, tcp => tcp.rcv.last_rtt())
    }

    /// Duplicate acknowledgements in a row.
    #[inline]
    pub fn duplicate_acks(&self) -> u32 {
        look!(self.duplicate_acks, tcp => tcp.control.duplicate_acks())
    }

    /// The rate at which data was delivered lately, in bytes per second. The flag says that the application had too little to send then, so that the
    /// path may be faster; see `DeliveryRate::latest`. Nothing before the first sample.
    #[inline]
    pub fn delivery_rate(&self) -> Option<(u64, bool)> {
        match self.0 {
            Source::Connection(tcp) => tcp.control.board().delivery().latest(),
            Source::Observed(from) => {
                from.state.delivery_rate.map(|rate| (rate, from.state.delivery_rate_app_limited))
            }
        }
    }

    /// Whether the first duplicates bring new data out (RFC 3042).
    #[inline]
    pub fn limited_transmit(&self) -> bool {
        look!(self.limited_transmit, tcp => tcp.profile.limited_transmit)
    }

    /// The window that TCP by itself would advertise, in bytes.
    #[inline]
    pub(super) fn own_rcv_wnd(&self) -> u64 {
        look!(self.own_rcv_wnd, tcp => tcp.own_wanted_edge(tcp.rcv.next()).since(tcp.rcv.next()))
    }

    /// The rate TCP paces at, if it does, in bytes per second.
    #[inline]
    pub(super) fn pacing_rate(&self) -> Option<u64> {
        look!(self.pacing_rate, tcp => tcp.control.pacing_rate())
    }

    /// After how many timeouts in a row the connection is given up, if it ever is.
    #[inline]
    pub(super) fn give_up_after(&self) -> Option<u32> {
        look!(self.give_up_after, tcp => tcp.profile.r2)
    }

    /// TCP's own value of a variable, in its unit.
    #[inline]
    pub(super) fn own(&self, variable: Variable) -> u64 {
        match variable {
            Variable::Cwnd => self.cwnd(),
            Variable::CwndCnt => self.window().cwnd_cnt,
            Variable::Ssthresh => self.window().ssthresh,
            Variable::RcvWnd => self.own_rcv_wnd(),
            Variable::RcvNxt => self.rcv_nxt().get(),
            Variable::SndUna => self.snd_una().get(),
            Variable::SndNxt => self.snd_nxt().get(),
            Variable::Dupthresh => u64::from(self.dupthresh()),
            Variable::Rto => self.rto().as_nanos(),
            Variable::Retransmits => u64::from(self.retransmits()),
            Variable::PacingRate => self.pacing_rate().unwrap_or(u64::MAX),
        }
    }
}
