//! Whether hosts can reach each other.
//!
//! A way leads over links and routers; hosts do not forward. Every flow needs a way between its ends, and the network has to be of
//! one piece.

use super::error::{Problem, Problems};
use super::flow::Flow;
use super::link::Link;
use super::name::Name;
use super::nodes::Nodes;
use super::tree::Span;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Checks the network; `flow_places` is where each flow's `to` was written.
pub(super) fn check(
    nodes: &Nodes,
    links: &[Link],
    flows: &[Flow],
    flow_places: &[Span],
    problems: &mut Problems,
) {
    let mut neighbours: BTreeMap<&Name, Vec<&Name>> = BTreeMap::new();
    for link in links {
        neighbours.entry(&link.from).or_default().push(&link.to);
        neighbours.entry(&link.to).or_default().push(&link.from);
    }
    let place = |name: &Name| nodes.places.get(name).cloned().unwrap_or(0..0);
    let all = || nodes.hosts.keys().chain(nodes.routers.keys());
    let mut lonely = BTreeSet::new();
    for node in all().filter(|node| !neighbours.contains_key(node)) {
        problems.add(place(node), Problem::NoLink(node.to_string()));
        lonely.insert(node);
    }
    // From each host in turn, but only once from each that has flows.
    let mut reached: BTreeMap<&Name, BTreeSet<&Name>> = BTreeMap::new();
    let mut unreachable = false;
    for (flow, place) in flows.iter().zip(flow_places) {
        if lonely.contains(&flow.from) || lonely.contains(&flow.to) {
            continue;
        }
        let from_here = reached.entry(&flow.from).or_insert_with(|| {
            walk(&flow.from, &neighbours, |node| nodes.routers.contains_key(node))
        });
        if !from_here.contains(&flow.to) {
            let (from, to) = (flow.from.to_string(), flow.to.to_string());
            problems.add(place.clone(), Problem::Unreachable { from, to });
            unreachable = true;
        }
    }
    let mut joined = all().filter(|node| !lonely.contains(node));
    if let (Some(first), false) = (joined.next(), unreachable) {
        let piece = walk(first, &neighbours, |_| true);
        if let Some(other) = joined.find(|node| !piece.contains(node)) {
            let problem = Problem::Disconnected(first.to_string(), other.to_string());
            problems.add(place(other), problem);
        }
    }
}

/// The nodes that can be reached from `start`, passing only those that `forward`.
fn walk<'a>(
    start: &'a Name,
    neighbours: &BTreeMap<&'a Name, Vec<&'a Name>>,
    forward: impl Fn(&Name) -> bool,
) -> BTreeSet<&'a Name> {
    let mut seen = BTreeSet::from([start]);
    let mut frontier = VecDeque::from([start]);
    while let Some(node) = frontier.pop_front() {
        if node != start && !forward(node) {
            continue;
        }
        for next in neighbours.get(node).into_iter().flatten() {
            if seen.insert(next) {
                frontier.push_back(next);
            }
        }
    }
    seen
}
