//! A chart as a picture, for files. It shows what uPlot shows in the page, in the same colours.

use std::fmt::Write as _;

use super::data::{Chart, HorizontalAxis, Hue, Points, Section, Series, Shape, Style};
use super::svg::{Anchor, Svg, text_width};
use super::{MOST_POINTS, decimate, logarithmic_ticks, short, ticks};

/// The room above, to the right of, below and to the left of the curves. Below there is the legend too.
const MARGIN: (f64, f64, f64, f64) = (38.0, 24.0, 76.0, 76.0);

/// From values to pixels.
struct Frame {
    /// Whether equal distances are equal factors, across and up.
    logarithmic: (bool, bool),
    x: (f64, f64),
    y: (f64, f64),
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

impl Frame {
    fn across(&self, x: f64) -> f64 {
        self.left + share(x, self.x, self.logarithmic.0) * (self.right - self.left)
    }

    fn up(&self, y: f64) -> f64 {
        self.bottom - share(y, self.y, self.logarithmic.1) * (self.bottom - self.top)
    }

    fn place(&self, (x, y): (f64, f64)) -> (f64, f64) {
        (self.across(x), self.up(y))
    }
}

/// How far a value is from the low end of a range to the high one.
fn share(value: f64, (low, high): (f64, f64), logarithmic: bool) -> f64 {
    let scale = |x: f64| if logarithmic { x.max(f64::MIN_POSITIVE).ln() } else { x };
    let (low, high) = (scale(low), scale(high));
    (scale(value) - low) / (high - low)
}

/// The picture of a chart, which is one of this section.
pub fn plot(section: &Section, chart: &Chart) -> Svg {
    let (across, (width, height)) = (&section.across, chart.size);
    let (top, right, below, left) = MARGIN;
    let legend = legend_rows(chart, width - right - left);
    let whole = height + (legend.len().max(1) - 1) as f64 * 18.0;
    let mut svg = Svg::new(width, whole);
    let (x, y) = extents(across, chart);
    let frame = Frame {
        logarithmic: (
            matches!(across, HorizontalAxis::Number { logarithmic: true, .. }),
            chart.logarithmic,
        ),
        x,
        y,
        left,
        right: width - right,
        top,
        bottom: height - below,
    };
    let bars = chart.series.iter().filter(|one| one.style == Style::Bars).count();
    let mut bar = 0;
    svg.text("title", (16.0, 24.0), Anchor::Start, &chart.title);
    axes(&mut svg, section, chart, &frame);
    svg.clip("area", (left, top), (frame.right - left, frame.bottom - top));
    for series in &chart.series {
        let points = match across {
            HorizontalAxis::Time => decimate(&series.points, MOST_POINTS),
            _ => series.points.clone(),
        };
        let hue = series.hue.name();
        let is_band = has_band(across, series);
        if is_band {
            band(&mut svg, &frame, series);
        }
        for ((x, _), (low, high)) in series.points.iter().zip(&series.spread) {
            if series.style != Style::Bars && !is_band {
                error_bar(&mut svg, &frame, series.hue, *x, (*low, *high));
            }
        }
        match series.style {
            Style::Dots => {
                for point in finite(&points) {
                    svg.circle(&format!("dot f-{hue}"), frame.place(point), 1.6);
                }
            }
            Style::Bars => {
                // Beside each other, in four fifths of the room between two names.
                let room = (frame.across(1.0) - frame.across(0.0)).abs() * 0.8;
                let each = room / bars.max(1) as f64;
                for (x, y) in finite(&points) {
                    let left = frame.across(x) - room / 2.0 + each * bar as f64;
                    let (top, foot) = (frame.up(y), frame.bottom);
                    let size = ((each - 2.0).clamp(1.0, 60.0), (foot - top).max(0.5));
                    let left = left + (each - size.0) / 2.0;
                    svg.rect(&format!("dot f-{hue}"), (left, top), size, 0.0);
                    let reach = series.points.iter().position(|(place, _)| *place == x);
                    let reach = reach.and_then(|number| series.spread.get(number));
                    if let Some((low, high)) = reach.filter(|(low, high)| low < high) {
                        let middle = left + size.0 / 2.0;
                        svg.line(
                            "curve s-text",
                            (middle, frame.up(*low)),
                            (middle, frame.up(*high)),
                        );
                    }
                }
                bar += 1;
            }
            style => {
                let dashed = dashes(style);
                let path = path(&frame, &points, matches!(style, Style::Step | Style::Dashed));
                svg.path(&format!("curve{dashed} s-{hue}"), &path);
            }
        }
        if !series.spread.is_empty() && series.style != Style::Bars {
            for point in finite(&points) {
                svg.circle(&format!("dot f-{hue}"), frame.place(point), 3.0);
            }
        }
    }
    svg.end();
    // A mark is whole, even at the edge, and is seen on a bar too.
    for markers in &chart.markers {
        for point in finite(&decimate(&markers.points, MOST_POINTS)) {
            if bars > 0 {
                mark(&mut svg, markers.shape, "halo", frame.place(point));
            }
            mark(&mut svg, markers.shape, &format!("s-{}", markers.hue.name()), frame.place(point));
        }
    }
    for (row, items) in legend.iter().enumerate() {
        let mut x = left;
        let y = height - 18.0 + row as f64 * 18.0;
        for item in items {
            sample(&mut svg, item, (x, y - 4.0));
            svg.text("", (x + 22.0, y), Anchor::Start, item.name);
            x += item.width();
        }
    }
    svg
}

/// The class of a curve that is dashed.
fn dashes(style: Style) -> &'static str {
    if matches!(style, Style::Dashed | Style::Formula) { " dashed" } else { "" }
}

