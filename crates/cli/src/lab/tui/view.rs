//! The drawing: the runs and, for one of them, goodput, window and queue over time.

use std::sync::Arc;

use ratatui::Frame;
use ratatui::crossterm::event::KeyCode;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style};
use ratatui::text::Line;
use ratatui::widgets::{Block, Borders, Gauge, Paragraph, Row, Table};
use transom_report::{Chart, ReportData};

use crate::lab::live::{Live, Stage};
use crate::terminal::{self, Screen};

/// The charts that are shown, as far as there is room, by section and title.
const SHOWN: [(&str, &str); 3] =
    [("Flows", "Goodput"), ("Flows", "Congestion window"), ("Links", "Queue length")];
/// The lowest chart that shows anything.
const LOWEST: u16 = 7;

/// The state of the view.
#[derive(Debug)]
pub(super) struct View {
    live: Arc<Live>,
    run: usize,
    /// Whether the user has chosen the run; otherwise it is the one in progress.
    chosen: bool,
}

impl View {
    pub(super) fn new(live: Arc<Live>) -> View {
        View { live, run: 0, chosen: false }
    }

    /// Goes to the next run, or to the one before.
    fn choose(&mut self, step: isize) {
        self.chosen = true;
        self.run = self.run.saturating_add_signed(step).min(self.live.count().saturating_sub(1));
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
            let word = Line::styled(word, Style::new().fg(colour)).right_aligned();
            Row::new([word, Line::from(label.as_str())])
        });
        let table = Table::new(items, [Constraint::Length(10), Constraint::Min(0)])
            .block(Block::new().borders(Borders::RIGHT));
        terminal::table(frame, area, table, None, Some(self.run));
    }
}

impl Screen for View {
    /// Shows a run in progress, unless the user has chosen another.
    fn follow(&mut self) {
        if self.chosen {
            return;
        }
        let runs = self.live.runs();
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

    fn press(&mut self, key: KeyCode) -> bool {
        match key {
            KeyCode::Char('q') | KeyCode::Esc => return false,
            KeyCode::Down | KeyCode::Char('j') => self.choose(1),
            KeyCode::Up | KeyCode::Char('k') => self.choose(-1),
            KeyCode::Char('f') => self.chosen = false,
            _ => {}
        }
        true
    }

    fn interrupt(&mut self) -> bool {
        // To this process, as the terminal would have done.
        let _ = signal_hook::low_level::raise(signal_hook::consts::SIGINT);
        true
    }

    fn draw(&mut self, frame: &mut Frame<'_>) {
        let live = &self.live;
        let [top, middle, bottom] = terminal::areas(frame, 2);
        let runs = live.runs();
        header(live, &runs, frame, top);
        let keys = if live.has_ended() {
            "All runs have ended.  q: close"
        } else {
            "q: close the view, the runs go on   Ctrl-C: end the runs   ↑↓: choose a run   f: follow"
        };
        frame.render_widget(terminal::keys(keys), bottom);
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
            Some(picture) => {
                terminal::charts(frame, charts, &shown(&picture.data, charts.height));
            }
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
    let count = match runs.len() {
        0 | 1 => String::new(),
        all => format!("   {done} of {all} runs are done"),
    };
    let trouble = match failed {
        0 => String::new(),
        failed => format!("   bands fail in {failed}"),
    };
    frame.render_widget(terminal::heading(live.title().to_owned(), count, trouble), title);
    let gauge = Gauge::default()
        .gauge_style(Style::new().fg(Color::Blue).bg(Color::DarkGray))
        .ratio(ratio)
        .label(format!("{:.0} %", ratio * 100.0));
    frame.render_widget(gauge, bar);
}

/// The charts that there are, and that fit.
fn shown(data: &ReportData, height: u16) -> Vec<&Chart> {
    let find = |(section, title): (&str, &str)| {
        let section = data.sections.iter().find(|one| one.title == section)?;
        section.charts.iter().find(|chart| chart.title == title)
    };
    let fit = usize::from(height / LOWEST).max(1);
    SHOWN.into_iter().filter_map(find).take(fit).collect()
}

#[cfg(test)]
mod tests;
