//! The overview of stored runs.

use rayon::prelude::*;
use transom_lab::results::{Point, Store, StoreError, StoredRun};
use transom_lab::run::{Judgement, Observations, judge};
use transom_lab::scenario::{
    Band, Direction, Measure, Name, Quantity, Resolved, Setting, Statistic, Time,
};

use super::{Overview, RunOfSweep, bottlenecks, profiles};
use crate::{REPORT, ReportData};

/// As many links are measured where nothing is expected.
const MOST_LINKS: usize = 3;
/// As many groups of flows with a profile of their own are measured where nothing is expected.
const MOST_GROUPS: usize = 5;

/// The page of all runs of a results directory, drawn over the setting with a path if one is chosen; none if there is no run in it.
///
/// # Errors
/// If something that is stored cannot be read.
///
/// ```no_run
/// use std::path::Path;
/// use transom_lab::results::Store;
/// use transom_report::{INDEX, sweep, write};
///
/// let directory = Path::new("results/fairness");
/// if let Some(data) = sweep(&Store::open(directory)?, None)? {
///     write(&directory.join(INDEX), &data)?;
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn sweep(store: &Store, over: Option<&str>) -> Result<Option<ReportData>, StoreError> {
    let overview = overview(store, false)?;
    Ok(overview.map(|overview| Overview { over: over.map(str::to_owned), ..overview }.data()))
}

/// Two results directories on one page: which of them it is, is one more value that is swept. Expectations are left out, as each has its own.
///
/// # Errors
/// If something that is stored cannot be read.
pub fn two_sweeps(names: [&str; 2], stores: [&Store; 2]) -> Result<Option<ReportData>, StoreError> {
    let mut all: Option<Overview> = None;
    for (name, store) in names.into_iter().zip(stores) {
        let Some(mut one) = overview(store, true)? else { continue };
        let directory = std::path::absolute(store.directory());
        let directory = directory.unwrap_or_else(|_| store.directory().to_path_buf());
        let before = all.iter().flat_map(|all| &all.points).map(|point| point.point).max();
        for point in &mut one.points {
            point.point += before.unwrap_or(0);
            let which = Setting { path: "results".into(), value: name.into() };
            point.settings.insert(0, which);
        }
        for run in &mut one.runs {
            run.point += before.unwrap_or(0);
            run.page = directory.join(&run.page).display().to_string();
        }
        match &mut all {
            None => all = Some(one),
            Some(all) => {
                all.points.extend(one.points);
                all.runs.extend(one.runs);
                all.planned += one.planned;
                all.seeds.extend(one.seeds);
                all.seeds.sort_unstable();
                all.seeds.dedup();
            }
        }
    }
    let Some(mut all) = all else { return Ok(None) };
    // Each point has a value for everything that either of them sweeps.
    let mut paths: Vec<String> = Vec::new();
    for setting in all.points.iter().flat_map(|point| &point.settings) {
        if !paths.contains(&setting.path) {
            paths.push(setting.path.clone());
        }
    }
    for point in &mut all.points {
        let own = std::mem::take(&mut point.settings);
        let value = |path: &String| {
            let found = own.iter().find(|setting| setting.path == *path);
            found.map_or_else(|| "–".to_owned(), |setting| setting.value.clone())
        };
        let settings = paths.iter();
        point.settings =
            settings.map(|path| Setting { path: path.clone(), value: value(path) }).collect();
    }
    let [one, other] = names;
    all.title = format!("{one} and {other}: {}", all.title);
    all.command = String::new();
    Ok(Some(all.data()))
}

