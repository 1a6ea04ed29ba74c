//! What the network reports about our packets (RFC 9293 section 3.9.2.2, RFC 5927, RFC 1191, RFC 8201).
//!
//! ICMP messages are easily forged, so one counts only if it quotes a segment that is in flight now. In synchronized
//! states no such message ends a connection: a hard error is as soft as the others (RFC 5927 section 5.2), and the
//! retransmission timer decides. While our SYN is out, a hard error does end the attempt.

use super::{Connection, ConnectionError, Event, State};
use crate::pos::Pos;
use crate::recovery::Phase;
use crate::time::{Duration, Instant};
#[cfg(fixed_units)]
use crate::units::direct::*;
use alloc::boxed::Box;
use transom_wire::Seq;

/// An ICMP or ICMPv6 error about a segment of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum IcmpError {
    /// The network cannot be reached.
    #[error("network unreachable")]
    NetworkUnreachable,
    /// The host cannot be reached.
    #[error("host unreachable")]
    HostUnreachable,
    /// The host does not speak TCP.
    #[error("protocol unreachable")]
    ProtocolUnreachable,
    /// Nobody listens at the port.
    #[error("port unreachable")]
    PortUnreachable,
    /// A source route failed.
    #[error("source route failed")]
    SourceRouteFailed,
    /// There is no such host.
    #[error("host unknown")]
    HostUnknown,
    /// The source host is isolated.
    #[error("source host isolated")]
    HostIsolated,
    /// Administratively prohibited.
    #[error("prohibited on the path")]
    Prohibited,
    /// ICMPv6 says that a policy denies it.
    #[error("denied by a policy on the path")]
    Denied,
    /// The packet was too big for a link whose MTU is given (zero: unknown).
    #[error("packet too big, next hop takes {0} bytes")]
    TooBig(u32),
    /// The hop limit ran out, or reassembly took too long.
    #[error("time exceeded on the path")]
    TimeExceeded,
    /// A header field was not understood.
    #[error("parameter problem")]
    ParameterProblem,
}

impl IcmpError {
    /// The number by which Linux reports it to a program, as in its `icmp_err_convert` and `icmpv6_err_convert`.
    pub const fn errno(self) -> i32 {
        match self {
            IcmpError::NetworkUnreachable => 101, // ENETUNREACH
            IcmpError::HostUnreachable | IcmpError::Prohibited | IcmpError::TimeExceeded => 113, // EHOSTUNREACH
            IcmpError::ProtocolUnreachable => 92, // ENOPROTOOPT
            IcmpError::PortUnreachable => 111,    // ECONNREFUSED
            IcmpError::SourceRouteFailed => 95,   // EOPNOTSUPP
            IcmpError::HostUnknown => 112,        // EHOSTDOWN
            IcmpError::HostIsolated => 64,        // ENONET
            IcmpError::Denied => 13,              // EACCES
            IcmpError::TooBig(_) => 90,           // EMSGSIZE
            IcmpError::ParameterProblem => 71,    // EPROTO
        }
    }

    /// Whether it ends an attempt to connect (RFC 9293 section 3.9.2.2) [SHLD-26].
    const fn is_hard(self) -> bool {
        matches!(self, IcmpError::ProtocolUnreachable | IcmpError::PortUnreachable)
    }
}

/// What the network last said of a connection's packets.
#[derive(Clone, Copy, Debug)]
pub(super) struct SoftError {
    error: IcmpError,
    at: Instant,
    /// The application has not been told of it.
    untold: bool,
}

/// The MTU steps of RFC 1191 section 7.1, for routers that do not name one.
const PLATEAUS: [u32; 9] = [32_000, 17_914, 8_166, 4_352, 2_002, 1_492, 1_006, 508, 296];

/// How long a lowered path MTU is believed: the ten minutes of RFC 1191 section 6.3 and RFC 8201 section 4.
const PATH_MTU_EXPIRES: Duration = Duration::from_secs(600);

impl Connection {
    /// The network reported `error` about a segment of ours with sequence number `seq` (as quoted).
    pub fn on_icmp(&mut self, now: Instant, error: IcmpError, seq: Seq) {
        let pos = self.snd.space.from_wire(seq, self.una());
        // [MUST-54] RFC 5927 section 4.1: only about something in flight.
        if self.state == State::Closed || pos < self.una() || pos >= self.highest_sent() {
            self.counters.icmp_rejected += 1;
            return;
        }
        if let IcmpError::TooBig(mtu) = error {
            self.on_packet_too_big(now, mtu, pos);
            return;
        }
        if error.is_hard() && !self.snd.syn_acked {
            return self.fail(match error {
                IcmpError::PortUnreachable => ConnectionError::Refused,
                error => ConnectionError::Unreachable(error),
            });
        }
        // [MUST-56] [SHLD-26] In synchronized states none is fatal. What is remembered explains the failure, if it comes to that [SHLD-25].
        self.soft_error = Some(Box::new(SoftError { error, at: now, untold: true }));
        self.raise(Event::Trouble);
    }

