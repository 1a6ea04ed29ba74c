//! `transom lab run`: simulates every point of a scenario's sweep with every seed, and judges what comes out.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use anyhow::{Context, bail};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use rayon::prelude::*;
use serde_json::{Value, json};
use transom_lab::run::{Judgement, Observations, compare, flows_csv, judge, links_csv, simulate};
use transom_lab::scenario::{Scenario, Variant};

use super::page::Page;
use super::words;
use crate::output;

/// Run a scenario in the simulator
///
/// Every point of its sweep is run with each of its seeds, on all processors, in virtual time: the same scenario and seed give the
/// same result on every machine. What was seen is written to a directory for each run (tables, the scenario with everything written out, and a
/// page with charts, report.html), and what was expected is judged. The command succeeds if all of it holds.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  transom lab run fairness.toml
      run it, with results in results/fairness
  transom lab run fairness.toml --seeds 20
      with the seeds from 1 to 20 instead of the scenario's own
  transom lab run fairness.toml -o /tmp/fairness --json
      for other programs")]
pub(crate) struct Args {
    /// The scenario
    file: PathBuf,
    /// Run with the seeds from 1 to N instead of the scenario's
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    seeds: Option<u64>,
    /// Where results go; by default results/NAME
    #[arg(long, short, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Show no progress
    #[arg(long, short)]
    quiet: bool,
}

/// One run: a point of the sweep and a seed.
struct Run<'a> {
    variant: &'a Variant,
    seed: u64,
}

/// What became of it.
struct Outcome {
    observations: Observations,
    judgements: Vec<Judgement>,
    directory: PathBuf,
}

