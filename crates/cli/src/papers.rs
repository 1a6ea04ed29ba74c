//! `transom papers`: the experiments of the papers that Transom is built from.
//!
//! Which there are, what is kept of their runs and what came of them is in `transom-papers`. Running one is running a scenario ([`crate::lab`]).

mod describe;
mod keep;
mod list;
mod results;
mod run;

use std::process::ExitCode;

use anyhow::anyhow;
use clap::Subcommand;
use transom_papers::{Error, Experiment};

/// Run the experiments of the papers, and see whether they come out
///
/// Each is a scenario that sets up what a paper describes, with the paper's own words and numbers beside what is measured here. The quick form of an
/// experiment takes seconds to two minutes; with --full it has the paper's own lengths and rates.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  transom papers list
      which there are, and how long they take
  transom papers describe ltcp/fig5
      what the paper says and what is measured
  transom papers run ltcp/fig5
      run its quick form
  transom papers run ltcp/fig5 ltcp/fig8 --full
      with the paper's lengths and rates
  transom papers run ltcp
      everything of that paper
  transom papers results > RESULTS.md
      the table of claims, from the summaries in papers/results")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Clone, Debug)]
enum Command {
    List(list::Args),
    Describe(describe::Args),
    Run(run::Args),
    Keep(keep::Args),
    Results(results::Args),
}

/// Runs the command.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.command {
        Command::List(args) => list::run(args),
        Command::Describe(args) => describe::run(args),
        Command::Run(args) => run::run(args),
        Command::Keep(args) => keep::run(args),
        Command::Results(args) => results::run(args),
    }
}

/// The experiments that are meant by ids or by the names of papers; all of them by none.
fn find(words: &[String]) -> anyhow::Result<Vec<Experiment>> {
    transom_papers::find(words).map_err(|error| match error {
        Error::Unknown(_) => anyhow!("{error}; `transom papers list` shows which there are"),
        error => error.into(),
    })
}

#[cfg(test)]
mod tests {
    use clap::Args;

    #[test]
    fn every_command_shows_examples() {
        let papers = super::Args::augment_args(clap::Command::new("papers"));
        for command in papers.get_subcommands() {
            let help = command.get_after_help().map(|help| help.to_string()).unwrap_or_default();
            assert!(help.contains(&format!("transom papers {}", command.get_name())), "{help}");
        }
    }
}
