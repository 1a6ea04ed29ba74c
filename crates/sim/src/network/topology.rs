//! Which nodes there are, how they are joined, and the way from each to each.
//!
//! Routes are shortest paths in links; where two are equally short the one whose links were added first is taken. They are
//! computed once: a network does not change while it runs.

use super::control::Controlled;
use super::division::{Cut, Division, Indivisible, Joint, divide};
use super::gateway::Gateway;
use super::host::{Host, Program};
use super::part::{Node, Part};
use super::several::{Place, Several};
use super::wire::Wire;
use super::{Fabric, LinkId, Network, NetworkError, NodeId};
use crate::link::{LinkConfig, purpose};
use crate::random::Streams;
use crate::traffic::{Application, Bond};
use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use transom_stack::{MemoryLimits, Offload, Stack, StackConfig};
use transom_tcp::Profile;
use transom_tcp::time::Instant;

/// The address before the first host's.
const BEFORE_FIRST: u32 = u32::from_be_bytes([10, 0, 0, 0]);
/// The prefix that all hosts share, in bits.
pub(super) const PREFIX: u8 = 8;
/// As many hosts as have an address each.
pub(super) const MAX_HOSTS: usize = (1 << 24) - 2;
/// Streams of hosts are numbered from here, those of links from zero.
const HOST_STREAMS: u64 = 1 << 32;

/// The address of the host that was added as number `index`, from zero.
pub(super) fn address_of(index: usize) -> Ipv4Addr {
    Ipv4Addr::from_bits(BEFORE_FIRST + 1 + index as u32)
}

/// The number of the host with this address.
pub(super) fn host_at(address: Ipv4Addr) -> Option<usize> {
    address.to_bits().checked_sub(BEFORE_FIRST + 1).map(|index| index as usize)
}

/// How a host is set up.
#[derive(Clone, Debug)]
pub struct HostConfig {
    /// The profile of connections that do not name their own.
    pub profile: Arc<Profile>,
    /// The longest IP packet in bytes.
    pub mtu: u32,
    /// Whether an event log is kept, for [`Network::watch_log`](super::Network::watch_log).
    pub log: bool,
    /// Whether it says of each segment that it sends how its sender stood, to who [taps](super::Network::tap) its link; see
    /// [`StackConfig::comments`].
    pub comments: bool,
}

impl Default for HostConfig {
    fn default() -> Self {
        HostConfig { profile: Arc::new(Profile::default()), mtu: 1500, log: false, comments: false }
    }
}

/// Records that a host's event log holds until they are read, which is at once.
const LOG: usize = 256;

/// A network under construction.
#[derive(Debug)]
pub struct Topology {
    /// On so many cores the network runs, with the same results as on one: [`Network::division`] says how it is divided, or why it runs on one core
    /// all the same. One unless it is set.
    pub cores: usize,
    seed: u64,
    nodes: Vec<Blueprint>,
    links: Vec<(NodeId, NodeId, LinkConfig)>,
}

enum Blueprint {
    Router,
    Gateway,
    Host { config: HostConfig, programs: Vec<Program> },
}

impl std::fmt::Debug for Blueprint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Blueprint::Router => f.write_str("Router"),
            Blueprint::Gateway => f.write_str("Gateway"),
            Blueprint::Host { config, programs } => f
                .debug_struct("Host")
                .field("config", config)
                .field("programs", &programs.len())
                .finish(),
        }
    }
}

impl Topology {
    /// An empty network. Everything random in it follows from `seed`.
    pub fn new(seed: u64) -> Self {
        Topology { cores: 1, seed, nodes: Vec::new(), links: Vec::new() }
    }

    /// Adds a host.
    pub fn host(&mut self, config: HostConfig) -> NodeId {
        self.add(Blueprint::Host { config, programs: Vec::new() })
    }

    /// Adds a router, which forwards and does nothing else.
    pub fn router(&mut self) -> NodeId {
        self.add(Blueprint::Router)
    }

    /// Adds a gateway: a host that is elsewhere. Packets to its address leave the network, and packets that come in have
    /// its address as the source; see [`Network::inject`] and [`Network::take_departure`].
    pub fn gateway(&mut self) -> NodeId {
        self.add(Blueprint::Gateway)
    }