fn finite(points: &[(f64, f64)]) -> impl Iterator<Item = (f64, f64)> {
    points.iter().copied().filter(|(_, y)| y.is_finite())
}

/// The ranges of the axes.
fn extents(across: &HorizontalAxis, chart: &Chart) -> ((f64, f64), (f64, f64)) {
    let curves = chart.series.iter().flat_map(|one| [&one.points]);
    let all: Points =
        curves.chain(chart.markers.iter().map(|one| &one.points)).flatten().copied().collect();
    let spread =
        chart.series.iter().flat_map(|one| &one.spread).flat_map(|(low, high)| [*low, *high]);
    let range = |values: &mut dyn Iterator<Item = f64>| {
        let (mut low, mut high) = (f64::MAX, f64::MIN);
        for value in values.filter(|value| value.is_finite()) {
            (low, high) = (low.min(value), high.max(value));
        }
        if low <= high { (low, high) } else { (0.0, 1.0) }
    };
    let (mut x_low, mut x_high) = range(&mut all.iter().map(|(x, _)| *x));
    match across {
        HorizontalAxis::Names { names, .. } => {
            (x_low, x_high) = (-0.5, names.len().max(1) as f64 - 0.5);
        }
        HorizontalAxis::Number { logarithmic: true, .. } => {
            let room = (x_high / x_low).powf(0.04).max(1.02);
            (x_low, x_high) = (x_low / room, x_high * room);
        }
        HorizontalAxis::Number { .. } => {
            let room = ((x_high - x_low) * 0.04).max(1e-9);
            (x_low, x_high) = (x_low - room, x_high + room);
        }
        HorizontalAxis::Time if x_low == x_high => (x_low, x_high) = (x_low - 0.5, x_high + 0.5),
        HorizontalAxis::Time => {}
    }
    let (mut low, mut high) = range(
        &mut all.iter().map(|(_, y)| *y).chain(spread).filter(|y| !chart.logarithmic || *y > 0.0),
    );
    if chart.logarithmic {
        let room = (high / low).powf(0.06).max(1.1);
        return ((x_low, x_high), (low / room, high * room));
    }
    if chart.from_zero {
        low = low.min(0.0);
    }
    if low == high {
        high = low + 1.0;
    }
    let room = (high - low) * 0.06;
    high += room;
    if !(chart.from_zero && low == 0.0) {
        low -= room;
    }
    ((x_low, x_high), (low, high))
}

/// Marks of the horizontal axis are at least so far apart, in pixels: about the width of a digit.
const BETWEEN_MARKS: f64 = 7.0;

