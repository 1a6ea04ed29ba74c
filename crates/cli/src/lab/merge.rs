//! `transom lab merge`: puts together what several machines have run.

use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::json;
use transom_device::own_file;
use transom_lab::results::{Found, PlannedRun, merge};

use super::finish::{self, Pages};
use super::interruption::Interruption;
use crate::output;

/// Merge the parts of a sweep
///
/// The parts are results of `transom lab run --shard`. All parts must be present, complete, and of the same scenario, seeds and
/// program. Otherwise the command lists the missing parts and writes nothing. The result is the same, byte for byte, as that of one
/// machine that makes all runs. The command succeeds if all expectations hold.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  transom lab run fairness.toml --shard 1/2 -o part1
  transom lab run fairness.toml --shard 2/2 -o part2
      the two halves, perhaps on two machines
  transom lab merge part1 part2 -o results/fairness
      both in one")]
pub(crate) struct Args {
    /// The results directories of the parts
    #[arg(required = true, value_name = "DIR")]
    parts: Vec<PathBuf>,
    /// Directory for the merged results
    #[arg(long, short, value_name = "DIR")]
    output: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Puts results together.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    own_file::check_output_directory(&args.output)?;
    let interruption = Interruption::handle()?;
    let (store, plan) = merge(&args.parts, &args.output)?;
    let runs: Vec<&PlannedRun> = plan.runs.iter().collect();
    finish::all(&store, Some(&plan), &runs, Pages::default(), &interruption, || {})?;
    if let Some(status) = interruption.status() {
        output::note("interrupted; run the same command to continue");
        return Ok(ExitCode::from(status));
    }
    finish::index(&store, false, None)?;
    finish::summary(&store)?;
    let holds = |run: &&PlannedRun| match store.find(run) {
        Found::Finished(stored) => stored.manifest.passed() == Some(true),
        Found::Missing | Found::Damaged(_) => false,
    };
    let (all, passed) = (runs.len(), runs.iter().filter(|run| holds(run)).count());
    let directory = store.directory();
    if args.json {
        let parts = args.parts.len();
        output::json(&json!({
            "parts": parts, "runs": all, "passed": passed, "directory": directory,
        }))?;
    } else {
        output::line(format_args!("In {passed} of {all} runs, all that is expected holds."))?;
        output::line(format_args!("Results are in {}.", directory.display()))?;
    }
    Ok(if passed == all { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
