//! A network of hosts, routers and links in virtual time.
//!
//! Theory of operation. A host is a Transom stack with applications on it, the same stack that a program uses on a real network; a link is two
//! [`LinkModel`](crate::link::LinkModel)s; a router forwards. Time jumps from one event to the next. Only links and hosts have events: a link
//! that a packet comes out of, a host whose timer expires. When a host is called it does everything that can be done at that time: its timers,
//! then its applications, then its packets leave. Events at the same nanosecond happen in the order in which they were scheduled, so a run is a
//! function of the topology and the seed.
//!
//! A *gateway* stands for a host outside of all this: packets leave and enter the network there (`gateway`). With gateways a run is
//! a function of what enters when as well.
//!
//! # Example
//!
//! A megabyte over a link of 10 Mbit/s and 20 ms:
//!
//! ```
//! use transom_sim::network::{HostConfig, Topology};
//! use transom_sim::traffic::{Amount, Bulk, Sink};
//! use transom_tcp::time::Instant;
//!
//! let mut topology = Topology::new(1);
//! let (client, server) = (topology.host(HostConfig::default()), topology.host(HostConfig::default()));
//! let link = "rate=10Mbit/s, delay=20ms, queue=50 packets".parse::<transom_sim::link::LinkConfig>()?;
//! topology.join(client, server, link.clone(), link);
//! let flow = transom_sim::traffic::FlowId(0);
//! let bulk = Bulk::new(flow, (topology.address(server)?, 80).into(), Amount::Bytes(1_000_000));
//! topology.run(client, Instant::ZERO, Box::new(bulk))?;
//! topology.run(server, Instant::ZERO, Box::new(Sink::new(flow, 80)))?;
//!
//! let mut network = topology.build()?;
//! network.run_until(Instant::from_secs(10))?;
//! let flow = &network.flows()[0];
//! assert_eq!(flow.delivered, 1_000_000);
//! // At least 0.8 s on the wire.
//! assert!(flow.finished.unwrap() > Instant::from_millis(800));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod agenda;
mod control;
mod gateway;
pub(crate) mod host;
mod packets;
pub(crate) mod senders;
mod topology;
mod wire;

use crate::link::{Admission, Counters, Delivered, Fate, LinkConfigError, QueueObserver, Traffic};
use crate::measure::LinkSample;
use crate::traffic::{Flow, Ledger};
use agenda::{Agenda, Entity};
use control::Controlled;
use gateway::Gateway;
use host::Host;
use packets::{Packet, PacketId, Packets};
use std::net::IpAddr;
use topology::{MAX_HOSTS, Routes, host_at};
use transom_stack::config::StackConfigError;
use transom_stack::stack::Stack;
use transom_tcp::time::{Duration, Instant};
use transom_wire::IpPacket;
use wire::Wire;

pub use control::WindowReport;
pub use gateway::Departure;
pub use host::LogReader;
pub use topology::{HostConfig, Topology};

/// A node's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(u32);

/// The name of one direction of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(u32);

impl LinkId {
    /// The other direction of the same link.
    pub fn back(self) -> LinkId {
        LinkId(self.0 ^ 1)
    }
}

