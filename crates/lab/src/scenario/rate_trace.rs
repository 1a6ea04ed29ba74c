//! Rate traces: measured delivery opportunities of a link, in files in mahimahi's format.
//!
//! A scenario names the file relative to its own directory, and its identity includes the SHA-256 of the file. The same scenario with
//! another trace is another experiment. The contents are read when the network is built.

use super::trace::{TraceError, read_text, sha256};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use transom_sim::link::{LinkConfig, RateTrace, RateTraceError};

/// Reads the rate trace that is called `file`, and the SHA-256 of its contents in hexadecimal.
pub(crate) fn read_rate_trace(file: &str, path: &Path) -> Result<(RateTrace, String), TraceError> {
    let text = read_text(path)?;
    let trace = RateTrace::read(file, &text).map_err(|error| match error {
        RateTraceError::Line { line, what } => TraceError::Line { path: path.into(), line, what },
        RateTraceError::Empty => TraceError::Empty(path.into()),
        RateTraceError::Timeless => TraceError::Timeless(path.into()),
    })?;
    Ok((trace, sha256(&text)))
}

/// Reads the rate traces of links, each file once.
#[derive(Debug)]
pub(crate) struct RateTraces {
    directory: PathBuf,
    read: BTreeMap<String, (RateTrace, String)>,
}

impl RateTraces {
    /// `directory` is the scenario's, to which file names are relative.
    pub(crate) fn new(directory: &Path) -> Self {
        RateTraces { directory: directory.into(), read: BTreeMap::new() }
    }

    /// The same link with its rate trace, if it has one in a file, read.
    pub(crate) fn read(&mut self, config: &LinkConfig) -> Result<LinkConfig, TraceError> {
        let mut config = config.clone();
        let Some(file) = config.rate_trace.as_ref().and_then(RateTrace::unread) else {
            return Ok(config);
        };
        let path = self.directory.join(file);
        let (trace, sum) = match self.read.get(file) {
            Some(read) => read,
            None => {
                let read = read_rate_trace(file, &path)?;
                self.read.entry(file.into()).or_insert(read)
            }
        };
        if config.rate_trace_sha256.as_ref().is_some_and(|wanted| wanted != sum) {
            return Err(TraceError::Changed { path, sum: sum.clone() });
        }
        config.rate_trace = Some(trace.clone());
        Ok(config)
    }
}
