//! Event logs of simulated hosts, in files that `transom log` shows (docs/event-log.md). Times are those of the network.

use super::RunError;
use super::build::Built;
use super::unfinished::{Content, Files, lock};
use crate::scenario::{HostKind, Name, Resolved};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use transom_stack::log::Encoded;
use transom_stack::log::file::Header;

/// The event logs of a run.
#[derive(Debug, Default)]
pub(crate) struct EventLogs(Files<Writing>);

/// A header and all records.
#[derive(Debug)]
struct Writing(BufWriter<File>);

impl EventLogs {
    /// Begins those that the scenario asks for.
    pub(crate) fn begin(built: &mut Built, directory: &Path) -> Result<Self, RunError> {
        let mut logs = EventLogs::default();
        for (name, node) in std::mem::take(&mut built.logged) {
            let begin = |mut file: BufWriter<File>| {
                // The network's clock has no date.
                file.write_all(&Header { origin: 0, places: 0 }.encode())?;
                Ok(Writing(file))
            };
            let file = logs.0.create(directory, &file_name(&name), begin)?;
            let reader = move |record: &Encoded| lock(&file).write(|log| log.0.write_all(record));
            built.network.watch_log(node, Box::new(reader));
        }
        Ok(logs)
    }

    /// Completes the files. Gives those that could not be written, and why.
    pub(crate) fn finish(self) -> Vec<String> {
        self.0.finish()
    }
}

fn file_name(host: &Name) -> String {
    format!("log-{host}.tlog")
}

/// The files that a scenario asks for.
pub(super) fn file_names(scenario: &Resolved) -> impl Iterator<Item = String> {
    let is_logged =
        |name: &&Name| scenario.hosts.get(*name).is_some_and(|host| host.kind == HostKind::Transom);
    scenario.measure.log.iter().filter(is_logged).map(file_name)
}

impl Content for Writing {
    fn complete(mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests;
