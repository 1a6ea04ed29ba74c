//! A moment of a run: the run is repeated up to it, and the event logs of all hosts are read around it.

use super::decision::{Decision, Owners};
use crate::lock;
use crate::run::build::{KernelHosts, build};
use crate::run::{RunError, RunOptions};
use crate::scenario::{HostKind, Resolved};
use std::path::Path;
use std::sync::{Arc, Mutex};
use transom_sim::network::NodeId;
use transom_stack::log::{Record, What};
use transom_tcp::time::{Duration, Instant};

/// Between two looks at whether anybody still wants the answer.
const SLICES: u64 = 50;

/// A moment, and how much of what happens around it is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// When, in the network's time.
    pub at: Instant,
    /// How long before it and after it.
    pub around: Duration,
    /// How many decisions at most: the nearest ones.
    pub most: usize,
}

/// The decisions of all hosts with Transom's TCP around a moment of a run. `goes_on` is asked now and then, and ends the look by returning false;
/// there is none then.
///
/// # Errors
/// [`RunError`], as for the run itself.
pub fn decisions(
    scenario: &Resolved,
    seed: u64,
    directory: &Path,
    moment: Moment,
    mut goes_on: impl FnMut() -> bool,
) -> Result<Option<Vec<Decision>>, RunError> {
    let mut logged = scenario.clone();
    let hosts = scenario.hosts.iter().filter(|(_, host)| host.kind == HostKind::Transom);
    logged.measure.log = hosts.map(|(name, _)| name.clone()).collect();
    logged.measure.capture.clear();
    let mut built = build(&logged, seed, &RunOptions::new(directory), KernelHosts::Refused)?;
    let whole = Instant::ZERO + scenario.scenario.duration.0;
    let (from, to) = (before(moment.at, moment.around), (moment.at + moment.around).min(whole));
    let collected = Arc::new(Mutex::new(Vec::<(NodeId, Record)>::new()));
    let hosts = std::mem::take(&mut built.logged);
    for (_, node) in &hosts {
        let (node, collected) = (*node, collected.clone());
        built.network.watch_log(node, move |record| {
            let Ok((record, _)) = Record::decode(record) else { return };
            // Who a connection or a layer is was said earlier.
            let names = matches!(record.what, What::Opened { .. } | What::Layer { .. });
            if names || (from..=to).contains(&record.at) {
                lock(&collected).push((node, record));
            }
        });
    }
    for slice in 1..=SLICES {
        let nanos = u128::from(to.as_nanos()) * u128::from(slice) / u128::from(SLICES);
        built.network.run_until(Instant::from_nanos(nanos as u64))?;
        if !goes_on() {
            return Ok(None);
        }
    }
    let all = std::mem::take(&mut *lock(&collected));
    let mut owners = Owners::new(scenario, &built.ports);
    let mut found: Vec<Decision> = Vec::new();
    for (node, record) in &all {
        let Some((host, _)) = hosts.iter().find(|(_, other)| other == node) else { continue };
        let decision = owners.decision(host, record);
        if let Some(decision) = decision.filter(|_| record.at >= from) {
            // A burst is one decision: the window let it out.
            if !found.last_mut().is_some_and(|last| last.takes_in(&decision)) {
                found.push(decision);
            }
        }
    }
    Ok(Some(nearest(found, moment)))
}

fn before(at: Instant, by: Duration) -> Instant {
    Instant::from_nanos(at.as_nanos().saturating_sub(by.as_nanos()))
}

/// Those that are nearest to the moment, in the order of time.
fn nearest(mut found: Vec<Decision>, moment: Moment) -> Vec<Decision> {
    let distance = |one: &Decision| one.at.as_nanos().abs_diff(moment.at.as_nanos());
    if found.len() > moment.most {
        found.sort_by_key(distance);
        found.truncate(moment.most);
    }
    found.sort_by_key(|one| one.at);
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;

    const TEXT: &str = r#"
        scenario = { name = "one", duration = "3s", tcp = "classic" }
        topology = { kind = "dumbbell", pairs = 1, bottleneck = { rate = "2Mbit/s", delay = "20ms", queue = "10 packets" } }
        flows = [{ name = "bulk", from = "sender", to = "receiver", kind = "bulk", profile = { extensions = "rate-cap(rate=1MB)" } }]
    "#;

    fn look(at: u64, around: u64, most: usize) -> Vec<Decision> {
        let scenario = Scenario::parse("one.toml", TEXT).unwrap().point(0).unwrap().resolved;
        let at = Instant::from_nanos(at * 1_000_000);
        let moment = Moment { at, around: Duration::from_millis(around), most };
        decisions(&scenario, 1, Path::new(""), moment, || true).unwrap().unwrap()
    }

    #[test]
    fn a_moment_has_its_decisions_with_units_and_rules() {
        let all = look(0, 3000, 100_000);
        let has = |part: &str| all.iter().any(|one| format!("{one:?}").contains(part));
        for part in ["slow start", "RFC 5681 section 3.1", "fast recovery", "rate-cap", "bulk"] {
            assert!(has(part), "{part}: {all:?}");
        }
        let near = look(1000, 100, 8);
        assert_eq!(near.len(), 8);
        let away = |one: &Decision| one.at.as_nanos().abs_diff(1_000_000_000);
        assert!(near.iter().all(|one| away(one) <= 100_000_000), "{near:?}");
        assert_eq!(near, look(1000, 100, 8));
    }

    #[test]
    fn a_look_that_nobody_wants_ends() {
        let scenario = Scenario::parse("one.toml", TEXT).unwrap().point(0).unwrap().resolved;
        let at = Instant::from_nanos(1_000_000_000);
        let moment = Moment { at, around: Duration::from_millis(10), most: 10 };
        let mut left = 3;
        let gone = decisions(&scenario, 1, Path::new(""), moment, || {
            left -= 1;
            left > 0
        });
        assert_eq!((gone.unwrap(), left), (None, 0));
    }
}
