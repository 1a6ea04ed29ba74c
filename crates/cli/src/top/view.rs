//! The view: the table, the filter, and the course of the chosen connection. Only lines in sight are made.

use std::sync::mpsc::Receiver;

use ratatui::Frame;
use ratatui::crossterm::event::KeyCode;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Cell, Paragraph, Row as Drawn, Table};
use transom_live::{Column, Course, Filter, Point, Row, Snapshot};
use transom_report::{Chart, Hue, Style as Curve};

use super::cells::{cell, details, head};
use crate::columns::Side;
use crate::terminal::{self, Screen};

/// The most points of a course: ten minutes at one look a second.
const POINTS: usize = 600;
/// The least height of the part that shows the chosen connection.
const LOWEST: u16 = 12;

/// The state of the view.
#[derive(Debug)]
pub(super) struct View {
    snapshot: Snapshot,
    /// The places of the connections that are shown, in their order.
    order: Vec<usize>,
    filter: Filter,
    /// The filter as it was written.
    text: String,
    /// The filter that is being written, and why it is none, if it is none.
    writing: Option<(String, Option<String>)>,
    sort: Column,
    reverse: bool,
    /// The key of the chosen connection.
    chosen: Option<String>,
    /// The first line in sight.
    first: usize,
    /// How many lines were in sight last.
    height: usize,
    course: Option<Course>,
    /// Lines of the table that were made so far.
    made: u64,
    /// The looks that come.
    looks: Receiver<Snapshot>,
}

impl View {
    pub(super) fn new(
        filter: Filter,
        text: &str,
        sort: Column,
        reverse: bool,
        looks: Receiver<Snapshot>,
    ) -> View {
        View {
            snapshot: Snapshot::default(),
            order: Vec::new(),
            filter,
            text: text.to_owned(),
            writing: None,
            sort,
            reverse,
            chosen: None,
            first: 0,
            height: 1,
            course: None,
            made: 0,
            looks,
        }
    }

    /// Takes a look in.
    fn take(&mut self, snapshot: Snapshot) {
        self.snapshot = snapshot;
        self.arrange();
        if let Some(course) = &mut self.course
            && let Some(row) = self.snapshot.rows.iter().find(|row| row.key == course.key())
        {
            course.add(row);
        }
    }

    /// Puts the connections in order: once for each look, and not for each drawing.
    fn arrange(&mut self) {
        let rows = &self.snapshot.rows;
        let chosen = super::chosen(&self.snapshot, &self.filter, self.sort, self.reverse);
        let place: std::collections::HashMap<&str, usize> =
            rows.iter().enumerate().map(|(place, row)| (row.key.as_str(), place)).collect();
        self.order = chosen.iter().filter_map(|row| place.get(row.key.as_str()).copied()).collect();
    }

    fn row(&self, line: usize) -> Option<&Row> {
        self.snapshot.rows.get(*self.order.get(line)?)
    }

    /// The line of the chosen connection, if it is shown.
    fn line(&self) -> Option<usize> {
        let key = self.chosen.as_deref()?;
        (0..self.order.len()).find(|line| self.row(*line).is_some_and(|row| row.key == key))
    }

    fn choose(&mut self, line: usize) {
        let line = line.min(self.order.len().saturating_sub(1));
        self.chosen = self.row(line).map(|row| row.key.clone());
        self.first = self.first.clamp((line + 1).saturating_sub(self.height), line);
        if self.course.is_some() {
            self.open();
        }
    }

    /// Begins the course of the chosen connection, unless it is there.
    fn open(&mut self) {
        let Some(key) = &self.chosen else { return };
        if self.course.as_ref().is_some_and(|course| course.key() == key) {
            return;
        }
        let mut course = Course::new(key, POINTS);
        if let Some(row) = self.snapshot.rows.iter().find(|row| row.key == *key) {
            course.add(row);
        }
        self.course = Some(course);
    }

