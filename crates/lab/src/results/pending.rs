//! A run while it is made, and how it is stored when it is finished.

use super::files;
use super::manifest::{self, Compared, FileEntry, Manifest};
use super::plan::{Plan, PlannedRun};
use super::stored::{PARQUET, PLAIN, SCENARIO, StoredRun};
use super::tables::{COMPLETIONS, FLOWS, LINKS};
use super::{FORMAT, StoreError, column::Table, csv};
use crate::run::{Observations, judge};
use crate::scenario::Variant;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use transom_device::own_file;

/// A run to make: its entry in the plan, and the experiment.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// Which of its runs.
    pub planned: &'a PlannedRun,
    /// The point of the sweep.
    pub variant: &'a Variant,
}

/// A run that is being made. It has a directory for what is written on the way; unless it is finished, nothing of it stays.
#[derive(Debug)]
pub struct Pending {
    unfinished: PathBuf,
    /// The directory that it becomes.
    place: PathBuf,
}

impl Run<'_> {
    /// Its comparisons, of which nothing has come yet.
    fn comparisons(&self) -> Vec<Compared> {
        let compared = |comparison: &crate::scenario::Comparison| {
            let baseline = self.plan.run(comparison.baseline + 1, self.planned.seed)?.clone();
            Some(Compared { baseline, band: comparison.band.clone(), judgement: None })
        };
        self.variant.comparisons.iter().filter_map(compared).collect()
    }

    /// Whether a stored run agrees with this one, including the parts outside of its identity.
    pub(super) fn is_as_stored(&self, stored: &StoredRun) -> Result<bool, StoreError> {
        let text = stored.contents(SCENARIO)?;
        let Manifest { point, settings, comparisons, .. } = &*stored.manifest;
        let own = self.comparisons();
        let same = |(one, other): (&Compared, &Compared)| {
            (&one.baseline, &one.band) == (&other.baseline, &other.band)
        };
        Ok(*point == self.planned.point
            && *settings == self.variant.settings
            && comparisons.len() == own.len()
            && comparisons.iter().zip(&own).all(same)
            && text == self.variant.resolved.to_toml().as_bytes())
    }
}

impl Pending {
    /// A run of this name for a results directory; it is made in `workshop`, which is in the same file system.
    pub(super) fn new(store: &Path, workshop: &Path, name: &str) -> Result<Pending, StoreError> {
        let own = format!("{}{name}-{}", files::UNFINISHED, std::process::id());
        let pending = Pending { unfinished: workshop.join(own), place: store.join(name) };
        fs::create_dir(&pending.unfinished).map_err(StoreError::io("make", &pending.unfinished))?;
        Ok(pending)
    }

    /// A directory for files that are stored with the run: captures, output of programs.
    pub fn directory(&self) -> &Path {
        &self.unfinished
    }

    /// Judges the run, writes down what was seen, and puts it in its place.
    ///
    /// # Errors
    /// [`StoreError`] if something cannot be written; nothing is left then.
    pub fn finish(self, run: Run<'_>, seen: &Observations) -> Result<StoredRun, StoreError> {
        let Run { plan, planned, variant } = run;
        let scenario = &variant.resolved;
        let toml = scenario.to_toml();
        self.file(SCENARIO, |to| to.write_all(toml.as_bytes()))?;
        let made_by = [
            ("transom.version", crate::VERSION.to_owned()),
            ("transom.run", planned.id.to_string()),
            ("transom.seed", planned.seed.to_string()),
            ("transom.scenario", toml),
        ];
        self.table(&FLOWS, &made_by, &seen.flows)?;
        self.table(&COMPLETIONS, &made_by, &seen.flows)?;
        self.table(&LINKS, &made_by, &seen.links)?;
        let manifest = Manifest {
            format: FORMAT,
            id: planned.id,
            version: crate::VERSION.into(),
            units: plan.units.clone(),
            name: scenario.scenario.name.to_string(),
            point: planned.point,
            settings: variant.settings.clone(),
            seed: planned.seed,
            packets: seen.packets,
            events: seen.events,
            departures: seen
                .flows
                .iter()
                .filter(|flow| !flow.departures.is_empty())
                .map(|flow| (flow.name.clone(), flow.departures.clone()))
                .collect(),
            bands: judge(scenario, seen),
            comparisons: run.comparisons(),
            files: self.entries()?,
        };
        self.file(manifest::FILE, |to| to.write_all(files::json(&manifest).as_bytes()))?;
        self.put_in_place()?;
        Ok(StoredRun { directory: self.place.clone(), manifest: Box::new(manifest) })
    }

