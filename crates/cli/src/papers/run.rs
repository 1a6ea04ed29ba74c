//! `transom papers run`: makes the runs of experiments, and sums up what the paper's claims are about.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::bail;
use transom_device::own_file;
use transom_lab::results::{Choice, Plan};
use transom_lab::scenario::Scenario;
use transom_papers::{Experiment, form};

use super::{find, keep};
use crate::lab::interruption::Interruption;
use crate::lab::run::engine::Engaged;
use crate::lab::run::{Emulated, Job, refuse_too_many};
use crate::output;

/// Run experiments
///
/// Without --full an experiment is run in its quick form, which takes seconds to two minutes. Stored runs are not repeated, so an interrupted command
/// continues where it stopped. Each run has a page, report.html in its directory, and each experiment has index.html. The command succeeds if all
/// results agree with the papers.
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
    let mut all_hold = true;
    for (experiment, job) in &jobs {
        output::line(format_args!("{}, {}", experiment.id, form(args.full)))?;
        let status = job.run(&interruption)?;
        all_hold &= status == ExitCode::SUCCESS;
        if let Some(keep) = &args.keep {
            keep::sum_up(experiment, args.full, &job.directory, keep)?;
        }
        if let Some(status) = interruption.status() {
            return Ok(ExitCode::from(status));
        }
    }
    Ok(if all_hold { ExitCode::SUCCESS } else { ExitCode::FAILURE })
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
        plan: Plan::new(scenario, Choice { file, seeds, shard: None, emulated }),
        directory: args.output.join(experiment.id).join(form(args.full)),
        points: args.point.clone(),
        jobs: if emulated { 1 } else { args.jobs.unwrap_or(0) },
        fresh: args.fresh,
        emulation: emulated.then_some(Emulated { allow_late: args.allow_late }),
        png: false,
        watch: None,
        tui: false,
        json: false,
        quiet: args.quiet,
        engaged: Engaged::default(),
    }
}
