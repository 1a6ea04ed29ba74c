//! `[[flows]]`: the flows, with their ends, times and traffic.

use super::decode::{decode, keys_of};
use super::distribution::TimeDistribution;
use super::error::{Problem, Problems};
use super::host::HostKind;
use super::name::Name;
use super::nodes::Nodes;
use super::profile::ProfileOptions;
use super::quantity::{Count, Size, Time};
use super::resolve::{split, tagged};
use super::traffic::{Program, Traffic};
use super::tree::{Node, Span, Table};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use transom_tcp::time::Duration;

/// As many flows as a scenario may have.
const MOST: u64 = 100_000;
/// The largest payload of a UDP datagram over IPv4 (RFC 768, RFC 791): 65,535 bytes less the headers.
const LARGEST_DATAGRAM: u64 = 65_507;
/// A ping that is up to 63 bytes longer fits a packet of 1280 bytes, which every path of IPv6 carries.
const LARGEST_PING: u64 = 1024;

/// The common keys of all flows. With a group's name at an end, or with `count`, it is several flows, called NAME1, NAME2 and so on;
/// NAME means all of them.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct FlowOptions {
    /// Its name.
    #[schemars(with = "super::schema::NameText")]
    pub(super) name: Name,
    /// The host that opens it, or a group.
    #[schemars(with = "super::schema::NameText")]
    pub(super) from: Name,
    /// The host at the other end, or a group.
    #[schemars(with = "super::schema::NameText")]
    pub(super) to: Name,
    /// When it starts: a time, or uniform(EARLIEST, LATEST), which each flow draws once for each seed.
    #[serde(default = "at_the_beginning")]
    pub(super) start: TimeDistribution,
    /// When its source stops; without it, when there is nothing more to send, or at the end.
    #[serde(default)]
    pub(super) stop: Option<Time>,
    /// How much later each flow starts than the one before, if it is several.
    #[serde(default)]
    pub(super) stagger: Time,
    /// The number of flows between the same two hosts.
    #[serde(default)]
    pub(super) count: Option<Count>,
    /// TCP's settings at those of its ends with Transom's TCP; by default those of the host.
    #[serde(default)]
    pub(super) profile: ProfileOptions,
}

/// A flow between two hosts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub struct Flow {
    /// Its name.
    pub name: Name,
    /// The host that opens it.
    pub from: Name,
    /// The host at the other end.
    pub to: Name,
    /// When it starts: always then, or uniformly between two times, drawn once for each seed.
    pub(crate) start: TimeDistribution,
    /// When its source stops.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop: Option<Time>,
    /// Its traffic.
    #[serde(flatten)]
    pub(crate) traffic: Traffic,
    /// TCP's settings at those of its ends with Transom's TCP; by default those of the host.
    #[serde(skip_serializing_if = "ProfileOptions::is_empty")]
    pub(crate) profile: ProfileOptions,
}

/// The flows, the groups of their names, and where each one's `to` was written.
#[derive(Debug, Default)]
pub(super) struct Flows {
    pub(super) flows: Vec<Flow>,
    pub(super) groups: BTreeMap<Name, Vec<Name>>,
    pub(super) places: Vec<Span>,
    /// Where the companions among them, by the name of each or of their group, say beside which flow they are.
    companions: BTreeMap<Name, Span>,
    pub(super) incomplete: bool,
}

