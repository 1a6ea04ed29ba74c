//! A chart as JSON, small.
//!
//! Most of a page is numbers. Times are whole ticks (microseconds, or nanoseconds in a short chart) and
//! each is written as its distance from the one before; values have seven significant digits. A point
//! takes about a dozen bytes, a full curve fifty thousand. Where the horizontal axis is no time, places on it are
//! written as they are: there are few.

use serde_json::{Value, json};

use super::data::{Chart, HorizontalAxis, Hue, Section, Shape, Style};
use super::decimate::decimate;

/// The sections' charts as the page's script reads them. `most` is how many points a curve may keep.
pub(crate) fn charts(sections: &[Section], most: usize) -> Value {
    sections.iter().map(|section| encode(section, most)).collect()
}

fn encode(section: &Section, most: usize) -> Value {
    let across = match &section.across {
        HorizontalAxis::Time => json!({ "kind": "time", "label": "time (s)" }),
        HorizontalAxis::Number { label, logarithmic } => {
            let kind = if *logarithmic { "logarithmic" } else { "number" };
            json!({ "kind": kind, "label": label, "places": section.places() })
        }
        HorizontalAxis::Names { label, names } => {
            json!({ "kind": "names", "label": label, "names": names })
        }
    };
    let is_time = section.across == HorizontalAxis::Time;
    let charts: Vec<Value> = section.charts.iter().map(|one| chart(one, is_time, most)).collect();
    json!({ "across": across, "charts": charts })
}

fn chart(chart: &Chart, is_time: bool, most: usize) -> Value {
    let thinned = |points: &[(f64, f64)]| {
        if is_time { decimate(points, most) } else { points.to_vec() }
    };
    let series = chart.series.iter().map(|series| Curve {
        name: &series.name,
        hue: series.hue,
        drawn: match series.style {
            Style::Line => "line",
            Style::Step => "step",
            Style::Dashed | Style::Formula => "dashed",
            Style::Dots | Style::Bars => "dots",
        },
        points: thinned(&series.points),
        spread: &series.spread,
        links: &series.links,
        total: seen(&series.points),
    });
    let markers = chart.markers.iter().map(|markers| Curve {
        name: &markers.name,
        hue: markers.hue,
        drawn: match markers.shape {
            Shape::Cross => "cross",
            Shape::Triangle => "triangle",
            Shape::Ring => "ring",
        },
        points: thinned(&markers.points),
        spread: &[],
        links: &[],
        total: seen(&markers.points),
    });
    let curves: Vec<Curve<'_>> = series.chain(markers).collect();
    let tick = if is_time { Some(tick(&curves)) } else { None };
    json!({
        "label": chart.label,
        "unit": chart.unit,
        "fromZero": chart.from_zero,
        "words": chart.alt_text(),
        "tick": tick,
        "curves": curves.iter().map(|curve| curve.encode(tick)).collect::<Vec<_>>(),
    })
}

/// How many points there are to be seen.
fn seen(points: &[(f64, f64)]) -> usize {
    points.iter().filter(|(x, y)| x.is_finite() && y.is_finite()).count()
}

/// A series or a set of markers, thinned.
struct Curve<'a> {
    name: &'a str,
    hue: Hue,
    drawn: &'static str,
    points: Vec<(f64, f64)>,
    spread: &'a [(f64, f64)],
    links: &'a [String],
    total: usize,
}

/// The unit of time in seconds: fine enough for ten thousand pixels.
fn tick(curves: &[Curve<'_>]) -> f64 {
    let times = || curves.iter().flat_map(|curve| &curve.points).map(|(x, _)| *x);
    let (first, last) = (times().fold(f64::MAX, f64::min), times().fold(f64::MIN, f64::max));
    if last - first < 0.01 { 1e-9 } else { 1e-6 }
}

impl Curve<'_> {
    /// Times are distances in `tick`s from one point to the next; without a tick, places are as they are.
    fn encode(&self, tick: Option<f64>) -> Value {
        let mut before = 0;
        let mut place = |x: f64| {
            let Some(tick) = tick else { return rounded(x) };
            // Saturating: a time beyond 2^63 ticks is nonsense, but not a reason to panic.
            let now = (x / tick).round() as i64;
            let step = now.saturating_sub(before);
            before = now;
            json!(step)
        };
        let mut curve = json!({
            "name": self.name,
            "hue": self.hue.name(),
            "drawn": self.drawn,
            "total": self.total,
            "x": self.points.iter().map(|(x, _)| place(*x)).collect::<Vec<_>>(),
            "y": self.points.iter().map(|(_, y)| rounded(*y)).collect::<Vec<_>>(),
        });
        if let (false, Some(object)) = (self.spread.is_empty(), curve.as_object_mut()) {
            let bound = |bound: fn(&(f64, f64)) -> f64| -> Vec<Value> {
                self.spread.iter().map(|pair| rounded(bound(pair))).collect()
            };
            object.insert("low".into(), bound(|(low, _)| *low).into());
            object.insert("high".into(), bound(|(_, high)| *high).into());
        }
        if let (false, Some(object)) = (self.links.is_empty(), curve.as_object_mut()) {
            object.insert("links".into(), json!(self.links));
        }
        curve
    }
}

/// The value with seven significant digits, as an integer where it is one; null if it is not finite.
fn rounded(value: f64) -> Value {
    if !value.is_finite() {
        return Value::Null;
    }
    let short: f64 = format!("{value:.6e}").parse().unwrap_or(value);
    if short.fract() == 0.0 && short.abs() < 1e15 { json!(short as i64) } else { json!(short) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!(rounded(1.0 / 3.0).to_string(), "0.3333333");
        assert_eq!(rounded(65_536.0).to_string(), "65536");
        assert_eq!(rounded(0.0).to_string(), "0");
        assert_eq!(rounded(f64::INFINITY), Value::Null);
        assert_eq!(rounded(f64::NAN), Value::Null);
    }

    fn encoded(chart: Chart) -> Value {
        super::chart(&chart, true, 4000)
    }

    #[test]
    fn places_that_are_no_times_stay_what_they_are() {
        let points = vec![(0.001, 1.0), (0.01, 3.0)];
        let chart = Chart::new("", "", "")
            .series("a", Style::Line, Hue::Blue, points)
            .spread(vec![(0.5, 1.5), (2.0, f64::NAN)]);
        let value = super::chart(&chart, false, 4000);
        assert_eq!(value["tick"], Value::Null);
        assert_eq!(value["curves"][0]["x"], json!([0.001, 0.01]));
        assert_eq!(value["curves"][0]["low"], json!([0.5, 2]));
        assert_eq!(value["curves"][0]["high"], json!([1.5, null]));
    }

    #[test]
    fn times_are_distances_in_ticks() {
        let long = encoded(Chart::new("", "", "").series(
            "a",
            Style::Line,
            Hue::Blue,
            vec![(1.0, 5.0), (1.5, f64::NAN), (1.500_001, 6.5)],
        ));
        assert_eq!(long["tick"], json!(1e-6));
        assert_eq!(long["curves"][0]["x"], json!([1_000_000, 500_000, 1]));
        assert_eq!(long["curves"][0]["y"], json!([5, null, 6.5]));
        let short = encoded(Chart::new("", "", "").markers(
            "b",
            Shape::Cross,
            Hue::Red,
            vec![(-0.000_000_002, 1.0), (0.001, 2.0)],
        ));
        assert_eq!(short["tick"], json!(1e-9));
        assert_eq!(short["curves"][0]["x"], json!([-2, 1_000_002]));
    }
}
