//! The summary of an experiment's runs: the values for claims and columns.
//!
//! A summary is small enough for the repository. It has measurements only. The claims and the accepted values are in the scenario, so that changing a
//! band or a text repeats no run.
//!
//! Each run has a *fingerprint*: the identity of the resolved scenario with its seed, without the program's version. Values of a scenario that was
//! changed since are found by it ([`Freshness`]). Files of format 1 have no fingerprints.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use transom_lab::results::{Found, Manifest, Store, StoredRun};
use transom_lab::run::{Judgement, Observations, compare, course, judge};
use transom_lab::scenario::{Band, Comparison, Control, Quantity, RunId, Setting, Variant};
use transom_report::decimate;

use super::catalogue::{Experiment, form};
use super::recent::Recent;
use super::text::{self, Wanted};
use crate::output;

/// The form of the files that are written.
const FORMAT: u32 = 2;
/// The forms that can be read. The first has no fingerprints, no controls and no courses.
const READABLE: [u32; 2] = [1, FORMAT];
/// As many points has a stored curve at most.
const MOST_POINTS: usize = 150;

/// The measurements of an experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Summary {
    format: u32,
    /// The experiment.
    pub(super) id: String,
    /// Whether it was run with the paper's lengths and rates.
    pub(super) full: bool,
    /// The programs that made the runs.
    pub(super) versions: Vec<String>,
    /// The runs, by point and seed.
    pub(super) runs: Vec<RunValues>,
}

/// The measurements of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct RunValues {
    /// The settings of the sweep.
    pub(super) settings: Vec<Setting>,
    pub(super) seed: u64,
    /// The identity of the scenario and the seed, without the program's version; of an early file it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fingerprint: Option<RunId>,
    pub(super) values: Vec<Measured>,
    /// Curves over time, for figures; of the first seed alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) courses: Vec<Course>,
}

/// Curves of a quantity over time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Course {
    pub(super) quantity: Quantity,
    /// One for each flow, or one.
    pub(super) curves: Vec<Curve>,
}

/// Points as (seconds, value), stored as a text: "0 10, 0.5 20".
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(super) struct Curve(pub(crate) Vec<(f64, f64)>);

impl From<Curve> for String {
    fn from(curve: Curve) -> String {
        let points = curve.0.iter().map(|(at, value)| format!("{at} {value}"));
        points.collect::<Vec<_>>().join(", ")
    }
}

impl TryFrom<String> for Curve {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Curve, &'static str> {
        const WRONG: &str = "a curve is a list of pairs of numbers";
        let point = |pair: &str| {
            let (at, value) = pair.trim().split_once(' ')?;
            Some((at.parse().ok()?, value.parse().ok()?))
        };
        let points = text.split(',').filter(|pair| !pair.trim().is_empty()).map(point);
        points.collect::<Option<Vec<_>>>().map(Curve).ok_or(WRONG)
    }
}

/// Whether stored values are those of the scenario as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Freshness {
    /// The fingerprint is the scenario's.
    Current,
    /// There is no fingerprint.
    Unknown,
    /// The scenario has been changed since.
    Stale,
}

impl RunValues {
    /// Whether its values are those of this point of the scenario.
    pub(super) fn freshness(&self, point: &Variant, emulated: bool) -> Freshness {
        match self.fingerprint {
            None => Freshness::Unknown,
            Some(own) if own == point.resolved.id(self.seed, "", emulated) => Freshness::Current,
            Some(_) => Freshness::Stale,
        }
    }
}

/// A quantity and its values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Measured {
    pub(super) quantity: Quantity,
    /// The divisor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) relative_to: Option<Quantity>,
    /// Whether that is subtracted, and no divisor.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) difference: bool,
    /// At which point that was measured, from one, if not at the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) baseline: Option<usize>,
    /// The point, from one, that was measured as the control of a claim about this run's point.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) control: Option<usize>,
    /// In bits per second, nanoseconds, bytes, or without a unit.
    pub(super) values: Vec<Option<f64>>,
}

/// The result of a comparison with stored values.
#[derive(Debug, Default)]
pub(super) struct Compared {
    /// Values that are the same, bit for bit.
    pub(super) same: usize,
    /// Runs of which nothing is stored: other seeds, or other points.
    pub(super) not_stored: usize,
    /// Values that are not the same.
    pub(super) different: Vec<Difference>,
}

