//! A chart as JSON, small.
//!
//! Most of a page is numbers. Times are whole ticks (microseconds, or nanoseconds in a short chart) and
//! each is written as its distance from the one before; values have seven significant digits. A point
//! takes about a dozen bytes, a full curve fifty thousand.

use serde_json::{Value, json};

use super::data::{Chart, Hue, Shape, Style};
use super::decimate::decimate;

/// The sections' charts as the page's script reads them.
pub(crate) fn charts(sections: &[super::Section]) -> Value {
    sections.iter().map(|section| section.charts.iter().map(chart).collect::<Value>()).collect()
}

fn chart(chart: &Chart) -> Value {
    let series = chart.series.iter().map(|series| Curve {
        name: &series.name,
        hue: series.hue,
        drawn: match series.style {
            Style::Line => "line",
            Style::Step => "step",
            Style::Dots => "dots",
        },
        points: decimate(&series.points),
        total: series.points.len(),
    });
    let markers = chart.markers.iter().map(|markers| Curve {
        name: &markers.name,
        hue: markers.hue,
        drawn: match markers.shape {
            Shape::Cross => "cross",
            Shape::Triangle => "triangle",
            Shape::Ring => "ring",
        },
        points: decimate(&markers.points),
        total: markers.points.len(),
    });
    let curves: Vec<Curve<'_>> = series.chain(markers).collect();
    let tick = tick(&curves);
    json!({
        "label": chart.axis.label,
        "unit": chart.axis.unit,
        "fromZero": chart.axis.from_zero,
        "tick": tick,
        "curves": curves.iter().map(|curve| curve.encode(tick)).collect::<Vec<_>>(),
    })
}

/// A series or a set of markers, thinned.
struct Curve<'a> {
    name: &'a str,
    hue: Hue,
    drawn: &'static str,
    points: Vec<(f64, f64)>,
    total: usize,
}

/// The unit of time in seconds: fine enough for ten thousand pixels.
fn tick(curves: &[Curve<'_>]) -> f64 {
    let times = || curves.iter().flat_map(|curve| &curve.points).map(|(x, _)| *x);
    let (first, last) = (times().fold(f64::MAX, f64::min), times().fold(f64::MIN, f64::max));
    if last - first < 0.01 { 1e-9 } else { 1e-6 }
}

impl Curve<'_> {
    fn encode(&self, tick: f64) -> Value {
        let mut before = 0;
        let mut step = |x: f64| {
            // Saturating: a time beyond 2^63 ticks is nonsense, but not a reason to panic.
            let now = (x / tick).round() as i64;
            let step = now.saturating_sub(before);
            before = now;
            step
        };
        let hue = match self.hue {
            Hue::Blue => "blue",
            Hue::Orange => "orange",
            Hue::Green => "green",
            Hue::Pink => "pink",
            Hue::Grey => "grey",
            Hue::Red => "red",
        };
        json!({
            "name": self.name,
            "hue": hue,
            "drawn": self.drawn,
            "total": self.total,
            "x": self.points.iter().map(|(x, _)| step(*x)).collect::<Vec<_>>(),
            "y": self.points.iter().map(|(_, y)| rounded(*y)).collect::<Vec<_>>(),
        })
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

    #[test]
    fn times_are_distances_in_ticks() {
        let long = chart(&Chart::new("", "", "").series(
            "a",
            Style::Line,
            Hue::Blue,
            vec![(1.0, 5.0), (1.5, f64::NAN), (1.500_001, 6.5)],
        ));
        assert_eq!(long["tick"], json!(1e-6));
        assert_eq!(long["curves"][0]["x"], json!([1_000_000, 500_000, 1]));
        assert_eq!(long["curves"][0]["y"], json!([5, null, 6.5]));
        let short = chart(&Chart::new("", "", "").markers(
            "b",
            Shape::Cross,
            Hue::Red,
            vec![(-0.000_000_002, 1.0), (0.001, 2.0)],
        ));
        assert_eq!(short["tick"], json!(1e-9));
        assert_eq!(short["curves"][0]["x"], json!([-2, 1_000_002]));
    }
}
