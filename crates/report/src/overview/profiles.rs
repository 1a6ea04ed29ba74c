//! The profiles of the flows, in few words: what makes one group of flows different from another.

use std::collections::BTreeMap;

use transom_lab::scenario::{Name, Resolved};

/// The words of each flow's sender: its units, its extensions, or the kernel's congestion control. Empty if all flows have the same.
pub(super) fn of(scenario: &Resolved) -> BTreeMap<Name, String> {
    let all: BTreeMap<Name, String> =
        scenario.flows.iter().map(|flow| (flow.name.clone(), scenario.tcp_of(flow))).collect();
    let first = all.values().next();
    if all.values().all(|one| Some(one) == first) { BTreeMap::new() } else { all }
}

/// The flows of each profile, in the order of the flows.
pub(super) fn groups(scenario: &Resolved) -> Vec<(String, Vec<Name>)> {
    let profiles = of(scenario);
    let mut groups: Vec<(String, Vec<Name>)> = Vec::new();
    for flow in &scenario.flows {
        let Some(profile) = profiles.get(&flow.name) else { continue };
        match groups.iter_mut().find(|(known, _)| known == profile) {
            Some((_, flows)) => flows.push(flow.name.clone()),
            None => groups.push((profile.clone(), vec![flow.name.clone()])),
        }
    }
    groups
}
