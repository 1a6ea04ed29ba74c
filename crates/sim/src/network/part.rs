//! A network, or the part of one that a core has: nodes, what is between them, and the loop over their events.
//!
//! The names of nodes and links are the part's own: their places in its lists. In a whole network they are the names that everybody uses.

use super::agenda::Entity;
use super::gateway::Gateway;
use super::host::Host;
use super::packets::{Packet, PacketId};
use super::topology::Routes;
use super::{Fabric, LinkId, NetworkError, NodeId, destination, settle};
use crate::link::Delivered;
use crate::traffic::Ledger;
use transom_tcp::time::{Duration, Instant};

/// A node.
pub(super) enum Node {
    /// With its number among the hosts.
    Host(usize, Box<Host>),
    Router(Routes),
    Gateway(Gateway),
}

/// Nodes and links that one thread runs.
pub(super) struct Part {
    pub(super) now: Instant,
    pub(super) nodes: Vec<Node>,
    pub(super) hosts: Vec<NodeId>,
    pub(super) fabric: Fabric,
    pub(super) events: u64,
    /// The names that everybody uses for the nodes, in order; empty if they are the places.
    names: Vec<NodeId>,
    /// What comes from other parts: over which link, and when it comes out.
    pub(super) imports: Vec<(LinkId, Delivered<Packet>)>,
    /// The place in the agenda behind which the calls of this window are.
    pub(super) window_place: u64,
}

impl Part {
    pub(super) fn assemble(
        nodes: Vec<Node>,
        fabric: Fabric,
        hosts: Vec<NodeId>,
        names: Vec<NodeId>,
    ) -> Self {
        let (now, events, imports) = (Instant::ZERO, 0, Vec::new());
        let mut part = Part { now, nodes, hosts, fabric, events, names, imports, window_place: 0 };
        for number in 0..part.hosts.len() {
            part.call_host_later(number);
        }
        part
    }

    /// Where a node is in the lists.
    pub(super) fn place(&self, node: NodeId) -> Option<usize> {
        if self.names.is_empty() {
            Some(node.0 as usize)
        } else {
            self.names.binary_search(&node).ok()
        }
    }

    /// A host's number among the hosts, by its place.
    pub(super) fn host_number(&self, place: usize) -> Option<usize> {
        match self.nodes.get(place)? {
            Node::Host(number, _) => Some(*number),
            Node::Router(_) | Node::Gateway(_) => None,
        }
    }

    /// A host, by its place.
    pub(super) fn host(&self, place: usize) -> Option<&Host> {
        match self.nodes.get(place)? {
            Node::Host(_, host) => Some(host),
            Node::Router(_) | Node::Gateway(_) => None,
        }
    }

    /// A host, to change.
    pub(super) fn host_mut(&mut self, place: usize) -> Option<&mut Host> {
        match self.nodes.get_mut(place)? {
            Node::Host(_, host) => Some(host),
            Node::Router(_) | Node::Gateway(_) => None,
        }
    }

    /// Takes over what other parts have sent.
    pub(super) fn import(&mut self) {
        for (link, delivered) in self.imports.drain(..) {
            let Fabric { wires, packets, .. } = &mut self.fabric;
            let Some(wire) = wires.get_mut(link.0 as usize) else { continue };
            let (delivered, packet) = delivered.exchange(());
            wire.model.schedule(delivered.exchange(packets.insert(packet)).0);
        }
    }

    /// Handles everything up to and including `limit`, which is the present afterwards.
    pub(super) fn run_until(&mut self, limit: Instant) -> Result<(), NetworkError> {
        while let Some((at, entity)) = self.fabric.agenda.next(limit) {
            self.now = self.now.max(at);
            self.events += 1;
            if let Some(journal) = &mut self.fabric.journal {
                journal.runs(at, entity);
            }
            let wires = self.fabric.wires.len();
            match (entity.0 as usize).checked_sub(wires) {
                None => self.deliver(LinkId(entity.0))?,
                Some(number) => match number.checked_sub(self.hosts.len()) {
                    None => self.run_host(number)?,
                    Some(link) => self.release_held(LinkId(link as u32))?,
                },
            }
        }
        self.now = self.now.max(limit);
        Ok(())
    }

    /// Writes down what the flows' connections have counted.
    pub(super) fn count(&mut self) {
        let mut ledger = std::mem::take(&mut self.fabric.ledger);
        self.count_in(&mut ledger);
        self.fabric.ledger = ledger;
    }

    /// Writes down in a ledger what the connections of its flows have counted that are here.
    pub(super) fn count_in(&mut self, ledger: &mut Ledger) {
        for host in ledger.sending() {
            let place = self.place(host);
            if let Some(Node::Host(_, host)) = place.and_then(|place| self.nodes.get_mut(place)) {
                host.count(ledger);
            }
        }
    }

