//! The measurements at each point of a sweep.

use std::collections::BTreeMap;

use transom_lab::run::Judgement;

use super::RunOfSweep;
use crate::labels;
use crate::run::{bounds, scale};

/// As many flows of a band are shown one by one; of more, it is their mean.
const MOST_EACH: usize = 4;

/// A measure, and its values at each point.
#[derive(Debug, Default)]
pub(super) struct Measured {
    pub(super) label: String,
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
                for (label, value) in parts(judgement) {
                    let (factor, unit) = scale(judgement.band.unit());
                    let found = all.iter().position(|one| one.label == label && one.unit == unit);
                    let number = found.unwrap_or_else(|| {
                        all.push(Measured { label, unit, points: BTreeMap::new() });
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

/// The values of a band, with what they are: one, or one for each flow.
fn parts(judgement: &Judgement) -> Vec<(String, f64)> {
    let Judgement { band, values, .. } = judgement;
    let mut label = labels::quantity(band);
    if let Some(other) = &band.relative_to {
        let mut divisor = band.clone();
        divisor.quantity = other.clone();
        let divisor = labels::quantity(&divisor);
        label += &if divisor == label {
            " relative to another point".into()
        } else {
            format!(" relative to {divisor}")
        };
    }
    let flows = &band.quantity.flows;
    match values[..] {
        [] => Vec::new(),
        [value] => vec![(label, value)],
        _ if values.len() <= MOST_EACH && values.len() == flows.len() => {
            let one = |flow: &transom_lab::scenario::Name| {
                let mut single = band.clone();
                single.quantity.flows = vec![flow.clone()];
                labels::quantity(&single)
            };
            flows.iter().map(one).zip(values.iter().copied()).collect()
        }
        _ => {
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            vec![(format!("mean {label}"), mean)]
        }
    }
}
