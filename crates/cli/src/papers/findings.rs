//! An experiment with everything that was found: the bands of each point, and the stored values for them.

use std::path::Path;

use transom_lab::scenario::{Band, Claim, Judged, Quantity, Setting, Variant};

use super::catalogue::Experiment;
use super::summary::{Course, Freshness, RunValues, Summary};

/// The values of a band, seed by seed; one value, or one for each flow.
pub(super) type Seen = Vec<Vec<Option<f64>>>;

/// An experiment in the form that there are results of.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) experiment: &'static Experiment,
    /// Whether the results are those of the full form.
    pub(super) full: bool,
    pub(super) points: Vec<FoundPoint>,
    /// The programs that made the runs.
    pub(super) versions: Vec<String>,
    /// Of the oldest run; `None` without runs.
    pub(super) freshness: Option<Freshness>,
}

/// A point of the sweep.
#[derive(Debug)]
pub(super) struct FoundPoint {
    pub(super) settings: Vec<Setting>,
    pub(super) bands: Vec<FoundBand>,
    /// How many different runs there are. Seeds with all the same values gave copies of one run.
    pub(super) runs: usize,
    pub(super) courses: Vec<Course>,
}

/// A band and its values.
#[derive(Debug)]
pub(super) struct FoundBand {
    pub(super) band: Band,
    pub(super) seen: Seen,
    pub(super) control: Option<FoundControl>,
}

/// A claim's control.
#[derive(Debug)]
pub(super) struct FoundControl {
    /// Its settings.
    pub(super) settings: Vec<Setting>,
    pub(super) seen: Seen,
}

/// What came out of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Holds,
    Differs,
    NotRun,
}

impl FoundBand {
    /// The claim, if it has one.
    pub(super) fn claim(&self) -> Option<&Claim> {
        self.band.claim.as_ref()
    }

    /// Whether the values are what the claim says: their mean over the seeds is in the band, or whatever else the claim is judged by.
    pub(super) fn verdict(&self) -> Verdict {
        match &self.seen[..] {
            [] => Verdict::NotRun,
            seen if self.accepts(seen) => Verdict::Holds,
            _ => Verdict::Differs,
        }
    }

    /// Whether the claim holds in the mean, but the 95 % interval of the mean reaches beyond an edge of the band: other seeds might have failed it.
    pub(super) fn is_within_scatter(&self) -> bool {
        let by_mean = self.claim().is_some_and(|claim| claim.judged == Judged::Mean);
        let Some(half) = uncertainty(&self.seen).filter(|half| by_mean && *half > 0.0) else {
            return false;
        };
        let Some(mean) = mean(&self.seen) else { return false };
        self.verdict() == Verdict::Holds
            && !(self.band.accepts(mean - half) && self.band.accepts(mean + half))
    }

    fn accepts(&self, seen: &[Vec<Option<f64>>]) -> bool {
        let each = || seen.iter().all(|values| accepted(&self.band, values));
        match self.claim().map(|claim| claim.judged).unwrap_or_default() {
            Judged::EverySeed => each(),
            Judged::Range => self.claim().and_then(|claim| claim.number).is_some_and(|number| {
                let values = || seen.iter().flatten().flatten();
                let number = number.as_number();
                values().any(|value| *value <= number) && values().any(|value| *value >= number)
            }),
            // Several values are those of the flows, in their order. Something that did not happen has no mean.
            Judged::Mean => match means(seen) {
                Some(means) => means.into_iter().all(|mean| self.band.accepts(mean)),
                None => each(),
            },
        }
    }

    /// Whether the band rejects the run of its control with nearly all seeds; `None` if that has not been measured. A range rejects it as a whole.
    pub(super) fn rejects_control(&self) -> Option<bool> {
        let seen = &self.control.as_ref()?.seen;
        if seen.is_empty() {
            return None;
        }
        if self.claim().is_some_and(|claim| claim.judged == Judged::Range) {
            return Some(!self.accepts(seen));
        }
        let rejected = seen.iter().filter(|values| !accepted(&self.band, values)).count();
        Some(rejected * NEARLY_ALL.1 >= seen.len() * NEARLY_ALL.0)
    }
}

/// Nine seeds of ten.
const NEARLY_ALL: (usize, usize) = (9, 10);

fn accepted(band: &Band, values: &[Option<f64>]) -> bool {
    !values.is_empty() && values.iter().all(|one| one.is_some_and(|value| band.accepts(value)))
}

