//! The drawing: the runs and, for one of them, goodput, window and queue over time.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::symbols::Marker;
use ratatui::text::{Line, Span};
use ratatui::widgets::{
    Axis, Block, Borders, Chart, Dataset, Gauge, GraphType, List, ListItem, ListState, Paragraph,
};
use transom_report::{self as report, Hue, ReportData, decimate, ticks};

use crate::lab::live::{Live, Stage};

/// The charts that are shown, as far as there is room, by section and title.
const SHOWN: [(&str, &str); 3] =
    [("Flows", "Goodput"), ("Flows", "Congestion window"), ("Links", "Queue length")];
/// The lowest chart that shows anything.
const LOWEST: u16 = 7;

/// The state of the view.
#[derive(Debug, Default)]
pub(super) struct View {
    run: usize,
    /// Whether the user has chosen the run; otherwise it is the one in progress.
    chosen: bool,
}

impl View {
    /// Shows a run in progress, unless the user has chosen another.
    pub(super) fn follow(&mut self, live: &Live) {
        if self.chosen {
            return;
        }
        let runs = live.runs();
        let goes_on = |stage: &Stage| matches!(stage, Stage::Running(_));
        if runs.get(self.run).is_some_and(|(_, stage)| goes_on(stage)) {
            return;
        }
        let next = runs.iter().position(|(_, stage)| goes_on(stage));
        // When all have ended, the last one that has a picture stays in sight.
        if let Some(next) = next {
            self.run = next;
        }
    }

    /// Goes to the next run, or to the one before.
    pub(super) fn choose(&mut self, live: &Live, step: isize) {
        self.chosen = true;
        self.run = self.run.saturating_add_signed(step).min(live.count().saturating_sub(1));
    }

    /// Goes to the run in progress from now on.
    pub(super) fn follow_again(&mut self) {
        self.chosen = false;
    }

    /// Draws everything.
    pub(super) fn draw(&self, live: &Live, frame: &mut Frame<'_>) {
        let [top, middle, bottom] =
            Layout::vertical([Constraint::Length(2), Constraint::Min(3), Constraint::Length(1)])
                .areas(frame.area());
        let runs = live.runs();
        header(live, &runs, frame, top);
        let keys = if live.has_ended() {
            "All runs have ended.  q: close"
        } else {
            "q: close the view, the runs go on   Ctrl-C: end the runs   ↑↓: choose a run   f: follow"
        };
        frame.render_widget(Paragraph::new(keys).style(Style::new().fg(Color::DarkGray)), bottom);
        let charts = if runs.len() > 1 {
            let widest = runs.iter().map(|(label, _)| label.chars().count()).max().unwrap_or(0);
            let width = (widest as u16).saturating_add(14).min(middle.width / 3).max(16);
            let [left, right] =
                Layout::horizontal([Constraint::Length(width), Constraint::Min(20)]).areas(middle);
            self.list(&runs, frame, left);
            right
        } else {
            middle
        };
        let Some(run) = live.run(self.run) else { return };
        match &run.picture {
            Some(picture) => draw_charts(&picture.data, frame, charts),
            None => {
                let text = match run.stage {
                    Stage::Done(_) => {
                        format!("This run is done; its report is {}.", run.page.display())
                    }
                    Stage::Broken => "This run was broken off.".into(),
                    _ => "Nothing yet.".into(),
                };
                frame.render_widget(Paragraph::new(text).centered(), charts);
            }
        }
    }

    fn list(&self, runs: &[(String, Stage)], frame: &mut Frame<'_>, area: Rect) {
        let items = runs.iter().map(|(label, stage)| {
            let (word, colour) = match stage {
                Stage::Waiting => ("".into(), Color::DarkGray),
                Stage::Running(_) => (stage.words(), Color::Yellow),
                Stage::Done(Some(true)) => ("passed".into(), Color::Green),
                Stage::Done(Some(false)) => ("FAILED".into(), Color::Red),
                Stage::Done(None) => ("done".into(), Color::Reset),
                Stage::Broken => ("broken off".into(), Color::Red),
            };
            let word = Span::styled(format!("{word:>10} "), Style::new().fg(colour));
            ListItem::new(Line::from(vec![word, Span::raw(label.clone())]))
        });
        let list = List::new(items)
            .block(Block::new().borders(Borders::RIGHT))
            .highlight_style(Style::new().add_modifier(Modifier::REVERSED));
        let mut state = ListState::default().with_selected(Some(self.run));
        frame.render_stateful_widget(list, area, &mut state);
    }
}

