//! Captures of links, in files that Wireshark opens.
//!
//! A link has one file for each of its ends: the view of `tcpdump` at that node's interface. Outbound packets are those that the node gives to the
//! link, including those that the link's queue drops. Inbound packets are those that come out of the link, in their state there: marked, damaged,
//! duplicated, or missing. Times are those of the network, in nanoseconds from its start. With comments, a segment that a host sends has one in the
//! capture at that host.
//!
//! A file has a temporary name until it is complete, and is removed if it never is. If it cannot be written, because the disk is full, the run
//! continues.

use super::RunError;
use super::build::Built;
use super::unfinished::{Files, Shared};
use crate::lock;
use crate::scenario::{Name, Resolved};
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use transom_device::{Capture, Direction, InterfaceId};
use transom_tcp::time::Instant;

/// A capture of one interface, with both directions.
type Writing = (Capture<BufWriter<File>>, InterfaceId);

/// Begins those that the scenario asks for.
pub(super) fn begin(
    files: &mut Files,
    scenario: &Resolved,
    built: &mut Built,
    directory: &Path,
) -> Result<(), RunError> {
    let wanted = &scenario.measure.capture;
    for (link, (there, back)) in scenario.links.iter().zip(built.ways.clone()) {
        if wanted.binary_search(&link.name).is_err() {
            continue;
        }
        for (node, out, inwards) in [(&link.from, there, back), (&link.to, back, there)] {
            let begin = |file| {
                let mut capture = Capture::new(file)?;
                let interface = capture.add_interface(&format!("{} at {node}", link.name))?;
                Ok((capture, interface))
            };
            let complete = |(capture, _): Writing| capture.finish().map(drop);
            let file = files.create(directory, &file_name(&link.name, node), begin, complete)?;
            built.network.tap(out, tap(&file, Direction::Outbound));
            built.network.tap_arrivals(inwards, tap(&file, Direction::Inbound));
        }
    }
    Ok(())
}

fn file_name(link: &Name, node: &Name) -> String {
    format!("capture-{link}@{node}.pcapng")
}

/// The files that a scenario asks for.
pub(super) fn file_names(scenario: &Resolved) -> impl Iterator<Item = String> {
    let wanted = &scenario.measure.capture;
    let links = scenario.links.iter().filter(|link| wanted.binary_search(&link.name).is_ok());
    links.flat_map(|link| [&link.from, &link.to].map(|node| file_name(&link.name, node)))
}

fn tap(
    file: &Shared<Writing>,
    direction: Direction,
) -> impl FnMut(Instant, &[u8], Option<&str>) + Send + use<> {
    let file = file.clone();
    move |at, packet, comment| {
        lock(&file).write(|(capture, interface)| {
            capture.write(*interface, at, direction, &[packet], comment)
        });
    }
}

#[cfg(test)]
mod tests;
