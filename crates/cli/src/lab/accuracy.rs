//! `transom lab accuracy`: how accurate the emulator is on this machine.

use std::process::ExitCode;

use transom_lab::measure_accuracy;

use super::interruption::Interruption;
use super::run::emulated::prepare_hosts;
use crate::output;

/// Measure how accurate the emulator is on this machine
///
/// A transfer between two hosts with the kernel's TCP shows whether a link of 100 Mbit/s delivers
/// that rate. Datagrams show how much longer than 20 ms a link of 20 ms takes. Ever faster links
/// show the highest rate that the emulator holds, to within one per cent and without falling
/// behind, from the kernel and from Transom to the kernel. The measurement takes about two minutes.
/// It needs root or user namespaces, and a machine without other load.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  transom lab accuracy
      for people
  transom lab accuracy --json > accuracy.json
      for other programs")]
pub(crate) struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Show no progress
    #[arg(long, short)]
    quiet: bool,
}

/// Measures it.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    prepare_hosts()?;
    let interruption = Interruption::handle()?;
    let spinner = crate::progress::bar(None, args.quiet || args.json, "{spinner} {elapsed}  {msg}");
    let measured = measure_accuracy(|what| {
        if !what.is_empty() {
            spinner.set_message(what.to_owned());
            spinner.tick();
        }
        !interruption.is_requested()
    });
    spinner.finish_and_clear();
    match (measured?, interruption.status()) {
        (Some(accuracy), _) => {
            output::shown(args.json, &accuracy, || accuracy.to_string().trim_end().to_owned())
        }
        (None, status) => Ok(ExitCode::from(status.unwrap_or(1))),
    }
}
