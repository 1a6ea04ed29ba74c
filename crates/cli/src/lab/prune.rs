//! `transom lab prune`: removes runs that the scenario no longer has.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use transom_device::own_file;
use transom_lab::results::{Store, StoredRun};

use crate::output;
use crate::units::{Bytes, counted};

/// Remove the runs that a results directory has no use for
///
/// When a scenario is changed, its runs are other runs. Those from before stay, because they may have taken long. This command lists them, and removes
/// them with --yes. Runs of the present scenario are never removed.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  transom lab prune results/fairness
      say what would be removed
  transom lab prune results/fairness --yes
      remove it")]
pub(crate) struct Args {
    /// The results directory
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Remove them
    #[arg(long)]
    yes: bool,
}

/// Lists or removes them.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    own_file::check_output_directory(&args.directory)?;
    // Removing takes the right to write: nobody makes runs meanwhile.
    // A directory that is not there is an error, and is not made.
    let mut store = Store::open(&args.directory)?;
    if args.yes {
        store = Store::create(&args.directory)?;
    }
    let orphans = store.orphans()?;
    let mut bytes = 0;
    for orphan in &orphans {
        bytes += size(orphan);
        output::line(described(orphan))?;
        if args.yes {
            std::fs::remove_dir_all(orphan)
                .with_context(|| format!("cannot remove {}", orphan.display()))?;
        }
    }
    let count = counted(orphans.len(), "run");
    if orphans.is_empty() {
        output::line("Every run is one of the scenario's.")?;
    } else if args.yes {
        output::line(format_args!("{count} removed: {}.", Bytes(bytes)))?;
    } else {
        output::line(format_args!(
            "{count} of another form of the scenario: {}. --yes removes them.",
            Bytes(bytes)
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn size(orphan: &Path) -> u64 {
    StoredRun::open(orphan).and_then(|run| run.size()).unwrap_or(0)
}

fn described(orphan: &Path) -> String {
    let name = orphan.file_name().unwrap_or_default().to_string_lossy();
    match StoredRun::open(orphan) {
        Ok(run) => {
            let manifest = &run.manifest;
            format!("{name}  seed {}  {}", manifest.seed, output::listed(&manifest.settings, ""))
        }
        Err(error) => format!("{name}  {error}"),
    }
}
