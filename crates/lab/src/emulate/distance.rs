//! How far hosts are from each other.

use std::collections::{BTreeMap, BTreeSet};

use transom_tcp::time::Duration;

use crate::scenario::{HostKind, Name, Resolved};

/// The least that the ways between hosts of flows take there and back, of flows with a kernel's host at an end; without queues and
/// transmission times. `None` if there is no such flow.
pub(super) fn shortest_round_trip(scenario: &Resolved) -> Option<Duration> {
    let is_kernel =
        |name: &Name| scenario.hosts.get(name).is_some_and(|host| host.kind == HostKind::Kernel);
    let flows = scenario.flows.iter();
    let concerned = flows.filter(|flow| is_kernel(&flow.from) || is_kernel(&flow.to));
    let ends: BTreeSet<(&Name, &Name)> = concerned.map(|flow| (&flow.from, &flow.to)).collect();
    let there_and_back =
        |(from, to)| Some(shortest_way(scenario, from, to)? + shortest_way(scenario, to, from)?);
    ends.into_iter().filter_map(there_and_back).min()
}

/// The shortest delay from one host to another, over routers.
fn shortest_way(scenario: &Resolved, from: &Name, to: &Name) -> Option<Duration> {
    let mut reached: BTreeMap<&Name, Duration> = BTreeMap::from([(from, Duration::ZERO)]);
    // Each pass reaches what is one link further away; networks that are emulated are small.
    loop {
        let mut better = Vec::new();
        for link in &scenario.links {
            let ways =
                [(&link.from, &link.to, link.there.delay), (&link.to, &link.from, link.back.delay)];
            for (one, other, delay) in ways {
                let forwards = one == from || scenario.routers.contains_key(one);
                let Some(&so_far) = reached.get(one).filter(|_| forwards) else { continue };
                if reached.get(other).is_none_or(|known| *known > so_far + delay) {
                    better.push((other, so_far + delay));
                }
            }
        }
        if better.is_empty() {
            return reached.get(to).copied();
        }
        for (node, delay) in better {
            let known = reached.entry(node).or_insert(delay);
            *known = delay.min(*known);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;

    fn of(kinds: [&str; 3]) -> Option<Duration> {
        let [a, b, c] = kinds;
        let text = format!(
            r#"
[scenario]
name = "triangle"
duration = "1s"
[hosts]
a = {{ kind = "{a}" }}
b = {{ kind = "{b}" }}
c = {{ kind = "{c}" }}
[routers.r]
[[links]]
from = "a"
to = "r"
delay = "5ms"
[[links]]
from = "r"
to = "b"
there = {{ delay = "7ms" }}
back = {{ delay = "1ms" }}
[[links]]
from = "r"
to = "c"
delay = "1ms"
[[flows]]
name = "one"
from = "a"
to = "b"
kind = "bulk"
[[flows]]
name = "other"
from = "b"
to = "c"
kind = "bulk"
"#
        );
        let scenario = Scenario::parse("test", &text).unwrap();
        shortest_round_trip(&scenario.sweep().next().unwrap().resolved)
    }

    #[test]
    fn the_shortest_way_of_a_flow_that_meets_a_kernel() {
        // a to b: 5 + 7 there, 1 + 5 back. b to c: 1 + 1 there, 1 + 7 back.
        assert_eq!(of(["transom"; 3]), None);
        assert_eq!(of(["kernel", "transom", "transom"]), Some(Duration::from_millis(18)));
        assert_eq!(of(["kernel", "kernel", "transom"]), Some(Duration::from_millis(10)));
    }
}