    fn deliver(&mut self, link: LinkId) -> Result<(), NetworkError> {
        let now = self.now;
        let Some(wire) = self.fabric.wires.get(link.0 as usize) else { return Ok(()) };
        let to = wire.to;
        loop {
            let Fabric { wires, packets, .. } = &mut self.fabric;
            let Some(wire) = wires.get_mut(link.0 as usize) else { return Ok(()) };
            let delivered = wire.model.deliver(now);
            settle(wire, packets);
            let Some(delivered) = delivered else { break };
            self.arrive(link, to, delivered)?;
            // Packets that come at the same time are still answered one by one. A host that saw a whole window's
            // acknowledgements before it may send would forget what a clock they are.
            if let Some(&Node::Host(number, _)) = self.nodes.get(to.0 as usize) {
                self.run_host(number)?;
            }
        }
        let wire = self.fabric.wires.get(link.0 as usize);
        if let Some(at) = wire.and_then(|wire| wire.model.next_delivery()) {
            self.fabric.call(Entity(link.0), at);
        }
        Ok(())
    }

    /// Has acknowledgements go on that a link's window control has held.
    fn release_held(&mut self, link: LinkId) -> Result<(), NetworkError> {
        if let Some(at) = self.fabric.release_held(self.now, link)? {
            self.call_for_held(link, at);
        }
        Ok(())
    }

    fn call_for_held(&mut self, link: LinkId, at: Instant) {
        let before = self.fabric.wires.len() + self.hosts.len();
        self.fabric.call(Entity(before as u32 + link.0), at);
    }

    fn arrive(
        &mut self,
        link: LinkId,
        to: NodeId,
        delivered: Delivered<PacketId>,
    ) -> Result<(), NetworkError> {
        let now = self.now;
        let id = self.fabric.packets.own(delivered.packet);
        let Some(packet) = self.fabric.packets.get_mut(id) else { return Ok(()) };
        if delivered.may_change_ecn() {
            packet.set_ecn(delivered.ecn_on_arrival(packet.ecn()));
        }
        let mut damaged = match &delivered.corruption {
            Some(corruption) => {
                let mut bytes = packet.bytes()?;
                corruption.apply(&mut bytes);
                Some(bytes)
            }
            None if packet.is_damaged() => Some(packet.bytes()?),
            None => None,
        };
        if let Some(tap) = self.fabric.arrival_taps.get_mut(&link) {
            match &damaged {
                Some(bytes) => tap(now, bytes, None),
                None => tap(now, &packet.bytes()?, None),
            }
        }
        let mut delay = Duration::ZERO;
        if !self.fabric.controls.is_empty() {
            match &mut damaged {
                Some(bytes) => self.fabric.control_damaged(now, link, bytes),
                None => delay = self.fabric.control_arrival(now, link, id),
            }
        }
        let Some(packet) = self.fabric.packets.get_mut(id) else { return Ok(()) };
        match (self.nodes.get_mut(to.0 as usize), damaged) {
            (Some(Node::Host(_, host)), None) => {
                host.receive(now, packet);
                self.fabric.packets.release(id);
            }
            (Some(Node::Host(_, host)), Some(bytes)) => {
                host.receive_bytes(now, &bytes);
                self.fabric.packets.release(id);
            }
            (Some(Node::Gateway(gateway)), None) => {
                if let Some(packet) = self.fabric.packets.take(id) {
                    gateway.depart(now, packet.into_bytes()?);
                }
            }
            (Some(Node::Gateway(gateway)), Some(bytes)) => {
                self.fabric.packets.release(id);
                gateway.depart(now, bytes);
            }
            (Some(Node::Router(routes)), None) => {
                let forward = matches!(
                    transom_wire::ip::decrement_hop_limit(packet.headers_mut()),
                    Ok(left) if left > 0
                );
                let towards = destination(packet.headers())
                    .filter(|_| forward)
                    .and_then(|host| routes.towards(host));
                // Packets do not overtake those that are held.
                if !delay.is_zero() || self.fabric.is_holding(link) {
                    let at = self.fabric.hold(now, link, delay, towards, id);
                    self.call_for_held(link.back(), at);
                } else {
                    self.fabric.send(now, towards, id)?;
                }
            }
            // A router verifies nothing but the IP header; what is damaged behind it goes on, damaged.
            (Some(Node::Router(routes)), Some(bytes)) => {
                self.fabric.packets.release(id);
                self.fabric.forward_damaged(now, routes, bytes)?;
            }
            (None, _) => self.fabric.packets.release(id),
        }
        Ok(())
    }

    fn run_host(&mut self, number: usize) -> Result<(), NetworkError> {
        if let Some(Node::Host(_, host)) =
            self.hosts.get(number).and_then(|node| self.nodes.get_mut(node.0 as usize))
        {
            host.run(self.now, &mut self.fabric)?;
        }
        self.call_host_later(number);
        Ok(())
    }

    fn call_host_later(&mut self, number: usize) {
        let node = self.hosts.get(number).and_then(|node| self.nodes.get(node.0 as usize));
        let Some(Node::Host(_, host)) = node else { return };
        if let Some(at) = host.next_call() {
            let entity = Entity((self.fabric.wires.len() + number) as u32);
            // A timer may have expired while the host was busy with something else.
            self.fabric.call(entity, at.max(self.now));
        }
    }
}
