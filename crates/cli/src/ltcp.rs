//! `transom ltcp`: the analysis of LTCP, layered congestion control.
//!
//! The formulas are those of the paper's section IV ([`analysis`]); `transom papers` has what is simulated.

mod analysis;
mod rule;
mod table;
mod throughput;

use std::process::ExitCode;

/// Calculate the behaviour of LTCP
///
/// LTCP (layered TCP) behaves like K flows once its window exceeds the threshold W_K. From the thresholds these commands calculate how fast it claims
/// bandwidth, how fast it recovers from a loss, and its throughput at a given loss rate. They also check whether flows with your own thresholds
/// converge to equal shares (the paper's two conditions). Nothing is run.
#[derive(clap::Subcommand, Clone, Debug)]
#[command(after_help = "\
Examples:
  transom ltcp table
      the paper's figure 2: layers, windows, speed-ups
  transom ltcp table --thresholds 50,150,400,1000
      the same for your own thresholds, if they converge
  transom ltcp throughput --rate 2.4Gbit/s --rtt 150ms
      the loss rate that fills this path, with LTCP and with Reno
  transom ltcp throughput --loss 0.00001 --rtt 150ms
      the throughput at this loss rate
  transom papers run ltcp/throughput
      the same, simulated")]
pub(crate) enum Command {
    Table(table::Args),
    Throughput(throughput::Args),
}

/// Runs the command.
pub(crate) fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Table(args) => table::run(args),
        Command::Throughput(args) => throughput::run(args),
    }
}
