//! `transom lab new`: a scenario to begin with.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::builder::PossibleValuesParser;
use transom_device::own_file;
use transom_lab::scenario::TEMPLATES;

use crate::output;

/// Write a first scenario
///
/// The scenario can be run as it is. Its comments describe the other options.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  transom lab new
      flows that share a bottleneck, in scenario.toml
  transom lab new web.toml --kind star
      web-like traffic around one router
  transom lab new - --kind network
      a network written out node by node, on standard output")]
pub(crate) struct Args {
    /// The file to write; `-` for standard output
    #[arg(default_value = "scenario.toml")]
    file: PathBuf,
    /// The shape of the network
    #[arg(long, default_value = "dumbbell", value_parser = kinds())]
    kind: String,
    /// Overwrite the file if there is one
    #[arg(long)]
    force: bool,
}

fn kinds() -> PossibleValuesParser {
    TEMPLATES.map(|(name, _)| name).into()
}

/// Writes the scenario.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let chosen = TEMPLATES.into_iter().find(|(name, _)| *name == args.kind);
    let (_, text) = chosen.context("there is no such template")?;
    if args.file.as_os_str() == "-" {
        output::line(text.trim_end())?;
        return Ok(ExitCode::SUCCESS);
    }
    let name = args.file.display();
    if !args.force && args.file.exists() {
        bail!("{name} exists already; choose another name, or --force to overwrite it");
    }
    let file = match args.force {
        true => own_file::output(&args.file),
        false => OpenOptions::new().write(true).create_new(true).open(&args.file),
    };
    let mut file = file.with_context(|| format!("cannot write {name}"))?;
    file.write_all(text.as_bytes()).with_context(|| format!("cannot write {name}"))?;
    output::line(format_args!("{name} is written; check it with `transom lab check {name}`"))?;
    Ok(ExitCode::SUCCESS)
}
