//! Whether hosts can reach each other.
//!
//! Theory of operation. A path leads over links and routers; hosts do not forward. So two hosts reach each other if a link joins
//! them, or if both are at the same *backbone*: a set of connected routers. The backbone of each router is found once, so that the
//! check of a flow is one look-up.

use super::error::{Problem, Problems};
use super::flow::Flow;
use super::link::Link;
use super::name::Name;
use super::nodes::Nodes;
use super::tree::Span;
use std::collections::{BTreeMap, BTreeSet};

/// Checks the network; `flow_places` is where each flow's `to` was written.
pub(super) fn check(
    nodes: &Nodes,
    links: &[Link],
    flows: &[Flow],
    flow_places: &[Span],
    problems: &mut Problems,
) {
    let mut neighbours: BTreeMap<&Name, BTreeSet<&Name>> = BTreeMap::new();
    for link in links {
        neighbours.entry(&link.from).or_default().insert(&link.to);
        neighbours.entry(&link.to).or_default().insert(&link.from);
    }
    let place = |name: &Name| nodes.places.get(name).cloned().unwrap_or(0..0);
    let all = || nodes.hosts.keys().chain(nodes.routers.keys());
    let is_lonely = |node: &Name| !neighbours.contains_key(node);
    for node in all().filter(|node| is_lonely(node)) {
        problems.add(place(node), Problem::NoLink(node.to_string()));
    }
    let backbones = pieces(&neighbours, |node| nodes.routers.contains_key(node));
    let beside = |host: &Name| neighbours.get(host).into_iter().flatten().copied();
    let at = |host: &Name| -> BTreeSet<usize> {
        beside(host).filter_map(|node| backbones.get(node).copied()).collect()
    };
    let mut unreachable = false;
    for (flow, place) in flows.iter().zip(flow_places) {
        let (from, to) = (&flow.from, &flow.to);
        let reaches = || beside(from).any(|node| node == to) || !at(from).is_disjoint(&at(to));
        if !is_lonely(from) && !is_lonely(to) && !reaches() {
            let (from, to) = (from.to_string(), to.to_string());
            problems.add(place.clone(), Problem::Unreachable { from, to });
            unreachable = true;
        }
    }
    if unreachable {
        return;
    }
    let pieces = pieces(&neighbours, |_| true);
    let mut joined = all().filter(|node| !is_lonely(node));
    if let Some(first) = joined.next()
        && let Some(other) = joined.find(|node| pieces.get(node) != pieces.get(first))
    {
        let problem = Problem::Disconnected(first.to_string(), other.to_string());
        problems.add(place(other), problem);
    }
}

/// Numbers the pieces into which the nodes that `belong` fall, and says for each of these nodes in which it is.
fn pieces<'a>(
    neighbours: &BTreeMap<&'a Name, BTreeSet<&'a Name>>,
    belong: impl Fn(&Name) -> bool,
) -> BTreeMap<&'a Name, usize> {
    let mut pieces = BTreeMap::new();
    for (piece, start) in neighbours.keys().copied().enumerate() {
        let mut waiting = vec![start];
        while let Some(node) = waiting.pop() {
            if !belong(node) || pieces.contains_key(node) {
                continue;
            }
            pieces.insert(node, piece);
            waiting.extend(neighbours.get(node).into_iter().flatten());
        }
    }
    pieces
}
