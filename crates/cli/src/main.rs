//! The `transom` command.
//!
//! Each subcommand is a module with an `Args` that clap fills in and a `run` that returns the exit status. Shared
//! parts are beside them: [`network`] decides where packets go and gives a [`socket::Host`], which is Transom's
//! TCP or, for comparison, the kernel's; [`output`] prints everything.
//!
//! `run` is called before any thread exists, because an ordinary user's own network begins with a user namespace,
//! which the kernel gives only to a process with one thread.
#![forbid(unsafe_code)]

mod address;
mod bench;
mod broker;
mod choices;
mod cm;
mod columns;
mod dash;
mod demo;
mod demux;
mod doctor;
#[cfg(test)]
mod documents_tests;
mod exec;
mod ext;
mod features;
mod get;
mod hash;
mod interrupt;
mod kernel;
mod lab;
mod log;
mod ltcp;
mod misspelt;
mod network;
mod output;
mod packaging;
mod papers;
mod progress;
mod recv;
mod router;
mod send;
mod serve;
mod sink;
mod socket;
mod stop;
#[cfg(feature = "tui")]
mod terminal;
mod thread;
mod top;
mod units;
#[cfg(feature = "web")]
mod web;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};

/// A TCP you can see into and safely change, from user space.
///
/// Transom is a complete TCP inside an ordinary program. These commands run it against the kernel's TCP or any
/// other: over a TUN interface, or in a private network that needs no privileges (--lab).
#[derive(Parser)]
#[command(
    name = "transom",
    version,
    long_version = features::long_version(),
    propagate_version = true,
    max_term_width = 100,
    after_help = "Examples:
  transom demo                                      a transfer through a bad path, with a report
  transom serve . --run curl -s http://10.9.0.2/    curl against Transom, no privileges needed
  transom bench --server --run transom bench --side kernel 10.9.0.2
  transom doctor                                    which devices work on this machine
  transom top                                       every TCP connection, as it is now
  transom lab new && transom lab check scenario.toml

`transom help COMMAND` shows a command's options and examples."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// The text of `transom` without arguments.
const FIRST_STEPS: &str = "\
Transom is a TCP you can see into and safely change. Three things to begin with:

  transom demo                                        a transfer through a bad path, with a report
  transom serve . --run curl -s http://10.9.0.2/      curl against Transom, in a network of its own
  transom lab new && transom lab run scenario.toml    an experiment in the simulator

`transom --help` lists all commands.

Usage: transom <COMMAND>";
/// The exit status of a command line that is wrong, which is clap's.
const USAGE: u8 = 2;

#[derive(Subcommand)]
enum Command {
    Demo(demo::Args),
    Serve(serve::Args),
    Get(get::Args),
    Send(send::Args),
    Recv(recv::Args),
    Bench(bench::Args),
    Exec(exec::Args),
    /// Started by `transom exec`, not by people.
    #[command(hide = true)]
    ExecGuard,
    /// Started by `transom exec`, not by people.
    #[command(hide = true)]
    ExecMaker,
    #[command(subcommand)]
    Lab(lab::Command),
    #[command(subcommand)]
    Ltcp(ltcp::Command),
    #[command(subcommand)]
    Papers(papers::Command),
    Units(choices::Args),
    #[command(subcommand)]
    Ext(ext::Command),
    Doctor(doctor::Args),
    Top(top::Args),
    Dash(dash::Args),
    Log(log::Args),
    #[command(subcommand)]
    Router(router::Command),
    #[command(subcommand)]
    Broker(broker::Command),
    Demux(demux::Args),
    #[command(subcommand)]
    Kernel(kernel::Command),
    #[command(hide = true)]
    KernelGuard(kernel::GuardArgs),
    #[command(subcommand)]
    Cm(cm::Command),
    Completions(packaging::CompletionsArgs),
    Man(packaging::ManArgs),
}

fn main() -> ExitCode {
    if std::env::args_os().len() <= 1 {
        output::note(FIRST_STEPS);
        return ExitCode::from(USAGE);
    }
    let words: Vec<OsString> = std::env::args_os().collect();
    let parsed = Cli::try_parse_from(&words)
        .unwrap_or_else(|error| misspelt::explained(error, &Cli::command(), &words).exit());
    let outcome = match parsed.command {
        Command::Demo(args) => demo::run(args),
        Command::Serve(args) => serve::run(args),
        Command::Get(args) => get::run(args),
        Command::Send(args) => send::run(args),
        Command::Recv(args) => recv::run(args),
        Command::Bench(args) => bench::run(args),
        Command::Exec(args) => exec::run(args),
        Command::ExecGuard => exec::run_guard(),
        Command::ExecMaker => exec::run_maker(),
        Command::Lab(command) => lab::run(command),
        Command::Ltcp(command) => ltcp::run(command),
        Command::Papers(command) => papers::run(command),
        Command::Units(args) => choices::run(args),
        Command::Ext(command) => ext::run(command),
        Command::Doctor(args) => doctor::run(&args),
        Command::Top(args) => top::run(args),
        Command::Dash(args) => dash::run(args),
        Command::Log(args) => log::run(args),
        Command::Router(command) => router::run(command),
        Command::Broker(command) => broker::run(command),
        Command::Demux(args) => demux::run(args),
        Command::Kernel(command) => kernel::run(command),
        Command::KernelGuard(args) => kernel::run_guard(&args),
        Command::Cm(command) => cm::run(command),
        Command::Completions(args) => packaging::completions(&args, Cli::command()),
        Command::Man(args) => packaging::man(&args, Cli::command()),
    };
    outcome.unwrap_or_else(|error| output::report(&error))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        super::Cli::command().debug_assert();
    }

    #[test]
    fn every_command_shows_examples() {
        let all = super::Cli::command();
        for command in all.get_subcommands().filter(|command| !command.is_hide_set()) {
            let help = command.get_after_help().map(|help| help.to_string()).unwrap_or_default();
            assert!(help.contains("Example"), "{} --help has no example", command.get_name());
            assert!(help.contains(&format!("transom {}", command.get_name())));
        }
    }
}
