//! The last steps after the runs, whether they are new, stored or merged: judges the bands that compare runs, and writes pages.

use std::fs;
use std::path::Path;

use anyhow::Context;
use rayon::prelude::*;
use transom_lab::results::{Found, Line, Plan, PlannedRun, Store, StoredRun, Summary};
use transom_lab::run::Observations;
use transom_lab::scenario::Resolved;
use transom_report::{self as report, INDEX, REPORT, ReportData};

use super::interruption::Interruption;
use super::live::Live;

/// The pages to write, and who is notified.
#[derive(Clone, Copy, Default)]
pub(super) struct Pages<'a> {
    /// Whether to write pictures too.
    pub(super) png: bool,
    /// Those that are there already, too.
    pub(super) anew: bool,
    /// The viewers of the runs; the runs have the same numbers there as in the list.
    pub(super) live: Option<&'a Live>,
}

/// Finishes these runs, on all threads of the pool that this is called in. `done` is called after each.
///
/// After an interruption, the next call does the rest.
pub(super) fn all(
    store: &Store,
    plan: Option<&Plan>,
    runs: &[&PlannedRun],
    pages: Pages<'_>,
    interruption: &Interruption,
    done: impl Fn() + Sync,
) -> anyhow::Result<()> {
    runs.par_iter().with_max_len(1).enumerate().try_for_each(|(number, run)| {
        if interruption.is_requested() {
            return Ok(());
        }
        // Values that cannot be used are named when they are shown.
        let Found::Finished(mut stored) = store.find(run) else { return Ok(()) };
        let changed = store.compare(&mut stored)?;
        if changed || pages.anew || !has_pages(&stored.directory, pages.png) {
            let data =
                page(plan, &stored, &stored.scenario()?, &stored.observations()?, pages.png)?;
            if let Some(live) = pages.live {
                live.done(number, stored.manifest.passed(), Some(data));
            }
        }
        done();
        Ok(())
    })
}

/// Whether the pages of a run are there.
fn has_pages(directory: &Path, png: bool) -> bool {
    let is_picture = |entry: fs::DirEntry| entry.path().extension() == Some("png".as_ref());
    let pictures = || fs::read_dir(directory).is_ok_and(|all| all.flatten().any(is_picture));
    directory.join(REPORT).is_file() && (!png || pictures())
}

/// Writes the page of a run, and gives what is in it.
pub(super) fn page(
    plan: Option<&Plan>,
    stored: &StoredRun,
    scenario: &Resolved,
    seen: &Observations,
    png: bool,
) -> anyhow::Result<ReportData> {
    let data =
        report::stored_run(plan, stored, scenario, seen).context("cannot read emulation.json")?;
    write(&stored.directory, REPORT, &data, png)?;
    Ok(data)
}

/// Writes the page of all runs, if there are several, drawn over a setting if one is chosen. Says whether there is one.
pub(super) fn index(store: &Store, png: bool, over: Option<&str>) -> anyhow::Result<bool> {
    // A single run has nothing to be compared with.
    let single = store.plan()?.is_some_and(|plan| plan.runs.len() < 2);
    if single {
        return Ok(false);
    }
    let Some(data) = report::sweep(store, over)? else { return Ok(false) };
    write(store.directory(), INDEX, &data, png)?;
    Ok(true)
}

/// Writes the table with a line for each run, and gives it.
pub(super) fn summary(store: &Store) -> anyhow::Result<Summary> {
    let runs = store.runs()?;
    let lines = runs.par_iter().map(Line::of).collect::<Result<Vec<Line>, _>>()?;
    let summary = Summary::of(lines);
    summary.write(store)?;
    Ok(summary)
}

/// Writes a page atomically, and its pictures if they are wanted.
fn write(directory: &Path, name: &str, data: &ReportData, png: bool) -> anyhow::Result<()> {
    let path = directory.join(name);
    let unfinished = directory.join(format!(".unfinished-{name}"));
    report::write(&unfinished, data)
        .and_then(|()| fs::rename(&unfinished, &path))
        .with_context(|| format!("cannot write {}", path.display()))?;
    if png { pictures(directory, data) } else { Ok(()) }
}

#[cfg(feature = "png")]
fn pictures(directory: &Path, data: &ReportData) -> anyhow::Result<()> {
    report::pictures(directory, data)
        .map(|_| ())
        .with_context(|| format!("cannot write pictures to {}", directory.display()))
}

/// This build cannot draw PNG files. The commands refuse `--png` before they run anything.
#[cfg(not(feature = "png"))]
fn pictures(_: &Path, _: &ReportData) -> anyhow::Result<()> {
    Err(crate::features::Feature::PNG.missing())
}
