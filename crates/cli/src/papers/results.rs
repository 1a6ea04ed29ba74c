//! `transom papers results`: the claims and the results.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::output;

/// Show the table of results, as a page in Markdown
///
/// For each figure and table of the papers there is the paper's number, ours, the verdict, a reason, and a link to its page (`transom papers pages`). It
/// is made from the experiments, from texts and from summaries, which `transom papers run --keep` writes. Nothing is run.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  transom papers results > RESULTS.md
      from the summaries in papers/results
  transom papers results --from /tmp/summaries
      from others
  transom papers results --check
      what is missing, of an earlier scenario, or proves nothing")]
pub(crate) struct Args {
    /// The directory of the summaries
    #[arg(long, value_name = "DIR", default_value = "papers/results")]
    from: PathBuf,
    /// Check the stored values instead: each experiment has some or a reason, all are of the present scenarios, and no band accepts its control
    #[arg(long)]
    check: bool,
}

/// Shows them.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    super::check_summaries(&args.from)?;
    if args.check {
        return check(&args.from);
    }
    output::line(transom_papers::results(&args.from)?.trim_end())?;
    Ok(ExitCode::SUCCESS)
}

/// Says what is wrong with the stored values, if anything is.
fn check(from: &Path) -> anyhow::Result<ExitCode> {
    let defects = transom_papers::check(from)?;
    for defect in &defects {
        output::line(defect)?;
    }
    output::line(format_args!("{} defects", defects.len()))?;
    Ok(if defects.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
