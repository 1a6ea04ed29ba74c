//! The extension sockets of the processes: found, and watched for connections.

use super::attachment::{LONGEST, Line, Offered};
use super::wire::{Wire, is_absent, malformed};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// The most sockets at a time.
const MOST: usize = 256;
/// The most names of a directory that are looked at.
const MOST_NAMES: usize = 4096;

/// The paths of sockets, and the connections to them.
#[derive(Debug)]
pub(super) struct Sockets {
    /// Sockets, and directories of sockets.
    places: Vec<PathBuf>,
    /// The server's own socket, by its absolute path; it may be in such a directory.
    own: Option<PathBuf>,
    pub(super) watched: BTreeMap<PathBuf, Watcher>,
    /// Those that were refused already, so that it is said once.
    refused: BTreeSet<PathBuf>,
}

/// A process that tells of its connections.
#[derive(Debug)]
pub(super) struct Watcher {
    pub(super) wire: Wire,
    pub(super) process: i32,
    greeted: bool,
}

impl Sockets {
    pub(super) fn new(places: Vec<PathBuf>, own: Option<PathBuf>) -> Self {
        Sockets { places, own, watched: BTreeMap::new(), refused: BTreeSet::new() }
    }

    /// Whether there can be any.
    pub(super) fn are_expected(&self) -> bool {
        !self.places.is_empty()
    }

    /// Connects to those that have come. Returns those that cannot be used, and why.
    pub(super) fn look(&mut self) -> Vec<(PathBuf, io::Error)> {
        let mut refused = Vec::new();
        for path in self.present() {
            if self.watched.len() >= MOST {
                break;
            }
            let is_own = || self.own.is_some() && self.own == path.canonicalize().ok();
            if self.watched.contains_key(&path) || is_own() {
                continue;
            }
            match Watcher::connect(&path) {
                Ok(watcher) => {
                    self.refused.remove(&path);
                    self.watched.insert(path, watcher);
                }
                Err(error) if is_absent(&error) => {}
                Err(error) => refused.extend(self.refuse(&path, error).map(|error| (path, error))),
            }
        }
        refused
    }

    /// Forgets a watcher, and says why if that was not said before.
    pub(super) fn drop_watcher(&mut self, path: &Path, error: io::Error) -> Option<io::Error> {
        let watcher = self.watched.remove(path)?;
        // A process that ends is no fault.
        if watcher.greeted {
            return None;
        }
        self.refuse(path, error)
    }

    /// The error, unless this path was refused before.
    fn refuse(&mut self, path: &Path, error: io::Error) -> Option<io::Error> {
        if self.refused.len() >= MOST_NAMES {
            self.refused.clear();
        }
        self.refused.insert(path.to_owned()).then_some(error)
    }

    fn present(&self) -> Vec<PathBuf> {
        let mut present = Vec::new();
        for place in &self.places {
            match std::fs::read_dir(place) {
                Ok(entries) => {
                    let entries = entries.take(MOST_NAMES).filter_map(Result::ok);
                    let is_socket = |entry: &std::fs::DirEntry| {
                        entry.file_type().is_ok_and(|kind| kind.is_socket())
                    };
                    present.extend(entries.filter(is_socket).map(|entry| entry.path()));
                }
                // It is a socket, or nothing yet.
                Err(_) => present.push(place.clone()),
            }
        }
        present
    }
}

impl Watcher {
    fn connect(path: &Path) -> io::Result<Watcher> {
        let wire = Wire::connect(path, LONGEST)?;
        let credentials = wire.credentials()?;
        if !credentials.is_trusted() {
            let reason = format!("it belongs to another user ({})", credentials.user);
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, reason));
        }
        Ok(Watcher { wire, process: credentials.process, greeted: false })
    }

    /// The connections that are on offer, or have come.
    pub(super) fn listen(&mut self) -> io::Result<Vec<Offered>> {
        self.wire.fill()?;
        let mut offered = Vec::new();
        while let Some(line) = self.wire.line()? {
            let line = Line::read(&line)?;
            if line.hello.is_some() && !self.greeted {
                self.greeted = true;
                self.wire.send_line(json!({ "watch": true }))?;
            } else if line.offered.is_none() {
                return Err(malformed("this is not what an extension socket says"));
            }
            offered.extend(line.connections);
            offered.extend(line.offered);
        }
        Ok(offered)
    }
}
