//! What has become of the flows.

use crate::network::NodeId;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use transom_stack::stack::ConnectionId;
use transom_tcp::time::{Duration, Instant};

/// A flow's number, given by whoever sets up the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowId(pub u32);

/// One flow: all that one source sends to one sink, over one connection or many.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flow {
    /// Its sender's host, and the connection it uses now.
    pub sender: Option<(NodeId, ConnectionId)>,
    /// When its first connection was opened.
    pub started: Option<Instant>,
    /// When its sender had nothing more to send and all of it had arrived.
    pub finished: Option<Instant>,
    /// Bytes that the receiving application has got.
    pub delivered: u64,
    /// How long each transfer took, from its opening to its last byte at the receiver.
    pub completions: Vec<(Instant, Duration)>,
}

/// All flows of a network.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    flows: Vec<Flow>,
    /// Transfers under way, by the sender's address: when they began.
    begun: BTreeMap<(FlowId, SocketAddr), Instant>,
}

impl Ledger {
    /// The flows, by number.
    pub fn flows(&self) -> &[Flow] {
        &self.flows
    }

    /// A flow, to be written to.
    pub fn flow(&mut self, id: FlowId) -> &mut Flow {
        let index = id.0 as usize;
        if index >= self.flows.len() {
            self.flows.resize_with(index + 1, Flow::default);
        }
        &mut self.flows[index]
    }

    /// A transfer begins.
    pub(super) fn begin(&mut self, flow: FlowId, sender: SocketAddr, now: Instant) {
        self.begun.insert((flow, sender), now);
    }

    /// The receiver has all that the sender at this address sent.
    pub(super) fn complete(&mut self, flow: FlowId, sender: SocketAddr, now: Instant) {
        if let Some(begun) = self.begun.remove(&(flow, sender)) {
            self.flow(flow).completions.push((now, now.since(begun)));
        }
    }
}
