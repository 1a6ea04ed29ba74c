//! Estimates the cost of a run, so that one that would take for ever, or too much memory, is refused before it begins.
//!
//! Theory of operation. Three things grow with what is written and with nothing else: samples, packets, and runs. All are estimated from the scenario
//! alone, and only what is far beyond any machine is refused. So an estimate is rough, and rather too low. It assumes that a flow sends no more than
//! the slowest link on its way takes, and that a link carries no more than its rate.

mod packets;

use super::error::{Problem, Problems};
use super::resolved::Resolved;
use super::traffic::Traffic;
use super::tree::{Table, way};

/// Samples that a run may keep: some gigabytes of memory.
const MOST_SAMPLES: u128 = 20_000_000;
/// Packets that a run may be estimated to take over links: a day and more of simulating.
const MOST_PACKETS: f64 = 1e11;
/// Connections that flows of web traffic may have at the same time.
const MOST_CONNECTIONS: u64 = 100_000;
/// Runs of a scenario: its points times its seeds.
const MOST_RUNS: u64 = 1_000_000;
/// Samples of all runs: some terabytes of tables.
const MOST_SAMPLES_OF_ALL: u128 = 20_000_000_000;
/// Packets of all runs: years of simulating on one processor.
const MOST_PACKETS_OF_ALL: f64 = 1e14;

/// The cost of runs.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cost {
    samples: u128,
    packets: f64,
}

impl Cost {
    /// That of a run, which is reported if it is too much.
    pub(super) fn of(scenario: &Resolved, tree: &Table, problems: &mut Problems) -> Cost {
        let samples = samples(scenario, tree, problems);
        connections(scenario, tree, problems);
        let packets = packets::estimate(scenario);
        if let Some(problem) = packets.problem(scenario, MOST_PACKETS) {
            let place = match packets.is_endless() {
                true => tree.span(way!["flows"]),
                false => tree.span(way!["scenario", "duration"]),
            };
            problems.add(place, problem);
        }
        Cost { samples, packets: packets.total() }
    }

    /// Adds the runs of another point of the sweep.
    pub(super) fn add(&mut self, one: Cost, runs: usize) {
        self.samples = self.samples.saturating_add(one.samples.saturating_mul(runs as u128));
        self.packets += one.packets * runs as f64;
    }

    /// Reports too many runs, and runs that are each bearable and too much together.
    pub(super) fn check(&self, points: usize, seeds: usize, tree: &Table, problems: &mut Problems) {
        let place = match tree.find(way!["sweep"]) {
            Some(sweep) if points > seeds => sweep.span.clone(),
            _ => tree.span(way!["scenario", "seeds"]),
        };
        let runs = (points as u64).saturating_mul(seeds as u64);
        let too_much = if let Some(text) = too_many_runs(points, seeds) {
            text
        } else if self.samples > MOST_SAMPLES_OF_ALL {
            let (all, most) = (about(self.samples as f64), about(MOST_SAMPLES_OF_ALL as f64));
            format!("the {runs} runs take about {all} samples together, and {most} are the most")
        } else if self.packets > MOST_PACKETS_OF_ALL {
            let (all, most) = (about(self.packets), about(MOST_PACKETS_OF_ALL));
            format!(
                "the {runs} runs are estimated to take {all} packets over links together, and {most} are the most"
            )
        } else {
            return;
        };
        let hint = "fewer `seeds`, or fewer values in [sweep], make fewer runs";
        problems.add(place, Problem::TooCostly { what: too_much, hint: hint.into() });
    }
}

/// Whether points and seeds make more runs than a scenario may ask for: then it says so.
pub fn too_many_runs(points: usize, seeds: usize) -> Option<String> {
    let runs = (points as u64).saturating_mul(seeds as u64);
    let text = || {
        format!(
            "{points} points of the sweep with {seeds} seeds each are {runs} runs, and {MOST_RUNS} are the most"
        )
    };
    (runs > MOST_RUNS).then(text)
}

/// The samples of a run.
fn samples(scenario: &Resolved, tree: &Table, problems: &mut Problems) -> u128 {
    let header = &scenario.scenario;
    let (duration, interval) = (header.duration.0.as_nanos(), header.sample_interval.0.as_nanos());
    let ticks = u128::from(duration / interval.max(1)) + 1;
    let (flows, directions) = (scenario.flows.len(), 2 * scenario.links.len());
    let series = (flows + directions) as u128;
    let samples = ticks.saturating_mul(series);
    if samples > MOST_SAMPLES {
        let flows = if flows == 1 { "1 flow".into() } else { format!("{flows} flows") };
        let what = format!(
            "with a `sample-interval` of {} in {} there are about {} samples: {ticks} for each of {flows} and of {directions} \
             directions of links; {MOST_SAMPLES} are the most",
            header.sample_interval,
            header.duration,
            about(samples as f64),
        );
        let least = u128::from(duration).saturating_mul(series).div_ceil(MOST_SAMPLES);
        let least = round(u64::try_from(least).unwrap_or(u64::MAX));
        let hint = if least < duration {
            let least = super::Time(transom_tcp::time::Duration::from_nanos(least));
            format!("`sample-interval` can be {least} or more; a shorter `duration` helps too")
        } else {
            "fewer flows and links, or a shorter `duration`, make fewer samples".into()
        };
        let written = tree.find(way!["scenario", "sample-interval"]).is_some();
        let key = if written { "sample-interval" } else { "duration" };
        problems.add(tree.span(way!["scenario", key]), Problem::TooCostly { what, hint });
    }
    samples
}

/// The connections of web traffic, of which each takes memory.
fn connections(scenario: &Resolved, tree: &Table, problems: &mut Problems) {
    let each = scenario.flows.iter().map(|flow| match &flow.traffic {
        Traffic::Web(web) => u64::from(web.connections.get().min(web.objects.get())),
        _ => 0,
    });
    let count = each.fold(0, u64::saturating_add);
    if count > MOST_CONNECTIONS {
        let what = "connections of web traffic at the same time";
        problems.add(
            tree.span(way!["flows"]),
            Problem::TooMany { what, count, limit: MOST_CONNECTIONS },
        );
    }
}

/// A number for people: exact, or two digits with a power of ten.
fn about(number: f64) -> String {
    if number < 1e6 { format!("{number:.0}") } else { format!("{number:.1e}") }
}

/// The next number with one digit other than zero that is one, two or five.
fn round(number: u64) -> u64 {
    let mut power = 1u64;
    loop {
        for step in [1, 2, 5] {
            match power.checked_mul(step) {
                Some(round) if round >= number => return round,
                Some(_) => {}
                None => return u64::MAX,
            }
        }
        power = power.saturating_mul(10);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_said_shortly() {
        assert_eq!([about(12.0), about(3.04e12), about(2e7)], ["12", "3.0e12", "2.0e7"]);
        assert_eq!([round(1), round(3), round(1_001), round(6_000)], [1, 5, 2_000, 10_000]);
        assert_eq!(round(u64::MAX), u64::MAX);
        let too_many = too_many_runs(usize::MAX, usize::MAX).unwrap();
        assert!(too_many.contains(&format!("are {} runs", u64::MAX)), "{too_many}");
    }
}
