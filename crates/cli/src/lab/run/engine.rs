//! Sweeps on many machines: the missing runs become tasks of an engine that exists already.
//!
//! Theory of operation. The command makes the plan and finds the missing runs, as ever. Each of them becomes a task, `transom lab task`, which an engine
//! starts on some machine. All machines see the same results directory, under the same path, and so the results need no transport and no merge. When the
//! engine has finished, the command looks which runs are there, judges and compares them, and writes the pages: the bytes are those of one machine. A
//! failed task leaves nothing. Its run is named, and the same command again makes it.
//!
//! HyperQueue and Ray are asked through their Python modules, by the program `driver.py`, which is part of this command. It gets the tasks as JSON on
//! its standard input, and tells a line of JSON for each change on its standard output. Slurm gets a script ([`slurm`]). What an engine needs lies in
//! the directory `.engine` beside the runs, until all of them are there.

mod driver;
mod slurm;

use std::fs;
use std::path::{Path, PathBuf, absolute};

use anyhow::{Context, bail};
use clap::ValueEnum;
use rayon::ThreadPool;
use rayon::prelude::*;
use transom_device::own_file;
use transom_lab::results::{Found, PlannedRun, Store};

use super::execute::{self, Experiment, Outcome};
use super::progress::Progress;
use crate::output;

/// The directory, in a results directory, for what engines need.
const DIRECTORY: &str = ".engine";
/// So many failed runs are named.
const MOST_NAMED: usize = 10;

/// What makes the runs of a sweep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Engine {
    /// This process, on all processors
    #[default]
    Local,
    /// HyperQueue: a running server, found by HQ_SERVER_DIR or in its usual place; needs the Python module hyperqueue
    Hyperqueue,
    /// Ray: a running cluster, found by RAY_ADDRESS or on this machine; needs the Python module ray
    Ray,
    /// Slurm: a script for sbatch
    Slurm,
}

/// An engine, and how to use it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Engaged {
    pub(crate) engine: Engine,
    /// Whether to submit a script, and wait.
    pub(crate) submit: bool,
    /// The scenario's file, and its form.
    pub(crate) file: PathBuf,
    pub(crate) form: Option<String>,
}

/// The result of the work with an engine.
pub(super) enum Ended {
    /// The runs' outcomes.
    Outcomes(Vec<Outcome>),
    /// A script was written for so many runs, and nothing was run.
    Written(PathBuf, usize),
}

/// A task: the name of its run, for people too, and the file for what it says.
struct Task<'a> {
    run: &'a PlannedRun,
    log: PathBuf,
}

/// The directory in which tasks make their runs.
pub(in super::super) fn workshop(results: &Path) -> PathBuf {
    results.join(DIRECTORY).join("unfinished")
}

