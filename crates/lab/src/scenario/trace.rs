//! Trace files: what a flow sends when, as somebody has measured it.
//!
//! A line has a time in seconds since the flow's start and a number of bytes, with a comma between them; times do not go back. Empty
//! lines and lines that begin with `#` say nothing. A scenario's identity holds the SHA-256 of the file: the same scenario with another
//! trace is another experiment.

use super::error::{Problem, Problems};
use super::traffic::Trace;
use super::tree::Span;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use transom_sim::units::parse_duration;
use transom_tcp::time::Duration;

/// Why a trace file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// It cannot be read.
    #[error("the trace {} cannot be read: {error}", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// A line is not a time and a size.
    #[error("line {line} of the trace {} {what}", .path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line's number, from one.
        line: usize,
        /// What is wrong with it.
        what: &'static str,
    },
    /// There is nothing in it.
    #[error("the trace {} has no entries", .0.display())]
    Empty(PathBuf),
}

/// A time since the flow's start, and how many bytes then.
pub type TraceEntry = (Duration, u64);

/// Reads a trace file: its entries, and the SHA-256 of its contents in hexadecimal.
///
/// # Errors
/// [`TraceError`] if there is no such file or a line is wrong.
pub fn read_trace(path: &Path) -> Result<(Vec<TraceEntry>, String), TraceError> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| TraceError::Unreadable { path: path.into(), error })?;
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
    let digest = Sha256::digest(text.as_bytes());
    Ok((entries, digest.iter().map(|byte| format!("{byte:02x}")).collect()))
}

/// The files that a scenario names, each looked at once.
#[derive(Debug, Default)]
pub(super) struct Files {
    /// Where names begin. Without it, no file is looked at.
    directory: Option<PathBuf>,
    seen: BTreeMap<String, Result<String, String>>,
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
        let Some(directory) = &self.directory else { return };
        let sum = self.seen.entry(trace.file.clone()).or_insert_with(|| {
            match read_trace(&directory.join(&trace.file)) {
                Ok((_, sum)) => Ok(sum),
                Err(error) => Err(error.to_string()),
            }
        });
        match (sum, &trace.sha256) {
            (Err(error), _) => problems.add(place("file"), Problem::Value(error.clone())),
            (Ok(sum), Some(wanted)) if wanted != sum => {
                let text = format!("the file's SHA-256 is {sum}");
                problems.add(place("sha256"), Problem::Conflict(text));
            }
            (Ok(sum), _) => trace.sha256 = Some(sum.clone()),
        }
    }
}
