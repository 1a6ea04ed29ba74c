//! `summary.csv` and `summary.parquet`: a line for each run, with its settings, its seed and every measure, whether anything is expected or not.
//!
//! The first columns say which run it is. Then come the settings of the sweep by their paths, and then the numbers of the runs. A run
//! that has no such number has an empty cell.

use super::store::Store;
use super::stored::StoredRun;
use super::{StoreError, files};
use crate::run::{Number, numbers};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// The file for everybody.
pub const SUMMARY_CSV: &str = "summary.csv";
/// The same for those who read Parquet; only a build with the feature `parquet` writes it.
pub const SUMMARY_PARQUET: &str = "summary.parquet";

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
    /// The settings of the sweep: path and value.
    pub settings: Vec<(String, String)>,
    /// The numbers.
    pub numbers: Vec<Number>,
}

impl Line {
    /// The line of a stored run.
    ///
    /// # Errors
    /// [`StoreError`] if something that is stored cannot be read.
    pub fn of(run: &StoredRun) -> Result<Line, StoreError> {
        let manifest = run.manifest();
        let name = run.directory().file_name().unwrap_or_default();
        let settings = manifest.settings.iter();
        Ok(Line {
            run: name.to_string_lossy().into_owned(),
            scenario: manifest.name.clone(),
            point: manifest.point,
            seed: manifest.seed,
            state: manifest.state().to_string(),
            settings: settings.map(|one| (one.path.to_string(), one.value.to_string())).collect(),
            numbers: numbers(&run.scenario()?, &run.observations()?),
        })
    }
}

/// The summary of a results directory.
#[derive(Debug, Default)]
pub struct Summary {
    /// The names of the settings, in the order of their first run.
    settings: Vec<String>,
    /// The names of the numbers, in the same order.
    numbers: Vec<String>,
    lines: Vec<Line>,
}

impl Summary {
    /// Puts lines together.
    pub fn of(lines: Vec<Line>) -> Summary {
        let mut summary = Summary::default();
        let add = |names: &mut Vec<String>, name: &String, known: &mut BTreeSet<String>| {
            if known.insert(name.clone()) {
                names.push(name.clone());
            }
        };
        let (mut settings, mut numbers) = (BTreeSet::new(), BTreeSet::new());
        for line in &lines {
            line.settings
                .iter()
                .for_each(|(path, _)| add(&mut summary.settings, path, &mut settings));
            line.numbers
                .iter()
                .for_each(|number| add(&mut summary.numbers, &number.name, &mut numbers));
        }
        // What no run has says nothing.
        let all = lines.iter().flat_map(|line| &line.numbers);
        let there: BTreeSet<&str> =
            all.filter(|one| one.value.is_some()).map(|one| one.name.as_str()).collect();
        summary.numbers.retain(|name| there.contains(name.as_str()));
        summary.lines = lines;
        summary
    }

    /// The lines.
    pub fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// The names of the swept settings.
    pub fn settings(&self) -> &[String] {
        &self.settings
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
        let mut text = String::new();
        let heads = RUN.iter().map(|name| (*name).to_owned());
        let heads = heads.chain(self.settings.iter().cloned()).chain(self.numbers.iter().cloned());
        text.push_str(&heads.map(|head| quoted(&head)).collect::<Vec<_>>().join(","));
        text.push('\n');
        for line in &self.lines {
            let Line { run, scenario, point, seed, state, .. } = line;
            let _ = write!(
                text,
                "{},{},{point},{seed},{}",
                quoted(run),
                quoted(scenario),
                quoted(state)
            );
            for cell in self.settings_of(line) {
                let _ = write!(text, ",{}", quoted(cell));
            }
            for number in self.numbers_of(line) {
                text.push(',');
                if let Some(number) = number {
                    let _ = write!(text, "{number}");
                }
            }
            text.push('\n');
        }
        text
    }

    /// The cells of a line in the columns of settings.
    pub(super) fn settings_of<'a>(&'a self, line: &'a Line) -> impl Iterator<Item = &'a str> {
        self.settings.iter().map(|path| {
            let found = line.settings.iter().find(|(own, _)| own == path);
            found.map_or("", |(_, value)| value.as_str())
        })
    }

    /// The cells of a line in the columns of numbers.
    pub(super) fn numbers_of<'a>(
        &'a self,
        line: &'a Line,
    ) -> impl Iterator<Item = Option<f64>> + 'a {
        let known: BTreeMap<&str, Option<f64>> =
            line.numbers.iter().map(|number| (number.name.as_str(), number.value)).collect();
        self.numbers.iter().map(move |name| known.get(name.as_str()).copied().flatten())
    }

    /// The names of the columns of numbers.
    #[cfg(feature = "parquet")]
    pub(super) fn numbers(&self) -> &[String] {
        &self.numbers
    }
}

/// A cell, in quotes if it has to be.
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}
