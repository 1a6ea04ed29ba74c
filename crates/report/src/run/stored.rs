//! The page of a run that is stored.

use std::io;

use transom_lab::emulate::Record;
use transom_lab::results::{Manifest, Plan, StoredRun};
use transom_lab::run::{Judgement, Observations};
use transom_lab::scenario::Resolved;

use super::{Page, RunInfo};
use crate::{ReportData, emulation, labels};

/// The page of a stored run, with the additional part of an emulated one. `scenario` and `seen` are the run's own, so that a caller that has just made
/// it need not read them; `plan` is that of its results.
///
/// # Errors
/// If what is kept of an emulated run, `emulation.json`, cannot be read.
///
/// ```no_run
/// use std::path::Path;
/// use transom_lab::results::StoredRun;
/// use transom_report::{REPORT, stored_run, write};
///
/// let directory = Path::new("results/fairness/run");
/// let stored = StoredRun::open(directory)?;
/// let data = stored_run(None, &stored, &stored.scenario()?, &stored.observations()?)?;
/// write(&directory.join(REPORT), &data)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn stored_run(
    plan: Option<&Plan>,
    stored: &StoredRun,
    scenario: &Resolved,
    seen: &Observations,
) -> io::Result<ReportData> {
    let Manifest { point, settings, seed, version, units, .. } = &*stored.manifest;
    let judgements: Vec<Judgement> = stored.manifest.judgements().cloned().collect();
    let record = Record::read(&stored.directory)?;
    let command = match units {
        None => run_command(plan, *point, *seed, record.is_some()),
        Some(_) => "transom.lab.sweep(…) in Python, with the units that are named below".to_owned(),
    };
    let points = plan.map_or(0, |plan| plan.points.len());
    let page = Page::new(RunInfo {
        scenario,
        seed: *seed,
        point: (*point, points),
        settings,
        command,
        version,
    });
    let mut data = page.of_run(seen, &judgements);
    data.notes.extend(labels::departures(&stored.manifest));
    if let Some(units) = units {
        data.notes.push(format!("With units of a program's own: {units}."));
    }
    if let Some(record) = &record {
        emulation::add(record, &mut data);
    }
    Ok(data)
}

/// The command that makes a run again.
pub fn run_command(plan: Option<&Plan>, point: usize, seed: u64, emulated: bool) -> String {
    let mode = if emulated { " --emulate" } else { "" };
    let Some(plan) = plan else {
        return format!("transom lab run scenario.toml{mode} --seed {seed}");
    };
    let mut command = format!("transom lab run {}{mode}", plan.file_and_form());
    if plan.points.len() > 1 {
        command += &format!(" --point {point}");
    }
    command + &format!(" --seed {seed}")
}
