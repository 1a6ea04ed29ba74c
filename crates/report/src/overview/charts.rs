//! Charts of measures over swept values.

use std::collections::BTreeMap;

use super::Point;
use super::axis::{Axis, axis};
use super::measured::Measured;
use crate::statistics::Summary;
use crate::{Chart, HorizontalAxis, Hue, Section, Style};

/// A chart for each measure: over the swept value, or over the seeds if there is none.
pub(super) fn sections(points: &[Point], measured: &[Measured]) -> Vec<Section> {
    let (title, across, charts): (String, HorizontalAxis, Vec<Chart>) = match axis(points) {
        Some(axis) => {
            let charts = measured.iter().flat_map(|one| over_sweep(points, &axis, one)).collect();
            let path = points.first().and_then(|point| point.settings.get(axis.number));
            let path = path.map(|setting| setting.path.as_str()).unwrap_or_default();
            (format!("Over {path}"), axis.across, charts)
        }
        None => {
            let across = HorizontalAxis::Number { label: "seed".into(), logarithmic: false };
            let charts = measured.iter().map(over_seeds).collect();
            ("Over the seeds".into(), across, charts)
        }
    };
    if charts.is_empty() { Vec::new() } else { vec![Section { title, across, charts }] }
}

fn over_seeds(measured: &Measured) -> Chart {
    let points = measured.points.values().flat_map(|point| point.seeds.iter().zip(&point.values));
    let points = points.map(|(seed, value)| (*seed as f64, *value)).collect();
    Chart::new(&measured.label, "", measured.unit).caption("A point for each run.").series(
        "value",
        Style::Dots,
        Hue::Blue,
        points,
    )
}

/// As many charts as needed for a separate colour for each curve.
fn over_sweep(points: &[Point], axis: &Axis, measured: &Measured) -> Vec<Chart> {
    // A curve for each combination of the other settings; of settings that go hand in hand with the axis there is only one.
    let mut curves: BTreeMap<Vec<&str>, Vec<(f64, Summary)>> = BTreeMap::new();
    let mut order: Vec<Vec<&str>> = Vec::new();
    let mut distinct = axis.places.clone();
    distinct.sort_by(f64::total_cmp);
    distinct.dedup();
    let single = distinct.len() == points.len();
    for (point, place) in points.iter().zip(&axis.places) {
        let others = point.settings.iter().enumerate();
        let others = others.filter(|(number, _)| !single && *number != axis.number);
        let name: Vec<&str> = others.map(|(_, setting)| setting.value.as_str()).collect();
        let here = measured.points.get(&point.point);
        let Some(summary) = here.and_then(|here| Summary::of(&here.values)) else { continue };
        if !order.contains(&name) {
            order.push(name.clone());
        }
        curves.entry(name).or_default().push((*place, summary));
    }
    let charts = order.len().div_ceil(Hue::ALL.len());
    let several = |summary: &Summary| summary.count > 1;
    let bars = curves.values().flatten().any(|(_, summary)| several(summary));
    order
        .chunks(Hue::ALL.len())
        .enumerate()
        .map(|(number, names)| {
            let mut title = measured.label.clone();
            if charts > 1 {
                title += &format!(" ({} of {charts})", number + 1);
            }
            let mut chart = Chart::new(title, "mean over the seeds", measured.unit);
            if bars {
                chart = chart.caption(
                    "Bars are the mean's 95 % confidence interval over the seeds (Student's t).",
                );
            } else {
                chart.axis.label = "value".into();
            }
            for (name, hue) in names.iter().zip(Hue::ALL) {
                let mut curve = curves.get(name).cloned().unwrap_or_default();
                curve.sort_by(|(a, _), (b, _)| a.total_cmp(b));
                let label = if name.is_empty() { "value".into() } else { name.join(", ") };
                let points = curve.iter().map(|(place, summary)| (*place, summary.mean)).collect();
                let reach = |summary: &Summary| match summary.half_width {
                    Some(half) => (summary.mean - half, summary.mean + half),
                    None => (f64::NAN, f64::NAN),
                };
                let spread = curve.iter().map(|(_, summary)| reach(summary)).collect();
                chart = chart.series(label, Style::Line, hue, points).spread(spread);
            }
            chart
        })
        .collect()
}
