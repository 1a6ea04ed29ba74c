//! `transom lab`: experiments that are written down as scenarios.

mod check;
mod new;
mod page;
mod run;
mod schema;
mod words;

use std::process::ExitCode;

use clap::Subcommand;

/// Write, check and run experiments
///
/// A scenario is one TOML file: hosts, links and routers, what goes over them, what is measured and what must hold.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  transom lab new
      write scenario.toml, with comments, to begin with
  transom lab check scenario.toml
      see whether everything in it is right
  transom lab check scenario.toml --resolved
      see exactly what it says
  transom lab run scenario.toml
      run it in the simulator")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Clone, Debug)]
enum Command {
    Check(check::Args),
    New(new::Args),
    Run(run::Args),
    Schema(schema::Args),
}

/// Runs the command.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.command {
        Command::Check(args) => check::run(args),
        Command::New(args) => new::run(args),
        Command::Run(args) => run::run(args),
        Command::Schema(args) => schema::run(args),
    }
}

#[cfg(test)]
mod tests {
    use clap::Args;

    #[test]
    fn every_command_shows_examples() {
        let lab = super::Args::augment_args(clap::Command::new("lab"));
        for command in lab.get_subcommands() {
            let help = command.get_after_help().map(|help| help.to_string()).unwrap_or_default();
            assert!(help.contains(&format!("transom lab {}", command.get_name())), "{help}");
        }
    }
}
