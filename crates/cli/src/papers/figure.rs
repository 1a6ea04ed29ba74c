//! A page's figure: stored values and the paper's points as a picture.

use transom_lab::scenario::{Size, Time};
use transom_report::{Chart, HorizontalAxis, Hue, Section, Shape, Style, plot};
use transom_sim::units::Rate;

use super::bench::{BenchChoice, Benchmarks};
use super::chosen::{Chosen, choose};
use super::findings::{mean, means_of_seeds};
use super::page::Page;
use super::text::{BenchCurve, CurveText, Figure, is_path};

/// Places and values.
type Points = Vec<(f64, f64)>;

/// Width and height in pixels: half of a page of text.
const SIZE: (f64, f64) = (640.0, 320.0);
/// The shapes and colours of the paper's points.
const PAPER: [(Shape, Hue); 4] = [
    (Shape::Cross, Hue::Red),
    (Shape::Ring, Hue::Red),
    (Shape::Triangle, Hue::Red),
    (Shape::Cross, Hue::Grey),
];

/// A drawn figure.
#[derive(Debug)]
pub(super) struct Drawn {
    pub(super) svg: String,
    /// What it shows, in words.
    pub(super) alternative: String,
}

/// The values of a curve, before they have a place.
struct Values {
    points: Points,
    spread: Points,
}

/// Draws a figure; `None` if nothing of it has been measured, or one of its curves has not.
pub(super) fn draw(figure: &Figure, page: &Page) -> Option<Drawn> {
    let is_time = figure.curve.iter().any(|curve| curve.course.is_some());
    let factor = factor(&figure.unit);
    let mut chart = Chart::new(&figure.title, &figure.y_label, &figure.unit);
    let mut hues = Hue::ALL.into_iter().filter(|hue| *hue != Hue::Red).cycle();
    for curve in &figure.curve {
        let values = values(figure, curve, page, factor)?;
        let style = match curve.style.as_deref() {
            Some("dots") => Style::Dots,
            Some("bars") => Style::Bars,
            Some("dashed") => Style::Formula,
            Some("step") => Style::Step,
            _ => Style::Line,
        };
        let hue = if style == Style::Formula { Hue::Grey } else { hues.next()? };
        let spread = values.spread.clone();
        let points = values.points.clone();
        chart = chart.series(&curve.name, style, hue, values.points);
        // Few points are seen as such: a range of nothing is a dot.
        match (style, is_time) {
            (Style::Formula | Style::Step, _) | (_, true) => {}
            _ if spread.is_empty() => {
                chart = chart.spread(points.iter().map(|(_, y)| (*y, *y)).collect());
            }
            _ => chart = chart.spread(spread),
        }
    }
    // A quick form is scaled down, and the paper's points are not.
    let papers: &[_] = if page.is_quick() { &[] } else { &figure.paper };
    for (paper, (shape, hue)) in papers.iter().zip(PAPER.into_iter().cycle()) {
        chart = chart.markers(&paper.name, shape, hue, paper.points.clone());
    }
    chart.size = SIZE;
    chart.from_zero = !figure.floating;
    chart.logarithmic = figure.log.contains('y');
    let across = if is_time {
        HorizontalAxis::Time
    } else if figure.names.is_empty() {
        let logarithmic = figure.log.contains('x');
        HorizontalAxis::Number { label: figure.x_label.clone(), logarithmic }
    } else {
        let names = figure.names.iter().map(|(_, name)| name.clone()).collect();
        HorizontalAxis::Names { label: figure.x_label.clone(), names }
    };
    let alternative = chart.alt_text();
    let section = Section { title: figure.title.clone(), across, charts: vec![chart.clone()] };
    Some(Drawn { svg: plot(&section, &chart).to_string(), alternative })
}

/// Names on the horizontal axis above which a curve of bars has none.
pub(super) fn absent_bars(figure: &Figure, page: &Page) -> Vec<String> {
    let mut absent = Vec::new();
    let bars = figure.curve.iter().filter(|curve| curve.style.as_deref() == Some("bars"));
    for curve in bars.filter(|curve| !curve.some) {
        let Some(values) = values(figure, curve, page, 1.0) else { continue };
        for (place, (_, name)) in figure.names.iter().enumerate() {
            if !values.points.iter().any(|(x, _)| *x == place as f64) {
                absent.push(format!("\"{}\" of \"{name}\"", curve.name));
            }
        }
    }
    absent
}

