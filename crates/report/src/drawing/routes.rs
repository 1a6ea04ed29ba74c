//! The ways that flows take, as the simulator finds them: shortest in links, and of those equally short the one whose links were
//! added first (`transom_sim::network`).

use std::collections::{BTreeMap, VecDeque};

use transom_lab::scenario::{Name, Resolved};

/// The neighbours of each node, in the order of the links.
pub(super) struct Routes<'a> {
    neighbours: BTreeMap<&'a Name, Vec<&'a Name>>,
    scenario: &'a Resolved,
}

impl<'a> Routes<'a> {
    pub(super) fn new(scenario: &'a Resolved) -> Routes<'a> {
        let mut neighbours: BTreeMap<&Name, Vec<&Name>> = BTreeMap::new();
        for link in &scenario.links {
            neighbours.entry(&link.from).or_default().push(&link.to);
            neighbours.entry(&link.to).or_default().push(&link.from);
        }
        Routes { neighbours, scenario }
    }

    /// The nodes from one host to another, both included; empty if no way leads there.
    pub(super) fn way(&self, from: &'a Name, to: &'a Name) -> Vec<&'a Name> {
        // Searched from the end, as the simulator does, so that ties are broken alike.
        let mut next: BTreeMap<&Name, &Name> = BTreeMap::new();
        let mut frontier = VecDeque::from([to]);
        while let Some(node) = frontier.pop_front() {
            for &neighbour in self.neighbours.get(node).into_iter().flatten() {
                if neighbour == to || next.contains_key(neighbour) {
                    continue;
                }
                next.insert(neighbour, node);
                if self.scenario.routers.contains_key(neighbour) {
                    frontier.push_back(neighbour);
                }
            }
        }
        let mut way = vec![from];
        let mut here = from;
        while here != to {
            let Some(&then) = next.get(here) else { return Vec::new() };
            way.push(then);
            here = then;
        }
        way
    }
}
