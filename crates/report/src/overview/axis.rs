//! A swept value, as an axis.

use transom_lab::scenario::{Size, Time};
use transom_sim::units::Rate;

use super::Point;
use crate::HorizontalAxis;

/// One of the things that are swept, for a horizontal axis.
#[derive(Debug)]
pub(super) struct Axis {
    /// How its places are joined.
    pub(super) joined: Joined,
    /// Which of the points' settings it is.
    pub(super) number: usize,
    pub(super) across: HorizontalAxis,
    /// The place of each point.
    pub(super) places: Vec<f64>,
}

/// How the points of a curve over an axis are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Joined {
    /// One after the other.
    All,
    /// All but the first, which is zero and has no place among factors: the axis is broken there.
    BehindZero,
    /// Not at all: these are categories.
    Nothing,
}

/// The settings that have several values, by their numbers, each with its values in the order of their first points.
pub(super) fn varying(points: &[Point]) -> Vec<(usize, Vec<String>)> {
    let settings = points.first().map_or(0, |point| point.settings.len());
    let values = |number: usize| {
        let mut values: Vec<String> = Vec::new();
        for setting in points.iter().filter_map(|point| point.settings.get(number)) {
            if !values.contains(&setting.value) {
                values.push(setting.value.clone());
            }
        }
        (number, values)
    };
    (0..settings).map(values).filter(|(_, values)| values.len() > 1).collect()
}

/// The settings that have several values, as axes, each with its path and how many values it has.
fn axes(points: &[Point]) -> Vec<(Axis, &str, usize)> {
    let axis = |(number, distinct): (usize, Vec<String>)| {
        let own = points.iter().map(|point| point.settings.get(number));
        let values: Vec<&str> =
            own.clone().map(|setting| setting.map_or("", |setting| &setting.value)).collect();
        let path = own.flatten().next().map_or("", |setting| setting.path.as_str());
        (of_values(number, path, &values), path, distinct.len())
    };
    varying(points).into_iter().map(axis).collect()
}

/// The two axes of a map: the settings of a sweep that has exactly two with several values each.
pub(super) fn two(points: &[Point]) -> Option<[Axis; 2]> {
    let two: [_; 2] = axes(points).try_into().ok()?;
    Some(two.map(|(axis, ..)| axis))
}

/// The axis to draw over: the chosen setting, or else of those that are numbers the one with the most values, else the one with the most values. None
/// if nothing is swept.
pub(super) fn axis(points: &[Point], chosen: Option<&str>) -> Option<Axis> {
    let axes = axes(points).into_iter();
    let axes = axes.filter(|(_, path, _)| chosen.is_none_or(|chosen| chosen == *path));
    let is_number = |axis: &Axis| axis.joined != Joined::Nothing;
    // The first of those that are equally good.
    let best = axes.rev().max_by_key(|(axis, _, distinct)| (is_number(axis), *distinct))?;
    Some(best.0)
}

fn of_values(number: usize, path: &str, values: &[&str]) -> Axis {
    if let Some((places, unit)) = numbers(values) {
        let label = if unit.is_empty() { path.into() } else { format!("{path} ({unit})") };
        if is_geometric_beside_zero(&places) {
            return broken(number, label, values, &places);
        }
        let logarithmic = is_geometric(&places);
        let across = HorizontalAxis::Number { label, logarithmic };
        return Axis { joined: Joined::All, number, across, places };
    }
    let mut names: Vec<String> = Vec::new();
    let places = values
        .iter()
        .map(|value| {
            let found = names.iter().position(|name| name == value);
            let place = found.unwrap_or_else(|| {
                names.push((*value).into());
                names.len() - 1
            });
            place as f64
        })
        .collect();
    let across = HorizontalAxis::Names { label: path.into(), names };
    Axis { joined: Joined::Nothing, number, across, places }
}

/// Zero, and then factors at equal distances.
fn broken(number: usize, label: String, values: &[&str], numbers: &[f64]) -> Axis {
    let mut known: Vec<(f64, &str)> = numbers.iter().copied().zip(values.iter().copied()).collect();
    known.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    known.dedup_by(|(one, _), (other, _)| one == other);
    let place = |value: &f64| known.iter().position(|(known, _)| known == value).unwrap_or(0);
    let places = numbers.iter().map(|value| place(value) as f64).collect();
    let names = known.iter().map(|(_, text)| (*text).to_owned()).collect();
    let across = HorizontalAxis::Names { label, names };
    Axis { joined: Joined::BehindZero, number, across, places }
}

/// Whether there is zero, and the others are factors.
fn is_geometric_beside_zero(values: &[f64]) -> bool {
    let above: Vec<f64> = values.iter().copied().filter(|value| *value != 0.0).collect();
    above.len() < values.len() && is_geometric(&above)
}

