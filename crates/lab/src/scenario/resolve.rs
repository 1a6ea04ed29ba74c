//! Resolves a scenario as written into a concrete experiment.
//!
//! Everything is read, even after errors, and the errors are collected. Checks whose failure would only follow from an earlier error
//! are skipped: for example reachability when a link could not be read.

use super::bands::{Bands, Comparison};
use super::claim::Control;
use super::control;
use super::cost::Cost;
use super::decode::decode;
use super::error::{Problem, Problems};
use super::flow::Flows;
use super::header::{Header, Seeds};
use super::known::Known;
use super::link::{Link, LinkOptions, OWN_KEYS, split_directions};
use super::measure::Series;
use super::name::Name;
use super::nodes::Nodes;
use super::open::Open;
use super::quantity::Time;
use super::reachability;
use super::resolved::Resolved;
use super::sweep::{Sweep, wrong_type};
use super::trace::Files;
use super::traffic::Traffic;
use super::tree::{Node, Span, Table, Value, way};
use std::collections::BTreeMap;

/// As many links as a scenario may have.
const MOST_LINKS: u64 = 200_000;

/// The sections there are.
pub(super) const SECTIONS: [&str; 11] = [
    "scenario", "paper", "topology", "hosts", "routers", "links", "flows", "measure", "sweep",
    "expect", "forms",
];

/// A section that is a table; other values are reported.
pub(super) fn section<'a>(
    tree: &'a Table,
    key: &str,
    problems: &mut Problems,
) -> Option<&'a Table> {
    let node = tree.get(key)?;
    match &node.value {
        Value::Table(table) => Some(table),
        other => {
            problems.add(node.span.clone(), wrong_type(other, "a table"));
            None
        }
    }
}

/// The items of a section that is a list of tables; other values are reported.
fn items<'a>(
    tree: &'a Table,
    key: &str,
    problems: &mut Problems,
) -> (Vec<(usize, &'a Table, &'a Span)>, bool) {
    let Some(node) = tree.get(key) else { return (Vec::new(), true) };
    let Value::List(list) = &node.value else {
        let expected = format!("a list of tables, each under [[{key}]]");
        problems.add(node.span.clone(), wrong_type(&node.value, &expected));
        return (Vec::new(), false);
    };
    let mut tables = Vec::new();
    for (index, item) in list.iter().enumerate() {
        match &item.value {
            Value::Table(table) => tables.push((index, table, &item.span)),
            other => problems.add(item.span.clone(), wrong_type(other, "a table")),
        }
    }
    let all = tables.len() == list.len();
    (tables, all)
}

/// Parts a table into what has one of `keys`, and the rest.
pub(super) fn split(table: &Table, keys: &[&str]) -> (Table, Table) {
    let entries = table.0.iter().map(|(key, entry)| (key.clone(), entry.clone()));
    let (ours, rest): (BTreeMap<_, _>, BTreeMap<_, _>) =
        entries.partition(|(key, _)| keys.contains(&key.as_str()));
    (Table(ours), Table(rest))
}

/// Takes `kind` out of a table: one of `kinds`.
pub(super) fn tagged(
    table: &mut Table,
    span: &Span,
    kinds: &[&str],
    problems: &mut Problems,
) -> Option<String> {
    let Some(entry) = table.0.remove("kind") else {
        problems.add(span.clone(), Problem::MissingKey { key: "kind".into() });
        return None;
    };
    let Node { span, value } = entry.node;
    match value {
        Value::Text(kind) if kinds.contains(&kind.as_str()) => Some(kind),
        Value::Text(choice) => {
            let known = kinds.iter().map(|kind| kind.to_string()).collect();
            problems.add(span, Problem::UnknownChoice { choice, known });
            None
        }
        other => {
            problems.add(span, wrong_type(&other, &format!("one of {}", kinds.join(", "))));
            None
        }
    }
}

/// A scenario at one point of its sweep.
pub(super) struct Outcome {
    pub(super) resolved: Resolved,
    pub(super) seeds: Vec<u64>,
    pub(super) comparisons: Vec<Comparison>,
    pub(super) controls: Vec<Control>,
    pub(super) open: Open,
    pub(super) cost: Cost,
}