/// Lets the engine make the runs that are not there.
pub(super) fn all(
    engaged: &Engaged,
    experiment: &Experiment<'_>,
    runs: &[&PlannedRun],
    pool: &ThreadPool,
    progress: &Progress,
) -> anyhow::Result<Ended> {
    let there = |run: &&PlannedRun| execute::is_there(experiment, run, progress);
    let there: Vec<bool> =
        pool.install(|| runs.par_iter().map(there).collect::<anyhow::Result<_>>())?;
    // The tasks are in other directories.
    let results = absolute(experiment.store.directory()).context("cannot find the results")?;
    let directory = results.join(DIRECTORY);
    let place = |what: &str| format!("cannot write {}/{what}", directory.display());
    let missing: Vec<Task<'_>> = runs
        .iter()
        .zip(&there)
        .filter(|(_, there)| !**there)
        .map(|(run, _)| Task { run, log: directory.join(format!("{}.log", run.directory)) })
        .collect();
    let mut failure = None;
    if !missing.is_empty() {
        let command = command(engaged, &results, experiment.png)?;
        if engaged.engine != Engine::Slurm && directory.exists() {
            fs::remove_dir_all(&directory).with_context(|| place(""))?;
        }
        fs::create_dir_all(&directory).with_context(|| place(""))?;
        // What is there now would be taken for the new result.
        for Task { run, .. } in &missing {
            let old = results.join(&run.directory);
            if old.exists() {
                fs::remove_dir_all(&old)
                    .with_context(|| format!("cannot remove {}", old.display()))?;
            }
        }
        let name = &experiment.plan.name;
        match engaged.engine {
            Engine::Slurm => {
                let script = directory.join("slurm.sh");
                let text = slurm::script(name, &command, &missing, &directory);
                own_file::write_output(&script, text.as_bytes())
                    .with_context(|| place("slurm.sh"))?;
                slurm::check(&script)?;
                if !engaged.submit {
                    return Ok(Ended::Written(script, missing.len()));
                }
                slurm::submit(&script, experiment.interruption)?;
            }
            engine => {
                let work = driver::Work { engine, name, directory: &directory, command: &command };
                // Runs that were made before the engine failed count.
                failure = work.run(&missing, experiment.interruption, progress).err();
            }
        }
    }
    let outcome = |(run, there): (&&PlannedRun, bool)| match experiment.store.find(run) {
        Found::Finished(_) if there => Outcome::There,
        Found::Finished(_) => Outcome::Made,
        _ if experiment.interruption.is_requested() => Outcome::Missing,
        _ => Outcome::Failed,
    };
    let outcomes: Vec<Outcome> = runs.iter().zip(there).map(outcome).collect();
    if let Some(failure) = failure {
        return Err(failure);
    }
    name_failed(runs, &outcomes, &directory);
    Ok(Ended::Outcomes(outcomes))
}

/// Removes what engines needed, if all runs are there.
pub(super) fn clean<'a>(store: &Store, mut runs: impl Iterator<Item = &'a PlannedRun>) {
    let directory = store.directory().join(DIRECTORY);
    if directory.exists() && runs.all(|run| matches!(store.find(run), Found::Finished(_))) {
        // It is in nobody's way.
        let _ = fs::remove_dir_all(directory);
    }
}

/// The command of a task, but for the names of its runs.
fn command(engaged: &Engaged, results: &Path, png: bool) -> anyhow::Result<Vec<String>> {
    let program = std::env::current_exe().context("cannot find this program's file")?;
    let file = absolute(&engaged.file).context("cannot find the scenario")?;
    let text = |path: &Path| match path.to_str() {
        Some(text) => Ok(text.to_owned()),
        None => bail!("the path {} is not UTF-8, and engines take no other", path.display()),
    };
    let mut command = vec![text(&program)?, "lab".into(), "task".into(), text(&file)?];
    if let Some(form) = &engaged.form {
        command.extend(["--form".into(), form.clone()]);
    }
    command.extend(["--output".into(), text(results)?]);
    if png {
        command.push("--png".into());
    }
    Ok(command)
}

/// Says which runs failed, and what their tasks said last.
fn name_failed(runs: &[&PlannedRun], outcomes: &[Outcome], directory: &Path) {
    let failed = runs.iter().zip(outcomes).filter(|(_, one)| **one == Outcome::Failed);
    let failed: Vec<&PlannedRun> = failed.map(|(run, _)| *run).collect();
    for run in failed.iter().take(MOST_NAMED) {
        let log = directory.join(format!("{}.log", run.directory));
        let said = fs::read(&log).unwrap_or_default();
        let said = String::from_utf8_lossy(&said);
        let last = said.lines().rev().find(|line| !line.trim().is_empty());
        let last = last.unwrap_or("its task left no message");
        output::note(format_args!(
            "the run {} (point {}, seed {}) failed: {last}",
            run.directory, run.point, run.seed
        ));
    }
    if failed.len() > MOST_NAMED {
        output::note(format_args!("and {} more", failed.len() - MOST_NAMED));
    }
    if !failed.is_empty() {
        let all = runs.len();
        output::note(format_args!(
            "{} of {all} runs are missing: their tasks failed; {} has what they said. The same command again makes them",
            failed.len(),
            directory.display()
        ));
    }
}
