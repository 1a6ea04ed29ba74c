//! `transom papers results`: the claims and the results.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::bail;

use crate::output;

/// Show the papers' claims and the measured results, as a page in Markdown
///
/// For every claim the page has the paper's number, ours, their ratio, whether it holds, the
/// number of seeds, and the command that repeats it. It is made from the experiments and from
/// summaries, which `transom papers run --keep` writes. Nothing is run.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  transom papers results > RESULTS.md
      from the summaries in papers/results
  transom papers results --from /tmp/summaries
      from others")]
pub(crate) struct Args {
    /// The directory of the summaries
    #[arg(long, value_name = "DIR", default_value = "papers/results")]
    from: PathBuf,
}

/// Shows them.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    if !args.from.is_dir() {
        bail!(
            "there is no directory {}; `transom papers run ID --keep {0}` makes it",
            args.from.display()
        );
    }
    output::line(transom_papers::results(&args.from)?.trim_end())?;
    Ok(ExitCode::SUCCESS)
}
