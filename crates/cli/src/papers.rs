//! `transom papers`: the experiments of the papers that Transom is built from.
//!
//! Theory of operation. Every experiment is a scenario in the program itself ([`catalogue`]), with the paper's claims beside the bands that
//! reproduce them. It is run as any other scenario ([`crate::lab`]). After a run, the values for the claims are stored in a small file, a
//! [`Summary`](summary::Summary). A page for each figure of a paper ([`pages`]), and the table of all of them ([`results`]), are made from scenarios,
//! summaries and the texts in `papers/pages` only. [`other_experiments`] lists those that no scenario can show.

mod bench;
pub(crate) mod catalogue;
mod chosen;
mod commits;
mod describe;
mod figure;
mod findings;
mod keep;
mod list;
mod matrix;
mod other_experiments;
mod page;
mod pages;
mod prose;
mod raw;
mod recent;
mod results;
mod run;
mod sources;
mod summary;
mod text;
mod values;

use std::path::Path;
use std::process::ExitCode;

use anyhow::bail;

/// Run the experiments of the papers, and compare the results
///
/// Each experiment is a scenario that sets up what a paper describes. It shows the paper's own words and numbers beside the measured ones. The quick
/// form of an experiment takes seconds to two minutes; --full uses the paper's own lengths and rates.
#[derive(clap::Subcommand, Clone, Debug)]
#[command(after_help = "\
Examples:
  transom papers list
      the experiments, and how long they take
  transom papers describe ltcp/fig5
      the paper's claims and the measurements
  transom papers run ltcp/fig5
      run its quick form
  transom papers run ltcp/fig5 ltcp/fig8 --full
      with the paper's lengths and rates
  transom papers run ltcp
      everything of that paper
  transom papers results > RESULTS.md
      the table of results, from the summaries in papers/results
  transom papers pages --to docs/papers
      a page for each figure, with pictures")]
pub(crate) enum Command {
    List(list::Args),
    Describe(describe::Args),
    Run(run::Args),
    Keep(keep::Args),
    Pages(pages::Args),
    Results(results::Args),
}

/// Runs the command.
pub(crate) fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::List(args) => list::run(args),
        Command::Describe(args) => describe::run(args),
        Command::Run(args) => run::run(args),
        Command::Keep(args) => keep::run(args),
        Command::Pages(args) => pages::run(args),
        Command::Results(args) => results::run(args),
    }
}

/// Whether there are summaries to make something of.
fn check_summaries(from: &Path) -> anyhow::Result<()> {
    if !from.is_dir() {
        let from = from.display();
        bail!("there is no directory {from}; `transom papers run ID --keep {from}` makes it");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Subcommand;

    #[test]
    fn every_command_shows_examples() {
        let papers = super::Command::augment_subcommands(clap::Command::new("papers"));
        for command in papers.get_subcommands() {
            let help = command.get_after_help().map(|help| help.to_string()).unwrap_or_default();
            assert!(help.contains(&format!("transom papers {}", command.get_name())), "{help}");
        }
    }
}
