//! A results directory.

use super::StoreError;
use super::files::{self, UNFINISHED};
use super::manifest::{self, Manifest};
use super::pending::{Pending, Run};
use super::plan::{self, Plan, PlannedRun};
use super::stored::StoredRun;
use crate::run::{Observations, compare};
use crate::scenario::{Comparison, RunId};
use std::collections::BTreeSet;
use std::fs::{self, DirEntry, File, TryLockError};
use std::path::{Path, PathBuf};

/// A results directory.
#[derive(Debug)]
pub struct Store {
    directory: PathBuf,
    /// Runs in the making are here.
    workshop: PathBuf,
    /// Held while results are written.
    _lock: Option<File>,
}

/// Whether a run is there.
#[derive(Debug)]
pub enum Found {
    /// It is finished.
    Finished(StoredRun),
    /// It is missing.
    Missing,
    /// Something is there that cannot be used.
    Damaged(StoreError),
}

/// A run in the list of a results directory.
#[derive(Debug)]
pub struct Entry {
    /// The name of its directory.
    pub directory: String,
    /// Its entry in the plan; none for another plan, such as one before a change of the scenario.
    pub planned: Option<PlannedRun>,
    /// Whether it is there.
    pub found: Found,
}

impl Store {
    /// Opens a directory that has results.
    ///
    /// # Errors
    /// [`StoreError::NoResults`] if it has none.
    pub fn open(directory: &Path) -> Result<Store, StoreError> {
        let store = Store { directory: directory.into(), workshop: directory.into(), _lock: None };
        let is_there = directory.join(plan::FILE).is_file()
            || (directory.is_dir() && !store.run_directories()?.is_empty());
        if is_there { Ok(store) } else { Err(StoreError::NoResults(directory.into())) }
    }

    /// Opens a directory for results, and makes it if it is missing. Removes unfinished files.
    ///
    /// # Errors
    /// [`StoreError::Busy`] as long as another program has it open for writing, [`StoreError::Io`] otherwise.
    pub fn create(directory: &Path) -> Result<Store, StoreError> {
        fs::create_dir_all(directory).map_err(StoreError::io("make", directory))?;
        let lock = File::open(directory).map_err(StoreError::io("open", directory))?;
        match lock.try_lock() {
            Ok(()) => remove_unfinished(directory)?,
            Err(TryLockError::WouldBlock) => return Err(StoreError::Busy(directory.into())),
            // Not every file system can do it. Then nobody knows whether what is unfinished is in the making, and it stays.
            Err(TryLockError::Error(_)) => {}
        }
        Ok(Store { directory: directory.into(), workshop: directory.into(), _lock: Some(lock) })
    }

    /// Opens a directory for a task: one of many processes, perhaps on several machines, that each make some of the planned runs. Another
    /// process oversees them and has the directory open for writing. Unfinished runs are in `workshop`, which is in the same file system.
    ///
    /// # Errors
    /// [`StoreError::NoResults`] if there is no plan, and [`StoreError::Io`] if the workshop cannot be made.
    pub fn join(directory: &Path, workshop: &Path) -> Result<Store, StoreError> {
        if !directory.join(plan::FILE).is_file() {
            return Err(StoreError::NoResults(directory.into()));
        }
        fs::create_dir_all(workshop).map_err(StoreError::io("make", workshop))?;
        Ok(Store { directory: directory.into(), workshop: workshop.into(), _lock: None })
    }

    /// The directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The planned runs; none without a plan.
    ///
    /// # Errors
    /// [`StoreError`] if the file is not what was written.
    pub fn plan(&self) -> Result<Option<Plan>, StoreError> {
        let path = self.directory.join(plan::FILE);
        if path.exists() { files::read_json(&path).map(Some) } else { Ok(None) }
    }

