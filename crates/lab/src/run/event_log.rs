//! Event logs of simulated hosts, in files that `transom log` shows (docs/event-log.md). Times are those of the network.

use super::RunError;
use super::build::Built;
use super::unfinished::Files;
use crate::lock;
use crate::scenario::{HostKind, Name, Resolved};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use transom_stack::log::Encoded;
use transom_stack::log::file::Header;

/// Begins those that the scenario asks for.
pub(super) fn begin(
    files: &mut Files,
    built: &mut Built,
    directory: &Path,
) -> Result<(), RunError> {
    for (name, node) in std::mem::take(&mut built.logged) {
        let begin = |mut file: BufWriter<File>| {
            // The network's clock has no date.
            file.write_all(&Header { origin: 0, places: 0 }.encode())?;
            Ok(file)
        };
        let complete = |mut file: BufWriter<File>| file.flush();
        let file = files.create(directory, &file_name(&name), begin, complete)?;
        let reader = move |record: &Encoded| lock(&file).write(|file| file.write_all(record));
        built.network.watch_log(node, reader);
    }
    Ok(())
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

#[cfg(test)]
mod tests;
