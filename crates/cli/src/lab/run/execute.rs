//! Making the runs that are not there.

use std::path::Path;

use anyhow::{Context, anyhow};
use rayon::prelude::*;
use transom_lab::emulate::Record;
use transom_lab::results::{Found, Plan, PlannedRun, Run, Store, StoredRun};
use transom_lab::run::{RunOptions, simulate};
use transom_lab::scenario::{Resolved, Scenario, Time};
use transom_report::labels::spaced;
use transom_report::{Page, RunInfo, run_command};
use transom_sim::measure::Recorder;
use transom_tcp::time::Duration;

use super::super::finish;
use super::super::interruption::Interruption;
use super::super::live::Live;
use super::emulated;
use super::progress::Progress;
use crate::output;

/// The experiment to run, and the directory for its results.
pub(super) struct Experiment<'a> {
    pub(super) scenario: &'a Scenario,
    /// The directory of files that it names.
    pub(super) beside: &'a Path,
    pub(super) plan: &'a Plan,
    pub(super) store: &'a Store,
    /// Whether what is there is made again.
    pub(super) fresh: bool,
    pub(super) interruption: &'a Interruption,
    /// Whether to write pictures beside the pages.
    pub(super) png: bool,
    /// The viewers of the runs.
    pub(super) live: Option<&'a Live>,
    /// How runs are emulated, if they are.
    pub(super) emulation: Option<Emulated>,
}

/// How runs are emulated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Emulated {
    /// Whether a run is kept in which the emulator fell behind.
    pub(crate) allow_late: bool,
}

/// The outcome of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It was made.
    Made,
    /// It was there already.
    There,
    /// It was made, but for a file that could not be written.
    Incomplete,
    /// It was broken off, or not begun.
    Missing,
    /// The emulator fell behind, and it was not kept.
    Late,
    /// Its task failed.
    Failed,
}

impl Outcome {
    pub(super) fn is_there(self) -> bool {
        matches!(self, Outcome::Made | Outcome::There | Outcome::Incomplete)
    }
}

/// Makes the runs that are not there, on all threads of the pool that this is called in.
pub(super) fn all(
    experiment: &Experiment<'_>,
    runs: &[&PlannedRun],
    progress: &Progress,
) -> anyhow::Result<Vec<Outcome>> {
    let one = |(number, run): (usize, &&PlannedRun)| {
        let outcome = one(experiment, number, run, progress);
        let outcome = outcome.inspect_err(|_| experiment.interruption.give_up());
        if let (Some(live), Ok(Outcome::Missing | Outcome::Late) | Err(_)) =
            (experiment.live, &outcome)
        {
            live.broken(number);
        }
        outcome
    };
    // Each on its own, in their order: they take long, and one thread's may take longer than another's.
    let outcomes: Vec<anyhow::Result<Outcome>> =
        runs.par_iter().with_max_len(1).enumerate().map(one).collect();
    outcomes.into_iter().collect()
}

