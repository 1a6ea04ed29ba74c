//! Stored values that a page names: of a claim or a column, at some points.

use transom_lab::scenario::{Setting, Unit};

use super::findings::{Found, FoundBand, FoundPoint, Seen, mean, means_of_seeds, uncertainty};
use super::text::{Choice, is_meant};
use super::values::shown;

/// The values at a point.
#[derive(Debug)]
pub(super) struct Chosen<'a> {
    pub(super) settings: &'a [Setting],
    pub(super) unit: Unit,
    pub(super) seen: &'a Seen,
    /// How many different runs there are.
    pub(super) runs: usize,
}

/// The chosen values, point by point. Of several bands at a point that are meant, the first counts.
pub(super) fn choose<'a>(found: &'a Found, choice: &Choice) -> Vec<Chosen<'a>> {
    let points = found.points.iter().filter(|point| choice.is_at(&point.settings));
    let one = |point: &'a FoundPoint| {
        let is = |band: &&FoundBand| match (&choice.claim, &choice.column) {
            (Some(text), _) => band.claim().is_some_and(|claim| is_meant(claim, text)),
            (None, Some(column)) => band.band.column.as_ref() == Some(column),
            (None, None) => false,
        };
        let band = point.bands.iter().find(is)?;
        let (settings, unit) = (&point.settings, band.band.unit());
        Some(Chosen { settings, unit, seen: &band.seen, runs: point.runs })
    };
    points.filter_map(one).filter(|chosen| !chosen.seen.is_empty()).collect()
}

/// The mean at one point, or the means from the least to the greatest, for prose: "165.8 Mbit/s", "0.82 to 0.9".
pub(super) fn told_briefly(chosen: &[Chosen<'_>]) -> Option<String> {
    let unit = chosen.first()?.unit;
    let means: Vec<f64> = chosen.iter().filter_map(|one| mean(one.seen)).collect();
    let low = shown(unit, means.iter().copied().fold(f64::MAX, f64::min));
    let high = shown(unit, means.iter().copied().fold(f64::MIN, f64::max));
    match means.is_empty() {
        true => Some("never".into()),
        false if low == high => Some(low),
        false => Some(format!("{low} to {high}")),
    }
}

/// Mean, range and number of runs of the values at one or several points: "165.8 Mbit/s (1 run)".
pub(super) fn told(chosen: &[Chosen<'_>]) -> Option<String> {
    let unit = chosen.first()?.unit;
    let means: Vec<f64> = chosen.iter().filter_map(|one| mean(one.seen)).collect();
    if means.is_empty() {
        return Some("never".into());
    }
    let runs: Vec<usize> = chosen.iter().map(|one| one.runs).collect();
    let (least, most) = (runs.iter().min().copied()?, runs.iter().max().copied()?);
    let range = |values: &[f64]| {
        let low = values.iter().copied().fold(f64::MAX, f64::min);
        let high = values.iter().copied().fold(f64::MIN, f64::max);
        let (low, high) = (shown(unit, low), shown(unit, high));
        if low == high { low } else { format!("{low} – {high}") }
    };
    let count = match (least, most) {
        (1, 1) => "1 run".to_owned(),
        (least, most) if least == most => format!("{most} runs"),
        (least, most) => format!("{least} – {most} runs"),
    };
    Some(match chosen {
        [one] if most > 1 => {
            let each: Vec<f64> = means_of_seeds(one.seen).collect();
            let (mean, range) = (shown(unit, *means.first()?), range(&each));
            if mean == range {
                format!("{mean} ({count})")
            } else {
                let half = uncertainty(one.seen).map(|half| format!(" ± {}", shown(unit, half)));
                format!("{mean}{} ({range}; {count})", half.unwrap_or_default())
            }
        }
        [_] => format!("{} ({count})", shown(unit, *means.first()?)),
        several => format!("{} ({} points, {count} each)", range(&means), several.len()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_told_with_their_range_and_runs() {
        let of =
            |seen: &Seen, runs| told(&[Chosen { settings: &[], unit: Unit::Time, seen, runs }]);
        // Copies of one run, and two runs with the same value.
        assert_eq!(of(&vec![vec![Some(2e9)]; 3], 1).as_deref(), Some("2 s (1 run)"));
        assert_eq!(of(&vec![vec![Some(2e9)]; 3], 3).as_deref(), Some("2 s (3 runs)"));
        let two: Seen = vec![vec![Some(1e9)], vec![Some(3e9)]];
        // The deviation of 1 and 3 is √2, its error 1, and t is 12.71.
        assert_eq!(of(&two, 2).as_deref(), Some("2 s ± 12.71 s (1 s – 3 s; 2 runs)"));
        assert_eq!(told(&[]), None);
    }
}
