//! Counts the packets that a host sends, by flow.
//!
//! Packets are told apart by their ports: a flow's packets are those to its receiver's port, or from a port that only this flow uses.
//! TCP's own counts come from the flow's connections. A connection that its application has closed sends the rest of its buffer, and
//! disappears when that is acknowledged. It is asked after each packet that it sends, because it cannot go before the next.

use super::host::Map;
use super::packets::Packet;
use crate::traffic::{FlowId, Ledger, Sends, Sent};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use transom_stack::{ConnectionId, Stack};

/// The packets that the host sends, by flow.
#[derive(Debug, Default)]
pub(crate) struct Senders {
    pub(super) addresses: Addresses,
    connections: Map<ConnectionId, Connection>,
    /// Connections that their applications have closed.
    closed: Map<Ends, ConnectionId>,
    /// So many connections are looked through for those that are gone.
    tidy_at: usize,
}

/// Which packets are which flow's.
#[derive(Debug, Default)]
pub(super) struct Addresses {
    /// Flows by where their packets go, and by the port that they come from.
    to: Map<SocketAddrV4, FlowId>,
    from: Map<u16, FlowId>,
    /// The last packet's ends and flow: most packets are like the one before.
    last: Option<(Ends, Option<FlowId>)>,
}

impl Addresses {
    pub(super) fn add(&mut self, which: Sends, flow: FlowId) {
        match which {
            Sends::To(SocketAddr::V4(remote)) => self.to.insert(remote, flow),
            Sends::To(SocketAddr::V6(_)) => None,
            Sends::From(port) => self.from.insert(port, flow),
        };
        self.last = None;
    }

    /// Whether no packet is known to be a flow's.
    pub(super) fn is_empty(&self) -> bool {
        self.to.is_empty() && self.from.is_empty()
    }

    /// The flow of a packet with these headers.
    pub(super) fn flow_of(&mut self, headers: &[u8]) -> Option<FlowId> {
        self.flow(ends(headers)?)
    }

    fn flow(&mut self, ends: Ends) -> Option<FlowId> {
        match self.last {
            Some((last, flow)) if last == ends => flow,
            _ => {
                let flow = self.to.get(&ends.remote).or_else(|| self.from.get(&ends.port)).copied();
                self.last = Some((ends, flow));
                flow
            }
        }
    }
}

/// The ports and the receiver's address of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Ends {
    port: u16,
    remote: SocketAddrV4,
}

#[derive(Debug)]
struct Connection {
    flow: FlowId,
    ends: Option<Ends>,
    /// The counters that are in the ledger already.
    counted: Sent,
}

/// As few connections are not worth looking through.
const TIDY_AT_LEAST: usize = 64;

impl Senders {
    /// The connection sends for the flow.
    pub(crate) fn follow(
        &mut self,
        stack: &Stack,
        ledger: &mut Ledger,
        id: ConnectionId,
        flow: FlowId,
    ) {
        if self.connections.len() >= self.tidy_at.max(TIDY_AT_LEAST) {
            self.count(stack, ledger);
            self.tidy_at = 2 * self.connections.len();
        }
        let ends = match (stack.local_address(id), stack.remote_address(id)) {
            (Some(local), Some(SocketAddr::V4(remote))) => {
                Some(Ends { port: local.port(), remote })
            }
            _ => None,
        };
        let counted = Sent::default();
        self.connections.entry(id).or_insert(Connection { flow, ends, counted });
    }

    /// The application is about to close the connection.
    pub(crate) fn closes(&mut self, stack: &Stack, ledger: &mut Ledger, id: ConnectionId) {
        let Some(one) = self.connections.get_mut(&id) else { return };
        // It may be over already, and then it goes at once.
        one.count(id, stack, ledger);
        if let Some(ends) = one.ends {
            self.closed.insert(ends, id);
        }
    }

    /// A packet leaves the host.
    pub(super) fn sent(&mut self, packet: &Packet, stack: &Stack, ledger: &mut Ledger) {
        let Some(ends) = ends(packet.headers()) else { return };
        let Some(flow) = self.addresses.flow(ends) else { return };
        ledger.flow(flow).sent.packets.count(packet.len());
        if self.closed.is_empty() {
            return;
        }
        if let Some(id) = self.closed.get(&ends)
            && let Some(one) = self.connections.get_mut(id)
        {
            one.count(*id, stack, ledger);
        }
    }

    /// Brings the ledger up to now.
    pub(super) fn count(&mut self, stack: &Stack, ledger: &mut Ledger) {
        let closed = &mut self.closed;
        self.connections.retain(|id, one| {
            let is_there = one.count(*id, stack, ledger);
            if !is_there && one.ends.is_some_and(|ends| closed.get(&ends) == Some(id)) {
                one.ends.map(|ends| closed.remove(&ends));
            }
            is_there
        });
    }
}

impl Connection {
    /// Adds what is new to the flow. False if the connection is gone.
    fn count(&mut self, id: ConnectionId, stack: &Stack, ledger: &mut Ledger) -> bool {
        let Some(connection) = stack.connection(id) else { return false };
        let now = Sent::from(connection.counters());
        let flow = ledger.flow(self.flow);
        flow.sent.add(now.since(self.counted));
        for departure in connection.departures() {
            flow.departures.insert(departure.to_string());
        }
        self.counted = now;
        true
    }
}

/// The ends of an IPv4 packet without options, as all of ours are.
fn ends(headers: &[u8]) -> Option<Ends> {
    let [0x45, rest @ ..] = headers else { return None };
    let address: [u8; 4] = *rest.get(15..)?.first_chunk()?;
    let [a, b, c, d] = *rest.get(19..)?.first_chunk()?;
    let remote = SocketAddrV4::new(Ipv4Addr::from(address), u16::from_be_bytes([c, d]));
    Some(Ends { port: u16::from_be_bytes([a, b]), remote })
}
