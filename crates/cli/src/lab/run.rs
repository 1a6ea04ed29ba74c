//! `transom lab run`: simulates or emulates every point of a scenario's sweep with every seed, and judges what comes out.
//!
//! Theory of operation. The command makes a *plan* of all runs and finds those that the results directory has already. It makes the
//! others on all processors ([`execute`]). Each run is judged, written and freed when it finishes, so a sweep of any length needs only
//! the memory of the runs in progress. Then the command compares runs where the scenario asks for it, writes pages ([`finish`]), and
//! shows all results ([`verdict`]).

mod arguments;
pub(super) mod emulated;
pub(crate) mod engine;
mod execute;
mod progress;
mod verdict;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::bail;
use transom_device::own_file;
use transom_lab::results::{Choice, Plan, PlannedRun, Store};
use transom_lab::scenario::{self, Scenario, Setting};

use super::finish::{self, Pages};
use super::interruption::Interruption;
use super::live::Live;
use super::programs::{self, Consent};
use super::tui::{self, Tui};
use super::watch::Watch;
use crate::features::Feature;
use crate::output;
pub(crate) use arguments::{Args, Shown};
use engine::{Ended, Engaged, Engine};
pub(crate) use execute::Emulated;
use execute::{Experiment, Outcome};
use progress::Progress;

/// Runs the scenario.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    args.check()?;
    let scenario = match Scenario::load(&args.file, args.form.as_deref()) {
        Ok(scenario) => scenario,
        Err(errors) => {
            output::note(&errors);
            return Ok(ExitCode::FAILURE);
        }
    };
    if args.emulate || args.consent() == Consent::Refused {
        programs::ask(&args.file, &scenario, args.consent(), args.shown.quiet)?;
    }
    refuse_too_many(&scenario, args.seeds().as_deref())?;
    let wanted = Plan::new(
        &scenario,
        Choice {
            file: args.file_name(),
            seeds: args.seeds(),
            shard: args.shard,
            emulated: args.emulate,
            units: None,
        },
    );
    let points = scenario.points();
    if let Some(point) = args.point.iter().find(|point| **point > points) {
        bail!("{} has {points} points; there is no point {point}", args.file.display());
    }
    let directory = match &args.output {
        Some(directory) => directory.clone(),
        None => Path::new("results").join(&wanted.name),
    };
    let job = Job {
        scenario: &scenario,
        beside: args.file.parent().unwrap_or(Path::new("")),
        plan: wanted,
        directory,
        points: args.point.clone(),
        jobs: args.jobs(),
        fresh: args.fresh,
        emulation: args.emulate.then_some(Emulated { allow_late: args.allow_late }),
        shown: args.shown.clone(),
        engaged: args.engaged(),
    };
    job.prepare()?;
    let interruption = Interruption::handle()?;
    job.run(&interruption)
}

/// Refuses more runs than a scenario itself may ask for, if other seeds are given.
pub(crate) fn refuse_too_many(scenario: &Scenario, seeds: Option<&[u64]>) -> anyhow::Result<()> {
    let (points, seeds) = (scenario.points(), seeds.unwrap_or(&scenario.seeds).len());
    if let Some(text) = scenario::too_many_runs(points, seeds) {
        bail!("{text}: give fewer --seeds");
    }
    Ok(())
}

/// The runs to make, and how to show them.
pub(crate) struct Job<'a> {
    pub(crate) scenario: &'a Scenario,
    /// The directory of the scenario's files.
    pub(crate) beside: &'a Path,
    /// The runs that are wanted.
    pub(crate) plan: Plan,
    /// The directory for results.
    pub(crate) directory: PathBuf,
    /// Only these points, if any are named.
    pub(crate) points: Vec<usize>,
    /// Runs at a time; zero for as many as there are processors.
    pub(crate) jobs: usize,
    /// Whether to repeat stored runs.
    pub(crate) fresh: bool,
    /// How runs are emulated, if they are.
    pub(crate) emulation: Option<Emulated>,
    pub(crate) shown: Shown,
    /// What makes the runs.
    pub(crate) engaged: Engaged,
}