/// A value that is not as it was stored.
#[derive(Debug)]
pub(super) struct Difference {
    /// The point of the sweep.
    pub(super) settings: Vec<Setting>,
    /// The seed.
    pub(super) seed: u64,
    /// The quantity.
    pub(super) quantity: Quantity,
    /// The values of the run, in bits per second, nanoseconds, bytes, or without a unit.
    pub(super) found: Vec<Option<f64>>,
    /// The stored values.
    pub(super) stored: Vec<Option<f64>>,
}

/// The quantity, the divisor or what is subtracted, and at which points they were measured.
type What<'a> = (&'a Quantity, &'a Option<Quantity>, bool, Option<usize>, Option<usize>);

impl Measured {
    fn what(&self) -> What<'_> {
        (&self.quantity, &self.relative_to, self.difference, self.baseline, self.control)
    }

    /// Whether it is a quantity itself, at the run's own point: compared with nothing.
    fn is_by_itself(&self) -> bool {
        (&self.relative_to, self.baseline, self.control) == (&None, None, None)
    }

    /// Whether it is this quantity itself, at the run's own point.
    pub(super) fn is_plain(&self, quantity: &Quantity) -> bool {
        self.quantity == *quantity && self.is_by_itself()
    }

    /// Whether it is this quantity of a group with another number of flows, at the run's own point.
    pub(super) fn is_of_group(&self, quantity: &Quantity) -> bool {
        let group = |quantity: &Quantity| {
            let name = quantity.flows.first().map(ToString::to_string).unwrap_or_default();
            name.trim_end_matches(|c: char| c.is_ascii_digit()).to_owned()
        };
        let own = Quantity { flows: quantity.flows.clone(), ..self.quantity.clone() };
        own == *quantity && group(&self.quantity) == group(quantity) && self.is_by_itself()
    }

    /// Whether it is what a band is about.
    pub(super) fn is_of(
        &self,
        band: &Band,
        baseline: Option<usize>,
        control: Option<usize>,
    ) -> bool {
        let wanted = (&band.quantity, &band.relative_to, band.difference, baseline, control);
        self.what() == wanted
    }
}

