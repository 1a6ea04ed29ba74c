//! From a scenario to a network.

use super::RunError;
use crate::scenario::{
    Count, Distribution, Flow, HostKind, Name, Resolved, SizeDistribution, TimeDistribution,
    Traffic, read_trace,
};
use std::collections::BTreeMap;
use std::net::SocketAddrV4;
use std::path::Path;
use std::sync::Arc;
use transom_sim::network::{HostConfig, LinkId, Network, NodeId, Topology};
use transom_sim::random::Draw;
use transom_sim::traffic::{
    Amount, Application, Bulk, DatagramSink, Exchange, FlowId, Limited, OnOff, Pattern, Requests,
    Responder, Schedule, Sink, Transfers, requests,
};
use transom_tcp::profile::Profile;
use transom_tcp::time::Instant;

/// The first of the ports at which flows arrive.
const FIRST_PORT: u16 = 1024;
/// From here datagrams are sent.
const DATAGRAM_PORT: u16 = 9;

/// A network and what its parts are called.
pub(super) struct Built {
    pub(super) network: Network,
    /// The links in the order of the scenario, each with its way there and back.
    pub(super) ways: Vec<(LinkId, LinkId)>,
}

impl Built {
    pub(super) fn links(&self) -> impl Iterator<Item = LinkId> {
        self.ways.iter().flat_map(|(there, back)| [*there, *back])
    }
}

/// A host while the network is built.
struct Place<'a> {
    node: NodeId,
    profile: &'a crate::scenario::ProfileOptions,
    /// Flows that arrive there so far.
    arriving: u16,
}

/// Builds the network. The order of hosts, routers, links and flows decides their random streams.
pub(super) fn build(scenario: &Resolved, seed: u64, directory: &Path) -> Result<Built, RunError> {
    let mut topology = Topology::new(seed);
    let mut nodes: BTreeMap<&Name, NodeId> = BTreeMap::new();
    let mut places = BTreeMap::new();
    for (name, host) in &scenario.hosts {
        if host.kind == HostKind::Kernel {
            return Err(RunError::NeedsEmulation(name.clone()));
        }
        let config = HostConfig { profile: profile(&host.profile), mtu: host.mtu };
        let node = topology.host(config);
        nodes.insert(name, node);
        places.insert(name, Place { node, profile: &host.profile, arriving: 0 });
    }
    for name in scenario.routers.keys() {
        nodes.insert(name, topology.router());
    }
    let mut ways = Vec::new();
    for link in &scenario.links {
        // Names were checked when the scenario was read.
        if let (Some(&from), Some(&to)) = (nodes.get(&link.from), nodes.get(&link.to)) {
            ways.push(topology.join(from, to, link.there.clone(), link.back.clone()));
        }
    }
    for (number, flow) in (0u32..).map(FlowId).zip(&scenario.flows) {
        add(&mut topology, &mut places, flow, number, directory)?;
    }
    Ok(Built { network: topology.build()?, ways })
}

fn profile(options: &crate::scenario::ProfileOptions) -> Arc<Profile> {
    // Options that do not work together were refused when the scenario was read.
    Arc::new(options.profile().unwrap_or_default())
}

fn add(
    topology: &mut Topology,
    places: &mut BTreeMap<&Name, Place<'_>>,
    flow: &Flow,
    number: FlowId,
    directory: &Path,
) -> Result<(), RunError> {
    let unknown = |name: &Name| RunError::Unknown(name.clone());
    let to = places.get_mut(&flow.to).ok_or_else(|| unknown(&flow.to))?;
    let port =
        FIRST_PORT.checked_add(to.arriving).ok_or_else(|| RunError::Ports(flow.to.clone()))?;
    to.arriving += 1;
    let (receiver, at_receiver) = (to.node, profile(&flow.profile.or(to.profile)));
    let from = places.get(&flow.from).ok_or_else(|| unknown(&flow.from))?;
    let at_sender = profile(&flow.profile.or(from.profile));
    let remote = SocketAddrV4::new(topology.address(receiver)?, port);
    let stop = flow.stop.map(|stop| Instant::ZERO + stop.0);
    let end = stop.unwrap_or(Instant::FAR_FUTURE);
    let sink = || -> Box<dyn Application> {
        Box::new(Sink::new(number, port).with_profile(at_receiver.clone()))
    };
    let bulk = |amount| -> Box<dyn Application> {
        Box::new(Bulk::new(number, remote.into(), amount).with_profile(at_sender.clone()))
    };
    let (client, server): (Box<dyn Application>, Box<dyn Application>) = match &flow.traffic {
        Traffic::Bulk(_) => (bulk(stop.map_or(Amount::Endless, Amount::Until)), sink()),
        Traffic::Transfer(transfer) => (bulk(Amount::Bytes(transfer.size.0)), sink()),
        Traffic::AppLimited(stream) => {
            let limited = Limited::new(number, remote.into(), stream.rate, stream.write.0, end);
            (Box::new(limited.with_profile(at_sender)), sink())
        }
        Traffic::Trace(trace) => {
            let (entries, _) = read_trace(&directory.join(&trace.file))?;
            let transfers = Transfers::new(number, remote.into(), Schedule::Trace(entries));
            (Box::new(transfers.until(end).with_profile(at_sender)), sink())
        }
        Traffic::OnOffUdp(udp) => {
            let periods = (time(&udp.on), time(&udp.off));
            // The scenario bounds a payload by what a datagram can have.
            let payload = u16::try_from(udp.payload.0).unwrap_or(u16::MAX);
            let source = OnOff::new(DATAGRAM_PORT, remote, udp.rate, payload, periods, end);
            (Box::new(source), Box::new(DatagramSink::new(number, port)))
        }
        Traffic::RequestResponse(asked) => {
            let exchange = Exchange {
                request: size(&asked.request),
                response: size(&asked.response),
                think: time(&asked.think_time),
            };
            let pattern = Pattern::Sequence(asked.requests.map(Count::get));
            both(requests(number, remote.into(), exchange, pattern, end), at_sender, at_receiver)
        }
        Traffic::Web(web) => {
            let exchange = Exchange {
                request: size(&web.request),
                response: size(&web.object),
                think: time(&web.think_time),
            };
            let pattern =
                Pattern::Pages { objects: web.objects.get(), connections: web.connections.get() };
            both(requests(number, remote.into(), exchange, pattern, end), at_sender, at_receiver)
        }
    };
    topology.run(receiver, Instant::ZERO, server)?;
    topology.run(from.node, Instant::ZERO + flow.start.0, client)?;
    Ok(())
}

fn both(
    (client, server): (Requests, Responder),
    at_sender: Arc<Profile>,
    at_receiver: Arc<Profile>,
) -> (Box<dyn Application>, Box<dyn Application>) {
    (Box::new(client.with_profile(at_sender)), Box::new(server.with_profile(at_receiver)))
}

fn size(size: &SizeDistribution) -> Draw {
    draw(size, |size| size.0)
}

/// In nanoseconds.
fn time(time: &TimeDistribution) -> Draw {
    draw(time, |time| time.0.as_nanos())
}

fn draw<Q: Copy>(distribution: &Distribution<Q>, number: impl Fn(Q) -> u64) -> Draw {
    match *distribution {
        Distribution::Constant(value) => Draw::Constant(number(value)),
        Distribution::Uniform(low, high) => Draw::Uniform(number(low), number(high)),
        Distribution::Exponential(mean) => Draw::Exponential(number(mean)),
        Distribution::Pareto { scale, shape, max } => {
            Draw::Pareto { scale: number(scale), shape, most: max.map_or(u64::MAX, number) }
        }
    }
}