impl Job<'_> {
    /// The steps that need a process with one thread.
    pub(crate) fn prepare(&self) -> anyhow::Result<()> {
        own_file::check_output_directory(&self.directory)?;
        let Shown { png, watch, tui, .. } = self.shown;
        if png {
            Feature::PNG.need()?;
        }
        if watch.is_some() {
            Feature::WEB.need()?;
        }
        if tui {
            tui::check()?;
        }
        if self.emulation.is_some() {
            emulated::prepare(self.scenario)?;
        }
        Ok(())
    }

    /// Makes the missing runs, and shows the results of all of them.
    pub(crate) fn run(&self, interruption: &Interruption) -> anyhow::Result<ExitCode> {
        let Job { scenario, plan: wanted, directory, emulation, .. } = self;
        let Shown { png, watch, tui, json, quiet } = self.shown;
        let store = Store::create(directory)?;
        let plan = planned(&store, wanted)?;
        let runs: Vec<&PlannedRun> = plan
            .own()
            .filter(|run| wanted.seeds.contains(&run.seed))
            .filter(|run| self.points.is_empty() || self.points.contains(&run.point))
            .collect();
        if runs.is_empty() {
            bail!("nothing to run: this part of the {} runs is empty", plan.runs.len());
        }

        let is_followed = tui || watch.is_some();
        let live = is_followed.then(|| followed(scenario, &store, &plan, &runs));
        let watch = match (&live, watch) {
            (Some(live), Some(address)) => {
                let watch = Watch::start(address, live.clone())?;
                output::note(format_args!("Watch it at {}", watch.url()));
                Some(watch)
            }
            _ => None,
        };
        let pool = rayon::ThreadPoolBuilder::new().num_threads(self.jobs).build()?;
        let progress = Progress::new(runs.len(), quiet || json || tui);
        let tui = match &live {
            Some(live) if tui => Some(Tui::start(live.clone(), progress.show())?),
            _ => None,
        };
        let experiment = Experiment {
            scenario,
            beside: self.beside,
            plan: &plan,
            store: &store,
            fresh: self.fresh,
            interruption,
            png,
            live: live.as_deref(),
            emulation: *emulation,
        };
        let ended = match self.engaged.engine {
            Engine::Local => {
                pool.install(|| execute::all(&experiment, &runs, &progress)).map(Ended::Outcomes)
            }
            _ => engine::all(&self.engaged, &experiment, &runs, &pool, &progress),
        };
        let outcomes = match ended.inspect_err(|_| progress.finish())? {
            Ended::Outcomes(outcomes) => outcomes,
            Ended::Written(script, missing) => {
                progress.finish();
                return written(&script, missing, runs.len(), json);
            }
        };
        let done: Vec<&PlannedRun> = runs
            .iter()
            .zip(&outcomes)
            .filter(|(_, one)| one.is_there())
            .map(|(run, _)| *run)
            .collect();
        progress.next("finishing", done.len());
        let finished = pool.install(|| {
            // Runs have their numbers in the list of all only if none is missing.
            let live = live.as_deref().filter(|_| done.len() == runs.len());
            let pages = Pages { png, anew: false, live };
            finish::all(&store, Some(&plan), &done, pages, interruption, || progress.step())
        });
        progress.finish();
        finished?;
        finish::index(&store, png, None)?;
        let summary = pool.install(|| finish::summary(&store))?;
        engine::clean(&store, plan.own());
        let hurry = || interruption.is_requested();
        if let Some(live) = &live {
            live.end();
        }
        tui.map_or(Ok(()), |tui| tui.finish(hurry))?;
        if let Some(watch) = watch {
            watch.finish(hurry);
        }

        let all = runs.len();
        let count = |outcome| outcomes.iter().filter(|one| **one == outcome).count();
        let already = count(Outcome::There);
        let shown = verdict::Shown { json, points: plan.points.len() > 1, already };
        let all_hold = verdict::show(&store, &done, all, &shown, &summary)?;
        let orphans = store.orphans()?.len();
        if orphans > 0 {
            let (runs, are) = if orphans == 1 { ("run", "is") } else { ("runs", "are") };
            let directory = store.directory().display();
            output::note(format_args!(
                "{orphans} {runs} in {directory} {are} of another form of the scenario: `transom lab prune {directory}` removes them"
            ));
        }
        if let Some(status) = interruption.status() {
            let missing = all - done.len();
            output::note(format_args!(
                "interrupted: {missing} of {all} runs are missing; the same command again makes them"
            ));
            return Ok(ExitCode::from(status));
        }
        let late = count(Outcome::Late);
        if late > 0 {
            output::note(format_args!(
                "{late} of {all} runs are missing: the emulator fell behind"
            ));
        }
        let incomplete = count(Outcome::Incomplete);
        if incomplete > 0 {
            output::note(format_args!(
                "{incomplete} of {all} runs lack a capture or a log, and have all else; the same command again makes them anew"
            ));
        }
        let failed = outcomes.contains(&Outcome::Failed);
        Ok(if all_hold && late == 0 && incomplete == 0 && !failed {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        })
    }
}