    /// Takes the last soft error, if the application has not been told of it [MUST-47] [SHLD-25].
    pub fn take_soft_error(&mut self) -> Option<IcmpError> {
        let soft = self.soft_error.as_mut()?;
        core::mem::take(&mut soft.untold).then_some(soft.error)
    }

    /// Whether a soft error is told by calls as it comes, once: reading and writing fail with it, and the connection lives (`IP_RECVERR` of Linux).
    /// By default it is not [SHLD-20].
    pub fn set_report_soft_errors(&mut self, report: bool) {
        self.reports_soft_errors = report;
    }

    /// Whether calls tell of soft errors.
    pub fn reports_soft_errors(&self) -> bool {
        self.reports_soft_errors
    }

    /// The soft error that the next call tells of, if there is one.
    pub fn soft_error_to_tell(&self) -> Option<IcmpError> {
        let soft = self.soft_error.as_ref()?;
        (self.reports_soft_errors && soft.untold).then_some(soft.error)
    }

    /// The peer has been silent for too long: the connection is over. If the network has said why since the peer last was heard, that is the error, as
    /// on Linux.
    pub(super) fn time_out(&mut self) {
        let heard = self.snd.syn_acked.then_some(self.rcv.last_heard);
        let explains = |soft: &&SoftError| heard.is_none_or(|heard| soft.at >= heard);
        let error = match self.soft_error.as_deref().filter(explains) {
            Some(soft) => ConnectionError::Unreachable(soft.error),
            None => ConnectionError::TimedOut,
        };
        self.fail(error);
    }

    /// Path MTU discovery: the lower MTU is taken if it is plausible, and what was too big is sent again at once.
    fn on_packet_too_big(&mut self, now: Instant, mtu: u32, pos: Pos) {
        let least = if self.path.ip_header >= 40 { 1280 } else { 68 };
        let current = self.path.mtu;
        let mtu = if mtu == 0 {
            PLATEAUS.into_iter().find(|&plateau| plateau < current).unwrap_or(least)
        } else {
            mtu
        };
        // RFC 8201 section 4 and RFC 1191 section 3: never below the minimum, never upwards.
        let mtu = mtu.max(least);
        if mtu >= current {
            return;
        }
        // RFC 5927 section 7.2: a segment that needed no more than the claimed MTU cannot have been too big.
        let longest = self.longest_at(pos) + self.path.ip_header + 20;
        if longest <= mtu {
            self.counters.icmp_rejected += 1;
            return;
        }
        self.set_path_mtu(now, mtu);
    }

    /// Payload and options of the segments sent at `pos`, at most.
    fn longest_at(&self, pos: Pos) -> u32 {
        if !self.snd.syn_acked {
            return 40;
        }
        let record = self.snd.sent.at(pos);
        let len = record.map_or(0, |record| record.len().min(u64::from(self.mss())));
        u32::try_from(len).unwrap_or(u32::MAX).saturating_add(self.agreed.data_option_len())
    }

    /// The path MTU in use, in bytes.
    pub fn path_mtu(&self) -> u32 {
        self.path.mtu
    }

    /// Tries a larger path MTU again after a while, in case the path has changed (RFC 1191 section 6.3, RFC 8201
    /// section 4). There is no timer for it: it is looked at when data is about to leave. The whole MTU of the
    /// interface is tried at once; if it is still too much, the report of that brings the right one.
    pub(super) fn probe_path_mtu(&mut self, now: Instant) {
        let most = self.path.interface_mtu;
        if self.path.mtu < most && now.since(self.path_mtu_since) >= PATH_MTU_EXPIRES {
            self.set_path_mtu(now, most);
        }
    }

    /// Takes a new path MTU. When it shrinks, everything unacknowledged counts as lost and is cut anew, without a
    /// reduction of the congestion window (RFC 1191 section 6.5: this is not congestion).
    pub fn set_path_mtu(&mut self, now: Instant, mtu: u32) {
        let shrinks = mtu < self.path.mtu;
        self.path.mtu = mtu;
        self.path_mtu_since = if mtu < self.path.interface_mtu { now } else { Instant::FAR_FUTURE };
        self.snd.window.mss = self.mss();
        // One segment may always leave.
        self.snd.window.cwnd = self.snd.window.cwnd.max(u64::from(self.mss()));
        if shrinks && self.snd.syn_acked && self.snd.sent.outstanding() > 0 {
            if self.snd.recovery.phase() != Phase::Loss {
                self.snd.recovery.on_timeout(&mut self.snd.sent);
                self.snd.sent.forget_lost();
            } else {
                self.snd.sent.mark_all_lost();
            }
            self.give_up_what_is_hopeless(now);
            self.rearm_retransmission(now);
        }
    }
}
