//! Gateways: the edge of the network, with something else behind it.
//!
//! Theory of operation. To the network a gateway is a host that never does anything by itself. Packets that arrive there go
//! into its outbox, with the time of their arrival and their bytes on a wire; packets handed to it enter the network at the
//! time that the caller says. The network still has no clock and no input or output. An emulator, which has both, empties the
//! outbox when that time has come, and a test may do it whenever it likes.

use super::packets::Packet;
use super::part::{Node, Part};
use super::senders::Addresses;
use super::topology::Routes;
use super::{Network, NetworkError, NodeId};
use crate::link::Traffic;
use crate::traffic::{FlowId, Sends};
use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr};
use transom_tcp::time::Instant;
use transom_wire::IpPacket;

/// A gateway.
#[derive(Debug)]
pub(super) struct Gateway {
    routes: Routes,
    /// Packets that have left, with the times.
    outbox: VecDeque<(Instant, Vec<u8>)>,
    addresses: Addresses,
    /// The traffic that has come in, by flow.
    entered: BTreeMap<FlowId, Traffic>,
}

impl Gateway {
    pub(super) fn new(routes: Routes) -> Self {
        let (addresses, entered) = (Addresses::default(), BTreeMap::new());
        Gateway { routes, outbox: VecDeque::new(), addresses, entered }
    }

    pub(super) fn depart(&mut self, at: Instant, bytes: Vec<u8>) {
        self.outbox.push_back((at, bytes));
    }
}

impl Network {
    /// An IP packet comes in through a gateway at `now`, before which everything due is handled.
    ///
    /// Only what is for a host or another gateway of the network goes anywhere. The rest (a multicast, IPv6, no packet at all)
    /// counts as undeliverable.
    ///
    /// # Errors
    /// [`NetworkError::NotAGateway`], and those of [`Network::run_until`].
    pub fn inject(
        &mut self,
        now: Instant,
        gateway: NodeId,
        bytes: Vec<u8>,
    ) -> Result<(), NetworkError> {
        self.run_until(now)?;
        // A network with gateways is never divided.
        let Some(Part { now, nodes, hosts, fabric, .. }) = self.parts.first_mut() else {
            return Err(NetworkError::NotAGateway(gateway));
        };
        let Some(Node::Gateway(gateway)) = nodes.get_mut(gateway.0 as usize) else {
            return Err(NetworkError::NotAGateway(gateway));
        };
        if destination(&bytes).is_none_or(|host| host >= hosts.len()) {
            fabric.undeliverable += 1;
            return Ok(());
        }
        if let Some(flow) = gateway.addresses.flow_of(&bytes) {
            gateway.entered.entry(flow).or_default().count(bytes.len());
        }
        fabric.send_from(*now, &gateway.routes, Packet::from_outside(bytes))
    }

    /// The next packet that has left through a gateway, in the order of time: when, and the IP packet with all its headers and checksums.
    /// `None` if there is none so far.
    pub fn take_departure(&mut self, gateway: NodeId) -> Option<(Instant, Vec<u8>)> {
        self.gateway_mut(gateway)?.outbox.pop_front()
    }

    fn gateway_mut(&mut self, gateway: NodeId) -> Option<&mut Gateway> {
        match self.parts.first_mut()?.nodes.get_mut(gateway.0 as usize)? {
            Node::Gateway(gateway) => Some(gateway),
            Node::Host(..) | Node::Router(_) => None,
        }
    }

    /// Has packets counted that come in at a gateway: they are the flow's.
    pub fn count(&mut self, gateway: NodeId, which: Sends, flow: FlowId) {
        if let Some(gateway) = self.gateway_mut(gateway) {
            gateway.addresses.add(which, flow);
        }
    }

    /// Packets of a flow that have come in at a gateway, of those that are counted.
    pub fn entered(&self, gateway: NodeId, flow: FlowId) -> Traffic {
        match self.parts.first().and_then(|part| part.nodes.get(gateway.0 as usize)) {
            Some(Node::Gateway(gateway)) => gateway.entered.get(&flow).copied().unwrap_or_default(),
            _ => Traffic::default(),
        }
    }

    /// When something happens next by itself; `None` if nothing does until a packet comes in.
    pub fn next_event(&mut self) -> Option<Instant> {
        self.parts.iter_mut().filter_map(|part| part.fabric.agenda.peek()).min()
    }

    /// A host's or gateway's address; `None` for a router.
    pub fn address(&self, node: NodeId) -> Option<Ipv4Addr> {
        // Hosts are numbered in the order of their nodes.
        self.hosts.binary_search(&node).ok().map(super::topology::address_of)
    }
}

/// The number of the host that a whole packet is for.
fn destination(bytes: &[u8]) -> Option<usize> {
    match IpPacket::parse(bytes).ok()?.dst() {
        IpAddr::V4(address) => super::topology::host_at(address),
        IpAddr::V6(_) => None,
    }
}

#[cfg(test)]
mod tests;
