//! From a scenario to a network.

use super::companion::{self, Datagrams};
use super::{RunError, RunOptions};
use crate::scenario::{
    Count, Distribution, Flow, HostKind, Name, PingProtocol, Program, RateTraces, Resolved,
    SizeDistribution, TimeDistribution, TraceError, Traffic, read_trace,
};
use std::collections::BTreeMap;
use std::net::SocketAddrV4;
use std::sync::Arc;
use transom_extensions::Companion;
use transom_extensions::cm::Manager;
use transom_sim::network::{HostConfig, LinkId, Network, NodeId, Topology};
use transom_sim::traffic::{
    Amount, Application, Exchange, FlowId, Pattern, Schedule, Sends, bulk, datagram_sink, echo,
    limited, on_off, pings, requests, sink, transfers,
};
use transom_sim::{Draw, Streams};
use transom_tcp::Profile;
use transom_tcp::time::{Duration, Instant};

/// The first of the ports at which flows arrive.
const FIRST_PORT: u16 = 1024;
/// The entities of the flows' random starts.
const START_STREAMS: u64 = 1 << 49;
/// From here datagrams are sent.
const DATAGRAM_PORT: u16 = 9;

/// A network and what its parts are called.
pub(crate) struct Built {
    pub(crate) network: Network,
    /// The links in the order of the scenario, each with its way there and back.
    pub(crate) ways: Vec<(LinkId, LinkId)>,
    /// The port at which each flow arrives.
    pub(crate) ports: Vec<u16>,
    /// The hosts with event logs.
    pub(crate) logged: Vec<(Name, NodeId)>,
    /// The hosts that are not in the network but behind a gateway, in the order of their names.
    pub(crate) outside: Vec<Outside>,
    /// The flows whose sender is outside, and where. Their packets are counted there.
    pub(crate) senders: Vec<(FlowId, NodeId)>,
    /// Programs that run on such hosts.
    pub(crate) programs: Vec<Programs>,
}

/// A host outside of the network.
pub(crate) struct Outside {
    pub(crate) name: Name,
    /// Its gateway.
    pub(crate) node: NodeId,
    /// The applications: each with its flow and its start. Servers come first and start before all others.
    pub(crate) servers: Vec<(FlowId, Box<dyn Application>)>,
    pub(crate) clients: Vec<(FlowId, Instant, Box<dyn Application>)>,
}

/// The programs of a flow.
pub(crate) struct Programs {
    pub(crate) flow: FlowId,
    pub(crate) name: Name,
    /// The nodes of the client and the server.
    pub(crate) from: Name,
    pub(crate) to: Name,
    /// The address of the server.
    pub(crate) server: SocketAddrV4,
    pub(crate) start: Instant,
    pub(crate) stop: Option<Instant>,
    pub(crate) commands: Program,
}

/// The places of hosts with the kernel's TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KernelHosts {
    /// Nowhere: there may be none.
    Refused,
    /// Outside of the network.
    Outside,
}

impl Built {
    pub(crate) fn links(&self) -> impl Iterator<Item = LinkId> {
        self.ways.iter().flat_map(|(there, back)| [*there, *back])
    }
}

/// A host while the network is built.
struct Place<'a> {
    node: NodeId,
    profile: &'a crate::scenario::ProfileOptions,
    /// State that the connections of the host share in this run.
    macroflows: Manager,
    /// Flows that arrive there so far.
    arriving: u16,
    /// Its place among the hosts outside.
    outside: Option<usize>,
}

