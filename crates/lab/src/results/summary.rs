//! `summary.csv` and `summary.parquet`: a line for each run, with its settings, its seed and every measure, whether anything is expected or not.
//!
//! The first columns say which run it is. Then come the settings of the sweep by their paths, and then the numbers of the runs. A run
//! that has no such number has an empty cell.

use super::store::Store;
use super::stored::StoredRun;
use super::{StoreError, files};
use crate::run::numbers;
use crate::scenario::Setting;
use std::collections::{BTreeMap, BTreeSet};

/// The file for everybody.
const SUMMARY_CSV: &str = "summary.csv";
/// The same for those who read Parquet; only a build with the feature `parquet` writes it.
#[cfg(feature = "parquet")]
const SUMMARY_PARQUET: &str = "summary.parquet";

/// The columns that say which run it is.
const RUN: [&str; 5] = ["run", "scenario", "point", "seed", "state"];

/// A line of the summary.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Line {
    /// The name of the run's directory.
    pub run: String,
    /// The scenario's name.
    pub scenario: String,
    /// The number of the point, from one.
    pub point: usize,
    /// The seed.
    pub seed: u64,
    /// In which state the run is, in the word that all commands have for it.
    pub state: String,
    /// The settings of the sweep.
    pub settings: Vec<Setting>,
    /// The numbers: the name, with the unit, and the value; none where nothing was there to be measured.
    pub numbers: Vec<(String, Option<f64>)>,
}

impl Line {
    /// The line of a stored run.
    ///
    /// # Errors
    /// [`StoreError`] if something that is stored cannot be read.
    pub fn of(run: &StoredRun) -> Result<Line, StoreError> {
        let manifest = &run.manifest;
        let name = run.directory.file_name().unwrap_or_default();
        Ok(Line {
            run: name.to_string_lossy().into_owned(),
            scenario: manifest.name.clone(),
            point: manifest.point,
            seed: manifest.seed,
            state: manifest.state().to_string(),
            settings: manifest.settings.clone(),
            numbers: numbers(&run.scenario()?, &run.observations()?),
        })
    }
}

/// The summary of a results directory.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Summary {
    /// The names of the swept settings, in the order of their first run.
    pub settings: Vec<String>,
    /// The names of the numbers, in the same order.
    pub(super) numbers: Vec<String>,
    /// A line for each run.
    pub lines: Vec<Line>,
}

impl Summary {
    /// Puts lines together.
    pub fn of(lines: Vec<Line>) -> Summary {
        let settings = lines.iter().flat_map(|line| line.settings.iter().map(|one| &one.path));
        // What no run has says nothing.
        let numbers = || lines.iter().flat_map(|line| &line.numbers);
        let there: BTreeSet<&String> =
            numbers().filter(|(_, value)| value.is_some()).map(|(name, _)| name).collect();
        let numbers = numbers().map(|(name, _)| name).filter(|name| there.contains(name));
        Summary { settings: in_order(settings), numbers: in_order(numbers), lines }
    }

    /// Writes the files into the directory of a store.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn write(&self, store: &Store) -> Result<(), StoreError> {
        let path = store.directory().join(SUMMARY_CSV);
        files::replace(&path, self.csv().as_bytes())?;
        #[cfg(feature = "parquet")]
        {
            let path = store.directory().join(SUMMARY_PARQUET);
            let bytes =
                super::parquet::summary(self).map_err(|error| StoreError::damaged(&path, error))?;
            files::replace(&path, &bytes)?;
        }
        Ok(())
    }

    /// The table as comma-separated values (RFC 4180).
    fn csv(&self) -> String {
        let heads = RUN.map(str::to_owned).into_iter();
        let mut text = row(heads.chain(self.settings.clone()).chain(self.numbers.clone()));
        for line in &self.lines {
            let Line { run, scenario, point, seed, state, .. } = line;
            let run = [run, scenario, &point.to_string(), &seed.to_string(), state];
            let settings = self.settings_of(line).map(str::to_owned);
            let numbers = self.numbers_of(line);
            let numbers = numbers.map(|cell| cell.map_or(String::new(), |cell| cell.to_string()));
            text += &row(run.into_iter().cloned().chain(settings).chain(numbers));
        }
        text
    }

    /// The cells of a line in the columns of settings.
    pub(super) fn settings_of<'a>(&'a self, line: &'a Line) -> impl Iterator<Item = &'a str> {
        self.settings.iter().map(|path| {
            let found = line.settings.iter().find(|one| one.path == *path);
            found.map_or("", |one| one.value.as_str())
        })
    }

    /// The cells of a line in the columns of numbers.
    pub(super) fn numbers_of<'a>(
        &'a self,
        line: &'a Line,
    ) -> impl Iterator<Item = Option<f64>> + 'a {
        let known: BTreeMap<&str, Option<f64>> =
            line.numbers.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        self.numbers.iter().map(move |name| known.get(name.as_str()).copied().flatten())
    }
}

/// Each name once, in the order of their first places.
fn in_order<'a>(names: impl Iterator<Item = &'a String>) -> Vec<String> {
    let mut known = BTreeSet::new();
    names.filter(|name| known.insert(*name)).cloned().collect()
}

/// A line of cells, in quotes where they have to be.
fn row(cells: impl Iterator<Item = String>) -> String {
    let quoted = |cell: String| match cell.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", cell.replace('"', "\"\"")),
        false => cell,
    };
    cells.map(quoted).collect::<Vec<_>>().join(",") + "\n"
}
