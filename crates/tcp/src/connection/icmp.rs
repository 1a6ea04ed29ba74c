//! The network's reports about our packets (RFC 9293 section 3.9.2.2, RFC 5927). `path_mtu` handles reports on their size.
//!
//! ICMP messages are easily forged, so one counts only if it quotes a segment in flight. In synchronized states no such message ends a connection: a
//! hard error is treated as a soft one (RFC 5927 section 5.2), and the retransmission timer decides. While our SYN is unanswered, a hard error ends
//! the attempt.

use super::reports::Reports;
use super::{Connection, ConnectionError, Signal, State};
use crate::time::Instant;
use alloc::boxed::Box;
use transom_wire::Seq;

/// An ICMP or ICMPv6 error about a segment of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
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
    /// The port is closed.
    #[error("port unreachable")]
    PortUnreachable,
    /// A source route failed.
    #[error("source route failed")]
    SourceRouteFailed,
    /// The host does not exist.
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

/// The last report of the network about a connection's packets.
#[derive(Clone, Copy, Debug)]
pub(super) struct SoftError {
    error: IcmpError,
    at: Instant,
    /// The application has not read it.
    untold: bool,
}

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
        if self.state == State::SynSent {
            self.on_icmp_about_syn();
        }
        // One that opened fast is in use already, as one that is synchronized is.
        if error.is_hard() && !self.control.has_begun() && !self.is_opened_fast() {
            return self.fail(match error {
                IcmpError::PortUnreachable => ConnectionError::Refused,
                error => ConnectionError::Unreachable(error),
            });
        }
        // [MUST-56] [SHLD-26] In synchronized states none is fatal. The error is remembered, and explains a later failure [SHLD-25].
        self.notices.soft_error = Some(Box::new(SoftError { error, at: now, untold: true }));
        self.raise(Signal::Trouble);
    }

    /// Takes the last soft error, if the application has not read it [MUST-47] [SHLD-25].
    pub fn take_soft_error(&mut self) -> Option<IcmpError> {
        let soft = self.notices.soft_error.as_mut()?;
        core::mem::take(&mut soft.untold).then_some(soft.error)
    }

    /// Whether calls report soft errors.
    pub(super) fn reports_soft_errors(&self) -> bool {
        self.notices.reports.has(Reports::BY_CALLS)
    }

    /// The soft error that the next call will report.
    pub fn pending_soft_error(&self) -> Option<IcmpError> {
        let soft = self.notices.soft_error.as_ref()?;
        (self.reports_soft_errors() && soft.untold).then_some(soft.error)
    }

    /// The peer has been silent for too long, and the connection ends. If the network has reported a reason since the peer's last segment, that is
    /// the error, as on Linux.
    pub(super) fn time_out(&mut self) {
        let heard = self.control.has_begun().then_some(self.rcv.heard.last);
        let explains = |soft: &&SoftError| heard.is_none_or(|heard| soft.at >= heard);
        let error = match self.notices.soft_error.as_deref().filter(explains) {
            Some(soft) => ConnectionError::Unreachable(soft.error),
            None => ConnectionError::TimedOut,
        };
        self.fail(error);
    }
}