    fn add(&mut self, node: Blueprint) -> NodeId {
        self.nodes.push(node);
        NodeId((self.nodes.len() - 1) as u32)
    }

    /// Joins two nodes by a link each way and returns the two: from `a` to `b`, and back.
    pub fn join(
        &mut self,
        a: NodeId,
        b: NodeId,
        there: LinkConfig,
        back: LinkConfig,
    ) -> (LinkId, LinkId) {
        let first = self.links.len() as u32;
        self.links.push((a, b, there));
        self.links.push((b, a, back));
        (LinkId(first), LinkId(first + 1))
    }

    /// Runs an application on a host from `start` on. Its connections have the host's profile.
    ///
    /// # Errors
    /// [`NetworkError::NotAHost`] if `host` is a router, a gateway or no node of this network.
    pub fn run(
        &mut self,
        host: NodeId,
        start: Instant,
        application: Box<dyn Application>,
    ) -> Result<(), NetworkError> {
        self.run_with(host, start, application, None)
    }

    /// Runs an application whose connections may have a profile of their own: those that it opens, and those that it accepts.
    ///
    /// # Errors
    /// As [`Topology::run`].
    pub fn run_with(
        &mut self,
        host: NodeId,
        start: Instant,
        application: Box<dyn Application>,
        profile: Option<Arc<Profile>>,
    ) -> Result<(), NetworkError> {
        match self.nodes.get_mut(host.0 as usize) {
            Some(Blueprint::Host { programs, .. }) => {
                programs.push(Program { start, application, profile });
                Ok(())
            }
            _ => Err(NetworkError::NotAHost(host)),
        }
    }

    /// The address a host, or a gateway, will have.
    ///
    /// # Errors
    /// [`NetworkError::NotAHost`] if `node` is a router or no node of this network.
    pub fn address(&self, node: NodeId) -> Result<Ipv4Addr, NetworkError> {
        let before = self.nodes.get(..node.0 as usize).unwrap_or_default();
        match self.nodes.get(node.0 as usize) {
            Some(node) if node.has_address() => {
                Ok(address_of(before.iter().filter(|one| one.has_address()).count()))
            }
            _ => Err(NetworkError::NotAHost(node)),
        }
    }

    /// Builds the network, at time zero.
    ///
    /// # Errors
    /// [`NetworkError`] if a link leads nowhere or is refused by `LinkConfig::check`, two hosts cannot reach each other, or a host's configuration does not work.
    pub fn build(self) -> Result<Network, NetworkError> {
        let cut = (self.cores > 1).then(|| self.cut(self.cores));
        let Topology { cores: _, seed, nodes, links } = self;
        let streams = Streams::new(seed);
        let hosts: Vec<NodeId> = (0u32..)
            .zip(&nodes)
            .filter(|(_, node)| node.has_address())
            .map(|(index, _)| NodeId(index))
            .collect();
        if hosts.len() > MAX_HOSTS {
            return Err(NetworkError::TooManyHosts(hosts.len()));
        }
        let mut leaving: Vec<Vec<LinkId>> = vec![Vec::new(); nodes.len()];
        for (index, (from, to, config)) in (0u32..).zip(&links) {
            config.check().map_err(|error| NetworkError::Link(LinkId(index), error))?;
            if from == to || to.0 as usize >= nodes.len() {
                return Err(NetworkError::BadLink(LinkId(index)));
            }
            let Some(leaving) = leaving.get_mut(from.0 as usize) else {
                return Err(NetworkError::BadLink(LinkId(index)));
            };
            leaving.push(LinkId(index));
        }
        let routes = routes(&hosts, &leaving, &links)?;
        let mut controls = Vec::new();
        if links.iter().any(|(_, _, config)| config.window.is_some()) {
            for (index, (_, _, config)) in (0u32..).zip(&links) {
                let control = Controlled::new(config, streams, index.into());
                controls.push(
                    control.map_err(|error| NetworkError::Link(LinkId(index), error.into()))?,
                );
            }
        }
        let wire = |(index, (_, to, config)): (u64, &(NodeId, NodeId, LinkConfig))| {
            Wire::new(&settled(config, index, streams), *to, streams, index)
        };
        let wires: Vec<Wire> = (0u64..).zip(&links).map(wire).collect();
        let mut built = Vec::with_capacity(nodes.len());
        let mut number = 0;
        for ((index, node), routes) in (0u32..).zip(nodes).zip(routes) {
            built.push(match node {
                Blueprint::Router => Node::Router(routes),
                Blueprint::Gateway => {
                    number += 1;
                    Node::Gateway(Gateway::new(routes))
                }
                Blueprint::Host { config, programs } => {
                    let stack = stack(&config, number, streams)?;
                    let rng = streams.rng(HOST_STREAMS + number as u64, 1);
                    let host = Host::new(
                        stack,
                        NodeId(index),
                        (address_of(number), config.mtu),
                        routes,
                        rng,
                        programs,
                    );
                    number += 1;
                    Node::Host(number - 1, Box::new(host))
                }
            });
        }
        let whole = Piece { nodes: built, wires, controls, hosts, ..Piece::default() };
        Ok(match cut {
            None => Network::whole(whole.assemble(), Division::Whole),
            Some(Err(reason)) => Network::whole(whole.assemble(), Division::Indivisible(reason)),
            Some(Ok(cut)) => {
                // The far end of a cut link needs a model of its own, to keep what is to come out.
                let far_end = |link: usize| {
                    let (_, to, config) = links.get(link)?;
                    let config = settled(config, link as u64, streams);
                    Some(Wire::new(&config, *to, streams, link as u64))
                };
                whole.on_several_cores(&cut, &links, far_end)
            }
        })
    }