impl Flows {
    /// Reads one item of `[[flows]]`.
    pub(super) fn read(
        &mut self,
        table: &Table,
        span: &Span,
        nodes: &Nodes,
        duration: Option<Time>,
        problems: &mut Problems,
    ) -> Option<()> {
        let common = keys_of::<FlowOptions>();
        let (common, mut special) = split(table, common);
        let options: Option<FlowOptions> = decode(&common, span, &[], problems);
        let traffic = read_traffic(&mut special, span, problems);
        let (Some(options), Some(traffic)) = (options, traffic) else {
            self.incomplete = true;
            // Its name may be named elsewhere all the same.
            let name = table.get("name").and_then(Node::text).and_then(Name::new)?;
            self.groups.entry(name).or_default();
            return None;
        };
        let place = |key: &str| match table.get(key) {
            Some(node) => node.span.clone(),
            None => span.clone(),
        };
        check_options(&options, nodes, duration, &place, problems);
        check_traffic(&traffic, &place, problems);
        if let Traffic::Program(program) = &traffic {
            check_program(program, &options, nodes, &place, problems);
        }
        if let Traffic::Companion(_) = &traffic {
            check_companion_host(&options, nodes, &place, problems);
            self.companions.insert(options.name.clone(), place("beside"));
        }
        let FlowOptions { name, from, to, start, stop, stagger, count, profile } = options;
        let pairs = nodes.pairs("flow", (&from, place("from")), (&to, place("to")), problems);
        if self.groups.insert(name.clone(), Vec::new()).is_some() {
            let problem = Problem::Duplicate { what: "flows", name: name.to_string() };
            problems.add(place("name"), problem);
            return None;
        }
        let Some((pairs, is_group)) = pairs else {
            self.incomplete = true;
            return None;
        };
        let each = count.map_or(1, Count::get);
        let total = pairs.len() as u64 * u64::from(each) + self.flows.len() as u64;
        if total > MOST {
            let problem = Problem::TooMany { what: "flows", count: total, limit: MOST };
            problems.add(place("count"), problem);
            self.incomplete = true;
            return None;
        }
        let mut names = Vec::new();
        let mut late = false;
        let instances = pairs.into_iter().flat_map(|pair| vec![pair; each as usize]);
        for (number, (from, to)) in (1u32..).zip(instances) {
            let name = if is_group || count.is_some() { name.member(number) } else { name.clone() };
            let later = stagger.0.as_nanos().saturating_mul((number - 1).into());
            let start = match start {
                TimeDistribution::Constant(start) => TimeDistribution::Constant(Time(
                    Duration::from_nanos(start.0.as_nanos().saturating_add(later)),
                )),
                // Not staggered, which was checked.
                drawn => drawn,
            };
            // The first of those that start too late stands for them all.
            let latest = latest(&start);
            if number > 1 && !late && duration.is_some_and(|duration| latest >= duration) {
                if later > 0 {
                    problems.add(place("stagger"), starts_too_late(latest, duration));
                }
                late = true;
            }
            let (traffic, profile) = (traffic.clone(), profile.clone());
            names.push(name.clone());
            self.places.push(place("to"));
            self.flows.push(Flow { name, from, to, start, stop, traffic, profile });
        }
        self.groups.insert(name, names);
        Some(())
    }

    /// Adds the names of single flows, and reports duplicates.
    pub(super) fn close(&mut self, problems: &mut Problems) {
        let mut seen = BTreeMap::new();
        for (flow, place) in self.flows.iter().zip(&self.places) {
            if seen.insert(&flow.name, ()).is_some() {
                let problem = Problem::Duplicate { what: "flows", name: flow.name.to_string() };
                problems.add(place.clone(), problem);
            }
        }
        self.check_companions(problems);
        for flow in &self.flows {
            self.groups.entry(flow.name.clone()).or_insert_with(|| vec![flow.name.clone()]);
        }
    }
}

impl Flows {
    /// Each companion is beside a flow of TCP whose data leaves the same host.
    fn check_companions(&self, problems: &mut Problems) {
        for (name, place) in &self.companions {
            let members = self.groups.get(name).into_iter().flatten();
            let each = members.filter_map(|own| self.flows.iter().find(|flow| flow.name == *own));
            for flow in each {
                let Traffic::Companion(companion) = &flow.traffic else { continue };
                let Some(other) = self.flows.iter().find(|one| one.name == companion.beside) else {
                    let known = self.flows.iter().filter(|one| one.is_beside(flow));
                    let known = known.map(|one| one.name.to_string()).collect();
                    let name = companion.beside.to_string();
                    let problem = Problem::UnknownName { what: "flow", name, known };
                    problems.add(place.clone(), problem);
                    break;
                };
                if !other.is_beside(flow) {
                    let text = format!(
                        "`{}` is no flow of TCP that sends data from `{}`, so nothing is known of a path for datagrams",
                        other.name, flow.from
                    );
                    problems.add(place.clone(), Problem::Conflict(text));
                    break;
                }
            }
        }
    }
}

