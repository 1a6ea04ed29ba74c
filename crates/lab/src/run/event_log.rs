//! Event logs of simulated hosts, in files that `transom log` shows (docs/event-log.md). Times are those of the network.

use super::RunError;
use super::build::Built;
use super::unfinished::{Content, Shared, Unfinished, lock};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use transom_stack::log::Encoded;
use transom_stack::log::file::Header;

/// The event logs of a run.
#[derive(Debug, Default)]
pub(crate) struct EventLogs(Vec<Shared<Writing>>);

/// A header and all records.
#[derive(Debug)]
struct Writing(BufWriter<File>);

impl EventLogs {
    /// Begins those that the scenario asks for.
    pub(crate) fn begin(built: &mut Built, directory: &Path) -> Result<Self, RunError> {
        let mut logs = EventLogs::default();
        for (name, node) in std::mem::take(&mut built.logged) {
            let file =
                Unfinished::<Writing>::create(directory, &format!("log-{name}.tlog"), |_| Ok(()))?;
            logs.0.push(file.clone());
            let reader = move |record: &Encoded| lock(&file).write(|log| log.0.write_all(record));
            built.network.watch_log(node, Box::new(reader));
        }
        Ok(logs)
    }

    /// Whether all that was to be written has been.
    pub(crate) fn check(&self) -> Result<(), RunError> {
        self.0.iter().try_for_each(|file| lock(file).check())
    }

    /// Completes the files.
    pub(crate) fn finish(self) -> Result<(), RunError> {
        self.check()?;
        self.0.iter().try_for_each(|file| lock(file).finish())
    }
}

impl Content for Writing {
    fn begin(mut file: BufWriter<File>) -> io::Result<Self> {
        // The network's clock has no date.
        file.write_all(&Header { origin: 0, places: 0 }.encode())?;
        Ok(Writing(file))
    }

    fn complete(mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests;