fn one(
    experiment: &Experiment<'_>,
    number: usize,
    planned: &PlannedRun,
    progress: &Progress,
) -> anyhow::Result<Outcome> {
    let Experiment { scenario, beside, plan, store, interruption, png, live, emulation, .. } =
        *experiment;
    if interruption.is_requested() {
        return Ok(Outcome::Missing);
    }
    // Points are worked out when their turn comes: those of a large sweep are not all in memory.
    let variant = scenario
        .point(planned.point - 1)
        .ok_or_else(|| anyhow!("a file that point {} needs was removed", planned.point))?;
    let run = Run { plan, planned, variant: &variant };
    if let Some(stored) = there(experiment, run, progress)? {
        if let Some(live) = live {
            live.done(number, stored.manifest.passed(), None);
        }
        return Ok(Outcome::There);
    }
    let pending = store.begin(planned)?;
    let duration = variant.resolved.scenario.duration.0;
    let mut part = progress.part(duration);
    let page = Page::new(RunInfo {
        scenario: &variant.resolved,
        seed: planned.seed,
        point: (planned.point, plan.points.len()),
        settings: &variant.settings,
        command: run_command(Some(plan), planned.point, planned.seed, emulation.is_some()),
        version: &plan.version,
    });
    let mut look = |reached: Duration, recorder: Option<&Recorder>| {
        part.reached(reached);
        if let (Some(live), Some(recorder)) = (live, recorder) {
            let share = reached.as_nanos() as f64 / duration.as_nanos().max(1) as f64;
            live.reached(number, share, || {
                let state = format!("{} of {}", spaced(Time(reached)), spaced(Time(duration)));
                (page.partial(recorder), state)
            });
        }
    };
    let what = format!("point {}, seed {}", planned.point, planned.seed);
    let (scenario, seed) = (&variant.resolved, planned.seed);
    let options = RunOptions { output: Some(pending.directory()), ..RunOptions::new(beside) };
    let (seen, record) = match emulation {
        None => {
            let seen = simulate(scenario, seed, options, |reached, recorder| {
                look(reached, Some(recorder));
                !interruption.is_requested()
            });
            (seen.with_context(|| what.clone())?, None)
        }
        Some(_) => {
            let watched = live.is_some();
            let made = emulated::run(scenario, seed, options, interruption, watched, look);
            made.with_context(|| what.clone())?.unzip()
        }
    };
    let Some(seen) = seen else { return Ok(Outcome::Missing) };
    if let (Some(record), Some(Emulated { allow_late })) = (&record, emulation) {
        if !record.fidelity.late.is_empty() {
            let place = store.directory().join(&planned.directory);
            let place = allow_late.then_some(place);
            progress.suspend(|| emulated::warn(&what, &record.fidelity, place.as_deref()));
            if !allow_late {
                return Ok(Outcome::Late);
            }
        }
        record.write(pending.directory()).context("cannot write emulation.json")?;
    }
    let stored = pending.finish(run, &seen)?;
    for lost in &seen.lost {
        progress.suspend(|| output::note(format_args!("transom: {what}: {lost}")));
    }
    // Those that are compared with others get their page when the others are there.
    let passed = stored.manifest.passed();
    let data = if stored.manifest.comparisons.is_empty() {
        Some(finish::page(Some(plan), &stored, &variant.resolved, &seen, png)?)
    } else {
        live.map(|_| page.of_run(&seen, &stored.manifest.bands))
    };
    if let Some(live) = live {
        live.done(number, passed, data);
    }
    Ok(if seen.lost.is_empty() { Outcome::Made } else { Outcome::Incomplete })
}

/// Whether a run is there, and need not be made.
pub(super) fn is_there(
    experiment: &Experiment<'_>,
    planned: &PlannedRun,
    progress: &Progress,
) -> anyhow::Result<bool> {
    let variant = experiment
        .scenario
        .point(planned.point - 1)
        .ok_or_else(|| anyhow!("a file that point {} needs was removed", planned.point))?;
    let run = Run { plan: experiment.plan, planned, variant: &variant };
    Ok(there(experiment, run, progress)?.is_some())
}

/// The stored run, unless it is to be made.
fn there(
    experiment: &Experiment<'_>,
    run: Run<'_>,
    progress: &Progress,
) -> anyhow::Result<Option<StoredRun>> {
    if experiment.fresh {
        return Ok(None);
    }
    match experiment.store.renew(run)? {
        // One that was kept only because that was asked for then.
        Found::Finished(stored) if !is_acceptable(&stored, experiment.emulation)? => Ok(None),
        // Or one of which a capture or a log could not be written then.
        Found::Finished(stored) if !is_whole(&stored, &run.variant.resolved) => Ok(None),
        Found::Finished(stored) => {
            progress.skip();
            Ok(Some(stored))
        }
        Found::Damaged(error) => {
            progress.suspend(|| output::note(format_args!("{error}; it is run again")));
            Ok(None)
        }
        Found::Missing => Ok(None),
    }
}

/// Whether a run has all captures and logs that its scenario asks for.
fn is_whole(stored: &StoredRun, scenario: &Resolved) -> bool {
    let has = |name: &String| stored.manifest.files.iter().any(|file| file.name == *name);
    transom_lab::run::files(scenario).all(|name| has(&name))
}

/// Whether a stored run can replace a new one.
fn is_acceptable(stored: &StoredRun, emulation: Option<Emulated>) -> anyhow::Result<bool> {
    let allow_late = emulation.is_none_or(|emulation| emulation.allow_late);
    let record = Record::read(&stored.directory).context("cannot read emulation.json")?;
    Ok(allow_late || record.is_none_or(|record| record.fidelity.late.is_empty()))
}
