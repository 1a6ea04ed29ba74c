//! `transom ltcp`: the analysis of LTCP, layered congestion control.
//!
//! The formulas are those of the paper's section IV (`transom_tcp::congestion::ltcp::analysis`); `transom papers` has what is simulated.

mod rule;
mod table;
mod throughput;

use std::process::ExitCode;

use clap::Subcommand;

/// What LTCP can be expected to do, worked out
///
/// LTCP (layered TCP) behaves as K flows once its window has passed the threshold W_K. These commands work out what follows from the
/// thresholds: how fast it claims bandwidth, how fast it recovers from a loss, its throughput for a given loss rate; and whether thresholds of one's own
/// have flows converge to equal shares, as the paper's two conditions demand. Nothing is run.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  transom ltcp table
      the paper's figure 2: layers, windows, speed-ups
  transom ltcp table --thresholds 50,150,400,1000
      the same for thresholds of one's own, if they converge
  transom ltcp throughput --rate 2.4Gbit/s --rtt 150ms
      what it takes to fill such a path, with LTCP and with Reno
  transom ltcp throughput --loss 0.00001 --rtt 150ms
      what is to be had at such a loss rate
  transom papers run ltcp/throughput
      the same, simulated")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Clone, Debug)]
enum Command {
    Table(table::Args),
    Throughput(throughput::Args),
}

/// Runs the command.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.command {
        Command::Table(args) => table::run(args),
        Command::Throughput(args) => throughput::run(args),
    }
}
