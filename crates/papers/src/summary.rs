//! The summary of an experiment's runs: the values for claims and columns.
//!
//! A summary is small enough for the repository. It has measurements only. The claims and the accepted values are in the scenario, so that changing a
//! band or a text repeats no run.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use transom_lab::results::{Found, Manifest, Store, StoredRun};
use transom_lab::run::{Judgement, compare, judge};
use transom_lab::scenario::{Band, Quantity, RunId, Setting, Variant};

use crate::{Error, Experiment, form};

/// The form of the files.
const FORMAT: u32 = 1;

/// The measurements of an experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Summary {
    format: u32,
    /// The experiment.
    pub(crate) id: String,
    /// Whether it was run with the paper's lengths and rates.
    pub(crate) full: bool,
    /// The programs that made the runs.
    versions: Vec<String>,
    /// The runs, by point and seed.
    pub(crate) runs: Vec<RunValues>,
}

/// The measurements of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct RunValues {
    /// The settings of the sweep.
    pub(crate) settings: Vec<Setting>,
    pub(crate) seed: u64,
    pub(crate) values: Vec<Measured>,
}

/// A quantity and its values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Measured {
    pub(crate) quantity: Quantity,
    /// The divisor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) relative_to: Option<Quantity>,
    /// At which point that was measured, from one, if not at the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) baseline: Option<usize>,
    /// In bits per second, nanoseconds, bytes, or without a unit.
    pub(crate) values: Vec<Option<f64>>,
}

impl Measured {
    /// Whether it is what a band is about.
    pub(crate) fn is_of(&self, band: &Band, baseline: Option<usize>) -> bool {
        (&self.quantity, &self.relative_to, self.baseline)
            == (&band.quantity, &band.relative_to, baseline)
    }
}

impl Summary {
    /// The summary of the finished runs in a results directory that belong to the present form of this experiment, made by any version of the
    /// program. Values are calculated from the observations.
    ///
    /// # Errors
    /// If the directory or what was seen cannot be read.
    pub fn of(experiment: &Experiment, full: bool, store: &Store) -> Result<Summary, Error> {
        let emulated = experiment.described()?.emulated;
        let stored: Vec<StoredRun> = store
            .list()?
            .into_iter()
            .filter_map(|entry| match entry.found {
                Found::Finished(run) => Some(run),
                Found::Missing | Found::Damaged(_) => None,
            })
            .collect();
        let scenario = experiment.scenario(full)?;
        let points: Vec<Variant> = scenario.sweep().collect();
        // The first that is one: those of the directory's own plan come first.
        let find = |point: &Variant, seed: u64, version: Option<&str>| {
            stored.iter().find(|run| {
                let Manifest { id, version: by, seed: own, .. } = run.manifest();
                let same = version.is_none_or(|version| version == by) && *own == seed;
                same && *id == identity(point, seed, by, emulated)
            })
        };
        let mut seeds: Vec<u64> = stored.iter().map(|run| run.manifest().seed).collect();
        seeds.sort_unstable();
        seeds.dedup();
        let mut versions = Vec::new();
        let mut runs = Vec::new();
        for (point, seed) in
            points.iter().flat_map(|point| seeds.iter().map(move |seed| (point, *seed)))
        {
            let Some(run) = find(point, seed, None) else { continue };
            let version = &run.manifest().version;
            if !versions.contains(version) {
                versions.push(version.clone());
            }
            let seen = run.observations()?;
            let alone = judge(&point.resolved, &seen);
            let mut values: Vec<Measured> =
                alone.iter().filter_map(|one| measured(one, None)).collect();
            for comparison in &point.comparisons {
                let baseline = points.get(comparison.baseline);
                let other = baseline.and_then(|point| find(point, seed, Some(version)));
                if let Some(other) = other {
                    let judged = compare(comparison, &seen, &other.observations()?);
                    values.extend(measured(&judged, Some(comparison.baseline + 1)));
                }
            }
            runs.push(RunValues { settings: point.settings.clone(), seed, values });
        }
        Ok(Summary { format: FORMAT, id: experiment.id.into(), full, versions, runs })
    }

    /// Whether there is no run in it.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// The file's name.
    fn name(id: &str, full: bool) -> String {
        format!("{}.{}.json", id.replace('/', "-"), form(full))
    }

    /// Writes it to a directory, which is made if it is not there, and gives the file.
    ///
    /// # Errors
    /// If the file or the directory cannot be written.
    pub fn write(&self, directory: &Path) -> Result<PathBuf, Error> {
        let path = directory.join(Self::name(&self.id, self.full));
        let text = serde_json::to_string_pretty(self).map_err(io::Error::other);
        let mut text = text.map_err(Error::io("write", &path))?;
        text.push('\n');
        fs::create_dir_all(directory)
            .and_then(|()| fs::write(&path, text))
            .map_err(Error::io("write", &path))?;
        Ok(path)
    }

    /// Reads the one of an experiment, if it is there.
    ///
    /// # Errors
    /// If the file cannot be read, or is not a summary of this experiment in this form.
    pub fn read(directory: &Path, id: &str, full: bool) -> Result<Option<Summary>, Error> {
        let path = directory.join(Self::name(id, full));
        if !path.exists() {
            return Ok(None);
        }
        let text = fs::read_to_string(&path).map_err(Error::io("read", &path))?;
        let summary: Summary = match serde_json::from_str(&text) {
            Ok(summary) => summary,
            Err(error) => return Err(Error::NoSummary { path, error }),
        };
        if (summary.format, summary.id.as_str(), summary.full) != (FORMAT, id, full) {
            return Err(Error::AnotherSummary(path));
        }
        Ok(Some(summary))
    }
}

/// Which run of a point this version of the program makes.
fn identity(point: &Variant, seed: u64, version: &str, emulated: bool) -> RunId {
    match emulated {
        true => point.resolved.emulated_id(seed, version),
        false => point.resolved.id(seed, version),
    }
}

/// The stored part of a judgement; `None` if no table shows it.
fn measured(judgement: &Judgement, baseline: Option<usize>) -> Option<Measured> {
    let Band { quantity, relative_to, claim, column, .. } = &judgement.band;
    (claim.is_some() || column.is_some()).then(|| Measured {
        quantity: quantity.clone(),
        relative_to: relative_to.clone(),
        baseline,
        values: judgement.values.iter().map(|value| value.is_finite().then_some(*value)).collect(),
    })
}
