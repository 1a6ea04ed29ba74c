//! `transom lab accuracy`: how accurate the emulator is on this machine.

use std::process::ExitCode;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use transom_lab::accuracy;

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
    let hidden = args.quiet || args.json;
    let target = if hidden { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
    let spinner = ProgressBar::with_draw_target(None, target);
    if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed}  {msg}") {
        spinner.set_style(style);
    }
    let measured = accuracy::measure(|what| {
        if !what.is_empty() {
            spinner.set_message(what.to_owned());
            spinner.tick();
        }
        !interruption.is_requested()
    });
    spinner.finish_and_clear();
    match (measured?, interruption.status()) {
        (Some(accuracy), _) if args.json => output::json(&accuracy)?,
        (Some(accuracy), _) => output::line(accuracy.to_string().trim_end())?,
        (None, status) => return Ok(ExitCode::from(status.unwrap_or(1))),
    }
    Ok(ExitCode::SUCCESS)
}