    /// How to divide it.
    fn cut(&self, cores: usize) -> Result<Cut, Indivisible> {
        let streams = Streams::new(self.seed);
        let mut bonds: Vec<(NodeId, Option<Vec<Bond>>)> = Vec::new();
        for (index, node) in (0u32..).map(NodeId).zip(&self.nodes) {
            match node {
                Blueprint::Router => {}
                Blueprint::Gateway => return Err(Indivisible::Gateway),
                Blueprint::Host { config, programs } => {
                    if !config.profile.extensions.is_empty() {
                        return Err(Indivisible::Extensions(index));
                    }
                    for Program { application, profile, .. } in programs {
                        // Extensions of a profile may share state.
                        let extended =
                            profile.as_ref().is_some_and(|one| !one.extensions.is_empty());
                        bonds.push((index, application.bonds().filter(|_| !extended)));
                    }
                }
            }
        }
        let lookahead = |link: usize| {
            let (_, _, config) = self.links.get(link)?;
            let delay = settled(config, link as u64, streams).delay;
            (config.queue.drop_tail().is_some() && !delay.is_zero()).then_some(delay)
        };
        let joints: Vec<Joint> = self
            .links
            .iter()
            .enumerate()
            .step_by(2)
            .map(|(link, (a, b, _))| Joint {
                ends: (a.0, b.0),
                lookahead: lookahead(link).and_then(|there| Some(there.min(lookahead(link + 1)?))),
            })
            .collect();
        divide(cores, self.nodes.len(), &joints, &bonds)
    }
}

/// A link's configuration with its delay. Links come in pairs, one each way, and draw together.
fn settled(config: &LinkConfig, index: u64, streams: Streams) -> LinkConfig {
    let mut config = config.clone();
    config.settle_delay(|| streams.rng(index & !1, purpose::DELAY));
    config
}

/// A part under construction, or a network that is not divided yet.
#[derive(Default)]
struct Piece {
    nodes: Vec<Node>,
    wires: Vec<Wire>,
    controls: Vec<Option<Box<Controlled>>>,
    hosts: Vec<NodeId>,
    /// The names of its nodes, in a divided network.
    names: Vec<NodeId>,
    /// The places of links, by the names that everybody uses.
    links: BTreeMap<u32, u32>,
}

impl Piece {
    fn assemble(self) -> Part {
        let Piece { nodes, wires, controls, hosts, names, links: _ } = self;
        Part::assemble(nodes, Fabric::new(wires, controls, hosts.len()), hosts, names)
    }