fn header(live: &Live, runs: &[(String, Stage)], frame: &mut Frame<'_>, area: Rect) {
    let [title, bar] = Layout::vertical([Constraint::Length(1), Constraint::Length(1)]).areas(area);
    let share = |stage: &Stage| match stage {
        Stage::Running(share) => *share,
        Stage::Done(_) | Stage::Broken => 1.0,
        Stage::Waiting => 0.0,
    };
    let done = runs.iter().filter(|(_, stage)| matches!(stage, Stage::Done(_))).count();
    let failed = runs.iter().filter(|(_, stage)| *stage == Stage::Done(Some(false))).count();
    let total: f64 = runs.iter().map(|(_, stage)| share(stage)).sum();
    let ratio = (total / runs.len().max(1) as f64).clamp(0.0, 1.0);
    let mut line =
        vec![Span::styled(live.title().to_owned(), Style::new().add_modifier(Modifier::BOLD))];
    if runs.len() > 1 {
        line.push(Span::raw(format!("   {done} of {} runs are done", runs.len())));
    }
    if failed > 0 {
        let text = format!("   bands fail in {failed}");
        line.push(Span::styled(text, Style::new().fg(Color::Red)));
    }
    frame.render_widget(Paragraph::new(Line::from(line)), title);
    let gauge = Gauge::default()
        .gauge_style(Style::new().fg(Color::Blue).bg(Color::DarkGray))
        .ratio(ratio)
        .label(format!("{:.0} %", ratio * 100.0));
    frame.render_widget(gauge, bar);
}

fn draw_charts(data: &ReportData, frame: &mut Frame<'_>, area: Rect) {
    let find = |section: &str, title: &str| {
        let section = data.sections.iter().find(|one| one.title == section)?;
        section.charts.iter().find(|chart| chart.title == title)
    };
    let charts: Vec<&report::Chart> =
        SHOWN.iter().filter_map(|(section, title)| find(section, title)).collect();
    let fit = usize::from(area.height / LOWEST).clamp(1, charts.len().max(1));
    let rows = Layout::vertical(vec![Constraint::Fill(1); fit]).split(area);
    for (chart, row) in charts.into_iter().take(fit).zip(rows.iter()) {
        draw_chart(chart, frame, *row);
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

/// A curve that is drawn.
struct Curve<'a> {
    name: &'a str,
    hue: Hue,
    points: Vec<(f64, f64)>,
}

/// The curves of a chart, with no more points than can be seen in this width.
fn curves(chart: &report::Chart, width: u16) -> Vec<Curve<'_>> {
    // A braille pattern has two columns of dots; four points in each show its extremes.
    let most = usize::from(width).max(1) * 8;
    let solid = chart.series.iter().filter(|series| series.style != report::Style::Dashed);
    solid
        .map(|series| {
            let points = decimate(&series.points, most);
            let points = points.into_iter().filter(|(_, y)| y.is_finite()).collect();
            Curve { name: &series.name, hue: series.hue, points }
        })
        .collect()
}

/// The ends of the axes, which begin at zero.
fn ends(curves: &[Curve<'_>]) -> (f64, f64) {
    let points = || curves.iter().flat_map(|curve| &curve.points);
    let x = points().map(|(x, _)| *x).fold(0.0, f64::max);
    let y = points().map(|(_, y)| *y).fold(0.0, f64::max);
    let or_one = |end: f64| if end > 0.0 { end } else { 1.0 };
    let y = or_one(y);
    // Labels stand at equal distances, so the axis ends at a round place.
    let marks = ticks(0.0, y, 3);
    let step = marks.get(1).map_or(y, |(step, _)| *step);
    (or_one(x), (y / step).ceil() * step)
}

/// Draws a chart on the terminal.
pub(crate) fn draw_chart(chart: &report::Chart, frame: &mut Frame<'_>, area: Rect) {
    let curves = curves(chart, area.width);
    let (x, y) = ends(&curves);
    let unit = &chart.axis.unit;
    let mut title = vec![Span::styled(
        format!("{} ({unit}) ", chart.title),
        Style::new().add_modifier(Modifier::BOLD),
    )];
    for Curve { name, hue, .. } in &curves {
        title.push(Span::styled(format!("■ {name} "), Style::new().fg(colour(*hue))));
    }
    let datasets = curves.iter().map(|Curve { hue, points, .. }| {
        Dataset::default()
            .marker(Marker::Braille)
            .graph_type(GraphType::Line)
            .style(Style::new().fg(colour(*hue)))
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

#[cfg(test)]
mod tests;
