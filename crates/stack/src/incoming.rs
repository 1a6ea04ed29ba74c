//! SYNs that wait for a decision: a listener with [`ListenConfig::hold_syns`](crate::listener::ListenConfig::hold_syns) answers none by itself.
//!
//! A transparent proxy knows only later whether it can serve a connection: when its own connection to the true destination stands, or has failed. So
//! a SYN is held. The owner of the stack hears of it ([`StackSignal::Incoming`](crate::stack::StackSignal::Incoming)). It then admits the SYN
//! ([`Stack::admit`](crate::stack::Stack::admit)), and the handshake goes on as usual, or refuses it
//! ([`Stack::refuse`](crate::stack::Stack::refuse)) as the destination did. So the peer sees what it would see without the proxy.
//!
//! A held SYN is small, and its number is bounded: half-open connections and held SYNs share a listener's
//! [`syn_backlog`](crate::listener::ListenConfig::syn_backlog) and the host's [`max_half_open`](crate::config::StackConfig::max_half_open). Beyond that
//! SYNs are dropped, and the peers repeat them. SYN cookies are of no use here: they would be an answer.

use crate::flow::FlowKey;
use crate::listener::ListenerId;
use crate::wheel::TimerId;
use core::net::SocketAddr;
use transom_wire::{Ecn, Options, Seq, TcpHeader};

/// A held SYN's name. It stays unique: a name whose SYN is gone names nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct IncomingId {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

/// The contents of a held SYN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Incoming {
    /// The listener that holds it.
    pub listener: ListenerId,
    /// The address and port that the peer wants to reach.
    pub local: SocketAddr,
    /// The peer's address and port.
    pub remote: SocketAddr,
    /// The options of the SYN, such as the MSS. Of a repeated SYN, those of the newest.
    pub options: Options,
    /// The window field of the SYN, which is never scaled (RFC 7323 section 2.2).
    pub window: u16,
    /// The hop limit (time to live) with which it arrived.
    pub hop_limit: u8,
    /// The differentiated services code point with which it arrived, 0 to 63.
    pub dscp: u8,
}

/// How a held SYN is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// By a reset, as of a host where nobody listens: Linux reports `ECONNREFUSED`.
    Reset,
    /// By an ICMP error from the address that the peer wanted to reach. It counts against the host's
    /// [limit on such errors](crate::config::StackConfig::icmp_errors_per_second). Beyond the limit nothing is sent, and the peer repeats its SYN.
    Unreachable(Unreachable),
    /// By silence. The SYN is forgotten. If the peer repeats it, that is a new one.
    Silence,
}

/// Why a destination cannot be reached, as ICMP says it (RFC 792, RFC 1812 section 5.2.7.1, RFC 4443 section 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreachable {
    /// There is no route. ICMP: code 0; ICMPv6: code 0.
    Network,
    /// The host does not answer. ICMP: code 1; ICMPv6: code 3.
    Host,
    /// Nobody has the port. ICMP: code 3; ICMPv6: code 4.
    Port,
    /// A filter forbids it. ICMP: code 13; ICMPv6: code 1.
    Prohibited,
}

/// A SYN was not admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AdmitError {
    /// The peer has given up, or the time limit has passed.
    #[error("the connection request is gone")]
    Gone,
    /// The accept queue, or the host, is full. The SYN is still held.
    #[error("no more connections can be accepted now")]
    Full,
}

/// The marks of the packet in which a segment arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Marks {
    pub(crate) hop_limit: u8,
    pub(crate) dscp: u8,
}

/// A held SYN with its place in the host.
#[derive(Debug)]
pub(crate) struct HeldSyn {
    pub(crate) key: FlowKey,
    pub(crate) listener: ListenerId,
    pub(crate) syn: TcpHeader,
    pub(crate) ecn: Ecn,
    pub(crate) marks: Marks,
    /// Our initial sequence number has to lie after this one.
    pub(crate) beyond: Option<Seq>,
    pub(crate) timer: Option<TimerId>,
    /// Whether the owner has taken it from the listener's queue.
    pub(crate) taken: bool,
}

impl HeldSyn {
    pub(crate) fn view(&self) -> Incoming {
        Incoming {
            listener: self.listener,
            local: self.key.local(),
            remote: self.key.remote(),
            options: self.syn.options,
            window: self.syn.window,
            hop_limit: self.marks.hop_limit,
            dscp: self.marks.dscp,
        }
    }
}

#[cfg(test)]
mod tests {
    /// A flood fills the queues, so what one costs is bounded here.
    #[test]
    fn a_held_syn_is_small() {
        assert!(size_of::<super::HeldSyn>() <= 256, "{}", size_of::<super::HeldSyn>());
    }
}