fn values(figure: &Figure, curve: &CurveText, page: &Page, factor: f64) -> Option<Values> {
    if !curve.points.is_empty() {
        return Some(Values { points: curve.points.clone(), spread: Vec::new() });
    }
    if let Some(curve) = &curve.bench {
        return Some(Values { points: measured(curve, &page.benchmarks)?, spread: Vec::new() });
    }
    if !curve.sources.is_empty() {
        let point = |(x, name): &(f64, String)| Some((*x, page.sources.value(name, false)?));
        let points = curve.sources.iter().map(point).collect::<Option<Points>>()?;
        return Some(Values { points, spread: Vec::new() });
    }
    let own = page.found_for(&curve.choice)?;
    if let Some(quantity) = &curve.course {
        let mut points = own.points.iter().filter(|point| curve.choice.is_at(&point.settings));
        let courses = &points.find(|point| !point.courses.is_empty())?.courses;
        let course = courses.iter().find(|course| course.quantity == *quantity)?;
        let line = course.curves.get(curve.flow)?;
        let points: Points = line.0.iter().map(|(at, value)| (*at, value / factor)).collect();
        return (!points.is_empty()).then(|| Values { points, spread: Vec::new() });
    }
    let chosen = choose(own, &curve.choice);
    let mut all: Vec<(f64, f64, (f64, f64))> = chosen
        .iter()
        .filter_map(|one| {
            let place = place(figure, one)?;
            let (low, high) = reach(one);
            Some((place, mean(one.seen)? / factor, (low / factor, high / factor)))
        })
        .collect();
    all.sort_by(|(one, ..), (other, ..)| one.total_cmp(other));
    (!all.is_empty()).then(|| Values {
        points: all.iter().map(|(x, y, _)| (*x, *y)).collect(),
        spread: all.iter().map(|(.., reach)| *reach).collect(),
    })
}

/// The points of a benchmark; `None` if one has not been measured.
fn measured(curve: &BenchCurve, benchmarks: &Benchmarks) -> Option<Points> {
    let point = |(x, case): &(f64, String)| {
        let per_second = curve.per_second_of_x.map(|each| each * x).or(curve.choice.per_second);
        let choice = BenchChoice { case: case.clone(), per_second, ..curve.choice.clone() };
        Some((*x, benchmarks.value(&choice)? * curve.times.unwrap_or(1.0)))
    };
    curve.cases.iter().map(point).collect()
}

/// The least and the greatest mean of a seed.
fn reach(chosen: &Chosen<'_>) -> (f64, f64) {
    means_of_seeds(chosen.seen)
        .fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(value), high.max(value)))
}

/// Where a point of the sweep is on the horizontal axis.
fn place(figure: &Figure, chosen: &Chosen<'_>) -> Option<f64> {
    let Some(path) = &figure.x else { return Some(0.0) };
    let setting = chosen.settings.iter().find(|one| is_path(&one.path, path))?;
    if figure.names.is_empty() {
        return number(&setting.value);
    }
    let known = figure.names.iter().position(|(value, _)| *value == setting.value);
    known.map(|number| number as f64)
}

/// A swept value as a number: rates in Mbit/s, times in ms, sizes in bytes, all else as it is.
fn number(text: &str) -> Option<f64> {
    let plain = text.trim_end_matches('%').trim();
    if let Ok(number) = plain.parse() {
        return Some(number);
    }
    if let Ok(rate) = text.parse::<Rate>() {
        return Some(rate.bits_per_sec() as f64 / 1e6);
    }
    if let Ok(time) = text.parse::<Time>() {
        return Some(time.0.as_nanos() as f64 / 1e6);
    }
    if let Ok(size) = text.parse::<Size>() {
        return Some(size.0 as f64);
    }
    // The beginning, as of "20% by 25ms".
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.'))?;
    text.get(..end)?.parse().ok()
}

/// What stored values are divided by to be in a unit.
fn factor(unit: &str) -> f64 {
    match unit {
        "kbit/s" => 1e3,
        "Mbit/s" => 1e6,
        "Gbit/s" => 1e9,
        "KB/s" => 8e3,
        "µs" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        "kB" => 1e3,
        "MB" => 1e6,
        "GB" => 1e9,
        // As congestion windows count.
        "packets of 1448 B" => 1448.0,
        _ => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn swept_values_have_places() {
        for (text, value) in [
            ("500Mbit/s", 500.0),
            ("12.4ms", 12.4),
            ("5%", 5.0),
            ("0.02", 0.02),
            ("16", 16.0),
            ("20% by normal(25ms, 8ms)", 20.0),
        ] {
            assert_eq!(number(text), Some(value), "{text}");
        }
        assert_eq!(number("reno"), None);
    }
}
