//! The folded part of a page: every claim at every point, and the tables of points.

use std::collections::BTreeSet;
use std::fmt::{Display, Write as _};

use transom_lab::scenario::{Band, Bound, Setting, Unit};

use super::findings::{Found, FoundBand, FoundPoint, Verdict, mean, uncertainty};
use super::text::PageText;
use super::values::{number, shown};
use crate::output;

/// A text within a table.
pub(super) fn escaped(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

/// The axes of a sweep that tell its points from each other: of lists that go side by side, the first is enough.
fn telling(points: &[&[Setting]]) -> Vec<usize> {
    let count = |axes: &[usize]| {
        let values = |point: &&[Setting]| -> Vec<String> {
            axes.iter().filter_map(|axis| Some(point.get(*axis)?.value.clone())).collect()
        };
        points.iter().map(values).collect::<BTreeSet<_>>().len()
    };
    let mut axes = Vec::new();
    for axis in 0..points.first().map_or(0, |point| point.len()) {
        let with: Vec<usize> = axes.iter().copied().chain([axis]).collect();
        if count(&with) > count(&axes).max(1) {
            axes = with;
        }
    }
    axes
}

/// Those settings of a point that tell it from the others.
fn told(found: &Found, settings: &[Setting]) -> Vec<Setting> {
    let all: Vec<&[Setting]> = found.points.iter().map(|point| &point.settings[..]).collect();
    telling(&all).iter().filter_map(|axis| settings.get(*axis).cloned()).collect()
}

fn listed(settings: &[Setting]) -> String {
    let short = |one: &Setting| {
        format!("{} = {}", one.path.rsplit('.').next().unwrap_or_default(), one.value)
    };
    output::listed(settings.iter().map(short), "")
}

/// The band, as text.
fn bounds(band: &Band) -> String {
    let shown = |bound: Bound| shown(band.unit(), bound.as_number());
    range(band.min.map(shown), band.max.map(shown))
}

/// A range that may be open at either end, as text.
pub(super) fn range(min: Option<impl Display>, max: Option<impl Display>) -> String {
    match (min, max) {
        (Some(min), Some(max)) => format!("{min} … {max}"),
        (Some(min), None) => format!("≥ {min}"),
        (None, Some(max)) => format!("≤ {max}"),
        (None, None) => String::new(),
    }
}

/// What a band says of its control.
pub(super) fn said_of_control(rejects: Option<bool>) -> &'static str {
    match rejects {
        Some(true) => "rejected",
        Some(false) => "**accepted**",
        None => "not measured",
    }
}

/// The table of a scenario's claims; nothing if it has none.
pub(super) fn claims(found: &Found, page: &PageText) -> String {
    let mut text = String::new();
    for point in &found.points {
        let settings = listed(&told(found, &point.settings));
        for band in point.bands.iter() {
            let Some(claim) = band.claim() else { continue };
            let unit = band.band.unit();
            let kind = page.kind(claim);
            let verdict = match band.verdict() {
                Verdict::Holds if band.is_within_scatter() => {
                    "holds in the mean, within the scatter"
                }
                Verdict::Holds => "holds",
                Verdict::Differs => "**differs**",
                Verdict::NotRun => "not run",
            };
            let half = uncertainty(&band.seen).filter(|half| *half > 0.0 && point.runs > 1);
            let half = half.map(|half| format!(" ± {}", shown(unit, half))).unwrap_or_default();
            let ours = mean(&band.seen).map(|value| format!("{}{half}", shown(unit, value)));
            let ours = ours.unwrap_or_else(|| {
                if band.seen.is_empty() { String::new() } else { "never".into() }
            });
            let paper = claim.number.map(|number| shown(unit, number.as_number()));
            let _ = writeln!(
                text,
                "| {} | {} | {} | {} | {ours} | {verdict}{kind} | {} | {} |",
                escaped(&claim.says),
                escaped(&settings),
                paper.unwrap_or_default(),
                bounds(&band.band),
                runs(point, band),
                control(found, band),
            );
        }
    }
    if text.is_empty() {
        return text;
    }
    format!(
        "| claim | point | paper | band | ours | verdict | runs | control |\n|---|---|---|---|---|---|--:|---|\n{text}"
    )
}

fn runs(point: &FoundPoint, band: &FoundBand) -> String {
    match (band.seen.len(), point.runs) {
        (0, _) => String::new(),
        (1, _) => "1".into(),
        (_, 1) => "1, deterministic".into(),
        (seeds, runs) if seeds == runs => runs.to_string(),
        (seeds, runs) => format!("{runs} (from {seeds} seeds)"),
    }
}

fn control(found: &Found, band: &FoundBand) -> String {
    let none = band.claim().and_then(|claim| claim.control.clone());
    let Some(control) = &band.control else { return escaped(&none.unwrap_or_default()) };
    let unit = band.band.unit();
    let at = listed(&told(found, &control.settings));
    let value = mean(&control.seen).map(|value| shown(unit, value)).unwrap_or_default();
    let rejects = band.rejects_control();
    let value = if rejects.is_some() { format!(", {value}") } else { String::new() };
    escaped(&format!("{}{value} ({at})", said_of_control(rejects)))
}

/// The table of a scenario's points; nothing if no band has a column.
pub(super) fn points(found: &Found) -> String {
    let mut headings: Vec<&String> = Vec::new();
    for heading in found
        .points
        .iter()
        .flat_map(|point| &point.bands)
        .filter_map(|band| band.band.column.as_ref())
    {
        if !headings.contains(&heading) {
            headings.push(heading);
        }
    }
    let Some(first) = found.points.first().filter(|_| !headings.is_empty()) else {
        return String::new();
    };
    let name = |one: Setting| one.path.rsplit('.').next().unwrap_or_default().to_owned();
    let axes = told(found, &first.settings).into_iter().map(name);
    let heads: Vec<String> = axes.chain(headings.iter().map(|one| (*one).clone())).collect();
    let mut text = format!("| {} |\n|{}\n", heads.join(" | "), "---|".repeat(heads.len()));
    for point in &found.points {
        let settings = told(found, &point.settings).into_iter().map(|one| one.value);
        let cells = headings.iter().map(|heading| {
            let band = point.bands.iter().find(|band| band.band.column.as_ref() == Some(*heading));
            band.map(cell).unwrap_or_default()
        });
        let line: Vec<String> = settings.chain(cells).map(|cell| escaped(&cell)).collect();
        let _ = writeln!(text, "| {} |", line.join(" | "));
    }
    text
}

fn cell(band: &FoundBand) -> String {
    match (mean(&band.seen), &band.seen[..]) {
        (Some(mean), _) if band.band.unit() == Unit::Number => number(mean),
        (Some(mean), _) => shown(band.band.unit(), mean),
        (None, []) => "not run".into(),
        (None, _) => "never".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_tells_points_from_each_other_is_said() {
        let point = |values: &[&str]| -> Vec<Setting> {
            let setting = |value: &&str| Setting { path: "a.b".into(), value: (*value).into() };
            values.iter().map(setting).collect()
        };
        let told = |points: &[Vec<Setting>]| {
            let all: Vec<&[Setting]> = points.iter().map(|point| &point[..]).collect();
            telling(&all)
        };
        assert_eq!(told(&[point(&["1", "x"]), point(&["1", "y"]), point(&["2", "x"])]), [0, 1]);
        assert_eq!(told(&[point(&["1", "x"]), point(&["2", "y"]), point(&["3", "y"])]), [0]);
        assert!(told(&[point(&["1"])]).is_empty());
    }
}