fn axes(svg: &mut Svg, section: &Section, chart: &Chart, frame: &Frame) {
    let heights = match chart.logarithmic {
        true => logarithmic_ticks(frame.y.0, frame.y.1),
        false => ticks(frame.y.0, frame.y.1, 6),
    };
    for (value, text) in heights {
        let y = frame.up(value);
        svg.line("grid", (frame.left, y), (frame.right, y));
        svg.text("small muted", (frame.left - 8.0, y + 4.0), Anchor::End, &text);
    }
    let places = section.places();
    // In a narrow picture there are fewer marks.
    let most = |wanted: f64| (wanted * (frame.right - frame.left) / 900.0).ceil() as usize;
    let (label, marks) = match &section.across {
        HorizontalAxis::Number { label, .. } if !places.is_empty() => {
            let marks = places.into_iter().map(|place| (place, short(place)));
            (label.as_str(), marks.collect())
        }
        HorizontalAxis::Time => ("time (s)", ticks(frame.x.0, frame.x.1, most(12.0))),
        HorizontalAxis::Number { label, logarithmic: true } => {
            (label.as_str(), logarithmic_ticks(frame.x.0, frame.x.1))
        }
        HorizontalAxis::Number { label, .. } => {
            (label.as_str(), ticks(frame.x.0, frame.x.1, most(10.0)))
        }
        HorizontalAxis::Names { label, names } => {
            let room = (frame.right - frame.left) / names.len().max(1) as f64;
            let letters = ((room / (11.0 * 0.62)) as usize).max(4);
            let names = names.iter().enumerate();
            (label.as_str(), names.map(|(n, name)| (n as f64, cut(name, letters))).collect())
        }
    };
    let mut end = f64::MIN;
    let names = matches!(section.across, HorizontalAxis::Names { .. });
    for (value, text) in marks {
        let x = frame.across(value);
        // A mark that would touch the one before is left out.
        let half = text_width(&text, 11.0) / 2.0;
        if !names && x - half < end {
            continue;
        }
        end = x + half + BETWEEN_MARKS;
        svg.line("grid", (x, frame.top), (x, frame.bottom));
        svg.text("small muted", (x, frame.bottom + 17.0), Anchor::Middle, &text);
    }
    svg.line("axis", (frame.left, frame.bottom), (frame.right, frame.bottom));
    svg.line("axis", (frame.left, frame.top), (frame.left, frame.bottom));
    let middle = (frame.left + frame.right) / 2.0;
    svg.text("small muted", (middle, frame.bottom + 34.0), Anchor::Middle, label);
    let unit = &chart.unit;
    let label =
        if unit.is_empty() { chart.label.clone() } else { format!("{} ({unit})", chart.label) };
    svg.upright("small muted", (20.0, (frame.top + frame.bottom) / 2.0), &label);
}

/// The text, or its beginning if it is longer than this many letters.
fn cut(text: &str, letters: usize) -> String {
    if text.chars().count() <= letters {
        return text.into();
    }
    text.chars().take(letters.saturating_sub(1)).chain(['…']).collect()
}

/// Through all points, with gaps where values are missing.
fn path(frame: &Frame, points: &[(f64, f64)], steps: bool) -> String {
    let mut path = String::new();
    let mut before: Option<f64> = None;
    for &(x, y) in points {
        if !y.is_finite() {
            // A value holds until it is known that there is none.
            if let (true, Some(_)) = (steps, before) {
                let _ = write!(path, "H{:.1}", frame.across(x));
            }
            before = None;
            continue;
        }
        let (x, y) = frame.place((x, y));
        let _ = match before {
            None => write!(path, "M{x:.1} {y:.1}"),
            Some(_) if steps => write!(path, "H{x:.1}V{y:.1}"),
            Some(_) => write!(path, "L{x:.1} {y:.1}"),
        };
        before = Some(y);
    }
    path
}

/// Whether the spread of a curve is a band: over numbers, between two points at least. Over names there is nothing between two points.
fn has_band(across: &HorizontalAxis, series: &Series) -> bool {
    let known = series.spread.iter().filter(|(low, high)| low.is_finite() && high.is_finite());
    series.style == Style::Line
        && !matches!(across, HorizontalAxis::Names { .. })
        && known.count() > 1
}

