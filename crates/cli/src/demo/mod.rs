//! `transom demo`.

use std::process::ExitCode;

use anyhow::bail;

/// Send a file through an emulated bottleneck and show what happened (not in this build).
#[derive(clap::Args)]
#[command(after_help = "Example:\n  transom demo")]
pub(crate) struct Args {}

/// Says that there is no demonstration yet.
pub(crate) fn run(_args: Args) -> anyhow::Result<ExitCode> {
    bail!("`demo` is not in this build yet")
}