    fn head(&self) -> Line<'static> {
        let (shown, all) = (self.order.len(), self.snapshot.rows.len());
        let filter = match self.filter.is_empty() {
            true => String::new(),
            false => format!("   {}", self.text),
        };
        let trouble = match self.snapshot.troubles.as_slice() {
            [] => String::new(),
            [trouble] => format!("   {trouble}"),
            [first, others @ ..] => format!("   {first} (and {} more)", others.len()),
        };
        terminal::heading(format!("{shown} of {all} connections"), filter, trouble)
    }

    fn draw_table(&mut self, frame: &mut Frame<'_>, area: Rect) {
        self.height = usize::from(area.height.saturating_sub(1)).max(1);
        self.first = self.first.min(self.order.len().saturating_sub(self.height));
        let end = (self.first + self.height).min(self.order.len());
        let mut lines = Vec::with_capacity(self.height);
        let rows = (self.first..end).filter_map(|line| self.row(line));
        let shown = columns(area.width, rows);
        for row in (self.first..end).filter_map(|line| self.row(line)) {
            let cells = shown.iter().map(|(column, _)| in_column(*column, cell(row, *column)));
            lines.push(Drawn::new(cells));
        }
        self.made += lines.len() as u64;
        let heads = shown.iter().map(|&(column, _)| {
            let mark = match (column == self.sort, self.reverse) {
                (false, _) => "",
                (true, false) => " ▼",
                (true, true) => " ▲",
            };
            in_column(column, format!("{}{mark}", head(column).0))
        });
        let widths = shown.iter().map(|(_, width)| Constraint::Length(*width));
        let chosen = self.line().and_then(|line| line.checked_sub(self.first));
        let chosen = chosen.filter(|line| *line < lines.len());
        terminal::table(frame, area, Table::new(lines, widths), Some(Drawn::new(heads)), chosen);
    }

    fn draw_chosen(&self, frame: &mut Frame<'_>, area: Rect) {
        let Some(course) = &self.course else { return };
        let [left, right] =
            Layout::horizontal([Constraint::Percentage(45), Constraint::Percentage(55)])
                .areas(area);
        let row = self.snapshot.rows.iter().find(|row| row.key == course.key());
        let text: Vec<Line<'_>> = match row {
            Some(row) => details(row).into_iter().map(Line::from).collect(),
            None => vec![Line::from("This connection is gone.")],
        };
        let block = Block::new().borders(Borders::TOP);
        frame.render_widget(Paragraph::new(text).block(block), left);
        let [rates, windows] = charts_of(course);
        terminal::charts(frame, right, &[&rates, &windows]);
    }

    fn foot(&self) -> Line<'_> {
        let Some((text, why)) = &self.writing else {
            return terminal::keys(
                "q: end   ↑↓: choose   Enter: its course   /: filter   < >: sort by   r: reverse",
            );
        };
        let mut line = vec![Span::raw(format!("Filter: {text}▏"))];
        line.extend(why.iter().map(|why| Span::styled(format!("  {why}"), terminal::red())));
        Line::from(line)
    }
}

impl Screen for View {
    fn follow(&mut self) {
        while let Ok(snapshot) = self.looks.try_recv() {
            self.take(snapshot);
        }
    }

    fn press(&mut self, key: KeyCode) -> bool {
        if let Some((text, why)) = &mut self.writing {
            match key {
                KeyCode::Char(c) => text.push(c),
                KeyCode::Backspace => drop(text.pop()),
                KeyCode::Esc => self.writing = None,
                KeyCode::Enter => match text.parse::<Filter>() {
                    Ok(filter) => {
                        self.text = std::mem::take(text);
                        self.filter = filter;
                        self.writing = None;
                        self.first = 0;
                        self.arrange();
                    }
                    Err(error) => *why = Some(error.to_string()),
                },
                _ => {}
            }
            return true;
        }
        let line = self.line();
        let (at, page) = (line.unwrap_or(self.first), self.height.max(1));
        match key {
            KeyCode::Char('q') => return false,
            KeyCode::Esc if self.course.is_some() => self.course = None,
            KeyCode::Esc => return false,
            KeyCode::Down | KeyCode::Char('j') => {
                self.choose(line.map_or(self.first, |line| line + 1))
            }
            KeyCode::Up | KeyCode::Char('k') => self.choose(at.saturating_sub(1)),
            KeyCode::PageDown => self.choose(at.saturating_add(page)),
            KeyCode::PageUp => self.choose(at.saturating_sub(page)),
            KeyCode::Home => self.choose(0),
            KeyCode::End => self.choose(usize::MAX - 1),
            KeyCode::Enter if self.course.is_some() => self.course = None,
            KeyCode::Enter => {
                if line.is_none() {
                    self.choose(self.first);
                }
                self.open();
            }
            KeyCode::Char('/') => self.writing = Some((self.text.clone(), None)),
            KeyCode::Char('r') => {
                self.reverse = !self.reverse;
                self.arrange();
            }
            KeyCode::Char(step @ ('<' | '>')) => {
                let all = Column::ALL;
                let place = all.iter().position(|column| *column == self.sort).unwrap_or(0);
                let next = if step == '>' { place + 1 } else { place + all.len() - 1 };
                self.sort = all[next % all.len()];
                self.arrange();
            }
            _ => {}
        }
        true
    }

