//! `transom papers run`: makes the runs of experiments, and sums up what the paper's claims are about.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::bail;
use transom_device::own_file;
use transom_lab::results::{Choice, Plan, Store};
use transom_lab::scenario::Scenario;

use super::catalogue::{Experiment, find, form};
use super::keep;
use super::summary::{Compared, Difference, Summary};
use super::values::shown;
use crate::lab::interruption::Interruption;
use crate::lab::run::engine::Engaged;
use crate::lab::run::{Emulated, Job, Shown, refuse_too_many};
use crate::output;

/// Run experiments
///
/// Without --full an experiment is run in its quick form, which takes seconds to two minutes. Stored runs are not repeated, so an interrupted command
/// continues where it stopped. Each run has a page, report.html in its directory, and each experiment has index.html. At the end the command says whether
/// the values are those that are stored. It succeeds if they are, or if there is nothing to compare with; whether they agree with the paper is another
/// question, which `transom papers results` answers.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  transom papers run ltcp/fig5
      the quick form, with results in results/papers/ltcp/fig5/quick
  transom papers run ltcp/fig5 --full --seeds 3
      the paper's lengths and rates, with three seeds
  transom papers run compose ltcp/fig8
      all experiments of one paper and one of another
  transom papers run ltcp/fig5 --keep papers/results
      and keep the numbers for `transom papers results`")]
pub(crate) struct Args {
    /// Experiments, or papers
    #[arg(value_name = "ID", required = true)]
    ids: Vec<String>,
    /// With the paper's lengths and rates
    #[arg(long)]
    full: bool,
    /// With the seeds from 1 to N instead of the experiment's own
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    seeds: Option<u64>,
    /// Only this point of the sweep, counted from one; can be given several times
    #[arg(long, value_name = "N")]
    point: Vec<usize>,
    /// Repeat stored runs too
    #[arg(long)]
    fresh: bool,
    /// Runs at a time; by default as many as there are processors
    #[arg(long, short, value_name = "N")]
    jobs: Option<usize>,
    /// Directory for the results; each experiment has its own directory in it
    #[arg(long, short, value_name = "DIR", default_value = "results/papers")]
    output: PathBuf,
    /// Put a summary of each experiment here, too
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// The directory of stored summaries to compare with
    #[arg(long, value_name = "DIR", default_value = "papers/results")]
    stored: PathBuf,
    /// Keep runs in which the emulator fell behind real time
    #[arg(long)]
    allow_late: bool,
    /// Show no progress
    #[arg(long, short)]
    quiet: bool,
}

/// Runs them.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let experiments = find(&args.ids)?;
    let mut prepared: Vec<(Experiment, Scenario, bool)> = Vec::new();
    for experiment in experiments {
        let scenario = experiment.scenario(args.full)?;
        let emulated = experiment.described()?.emulated;
        let points = scenario.points();
        if let Some(point) = args.point.iter().find(|point| !(1..=points).contains(*point)) {
            bail!("{} has {points} points; there is no point {point}", experiment.id);
        }
        let seeds: Option<Vec<u64>> = args.seeds.map(|count| (1..=count).collect());
        refuse_too_many(&scenario, seeds.as_deref())?;
        prepared.push((experiment, scenario, emulated));
    }
    let jobs: Vec<(Experiment, Job<'_>)> = prepared
        .iter()
        .map(|(experiment, scenario, emulated)| {
            (*experiment, job(&args, experiment, scenario, *emulated))
        })
        .collect();
    args.keep.as_deref().map_or(Ok(()), own_file::check_output_directory)?;
    for (_, job) in &jobs {
        job.prepare()?;
    }
    let interruption = Interruption::handle()?;
    let mut all_as_stored = true;
    for (experiment, job) in &jobs {
        output::line(format_args!("{}, {}", experiment.id, form(args.full)))?;
        job.run(&interruption)?;
        let stored = match interruption.status() {
            None => stored(&args, experiment, job.emulation.is_some())?,
            Some(_) => None,
        };
        // Only if somebody asks: all tables of the runs are read for it.
        if stored.is_some() || args.keep.is_some() {
            let summary = Summary::of(experiment, args.full, &Store::open(&job.directory)?)?;
            if let Some(stored) = stored {
                all_as_stored &= compare(&summary, &stored)?;
            }
            if let Some(to) = &args.keep {
                keep::write(experiment, &summary, &job.directory, to)?;
            }
        }
        if let Some(status) = interruption.status() {
            return Ok(ExitCode::from(status));
        }
    }
    Ok(if all_as_stored { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// How many differences are shown.
const SHOWN: usize = 5;

/// The stored values to compare with. Says why, if there are none.
fn stored(
    args: &Args,
    experiment: &Experiment,
    in_real_time: bool,
) -> anyhow::Result<Option<Summary>> {
    // Where only the other form is stored, some of its runs may be the same.
    let stored = match Summary::read(&args.stored, experiment.id, args.full)? {
        None => Summary::read(&args.stored, experiment.id, !args.full)?,
        own_form => own_form,
    };
    if stored.is_none() {
        output::line(format_args!(
            "Nothing is stored of it in {}, so there is nothing to compare with.",
            args.stored.display()
        ))?;
    } else if in_real_time {
        output::line(
            "Runs in real time are never the same twice: `transom papers results` has the stored values.",
        )?;
    }
    Ok(stored.filter(|_| !in_real_time))
}

/// Says whether the values of the runs are those that are stored. Runs of which nothing is stored are no difference.
fn compare(summary: &Summary, stored: &Summary) -> anyhow::Result<bool> {
    let Compared { same, not_stored, different } = summary.compared(stored);
    if different.is_empty() && same > 0 {
        let more = match not_stored {
            0 => String::new(),
            runs => format!("; nothing is stored of {runs} more runs"),
        };
        output::line(format_args!("As stored: all {same} values are the same{more}."))?;
        return Ok(true);
    }
    if different.is_empty() {
        output::line("Nothing is stored of these runs, so there is nothing to compare with.")?;
        return Ok(true);
    }
    let all = same + different.len();
    output::line(format_args!("Not as stored: {} of {all} values differ.", different.len()))?;
    for Difference { settings, seed, quantity, found, stored, .. } in different.iter().take(SHOWN) {
        let told = |value: &Option<f64>| {
            value.map_or("never".into(), |value| shown(quantity.unit(), value))
        };
        output::line(format_args!(
            "  {}, {}, seed {seed}: {}, stored {}",
            quantity.measure,
            output::listed(settings, ""),
            output::listed(found.iter().map(told), ""),
            output::listed(stored.iter().map(told), "")
        ))?;
    }
    Ok(false)
}

fn job<'a>(
    args: &Args,
    experiment: &Experiment,
    scenario: &'a Scenario,
    emulated: bool,
) -> Job<'a> {
    let seeds = args.seeds.map(|count| (1..=count).collect());
    let file = experiment.file.into();
    Job {
        scenario,
        beside: Path::new(""),
        plan: Plan::new(scenario, Choice { file, seeds, shard: None, emulated, units: None }),
        directory: args.output.join(experiment.id).join(form(args.full)),
        points: args.point.clone(),
        jobs: if emulated { 1 } else { args.jobs.unwrap_or(0) },
        fresh: args.fresh,
        emulation: emulated.then_some(Emulated { allow_late: args.allow_late }),
        shown: Shown { quiet: args.quiet, ..Shown::default() },
        engaged: Engaged::default(),
    }
}