/// Builds the network. The order of hosts, routers, links and flows decides their random streams.
pub(crate) fn build(
    scenario: &Resolved,
    seed: u64,
    options: &RunOptions<'_>,
    kernel: KernelHosts,
) -> Result<Built, RunError> {
    check_ranges(scenario, kernel)?;
    let mut topology = Topology::new(seed);
    let mut nodes: BTreeMap<&Name, NodeId> = BTreeMap::new();
    let mut places = BTreeMap::new();
    let mut applications = Applications::default();
    let mut logged = Vec::new();
    let commenting = scenario.commenting();
    for (name, host) in &scenario.hosts {
        let macroflows = Manager::default();
        let (node, outside) = match (host.kind, kernel) {
            (HostKind::Kernel, KernelHosts::Refused) => {
                return Err(RunError::NeedsEmulation(name.clone()));
            }
            (HostKind::Kernel, KernelHosts::Outside) => {
                let node = topology.gateway();
                (node, Some(applications.add_host(name.clone(), node)))
            }
            (HostKind::Transom, _) => {
                let log = scenario.measure.log.binary_search(name).is_ok();
                let profile = profile(&host.profile, &macroflows);
                let comments = commenting.contains(name);
                let node = topology.host(HostConfig { profile, mtu: host.mtu, log, comments });
                if log {
                    logged.push((name.clone(), node));
                }
                (node, None)
            }
        };
        nodes.insert(name, node);
        let profile = &host.profile;
        places.insert(name, Place { node, profile, macroflows, arriving: 0, outside });
    }
    for name in scenario.routers.keys() {
        nodes.insert(name, topology.router());
    }
    let mut ways = Vec::new();
    let mut traces = RateTraces::new(options.directory);
    for link in &scenario.links {
        // Names were checked when the scenario was read.
        if let (Some(&from), Some(&to)) = (nodes.get(&link.from), nodes.get(&link.to)) {
            ways.push(topology.join(from, to, traces.read(&link.there)?, traces.read(&link.back)?));
        }
    }
    let companions = companion::companions(scenario);
    let mut ports = Vec::new();
    for (number, flow) in (0u32..).map(FlowId).zip(&scenario.flows) {
        let mut rng = Streams::new(seed).rng(START_STREAMS + u64::from(number.0), 0);
        let start = Instant::ZERO + Duration::from_nanos(time(&flow.start).draw(&mut rng));
        let numbered = (number, start);
        let port = add(
            &mut topology,
            &mut applications,
            &mut places,
            flow,
            numbered,
            options,
            &companions,
        )?;
        ports.push(port);
    }
    let Applications { outside, senders, programs } = applications;
    let mut network = topology.build()?;
    for (flow, node, sends) in &senders {
        network.count(*node, *sends, *flow);
    }
    // Of programs it is not known yet which end sends.
    let known = |flow: &FlowId| programs.iter().all(|plan: &Programs| plan.flow != *flow);
    let senders = senders.into_iter().map(|(flow, node, _)| (flow, node));
    let senders = senders.filter(|(flow, _)| known(flow)).collect();
    Ok(Built { network, ways, ports, logged, outside, senders, programs })
}

/// Applications outside of the network.
#[derive(Default)]
struct Applications {
    outside: Vec<Outside>,
    senders: Vec<(FlowId, NodeId, Sends)>,
    programs: Vec<Programs>,
}

impl Applications {
    /// Has the packets counted that a host outside sends for a flow.
    fn count(&mut self, flow: FlowId, place: &Place<'_>, sends: Sends) {
        if place.outside.is_some() {
            self.senders.push((flow, place.node, sends));
        }
    }

    fn add_host(&mut self, name: Name, node: NodeId) -> usize {
        self.outside.push(Outside { name, node, servers: Vec::new(), clients: Vec::new() });
        self.outside.len() - 1
    }

    fn at(&mut self, place: &Place<'_>) -> Option<&mut Outside> {
        self.outside.get_mut(place.outside?)
    }
}

/// Refuses to take safe ranges away where packets reach a device.
fn check_ranges(scenario: &Resolved, kernel: KernelHosts) -> Result<(), RunError> {
    if matches!(kernel, KernelHosts::Refused) {
        return Ok(());
    }
    let hosts = scenario.hosts.iter().map(|(name, host)| (name, &host.profile));
    let flows = scenario.flows.iter().map(|flow| (&flow.name, &flow.profile));
    let unconstrained =
        |profile: &crate::scenario::ProfileOptions| profile.unconstrained == Some(true);
    match hosts.chain(flows).find(|(_, profile)| unconstrained(profile)) {
        Some((name, _)) => Err(RunError::NeedsSimulation(name.clone())),
        None => Ok(()),
    }
}

fn profile(options: &crate::scenario::ProfileOptions, macroflows: &Manager) -> Arc<Profile> {
    // Options that do not work together were refused when the scenario was read.
    Arc::new(options.profile_sharing(macroflows).unwrap_or_default())
}