/// Resolves `tree`, in which the values of the sweep's `point` have been put already. `None` if anything is wrong.
pub(super) fn resolve(
    tree: &Table,
    sweep: &Sweep,
    point: usize,
    files: &mut Files,
    problems: &mut Problems,
) -> Option<Outcome> {
    for (key, entry) in &tree.0 {
        if !SECTIONS.contains(&key.as_str()) {
            let known = SECTIONS.iter().map(|section| section.to_string()).collect();
            problems.add(entry.key.clone(), Problem::UnknownKey { key: key.clone(), known });
        }
    }
    let (mut header, seeds) = read_header(tree, problems);
    // A run of no time has been reported, and nothing is measured by it.
    let duration =
        header.as_ref().map(|header| header.duration).filter(|time| *time > Time::default());
    // In the canonical form each host says it for itself.
    let tcp = header.as_mut().and_then(|header| header.tcp.take());
    let nodes = Nodes::read(tree, tcp, problems);
    let links = Links::read(tree, &nodes, files, problems);
    let flows = read_flows(tree, &nodes, duration, files, problems);
    let mut open = Open::default();
    let measure = read_measure(tree, &nodes, &links, &mut open, problems);
    let known = Known {
        header: header.as_ref(),
        flows: &flows,
        links: &links.links,
        link_groups: &links.groups,
        links_incomplete: links.incomplete,
        sweep,
        point,
    };
    let mut bands = Bands::default();
    for (_, table, span) in items(tree, "expect", problems).0 {
        let _ = bands.read(table, span, &known, problems);
    }
    if !nodes.incomplete && !links.incomplete {
        if nodes.hosts.is_empty() {
            problems.add(0..0, Problem::Nothing("hosts"));
        }
        if flows.flows.is_empty() && !flows.incomplete {
            problems.add(0..0, Problem::Nothing("flows"));
        }
        reachability::check(&nodes, &links.links, &flows.flows, &flows.places, problems);
    }
    if !problems.is_empty() {
        return None;
    }
    let Bands { bands, comparisons, controls, other_points } = bands;
    open.other_points = other_points;
    let mut resolved = Resolved {
        scenario: header?,
        hosts: nodes.hosts,
        routers: nodes.routers,
        links: links.links,
        flows: flows.flows,
        measure,
        expect: bands,
    };
    if resolved.measure.capture_comments && resolved.commenting().is_empty() {
        let text = "no link in `capture` leads from or to a host with Transom's TCP, and others do not comment";
        open.nothing.push((tree.span(way!["measure", "capture-comments"]), text));
        resolved.measure.capture_comments = false;
    }
    let cost = Cost::of(&resolved, tree, problems);
    Some(Outcome { resolved, seeds: seeds?, comparisons, controls, open, cost })
}

fn read_header(tree: &Table, problems: &mut Problems) -> (Option<Header>, Option<Vec<u64>>) {
    let Some(table) = section(tree, "scenario", problems) else {
        if !tree.0.contains_key("scenario") {
            problems.add(0..0, Problem::MissingKey { key: "[scenario]".into() });
        }
        return (None, None);
    };
    let span = tree.span(way!["scenario"]);
    let (seeds, rest) = split(table, &["seeds"]);
    let header: Option<Header> = decode(&rest, &span, &["seeds"], problems);
    if let Some(header) = &header {
        header.check(tree, problems);
    }
    let place = tree.span(way!["scenario", "seeds"]);
    let seeds: Option<Seeds> = decode(&seeds, &place, &[], problems);
    if seeds.as_ref().is_some_and(|seeds| seeds.seeds.is_empty()) {
        problems.add(place.clone(), Problem::Nothing("seed in this list"));
    }
    let seeds = seeds.map(|seeds| seeds.seeds);
    let mut sorted = seeds.clone().unwrap_or_default();
    sorted.sort_unstable();
    if let Some([twice, _]) = sorted.array_windows().find(|[a, b]| a == b) {
        let problem = Problem::Duplicate { what: "seeds", name: twice.to_string() };
        problems.add(place, problem);
    }
    (header, seeds)
}

/// The links, and the groups of their names.
#[derive(Default)]
struct Links {
    links: Vec<Link>,
    groups: BTreeMap<Name, Vec<Name>>,
    incomplete: bool,
}

