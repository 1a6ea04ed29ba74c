//! The state that a log needs of a connection, cheap enough to read around every call.
//!
//! A [`Checkpoint`] has the values that change with a recordable event; comparing two of them, from before and after a call, shows the events. It is
//! read from plain fields only and calls no unit. A [`Snapshot`] is the connection's part of a record; [`Info`](super::Info) has more, and costs
//! more.

use super::{Connection, LimitedBy, State};
use crate::pos::Pos;
use crate::recovery::Phase;
use crate::rto::RetransmissionTimer as _;
use crate::time::Duration;

/// Values that show whether something has happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// The state of RFC 9293.
    pub state: State,
    /// SND.UNA.
    pub snd_una: Pos,
    /// Bytes delivered to the peer so far.
    pub delivered: u64,
    /// New payload bytes received so far.
    pub bytes_accepted: u64,
    /// Bytes believed lost so far.
    pub lost_bytes: u64,
    /// Retransmission timeouts so far.
    pub timeouts: u64,
    /// Times fast recovery began.
    pub fast_recoveries: u64,
    /// Reductions of the window that were taken back.
    pub spurious_reductions: u64,
}

/// The connection's part of a record. Durations and windows as in [`Info`](super::Info).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The state of RFC 9293.
    pub state: State,
    /// Open, disorder, recovery or loss.
    pub phase: Phase,
    /// The limit of the sender.
    pub limited_by: LimitedBy,
    /// SND.UNA.
    pub snd_una: Pos,
    /// The peer's window beyond it, bytes.
    pub snd_wnd: u64,
    /// RCV.NXT.
    pub rcv_nxt: Pos,
    /// The advertised window beyond it, bytes.
    pub rcv_wnd: u64,
    /// The congestion window, bytes.
    pub cwnd: u64,
    /// The slow-start threshold, bytes.
    pub ssthresh: u64,
    /// Believed to be in the network, bytes.
    pub in_flight: u64,
    /// The smoothed round-trip time.
    pub srtt: Option<Duration>,
    /// The last sample of it.
    pub last_rtt: Option<Duration>,
}

impl Connection {
    /// The present values, to compare with later ones.
    #[inline(always)]
    pub fn checkpoint(&self) -> Checkpoint {
        let counters = &self.counters;
        Checkpoint {
            state: self.state,
            snd_una: self.una(),
            delivered: self.control.board().delivery().delivered(),
            bytes_accepted: counters.bytes_accepted,
            lost_bytes: counters.lost_bytes,
            timeouts: counters.timeouts,
            fast_recoveries: counters.fast_recoveries,
            spurious_reductions: counters.spurious_reductions,
        }
    }

    /// Whether a duplicate acknowledgement has arrived since this was last asked.
    #[inline]
    pub fn take_duplicate(&mut self) -> bool {
        core::mem::take(&mut self.notices.duplicate_seen)
    }

    /// RCV.NXT and what is offered beyond it, in bytes.
    #[inline]
    pub fn receive_window(&self) -> (Pos, u64) {
        (self.rcv.next(), self.rcv.edge.since(self.rcv.next()))
    }

    /// The retransmission timeout with its back-off, and how often it has backed off.
    pub fn retransmission_timeout(&self) -> (Duration, u32) {
        (self.control.timer().rto(), self.control.timer().backoffs())
    }

    /// The connection in short.
    #[inline]
    pub fn snapshot(&self) -> Snapshot {
        let (snd, rcv, control) = (&self.snd, &self.rcv, &self.control);
        let window = control.window();
        Snapshot {
            state: self.state,
            phase: control.phase(),
            limited_by: self.limited.current(),
            snd_una: self.una(),
            snd_wnd: snd.peer.edge.since(self.una()),
            rcv_nxt: rcv.next(),
            rcv_wnd: rcv.edge.since(rcv.next()),
            cwnd: window.cwnd,
            ssthresh: window.ssthresh,
            in_flight: self.in_flight(),
            srtt: control.timer().srtt(),
            last_rtt: control.last_rtt(),
        }
    }
}
