//! How many packets a run takes over its links.
//!
//! A flow's source has a demand, in packets of a whole run; the slowest link on its path bounds it. The demand of all flows for one direction of a
//! link is bounded by its rate, and shared. Paths are those of the network: the fewest links, through routers.

use super::super::Problem;
use super::super::distribution::Distribution;
use super::super::flow::Flow;
use super::super::host::HostKind;
use super::super::name::Name;
use super::super::quantity::{Size, Time};
use super::super::resolved::Resolved;
use super::super::traffic::Traffic;
use super::about;
use std::collections::{BTreeMap, VecDeque};
use transom_sim::link::LinkConfig;

/// The payload of a full segment over Ethernet, and its packet.
const SEGMENT: f64 = 1448.0;
const PACKET: f64 = 1500.0;
/// The bytes that a receive window releases in a round trip.
const WINDOW: f64 = 8e6;
/// Packets per second that a kernel's host does not exceed in real time.
const KERNEL: f64 = 1e7;
/// The most steps for finding paths; in larger networks only the configuration of sources counts.
const MOST_STEPS: usize = 20_000_000;

/// The estimate for a run.
#[derive(Debug, Default)]
pub(super) struct Estimate {
    /// By link and direction.
    links: Vec<[f64; 2]>,
    /// The events of sources without a packet.
    sources: f64,
    /// A flow that needs no time for anything, and never ends.
    endless: Option<Name>,
}

/// A flow's demand for the links on its path.
struct Wanted {
    way: Vec<(usize, usize)>,
    packets: f64,
    /// The size of a packet in bytes.
    size: f64,
}

/// Estimates a run.
pub(super) fn estimate(scenario: &Resolved) -> Estimate {
    let mut estimate =
        Estimate { links: vec![[0.0; 2]; scenario.links.len()], ..Default::default() };
    let end = scenario.scenario.duration.0.as_secs_f64();
    let wanted = wanted(scenario, end, &mut estimate);
    // Of what is more than a direction takes, everybody gets the same share.
    let mut bytes = estimate.links.clone();
    for Wanted { way, packets, size } in &wanted {
        way.iter().for_each(|&(link, direction)| bytes[link][direction] += packets * size);
    }
    let shares = bytes.iter().zip(&scenario.links).map(|(bytes, link)| {
        let share = |bytes: f64, config| (rate(config) * PACKET * end / bytes).min(1.0);
        [share(bytes[0], &link.there), share(bytes[1], &link.back)]
    });
    let shares: Vec<[f64; 2]> = shares.collect();
    for Wanted { way, packets, .. } in &wanted {
        let share = way.iter().map(|&(link, direction)| shares[link][direction]);
        let packets = packets * share.fold(1.0, f64::min);
        way.iter().for_each(|&(link, direction)| estimate.links[link][direction] += packets);
    }
    estimate
}

/// The demands of flows, each as if it were alone.
fn wanted(scenario: &Resolved, end: f64, estimate: &mut Estimate) -> Vec<Wanted> {
    let network = Network::of(scenario);
    let mut by_source: BTreeMap<&Name, Vec<&Flow>> = BTreeMap::new();
    for flow in &scenario.flows {
        by_source.entry(&flow.from).or_default().push(flow);
    }
    let finds_ways = by_source.len().saturating_mul(network.routers) <= MOST_STEPS;
    let mut all = Vec::new();
    for (from, flows) in by_source {
        let ways = if finds_ways { network.ways(from) } else { BTreeMap::new() };
        for flow in flows {
            let active = flow.stop.map_or(end, |stop| stop.0.as_secs_f64().min(end));
            let active = (active - flow.mean_start()).max(0.0);
            let way = network.way(from, &flow.to, &ways);
            let path = Path::of(scenario, way.as_deref());
            let Demand { mut packets, size, also } = demand(flow, active, &path);
            let is_kernel = |name: &&Name| {
                scenario.hosts.get(*name).is_some_and(|host| host.kind == HostKind::Kernel)
            };
            if [&flow.from, &flow.to].iter().any(is_kernel) {
                packets = packets.min(KERNEL * active);
            }
            // A flow that has no time sends nothing, however fast it is.
            packets = packets.max(0.0);
            estimate.sources += also;
            if packets.is_infinite() {
                estimate.endless.get_or_insert_with(|| flow.name.clone());
            } else if let Some(way) = way {
                all.push(Wanted { way, packets, size });
            }
        }
    }
    all
}

impl Estimate {
    pub(super) fn total(&self) -> f64 {
        self.links.iter().flatten().sum::<f64>() + self.sources
    }

    pub(super) fn is_endless(&self) -> bool {
        self.endless.is_some()
    }