fn read_traffic(special: &mut Table, span: &Span, problems: &mut Problems) -> Option<Traffic> {
    let kind = tagged(special, span, &Traffic::KINDS, problems)?;
    let also = [&["kind"], keys_of::<FlowOptions>()].concat();
    let special = &*special;
    match kind.as_str() {
        "bulk" => decode(special, span, &also, problems).map(Traffic::Bulk),
        "transfer" => decode(special, span, &also, problems).map(Traffic::Transfer),
        "request-response" => decode(special, span, &also, problems).map(Traffic::RequestResponse),
        "web" => decode(special, span, &also, problems).map(Traffic::Web),
        "on-off-udp" => decode(special, span, &also, problems).map(Traffic::OnOffUdp),
        "companion" => decode(special, span, &also, problems).map(Traffic::Companion),
        "app-limited" => decode(special, span, &also, problems).map(Traffic::AppLimited),
        "trace" => decode(special, span, &also, problems).map(Traffic::Trace),
        "ping" => decode(special, span, &also, problems).map(Traffic::Ping),
        "program" => decode(special, span, &also, problems).map(Traffic::Program),
        _ => None,
    }
}

fn at_the_beginning() -> TimeDistribution {
    TimeDistribution::constant(Time::default())
}

/// The latest time at which a flow can start.
fn latest(start: &TimeDistribution) -> Time {
    match *start {
        TimeDistribution::Constant(at) | TimeDistribution::Uniform(_, at) => at,
        // Refused.
        TimeDistribution::Exponential(at) | TimeDistribution::Pareto { scale: at, .. } => at,
    }
}

impl Flow {
    /// The word for its traffic: the `kind` that a scenario gives it.
    pub fn kind(&self) -> &'static str {
        self.traffic.kind()
    }

    /// Whether it uses TCP.
    pub fn is_tcp(&self) -> bool {
        self.traffic.is_tcp()
    }

    /// The real programs that are its traffic, if they are.
    pub fn program(&self) -> Option<&Program> {
        match &self.traffic {
            Traffic::Program(program) => Some(program),
            _ => None,
        }
    }

    /// When it starts, as scenarios have it; none if that is at the beginning.
    pub fn late_start(&self) -> Option<String> {
        (self.start != at_the_beginning()).then(|| self.start.to_string())
    }

    /// Whether a companion can have its rate from it: data of TCP's leaves the same host.
    fn is_beside(&self, companion: &Flow) -> bool {
        let sends = matches!(
            self.traffic,
            Traffic::Bulk(_) | Traffic::Transfer(_) | Traffic::AppLimited(_) | Traffic::Trace(_)
        );
        sends && self.from == companion.from
    }

    /// When it starts in the mean, in seconds.
    pub(super) fn mean_start(&self) -> f64 {
        let earliest = match self.start {
            TimeDistribution::Uniform(earliest, _) => earliest,
            _ => latest(&self.start),
        };
        (earliest.0.as_secs_f64() + latest(&self.start).0.as_secs_f64()) / 2.0
    }
}

fn starts_too_late(start: Time, duration: Option<Time>) -> Problem {
    let end = duration.map_or(String::new(), |duration| format!(", {duration}"));
    Problem::OutOfBounds {
        key: "start",
        value: start.to_string(),
        bound: format!("before the end of the run{end}"),
    }
}

fn check_options(
    options: &FlowOptions,
    nodes: &Nodes,
    duration: Option<Time>,
    place: &impl Fn(&str) -> Span,
    problems: &mut Problems,
) {
    let latest = latest(&options.start);
    match options.start {
        TimeDistribution::Constant(_) => {}
        TimeDistribution::Uniform(..) if options.stagger == Time::default() => {}
        TimeDistribution::Uniform(..) => {
            let text =
                "`stagger` needs a fixed `start`: flows that draw their starts differ already";
            problems.add(place("stagger"), Problem::Conflict(text.into()));
        }
        TimeDistribution::Exponential(_) | TimeDistribution::Pareto { .. } => {
            let text = format!(
                "`start` is a time or uniform(EARLIEST, LATEST), not {}: without a latest time a flow could start after the end of the run",
                options.start
            );
            problems.add(place("start"), Problem::Value(text));
            return;
        }
    }
    if duration.is_some_and(|duration| latest >= duration) {
        problems.add(place("start"), starts_too_late(latest, duration));
    }
    if let Some(stop) = options.stop.filter(|stop| *stop <= latest) {
        let problem = Problem::OutOfBounds {
            key: "stop",
            value: stop.to_string(),
            bound: format!("after the start, {latest}"),
        };
        problems.add(place("stop"), problem);
    }
    for (key, end) in [("from", &options.from), ("to", &options.to)] {
        if nodes.routers.contains_key(end) {
            problems.add(place(key), Problem::NotAHost(end.to_string()));
        }
    }
    for host in [&options.from, &options.to] {
        let members = nodes.groups.get(host).into_iter().flatten();
        for host in members.filter_map(|member| nodes.hosts.get(member)) {
            if host.kind == HostKind::Transom
                && host.profile.profile().is_ok()
                && let Err(error) = options.profile.or(&host.profile).profile()
            {
                problems.add(place("profile"), Problem::Value(error.to_string()));
            }
        }
    }
}

