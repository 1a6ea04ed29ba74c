//! A finished run.

use super::files::{self, sha256};
use super::manifest::{self, Manifest};
use super::tables::{COMPLETIONS, FLOWS, LINKS};
use super::{StoreError, column::Table, plain};
use crate::run::{FlowObservations, Observations};
use crate::scenario::{Resolved, Scenario};
use std::fs;
use std::path::{Path, PathBuf};

/// The file with the scenario.
pub(super) const SCENARIO: &str = "scenario.toml";
/// How the files of tables end that a run is read back from: Parquet files, and plain text.
pub(super) const PARQUET: &str = "parquet";
pub(super) const PLAIN: &str = "table";

/// A run that is finished and stored.
#[derive(Clone, Debug)]
pub struct StoredRun {
    /// Its directory.
    pub directory: PathBuf,
    /// Its description and results.
    pub manifest: Box<Manifest>,
}

impl StoredRun {
    /// Opens a run's directory. It checks that its files exist with the right lengths; their contents are checked when they are read.
    ///
    /// # Errors
    /// [`StoreError`] if there is no complete run.
    pub fn open(directory: &Path) -> Result<StoredRun, StoreError> {
        let manifest: Manifest = files::read_json(&directory.join(manifest::FILE))?;
        for file in &manifest.files {
            let path = directory.join(&file.name);
            // A name that leads elsewhere is none of a run's files.
            let is_within = Path::new(&file.name)
                .components()
                .all(|part| matches!(part, std::path::Component::Normal(_)));
            if !is_within {
                let what = format!("it names the file {:?}", file.name);
                return Err(StoreError::damaged(&directory.join(manifest::FILE), what));
            }
            let found = fs::metadata(&path).map_err(StoreError::io("read", &path))?.len();
            if found != file.bytes {
                let what = format!("it has {found} bytes and should have {}", file.bytes);
                return Err(StoreError::damaged(&path, what));
            }
        }
        Ok(StoredRun { directory: directory.into(), manifest: Box::new(manifest) })
    }

    /// The scenario, with everything written out.
    ///
    /// # Errors
    /// [`StoreError`] if the file is not what was written.
    pub fn scenario(&self) -> Result<Resolved, StoreError> {
        let path = self.directory.join(SCENARIO);
        let text = String::from_utf8(self.contents(SCENARIO)?)
            .map_err(|error| StoreError::damaged(&path, error))?;
        let scenario = Scenario::parse(SCENARIO, &text)
            .map_err(|errors| StoreError::damaged(&path, errors.to_string().trim_end()))?;
        let resolved = scenario.point(0).map(|variant| variant.resolved);
        resolved.ok_or_else(|| StoreError::damaged(&path, "it is no scenario"))
    }

    /// The observations, as they were stored.
    ///
    /// # Errors
    /// [`StoreError`] if a file is not what was written.
    pub fn observations(&self) -> Result<Observations, StoreError> {
        let mut flows = self.table(&FLOWS)?;
        let completions = self.table(&COMPLETIONS)?;
        let same = |(one, other): (&FlowObservations, &FlowObservations)| one.name == other.name;
        if flows.len() != completions.len() || !flows.iter().zip(&completions).all(same) {
            let path = self.directory.join(self.form_of(COMPLETIONS.name));
            return Err(StoreError::damaged(&path, "it is about other flows"));
        }
        for (flow, completed) in flows.iter_mut().zip(completions) {
            flow.completions = completed.completions;
            flow.departures = self.manifest.departures.get(&flow.name).cloned().unwrap_or_default();
        }
        Ok(Observations {
            flows,
            links: self.table(&LINKS)?,
            packets: self.manifest.packets,
            events: self.manifest.events,
            lost: Vec::new(),
        })
    }

    fn table<O, R: Default>(&self, table: &Table<O, R>) -> Result<Vec<O>, StoreError> {
        let name = self.form_of(table.name);
        let contents = self.contents(&name)?;
        let path = self.directory.join(&name);
        if name.ends_with(PLAIN) {
            return plain::read(table, &contents).map_err(|what| StoreError::damaged(&path, what));
        }
        #[cfg(feature = "parquet")]
        return super::parquet::read(table, contents)
            .map_err(|what| StoreError::damaged(&path, what));
        #[cfg(not(feature = "parquet"))]
        Err(StoreError::NoParquet(path))
    }

    /// The name of the file that a table is read from.
    fn form_of(&self, table: &str) -> String {
        let plain = format!("{table}.{PLAIN}");
        let is_plain = self.manifest.files.iter().any(|file| file.name == plain);
        if is_plain { plain } else { format!("{table}.{PARQUET}") }
    }

    /// The contents of one of its files, which are what they were.
    pub(super) fn contents(&self, name: &str) -> Result<Vec<u8>, StoreError> {
        let path = self.directory.join(name);
        let Some(entry) = self.manifest.files.iter().find(|file| file.name == name) else {
            let manifest = self.directory.join(manifest::FILE);
            return Err(StoreError::damaged(&manifest, format!("it has no file {name:?}")));
        };
        let contents = files::read(&path)?;
        if sha256(&contents) != entry.sha256 {
            return Err(StoreError::altered(&path));
        }
        Ok(contents)
    }

    /// How many bytes its files have, the manifest and pages included.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn size(&self) -> Result<u64, StoreError> {
        let all = files::within(&self.directory)?;
        all.iter().try_fold(0, |sum, path| {
            let length = fs::metadata(path).map_err(StoreError::io("read", path))?.len();
            Ok(sum + length)
        })
    }
}
