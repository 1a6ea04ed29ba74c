//! `transom log`: an event log, as lines of JSON.

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use transom_stack::log::Line;
use transom_stack::log::file::{self, Entry};

use crate::output::{note, stdout_error};

/// Show an event log, as lines of JSON.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  transom get http://10.9.0.1:8000/x -o x --log get.tlog
  transom log get.tlog | jq 'select(.event == \"retransmitted\")'

docs/event-log.md describes the contents. A line reports how many records are missing.")]
pub(crate) struct Args {
    /// The log, as --log writes it.
    file: PathBuf,

    /// Show this connection only, by the number that it has in the log.
    #[arg(long, value_name = "NUMBER")]
    connection: Option<u64>,
}

/// Shows it.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let name = args.file.display();
    let bytes = std::fs::read(&args.file).with_context(|| format!("cannot read {name}"))?;
    let (_, entries) = file::read(&bytes).with_context(|| name.to_string())?;
    let unknown = entries.iter().filter(|entry| entry.record.is_err()).count();
    show(&entries, args.connection).map_err(stdout_error)?;
    if unknown > 0 {
        note(format_args!("{name}: {unknown} records that this version does not know"));
    }
    Ok(ExitCode::SUCCESS)
}

fn show(entries: &[Entry], connection: Option<u64>) -> io::Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    for Entry { sequence, missed, record } in entries {
        if *missed > 0 {
            writeln!(out, "{{\"event\":\"missed\",\"records\":{missed}}}")?;
        }
        if let Ok(record) = record
            && connection.is_none_or(|wanted| wanted == record.connection)
        {
            writeln!(out, "{}", Line { record, sequence: *sequence })?;
        }
    }
    out.flush()
}