    fn table<O, R>(
        &self,
        table: &Table<O, R>,
        made_by: &[(&str, String)],
        owners: &[O],
    ) -> Result<(), StoreError> {
        let name = |form| format!("{}.{form}", table.name);
        self.file(&name("csv"), |to| csv::write(to, table, owners))?;
        #[cfg(feature = "parquet")]
        return self.file(&name(PARQUET), |to| {
            super::parquet::write(to, table, made_by, owners).map_err(std::io::Error::other)
        });
        #[cfg(not(feature = "parquet"))]
        self.file(&name(PLAIN), |to| super::plain::write(to, table, made_by, owners))
    }

    fn file(
        &self,
        name: &str,
        write: impl FnOnce(&mut BufWriter<File>) -> std::io::Result<()>,
    ) -> Result<(), StoreError> {
        let path = self.unfinished.join(name);
        let written = own_file::output(&path).map(BufWriter::new).and_then(|mut file| {
            write(&mut file)?;
            file.flush()
        });
        written.map_err(StoreError::io("write", &path))
    }

    /// The files of the directory.
    fn entries(&self) -> Result<Vec<FileEntry>, StoreError> {
        let one = |path: &PathBuf| {
            let (bytes, sha256) = files::pass(path, &mut std::io::sink())?;
            let name = path.strip_prefix(&self.unfinished).unwrap_or(path);
            Ok(FileEntry { name: name.to_string_lossy().into_owned(), bytes, sha256 })
        };
        files::within(&self.unfinished)?.iter().map(one).collect()
    }

    /// Takes over the files of an earlier form of the run, as far as they are not written anew.
    pub(super) fn keep(&self, stored: &StoredRun) -> Result<(), StoreError> {
        let tables = [FLOWS.name, COMPLETIONS.name, LINKS.name];
        let anew = |name: &str| {
            let is_table = |(stem, form): (&str, &str)| {
                tables.contains(&stem) && ["csv", PARQUET, PLAIN].contains(&form)
            };
            name == SCENARIO || name.split_once('.').is_some_and(is_table)
        };
        for file in stored.manifest.files.iter().filter(|file| !anew(&file.name)) {
            self.take(stored, file)?;
        }
        Ok(())
    }

    /// Copies a file of another run's directory.
    fn take(&self, stored: &StoredRun, file: &FileEntry) -> Result<(), StoreError> {
        let (from, path) = (stored.directory.join(&file.name), self.unfinished.join(&file.name));
        let made = path.parent().map_or(Ok(()), fs::create_dir_all);
        let mut to =
            made.and_then(|()| own_file::output(&path)).map_err(StoreError::io("write", &path))?;
        let (_, sha256) = files::pass(&from, &mut to)?;
        if sha256 == file.sha256 { Ok(()) } else { Err(StoreError::altered(&from)) }
    }

    /// Copies a run of another directory.
    pub(super) fn copy(self, stored: &StoredRun) -> Result<(), StoreError> {
        stored.manifest.files.iter().try_for_each(|file| self.take(stored, file))?;
        let manifest = files::json(&stored.manifest);
        self.file(manifest::FILE, |to| to.write_all(manifest.as_bytes()))?;
        self.put_in_place()
    }

    /// Moves it to its place: afterwards there is either a whole run or none.
    fn put_in_place(&self) -> Result<(), StoreError> {
        let wrong = || StoreError::io("write", &self.place);
        if self.place.exists() {
            let aside = self.unfinished.with_extension("old");
            fs::rename(&self.place, &aside).map_err(wrong())?;
            fs::rename(&self.unfinished, &self.place).map_err(wrong())?;
            return fs::remove_dir_all(&aside).map_err(StoreError::io("remove", &aside));
        }
        fs::rename(&self.unfinished, &self.place).map_err(wrong())
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        // After it was put in its place there is nothing here.
        let _ = fs::remove_dir_all(&self.unfinished);
    }
}