    /// The error, if the number may exceed `most`.
    pub(super) fn problem(&self, scenario: &Resolved, most: f64) -> Option<Problem> {
        if let Some(flow) = &self.endless {
            let what = format!(
                "nothing that flow `{flow}` does takes any time: there is neither a `rate` nor a `delay` on its way, so it never ends"
            );
            let hint = "give a link on its way a `rate` or a `delay`".into();
            return Some(Problem::TooCostly { what, hint });
        }
        let total = self.total();
        if total <= most {
            return None;
        }
        let busiest = self.links.iter().zip(&scenario.links);
        let busiest = busiest.max_by(|(a, _), (b, _)| (a[0] + a[1]).total_cmp(&(b[0] + b[1])));
        let busiest = busiest.filter(|(packets, _)| packets[0] + packets[1] > self.sources);
        let (of_what, hint) = match busiest {
            Some((_, link)) => (
                format!("most over link `{}`", link.name),
                "lower its `rate`, or those of flows, or shorten `duration`",
            ),
            None => (
                "most by applications".into(),
                "raise `write`, `on` or `off` of flows, or lower their `rate`, or shorten `duration`",
            ),
        };
        let what = format!(
            "a run of {} is estimated to take {} packets and writes, {of_what}; {} are the most",
            scenario.scenario.duration,
            about(total),
            about(most)
        );
        Some(Problem::TooCostly { what, hint: hint.into() })
    }
}

/// The demand of a source.
struct Demand {
    packets: f64,
    /// The size of a packet in bytes.
    size: f64,
    /// Its events besides sending packets.
    also: f64,
}

fn demand(flow: &Flow, active: f64, path: &Path) -> Demand {
    let most = path.packets_per_second * active;
    let full = |packets: f64| Demand { packets: most.min(packets), size: PACKET, also: 0.0 };
    match &flow.traffic {
        Traffic::Bulk(_) => full(most),
        Traffic::Transfer(transfer) => full(transfer.size.0 as f64 / SEGMENT),
        // The file has been read, and its contents are no larger than the file. Programs are in real time.
        Traffic::Trace(_) | Traffic::Program(_) => full(0.0),
        Traffic::RequestResponse(exchange) => {
            let packets = segments(&exchange.request) + segments(&exchange.response);
            let period = seconds(&exchange.think_time) + path.round_trip;
            full(match exchange.requests {
                Some(requests) => packets * f64::from(requests.get()),
                None => packets * active / period,
            })
        }
        Traffic::Web(web) => {
            let objects = f64::from(web.objects.get());
            // The connections themselves take three packets more, and never no time at all.
            let packets = objects * (segments(&web.request) + segments(&web.object) + 3.0);
            let batches = (objects / f64::from(web.connections.get())).ceil();
            let period = seconds(&web.think_time) + path.round_trip * batches;
            full(packets * active / period.max(1e-3))
        }
        Traffic::OnOffUdp(udp) => {
            let (on, off) = (seconds(&udp.on), seconds(&udp.off));
            let share = if off > 0.0 { on / (on + off) } else { 1.0 };
            let size = udp.payload.0 as f64 + 28.0;
            let packets = udp.rate.bits_per_sec() as f64 * active * share / (size * 8.0);
            let phases = if off > 0.0 { active / (on + off) } else { 0.0 };
            // Packets that the first queue drops were sent all the same.
            Demand { packets, size, also: phases + packets }
        }
        Traffic::Ping(ping) => {
            let pings = active / ping.interval.0.as_secs_f64().max(1e-3);
            let size = ping.size.0 as f64 + 40.0;
            Demand { packets: 2.0 * pings, size, also: 2.0 * pings }
        }
        // No more than a connection would send, and a hundred timers in a second.
        Traffic::Companion(companion) => {
            let size = companion.payload.0 as f64 + 28.0;
            let packets = most * PACKET / size;
            Demand { packets, size, also: packets + active * 100.0 }
        }
        Traffic::AppLimited(stream) => {
            let bytes = stream.rate.bits_per_sec() as f64 / 8.0 * active;
            Demand { also: bytes / stream.write.0.max(1) as f64, ..full(bytes / SEGMENT) }
        }
    }
}

fn segments(size: &Distribution<Size>) -> f64 {
    (mean(size, |size| size.0 as f64) / SEGMENT).max(1.0)
}

fn seconds(time: &Distribution<Time>) -> f64 {
    mean(time, |time| time.0.as_secs_f64())
}

/// About the mean; of a heavy tail rather too little.
fn mean<Q: Copy>(of: &Distribution<Q>, value: impl Fn(Q) -> f64) -> f64 {
    match *of {
        Distribution::Constant(one) | Distribution::Exponential(one) => value(one),
        Distribution::Uniform(low, high) => (value(low) + value(high)) / 2.0,
        Distribution::Pareto { scale, .. } => value(scale),
    }
}