impl Summary {
    /// The summary of the finished runs in a results directory that belong to the present form of this experiment, made by any version of the
    /// program. Values are calculated from the observations.
    pub(super) fn of(
        experiment: &Experiment,
        full: bool,
        store: &Store,
    ) -> anyhow::Result<Summary> {
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
            // To work out an identity takes longer than to compare it, and nearly all runs are of one program.
            let mut of_program: Option<(&str, RunId)> = None;
            stored.iter().find(|run| {
                let Manifest { id, version: by, seed: own, .. } = &*run.manifest;
                if *own != seed || version.is_some_and(|version| version != by) {
                    return false;
                }
                let wanted = match of_program {
                    Some((program, wanted)) if program == by => wanted,
                    _ => point.resolved.id(seed, by, emulated),
                };
                of_program = Some((by, wanted));
                *id == wanted
            })
        };
        let mut seeds: Vec<u64> = stored.iter().map(|run| run.manifest.seed).collect();
        seeds.sort_unstable();
        seeds.dedup();
        let wanted = text::wanted(experiment.id)?;
        let first = seeds.first().copied();
        let mut recent = Recent::new();
        let mut observed = |run: &StoredRun| recent.of(&run.directory, || run.observations());
        let mut runs: Vec<(usize, &str, RunValues)> = Vec::new();
        // Seed by seed: points are compared with others of the same seed.
        for (seed, point) in
            seeds.iter().flat_map(|seed| points.iter().map(move |point| (*seed, point)))
        {
            let Some(run) = find(point, seed, None) else { continue };
            let version = &run.manifest.version;
            let seen = observed(run)?;
            let alone = judge(&point.resolved, &seen);
            let mut values: Vec<Measured> =
                alone.iter().filter_map(|one| measured(one, None, None)).collect();
            for comparison in &point.comparisons {
                let baseline = points.get(comparison.baseline);
                let other = baseline.and_then(|point| find(point, seed, Some(version)));
                if let Some(other) = other {
                    let judged = compare(comparison, &seen, observed(other)?.as_ref());
                    values.extend(measured(&judged, Some(comparison.baseline + 1), None));
                }
            }
            for control in &point.controls {
                let mut at = |number: usize| {
                    let other = points.get(number)?;
                    find(other, seed, Some(version)).map(&mut observed)
                };
                let there = at(control.point).transpose()?;
                let baseline = control.baseline.and_then(&mut at).transpose()?;
                values.extend(
                    there.and_then(|there| of_control(control, &there, baseline.as_deref())),
                );
            }
            let is_first = point.number == points[0].number;
            let curves = wanted
                .iter()
                .filter(|one| Some(seed) == first && one.keeps(&point.settings, is_first));
            let values = RunValues {
                settings: point.settings.clone(),
                seed,
                fingerprint: Some(point.resolved.id(seed, "", emulated)),
                values,
                courses: curves.map(|one| course_of(one, &seen)).collect(),
            };
            runs.push((point.number, version, values));
        }
        runs.sort_by_key(|(number, _, values)| (*number, values.seed));
        let mut versions: Vec<String> = Vec::new();
        for (_, version, _) in &runs {
            if !versions.iter().any(|known| known == version) {
                versions.push((*version).to_owned());
            }
        }
        let runs = runs.into_iter().map(|(_, _, values)| values).collect();
        Ok(Summary { format: FORMAT, id: experiment.id.into(), full, versions, runs })
    }

    /// Compares with stored values: how many are the same, and where they are not. Runs of the two forms are the same if their fingerprints are. Values that
    /// compare points are left out then, as the other form numbers its points in its own way.
    pub(super) fn compared(&self, stored: &Summary) -> Compared {
        let of_one_form = self.full == stored.full;
        let is_same = |own: &RunValues, other: &RunValues| match of_one_form {
            true => (&other.settings, other.seed) == (&own.settings, own.seed),
            false => own.fingerprint.is_some() && own.fingerprint == other.fingerprint,
        };
        let counts = |value: &&Measured| of_one_form || value.is_by_itself();
        let mut compared = Compared::default();
        for run in &self.runs {
            let Some(other) = stored.runs.iter().find(|other| is_same(run, other)) else {
                compared.not_stored += 1;
                continue;
            };
            for value in run.values.iter().filter(counts) {
                match other.values.iter().find(|one| one.what() == value.what()) {
                    None => {}
                    Some(other) if other.values == value.values => compared.same += 1,
                    Some(other) => compared.different.push(Difference {
                        settings: run.settings.clone(),
                        seed: run.seed,
                        quantity: value.quantity.clone(),
                        found: value.values.clone(),
                        stored: other.values.clone(),
                    }),
                }
            }
        }
        compared
    }

    /// What is wrong with a stored summary, but for its values: runs without a fingerprint or of an earlier scenario, and courses without curves. `points` are
    /// the scenario's.
    pub(super) fn defects(&self, points: &[Variant], emulated: bool) -> Vec<String> {
        let file = Self::name(&self.id, self.full);
        let mut defects = Vec::new();
        for run in &self.runs {
            let point = points.iter().find(|point| point.settings == run.settings);
            match point.map(|point| run.freshness(point, emulated)) {
                None => {
                    defects.push(format!("{file} has runs of points that the scenario has no more"))
                }
                Some(Freshness::Unknown) => {
                    defects.push(format!("{file} has runs without a fingerprint"))
                }
                Some(Freshness::Stale) => {
                    defects.push(format!("{file} has runs of an earlier scenario"))
                }
                Some(Freshness::Current) => {}
            }
            for course in &run.courses {
                if course.curves.is_empty() || course.curves.iter().any(|one| one.0.is_empty()) {
                    let measure = course.quantity.measure;
                    defects.push(format!("{file} has a course without points: {measure:?}"));
                }
            }
        }
        defects
    }

    /// Whether there is no run in it.
    pub(super) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// The file's name.
    fn name(id: &str, full: bool) -> String {
        format!("{}.{}.json", id.replace('/', "-"), form(full))
    }

    /// Writes it to a directory, which is made if it is not there, and gives the file.
    pub(super) fn write(&self, directory: &Path) -> anyhow::Result<PathBuf> {
        let path = directory.join(Self::name(&self.id, self.full));
        let text = serde_json::to_string_pretty(self)? + "\n";
        fs::create_dir_all(directory)
            .with_context(|| format!("cannot write {}", path.display()))?;
        output::file(&path, text)?;
        Ok(path)
    }

    /// Reads the one of an experiment, if it is there.
    pub(super) fn read(directory: &Path, id: &str, full: bool) -> anyhow::Result<Option<Summary>> {
        let path = directory.join(Self::name(id, full));
        let Some(summary) = stored::<Summary>(&path)? else { return Ok(None) };
        let readable = READABLE.contains(&summary.format);
        if !readable || (summary.id.as_str(), summary.full) != (id, full) {
            bail!(another_summary(&path));
        }
        Ok(Some(summary))
    }
}