/// Adds a flow. Gives the port at which it arrives.
fn add(
    topology: &mut Topology,
    applications: &mut Applications,
    places: &mut BTreeMap<&Name, Place<'_>>,
    flow: &Flow,
    (number, start): (FlowId, Instant),
    options: &RunOptions<'_>,
    companions: &BTreeMap<Name, Companion>,
) -> Result<u16, RunError> {
    let unknown = |name: &Name| RunError::Unknown(name.clone());
    let to = places.get_mut(&flow.to).ok_or_else(|| unknown(&flow.to))?;
    let port =
        FIRST_PORT.checked_add(to.arriving).ok_or_else(|| RunError::Ports(flow.to.clone()))?;
    to.arriving += 1;
    // Where answers to its datagrams arrive, if it has any.
    let mut echo_port = 0;
    if matches!(&flow.traffic, Traffic::Ping(ping) if ping.protocol == PingProtocol::Udp) {
        let from = places.get_mut(&flow.from).ok_or_else(|| unknown(&flow.from))?;
        let free = FIRST_PORT.checked_add(from.arriving);
        echo_port = free.ok_or_else(|| RunError::Ports(flow.from.clone()))?;
        from.arriving += 1;
    }
    let to = places.get(&flow.to).ok_or_else(|| unknown(&flow.to))?;
    let receiver = to.node;
    let mut at_receiver = profile(&flow.profile.or(to.profile), &to.macroflows);
    let from = places.get(&flow.from).ok_or_else(|| unknown(&flow.from))?;
    let mut at_sender = profile(&flow.profile.or(from.profile), &from.macroflows);
    let sends_data = if flow.traffic.answers() { &mut at_receiver } else { &mut at_sender };
    if let Some(companion) = companions.get(&flow.name) {
        Arc::make_mut(sends_data).extensions.push(companion.publisher());
    }
    (options.change)(&flow.name, Arc::make_mut(sends_data));
    // What a change makes of a profile is the caller's, and may not work together.
    sends_data.validate().map_err(|error| RunError::Profile(flow.name.clone(), error))?;
    let remote = SocketAddrV4::new(topology.address(receiver)?, port);
    let stop = flow.stop.map(|stop| Instant::ZERO + stop.0);
    let end = stop.unwrap_or(Instant::FAR_FUTURE);
    let sink = || sink(number, port);
    let bulk = |amount| bulk(number, remote.into(), amount);
    let (client, server): (Box<dyn Application>, Box<dyn Application>) = match &flow.traffic {
        Traffic::Program(commands) => {
            applications.count(number, from, Sends::To(remote.into()));
            applications.count(number, to, Sends::From(port));
            applications.programs.push(Programs {
                flow: number,
                name: flow.name.clone(),
                from: flow.from.clone(),
                to: flow.to.clone(),
                server: remote,
                start,
                stop,
                commands: commands.clone(),
            });
            return Ok(port);
        }
        Traffic::Bulk(_) => (bulk(stop.map_or(Amount::Endless, Amount::Until)), sink()),
        Traffic::Transfer(transfer) => (bulk(Amount::Bytes(transfer.size.0)), sink()),
        Traffic::AppLimited(stream) => {
            let limited = limited(number, remote.into(), stream.rate, stream.write.0, end);
            (limited, sink())
        }
        Traffic::Trace(trace) => {
            let path = options.directory.join(&trace.file);
            let (entries, sum) = read_trace(&path)?;
            if trace.sha256.as_ref().is_some_and(|wanted| *wanted != sum) {
                return Err(TraceError::Changed { path, sum }.into());
            }
            let transfers = transfers(number, remote.into(), Schedule::Trace(entries), end);
            (transfers, sink())
        }
        Traffic::OnOffUdp(udp) => {
            let periods = (time(&udp.on), time(&udp.off));
            // The scenario bounds a payload by what a datagram can have.
            let payload = u16::try_from(udp.payload.0).unwrap_or(u16::MAX);
            let source = on_off(number, DATAGRAM_PORT, remote, udp.rate, payload, periods, end);
            (source, datagram_sink(number, port))
        }
        Traffic::Ping(ping) if ping.protocol == PingProtocol::Udp => {
            let ours = SocketAddrV4::new(topology.address(from.node)?, echo_port);
            let size = u16::try_from(ping.size.0).unwrap_or(u16::MAX);
            let client = pings(number, echo_port, remote, size, ping.interval.0, end);
            (client, echo(port, ours))
        }
        Traffic::Ping(ping) => {
            let exchange = Exchange {
                request: Draw::Constant(ping.size.0),
                response: Draw::Constant(ping.size.0),
                think: Draw::Constant(ping.interval.0.as_nanos()),
            };
            let pattern = Pattern::Sequence(None);
            requests(number, remote.into(), exchange, pattern, end)
        }
        Traffic::Companion(companion) => {
            // One whose flow is missing was refused when the scenario was read: it has no rate.
            let path = companions.get(&companion.beside).cloned().unwrap_or_default();
            let payload = u16::try_from(companion.payload.0).unwrap_or(u16::MAX);
            let source = Datagrams::new(number, &path, DATAGRAM_PORT, remote, payload, end);
            (Box::new(source), datagram_sink(number, port))
        }
        Traffic::RequestResponse(asked) => {
            let exchange = Exchange {
                request: size(&asked.request),
                response: size(&asked.response),
                think: time(&asked.think_time),
            };
            let pattern = Pattern::Sequence(asked.requests.map(Count::get));
            requests(number, remote.into(), exchange, pattern, end)
        }
        Traffic::Web(web) => {
            let exchange = Exchange {
                request: size(&web.request),
                response: size(&web.object),
                think: time(&web.think_time),
            };
            let pattern =
                Pattern::Pages { objects: web.objects.get(), connections: web.connections.get() };
            requests(number, remote.into(), exchange, pattern, end)
        }
    };
    match flow.traffic.answers() {
        true => applications.count(number, to, Sends::From(port)),
        false => applications.count(number, from, Sends::To(remote.into())),
    }
    let of_tcp = |profile| flow.traffic.is_tcp().then_some(profile);
    match applications.at(to) {
        Some(outside) => outside.servers.push((number, server)),
        None => topology.run_with(receiver, Instant::ZERO, server, of_tcp(at_receiver))?,
    }
    match applications.at(from) {
        Some(outside) => outside.clients.push((number, start, client)),
        None => topology.run_with(from.node, start, client, of_tcp(at_sender))?,
    }
    Ok(port)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;
    use std::path::Path;

    /// The starts of ten flows from the kernel's hosts, in nanoseconds; those are outside of the network, where they can be seen.
    fn starts(start: &str, seed: u64) -> Vec<u64> {
        let text = format!(
            r#"
[scenario]
name = "starts"
duration = "200s"
[hosts.a]
kind = "kernel"
[hosts.b]
kind = "kernel"
[[links]]
from = "a"
to = "b"
[[flows]]
name = "f"
from = "a"
to = "b"
kind = "bulk"
count = 10
start = "{start}"
"#
        );
        let scenario = Scenario::parse("test.toml", &text).unwrap();
        let scenario = scenario.sweep().next().unwrap().resolved;
        let options = RunOptions::new(Path::new(""));
        let built = build(&scenario, seed, &options, KernelHosts::Outside).unwrap();
        let clients = built.outside.iter().flat_map(|outside| &outside.clients);
        clients.map(|(_, start, _)| start.since(Instant::ZERO).as_nanos()).collect()
    }

    #[test]
    fn random_starts_are_drawn_by_flow_and_seed() {
        let drawn = starts("uniform(60s, 120s)", 1);
        assert_eq!(drawn.len(), 10);
        let range = 60_000_000_000..=120_000_000_000;
        assert!(drawn.iter().all(|start| range.contains(start)), "{drawn:?}");
        assert!(drawn.windows(2).all(|pair| pair[0] != pair[1]), "{drawn:?}");
        assert_eq!(starts("uniform(60s, 120s)", 1), drawn, "the same seed");
        assert_ne!(starts("uniform(60s, 120s)", 2), drawn, "another seed");
        assert_eq!(starts("60s", 1), [60_000_000_000; 10]);
    }
}