/// The area between the low and the high ends.
fn band(svg: &mut Svg, frame: &Frame, series: &Series) {
    let ends = series.points.iter().zip(&series.spread);
    let known = ends.filter(|(_, (low, high))| low.is_finite() && high.is_finite());
    let known: Vec<(f64, f64, f64)> = known
        .map(|((x, _), (low, high))| (frame.across(*x), frame.up(*low), frame.up(*high)))
        .collect();
    let mut path = String::new();
    let low = known.iter().map(|(x, low, _)| (*x, *low));
    let high = known.iter().rev().map(|(x, _, high)| (*x, *high));
    for (number, (x, y)) in low.chain(high).enumerate() {
        let _ = write!(path, "{}{x:.1} {y:.1}", if number == 0 { "M" } else { "L" });
    }
    path.push('Z');
    svg.path(&format!("band f-{}", series.hue.name()), &path);
}

fn error_bar(svg: &mut Svg, frame: &Frame, hue: Hue, x: f64, (low, high): (f64, f64)) {
    // A range of nothing is the point alone.
    if !(low.is_finite() && high.is_finite()) || low == high {
        return;
    }
    let (x, low, high) = (frame.across(x), frame.up(low), frame.up(high));
    let class = format!("curve s-{}", hue.name());
    svg.line(&class, (x, low), (x, high));
    svg.line(&class, (x - 4.0, low), (x + 4.0, low));
    svg.line(&class, (x - 4.0, high), (x + 4.0, high));
}

fn mark(svg: &mut Svg, shape: Shape, colour: &str, (x, y): (f64, f64)) {
    let stroke = format!("curve {colour}");
    match shape {
        Shape::Cross => {
            svg.line(&stroke, (x - 4.0, y - 4.0), (x + 4.0, y + 4.0));
            svg.line(&stroke, (x - 4.0, y + 4.0), (x + 4.0, y - 4.0));
        }
        Shape::Triangle => {
            let (left, right, top, bottom) = (x - 4.0, x + 4.0, y - 4.0, y + 4.0);
            // Its colour is that of its area.
            let class = match colour.strip_prefix("s-") {
                Some(hue) => format!("dot f-{hue}"),
                None => stroke,
            };
            svg.path(&class, &format!("M{x:.1} {top:.1}L{right:.1} {bottom:.1}H{left:.1}Z"));
        }
        Shape::Ring => svg.circle(&stroke, (x, y), 3.6),
    }
}

/// A curve or kind of event in the legend.
struct Item<'a> {
    name: &'a str,
    hue: Hue,
    drawn: Drawn,
}

/// Its shape.
enum Drawn {
    Curve(Style),
    Events(Shape),
}

impl Item<'_> {
    fn width(&self) -> f64 {
        42.0 + text_width(self.name, 12.0)
    }
}

/// A sample of the curve, for the legend.
fn sample(svg: &mut Svg, item: &Item<'_>, (x, y): (f64, f64)) {
    let hue = item.hue.name();
    match item.drawn {
        Drawn::Curve(Style::Dots) => {
            for dot in [3.0, 8.0, 13.0] {
                svg.circle(&format!("dot f-{hue}"), (x + dot, y), 1.6);
            }
        }
        Drawn::Curve(Style::Bars) => {
            svg.rect(&format!("dot f-{hue}"), (x + 2.0, y - 5.0), (12.0, 10.0), 0.0);
        }
        Drawn::Curve(style) => {
            let dashed = dashes(style);
            svg.line(&format!("flow{dashed} s-{hue}"), (x, y), (x + 16.0, y));
        }
        Drawn::Events(shape) => mark(svg, shape, &format!("s-{hue}"), (x + 8.0, y)),
    }
}

/// The names of the curves and events, in as many rows as they need.
fn legend_rows(chart: &Chart, room: f64) -> Vec<Vec<Item<'_>>> {
    let series = chart.series.iter().map(|one| Item {
        name: &one.name,
        hue: one.hue,
        drawn: Drawn::Curve(one.style),
    });
    let markers = chart.markers.iter().map(|one| Item {
        name: &one.name,
        hue: one.hue,
        drawn: Drawn::Events(one.shape),
    });
    let mut rows: Vec<Vec<Item<'_>>> = Vec::new();
    let mut used = f64::MAX;
    for item in series.chain(markers) {
        if used + item.width() > room {
            rows.push(Vec::new());
            used = 0.0;
        }
        used += item.width();
        if let Some(row) = rows.last_mut() {
            row.push(item);
        }
    }
    rows
}
