//! Trace files: measured sending times and sizes of a flow.
//!
//! A line has a time in seconds since the flow's start and a number of bytes, with a comma between them; times do not go back. Empty
//! lines and lines that begin with `#` say nothing. A scenario's identity holds the SHA-256 of the file: the same scenario with another
//! trace is another experiment.

use super::error::{Problem, Problems};
use super::rate_trace::read_rate_trace;
use super::traffic::Trace;
use super::tree::Span;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use transom_sim::link::{LinkConfig, LinkConfigError};
use transom_sim::units::parse_duration;
use transom_tcp::time::Duration;

/// Why a trace file cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TraceError {
    /// It cannot be read.
    #[error("the trace {} cannot be read: {error}", .path.display())]
    Unreadable { path: PathBuf, error: std::io::Error },
    /// A line is not a time and a size.
    #[error("line {line} of the trace {} {what}", .path.display())]
    Line { path: PathBuf, line: usize, what: &'static str },
    /// There is nothing in it.
    #[error("the trace {} has no entries", .0.display())]
    Empty(PathBuf),
    /// It takes no time.
    #[error("the last line of the trace {} is 0, but a trace must last longer than that", .0.display())]
    Timeless(PathBuf),
    /// It is no file, but a directory or a device.
    #[error("the trace {} is not a file", .0.display())]
    NotAFile(PathBuf),
    /// It is too large.
    #[error("the trace {} is larger than {} MiB", .0.display(), MOST_BYTES >> 20)]
    TooLarge(PathBuf),
    /// It is another one than when the scenario was read.
    #[error("the trace {} is not the scenario's: its SHA-256 is {sum}", .path.display())]
    Changed { path: PathBuf, sum: String },
}

/// As large as a trace may be: it is held in memory.
const MOST_BYTES: u64 = 128 << 20;

/// The contents of a trace file.
pub(super) fn read_text(path: &Path) -> Result<String, TraceError> {
    let unreadable = |error| TraceError::Unreadable { path: path.into(), error };
    // Opening something else than a file could wait for ever.
    if !std::fs::metadata(path).map_err(unreadable)?.is_file() {
        return Err(TraceError::NotAFile(path.into()));
    }
    let file = std::fs::File::open(path).map_err(unreadable)?;
    let mut text = String::new();
    file.take(MOST_BYTES + 1).read_to_string(&mut text).map_err(unreadable)?;
    if text.len() as u64 > MOST_BYTES {
        return Err(TraceError::TooLarge(path.into()));
    }
    Ok(text)
}

/// The SHA-256 of a file's contents, in hexadecimal.
pub(super) fn sha256(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A time since the flow's start, and how many bytes then.
pub(crate) type TraceEntry = (Duration, u64);

/// Reads a trace file: its entries, and the SHA-256 of its contents in hexadecimal.
pub(crate) fn read_trace(path: &Path) -> Result<(Vec<TraceEntry>, String), TraceError> {
    let text = read_text(path)?;
    let mut entries: Vec<TraceEntry> = Vec::new();
    for (line, content) in (1..).zip(text.lines()) {
        let content = content.trim();
        if content.is_empty() || content.starts_with('#') {
            continue;
        }
        let wrong = |what| TraceError::Line { path: path.into(), line, what };
        let (time, size) = content.split_once(',').ok_or_else(|| wrong("is not TIME,BYTES"))?;
        let time = parse_duration(&format!("{}s", time.trim()))
            .map_err(|_| wrong("does not begin with a time in seconds"))?;
        let size = size.trim().parse().map_err(|_| wrong("does not end with a number of bytes"))?;
        if entries.last().is_some_and(|(before, _)| *before > time) {
            return Err(wrong("goes back in time"));
        }
        entries.push((time, size));
    }
    if entries.is_empty() {
        return Err(TraceError::Empty(path.into()));
    }
    let sum = sha256(&text);
    Ok((entries, sum))
}

/// The files that a scenario names, each read once.
#[derive(Debug, Default)]
pub(super) struct Files {
    /// The directory of relative names. Without it, no file is read.
    directory: Option<PathBuf>,
    seen: BTreeMap<(Kind, String), Result<String, String>>,
}

/// The format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Sizes,
    Rate,
}

impl Files {
    pub(super) fn new(directory: Option<PathBuf>) -> Self {
        Files { directory, seen: BTreeMap::new() }
    }

    /// Checks a flow's trace and notes its sum.
    pub(super) fn check(
        &mut self,
        trace: &mut Trace,
        place: impl Fn(&str) -> Span,
        problems: &mut Problems,
    ) {
        let places = (place("file"), place("sha256"));
        self.sum(Kind::Sizes, &trace.file, &mut trace.sha256, places, problems);
    }

    /// Checks a link's rate trace and notes its sum.
    pub(super) fn check_rate(
        &mut self,
        config: &mut LinkConfig,
        place: impl Fn(&str) -> Span,
        problems: &mut Problems,
    ) {
        let LinkConfig { rate, rate_trace, rate_trace_sha256, .. } = config;
        let Some(trace) = rate_trace else {
            if rate_trace_sha256.is_some() {
                let text = "there is no `rate-trace` to have it".into();
                problems.add(place("rate-trace-sha256"), Problem::Conflict(text));
            }
            return;
        };
        if rate.is_some() {
            let text = LinkConfigError::TwoRates.to_string();
            problems.add(place("rate-trace"), Problem::Conflict(text));
        }
        let Some(file) = trace.unread() else {
            if rate_trace_sha256.is_some() {
                let text = "steps of a rate are in no file".into();
                problems.add(place("rate-trace-sha256"), Problem::Conflict(text));
            }
            return;
        };
        let places = (place("rate-trace"), place("rate-trace-sha256"));
        self.sum(Kind::Rate, file, rate_trace_sha256, places, problems);
    }

    /// Reads a file, and compares its sum with the expected one or stores it.
    fn sum(
        &mut self,
        kind: Kind,
        file: &str,
        known: &mut Option<String>,
        (file_at, sum_at): (Span, Span),
        problems: &mut Problems,
    ) {
        let Some(directory) = &self.directory else { return };
        let sum = self.seen.entry((kind, file.into())).or_insert_with(|| {
            let path = directory.join(file);
            let sum = match kind {
                Kind::Sizes => read_trace(&path).map(|(_, sum)| sum),
                Kind::Rate => read_rate_trace(file, &path).map(|(_, sum)| sum),
            };
            sum.map_err(|error| error.to_string())
        });
        match (sum, &known) {
            (Err(error), _) => problems.add(file_at, Problem::Value(error.clone())),
            (Ok(sum), Some(wanted)) if *wanted != *sum => {
                let text = format!("the file's SHA-256 is {sum}");
                problems.add(sum_at, Problem::Conflict(text));
            }
            (Ok(sum), _) => *known = Some(sum.clone()),
        }
    }
}
