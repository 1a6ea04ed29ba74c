//! Rate traces: measured delivery opportunities of a link, in files in mahimahi's format.
//!
//! A scenario names the file relative to its own directory, and its identity includes the SHA-256 of the file. The same scenario with
//! another trace is another experiment. The contents are read when the network is built.

use super::trace::{TraceError, read_text, sha256};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use transom_sim::link::{LinkConfig, Opportunities, RateTraceError};

/// Reads a rate trace: its opportunities, and the SHA-256 of its contents in hexadecimal.
pub(crate) fn read_rate_trace(path: &Path) -> Result<(Opportunities, String), TraceError> {
    let text = read_text(path)?;
    let opportunities = Opportunities::parse(&text).map_err(|error| match error {
        RateTraceError::Line { line, what } => TraceError::Line { path: path.into(), line, what },
        RateTraceError::Empty => TraceError::Empty(path.into()),
        RateTraceError::Timeless => TraceError::Timeless(path.into()),
    })?;
    Ok((opportunities, sha256(&text)))
}

/// Reads the rate traces of links, each file once.
#[derive(Debug)]
pub(crate) struct RateTraces {
    directory: PathBuf,
    read: BTreeMap<String, (Opportunities, String)>,
}

impl RateTraces {
    /// `directory` is the scenario's, to which file names are relative.
    pub(crate) fn new(directory: &Path) -> Self {
        RateTraces { directory: directory.into(), read: BTreeMap::new() }
    }

    /// The same link with its rate trace, if it has one in a file, read.
    pub(crate) fn read(&mut self, config: &LinkConfig) -> Result<LinkConfig, TraceError> {
        let mut config = config.clone();
        let Some(trace) = config.rate_trace.take_if(|trace| trace.needs_file()) else {
            return Ok(config);
        };
        let path = self.directory.join(trace.text());
        let (opportunities, sum) = match self.read.get(trace.text()) {
            Some(read) => read,
            None => {
                let read = read_rate_trace(&path)?;
                self.read.entry(trace.text().into()).or_insert(read)
            }
        };
        if config.rate_trace_sha256.as_ref().is_some_and(|wanted| wanted != sum) {
            return Err(TraceError::Changed { path, sum: sum.clone() });
        }
        config.rate_trace = Some(trace.with(opportunities.clone()));
        Ok(config)
    }
}
