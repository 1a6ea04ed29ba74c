//! Captures of links, in files that Wireshark opens.
//!
//! Of a link there is one file for each of its ends: what somebody with `tcpdump` would have seen at that node's interface. Outbound is what
//! the node gives to the link, also what the link's queue then drops; inbound is what comes out of the link there, as it comes out:
//! marked, damaged, twice, or not at all. Times are those of the network, in nanoseconds from its start.
//!
//! A file has another name until it is complete, and goes if it never is.

use super::RunError;
use super::build::Built;
use crate::scenario::{Name, Resolved};
use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use transom_device::capture::{Capture, Direction, InterfaceId};
use transom_sim::network::Tap;

/// The captures of a run.
#[derive(Debug, Default)]
pub(crate) struct Captures(Vec<Shared>);

/// A file that is written by what comes and by what goes.
type Shared = Arc<Mutex<Writing>>;

#[derive(Debug)]
struct Writing {
    path: PathBuf,
    unfinished: PathBuf,
    capture: Option<(Capture<BufWriter<File>>, InterfaceId)>,
    /// The first thing that went wrong; nothing is written after it.
    error: Option<io::Error>,
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

    fn create(&mut self, directory: &Path, link: &Name, node: &Name) -> Result<Shared, RunError> {
        let path = directory.join(format!("capture-{link}@{node}.pcapng"));
        let unfinished = path.with_extension("pcapng.unfinished");
        let begin = || {
            let mut capture = Capture::new(BufWriter::new(File::create(&unfinished)?))?;
            let interface = capture.add_interface(&format!("{link} at {node}"))?;
            Ok((capture, interface))
        };
        match begin() {
            Ok(begun) => {
                let writing = Writing { path, unfinished, capture: Some(begun), error: None };
                let shared = Arc::new(Mutex::new(writing));
                self.0.push(shared.clone());
                Ok(shared)
            }
            Err(error) => {
                let _ = fs::remove_file(&unfinished);
                Err(RunError::Capture { path, error })
            }
        }
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

fn lock(file: &Shared) -> MutexGuard<'_, Writing> {
    file.lock().unwrap_or_else(PoisonError::into_inner)
}

fn tap(file: &Shared, direction: Direction) -> Tap {
    let file = file.clone();
    Box::new(move |at, packet| {
        let mut writing = lock(&file);
        let Writing { capture: Some((capture, interface)), error, .. } = &mut *writing else {
            return;
        };
        if error.is_none() {
            *error = capture.write(*interface, at, direction, &[packet], None).err();
        }
    })
}

impl Writing {
    fn failed(&self, error: io::Error) -> RunError {
        RunError::Capture { path: self.path.clone(), error }
    }

    fn check(&mut self) -> Result<(), RunError> {
        match self.error.take() {
            Some(error) => Err(self.failed(error)),
            None => Ok(()),
        }
    }

    fn finish(&mut self) -> Result<(), RunError> {
        let Some((capture, _)) = self.capture.take() else { return Ok(()) };
        let done = capture.finish().and_then(|_| fs::rename(&self.unfinished, &self.path));
        done.map_err(|error| {
            let _ = fs::remove_file(&self.unfinished);
            self.failed(error)
        })
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        if self.capture.is_some() {
            let _ = fs::remove_file(&self.unfinished);
        }
    }
}

#[cfg(test)]
mod tests;
