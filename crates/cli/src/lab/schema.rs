//! `transom lab schema`: the form of a scenario, for editors.

use std::process::ExitCode;

use crate::output;

/// Print the JSON Schema of scenarios
///
/// Editors with this schema complete keys and show their documentation.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "\
Example:
  transom lab schema > scenario.schema.json
      then begin a scenario with `#:schema ./scenario.schema.json`")]
pub(crate) struct Args {}

/// Prints the schema.
pub(crate) fn run(_: Args) -> anyhow::Result<ExitCode> {
    output::line(transom_lab::scenario::schema().trim_end())?;
    Ok(ExitCode::SUCCESS)
}