/// Runs the scenario.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let scenario = match Scenario::load(&args.file) {
        Ok(scenario) => scenario,
        Err(errors) => {
            output::note(&errors);
            return Ok(ExitCode::FAILURE);
        }
    };
    let seeds: Vec<u64> = match args.seeds {
        Some(count) => (1..=count).collect(),
        None => scenario.seeds().to_vec(),
    };
    let variants: Vec<Variant> = scenario.sweep().collect();
    let Some(first) = variants.first() else { bail!("there is nothing to run") };
    let name = first.resolved.scenario.name.as_str();
    let results = args.output.clone().unwrap_or_else(|| Path::new("results").join(name));
    let beside = args.file.parent().unwrap_or(Path::new(""));

    let interrupted = Arc::new(AtomicBool::new(false));
    let status = Arc::new(AtomicU8::new(0));
    let (tell, tell_status) = (interrupted.clone(), status.clone());
    crate::interrupt::handle(move |status| {
        tell_status.store(status, Ordering::Relaxed);
        tell.store(true, Ordering::Relaxed);
    })?;

    let runs: Vec<Run<'_>> = variants
        .iter()
        .flat_map(|variant| seeds.iter().map(move |&seed| Run { variant, seed }))
        .collect();
    let progress = progress(runs.len(), args.quiet || args.json);
    let outcomes: Vec<anyhow::Result<Option<Outcome>>> =
        runs.par_iter().map(|run| one(run, beside, &results, &interrupted, &progress)).collect();
    progress.finish_and_clear();

    let mut finished = Vec::new();
    for outcome in outcomes {
        finished.push(outcome?);
    }
    let mut all_hold = true;
    let mut listed = Vec::new();
    for (index, (run, outcome)) in runs.iter().zip(&finished).enumerate() {
        let Some(outcome) = outcome else { continue };
        let mut judgements = outcome.judgements.clone();
        for comparison in &run.variant.comparisons {
            // The run of the other point with the same seed.
            let other = comparison.baseline * seeds.len() + index % seeds.len();
            if let Some(Some(baseline)) = finished.get(other) {
                judgements.push(compare(comparison, &outcome.observations, &baseline.observations));
            }
        }
        all_hold &= judgements.iter().all(|one| one.passed);
        let summary = summary(run, outcome, &judgements);
        write(&outcome.directory.join("summary.json"), &format!("{summary:#}\n"))?;
        page(&args, run, outcome, &judgements)?;
        if args.json {
            listed.push(summary);
        } else {
            output::line(report(run, &judgements, variants.len() > 1, seeds.len() > 1))?;
        }
    }
    if args.json {
        output::json(&json!({ "passed": all_hold, "runs": listed }))?;
    } else if !listed.is_empty() || finished.iter().any(Option::is_some) {
        output::line(format_args!("Results are in {}.", results.display()))?;
    }
    if interrupted.load(Ordering::Relaxed) {
        let missing = finished.iter().filter(|one| one.is_none()).count();
        output::note(format_args!("interrupted: {missing} of {} runs are missing", runs.len()));
        return Ok(ExitCode::from(status.load(Ordering::Relaxed)));
    }
    Ok(if all_hold { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What a run's part of the bar is divided into.
const PARTS: u64 = 1000;

fn progress(runs: usize, hidden: bool) -> ProgressBar {
    let target = if hidden { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
    let bar = ProgressBar::with_draw_target(Some(runs as u64 * PARTS), target);
    if let Ok(style) = ProgressStyle::with_template("{wide_bar} {percent:>3}%  {msg}  {eta} left") {
        bar.set_style(style);
    }
    bar.set_message(format!("{runs} run{}", if runs == 1 { "" } else { "s" }));
    bar
}

/// Simulates one run and writes down what was seen. None if it was broken off, of which nothing is left.
fn one(
    run: &Run<'_>,
    beside: &Path,
    results: &Path,
    interrupted: &AtomicBool,
    progress: &ProgressBar,
) -> anyhow::Result<Option<Outcome>> {
    let resolved = &run.variant.resolved;
    let end = resolved.scenario.duration.0.as_nanos().max(1);
    let mut shown = 0;
    let seen = simulate(resolved, run.seed, beside, |reached| {
        let part = (u128::from(reached.as_nanos()) * u128::from(PARTS) / u128::from(end)) as u64;
        progress.inc(part - shown);
        shown = part;
        !interrupted.load(Ordering::Relaxed)
    })?;
    let Some(observations) = seen else { return Ok(None) };
    let directory = results.join(resolved.id(run.seed, env!("CARGO_PKG_VERSION")).short());
    fs::create_dir_all(&directory)
        .with_context(|| format!("cannot make the directory {}", directory.display()))?;
    write(&directory.join("scenario.toml"), &resolved.to_toml())?;
    write(&directory.join("flows.csv"), &flows_csv(resolved, run.seed, &observations))?;
    write(&directory.join("links.csv"), &links_csv(resolved, run.seed, &observations))?;
    let judgements = judge(resolved, &observations);
    Ok(Some(Outcome { observations, judgements, directory }))
}

/// Writes a file as a whole: who reads it meanwhile finds the old one or the new one.
fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    let unfinished = path.with_extension("unfinished");
    fs::write(&unfinished, text)
        .and_then(|()| fs::rename(&unfinished, path))
        .with_context(|| format!("cannot write {}", path.display()))
}

/// Writes the report.
fn page(
    args: &Args,
    run: &Run<'_>,
    outcome: &Outcome,
    judgements: &[Judgement],
) -> anyhow::Result<()> {
    let settings: Vec<String> = run.variant.settings.iter().map(ToString::to_string).collect();
    let path = outcome.directory.join("report.html");
    let page = Page {
        scenario: &run.variant.resolved,
        seed: run.seed,
        settings: &settings,
        seen: &outcome.observations,
        judgements,
        command: format!("transom lab run {}", args.file.display()),
    };
    page.write(&path).with_context(|| format!("cannot write {}", path.display()))
}

fn summary(run: &Run<'_>, outcome: &Outcome, judgements: &[Judgement]) -> Value {
    let Run { variant, seed } = run;
    let version = env!("CARGO_PKG_VERSION");
    json!({
        "id": variant.resolved.id(*seed, version).to_string(),
        "version": version,
        "point": variant.number + 1,
        "settings": variant.settings,
        "seed": seed,
        "packets": outcome.observations.packets,
        "events": outcome.observations.events,
        "passed": judgements.iter().all(|one| one.passed),
        "bands": judgements,
        "directory": outcome.directory,
    })
}

/// What a person wants to know of a run.
fn report(run: &Run<'_>, judgements: &[Judgement], points: bool, seeds: bool) -> String {
    let mut text = String::new();
    if points {
        let settings: Vec<String> = run.variant.settings.iter().map(ToString::to_string).collect();
        let _ = write!(text, "point {} ({})  ", run.variant.number + 1, settings.join(", "));
    }
    if seeds {
        let _ = write!(text, "seed {}  ", run.seed);
    }
    let held = judgements.iter().filter(|one| one.passed).count();
    let _ = match judgements.len() {
        0 => write!(text, "done; nothing was expected"),
        all => write!(text, "{held} of {all} bands hold"),
    };
    for judgement in judgements {
        let _ = write!(text, "\n  {}", described(judgement));
    }
    text
}

fn described(judgement: &Judgement) -> String {
    let Judgement { band, values: _, passed } = judgement;
    let why = band.why.as_ref().filter(|_| !passed).map(|why| format!(": {why}"));
    format!(
        "{} {}: {}  {}{}",
        if *passed { "ok    " } else { "FAILED" },
        words::quantity(band),
        words::seen(judgement),
        words::bounds(band),
        why.unwrap_or_default(),
    )
}
