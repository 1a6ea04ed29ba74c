//! An experiment with everything that was found: the bands of each point, and the stored values for them.

use std::path::Path;

use transom_lab::scenario::{Band, Claim, Setting, Variant};

use crate::summary::{Course, Freshness, RunValues};
use crate::{Error, Experiment, Summary};

/// The values of a band, seed by seed; one value, or one for each flow.
pub(crate) type Seen = Vec<Vec<Option<f64>>>;

/// An experiment in the form that there are results of.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) experiment: &'static Experiment,
    /// Whether the results are those of the full form.
    pub(crate) full: bool,
    /// Whether points take away the safe ranges, which needs a special build.
    pub(crate) unconstrained: bool,
    pub(crate) points: Vec<FoundPoint>,
    /// The programs that made the runs.
    pub(crate) versions: Vec<String>,
    /// Of the oldest run; `None` without runs.
    pub(crate) freshness: Option<Freshness>,
}

/// A point of the sweep.
#[derive(Debug)]
pub(crate) struct FoundPoint {
    pub(crate) settings: Vec<Setting>,
    pub(crate) bands: Vec<FoundBand>,
    pub(crate) courses: Vec<Course>,
}

/// A band and its values.
#[derive(Debug)]
pub(crate) struct FoundBand {
    pub(crate) band: Band,
    pub(crate) seen: Seen,
    pub(crate) control: Option<FoundControl>,
}

/// A claim's control.
#[derive(Debug)]
pub(crate) struct FoundControl {
    /// Its settings.
    pub(crate) settings: Vec<Setting>,
    pub(crate) seen: Seen,
}

/// What came out of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Holds,
    Differs,
    NotRun,
}

impl FoundBand {
    /// The claim, if it has one.
    pub(crate) fn claim(&self) -> Option<&Claim> {
        self.band.claim.as_ref()
    }

    /// Whether all values of all seeds are in the band.
    pub(crate) fn verdict(&self) -> Verdict {
        match &self.seen[..] {
            [] => Verdict::NotRun,
            seen if seen.iter().all(|values| accepted(&self.band, values)) => Verdict::Holds,
            _ => Verdict::Differs,
        }
    }

    /// Whether the band rejects the run of its control with at least one seed; `None` if that has not been measured.
    pub(crate) fn rejects_control(&self) -> Option<bool> {
        let seen = &self.control.as_ref()?.seen;
        (!seen.is_empty()).then(|| seen.iter().any(|values| !accepted(&self.band, values)))
    }
}

fn accepted(band: &Band, values: &[Option<f64>]) -> bool {
    !values.is_empty() && values.iter().all(|one| one.is_some_and(|value| band.accepts(value)))
}

/// The mean of everything that was seen.
pub(crate) fn mean(seen: &[Vec<Option<f64>>]) -> Option<f64> {
    let values: Vec<f64> = seen.iter().flatten().flatten().copied().collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

impl Found {
    /// Reads what is stored of an experiment: of the full form if there is any, else of the quick one.
    pub(crate) fn new(experiment: &'static Experiment, directory: &Path) -> Result<Found, Error> {
        let of = |full| Summary::read(directory, experiment.id, full);
        let (full, summary) = match of(true)? {
            Some(summary) => (true, Some(summary)),
            None => (false, of(false)?),
        };
        let emulated = experiment.described()?.emulated;
        let variants: Vec<Variant> = experiment.scenario(full)?.sweep().collect();
        let runs: Vec<&RunValues> = summary.iter().flat_map(|one| &one.runs).collect();
        let at = |variant: &Variant| -> Vec<&RunValues> {
            runs.iter().copied().filter(|run| run.settings == variant.settings).collect()
        };
        let mut freshness = None;
        let mut points = Vec::new();
        for variant in &variants {
            let own = at(variant);
            freshness = own.iter().map(|run| run.freshness(variant, emulated)).chain(freshness).max();
            let alone = variant.resolved.expect.iter().map(|band| (band, None));
            let compared = variant.comparisons.iter().map(|one| (&one.band, Some(one.baseline)));
            let bands = alone.chain(compared).map(|(band, baseline)| FoundBand {
                band: band.clone(),
                seen: seen(band, baseline, None, &own),
                control: control(band, baseline, variant, &variants, &at),
            });
            let bands = bands.collect();
            let courses = own.iter().flat_map(|run| run.courses.iter().cloned()).collect();
            points.push(FoundPoint { settings: variant.settings.clone(), bands, courses });
        }
        let lifts =
            |setting: &Setting| setting.path.ends_with(".unconstrained") && setting.value == "true";
        let unconstrained = points.iter().flat_map(|point| &point.settings).any(lifts);
        let versions = summary.map(|summary| summary.versions).unwrap_or_default();
        Ok(Found { experiment, full, unconstrained, points, versions, freshness })
    }

    /// The command that repeats it.
    pub(crate) fn command(&self) -> String {
        let full = if self.full { " --full" } else { "" };
        // Safe ranges can only be taken away in a build that has the feature.
        let transom = if self.unconstrained {
            "cargo run --release --features unconstrained --"
        } else {
            "transom"
        };
        format!("{transom} papers run {}{full}", self.experiment.id)
    }
}

/// The values of a band; nothing of a seed that was not run.
fn seen(
    band: &Band,
    baseline: Option<usize>,
    control: Option<usize>,
    runs: &[&RunValues],
) -> Seen {
    let one = |point: usize| point + 1;
    let of = |run: &&RunValues| {
        let mut values = run.values.iter();
        let found = values.find(|own| own.is_of(band, baseline.map(one), control.map(one)))?;
        Some(found.values.clone())
    };
    runs.iter().filter_map(of).collect()
}

/// The values of a claim's band at its control: as they were stored for it, or else among the values of that point.
fn control<'a>(
    band: &Band,
    baseline: Option<usize>,
    variant: &Variant,
    variants: &'a [Variant],
    at: &impl Fn(&'a Variant) -> Vec<&'a RunValues>,
) -> Option<FoundControl> {
    let named = variant.controls.iter().find(|one| one.band == *band && one.baseline == baseline)?;
    let there = variants.get(named.point)?;
    let own = variants.get(variant.number)?;
    let mut values = seen(band, baseline, Some(named.point), &at(own));
    if values.is_empty() {
        values = seen(band, baseline, None, &at(there));
    }
    // A point relative to itself is one.
    let itself = baseline == Some(named.point) && band.relative_to.as_ref() == Some(&band.quantity);
    if values.is_empty() && itself && !at(there).is_empty() {
        values = vec![vec![Some(1.0)]];
    }
    Some(FoundControl { settings: there.settings.clone(), seen: values })
}
