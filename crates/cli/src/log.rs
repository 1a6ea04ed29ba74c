//! `transom log`: an event log, as lines of JSON, as a page or as a picture.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use transom_report::event_log::EventLog;
use transom_stack::log::Line;
use transom_stack::log::file::{self, Entry};

use crate::output::{note, stdout_error};

/// Show an event log, as lines of JSON. With `plot`, draw it.
#[derive(clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:
  transom get http://10.9.0.1:8000/x -o x --log get.tlog
  transom log get.tlog | jq 'select(.event == \"retransmitted\")'
  transom log plot get.tlog -o get.html

docs/event-log.md describes the contents. A line reports how many records are missing."
)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Command>,

    /// The log, as --log writes it.
    #[arg(required = true)]
    file: Option<PathBuf>,

    /// Show this connection only, by the number that it has in the log.
    #[arg(long, value_name = "NUMBER")]
    connection: Option<u64>,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Draw sequence, windows and round-trip time over time.
    Plot(PlotArgs),
}

#[derive(clap::Args)]
struct PlotArgs {
    /// The log, as --log writes it.
    file: PathBuf,

    /// The output: a picture of one connection (.svg), or a page of all (.html).
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    /// Draw this connection only, by the number that it has in the log [default of a picture: the one with most data].
    #[arg(long, value_name = "NUMBER")]
    connection: Option<u64>,
}

/// Shows it.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    if let Some(Command::Plot(args)) = args.command {
        return plot(&args);
    }
    let path = args.file.unwrap_or_default();
    let name = path.display();
    let entries = read(&path)?;
    let unknown = entries.iter().filter(|entry| entry.record.is_err()).count();
    show(&entries, args.connection).map_err(stdout_error)?;
    if unknown > 0 {
        note(format_args!("{name}: {unknown} records that this version does not know"));
    }
    Ok(ExitCode::SUCCESS)
}

fn read(path: &Path) -> anyhow::Result<Vec<Entry>> {
    let name = path.display();
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {name}"))?;
    let (_, entries) = file::read(&bytes).with_context(|| name.to_string())?;
    Ok(entries)
}

/// Draws it.
fn plot(args: &PlotArgs) -> anyhow::Result<ExitCode> {
    let (name, output) = (args.file.display(), args.output.display());
    let extension = args.output.extension().and_then(|extension| extension.to_str());
    let is_page = match extension {
        Some("html") => true,
        Some("svg") => false,
        _ => bail!("{output}: the name must end in .svg or .html"),
    };
    let mut log = EventLog::new(&read(&args.file)?);
    if let Some(number) = args.connection {
        log = log.only(number).with_context(|| format!("{name} has no connection {number}"))?;
    }
    let contents = if is_page {
        transom_report::render(&log.data(&name.to_string()))
    } else {
        let picture = log.picture().with_context(|| format!("{name} has no connection"))?;
        if log.len() > 1 {
            note(format_args!("{name} has {} connections; {output} shows one", log.len()));
        }
        picture.file()
    };
    std::fs::write(&args.output, contents).with_context(|| format!("cannot write {output}"))?;
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
