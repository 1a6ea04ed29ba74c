//! `transom lab list`: which results there are.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use serde::Serialize;
use serde_json::{Value, json};
use transom_lab::results::{Entry, Found, Manifest, Plan, State, Store};
use transom_lab::run::Judgement;
use transom_lab::scenario::{Setting, short_settings};

use crate::columns::{Side, lay_out};
use crate::output;
use crate::units::Bytes;

/// List results
///
/// For a results directory: its finished and its missing runs. For a directory of results directories: these.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  transom lab list
      all results in `results`
  transom lab list results/fairness
      the runs of one scenario
  transom lab list results/fairness --json
      for other programs")]
pub(crate) struct Args {
    /// A results directory, or one of them
    #[arg(default_value = "results", value_name = "DIR")]
    directory: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Lists results.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let directory = &args.directory;
    if let Ok(store) = Store::open(directory) {
        return runs(&store, args.json);
    }
    let stores = within(directory)?;
    if stores.is_empty() {
        let name = directory.display();
        bail!("there are no results in {name}; `transom lab run SCENARIO` makes some");
    }
    if args.json {
        output::json(&json!({ "results": stores }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let head = ["results", "scenario", "runs", "passed", "failed", "waiting", "size"];
    let mut lines = vec![head.map(String::from)];
    lines.extend(stores.iter().map(Summary::line));
    let left = Side::Left;
    print([left, left, Side::Right, Side::Right, Side::Right, Side::Right, Side::Right], &lines)
}

fn print<const N: usize>(sides: [Side; N], lines: &[[String; N]]) -> anyhow::Result<ExitCode> {
    lay_out(sides, lines).iter().try_for_each(output::line)?;
    Ok(ExitCode::SUCCESS)
}

/// The results directories in a directory, by name.
fn within(directory: &Path) -> anyhow::Result<Vec<Summary>> {
    let name = directory.display();
    if !directory.exists() {
        bail!("there is no directory {name}; `transom lab run SCENARIO` makes results");
    }
    let entries = fs::read_dir(directory)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .with_context(|| format!("cannot read {name}"))?;
    let mut paths: Vec<PathBuf> = entries.into_iter().map(|entry| entry.path()).collect();
    paths.sort();
    let stores = paths.iter().filter_map(|path| Store::open(path).ok());
    stores.map(|store| Summary::new(&store)).collect()
}

/// One of several results directories.
#[derive(Serialize)]
struct Summary {
    directory: PathBuf,
    scenario: String,
    planned: usize,
    finished: usize,
    passed: usize,
    failed: usize,
    waiting: usize,
    #[serde(rename = "bytes")]
    size: u64,
}

impl Summary {
    fn new(store: &Store) -> anyhow::Result<Summary> {
        let plan = store.plan()?;
        let entries = store.list()?;
        let scenario = plan.as_ref().map(|plan| plan.name.clone()).unwrap_or_default();
        let mut summary = Summary {
            directory: store.directory().into(),
            scenario,
            planned: plan.as_ref().map_or(entries.len(), |plan| plan.own().count()),
            finished: 0,
            passed: 0,
            failed: 0,
            waiting: 0,
            size: 0,
        };
        for entry in entries.iter().filter(|entry| entry.planned.is_some() || plan.is_none()) {
            let Found::Finished(stored) = &entry.found else { continue };
            summary.finished += 1;
            summary.size += stored.size()?;
            match stored.manifest.state() {
                State::Passed => summary.passed += 1,
                State::Failed => summary.failed += 1,
                State::Waiting => summary.waiting += 1,
                State::Done => {}
            }
        }
        Ok(summary)
    }

    fn line(&self) -> [String; 7] {
        [
            self.directory.display().to_string(),
            self.scenario.clone(),
            format!("{} of {}", self.finished, self.planned),
            self.passed.to_string(),
            self.failed.to_string(),
            self.waiting.to_string(),
            Bytes(self.size).to_string(),
        ]
    }
}

/// The runs of one results directory.
fn runs(store: &Store, as_json: bool) -> anyhow::Result<ExitCode> {
    let plan = store.plan()?;
    let entries = store.list()?;
    if as_json {
        let runs: Vec<Value> =
            entries.iter().map(|entry| run_json(entry, &plan)).collect::<anyhow::Result<_>>()?;
        let shard = plan.as_ref().and_then(|plan| plan.shard);
        let scenario = plan.as_ref().map(|plan| &plan.name);
        let directory = store.directory();
        output::json(&json!({
            "directory": directory, "scenario": scenario, "shard": shard, "runs": runs,
        }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let head = ["run", "point", "seed", "state", "bands", "size", "settings"];
    let mut lines = vec![head.map(String::from)];
    for entry in &entries {
        lines.push(line(entry, &plan)?);
    }
    // Without a sweep there is nothing to say of points.
    if plan.as_ref().is_some_and(|plan| plan.points.len() == 1)
        && entries.iter().all(|entry| entry.planned.is_some())
    {
        lines.iter_mut().for_each(|line| line[1].clear());
        lines[0][6].clear();
    }
    let sides =
        [Side::Left, Side::Right, Side::Right, Side::Left, Side::Right, Side::Right, Side::Left];
    if let Some(plan) = &plan {
        let mut text = format!("{}: ", plan.name);
        let finished = |entry: &&Entry| matches!(entry.found, Found::Finished(_));
        let done = entries.iter().filter(|entry| entry.planned.is_some()).filter(finished).count();
        text += &format!("{done} of {} runs are finished", plan.own().count());
        if let Some(shard) = plan.shard {
            text += &format!(" (shard {shard} of {})", plan.runs.len());
        }
        output::line(text)?;
    }
    print(sides, &lines)?;
    for entry in &entries {
        if let Found::Damaged(error) = &entry.found {
            output::note(error);
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The text for a run's state.
fn state(entry: &Entry, has_plan: bool) -> String {
    match &entry.found {
        Found::Missing => "missing".into(),
        Found::Damaged(_) => "damaged".into(),
        Found::Finished(_) if entry.planned.is_none() && has_plan => "orphaned".into(),
        Found::Finished(stored) => stored.manifest.state().to_string(),
    }
}

/// The settings of the sweep at a point.
fn point_settings(point: Option<usize>, plan: &Option<Plan>) -> &[Setting] {
    let mut points = plan.iter().flat_map(|plan| &plan.points);
    points.find(|one| Some(one.point) == point).map_or(&[], |point| &point.settings)
}

fn line(entry: &Entry, plan: &Option<Plan>) -> anyhow::Result<[String; 7]> {
    let state = state(entry, plan.is_some());
    let directory = entry.directory.clone();
    if let Found::Finished(stored) = &entry.found {
        let manifest = &stored.manifest;
        let held = manifest.judgements().filter(|one| one.passed).count();
        let all = manifest.bands.len() + manifest.comparisons.len();
        return Ok([
            directory,
            manifest.point.to_string(),
            manifest.seed.to_string(),
            state,
            if all == 0 { String::new() } else { format!("{held} of {all}") },
            Bytes(stored.size()?).to_string(),
            short_settings(&manifest.settings),
        ]);
    }
    let planned = entry.planned.as_ref();
    let point = planned.map(|run| run.point);
    let text = |number: Option<String>| number.unwrap_or_default();
    Ok([
        directory,
        text(point.map(|point| point.to_string())),
        text(planned.map(|run| run.seed.to_string())),
        state,
        String::new(),
        String::new(),
        short_settings(point_settings(point, plan)),
    ])
}

fn run_json(entry: &Entry, plan: &Option<Plan>) -> anyhow::Result<Value> {
    let planned = entry.planned.as_ref();
    let mut run = json!({
        "directory": entry.directory,
        "id": planned.map(|run| run.id),
        "point": planned.map(|run| run.point),
        "seed": planned.map(|run| run.seed),
        "settings": point_settings(planned.map(|run| run.point), plan),
        "planned": planned.is_some(),
        "finished": false,
    });
    match &entry.found {
        Found::Missing => {}
        Found::Damaged(error) => run["error"] = json!(error.to_string()),
        Found::Finished(stored) => {
            run["finished"] = json!(true);
            run["scenario"] = json!(stored.manifest.name);
            run["bytes"] = json!(stored.size()?);
            if let (Some(run), Value::Object(outcome)) =
                (run.as_object_mut(), outcome_json(&stored.manifest))
            {
                run.extend(outcome);
            }
        }
    }
    Ok(run)
}

/// A finished run, and what came out.
pub(super) fn outcome_json(manifest: &Manifest) -> Value {
    let bands: Vec<&Judgement> = manifest.judgements().collect();
    json!({
        "id": manifest.id,
        "version": manifest.version,
        "point": manifest.point,
        "settings": manifest.settings,
        "seed": manifest.seed,
        "packets": manifest.packets,
        "events": manifest.events,
        "passed": manifest.passed(),
        "bands": bands,
        "waiting": manifest.waiting(),
    })
}