fn overview(store: &Store, main_only: bool) -> Result<Option<Overview>, StoreError> {
    let plan = store.plan()?;
    let stored = store.runs()?;
    let Some(first) = stored.first() else { return Ok(None) };
    let scenario = first.scenario()?;
    let header = &scenario.scenario;
    let expects = |run: &StoredRun| run.manifest.judgements().next().is_some();
    let nothing_expected = main_only || !stored.iter().any(expects);
    let runs: Vec<RunOfSweep> = stored
        .par_iter()
        .map(|run| {
            let manifest = &run.manifest;
            let scenario = run.scenario()?;
            let profiles = profiles::of(&scenario);
            let judgements: Vec<Judgement> = if nothing_expected {
                main_numbers(&scenario, &run.observations()?)
            } else {
                manifest.judgements().cloned().collect()
            };
            let directory = run.directory.file_name().unwrap_or_default().to_string_lossy();
            Ok(RunOfSweep {
                point: manifest.point,
                seed: manifest.seed,
                page: format!("{directory}/{REPORT}"),
                judgements,
                passed: manifest.passed(),
                profiles,
            })
        })
        .collect::<Result<_, StoreError>>()?;
    let title = header.title.clone().unwrap_or_else(|| header.name.to_string());
    let description = header.description.clone().unwrap_or_default();
    let version = first.manifest.version.clone();
    Ok(Some(match plan {
        Some(plan) => Overview {
            command: format!("transom lab run {}", plan.file_and_form()),
            title,
            description,
            planned: plan.own().count(),
            part: plan.shard.map(|shard| shard.to_string()),
            points: plan.points,
            seeds: plan.seeds,
            runs,
            version,
            over: None,
        },
        // Without a plan there is what there is.
        None => {
            let mut points: Vec<Point> = Vec::new();
            let mut seeds = Vec::new();
            for run in &stored {
                let manifest = &run.manifest;
                if !points.iter().any(|point| point.point == manifest.point) {
                    let settings = manifest.settings.clone();
                    points.push(Point { point: manifest.point, settings });
                }
                if !seeds.contains(&manifest.seed) {
                    seeds.push(manifest.seed);
                }
            }
            Overview {
                command: String::new(),
                title,
                description,
                planned: runs.len(),
                part: None,
                points,
                seeds,
                runs,
                version,
                over: None,
            }
        }
    }))
}

/// The main numbers of a run, for a scenario without expectations: goodput of all flows and of those of each profile, fairness, and the use
/// and the queue of the links that can be a bottleneck.
pub fn main_numbers(scenario: &Resolved, seen: &Observations) -> Vec<Judgement> {
    let mut scenario = scenario.clone();
    scenario.expect = of_interest(&scenario);
    judge(&scenario, seen)
}

/// The default measurements of a scenario without expectations: goodput, fairness, and the use of the links that can be a bottleneck.
fn of_interest(scenario: &Resolved) -> Vec<Band> {
    let band = |measure, statistic, link: Option<&Name>| Band {
        quantity: Quantity {
            measure,
            flows: match link {
                Some(_) => Vec::new(),
                None => scenario.flows.iter().map(|flow| flow.name.clone()).collect(),
            },
            link: link.cloned(),
            direction: link.map(|_| Direction::There),
            statistic,
            from: scenario.scenario.warm_up,
            until: Time(scenario.scenario.duration.0),
            reaches: None,
            stays_above: None,
            window: None,
        },
        min: None,
        max: None,
        why: None,
        column: None,
        claim: None,
        relative_to: None,
        difference: false,
    };
    let all = band(Measure::Goodput, Some(Statistic::Sum), None);
    let of_group = |(_, flows): (String, Vec<Name>)| {
        let mut band = all.clone();
        band.quantity.flows = flows;
        band
    };
    let groups = profiles::groups(scenario);
    let mut bands: Vec<Band> = groups.into_iter().take(MOST_GROUPS).map(of_group).collect();
    bands.push(all.clone());
    if scenario.flows.len() > 1 {
        bands.push(band(Measure::Jain, None, None));
    }
    let tcp = scenario.flows.iter().filter(|flow| flow.is_tcp());
    let tcp: Vec<Name> = tcp.map(|flow| flow.name.clone()).collect();
    if !tcp.is_empty() {
        for (measure, statistic) in
            [(Measure::Retransmissions, Statistic::Sum), (Measure::Rtt, Statistic::Mean)]
        {
            let mut band = band(measure, Some(statistic), None);
            band.quantity.flows = tcp.clone();
            bands.push(band);
        }
    }
    // Others can hardly be full.
    let links = bottlenecks::of(scenario).into_iter().filter(|link| link.there.rate.is_some());
    for link in links.take(MOST_LINKS) {
        bands.push(band(Measure::Utilisation, None, Some(&link.name)));
        bands.push(band(Measure::QueueDelay, Some(Statistic::Mean), Some(&link.name)));
    }
    bands
}
