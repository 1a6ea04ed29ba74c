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
mod api;
mod control;
mod division;
mod gateway;
pub(crate) mod host;
mod journal;
mod packets;
mod part;
pub(crate) mod senders;
mod several;
mod topology;
mod wire;

use crate::link::{Admission, Delivered, Fate, LinkConfigError};
use crate::traffic::Ledger;
use agenda::{Agenda, Entity};
use control::Controlled;
use journal::Journal;
use packets::{Packet, PacketId, Packets};
use part::Part;
use several::Several;
use std::net::IpAddr;
use topology::{MAX_HOSTS, Routes, host_at};
use transom_stack::StackConfigError;
use transom_tcp::time::Instant;
use transom_wire::IpPacket;
use wire::Wire;

pub use division::{Division, Indivisible};
pub use gateway::Departure;
pub use host::LogReader;
pub use topology::{HostConfig, Topology};
pub use transom_router::window::WindowReport;

/// A node's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(u32);

/// The name of one direction of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(u32);

impl LinkId {
    /// The other direction of the same link.
    pub(crate) fn back(self) -> LinkId {
        LinkId(self.0 ^ 1)
    }
}

/// Why a network cannot be built, or does not go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
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
    /// The record of what happens, in a part of a network.
    journal: Option<Box<Journal>>,
    /// Packets for other parts: over which cut link, and what comes out of it when.
    exports: Vec<(u32, Delivered<Packet>)>,
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
            journal: None,
            exports: Vec::new(),
        }
    }

    /// How many entities there are: links, hosts, what controls hold.
    fn entities(&self) -> usize {
        self.agenda.entities()
    }

    fn tap(&mut self, link: LinkId, tap: Tap) {
        if let Some(slot) = self.taps.get_mut(link.0 as usize) {
            *slot = Some(tap);
        }
    }

    fn tap_arrivals(&mut self, link: LinkId, tap: Tap) {
        self.arrival_taps.resize_with(self.wires.len(), || None);
        if let Some(slot) = self.arrival_taps.get_mut(link.0 as usize) {
            *slot = Some(tap);
        }
    }

    /// Sees to it that an entity is called at `at` at the latest.
    fn call(&mut self, entity: Entity, at: Instant) {
        if self.agenda.call(entity, at)
            && let Some(journal) = &mut self.journal
        {
            journal.called(entity);
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
        let Fabric { wires, taps, packets, undeliverable, comment, journal, exports, .. } = self;
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
        let flow = wire.model.flow_of(packet.headers());
        match wire.model.send_of(now, id, packet.len(), (packet.ecn(), flow)) {
            Admission::Queued => {}
            Admission::Duplicated => packets.duplicate(id),
            Admission::Dropped(_) => packets.release(id),
        }
        settle(wire, packets);
        if let Some(cut) = wire.leaves_by {
            // Somebody else delivers it.
            while let Some(delivered) = wire.model.take_scheduled() {
                if let Some(journal) = journal {
                    journal.sent(cut, delivered.due);
                }
                let id = packets.own(delivered.packet);
                let packet = packets.take(id);
                exports.extend(packet.map(|packet| (cut, delivered.with_packet(packet))));
            }
        } else if let Some(at) = wire.model.next_delivery() {
            self.call(Entity(link.0), at);
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
    /// All hosts and gateways, in order.
    hosts: Vec<NodeId>,
    /// All of it, or what each core has of it.
    parts: Vec<Part>,
    /// What joins the parts, if there are several.
    several: Option<Box<Several>>,
    division: Division,
}

impl std::fmt::Debug for Network {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Network")
            .field("now", &self.now)
            .field("division", &self.division)
            .field("events", &self.events())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
