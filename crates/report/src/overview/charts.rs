//! Charts of measures over swept values.

use std::collections::BTreeMap;

use super::Overview;
use super::axis::{Axis, axis};
use super::measured::Measured;
use crate::statistics::Summary;
use crate::{Chart, HorizontalAxis, Hue, Section, Series, Style};

/// A chart for each measure: over the swept value, or over the seeds if there is none.
pub(super) fn sections(overview: &Overview, measured: &[Measured]) -> Vec<Section> {
    let points = &overview.points;
    let groups = grouped(measured);
    let (title, across, charts): (String, HorizontalAxis, Vec<Chart>) = match axis(points) {
        Some(axis) => {
            let charts =
                groups.iter().flat_map(|group| over_sweep(overview, &axis, group)).collect();
            let path = points.first().and_then(|point| point.settings.get(axis.number));
            let path = path.map(|setting| setting.path.as_str()).unwrap_or_default();
            (format!("Over {path}"), axis.across, charts)
        }
        None => {
            let across = HorizontalAxis::Number { label: "seed".into(), logarithmic: false };
            let charts = groups.iter().flat_map(|group| over_seeds(overview, group)).collect();
            ("Over the seeds".into(), across, charts)
        }
    };
    if charts.is_empty() { Vec::new() } else { vec![Section { title, across, charts }] }
}

/// Measures that share charts: the same of several flows or groups of flows.
fn grouped(measured: &[Measured]) -> Vec<Vec<&Measured>> {
    let mut groups: Vec<Vec<&Measured>> = Vec::new();
    for one in measured {
        let same = |group: &&mut Vec<&Measured>| {
            group.first().is_some_and(|first| first.chart == one.chart && first.unit == one.unit)
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.push(one),
            None => groups.push(vec![one]),
        }
    }
    groups
}

/// The title of the charts of a group, and the name of each measure's curves in them.
fn named<'a>(group: &[&'a Measured]) -> (String, Vec<(&'a Measured, String)>) {
    match group {
        [single] => (single.label.clone(), vec![(*single, String::new())]),
        several => {
            let title = several.first().map(|one| one.chart.clone()).unwrap_or_default();
            (title, several.iter().map(|one| (*one, one.curve.clone())).collect())
        }
    }
}

/// The label of the vertical axis, and its unit.
fn vertical<'a>(group: &[&'a Measured]) -> (&'a str, &'a str) {
    group.first().map_or(("", ""), |one| (&one.measure, one.unit))
}

/// A curve, before it has a colour.
struct Curve {
    name: String,
    points: Vec<(f64, Summary, Option<String>)>,
}

/// As many charts as are needed for a colour of its own for each curve.
fn split(title: &str, curves: Vec<Series>, chart: impl Fn(String) -> Chart) -> Vec<Chart> {
    let charts = curves.len().div_ceil(Hue::ALL.len());
    let mut curves = curves.into_iter().peekable();
    let mut all = Vec::new();
    while curves.peek().is_some() {
        let number = all.len() + 1;
        let several = charts > 1;
        let title =
            if several { format!("{title} ({number} of {charts})") } else { title.to_owned() };
        let mut chart = chart(title);
        for (hue, series) in Hue::ALL.into_iter().zip(&mut curves) {
            chart.series.push(Series { hue, ..series });
        }
        all.push(chart);
    }
    all
}

fn over_seeds(overview: &Overview, group: &[&Measured]) -> Vec<Chart> {
    let (title, named) = named(group);
    let page = |point: usize, seed: u64| {
        let run = overview.runs.iter().find(|run| run.point == point && run.seed == seed);
        run.map(|run| run.page.clone()).unwrap_or_default()
    };
    let curve = |(measured, name): &(&Measured, String)| {
        let values = measured.points.iter().flat_map(|(point, here)| {
            here.seeds.iter().zip(&here.values).map(move |(seed, value)| (*point, *seed, *value))
        });
        let values: Vec<(usize, u64, f64)> = values.collect();
        Series {
            name: if name.is_empty() { "value".into() } else { name.clone() },
            style: Style::Dots,
            hue: Hue::Blue,
            points: values.iter().map(|(_, seed, value)| (*seed as f64, *value)).collect(),
            spread: Vec::new(),
            links: values.iter().map(|(point, seed, _)| page(*point, *seed)).collect(),
        }
    };
    let (label, unit) = vertical(group);
    split(&title, named.iter().map(curve).collect(), |title| {
        Chart::new(title, label, unit).caption("A point for each run; a click on it leads there.")
    })
}

fn over_sweep(overview: &Overview, axis: &Axis, group: &[&Measured]) -> Vec<Chart> {
    let (title, named) = named(group);
    let mut curves = Vec::new();
    for (measured, name) in &named {
        for mut curve in curves_of(overview, axis, measured) {
            // Of whom, and at which of the other settings.
            let parts = [name.as_str(), curve.name.as_str()];
            let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
            curve.name = if parts.is_empty() { "value".into() } else { parts.join(", ") };
            curves.push(curve);
        }
    }
    let several = |(_, summary, _): &(f64, Summary, Option<String>)| summary.count > 1;
    let has_intervals = curves.iter().flat_map(|curve| &curve.points).any(several);
    let series = |curve: Curve| {
        let reach = |summary: &Summary| match summary.half_width {
            Some(half) => (summary.mean - half, summary.mean + half),
            None => (f64::NAN, f64::NAN),
        };
        Series {
            name: curve.name,
            style: Style::Line,
            hue: Hue::Blue,
            points: curve.points.iter().map(|(place, summary, _)| (*place, summary.mean)).collect(),
            spread: curve.points.iter().map(|(_, summary, _)| reach(summary)).collect(),
            links: curve.points.into_iter().map(|(.., page)| page.unwrap_or_default()).collect(),
        }
    };
    let (label, unit) = vertical(group);
    split(&title, curves.into_iter().map(series).collect(), |title| {
        if has_intervals {
            Chart::new(title, label, unit).caption(
                "Means over the seeds. The band around a curve is the mean's 95 % confidence interval over the seeds (Student's t). A click on a point leads to its first run.",
            )
        } else {
            Chart::new(title, label, unit).caption("A click on a point leads to its run.")
        }
    })
}

/// A curve for each combination of the other settings; of settings that go hand in hand with the axis there is only one.
fn curves_of(overview: &Overview, axis: &Axis, measured: &Measured) -> Vec<Curve> {
    let points = &overview.points;
    let mut curves: Vec<Curve> = Vec::new();
    let mut places: BTreeMap<Vec<&str>, usize> = BTreeMap::new();
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
        let text = name.join(", ");
        let number = *places.entry(name).or_insert_with(|| {
            curves.push(Curve { name: text, points: Vec::new() });
            curves.len() - 1
        });
        let page = overview.page_of(point.point).map(str::to_owned);
        if let Some(curve) = curves.get_mut(number) {
            curve.points.push((*place, summary, page));
        }
    }
    for curve in &mut curves {
        curve.points.sort_by(|(a, ..), (b, ..)| a.total_cmp(b));
    }
    curves
}
