//! `transom lab task`: single runs of a sweep, for whatever distributes them.
//!
//! Theory of operation. `transom lab run --engine` has written the plan, and holds the results directory. A task takes from the plan the runs that it
//! is given by name, and makes those that are missing. A run comes into its place as a whole, by renaming. So any number of tasks can work in one
//! directory, and a task that is repeated, or killed, harms nothing. The task judges and compares nothing: the other command does so at the end.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{anyhow, bail};
use transom_lab::results::{Found, PlannedRun, Store};
use transom_lab::scenario::Scenario;

use super::interruption::Interruption;
use super::run::{self, engine};
use crate::output;

/// Make single runs of a planned sweep, as a task of an engine
///
/// `transom lab run --engine` starts this command on every machine. You can start it yourself to use another engine. The results directory
/// must have a plan, results.json, and all machines must see it under the same path. Any number of tasks can work in it at a time. A task
/// does not repeat a stored run. It refuses a scenario or a program that is not the one that was planned with.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  transom lab task fairness.toml -o /shared/fairness 0f3a52c1b7d9
      make one of the planned runs
  transom lab task fairness.toml -o /shared/fairness 0f3a52c1b7d9 77d10a3e5b26
      make two, one after the other")]
pub(crate) struct Args {
    /// The scenario
    file: PathBuf,
    /// The names of the runs: those of their directories, as results.json has them
    #[arg(required = true, value_name = "RUN")]
    runs: Vec<String>,
    /// The form of the scenario, one of its [forms.NAME]
    #[arg(long, value_name = "NAME")]
    form: Option<String>,
    /// The results directory, with a plan
    #[arg(long, short, value_name = "DIR")]
    output: PathBuf,
    /// Write every chart, and the drawing of the network, as a PNG file too (feature `png`)
    #[arg(long)]
    png: bool,
}

/// Makes the runs.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let scenario = match Scenario::load(&args.file, args.form.as_deref()) {
        Ok(scenario) => scenario,
        Err(errors) => {
            output::note(&errors);
            return Ok(ExitCode::FAILURE);
        }
    };
    let store = Store::join(&args.output, &engine::workshop(&args.output))?;
    let plan = store.plan()?.ok_or_else(|| anyhow!("{} has no plan", args.output.display()))?;
    let named = |name: &String| {
        let run = plan.runs.iter().find(|run| run.directory == *name);
        run.ok_or_else(|| anyhow!("{} plans no run {name}", args.output.display()))
    };
    let runs = args.runs.iter().map(named).collect::<anyhow::Result<Vec<&PlannedRun>>>()?;
    for run in &runs {
        let variant = run.point.checked_sub(1).and_then(|number| scenario.point(number));
        let id = variant.map(|variant| variant.resolved.id(run.seed, transom_lab::VERSION, false));
        if id != Some(run.id) {
            let (file, version) = (args.file.display(), transom_lab::VERSION);
            bail!(
                "the run {} was planned with another scenario than {file}, or with another program than this one, \
                 {version}: the plan is of {}",
                run.directory,
                plan.version
            );
        }
    }
    let interruption = Interruption::handle()?;
    let beside = args.file.parent().unwrap_or(Path::new(""));
    let made = run::task(&scenario, beside, &plan, &store, &runs, args.png, &interruption);
    if let Some(status) = interruption.status() {
        return Ok(ExitCode::from(status));
    }
    // Another task may have made the same run meanwhile. Its bytes are the same.
    if !runs.iter().all(|run| matches!(store.find(run), Found::Finished(_))) {
        made?;
        bail!("a run is missing");
    }
    Ok(ExitCode::SUCCESS)
}