/// Why a network cannot be built, or does not go on.
#[derive(Debug, thiserror::Error)]
pub enum NetworkError {
    /// The node is a router, or is not of this network.
    #[error("node {} is not a host", .0.0)]
    NotAHost(NodeId),
    /// The node is no gateway of this network.
    #[error("node {} is not a gateway", .0.0)]
    NotAGateway(NodeId),
    /// A link from a node to itself or to none.
    #[error("link {} must join two different nodes of the network", .0.0)]
    BadLink(LinkId),
    /// A link that cannot be made.
    #[error("link {}: {}", .0.0, .1)]
    Link(LinkId, LinkConfigError),
    /// Hosts without a way between them.
    #[error("no path leads from node {} to node {}", .0.0, .1.0)]
    Unreachable(NodeId, NodeId),
    /// More hosts than there are addresses.
    #[error("a network has addresses for {MAX_HOSTS} hosts, not for {0}")]
    TooManyHosts(usize),
    /// A host's configuration.
    #[error(transparent)]
    Host(#[from] StackConfigError),
    /// A packet that a host made cannot be put onto a wire. It would be a defect of this program.
    #[error("a host sent an impossible packet")]
    Packet(#[from] transom_wire::Error),
}

/// Called for each packet that comes to a link, or out of one: when, its bytes with all checksums, and what the host that sends it right now says of
/// it, if it [comments](HostConfig::comments).
pub type Tap = Box<dyn FnMut(Instant, &[u8], Option<&str>) + Send>;

enum Node {
    /// With its number among the hosts.
    Host(usize, Box<Host>),
    Router(Routes),
    Gateway(Gateway),
}

/// Everything between the nodes: wires, controls, packets and the agenda.
pub(crate) struct Fabric {
    wires: Vec<Wire>,
    taps: Vec<Option<Tap>>,
    /// Of what comes out of each link; empty if nobody looks.
    arrival_taps: Vec<Option<Tap>>,
    /// By the link whose queue they are for; empty if no link has one.
    controls: Vec<Option<Box<Controlled>>>,
    packets: Packets,
    agenda: Agenda,
    pub(crate) ledger: Ledger,
    /// Packets that were for nobody, or whose hop limit was used up.
    undeliverable: u64,
    /// Packets that left a host.
    sent: u64,
    /// The comment of a host on the packet that it sends next, or empty.
    comment: String,
}

impl Fabric {
    fn new(wires: Vec<Wire>, controls: Vec<Option<Box<Controlled>>>, hosts: usize) -> Self {
        Fabric {
            taps: wires.iter().map(|_| None).collect(),
            arrival_taps: Vec::new(),
            packets: Packets::default(),
            // Links, hosts, what controls hold.
            agenda: Agenda::new(wires.len() + hosts + controls.len()),
            wires,
            controls,
            ledger: Ledger::default(),
            undeliverable: 0,
            sent: 0,
            comment: String::new(),
        }
    }

    /// Sends a host's packet on its way.
    fn send_from(
        &mut self,
        now: Instant,
        routes: &Routes,
        packet: Packet,
    ) -> Result<(), NetworkError> {
        self.sent += 1;
        let link = destination(packet.headers()).and_then(|host| routes.towards(host));
        let id = self.packets.insert(packet);
        let sent = self.send(now, link, id);
        self.comment.clear();
        sent
    }

    /// Sends a packet that a wire has damaged on from a router.
    fn forward_damaged(
        &mut self,
        now: Instant,
        routes: &Routes,
        mut bytes: Vec<u8>,
    ) -> Result<(), NetworkError> {
        let sound = match IpPacket::parse(&bytes) {
            Ok(IpPacket::V4(v4)) => v4.checksum_ok(),
            Ok(IpPacket::V6(_)) => true,
            Err(_) => false,
        };
        let forward = sound
            && matches!(transom_wire::ip::decrement_hop_limit(&mut bytes), Ok(left) if left > 0);
        let link = destination(&bytes).filter(|_| forward).and_then(|host| routes.towards(host));
        let id = self.packets.insert(Packet::damaged(bytes));
        self.send(now, link, id)
    }

    /// Puts a packet onto a wire, if there is one for it.
    fn send(
        &mut self,
        now: Instant,
        link: Option<LinkId>,
        id: PacketId,
    ) -> Result<(), NetworkError> {
        if let Some(link) = link.filter(|_| !self.controls.is_empty()) {
            self.pass_control(now, link, id);
        }
        let Fabric { wires, taps, packets, agenda, undeliverable, comment, .. } = self;
        let Some(packet) = packets.get_mut(id) else { return Ok(()) };
        let Some((link, wire)) =
            link.and_then(|link| Some((link, wires.get_mut(link.0 as usize)?)))
        else {
            *undeliverable += 1;
            packets.release(id);
            return Ok(());
        };
        if let Some(tap) = taps.get_mut(link.0 as usize).and_then(Option::as_mut) {
            let comment = Some(comment.as_str()).filter(|comment| !comment.is_empty());
            tap(now, &packet.bytes()?, comment);
        }
        match wire.model.send_with(now, id, packet.len(), packet.ecn()) {
            Admission::Queued => {}
            Admission::Duplicated => packets.duplicate(id),
            Admission::Dropped(_) => packets.release(id),
        }
        settle(wire, packets);
        if let Some(at) = wire.model.next_delivery() {
            agenda.call(Entity(link.0), at);
        }
        Ok(())
    }
}

/// Disposes of what a queue has dropped, and accounts for what a wire has copied.
fn settle(wire: &mut Wire, packets: &mut Packets) {
    while let Some(fate) = wire.model.take_fate() {
        match fate {
            Fate::Gone(id) => packets.release(id),
            Fate::Copied(id) => packets.duplicate(id),
        }
    }
}

/// The number of the host that a packet is for.
fn destination(headers: &[u8]) -> Option<usize> {
    match headers {
        [first, ..] if first >> 4 == 4 => {
            let address: [u8; 4] = *headers.get(16..20)?.first_chunk()?;
            host_at(address.into())
        }
        _ => match IpPacket::parse(headers).ok()?.dst() {
            IpAddr::V4(v4) => host_at(v4),
            IpAddr::V6(_) => None,
        },
    }
}

/// A network that runs.
pub struct Network {
    now: Instant,
    nodes: Vec<Node>,
    hosts: Vec<NodeId>,
    fabric: Fabric,
    events: u64,
}

impl Network {
    fn assemble(nodes: Vec<Node>, fabric: Fabric, hosts: Vec<NodeId>) -> Self {
        let mut network = Network { now: Instant::ZERO, nodes, hosts, fabric, events: 0 };
        for number in 0..network.hosts.len() {
            network.call_host_later(number);
        }
        network
    }

    /// The present.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Events handled so far.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Packets that left a host so far.
    pub fn packets(&self) -> u64 {
        self.fabric.sent
    }

    /// Packets that are on their way.
    pub fn packets_on_their_way(&self) -> usize {
        self.fabric.packets.len()
    }

    /// Packets without a receiver.
    pub fn undeliverable(&self) -> u64 {
        self.fabric.undeliverable
    }

    /// The flows and what has become of them, by number.
    pub fn flows(&self) -> &[Flow] {
        self.fabric.ledger.flows()
    }

    /// The ledger of flows, for events outside of the network.
    pub fn ledger(&mut self) -> &mut Ledger {
        &mut self.fabric.ledger
    }

    /// A host's stack, to look at.
    pub fn stack(&self, host: NodeId) -> Option<&Stack> {
        match self.nodes.get(host.0 as usize)? {
            Node::Host(_, host) => Some(&host.stack),
            Node::Router(_) | Node::Gateway(_) => None,
        }
    }

    /// The counters of a link, as of the last packet that came to it or the last [sample](Self::sample_link).
    pub fn link_counters(&self, link: LinkId) -> Option<Counters> {
        Some(self.fabric.wires.get(link.0 as usize)?.model.counters())
    }

    /// The report of a link's window control, if it has one.
    pub fn window_report(&self, link: LinkId) -> Option<WindowReport> {
        Some(self.fabric.controls.get(link.0 as usize)?.as_ref()?.report())
    }

    /// Keeps from now on how long each packet waits before a link; see [`LinkModel::measure_delays`](crate::link::LinkModel::measure_delays).
    pub fn measure_delays(&mut self, link: LinkId) {
        if let Some(wire) = self.fabric.wires.get_mut(link.0 as usize) {
            wire.model.measure_delays();
        }
    }

    /// The present state of a link, and the delays of packets since the last such sample.
    pub fn sample_link(&mut self, link: LinkId) -> Option<LinkSample> {
        let now = self.now;
        let sample = LinkSample::take(&mut self.fabric.wires.get_mut(link.0 as usize)?.model, now);
        let window = self.window_report(link).map(Into::into);
        Some(LinkSample { window, ..sample })
    }

    /// The queue before a link now.
    pub fn queued(&mut self, link: LinkId) -> Option<Traffic> {
        let now = self.now;
        Some(self.fabric.wires.get_mut(link.0 as usize)?.model.queued(now))
    }

    /// Watches a link's queue; see [`LinkModel::observe_queue`](crate::link::LinkModel::observe_queue).
    pub fn observe_queue(&mut self, link: LinkId, observer: QueueObserver) {
        if let Some(wire) = self.fabric.wires.get_mut(link.0 as usize) {
            wire.model.observe_queue(observer);
        }
    }

    /// Watches every packet that comes to a link, also those that it drops.
    pub fn tap(&mut self, link: LinkId, tap: Tap) {
        if let Some(slot) = self.fabric.taps.get_mut(link.0 as usize) {
            *slot = Some(tap);
        }
    }

    /// Watches every packet that comes out of a link, as its receiver finds it: marked, damaged, twice.
    pub fn tap_arrivals(&mut self, link: LinkId, tap: Tap) {
        let Fabric { wires, arrival_taps, .. } = &mut self.fabric;
        arrival_taps.resize_with(wires.len(), || None);
        if let Some(slot) = arrival_taps.get_mut(link.0 as usize) {
            *slot = Some(tap);
        }
    }

    /// Hands the records of a host's event log to `reader`, from now on and as they are made. Of a host without a log
    /// ([`HostConfig::log`]), and of what is no host, there are none.
    pub fn watch_log(&mut self, node: NodeId, reader: LogReader) {
        if let Some(Node::Host(_, host)) = self.nodes.get_mut(node.0 as usize) {
            host.watch_log(reader);
        }
    }

    /// Handles everything up to and including `limit`, which is the present afterwards.
    ///
    /// # Errors
    /// [`NetworkError::Packet`], which would be a defect of this program.
    pub fn run_until(&mut self, limit: Instant) -> Result<(), NetworkError> {
        while let Some((at, entity)) = self.fabric.agenda.next(limit) {
            self.now = self.now.max(at);
            self.events += 1;
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
        self.count();
        Ok(())
    }

    /// Writes down what the flows' connections have counted.
    fn count(&mut self) {
        for host in self.fabric.ledger.sending() {
            if let Some(Node::Host(_, host)) = self.nodes.get_mut(host.0 as usize) {
                host.count(&mut self.fabric.ledger);
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
            self.fabric.agenda.call(Entity(link.0), at);
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
        self.fabric.agenda.call(Entity(before as u32 + link.0), at);
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
        if delivered.marked {
            packet.mark();
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
        if let Some(tap) =
            self.fabric.arrival_taps.get_mut(link.0 as usize).and_then(Option::as_mut)
        {
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
            self.fabric.agenda.call(entity, at.max(self.now));
        }
    }
}

impl std::fmt::Debug for Network {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Network")
            .field("now", &self.now)
            .field("nodes", &self.nodes.len())
            .field("events", &self.events)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
