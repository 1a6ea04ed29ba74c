//! The links of a scenario that can be somebody's bottleneck.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use transom_lab::scenario::{Link, Name, Resolved};

/// The neighbours of each node, with the number of the link to them.
type Neighbours<'a> = BTreeMap<&'a Name, Vec<(&'a Name, usize)>>;

/// The links that can be full, in the order of the scenario. A link can, if its rate is the least on the way of a flow. It also can, if it is slower than
/// all flows through it together, each at the least rate of its way.
pub(super) fn of(scenario: &Resolved) -> Vec<&Link> {
    let mut neighbours = Neighbours::new();
    for (number, link) in scenario.links.iter().enumerate() {
        neighbours.entry(&link.from).or_default().push((&link.to, number));
        neighbours.entry(&link.to).or_default().push((&link.from, number));
    }
    let mut narrow = BTreeSet::new();
    // What can come to each link, in each direction.
    let mut offered: BTreeMap<(usize, bool), u64> = BTreeMap::new();
    for flow in &scenario.flows {
        let way = way(scenario, &neighbours, &flow.from, &flow.to);
        let Some(least) = way.iter().filter_map(|(_, rate)| *rate).min() else { continue };
        for (direction, rate) in way {
            let Some(rate) = rate else { continue };
            let number = direction.0;
            let sum = offered.entry(direction).or_default();
            *sum = sum.saturating_add(least);
            if rate == least || *sum > rate {
                narrow.insert(number);
            }
        }
    }
    let links = scenario.links.iter().enumerate();
    links.filter(|(number, _)| narrow.contains(number)).map(|(_, link)| link).collect()
}

/// The links of the way with the fewest links, the last first: each with whether it goes there or back, and its rate in bits per second. Hosts do not
/// forward.
fn way<'a>(
    scenario: &'a Resolved,
    neighbours: &Neighbours<'a>,
    from: &'a Name,
    to: &'a Name,
) -> Vec<((usize, bool), Option<u64>)> {
    // Each node that is reached, with the node before it and the link between them.
    let mut reached: BTreeMap<&Name, (&Name, usize)> = BTreeMap::new();
    let mut waiting = VecDeque::from([from]);
    while let Some(node) = waiting.pop_front() {
        if node != from && scenario.hosts.contains_key(node) {
            continue;
        }
        for (next, link) in neighbours.get(node).into_iter().flatten() {
            if *next != from && !reached.contains_key(next) {
                reached.insert(next, (node, *link));
                waiting.push_back(next);
            }
        }
    }
    let (mut way, mut node) = (Vec::new(), to);
    while let Some((before, number)) = reached.get(node) {
        if let Some(link) = scenario.links.get(*number) {
            let there = link.from == **before;
            let direction = if there { &link.there } else { &link.back };
            way.push(((*number, there), direction.rate.map(|rate| rate.bits_per_sec())));
        }
        node = before;
    }
    way
}