/// The mean of each value over the seeds; nothing if seeds have different numbers of them, or something never happened.
fn means(seen: &[Vec<Option<f64>>]) -> Option<Vec<f64>> {
    let count = seen.first()?.len();
    if count == 0 || seen.iter().any(|values| values.len() != count) {
        return None;
    }
    let mean = |place: usize| {
        let values: Option<Vec<f64>> =
            seen.iter().map(|values| values.get(place).copied().flatten()).collect();
        values.map(|values| values.iter().sum::<f64>() / values.len() as f64)
    };
    (0..count).map(mean).collect()
}

/// Half of the interval in which the true mean lies with a probability of 95 %, by Student's t; nothing for a single run.
pub(super) fn uncertainty(seen: &[Vec<Option<f64>>]) -> Option<f64> {
    /// From one degree of freedom on; from the thirtieth on it is that of the normal distribution, near enough.
    const T: [f64; 29] = [
        12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
        2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
        2.052, 2.048, 2.045,
    ];
    let each: Vec<f64> = means_of_seeds(seen).collect();
    let freedom = each.len().checked_sub(1).filter(|freedom| *freedom > 0)?;
    let mean = each.iter().sum::<f64>() / each.len() as f64;
    let squares: f64 = each.iter().map(|value| (value - mean).powi(2)).sum();
    let t = T.get(freedom - 1).copied().unwrap_or(1.96);
    Some(t * (squares / freedom as f64).sqrt() / (each.len() as f64).sqrt())
}

/// How many different ones there are.
fn distinct<T: PartialEq>(all: impl Iterator<Item = T>) -> usize {
    let mut known: Vec<T> = Vec::new();
    for one in all {
        if !known.contains(&one) {
            known.push(one);
        }
    }
    known.len()
}

/// The mean of each seed's values; none of one that has none.
pub(super) fn means_of_seeds(seen: &[Vec<Option<f64>>]) -> impl Iterator<Item = f64> {
    seen.iter().filter_map(|values| mean(std::slice::from_ref(values)))
}

