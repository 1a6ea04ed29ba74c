//! `transom lab`: experiments that are written down as scenarios.

mod accuracy;
mod check;
mod compare;
mod emulation;
mod finish;
mod flent;
pub(crate) mod interruption;
mod list;
mod live;
mod merge;
mod new;
mod play;
mod programs;
mod prune;
mod report;
pub(crate) mod run;
mod schema;
mod task;
#[cfg(feature = "tui")]
mod tui;
#[cfg(not(feature = "tui"))]
#[path = "lab/no_tui.rs"]
mod tui;
#[cfg(feature = "web")]
mod watch;
#[cfg(not(feature = "web"))]
#[path = "lab/no_watch.rs"]
mod watch;

use std::process::ExitCode;

/// Write, check and run experiments
///
/// A scenario is one TOML file. It describes hosts, links and routers, the traffic, the measurements, and the
/// expected results.
#[derive(clap::Subcommand, Clone, Debug)]
#[command(after_help = "\
Examples:
  transom lab new
      write scenario.toml, with comments
  transom lab check scenario.toml
      check it for errors
  transom lab check scenario.toml --resolved
      show it with all defaults
  transom lab run scenario.toml
      run it in the simulator
  transom lab run scenario.toml --emulate
      run it in real time, with the kernel's TCP on hosts of kind \"kernel\"
  transom lab run scenario.toml --watch
      and look at it in a browser while it runs
  transom lab play
      move a slider, and see the answer in a browser
  transom lab list
      list the results")]
pub(crate) enum Command {
    Accuracy(accuracy::Args),
    Check(check::Args),
    Compare(compare::Args),
    Flent(flent::Args),
    List(list::Args),
    Merge(merge::Args),
    New(new::Args),
    Play(play::Args),
    Prune(prune::Args),
    Report(report::Args),
    Run(run::Args),
    Schema(schema::Args),
    Task(task::Args),
}

/// Runs the command.
pub(crate) fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Accuracy(args) => accuracy::run(args),
        Command::Check(args) => check::run(args),
        Command::Compare(args) => compare::run(args),
        Command::Flent(args) => flent::run(args),
        Command::List(args) => list::run(args),
        Command::Merge(args) => merge::run(args),
        Command::New(args) => new::run(args),
        Command::Play(args) => play::run(args),
        Command::Prune(args) => prune::run(args),
        Command::Report(args) => report::run(args),
        Command::Run(args) => run::run(args),
        Command::Schema(args) => schema::run(args),
        Command::Task(args) => task::run(args),
    }
}

#[cfg(test)]
mod tests {
    use clap::Subcommand;

    #[test]
    fn every_command_shows_examples() {
        let lab = super::Command::augment_subcommands(clap::Command::new("lab"));
        for command in lab.get_subcommands() {
            let help = command.get_after_help().map(|help| help.to_string()).unwrap_or_default();
            assert!(help.contains(&format!("transom lab {}", command.get_name())), "{help}");
        }
    }
}
