//! The measurements at each point of a sweep.

use std::collections::BTreeMap;

use transom_lab::run::Judgement;
use transom_lab::scenario::{Band, Name};

use super::RunOfSweep;
use crate::labels;
use crate::run::{bounds, scale};

/// As many flows of a band are shown one by one; of more, it is their mean.
const MOST_EACH: usize = 4;

/// A measure, and its values at each point.
#[derive(Debug, Default)]
pub(super) struct Measured {
    /// What it is and of what: "goodput (sum) of bulk1, bulk2: ltcp".
    pub(super) label: String,
    /// What it is, for an axis: "goodput (sum)".
    pub(super) measure: String,
    /// What it is; measures of flows with the same text share a chart.
    pub(super) chart: String,
    /// Of what, as the name of a curve; empty if the chart is about nothing else.
    pub(super) curve: String,
    pub(super) unit: &'static str,
    /// By the points' numbers.
    pub(super) points: BTreeMap<usize, AtPoint>,
}

/// A measure at a point.
#[derive(Debug, Default)]
pub(super) struct AtPoint {
    /// One for each seed, in the measure's unit.
    pub(super) values: Vec<f64>,
    /// These seeds.
    pub(super) seeds: Vec<u64>,
    /// The expectation; empty if there is none.
    pub(super) bounds: String,
    /// How many runs were judged, and how many of them passed.
    pub(super) judged: usize,
    pub(super) passed: usize,
}

impl Measured {
    /// Everything that the runs' bands are about, in the order of the bands.
    pub(super) fn of(runs: &[RunOfSweep]) -> Vec<Measured> {
        let mut all: Vec<Measured> = Vec::new();
        for run in runs {
            for judgement in &run.judgements {
                for (part, value) in parts(judgement, &run.profiles) {
                    let Part { label, measure, chart, curve } = part;
                    let (factor, unit) = scale(judgement.band.unit());
                    let found = all.iter().position(|one| one.label == label && one.unit == unit);
                    let number = found.unwrap_or_else(|| {
                        let points = BTreeMap::new();
                        all.push(Measured { label, measure, chart, curve, unit, points });
                        all.len() - 1
                    });
                    let Some(measured) = all.get_mut(number) else { continue };
                    let here = measured.points.entry(run.point).or_default();
                    here.values.push(value * factor);
                    here.seeds.push(run.seed);
                    here.bounds = bounds(&judgement.band);
                    here.judged += 1;
                    here.passed += usize::from(judgement.passed);
                }
            }
        }
        all
    }
}

/// What a value is; see [`Measured`].
struct Part {
    label: String,
    measure: String,
    chart: String,
    curve: String,
}

impl Part {
    fn of(band: &Band, profiles: &BTreeMap<Name, String>) -> Part {
        let measure = labels::measure(band);
        let (mut chart, mut curve) = (measure.clone(), labels::subject(band));
        let mut known = band.quantity.flows.iter().map(|flow| profiles.get(flow));
        if let Some(Some(first)) = known.next()
            && known.all(|one| one == Some(first))
        {
            curve += &format!(": {first}");
        }
        if band.quantity.link.is_some() {
            chart += &format!(" of {}", std::mem::take(&mut curve));
            return Part { label: chart.clone(), measure, chart, curve };
        }
        Part { label: format!("{chart} of {curve}"), measure, chart, curve }
    }

    fn relative(self, to: &str) -> Part {
        let Part { label, measure, chart, curve } = self;
        let measure = format!("{measure}, relative");
        Part { label: label + to, measure, chart: chart + to, curve }
    }
}

/// The values of a band, with what they are: one, or one for each flow.
fn parts(judgement: &Judgement, profiles: &BTreeMap<Name, String>) -> Vec<(Part, f64)> {
    let Judgement { band, values, .. } = judgement;
    let relative = band.relative_to.as_ref().map(|other| {
        let divisor = Band { quantity: other.clone(), ..band.clone() };
        let how = if band.difference { "less that of" } else { "relative to" };
        if labels::quantity(&divisor) == labels::quantity(band) {
            format!(" {how} another point")
        } else {
            format!(" {how} {}", labels::quantity(&divisor))
        }
    });
    let part = |band: &Band| match &relative {
        Some(to) => Part::of(band, profiles).relative(to),
        None => Part::of(band, profiles),
    };
    let flows = &band.quantity.flows;
    match values[..] {
        [] => Vec::new(),
        [value] => vec![(part(band), value)],
        _ if values.len() <= MOST_EACH && values.len() == flows.len() => {
            let one = |flow: &Name| {
                let mut single = band.clone();
                single.quantity.flows = vec![flow.clone()];
                part(&single)
            };
            flows.iter().map(one).zip(values.iter().copied()).collect()
        }
        _ => {
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            let Part { label, measure, chart, curve } = part(band);
            let [label, measure, chart] =
                [label, measure, chart].map(|text| format!("mean {text}"));
            vec![(Part { label, measure, chart, curve }, mean)]
        }
    }
}