    fn draw(&mut self, frame: &mut Frame<'_>) {
        let height = frame.area().height;
        let lower = match self.course {
            Some(_) => (height / 2).max(LOWEST).min(height.saturating_sub(5)),
            None => 0,
        };
        let [top, middle, bottom] = terminal::areas(frame, 1);
        let [table, below] =
            Layout::vertical([Constraint::Min(2), Constraint::Length(lower)]).areas(middle);
        frame.render_widget(self.head(), top);
        self.draw_table(frame, table);
        if lower > 0 {
            self.draw_chosen(frame, below);
        }
        frame.render_widget(self.foot(), bottom);
    }

    fn interrupt(&mut self) -> bool {
        false
    }
}

/// The text of a cell, with numbers at the right.
fn in_column(column: Column, text: String) -> Cell<'static> {
    let text = Line::from(text);
    Cell::from(if head(column).1 == Side::Right { text.right_aligned() } else { text })
}

/// The columns that go first where the terminal is narrow.
const SPARE: [Column; 7] = [
    Column::Limit,
    Column::Tcp,
    Column::Retransmitted,
    Column::Extensions,
    Column::Rtt,
    Column::Cwnd,
    Column::State,
];

/// The columns that fit, with their widths: as wide as the longest of the rows in sight. Where not all fit, some are left out, so that none is written over
/// another.
fn columns<'a>(room: u16, rows: impl Iterator<Item = &'a Row>) -> Vec<(Column, u16)> {
    let mut widths = Column::ALL.map(|column| (column, head(column).2));
    for row in rows {
        for (column, width) in &mut widths {
            let needed = cell(row, *column).chars().count().min(usize::from(WIDEST));
            *width = (*width).max(u16::try_from(needed).unwrap_or(WIDEST));
        }
    }
    let mut shown = widths.to_vec();
    let needed =
        |shown: &[(Column, u16)]| shown.iter().map(|(_, width)| u32::from(*width) + 1).sum::<u32>();
    for spare in SPARE {
        if needed(&shown) <= u32::from(room) + 1 {
            break;
        }
        shown.retain(|(column, _)| *column != spare);
    }
    shown
}

/// No cell is wider: an address of IPv6 with its port.
const WIDEST: u16 = 47;

/// The rates and the windows of a course.
fn charts_of(course: &Course) -> [Chart; 2] {
    let began = course.points().next().map_or(0.0, |point| point.at);
    let curve = |value: fn(&Point) -> f64| -> Vec<(f64, f64)> {
        course.points().map(|point| (point.at - began, value(point))).collect()
    };
    [
        Chart::new("Rate", "rate", "MB/s")
            .series("sent", Curve::Step, Hue::Blue, curve(|point| point.send_rate as f64 / 1e6))
            .series(
                "received",
                Curve::Step,
                Hue::Orange,
                curve(|point| point.receive_rate as f64 / 1e6),
            ),
        Chart::new("Window", "window", "KiB")
            .series("cwnd", Curve::Step, Hue::Blue, curve(|point| point.window as f64 / 1024.0))
            .series(
                "in flight",
                Curve::Step,
                Hue::Green,
                curve(|point| point.in_flight as f64 / 1024.0),
            ),
    ]
}

#[cfg(test)]
mod tests;