    fn on_several_cores(
        self,
        cut: &Cut,
        links: &[(NodeId, NodeId, LinkConfig)],
        far_end: impl Fn(usize) -> Option<Wire>,
    ) -> Network {
        let Piece { nodes, wires, controls, hosts, .. } = self;
        let part_of = |node: NodeId| cut.part_of.get(node.0 as usize).copied().unwrap_or(0);
        let mut pieces: Vec<Piece> = (0..cut.parts).map(|_| Piece::default()).collect();
        // Nodes get their places first, so that links know where they lead.
        let mut node_places = Vec::with_capacity(nodes.len());
        for node in (0..nodes.len() as u32).map(NodeId) {
            let part = part_of(node);
            let names = &mut pieces[part as usize].names;
            node_places.push(Place { part, at: names.len() as u32 });
            names.push(node);
        }
        // Both directions of a link have a place wherever one of its ends is, so that one still follows the other.
        let mut link_places = Vec::with_capacity(links.len());
        let mut cuts = Vec::new();
        let has_controls = !controls.is_empty();
        let mut controls = controls.into_iter();
        for (index, (wire, (from, to, _))) in wires.into_iter().zip(links).enumerate() {
            let (near_part, far_part) = (part_of(*from), part_of(*to));
            let control = controls.next().flatten();
            let [near, far] = [near_part, far_part].map(|part| {
                let at = pieces[part as usize].wires.len() as u32;
                Place { part, at }
            });
            let to = NodeId(node_places[to.0 as usize].at);
            link_places.push((near, far));
            let mut put = |place: Place, wire: Wire, control| {
                let piece = &mut pieces[place.part as usize];
                piece.links.insert(index as u32, place.at);
                piece.wires.push(wire);
                if has_controls {
                    piece.controls.push(control);
                }
            };
            if near.part == far.part {
                put(near, Wire { to, ..wire }, control);
            } else if let Some(far_end) = far_end(index) {
                let leaves_by = Some(cuts.len() as u32);
                cuts.push((near, far));
                put(near, Wire { leaves_by, ..wire }, control);
                put(far, Wire { to, ..far_end }, None);
            }
        }
        for (node, place) in nodes.into_iter().zip(&node_places) {
            let piece = &mut pieces[place.part as usize];
            let node = match node {
                Node::Router(routes) => Node::Router(routes.renamed(&piece.links)),
                Node::Host(_, mut host) => {
                    host.rename_links(&piece.links);
                    piece.hosts.push(NodeId(place.at));
                    Node::Host(piece.hosts.len() - 1, host)
                }
                Node::Gateway(gateway) => Node::Gateway(gateway),
            };
            piece.nodes.push(node);
        }
        let mut parts: Vec<Part> = pieces.into_iter().map(Piece::assemble).collect();
        let division = Division::Parts {
            parts: parts.len(),
            lookahead: cut.lookahead,
            cut_links: cuts.len() / 2,
        };
        let several = Several::new(cut.lookahead, &mut parts, cuts, node_places, link_places);
        Network::divided(hosts, parts, several, division)
    }
}

impl Blueprint {
    fn has_address(&self) -> bool {
        matches!(self, Blueprint::Host { .. } | Blueprint::Gateway)
    }
}

fn stack(config: &HostConfig, number: usize, streams: Streams) -> Result<Stack, NetworkError> {
    let mut secret = [0; 16];
    streams.rng(HOST_STREAMS + number as u64, 0).fill(&mut secret);
    let config = StackConfig::new(vec![(IpAddr::V4(address_of(number)), PREFIX)])
        // The test looks at the network.
        .with_memory(MemoryLimits::NONE)
        .with_mtu(config.mtu)
        .with_simulated(true)
        // The wires know which packets they have damaged.
        .with_offload(Offload::default().with_tx_checksum(true))
        .with_profile(config.profile.clone())
        .with_secret(secret)
        // Recorders see more; without a reader there is none.
        .with_log_records(if config.log { LOG } else { 0 })
        .with_comments(config.comments);
    Ok(Stack::new(config, Instant::ZERO)?)
}

