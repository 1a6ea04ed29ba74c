//! Charts of a report, drawn on the terminal.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style};
use ratatui::symbols::Marker;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Axis, Block, Chart, Dataset, GraphType};
use transom_report::{self as report, Hue, Series, decimate, ticks};

use super::bold;

/// A curve that is drawn, and its points.
type Curve<'a> = (&'a Series, Vec<(f64, f64)>);

/// Draws charts below each other.
pub(crate) fn charts(frame: &mut Frame<'_>, area: Rect, charts: &[&report::Chart]) {
    let areas = Layout::vertical(vec![Constraint::Fill(1); charts.len()]).split(area);
    for (chart, area) in charts.iter().zip(areas.iter()) {
        draw(chart, frame, *area);
    }
}

fn colour(hue: Hue) -> Color {
    match hue {
        Hue::Blue => Color::LightBlue,
        Hue::Orange => Color::Yellow,
        Hue::Green => Color::Green,
        Hue::Pink => Color::Magenta,
        Hue::Grey => Color::Gray,
        Hue::Red => Color::Red,
    }
}

/// The curves of a chart, with no more points than can be seen in this width.
fn curves(chart: &report::Chart, width: u16) -> Vec<Curve<'_>> {
    // A braille pattern has two columns of dots; four points in each show its extremes.
    let most = usize::from(width).max(1) * 8;
    let solid = chart.series.iter().filter(|series| series.style != report::Style::Dashed);
    solid
        .map(|series| {
            let points = decimate(&series.points, most);
            (series, points.into_iter().filter(|(_, y)| y.is_finite()).collect())
        })
        .collect()
}

/// The ends of the axes, which begin at zero.
fn ends(curves: &[Curve<'_>]) -> (f64, f64) {
    let points = || curves.iter().flat_map(|(_, points)| points);
    let x = points().map(|(x, _)| *x).fold(0.0, f64::max);
    let y = points().map(|(_, y)| *y).fold(0.0, f64::max);
    let or_one = |end: f64| if end > 0.0 { end } else { 1.0 };
    let y = or_one(y);
    // Labels stand at equal distances, so the axis ends at a round place.
    let marks = ticks(0.0, y, 3);
    let step = marks.get(1).map_or(y, |(step, _)| *step);
    (or_one(x), (y / step).ceil() * step)
}

fn draw(chart: &report::Chart, frame: &mut Frame<'_>, area: Rect) {
    let curves = curves(chart, area.width);
    let (x, y) = ends(&curves);
    let unit = &chart.unit;
    let mut title = vec![Span::styled(format!("{} ({unit}) ", chart.title), bold())];
    let style = |series: &Series| Style::new().fg(colour(series.hue));
    for (series, _) in &curves {
        title.push(Span::styled(format!("■ {} ", series.name), style(series)));
    }
    let datasets = curves.iter().map(|(series, points)| {
        Dataset::default()
            .marker(Marker::Braille)
            .graph_type(GraphType::Line)
            .style(style(series))
            .data(points)
    });
    let grey = Style::new().fg(Color::DarkGray);
    let seconds = format!("{} s", report::short(x));
    let heights = ticks(0.0, y, 3).into_iter().map(|(_, text)| text);
    let widget = Chart::new(datasets.collect())
        .block(Block::new().title(Line::from(title)))
        .legend_position(None)
        .x_axis(Axis::default().style(grey).bounds([0.0, x]).labels(["0".to_owned(), seconds]))
        .y_axis(Axis::default().style(grey).bounds([0.0, y]).labels(heights));
    frame.render_widget(widget, area);
}
