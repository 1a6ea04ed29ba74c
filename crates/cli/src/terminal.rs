//! The views in the terminal: `transom top` and `transom lab run --tui`.
//!
//! A command gives a [`Screen`]. This module owns the terminal: it draws about ten times per second, and reads keys. It restores the terminal whenever the
//! view ends: by a key, by an error, after a panic in any thread (ratatui's hook), and when a signal ends the program
//! ([`interrupt`](crate::interrupt)). During the view the terminal sends no signals; Ctrl-C arrives as a key.

mod chart;

use std::io::{self, IsTerminal as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Row, Table, TableState};
use ratatui::{DefaultTerminal, Frame};

pub(crate) use chart::charts;

/// Between two drawings.
pub(crate) const INTERVAL: Duration = Duration::from_millis(100);

/// The contents of the terminal.
pub(crate) trait Screen {
    /// Takes in what is new, before each drawing.
    fn follow(&mut self);
    fn draw(&mut self, frame: &mut Frame<'_>);
    /// Answers a key. Returns false at the end.
    fn press(&mut self, key: KeyCode) -> bool;
    /// Answers Ctrl-C. Returns false at the end.
    fn interrupt(&mut self) -> bool;
}

/// Whether there is a terminal to draw on.
pub(crate) fn is_there() -> bool {
    io::stdout().is_terminal()
}

/// The terminal while something is drawn on it. It is as it was again when this is dropped.
pub(crate) struct Terminal(DefaultTerminal);

impl Terminal {
    pub(crate) fn enter() -> anyhow::Result<Terminal> {
        let terminal = ratatui::try_init().context("cannot draw on the terminal")?;
        crate::interrupt::before_exit(ratatui::restore);
        Ok(Terminal(terminal))
    }

    /// Draws and reads keys until the screen says that it is over, or `end` is set.
    pub(crate) fn show(mut self, mut screen: impl Screen, end: &AtomicBool) -> io::Result<()> {
        while !end.load(Ordering::Relaxed) {
            screen.follow();
            self.0.draw(|frame| screen.draw(frame))?;
            let goes_on = match pressed()? {
                None => true,
                Some((KeyCode::Char('c'), KeyModifiers::CONTROL)) => screen.interrupt(),
                Some((key, _)) => screen.press(key),
            };
            if !goes_on {
                break;
            }
        }
        Ok(())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

/// The key that is pressed until the next drawing. There is none if the time passes, or something else happens.
fn pressed() -> io::Result<Option<(KeyCode, KeyModifiers)>> {
    if !event::poll(INTERVAL)? {
        return Ok(None);
    }
    Ok(match event::read()? {
        Event::Key(key) if key.kind != KeyEventKind::Release => Some((key.code, key.modifiers)),
        _ => None,
    })
}

/// The areas of the head, of what is below, and of the line with the keys.
pub(crate) fn areas(frame: &Frame<'_>, head: u16) -> [Rect; 3] {
    Layout::vertical([Constraint::Length(head), Constraint::Min(3), Constraint::Length(1)])
        .areas(frame.area())
}

/// A line that begins with a title, and ends with what is wrong.
pub(crate) fn heading(title: String, note: String, trouble: String) -> Line<'static> {
    Line::from(vec![Span::styled(title, bold()), Span::raw(note), Span::styled(trouble, red())])
}

/// The line with the keys.
pub(crate) fn keys(text: &str) -> Line<'_> {
    Line::styled(text, Style::new().fg(Color::DarkGray))
}

/// Draws lines of a table below their heads, the chosen one reversed.
pub(crate) fn table<'a>(
    frame: &mut Frame<'_>,
    area: Rect,
    table: Table<'a>,
    heads: Option<Row<'a>>,
    chosen: Option<usize>,
) {
    let table = match heads {
        Some(heads) => table.header(heads.style(bold())),
        None => table,
    };
    let reversed = Style::new().add_modifier(Modifier::REVERSED);
    let table = table.column_spacing(1).row_highlight_style(reversed);
    let mut state = TableState::default().with_selected(chosen);
    frame.render_stateful_widget(table, area, &mut state);
}

pub(crate) fn bold() -> Style {
    Style::new().add_modifier(Modifier::BOLD)
}

pub(crate) fn red() -> Style {
    Style::new().fg(Color::Red)
}
