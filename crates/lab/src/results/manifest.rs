//! `run.json`: the description of a stored run, its results, and its files.
//!
//! Nothing in it differs from machine to machine or from time to time.

use super::plan::PlannedRun;
use crate::run::Judgement;
use crate::scenario::{Band, Name, RunId, Setting};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// The manifest's file.
pub(super) const FILE: &str = "run.json";

/// The description of a stored run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Manifest {
    pub(super) format: u32,
    /// Which run.
    pub id: RunId,
    /// Which program: see [`VERSION`](crate::VERSION).
    pub version: String,
    /// Units of a program's own that took part, with digests of their sources.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub units: Option<String>,
    /// The scenario's name.
    pub name: String,
    /// The point of the sweep, from one.
    pub point: usize,
    /// The settings of the sweep at its point.
    pub settings: Vec<Setting>,
    /// The seed.
    pub seed: u64,
    /// Packets that left a host.
    pub packets: u64,
    /// Events of the simulation; none of a run in real time.
    pub events: Option<u64>,
    /// Of flows whose connections did not have all their extensions, or not to the end: which, and why.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub departures: BTreeMap<Name, Vec<String>>,
    /// The bands of this run alone, with their results.
    pub bands: Vec<Judgement>,
    /// The bands that compare it with another.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub comparisons: Vec<Compared>,
    /// The other files in its directory, by name.
    pub files: Vec<FileEntry>,
}

/// A band that compares a run with one of another point of the sweep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[non_exhaustive]
pub struct Compared {
    /// The run that it is compared with.
    pub baseline: PlannedRun,
    /// The band; its `relative_to` is measured of the other run.
    pub band: Band,
    /// The result; none as long as the other run is missing.
    pub judgement: Option<Judgement>,
}

/// A file of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct FileEntry {
    /// Its name in the run's directory.
    pub name: String,
    /// How long it is.
    pub bytes: u64,
    /// The SHA-256 of its contents, in hexadecimal.
    pub sha256: String,
}

/// The state of a finished run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// Nothing is expected of it.
    Done,
    /// Everything that is expected holds.
    Passed,
    /// Something that is expected does not hold.
    Failed,
    /// Something is compared with a run that is not there.
    Waiting,
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            State::Done => "done",
            State::Passed => "passed",
            State::Failed => "failed",
            State::Waiting => "waiting",
        })
    }
}

impl Manifest {
    /// The results of all bands that could be judged.
    pub fn judgements(&self) -> impl Iterator<Item = &Judgement> {
        let compared = self.comparisons.iter().filter_map(|one| one.judgement.as_ref());
        self.bands.iter().chain(compared)
    }

    /// Whether all bands hold; none while all that were judged do, and some were not.
    pub fn passed(&self) -> Option<bool> {
        if !self.judgements().all(|one| one.passed) {
            return Some(false);
        }
        (self.waiting() == 0).then_some(true)
    }

    /// Its state, in one word for all commands and pages.
    pub fn state(&self) -> State {
        let judged = self.bands.iter().map(|one| &one.band);
        let mut all = judged.chain(self.comparisons.iter().map(|one| &one.band));
        let expects = all.any(Band::expects);
        match self.passed() {
            Some(false) => State::Failed,
            None => State::Waiting,
            Some(true) if expects => State::Passed,
            Some(true) => State::Done,
        }
    }

    /// How many bands wait for another run.
    pub fn waiting(&self) -> usize {
        self.comparisons.iter().filter(|one| one.judgement.is_none()).count()
    }
}
