//! `transom papers keep`: summaries of runs that are there.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::bail;
use transom_device::own_file;
use transom_lab::results::Store;

use super::catalogue::{Experiment, find, form};
use super::summary::Summary;
use crate::output;

/// Summarize stored runs, for `transom papers results`
///
/// For every stored experiment, in either form, the command calculates the values that the claims
/// are about, and writes them to a small file. Runs of an earlier version of the program count too,
/// if the experiment is the same.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  transom papers keep
      everything in results/papers, to papers/results
  transom papers keep ltcp/fig11 --from /tmp/runs
      one experiment, from another directory")]
pub(crate) struct Args {
    /// Experiments, or papers; all of them by default
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    /// The directory of the runs: the --output of `transom papers run`
    #[arg(long, value_name = "DIR", default_value = "results/papers")]
    from: PathBuf,
    /// The directory for the summaries
    #[arg(long, value_name = "DIR", default_value = "papers/results")]
    to: PathBuf,
}

/// Sums them up.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    own_file::check_output_directory(&args.to)?;
    let mut any = false;
    for experiment in find(&args.ids)? {
        for full in [false, true] {
            let directory = args.from.join(experiment.id).join(form(full));
            if directory.is_dir() {
                let summary = Summary::of(&experiment, full, &Store::open(&directory)?)?;
                any |= write(&experiment, &summary, &directory, &args.to)?;
            }
        }
    }
    if !any {
        bail!("there are no runs of these experiments in {}", args.from.display());
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes a summary of runs, and says where; says whether there is anything in it.
pub(super) fn write(
    experiment: &Experiment,
    summary: &Summary,
    runs: &Path,
    to: &Path,
) -> anyhow::Result<bool> {
    if summary.is_empty() {
        output::note(format_args!(
            "{}: no run of it as it is now in {}",
            experiment.id,
            runs.display()
        ));
        return Ok(false);
    }
    let path = summary.write(to)?;
    output::line(format_args!("The summary of {} is {}.", experiment.id, path.display()))?;
    Ok(true)
}