/// The values as numbers with a common unit, if that is what they are.
fn numbers(values: &[&str]) -> Option<(Vec<f64>, String)> {
    let split = |text: &str| -> Option<(f64, String)> {
        let text = text.trim();
        let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '-'));
        let (number, unit) = text.split_at(end.unwrap_or(text.len()));
        Some((number.parse().ok()?, unit.trim().into()))
    };
    let parts: Vec<(f64, String)> = values.iter().map(|text| split(text)).collect::<Option<_>>()?;
    let unit = parts.first()?.1.clone();
    // A fraction, or anything else with more behind it, is not understood.
    if parts.iter().all(|(_, own)| *own == unit) && !unit.starts_with('/') && !unit.contains('(') {
        return Some((parts.into_iter().map(|(number, _)| number).collect(), unit));
    }
    let rates =
        || values.iter().map(|text| Some(text.parse::<Rate>().ok()?.bits_per_sec() as f64 / 1e6));
    let times =
        || values.iter().map(|text| Some(text.parse::<Time>().ok()?.0.as_nanos() as f64 / 1e6));
    let sizes = || values.iter().map(|text| Some(text.parse::<Size>().ok()?.0 as f64));
    let rates = rates().collect::<Option<Vec<f64>>>().map(|all| (all, "Mbit/s".into()));
    let times = || times().collect::<Option<Vec<f64>>>().map(|all| (all, "ms".into()));
    let sizes = || sizes().collect::<Option<Vec<f64>>>().map(|all| (all, "bytes".into()));
    rates.or_else(times).or_else(sizes)
}

/// Whether the steps are more like equal factors than like equal distances, and there are enough of them to tell.
fn is_geometric(values: &[f64]) -> bool {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values.dedup();
    let (Some(&low), Some(&high)) = (values.first(), values.last()) else { return false };
    if values.len() < 3 || low <= 0.0 || high / low < 4.0 {
        return false;
    }
    let spread = |step: fn(f64, f64) -> f64| {
        let steps = values.windows(2).filter_map(|pair| match *pair {
            [one, next] => Some(step(one, next)),
            _ => None,
        });
        let steps: Vec<f64> = steps.collect();
        steps.iter().copied().fold(f64::MIN, f64::max)
            / steps.iter().copied().fold(f64::MAX, f64::min)
    };
    spread(|one, next| next / one) < spread(|one, next| next - one)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_numbers_if_they_have_a_common_unit() {
        let numbers = |values: &[&str]| numbers(values);
        assert_eq!(numbers(&["10ms", "20ms"]), Some((vec![10.0, 20.0], "ms".into())));
        assert_eq!(numbers(&["500us", "20ms"]), Some((vec![0.5, 20.0], "ms".into())));
        assert_eq!(numbers(&["900kbit/s", "1Mbit/s"]), Some((vec![0.9, 1.0], "Mbit/s".into())));
        assert_eq!(
            numbers(&["10 packets", "20 packets"]),
            Some((vec![10.0, 20.0], "packets".into()))
        );
        assert_eq!(numbers(&["0.001", "1"]), Some((vec![0.001, 1.0], String::new())));
        assert_eq!(numbers(&["1%", "2%"]), Some((vec![1.0, 2.0], "%".into())));
        for no in [
            &["200 packets", "codel"][..],
            &["1/10", "1/20"],
            &["true", "false"],
            &["64KiB", "10 packets"],
        ] {
            assert_eq!(numbers(no), None, "{no:?}");
        }
    }

    #[test]
    fn factors_are_told_from_distances() {
        assert!(is_geometric(&[10.0, 20.0, 40.0]));
        assert!(is_geometric(&[1.0, 2.0, 5.0, 10.0]));
        assert!(is_geometric(&[0.1, 0.01, 0.001]));
        assert!(!is_geometric(&[10.0, 20.0, 30.0, 40.0]));
        assert!(!is_geometric(&[1.0, 100.0]));
        assert!(!is_geometric(&[0.0, 1.0, 10.0]));
        assert!(is_geometric_beside_zero(&[0.0, 0.01, 0.1, 1.0]));
        assert!(!is_geometric_beside_zero(&[0.0, 10.0, 20.0, 30.0]));
    }

    #[test]
    fn an_axis_with_zero_and_factors_is_broken() {
        let axis = of_values(0, "loss", &["0", "0.1", "0.001", "0.01", "0"]);
        assert_eq!((axis.joined, axis.places), (Joined::BehindZero, vec![0.0, 3.0, 1.0, 2.0, 0.0]));
        let names = ["0", "0.001", "0.01", "0.1"].map(String::from).to_vec();
        assert_eq!(axis.across, HorizontalAxis::Names { label: "loss".into(), names });
    }
}
