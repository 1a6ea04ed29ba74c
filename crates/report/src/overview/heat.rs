//! Maps of a measure over two swept values: a field for each pair, with the mean over the seeds, darker where it is more.

use super::axis::{Axis, two};
use super::measured::Measured;
use super::{Overview, Point};
use crate::statistics::Summary;
use crate::svg::{Anchor, text_width};
use crate::{Drawing, HorizontalAxis, Svg, short};

/// As few values of an axis are better seen as curves.
const LEAST: usize = 3;
/// As many values of an axis have room.
const MOST: usize = 30;
/// As many measures have maps.
const MOST_MAPS: usize = 12;
/// The least width and the height of a field, and the greatest width. Fields fill the page as far as that goes.
const FIELD: (f64, f64) = (66.0, 34.0);
const WIDEST: f64 = 160.0;
/// The width of a page.
const PAGE: f64 = 1120.0;
/// The room above the fields: for the title, and for what the rows are.
const TOP: f64 = 60.0;
/// How dark the least and the greatest value are.
const SHADES: (f64, f64) = (0.06, 0.62);

/// A value of an axis.
struct Place {
    text: String,
    at: f64,
}

/// A map for each measure, if two things with several values are swept.
pub(super) fn maps(overview: &Overview, measured: &[Measured]) -> Vec<Drawing> {
    let Some([across, up]) = two(&overview.points) else { return Vec::new() };
    let (columns, rows) = (places(&overview.points, &across), places(&overview.points, &up));
    let fits = |count: usize| (LEAST..=MOST).contains(&count);
    if !fits(columns.len()) || !fits(rows.len()) {
        return Vec::new();
    }
    let draw = |one: &Measured| map(overview, one, (&across, &columns), (&up, &rows));
    measured.iter().take(MOST_MAPS).filter_map(draw).collect()
}

/// The values of an axis in their order, each once.
fn places(points: &[Point], axis: &Axis) -> Vec<Place> {
    let mut places: Vec<Place> = Vec::new();
    for (point, &at) in points.iter().zip(&axis.places) {
        if places.iter().all(|place| place.at != at) {
            let setting = point.settings.get(axis.number);
            let text = setting.map(|setting| setting.value.clone()).unwrap_or_default();
            places.push(Place { text, at });
        }
    }
    places.sort_by(|one, other| one.at.total_cmp(&other.at));
    places
}

fn label(axis: &Axis) -> &str {
    match &axis.across {
        HorizontalAxis::Time => "",
        HorizontalAxis::Number { label, .. } | HorizontalAxis::Names { label, .. } => label,
    }
}

fn map(
    overview: &Overview,
    measured: &Measured,
    (across, columns): (&Axis, &[Place]),
    (up, rows): (&Axis, &[Place]),
) -> Option<Drawing> {
    let mut fields = Vec::new();
    for (number, point) in overview.points.iter().enumerate() {
        let here = measured.points.get(&point.point);
        let Some(summary) = here.and_then(|here| Summary::of(&here.values)) else { continue };
        let place = |axis: &Axis, places: &[Place]| {
            let at = axis.places.get(number)?;
            places.iter().position(|place| place.at == *at)
        };
        let (Some(column), Some(row)) = (place(across, columns), place(up, rows)) else { continue };
        fields.push((point.point, column, row, summary.mean));
    }
    let least = fields.iter().map(|field| field.3).fold(f64::MAX, f64::min);
    let most = fields.iter().map(|field| field.3).fold(f64::MIN, f64::max);
    if fields.is_empty() {
        return None;
    }
    let widest = rows.iter().map(|place| text_width(&place.text, 11.0)).fold(0.0, f64::max);
    let left = 28.0 + widest.min(220.0);
    let each = ((PAGE - left - 16.0) / columns.len() as f64).clamp(FIELD.0, WIDEST);
    let (width, height) = (columns.len() as f64 * each, rows.len() as f64 * FIELD.1);
    let unit =
        if measured.unit.is_empty() { String::new() } else { format!(" ({})", measured.unit) };
    let title = format!("{}{unit}", measured.label);
    // No title is cut.
    let whole = (left + width + 16.0).max(32.0 + text_width(&title, 15.0)).max(320.0);
    let mut svg = Svg::new(whole, TOP + height + 48.0);
    svg.text("title", (16.0, 24.0), Anchor::Start, &title);
    // The first row is at the bottom, as on an axis.
    let top = |row: usize| TOP + height - (row + 1) as f64 * FIELD.1;
    for &(point, column, row, mean) in &fields {
        let share = if most > least { (mean - least) / (most - least) } else { 0.5 };
        let shade = SHADES.0 + share * (SHADES.1 - SHADES.0);
        let (x, y) = (left + column as f64 * each, top(row));
        let page = overview.page_of(point);
        if let Some(page) = page {
            svg.link(page);
        }
        svg.shaded("dot f-blue", (x + 1.0, y + 1.0), (each - 2.0, FIELD.1 - 2.0), shade);
        let middle = (x + each / 2.0, y + FIELD.1 / 2.0 + 4.0);
        svg.text("small", middle, Anchor::Middle, &short(mean));
        if page.is_some() {
            svg.end_link();
        }
    }
    for (row, place) in rows.iter().enumerate() {
        let y = top(row) + FIELD.1 / 2.0 + 4.0;
        svg.text("small muted", (left - 8.0, y), Anchor::End, &place.text);
    }
    let mut end = f64::MIN;
    for (column, place) in columns.iter().enumerate() {
        let x = left + (column as f64 + 0.5) * each;
        let half = text_width(&place.text, 11.0) / 2.0;
        // A text that would be written over the one before is left out.
        if x - half > end {
            svg.text("small muted", (x, TOP + height + 17.0), Anchor::Middle, &place.text);
            end = x + half + 2.0;
        }
    }
    let middle = left + width / 2.0;
    svg.text("small muted", (middle, TOP + height + 34.0), Anchor::Middle, label(across));
    // Upright beside a few rows it would be longer than they are high.
    svg.text("small muted", (16.0, TOP - 12.0), Anchor::Start, label(up));
    let (low, high) = (short(least), short(most));
    let about = format!("{} over {} and {}", measured.label, label(across), label(up));
    Some(Drawing {
        title: about.clone(),
        caption: "The mean over the seeds; darker is more. A field leads to the point's first run."
            .into(),
        alternative: format!("{about}: from {low} to {high}{unit}."),
        picture: svg,
    })
}
