//! Charts of measures over swept values.

use std::collections::{BTreeMap, BTreeSet};

use super::axis::{Axis, Joined, axis, varying};
use super::measured::Measured;
use super::{Overview, Point};
use crate::statistics::Summary;
use crate::{Chart, HorizontalAxis, Hue, Section, Series, Style};

/// So many sections there are at most, one for each combination of further settings.
const MOST_FACETS: usize = 12;

/// A chart for each measure: over the swept value, or over the seeds if there is none. With three swept values and more, one of the others tells
/// curves from each other, and there is a section for each combination of the rest.
pub(super) fn sections(overview: &Overview, measured: &[Measured]) -> Vec<Section> {
    let points = &overview.points;
    let groups = grouped(measured);
    let Some(axis) = axis(points, overview.over.as_deref()) else {
        let across = HorizontalAxis::Number { label: "seed".into(), logarithmic: false };
        let charts: Vec<Chart> =
            groups.iter().flat_map(|group| over_seeds(overview, group)).collect();
        let section = Section { title: "Over the seeds".into(), across, charts };
        return if section.charts.is_empty() { Vec::new() } else { vec![section] };
    };
    let paths = overview.short_paths();
    let path = |number: usize| paths.get(number).copied().unwrap_or_default();
    let mut sections = Vec::new();
    for facet in facets(points, &axis).into_iter().take(MOST_FACETS) {
        let charts: Vec<Chart> =
            groups.iter().flat_map(|group| over_sweep(overview, &axis, &facet, group)).collect();
        let mut title = format!("Over {}", path(axis.number));
        let fixed: Vec<String> =
            facet.iter().map(|(number, value)| format!("{} = {value}", path(*number))).collect();
        if !fixed.is_empty() {
            title += &format!(", with {}", fixed.join(", "));
        }
        if !charts.is_empty() {
            sections.push(Section { title, across: axis.across.clone(), charts });
        }
    }
    sections
}

/// Settings that are the same in a section: their numbers and values.
type Facet = Vec<(usize, String)>;

/// The combinations of settings beside the axis and one that tells curves from each other. That one is a category if there is one, and has few
/// values.
fn facets(points: &[Point], axis: &Axis) -> Vec<Facet> {
    let mut others = varying(points);
    others.retain(|(number, _)| *number != axis.number);
    let combinations: usize = others.iter().map(|(_, values)| values.len()).product();
    let along = axis.places.iter().map(|place| place.to_bits()).collect::<BTreeSet<_>>().len();
    // Settings that go hand in hand with the axis, or with each other, are no further dimension.
    if others.len() < 2 || combinations * along > points.len() {
        return vec![Facet::new()];
    }
    let is_number = |values: &[String]| {
        values.iter().all(|value| value.starts_with(|c: char| c.is_ascii_digit()))
    };
    let curves = others
        .iter()
        .enumerate()
        .min_by_key(|(_, (_, values))| (is_number(values), values.len()))
        .map_or(0, |(place, _)| place);
    others.remove(curves);
    let mut facets = vec![Facet::new()];
    for (number, values) in &others {
        let longer = |facet: Facet| {
            values.iter().map(move |value| {
                let mut facet = facet.clone();
                facet.push((*number, value.clone()));
                facet
            })
        };
        facets = facets.into_iter().flat_map(longer).collect();
    }
    facets
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

fn over_sweep(overview: &Overview, axis: &Axis, facet: &Facet, group: &[&Measured]) -> Vec<Chart> {
    let (title, named) = named(group);
    let mut curves = Vec::new();
    for (measured, name) in &named {
        for mut curve in curves_of(overview, axis, facet, measured) {
            // Of whom, and at which of the other settings.
            let parts = [name.as_str(), curve.name.as_str()];
            let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
            curve.name = if parts.is_empty() { "value".into() } else { parts.join(", ") };
            curves.push(curve);
        }
    }
    let several = |(_, summary, _): &(f64, Summary, Option<String>)| summary.count > 1;
    let has_intervals = curves.iter().flat_map(|curve| &curve.points).any(several);
    let possible = possible(group);
    let series = |curve: Curve| {
        let reach = |summary: &Summary| match summary.half_width {
            // Copies of one run say nothing about the spread.
            Some(half) if summary.min < summary.max => {
                ((summary.mean - half).max(possible.0), (summary.mean + half).min(possible.1))
            }
            _ => (f64::NAN, f64::NAN),
        };
        let mut points = curve.points;
        // The axis is broken behind zero, and so is the curve.
        let is_broken = axis.joined == Joined::BehindZero;
        let gap =
            points.iter().position(|(place, ..)| *place > 0.0).filter(|at| is_broken && *at > 0);
        let (mut values, mut spread, mut links) = (Vec::new(), Vec::new(), Vec::new());
        for (number, (place, summary, page)) in points.drain(..).enumerate() {
            if gap == Some(number) {
                values.push((place - 0.5, f64::NAN));
                spread.push((f64::NAN, f64::NAN));
                links.push(String::new());
            }
            values.push((place, summary.mean));
            spread.push(reach(&summary));
            links.push(page.unwrap_or_default());
        }
        // Categories are not between each other.
        let style = if axis.joined == Joined::Nothing { Style::Dots } else { Style::Line };
        Series { name: curve.name, style, hue: Hue::Blue, points: values, spread, links }
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

/// The least and the greatest value that a measure can have, as far as its values tell: nothing here that is never negative is so by chance, and a share
/// is no more than the whole.
fn possible(group: &[&Measured]) -> (f64, f64) {
    let mut values = group.iter().flat_map(|one| one.points.values()).flat_map(|here| &here.values);
    let negative = values.clone().any(|value| *value < 0.0);
    let is_share = group
        .iter()
        .all(|one| SHARES.contains(&one.measure.split(" (").next().unwrap_or_default()));
    let whole = is_share && values.all(|value| *value <= 1.0);
    (if negative { f64::NEG_INFINITY } else { 0.0 }, if whole { 1.0 } else { f64::INFINITY })
}

/// Measures that are shares of something.
const SHARES: [&str; 4] = ["utilisation", "jain", "loss-rate", "efficiency"];

/// A curve for each combination of the other settings; of settings that go hand in hand with the axis there is only one.
fn curves_of(overview: &Overview, axis: &Axis, facet: &Facet, measured: &Measured) -> Vec<Curve> {
    let points = &overview.points;
    let mut curves: Vec<Curve> = Vec::new();
    let mut places: BTreeMap<Vec<&str>, usize> = BTreeMap::new();
    let mut distinct = axis.places.clone();
    distinct.sort_by(f64::total_cmp);
    distinct.dedup();
    let single = distinct.len() == points.len();
    let varying: BTreeSet<usize> = varying(points).into_iter().map(|(number, _)| number).collect();
    for (point, place) in points.iter().zip(&axis.places) {
        let is_here = |(number, value): &(usize, String)| {
            point.settings.get(*number).is_some_and(|setting| setting.value == *value)
        };
        if !facet.iter().all(is_here) {
            continue;
        }
        let is_fixed = |number: usize| facet.iter().any(|(fixed, _)| *fixed == number);
        let others = point.settings.iter().enumerate();
        let others = others.filter(|(number, _)| {
            !single && *number != axis.number && !is_fixed(*number) && varying.contains(number)
        });
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
