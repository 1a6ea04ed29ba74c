//! `transom log convert`: an event log in another format, and the decisions of a log on the packets of a capture.

use std::fs::File;
use std::io::{BufReader, BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, bail};
use transom_device::own_file;
use transom_trace::{Annotated, ConvertError, Format, Log, annotate};

use crate::features::Feature;
use crate::output::{self, note};

/// Write an event log in another format
///
/// The endings of the names say which: .tlog, .jsonl or .ndjson, .qlog or .sqlog, .pcapng, .parquet, .arrow. Each can be read again, and gives
/// the same log. With --capture, the output is a copy of that capture, in which each packet that the host sent has the decision as a comment.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  transom log convert get.tlog get.qlog
  transom log convert get.tlog get.parquet
  transom log convert get.tlog out.pcapng --capture seen.pcapng

docs/formats.md describes the formats.")]
pub(super) struct ConvertArgs {
    /// The log
    input: PathBuf,

    /// The output
    output: PathBuf,

    /// Copy this capture (pcapng) of the same connections, with the log's records as comments on their packets
    #[arg(long, value_name = "FILE")]
    capture: Option<PathBuf>,
}

/// Converts it.
pub(super) fn convert(args: &ConvertArgs) -> anyhow::Result<ExitCode> {
    let (input, name) = (args.input.display(), args.output.display());
    let from = Format::try_from(&*args.input)?;
    let to = Format::try_from(&*args.output)?;
    if [from, to].iter().any(|one| matches!(one, Format::Parquet | Format::Arrow)) {
        Feature::PARQUET.need()?;
    }
    own_file::check_output(&args.output)?;
    let bytes = std::fs::read(&args.input).with_context(|| format!("cannot read {input}"))?;
    let log = Log::read(from, &bytes).with_context(|| input.to_string())?;
    drop(bytes);
    if log.unknown > 0 {
        note(format_args!(
            "{input}: {} records that this version does not know are left out",
            log.unknown
        ));
    }
    if let Some(capture) = &args.capture {
        return comment(args, &log, to, capture);
    }
    let contents = log.write(to).with_context(|| format!("cannot write {name}"))?;
    output::file(&args.output, contents)?;
    if !to.loses().is_empty() {
        note(format_args!("{name}: {}", to.loses()));
    }
    Ok(ExitCode::SUCCESS)
}

fn comment(
    args: &ConvertArgs,
    log: &Log,
    to: Format,
    capture: &PathBuf,
) -> anyhow::Result<ExitCode> {
    let (name, output) = (capture.display(), args.output.display());
    if to != Format::Pcapng {
        bail!("{output}: with --capture the output is a capture, and its name must end in .pcapng");
    }
    let same = |path: &PathBuf| std::fs::canonicalize(path).ok();
    if same(capture).is_some_and(|path| Some(path) == same(&args.output)) {
        bail!("{output} is the capture itself; write another file");
    }
    let file = File::open(capture).with_context(|| format!("cannot read {name}"))?;
    let created =
        own_file::output(&args.output).with_context(|| format!("cannot write {output}"))?;
    let mut out = BufWriter::new(created);
    let annotated = annotate(log, BufReader::new(file), &mut out).map_err(|error| match error {
        ConvertError::Io(error) => {
            anyhow::Error::new(error).context(format!("cannot write {output}"))
        }
        error => anyhow::Error::new(error).context(name.to_string()),
    })?;
    out.flush().with_context(|| format!("cannot write {output}"))?;
    annotated.damage.iter().for_each(|text| note(format_args!("{name}: {text}")));
    let Annotated { commented, without_room, .. } = annotated;
    if without_room > 0 {
        note(format_args!(
            "{output}: {without_room} packets stand in simple packet blocks, which take no comments"
        ));
    }
    if commented == 0 {
        note(format_args!(
            "{output}: no packet of {name} belongs to a record; the capture must have the SYN of a connection of the log"
        ));
    } else {
        note(format_args!("{output}: {commented} packets have comments"));
    }
    Ok(ExitCode::SUCCESS)
}