/// Says how to go on with a script that was written.
fn written(script: &Path, missing: usize, all: usize, json: bool) -> anyhow::Result<ExitCode> {
    if json {
        output::json(&serde_json::json!({ "script": script, "missing": missing, "runs": all }))?;
    } else {
        let script = script.display();
        output::line(format_args!("{missing} of {all} runs are missing. They are in {script}."))?;
        output::line(format_args!("Submit it: sbatch '{script}'"))?;
        output::line("When it has ended, the same command shows the results.")?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Makes some runs of a plan, one after the other, for a process that oversees many.
pub(super) fn task(
    scenario: &Scenario,
    beside: &Path,
    plan: &Plan,
    store: &Store,
    runs: &[&PlannedRun],
    png: bool,
    interruption: &Interruption,
) -> anyhow::Result<()> {
    let experiment = Experiment {
        scenario,
        beside,
        plan,
        store,
        fresh: false,
        interruption,
        png,
        live: None,
        emulation: None,
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build()?;
    let progress = Progress::new(runs.len(), true);
    pool.install(|| execute::all(&experiment, runs, &progress)).map(|_| ())
}

/// The runs, for viewers.
fn followed(scenario: &Scenario, store: &Store, plan: &Plan, runs: &[&PlannedRun]) -> Arc<Live> {
    let header = scenario.point(0).map(|variant| variant.resolved.scenario);
    let title = header.and_then(|header| header.title).unwrap_or_else(|| plan.name.clone());
    let label = |run: &PlannedRun| {
        let point = plan.points.iter().find(|point| point.point == run.point);
        let settings = point.into_iter().flat_map(|point| &point.settings);
        // The last word of a path says enough in a list.
        let short = |setting: &Setting| {
            let word = setting.path.rsplit('.').next().unwrap_or_default();
            format!("{word} = {}", setting.value)
        };
        let settings: Vec<String> = settings.map(short).collect();
        let seed = format!("seed {}", run.seed);
        if settings.is_empty() { seed } else { format!("{}, {seed}", settings.join(", ")) }
    };
    let page =
        |run: &PlannedRun| store.directory().join(&run.directory).join(transom_report::REPORT);
    Live::new(title, runs.iter().map(|run| (label(run), page(run))).collect())
}

/// The plan to use: the directory's own if it includes everything that is wanted. Repeating one run of a sweep keeps the others.
fn planned(store: &Store, wanted: &Plan) -> anyhow::Result<Plan> {
    // A file that cannot be read is replaced.
    if let Ok(Some(own)) = store.plan()
        && own.includes(wanted)
    {
        return Ok(own);
    }
    store.set_plan(wanted)?;
    Ok(wanted.clone())
}