    /// Writes down which runs there are to be.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn set_plan(&self, plan: &Plan) -> Result<(), StoreError> {
        files::write_json(&self.directory.join(plan::FILE), plan)
    }

    /// Begins a run.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn begin(&self, run: &PlannedRun) -> Result<Pending, StoreError> {
        Pending::new(&self.directory, &self.workshop, &run.directory)
    }

    /// Finds a run.
    pub fn find(&self, run: &PlannedRun) -> Found {
        let directory = self.directory.join(&run.directory);
        if !directory.exists() {
            return Found::Missing;
        }
        match StoredRun::open(&directory) {
            Ok(stored) if stored.manifest.id == run.id => Found::Finished(stored),
            Ok(stored) => {
                let found = stored.manifest.id.to_string();
                Found::Damaged(StoreError::OtherRun { path: directory, found })
            }
            Err(error) => Found::Damaged(error),
        }
    }

    /// Finds a run, and updates the parts outside of its identity, such as the scenario's title and expectations: the files are
    /// written again from the observations, and the bands judged again.
    ///
    /// # Errors
    /// [`StoreError::Io`] if that cannot be written; [`StoreError::NoParquet`] if this build cannot read what was seen.
    pub fn renew(&self, run: Run<'_>) -> Result<Found, StoreError> {
        let stored = match self.find(run.planned) {
            Found::Finished(stored) => stored,
            other => return Ok(other),
        };
        let seen = match run.is_as_stored(&stored) {
            Ok(true) => return Ok(Found::Finished(stored)),
            Ok(false) => stored.observations(),
            Err(error) => Err(error),
        };
        let seen = match seen {
            Ok(seen) => seen,
            // It is whole, and another build can read it.
            Err(error @ StoreError::NoParquet(_)) => return Err(error),
            Err(error) => return Ok(Found::Damaged(error)),
        };
        let pending = self.begin(run.planned)?;
        pending.keep(&stored)?;
        pending.finish(run, &seen).map(Found::Finished)
    }

    /// Judges the bands of a run that compare it with others, as far as these exist. Returns whether a result is new.
    ///
    /// # Errors
    /// [`StoreError`] if a run cannot be read, or the outcome not be written.
    pub fn compare(&self, stored: &mut StoredRun) -> Result<bool, StoreError> {
        if stored.manifest.waiting() == 0 {
            return Ok(false);
        }
        let mut own: Option<Observations> = None;
        let mut other: Option<(PathBuf, Observations)> = None;
        let mut manifest = stored.manifest.clone();
        for one in manifest.comparisons.iter_mut().filter(|one| one.judgement.is_none()) {
            let Found::Finished(baseline) = self.find(&one.baseline) else { continue };
            if own.is_none() {
                own = Some(stored.observations()?);
            }
            if other.as_ref().is_none_or(|(path, _)| *path != baseline.directory) {
                other = Some((baseline.directory.clone(), baseline.observations()?));
            }
            let (Some(own), Some((_, other))) = (&own, &other) else { continue };
            // The run is the baseline's: which point that is does not matter any more.
            let comparison = Comparison { band: one.band.clone(), baseline: 0 };
            one.judgement = Some(compare(&comparison, own, other));
        }
        let changed = manifest != stored.manifest;
        if changed {
            files::write_json(&stored.directory.join(manifest::FILE), &manifest)?;
            stored.manifest = manifest;
        }
        Ok(changed)
    }

    /// The finished runs of the plan in its order, or all of them if there is no plan.
    ///
    /// # Errors
    /// [`StoreError`] if one of them, or the plan, is damaged.
    pub fn runs(&self) -> Result<Vec<StoredRun>, StoreError> {
        let mut runs = Vec::new();
        let has_plan = self.plan()?.is_some();
        for entry in self.list()? {
            match entry.found {
                Found::Finished(run) if entry.planned.is_some() || !has_plan => runs.push(run),
                Found::Damaged(error) => return Err(error),
                Found::Finished(_) | Found::Missing => {}
            }
        }
        Ok(runs)
    }

    /// All present and planned runs: those of the plan in its order, then others.
    ///
    /// # Errors
    /// [`StoreError`] if the directory or the plan cannot be read.
    pub fn list(&self) -> Result<Vec<Entry>, StoreError> {
        let mut others: BTreeSet<String> = self.run_directories()?;
        let mut entries = Vec::new();
        if let Some(plan) = self.plan()? {
            for run in plan.own() {
                others.remove(&run.directory);
                let found = self.find(run);
                let (directory, planned) = (run.directory.clone(), Some(run.clone()));
                entries.push(Entry { directory, planned, found });
            }
        }
        let planned = entries.len();
        entries.extend(others.into_iter().map(|directory| {
            let found = StoredRun::open(&self.directory.join(&directory));
            let found = found.map_or_else(Found::Damaged, Found::Finished);
            Entry { directory, planned: None, found }
        }));
        entries[planned..].sort_by_key(|entry| match &entry.found {
            Found::Finished(stored) => {
                let Manifest { name, point, seed, .. } = &*stored.manifest;
                (name.clone(), *point, *seed)
            }
            _ => (String::new(), usize::MAX, u64::MAX),
        });
        Ok(entries)
    }

    /// The runs that are not of the plan's scenario, such as those from before it was changed. Those with other seeds, and those of other shards, are of it.
    ///
    /// # Errors
    /// [`StoreError`] if the directory or the plan cannot be read.
    pub fn orphans(&self) -> Result<Vec<PathBuf>, StoreError> {
        let Some(plan) = self.plan()? else { return Ok(Vec::new()) };
        let mut others = self.run_directories()?;
        for run in &plan.runs {
            others.remove(&run.directory);
        }
        // With the plan's first seed, a run of the same scenario would be one of these.
        let first = plan.seeds.first().copied().unwrap_or_default();
        let planned: BTreeSet<&RunId> =
            plan.runs.iter().filter(|run| run.seed == first).map(|run| &run.id).collect();
        let program = plan.program();
        let is_of_the_scenario = |directory: &PathBuf| {
            let resolved = StoredRun::open(directory).and_then(|run| run.scenario());
            resolved.is_ok_and(|resolved| {
                [false, true]
                    .iter()
                    .any(|emulated| planned.contains(&resolved.id(first, &program, *emulated)))
            })
        };
        let directories = others.iter().map(|name| self.directory.join(name));
        Ok(directories.filter(|directory| !is_of_the_scenario(directory)).collect())
    }

    /// The names of directories that can be runs.
    fn run_directories(&self) -> Result<BTreeSet<String>, StoreError> {
        let entries = files::entries(&self.directory)?;
        let name = |entry: DirEntry| entry.file_name().into_string().ok();
        let is_run = |name: &String| {
            let id = name.split('-').next().unwrap_or_default();
            id.len() == 12
                && id.chars().all(|c| c.is_ascii_hexdigit())
                && self.directory.join(name).join(manifest::FILE).is_file()
        };
        Ok(entries.into_iter().filter_map(name).filter(is_run).collect())
    }
}

/// Removes what a program left that was killed.
fn remove_unfinished(directory: &Path) -> Result<(), StoreError> {
    let is_unfinished = |path: &Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with(UNFINISHED)
    };
    let remove = |path: &Path| {
        let removed = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
        removed.map_err(StoreError::io("remove", path))
    };
    for path in files::entries(directory)?.iter().map(DirEntry::path) {
        if is_unfinished(&path) {
            remove(&path)?;
        } else if path.is_dir() && path.join(manifest::FILE).is_file() {
            let within = files::entries(&path)?;
            for path in within.iter().map(DirEntry::path).filter(|path| is_unfinished(path)) {
                remove(&path)?;
            }
        }
    }
    Ok(())
}