/// Full packets per second; without a limit, infinitely many.
fn rate(config: &LinkConfig) -> f64 {
    let bits = config.mean_rate().map_or(f64::INFINITY, |rate| rate.bits_per_sec() as f64);
    bits / 8.0 / PACKET
}

/// The bounds of a path.
struct Path {
    packets_per_second: f64,
    round_trip: f64,
}

impl Path {
    fn of(scenario: &Resolved, way: Option<&[(usize, usize)]>) -> Path {
        // Where no way is looked for, nothing is assumed of it.
        let Some(way) = way else {
            return Path { packets_per_second: 0.0, round_trip: f64::INFINITY };
        };
        let (mut slowest, mut round_trip) = (f64::INFINITY, 0.0);
        for (link, direction) in way {
            let Some(link) = scenario.links.get(*link) else { continue };
            let way = if *direction == 0 { &link.there } else { &link.back };
            slowest = rate(way).min(slowest);
            let both = [&link.there, &link.back];
            round_trip += both.iter().map(|way| mean_delay(way)).sum::<f64>();
            round_trip += both.iter().map(|way| 1.0 / rate(way)).sum::<f64>();
        }
        let by_window = if round_trip > 0.0 { WINDOW / PACKET / round_trip } else { f64::INFINITY };
        Path { packets_per_second: slowest.min(by_window), round_trip }
    }
}

/// In seconds; half of what is drawn.
fn mean_delay(way: &LinkConfig) -> f64 {
    way.delay.as_secs_f64() + way.delay_spread.as_secs_f64() / 2.0
}

/// Which links lead where.
struct Network<'a> {
    /// Of each node: the link, its direction, and the node at its other end.
    neighbours: BTreeMap<&'a Name, Vec<(usize, usize, &'a Name)>>,
    scenario: &'a Resolved,
    /// Links between routers, and some.
    routers: usize,
}

/// How a router is reached: the node before it, and over which link in which direction.
type Ways<'a> = BTreeMap<&'a Name, (&'a Name, usize, usize)>;

impl<'a> Network<'a> {
    fn of(scenario: &'a Resolved) -> Network<'a> {
        let mut neighbours: BTreeMap<&Name, Vec<_>> = BTreeMap::new();
        let mut routers = 1;
        for (number, link) in scenario.links.iter().enumerate() {
            neighbours.entry(&link.from).or_default().push((number, 0, &link.to));
            neighbours.entry(&link.to).or_default().push((number, 1, &link.from));
            let ends = [&link.from, &link.to];
            routers += usize::from(ends.iter().all(|end| scenario.routers.contains_key(*end)));
        }
        // Hosts at a router are not looked at when a way goes through it.
        for (node, beside) in &mut neighbours {
            if scenario.routers.contains_key(*node) {
                beside.sort_by_key(|(_, _, other)| !scenario.routers.contains_key(*other));
            }
        }
        Network { neighbours, scenario, routers }
    }

    fn beside(&self, node: &Name) -> &[(usize, usize, &'a Name)] {
        self.neighbours.get(node).map_or(&[], Vec::as_slice)
    }

    fn is_router(&self, node: &Name) -> bool {
        self.scenario.routers.contains_key(node)
    }

    /// How routers are reached from a host.
    fn ways(&self, from: &'a Name) -> Ways<'a> {
        let mut ways = Ways::new();
        let mut waiting = VecDeque::from([from]);
        while let Some(node) = waiting.pop_front() {
            for &(link, direction, next) in self.beside(node) {
                if !self.is_router(next) {
                    // Routers come first beside a router; a host may have both beside it.
                    if self.is_router(node) { break } else { continue }
                }
                if !ways.contains_key(next) {
                    ways.insert(next, (node, link, direction));
                    waiting.push_back(next);
                }
            }
        }
        ways
    }

    /// The links from one host to another.
    fn way(&self, from: &Name, to: &Name, ways: &Ways<'a>) -> Option<Vec<(usize, usize)>> {
        // The link at the far end is seen from there, so its direction is the other one.
        let last = |other: &Name| {
            self.beside(to)
                .iter()
                .find(|(_, _, beside)| *beside == other)
                .map(|(link, direction, _)| (*link, 1 - direction))
        };
        if let Some(only) = last(from) {
            return Some(vec![only]);
        }
        let routers = self.beside(to).iter().map(|(_, _, router)| *router);
        let back = |router: &'a Name| {
            let mut links = vec![last(router)?];
            let mut node = router;
            while node != from {
                let (before, link, direction) = *ways.get(node)?;
                links.push((link, direction));
                node = before;
            }
            Some(links)
        };
        routers.filter_map(back).min_by_key(Vec::len)
    }
}
