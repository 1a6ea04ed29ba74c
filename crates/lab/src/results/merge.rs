//! Putting together what several machines have run.
//!
//! Everything is checked before anything is written. All directories must be parts of the same runs, and have all of them together.
//! A run in several parts must be the same everywhere. The merged result is, byte for byte, that of one machine.

use super::StoreError;
use super::manifest::Manifest;
use super::plan::{Plan, PlannedRun};
use super::store::{Found, Store};
use super::stored::StoredRun;
use std::path::{Path, PathBuf};

/// Puts the runs of several directories into one, `output`. If there is something already, it has to be of the same runs, such as what
/// an earlier attempt has left. Gives the new directory and its plan.
///
/// Bands that compare runs are for [`Store::compare`] to judge afterwards.
///
/// # Errors
/// [`StoreError`]; nothing has been written then, unless writing itself failed.
pub fn merge(inputs: &[PathBuf], output: &Path) -> Result<(Store, Plan), StoreError> {
    // The results that are there already know more than the parts: bands may have been judged that wait there.
    let mut parts = match Part::open(output) {
        Ok(part) => vec![part],
        Err(StoreError::NoResults(_)) => Vec::new(),
        Err(error) => return Err(error),
    };
    for input in inputs {
        parts.push(Part::open(input)?);
    }
    let Some(first) = parts.first() else {
        return Err(StoreError::NoResults(output.into()));
    };
    for part in &parts {
        if let Some(what) = difference(&first.plan, &part.plan) {
            let (one, other) = (first.path(), part.path());
            return Err(StoreError::Different { one, other, what });
        }
    }
    let chosen = choose(&parts, &first.plan)?;
    let plan = Plan { shard: None, ..first.plan.clone() };
    let store = Store::create(output)?;
    store.set_plan(&plan)?;
    for (run, part) in chosen {
        if part.store.directory() == output {
            continue;
        }
        if let Found::Finished(stored) = part.store.find(run) {
            store.begin(run)?.copy(&stored)?;
        }
    }
    Ok((store, plan))
}

/// A directory to merge with others.
struct Part {
    store: Store,
    plan: Plan,
}

impl Part {
    fn open(directory: &Path) -> Result<Part, StoreError> {
        let store = Store::open(directory)?;
        let plan = store.plan()?.ok_or_else(|| StoreError::NoPlan(directory.into()))?;
        Ok(Part { store, plan })
    }

    fn path(&self) -> PathBuf {
        self.store.directory().into()
    }
}

/// In what two plans differ that are to be put together.
fn difference(one: &Plan, other: &Plan) -> Option<&'static str> {
    if one.version != other.version {
        Some("runs of different versions of the program")
    } else if one.scenario != other.scenario || one.name != other.name {
        Some("runs of different scenarios")
    } else if one.seeds != other.seeds {
        Some("runs with different seeds")
    } else if !one.is_of_the_same_runs(other) {
        Some("different runs")
    } else {
        let of = |plan: &Plan| plan.shard.map(|shard| shard.of);
        let differ = of(one).zip(of(other)).is_some_and(|(one, other)| one != other);
        differ.then_some("different numbers of shards")
    }
}

/// The source of each run.
fn choose<'a>(
    parts: &'a [Part],
    plan: &'a Plan,
) -> Result<Vec<(&'a PlannedRun, &'a Part)>, StoreError> {
    let mut chosen = Vec::new();
    let mut nowhere = Vec::new();
    for run in &plan.runs {
        let mut found: Option<(StoredRun, &Part)> = None;
        for part in parts {
            match (part.store.find(run), &found) {
                (Found::Damaged(error), _) => return Err(error),
                (Found::Missing, _) => {}
                (Found::Finished(stored), None) => found = Some((stored, part)),
                (Found::Finished(stored), Some((other, at))) => {
                    if let Some(file) = differing(&other.manifest, &stored.manifest) {
                        let (one, other) = (at.path(), part.path());
                        let run = run.directory.clone();
                        return Err(StoreError::SameRunDiffers { run, file, one, other });
                    }
                }
            }
        }
        match found {
            Some((_, part)) => chosen.push((run, part)),
            None => nowhere.push(run),
        }
    }
    if nowhere.is_empty() {
        Ok(chosen)
    } else {
        Err(StoreError::Incomplete(missing(parts, &nowhere)))
    }
}

/// The file in which two forms of a run differ. That a comparison was judged in one and not in the other is no difference.
fn differing(one: &Manifest, other: &Manifest) -> Option<String> {
    let file = |manifest: &Manifest, name: &str| {
        manifest.files.iter().find(|file| file.name == name).cloned()
    };
    let names = one.files.iter().chain(&other.files).map(|file| &file.name);
    let mut names = names.filter(|name| file(one, name) != file(other, name));
    if let Some(name) = names.next() {
        return Some(name.clone());
    }
    let own = |manifest: &Manifest| {
        let mut manifest = manifest.clone();
        manifest.comparisons.iter_mut().for_each(|one| one.judgement = None);
        super::files::json(&manifest)
    };
    (own(one) != own(other)).then(|| super::manifest::FILE.into())
}

/// The shards of which there is no directory, then the directories in which runs are missing. Without both, the runs that no directory was to have.
fn missing(parts: &[Part], nowhere: &[&PlannedRun]) -> String {
    let mut missing = String::new();
    let of = parts.iter().find_map(|part| part.plan.shard).map_or(0, |shard| shard.of);
    for number in 1..=of {
        let has = |part: &Part| part.plan.shard.is_none_or(|shard| shard.number == number);
        if !parts.iter().any(has) {
            missing += &format!("\n  shard {number}/{of} is in none of the directories");
        }
    }
    for part in parts {
        let own: Vec<&PlannedRun> = part.plan.own().collect();
        let absent = own.iter().filter(|run| nowhere.contains(run)).count();
        if absent > 0 {
            let (own, directory) = (own.len(), part.store.directory().display());
            missing += &format!("\n  {absent} of the {own} runs of {directory} are not finished");
        }
    }
    if missing.is_empty() {
        for run in nowhere {
            missing += &format!("\n  the run {} is in none of the directories", run.directory);
        }
    }
    missing
}