impl Links {
    fn read(tree: &Table, nodes: &Nodes, files: &mut Files, problems: &mut Problems) -> Links {
        let mut links = Links { incomplete: nodes.incomplete, ..Links::default() };
        let place = tree.span(way!["topology"]);
        for (name, from, to, duplex) in &nodes.layout.links {
            let (mut there, mut back) = (duplex.there.clone(), duplex.back.clone());
            for way in [&mut there, &mut back] {
                files.check_rate(way, |_| place.clone(), problems);
            }
            let (name, from, to) = (name.clone(), from.clone(), to.clone());
            links.add(Link { name, from, to, there, back }, &place, problems);
        }
        let (tables, all) = items(tree, "links", problems);
        links.incomplete |= !all;
        for (index, table, span) in tables {
            let mut table = table.clone();
            split_directions(&mut table, &OWN_KEYS);
            let Some(options) = decode::<LinkOptions>(&table, span, &OWN_KEYS, problems) else {
                links.incomplete = true;
                continue;
            };
            let LinkOptions { name, from, to, mut there, mut back } = options;
            for (way, config) in [("there", &mut there), ("back", &mut back)] {
                let place = |key: &str| match table.find(way![way, key]) {
                    Some(node) => node.span.clone(),
                    None => span.clone(),
                };
                files.check_rate(config, place, problems);
            }
            let at = |key: &str| tree.span(way!["links", index, key]);
            let pairs = nodes.pairs("link", (&from, at("from")), (&to, at("to")), problems);
            let Some((pairs, is_group)) = pairs else {
                links.incomplete = true;
                continue;
            };
            let mut names = Vec::new();
            for (number, (from, to)) in (1u32..).zip(pairs) {
                let name = match &name {
                    Some(name) if is_group => name.member(number),
                    Some(name) => name.clone(),
                    None => Name::joining(&from, &to),
                };
                names.push(name.clone());
                let (there, back) = (there.clone(), back.clone());
                links.add(Link { name, from, to, there, back }, &at("name"), problems);
            }
            if let (Some(name), true) = (name, is_group) {
                links.groups.insert(name, names);
            }
        }
        let count = links.links.len() as u64;
        if count > MOST_LINKS {
            let problem = Problem::TooMany { what: "links", count, limit: MOST_LINKS };
            problems.add(tree.span(way!["links"]), problem);
        }
        links
    }

    fn add(&mut self, link: Link, place: &Span, problems: &mut Problems) {
        let own = vec![link.name.clone()];
        if self.groups.insert(link.name.clone(), own).is_some() {
            let problem = Problem::Duplicate { what: "links", name: link.name.to_string() };
            problems.add(place.clone(), problem);
        }
        self.links.push(link);
    }
}

fn read_flows(
    tree: &Table,
    nodes: &Nodes,
    duration: Option<Time>,
    files: &mut Files,
    problems: &mut Problems,
) -> Flows {
    let mut flows = Flows::default();
    let (tables, all) = items(tree, "flows", problems);
    flows.incomplete = !all;
    for (index, table, span) in tables {
        let before = flows.flows.len();
        let _ = flows.read(table, span, nodes, duration, problems);
        for flow in flows.flows.iter_mut().skip(before) {
            if let Traffic::Trace(trace) = &mut flow.traffic {
                let place = |key: &str| tree.span(way!["flows", index, key]);
                files.check(trace, place, problems);
            }
        }
    }
    flows.close(problems);
    flows
}

fn read_measure(
    tree: &Table,
    nodes: &Nodes,
    links: &Links,
    open: &mut Open,
    problems: &mut Problems,
) -> Series {
    let span = tree.span(way!["measure"]);
    let table = section(tree, "measure", problems);
    let read = table.and_then(|table| decode(table, &span, &[], problems));
    let mut measure: Series = read.unwrap_or_default();
    control::leave_out(tree, &mut measure.links, &links.links, open);
    measure.flows.sort_unstable();
    measure.flows.dedup();
    measure.links.sort_unstable();
    measure.links.dedup();
    let mut capture = Vec::new();
    for (index, name) in measure.capture.iter().enumerate() {
        match links.groups.get(name) {
            Some(names) => capture.extend(names.iter().cloned()),
            None if links.incomplete => {}
            None => {
                let known = links.groups.keys().map(Name::to_string).collect();
                let problem = Problem::UnknownName { what: "link", name: name.to_string(), known };
                problems.add(tree.span(way!["measure", "capture", index]), problem);
            }
        }
    }
    capture.sort();
    capture.dedup();
    let log = read_logged(tree, &measure.log, nodes, problems);
    Series { capture, log, ..measure }
}

/// The hosts whose event logs are kept.
fn read_logged(tree: &Table, names: &[Name], nodes: &Nodes, problems: &mut Problems) -> Vec<Name> {
    let mut log = Vec::new();
    for (index, name) in names.iter().enumerate() {
        let members = nodes.groups.get(name).map(Vec::as_slice).unwrap_or_default();
        let mut hosts = members.iter().filter(|one| nodes.hosts.contains_key(one)).peekable();
        if hosts.peek().is_some() {
            log.extend(hosts.cloned());
        } else if !nodes.incomplete {
            let known = nodes.hosts.keys().map(Name::to_string).collect();
            let problem = Problem::UnknownName { what: "host", name: name.to_string(), known };
            problems.add(tree.span(way!["measure", "log", index]), problem);
        }
    }
    log.sort();
    log.dedup();
    log
}