/// The mean of everything that was seen.
pub(super) fn mean(seen: &[Vec<Option<f64>>]) -> Option<f64> {
    let values: Vec<f64> = seen.iter().flatten().flatten().copied().collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

impl Found {
    /// Reads what is stored of an experiment: of the full form if there is any, else of the quick one.
    pub(super) fn new(experiment: &'static Experiment, directory: &Path) -> anyhow::Result<Found> {
        let of = |full| Summary::read(directory, experiment.id, full);
        let (full, summary) = match of(true)? {
            Some(summary) => (true, Some(summary)),
            None => (false, of(false)?),
        };
        let scenario = experiment.scenario(full)?;
        let emulated = scenario.paper.as_ref().is_some_and(|paper| paper.emulated);
        let variants: Vec<Variant> = scenario.sweep().collect();
        let runs: Vec<&RunValues> = summary.iter().flat_map(|one| &one.runs).collect();
        let at = |variant: &Variant| -> Vec<&RunValues> {
            runs.iter().copied().filter(|run| run.settings == variant.settings).collect()
        };
        let mut freshness = None;
        let mut points = Vec::new();
        for variant in &variants {
            let own = at(variant);
            freshness =
                own.iter().map(|run| run.freshness(variant, emulated)).chain(freshness).max();
            let alone = variant.resolved.expect.iter().map(|band| (band, None));
            let compared = variant.comparisons.iter().map(|one| (&one.band, Some(one.baseline)));
            let bands = alone.chain(compared).map(|(band, baseline)| FoundBand {
                band: band.clone(),
                seen: at_point(band, baseline, &own, &variants, &at),
                control: control(band, baseline, variant, &variants, &at),
            });
            let bands = bands.collect();
            let courses = own.iter().flat_map(|run| run.courses.iter().cloned()).collect();
            let runs = distinct(own.iter().map(|run| &run.values));
            points.push(FoundPoint { settings: variant.settings.clone(), bands, runs, courses });
        }
        let versions = summary.map(|summary| summary.versions).unwrap_or_default();
        Ok(Found { experiment, full, points, versions, freshness })
    }

    /// The command that repeats it.
    pub(super) fn command(&self) -> String {
        let full = if self.full { " --full" } else { "" };
        format!("transom papers run {}{full}", self.experiment.id)
    }
}

/// The values of a band; nothing of a seed that was not run.
fn seen(band: &Band, baseline: Option<usize>, control: Option<usize>, runs: &[&RunValues]) -> Seen {
    let one = |point: usize| point + 1;
    let of = |run: &&RunValues| {
        let mut values = run.values.iter();
        let found = values.find(|own| own.is_of(band, baseline.map(one), control.map(one)))?;
        Some(found.values.clone())
    };
    runs.iter().filter_map(of).collect()
}

/// The values of a band at a point: as they were stored, or for a comparison with another point the quotient or the difference of what was stored at both.
fn at_point<'a>(
    band: &Band,
    baseline: Option<usize>,
    own: &[&RunValues],
    variants: &'a [Variant],
    at: &impl Fn(&'a Variant) -> Vec<&'a RunValues>,
) -> Seen {
    let stored = seen(band, baseline, None, own);
    let there = baseline.and_then(|point| variants.get(point)).filter(|_| stored.is_empty());
    match (there, &band.relative_to) {
        (Some(there), Some(divisor)) => compared(band, own, divisor, &at(there)),
        _ => stored,
    }
}

/// What runs have, over what those with the same seeds have at another point; or the difference.
fn compared(band: &Band, own: &[&RunValues], divisor: &Quantity, others: &[&RunValues]) -> Seen {
    // A group has another number of flows at another point of the sweep, but the same name.
    let of = |run: &RunValues, quantity: &Quantity| {
        let exact = run.values.iter().find(|value| value.is_plain(quantity));
        let found = exact.or_else(|| run.values.iter().find(|value| value.is_of_group(quantity)));
        found.map(|value| value.values.clone())
    };
    let one = |run: &&RunValues| {
        let other = others.iter().find(|other| other.seed == run.seed)?;
        let (ours, theirs) = (of(run, &band.quantity)?, of(other, divisor)?);
        let compare = |(value, other): (Option<f64>, Option<f64>)| {
            Some(band.compared(value?, other?)).filter(|value| value.is_finite())
        };
        (ours.len() == theirs.len()).then(|| ours.into_iter().zip(theirs).map(compare).collect())
    };
    own.iter().filter_map(one).collect()
}

/// The values of a claim's band at its control: as they were stored for it, or else among the values of that point.
fn control<'a>(
    band: &Band,
    baseline: Option<usize>,
    variant: &Variant,
    variants: &'a [Variant],
    at: &impl Fn(&'a Variant) -> Vec<&'a RunValues>,
) -> Option<FoundControl> {
    let named =
        variant.controls.iter().find(|one| one.band == *band && one.baseline == baseline)?;
    let there = variants.get(named.point)?;
    let own = variants.get(variant.number)?;
    let mut values = seen(band, baseline, Some(named.point), &at(own));
    if values.is_empty() {
        values = at_point(band, baseline, &at(there), variants, at);
    }
    // A point relative to itself is one, and does not differ from itself.
    let itself = baseline == Some(named.point) && band.relative_to.as_ref() == Some(&band.quantity);
    if values.is_empty() && itself && !at(there).is_empty() {
        values = vec![vec![Some(if band.difference { 0.0 } else { 1.0 })]];
    }
    Some(FoundControl { settings: there.settings.clone(), seen: values })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use std::fs;

    /// Two controllers, of which the second is the control of a claim about the first.
    static EXPERIMENT: Experiment = Experiment::with_text("test/control", CONTROLLED);
    const CONTROLLED: &str = r#"
        [scenario]
        name = "control"
        duration = "10s"
        tcp = "classic"
        [paper]
        id = "test/control"
        source = "none"
        shows = "a claim and its control"
        takes = "1s"
        [hosts.a]
        [hosts.b]
        [[links]]
        name = "path"
        from = "a"
        to = "b"
        rate = "1Mbit/s"
        delay = "10ms"
        queue = "100 packets"
        [[flows]]
        name = "flow"
        from = "a"
        to = "b"
        kind = "bulk"
        [sweep]
        flows.flow.profile.tcp = ["ltcp", "reno"]
        [[expect]]
        measure = "goodput"
        flow = "flow"
        min = "500kbit/s"
        when = { flows.flow.profile.tcp = "ltcp" }
        claim = { name = "half", says = "it has half of the link", control = { flows.flow.profile.tcp = "reno" } }
        [[expect]]
        measure = "goodput"
        flow = "flow"
        column = "goodput"
        when = { flows.flow.profile.tcp = "reno" }
        [forms.quick]
    "#;

    /// A summary with these rates in bits per second, as a file of the first format.
    fn stored(ltcp: f64, reno: f64) -> Value {
        let quantity = json!({ "measure": "goodput", "flows": ["flow"], "statistic": "each", "from": "0s", "until": "10s" });
        let run = |tcp: &str, value: f64| {
            json!({
                "settings": [{ "path": "flows.flow.profile.tcp", "value": tcp }],
                "seed": 1,
                "values": [{ "quantity": quantity, "values": [value] }],
            })
        };
        json!({
            "format": 1,
            "id": "test/control",
            "full": true,
            "versions": ["0.1.0+test"],
            "runs": [run("ltcp", ltcp), run("reno", reno)],
        })
    }

    fn found(summary: &Value) -> Found {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("test-control.full.json");
        fs::write(path, summary.to_string()).unwrap();
        Found::new(&EXPERIMENT, directory.path()).unwrap()
    }

    fn claimed(found: &Found) -> &FoundBand {
        found.points[0].bands.iter().find(|band| band.claim().is_some()).unwrap()
    }

    /// Values of the first format are read, and those of the control are found at its own point.
    #[test]
    fn a_band_that_accepts_its_control_is_found() {
        let good = found(&stored(900e3, 100e3));
        assert_eq!(good.freshness, Some(Freshness::Unknown));
        assert_eq!(claimed(&good).verdict(), Verdict::Holds);
        assert_eq!(claimed(&good).rejects_control(), Some(true));
        let weak = found(&stored(900e3, 800e3));
        assert_eq!(claimed(&weak).rejects_control(), Some(false));
        let mut alone = stored(900e3, 0.0);
        alone["runs"].as_array_mut().unwrap().pop();
        assert_eq!(claimed(&found(&alone)).rejects_control(), None);
    }

    /// A claim holds plainly only if the interval of its mean is within the band.
    #[test]
    fn a_mean_near_the_edge_holds_within_the_scatter() {
        let with = |values: &[f64]| {
            let mut summary = stored(0.0, 100e3);
            let run = summary["runs"][0].clone();
            let runs = values.iter().zip(1..).map(|(value, seed): (&f64, u64)| {
                let mut run = run.clone();
                (run["seed"], run["values"][0]["values"]) = (json!(seed), json!([value]));
                run
            });
            summary["runs"] = runs.collect();
            let found = found(&summary);
            let band = claimed(&found);
            (band.verdict(), band.is_within_scatter())
        };
        // The band begins at 500 kbit/s.
        assert_eq!(with(&[900e3, 910e3, 890e3]), (Verdict::Holds, false));
        assert_eq!(with(&[500e3, 700e3, 400e3]), (Verdict::Holds, true));
        assert_eq!(with(&[600e3, 600e3, 600e3]), (Verdict::Holds, false));
        assert_eq!(with(&[400e3, 450e3, 420e3]), (Verdict::Differs, false));
    }

    /// What was stored as the control of a run counts before what its own point has.
    #[test]
    fn a_stored_control_counts() {
        let mut summary = stored(900e3, 800e3);
        let mut control = summary["runs"][1]["values"][0].clone();
        control["control"] = json!(2);
        control["values"] = json!([100e3]);
        summary["format"] = json!(2);
        summary["runs"][0]["values"].as_array_mut().unwrap().push(control);
        assert_eq!(claimed(&found(&summary)).rejects_control(), Some(true));
    }

    /// A fingerprint tells whether the scenario is still the one that was run.
    #[test]
    fn values_of_another_scenario_are_found() {
        let with = |fingerprint: &str| {
            let mut summary = stored(900e3, 100e3);
            summary["format"] = json!(2);
            for run in summary["runs"].as_array_mut().unwrap() {
                run["fingerprint"] = json!(fingerprint);
            }
            found(&summary).freshness
        };
        assert_eq!(with(&"0".repeat(64)), Some(Freshness::Stale));
        let point = EXPERIMENT.scenario(true).unwrap().point(1).unwrap();
        let own = point.resolved.id(1, "", false).to_string();
        // The other point's is not its own.
        assert_eq!(with(&own), Some(Freshness::Stale));
        let mut summary = stored(900e3, 100e3);
        summary["runs"].as_array_mut().unwrap().remove(0);
        summary["format"] = json!(2);
        summary["runs"][0]["fingerprint"] = json!(own);
        assert_eq!(found(&summary).freshness, Some(Freshness::Current));
    }

    #[test]
    fn copies_count_once() {
        assert_eq!(distinct([1.0, 1.0, 2.0].iter()), 2);
        let mut summary = stored(900e3, 100e3);
        let mut copy = summary["runs"][0].clone();
        copy["seed"] = json!(2);
        let mut other = copy.clone();
        (other["seed"], other["values"][0]["values"]) = (json!(3), json!([800e3]));
        summary["runs"].as_array_mut().unwrap().extend([copy, other]);
        let found = found(&summary);
        assert_eq!((found.points[0].runs, claimed(&found).seen.len()), (2, 3));
        assert_eq!(found.points[1].runs, 1);
    }

    #[test]
    fn a_summary_of_a_later_format_is_refused() {
        let mut summary = stored(1.0, 1.0);
        summary["format"] = json!(3);
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("test-control.full.json"), summary.to_string()).unwrap();
        let error = Found::new(&EXPERIMENT, directory.path()).unwrap_err();
        assert!(error.to_string().contains("another version"), "{error}");
    }
}
