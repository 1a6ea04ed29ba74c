//! `transom log`: an event log or a packet capture: shown, drawn, or written in another format.

mod convert;
mod plot;
mod text;

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use transom_stack::log::Line;
use transom_stack::log::file::{self, Entry};
use transom_trace::Capture;

use crate::output::{line, note, stdout_error};

/// Show an event log or a packet capture, draw it, or convert it
///
/// A log is shown as lines of JSON, or with --text as lines for people. Of a capture (pcap or pcapng) the connections are listed.
#[derive(clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:
  transom get http://10.9.0.1:8000/x -o x --log get.tlog
  transom log get.tlog | jq 'select(.event == \"retransmitted\")'
  transom log get.tlog --text
  transom log plot get.tlog -o get.html
  transom log convert get.tlog get.qlog
  transom log seen.pcapng

docs/event-log.md describes the contents. A line reports how many records are missing."
)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Command>,

    /// The log, as --log writes it, or a capture
    #[arg(required = true)]
    file: Option<PathBuf>,

    /// Show this connection only, by the number that it has in the file
    #[arg(long, value_name = "NUMBER")]
    connection: Option<u64>,

    /// Show a log as lines for people, with times from its first record
    #[arg(long)]
    text: bool,
}

#[derive(clap::Subcommand)]
enum Command {
    Plot(plot::PlotArgs),
    Convert(convert::ConvertArgs),
}

/// A file that is a log or a capture.
enum Opened {
    Log(Vec<Entry>),
    Capture(Capture),
}

/// Shows it.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    if let Some(command) = args.command {
        return match command {
            Command::Plot(args) => plot::plot(&args),
            Command::Convert(args) => convert::convert(&args),
        };
    }
    let path = args.file.unwrap_or_default();
    let name = path.display();
    match open(&path)? {
        Opened::Log(entries) => {
            let unknown = entries.iter().filter(|entry| entry.record.is_err()).count();
            show(&entries, args.connection, args.text).map_err(stdout_error)?;
            if unknown > 0 {
                note(format_args!("{name}: {unknown} records that this version does not know"));
            }
        }
        Opened::Capture(capture) => {
            capture.notes().iter().for_each(|text| note(format_args!("{name}: {text}")));
            let mut chosen = capture
                .connections
                .iter()
                .filter(|one| args.connection.is_none_or(|number| one.number as u64 == number));
            if let (Some(number), None) = (args.connection, chosen.clone().next()) {
                bail!("{name} has no connection {number}");
            }
            chosen.try_for_each(line)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Reads a log, or a capture: by how the file begins.
fn open(path: &Path) -> anyhow::Result<Opened> {
    let name = path.display();
    let failed = || format!("cannot read {name}");
    let mut file = File::open(path).with_context(failed)?;
    let mut magic = Vec::new();
    (&mut file).take(file::MAGIC.len() as u64).read_to_end(&mut magic).with_context(failed)?;
    // The file may be a pipe, which cannot be read twice.
    let is_log = magic == file::MAGIC;
    let mut file = io::Cursor::new(magic).chain(BufReader::with_capacity(1 << 18, file));
    if is_log {
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).with_context(failed)?;
        let (_, entries) = file::read(&bytes).with_context(|| name.to_string())?;
        return Ok(Opened::Log(entries));
    }
    match Capture::read(file) {
        Ok(capture) => Ok(Opened::Capture(capture)),
        Err(transom_trace::FileError::Magic) => {
            bail!("{name} is no event log of Transom, and no capture (pcap or pcapng)")
        }
        Err(error) => Err(error).with_context(failed),
    }
}

fn show(entries: &[Entry], connection: Option<u64>, text: bool) -> io::Result<()> {
    let mut lines = text::Lines::default();
    let mut out = BufWriter::new(io::stdout().lock());
    for Entry { sequence, missed, record } in entries {
        if *missed > 0 && text {
            writeln!(out, "… {missed} records are missing")?;
        } else if *missed > 0 {
            writeln!(out, "{{\"event\":\"missed\",\"records\":{missed}}}")?;
        }
        if let Ok(record) = record
            && connection.is_none_or(|wanted| wanted == record.connection)
        {
            let line = Line { record, sequence: *sequence };
            match text {
                true => writeln!(out, "{}", lines.line(&line.to_string()))?,
                false => writeln!(out, "{line}")?,
            }
        }
    }
    out.flush()
}
