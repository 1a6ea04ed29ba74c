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
use super::unfinished::{Content, Files, Shared, lock};
use crate::scenario::{Name, Resolved};
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;
use transom_device::{Capture, Direction, InterfaceId};
use transom_sim::network::Tap;

/// The captures of a run.
#[derive(Debug, Default)]
pub(crate) struct Captures(Files<Writing>);

/// A capture of one interface, with both directions.
#[derive(Debug)]
struct Writing {
    capture: Capture<BufWriter<File>>,
    interface: InterfaceId,
}

impl Captures {
    /// Begins those that the scenario asks for.
    pub(crate) fn begin(
        scenario: &Resolved,
        built: &mut Built,
        directory: &Path,
    ) -> Result<Self, RunError> {
        let mut captures = Captures::default();
        let wanted = &scenario.measure.capture;
        for (link, (there, back)) in scenario.links.iter().zip(built.ways.clone()) {
            if wanted.binary_search(&link.name).is_err() {
                continue;
            }
            for (node, out, inwards) in [(&link.from, there, back), (&link.to, back, there)] {
                let file = captures.create(directory, &link.name, node)?;
                built.network.tap(out, tap(&file, Direction::Outbound));
                built.network.tap_arrivals(inwards, tap(&file, Direction::Inbound));
            }
        }
        Ok(captures)
    }

    fn create(
        &mut self,
        directory: &Path,
        link: &Name,
        node: &Name,
    ) -> Result<Shared<Writing>, RunError> {
        self.0.create(directory, &file_name(link, node), |file| {
            let mut capture = Capture::new(file)?;
            let interface = capture.add_interface(&format!("{link} at {node}"))?;
            Ok(Writing { capture, interface })
        })
    }

    /// Completes the files. Gives those that could not be written, and why.
    pub(crate) fn finish(self) -> Vec<String> {
        self.0.finish()
    }
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

impl Content for Writing {
    fn complete(self) -> io::Result<()> {
        self.capture.finish().map(drop)
    }
}

fn tap(file: &Shared<Writing>, direction: Direction) -> Tap {
    let file = file.clone();
    Box::new(move |at, packet, comment| {
        lock(&file).write(|Writing { capture, interface }| {
            capture.write(*interface, at, direction, &[packet], comment)
        });
    })
}

#[cfg(test)]
mod tests;