/// Why a file of results of another kind or form is not read.
pub(super) fn another_summary(path: &Path) -> String {
    let path = path.display();
    format!("{path} belongs to another experiment or to another version of Transom; make it again")
}

/// What a file of results has, if it is there.
pub(super) fn stored<T: DeserializeOwned>(path: &Path) -> anyhow::Result<Option<T>> {
    if !path.exists() {
        return Ok(None);
    }
    let name = path.display();
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {name}"))?;
    serde_json::from_str(&text).map(Some).with_context(|| format!("{name} is not a summary"))
}

/// The values of a claim's band at its control.
fn of_control(
    control: &Control,
    there: &Observations,
    baseline: Option<&Observations>,
) -> Option<Measured> {
    if control.baseline.is_some() && baseline.is_none() {
        return None;
    }
    let comparison = Comparison {
        band: control.band.clone(),
        baseline: control.baseline.unwrap_or(control.point),
    };
    let judged = compare(&comparison, there, baseline.unwrap_or(there));
    measured(&judged, control.baseline.map(|point| point + 1), Some(control.point + 1))
}

/// A quantity over time, with as many points as a figure needs.
fn course_of(wanted: &Wanted, seen: &Observations) -> Course {
    // Five digits that count are more than a picture shows.
    let rounded = |value: f64| format!("{value:.4e}").parse().unwrap_or(value);
    let curves = course(&wanted.quantity, seen).into_iter().map(|curve| {
        let seconds = |(at, value): &(u64, f64)| ((*at as f64 / 1e6).round() / 1e3, *value);
        let points: Vec<(f64, f64)> = curve.iter().map(seconds).collect();
        Curve(decimate(&points, MOST_POINTS).into_iter().map(|(at, y)| (at, rounded(y))).collect())
    });
    Course { quantity: wanted.quantity.clone(), curves: curves.collect() }
}

/// The stored part of a judgement; `None` if no table shows it.
fn measured(
    judgement: &Judgement,
    baseline: Option<usize>,
    control: Option<usize>,
) -> Option<Measured> {
    let Band { quantity, relative_to, difference, claim, column, .. } = &judgement.band;
    (claim.is_some() || column.is_some()).then(|| Measured {
        quantity: quantity.clone(),
        relative_to: relative_to.clone(),
        difference: *difference,
        baseline,
        control,
        values: judgement.values.iter().map(|value| value.is_finite().then_some(*value)).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_compared_run_by_run() {
        let value = |number: f64| {
            serde_json::json!({ "quantity": { "measure": "goodput", "flows": ["flow"], "from": "0s",
                "until": "10s" }, "values": [number] })
        };
        let summary = |seeds: &[(u64, f64)]| -> Summary {
            let runs = seeds.iter().map(|(seed, number)| {
                serde_json::json!({ "settings": [], "seed": seed, "values": [value(*number)] })
            });
            let runs: Vec<_> = runs.collect();
            let text = serde_json::json!({ "format": 2, "id": "a/b", "full": true, "versions": [],
                "runs": runs });
            serde_json::from_value(text).unwrap()
        };
        let compared =
            summary(&[(1, 5.0), (2, 6.0), (3, 7.0)]).compared(&summary(&[(1, 5.0), (2, 6.5)]));
        assert_eq!((compared.same, compared.not_stored, compared.different.len()), (1, 1, 1));
        assert_eq!((compared.different[0].seed, compared.different[0].stored[0]), (2, Some(6.5)));
        // Without fingerprints no run of another form is known to be the same.
        let (mut own, mut other) = (summary(&[(1, 5.0), (2, 6.0)]), summary(&[(1, 5.0)]));
        other.full = false;
        assert_eq!(own.compared(&other).not_stored, 2);
        let fingerprint: RunId = serde_json::from_value("0".repeat(64).into()).unwrap();
        own.runs[0].fingerprint = Some(fingerprint);
        other.runs[0].fingerprint = Some(fingerprint);
        let compared = own.compared(&other);
        assert_eq!((compared.same, compared.not_stored), (1, 1));
    }

    #[test]
    fn curves_are_stored_as_texts() {
        let curve = Curve(vec![(0.0, 1448.0), (0.5, 6.6235e7)]);
        let text = String::from(curve.clone());
        assert_eq!(text, "0 1448, 0.5 66235000");
        assert_eq!(Curve::try_from(text), Ok(curve));
        assert_eq!(Curve::try_from(String::new()), Ok(Curve::default()));
        assert!(Curve::try_from("1".to_owned()).is_err());
    }
}