/// The next links of a node, by destination.
#[derive(Clone, Debug)]
pub(super) enum Routes {
    /// There is only one way.
    Only(LinkId),
    /// By the host's number.
    ByHost(Box<[LinkId]>),
}

impl Routes {
    /// The same with other names for the links.
    pub(super) fn renamed(self, names: &BTreeMap<u32, u32>) -> Self {
        let renamed = |link: LinkId| names.get(&link.0).map_or(NOWHERE, |name| LinkId(*name));
        match self {
            Routes::Only(link) => Routes::Only(renamed(link)),
            Routes::ByHost(links) => Routes::ByHost(links.into_iter().map(renamed).collect()),
        }
    }

    pub(super) fn towards(&self, host: usize) -> Option<LinkId> {
        match self {
            Routes::Only(link) => Some(*link),
            Routes::ByHost(links) => links.get(host).copied().filter(|link| *link != NOWHERE),
        }
    }
}

/// Of a host to itself.
const NOWHERE: LinkId = LinkId(u32::MAX);

/// The routes of every node, in their order.
fn routes(
    hosts: &[NodeId],
    leaving: &[Vec<LinkId>],
    links: &[(NodeId, NodeId, LinkConfig)],
) -> Result<Vec<Routes>, NetworkError> {
    let far_end = |link: LinkId| links.get(link.0 as usize).map(|(_, to, _)| *to);
    let only_link = |node: NodeId| match leaving.get(node.0 as usize).map(Vec::as_slice) {
        Some([only]) => Some(*only),
        _ => None,
    };
    let mut tables: Vec<Vec<LinkId>> = leaving
        .iter()
        .map(|leaving| if leaving.len() == 1 { Vec::new() } else { vec![NOWHERE; hosts.len()] })
        .collect();
    let mut forwards = vec![true; leaving.len()];
    for host in hosts {
        if let Some(forwards) = forwards.get_mut(host.0 as usize) {
            *forwards = false;
        }
    }
    // All hosts behind one node are reached in the same way up to that node.
    let mut ways: BTreeMap<NodeId, Vec<LinkId>> = BTreeMap::new();
    for (number, &host) in hosts.iter().enumerate() {
        let last = only_link(host);
        let anchor = last.and_then(far_end).unwrap_or(host);
        let ways = ways.entry(anchor).or_insert_with(|| ways_to(anchor, &forwards, leaving, links));
        let reaches = |node: NodeId| {
            node == anchor || ways.get(node.0 as usize).is_some_and(|way| *way != NOWHERE)
        };
        if let Some(&other) = hosts.iter().find(|other| !reaches(**other)) {
            return Err(NetworkError::Unreachable(other, host));
        }
        for (node, table) in (0u32..).map(NodeId).zip(&mut tables) {
            let Some(slot) = table.get_mut(number) else { continue };
            *slot = match last {
                // Links are added in pairs: the one back is the other of the two.
                Some(last) if node == anchor => last.back(),
                _ => ways.get(node.0 as usize).copied().unwrap_or(NOWHERE),
            };
        }
    }
    Ok(leaving
        .iter()
        .zip(tables)
        .map(|(leaving, table)| match leaving[..] {
            [only] => Routes::Only(only),
            _ => Routes::ByHost(table.into_boxed_slice()),
        })
        .collect())
}

/// The first link of the way from each node to `target`, over nodes that forward.
fn ways_to(
    target: NodeId,
    forwards: &[bool],
    leaving: &[Vec<LinkId>],
    links: &[(NodeId, NodeId, LinkConfig)],
) -> Vec<LinkId> {
    let mut ways = vec![NOWHERE; leaving.len()];
    let mut frontier = VecDeque::from([target]);
    while let Some(node) = frontier.pop_front() {
        for &link in leaving.get(node.0 as usize).into_iter().flatten() {
            let Some((_, neighbour, _)) = links.get(link.0 as usize) else { continue };
            let Some(way) = ways.get_mut(neighbour.0 as usize) else { continue };
            if *neighbour == target || *way != NOWHERE {
                continue;
            }
            *way = link.back();
            if forwards.get(neighbour.0 as usize).copied().unwrap_or(false) {
                frontier.push_back(*neighbour);
            }
        }
    }
    ways
}