fn check_traffic(traffic: &Traffic, place: &impl Fn(&str) -> Span, problems: &mut Problems) {
    let mut above_zero = |key: &'static str, sizes: &[Size], times: &[Time]| {
        if sizes.contains(&Size(0)) || times.contains(&Time::default()) {
            problems.add(place(key), Problem::Zero { key });
        }
    };
    match traffic {
        Traffic::Bulk(_) | Traffic::Trace(_) | Traffic::Program(_) => {}
        Traffic::Transfer(transfer) => above_zero("size", &[transfer.size], &[]),
        Traffic::RequestResponse(exchange) => {
            above_zero("request", &exchange.request.parameters(), &[]);
            above_zero("response", &exchange.response.parameters(), &[]);
        }
        Traffic::Web(web) => {
            above_zero("request", &web.request.parameters(), &[]);
            above_zero("object", &web.object.parameters(), &[]);
        }
        Traffic::OnOffUdp(udp) => {
            above_zero("payload", &[udp.payload], &[]);
            above_zero("on", &[], &udp.on.parameters());
            check_datagram(udp.payload, place, problems);
        }
        Traffic::Companion(companion) => {
            above_zero("payload", &[companion.payload], &[]);
            check_datagram(companion.payload, place, problems);
        }
        Traffic::Ping(ping) => {
            above_zero("size", &[ping.size], &[]);
            above_zero("interval", &[], &[ping.interval]);
            if ping.size.0 > LARGEST_PING {
                let bound = format!("at most {LARGEST_PING} bytes");
                let value = ping.size.to_string();
                problems.add(place("size"), Problem::OutOfBounds { key: "size", value, bound });
            }
        }
        Traffic::AppLimited(stream) => above_zero("write", &[stream.write], &[]),
    }
}

/// A payload that no datagram has room for is refused.
fn check_datagram(payload: Size, place: &impl Fn(&str) -> Span, problems: &mut Problems) {
    if payload.0 > LARGEST_DATAGRAM {
        let bound = format!("at most {LARGEST_DATAGRAM} bytes");
        let value = payload.to_string();
        problems.add(place("payload"), Problem::OutOfBounds { key: "payload", value, bound });
    }
}

/// A companion needs Transom's TCP where it sends: the kernel's tells nobody its window.
fn check_companion_host(
    options: &FlowOptions,
    nodes: &Nodes,
    place: &impl Fn(&str) -> Span,
    problems: &mut Problems,
) {
    let members = nodes.groups.get(&options.from).into_iter().flatten();
    let kernel = members
        .into_iter()
        .find(|member| nodes.hosts.get(member).is_some_and(|host| host.kind == HostKind::Kernel));
    if let Some(host) = kernel {
        let text =
            format!("a companion needs Transom's TCP at `from`, and `{host}` has the kernel's");
        problems.add(place("from"), Problem::Conflict(text));
    }
}

/// Programs need the kernel's sockets at both ends, and something to be started.
fn check_program(
    program: &Program,
    options: &FlowOptions,
    nodes: &Nodes,
    place: &impl Fn(&str) -> Span,
    problems: &mut Problems,
) {
    for (key, end) in [("from", &options.from), ("to", &options.to)] {
        let members = nodes.groups.get(end).into_iter().flatten();
        let without = members.into_iter().find(|member| {
            nodes.hosts.get(member).is_some_and(|host| host.kind != HostKind::Kernel)
        });
        if let Some(host) = without {
            let text =
                format!("`{host}` has Transom's TCP, and programs need a host of kind \"kernel\"");
            problems.add(place(key), Problem::Conflict(text));
        }
    }
    let commands = [("server", program.server.as_ref()), ("client", Some(&program.client))];
    for (key, command) in commands {
        let Some(command) = command else { continue };
        if command.first().is_none_or(String::is_empty) {
            let text = format!("`{key}` begins with the name of a program");
            problems.add(place(key), Problem::Value(text));
        }
        if command.iter().any(|argument| argument.contains('\0')) {
            let text = format!("`{key}` has a zero byte, which no argument can have");
            problems.add(place(key), Problem::Value(text));
        }
    }
}
