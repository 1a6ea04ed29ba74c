//! The terminal: keys, looks and drawings, until `q`.
//!
//! A thread of its own looks, because a process that does not answer takes two seconds. Keys are answered meanwhile.

use std::io::IsTerminal;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel, sync_channel};
use std::time::Duration;

use anyhow::{Context, bail};
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{KeyCode, KeyModifiers};
use transom_live::Snapshot;

use super::everywhere::Everywhere;
use super::view::{Key, View};
use crate::keys;

/// The longest time between a look and its drawing.
const ANSWER: Duration = Duration::from_millis(100);

pub(super) fn run(collector: Everywhere, interval: Duration, view: View) -> anyhow::Result<()> {
    if !std::io::stdout().is_terminal() {
        bail!("standard output is no terminal; --once prints a table, and --json lines");
    }
    crate::interrupt::handle(|status| {
        ratatui::restore();
        std::process::exit(status.into())
    })?;
    let terminal = ratatui::try_init().context("cannot draw on the terminal")?;
    // It ends when nobody takes its looks any more.
    let (tell, told) = sync_channel(1);
    let (_stop, stopped) = channel::<()>();
    let work = move || look(collector, interval, &stopped, |snapshot| tell.send(snapshot).is_ok());
    let outcome = std::thread::Builder::new()
        .name("looks".into())
        .spawn(work)
        .context("cannot start a thread")
        .and_then(|_| draw(terminal, &told, view).context("cannot draw on the terminal"));
    ratatui::restore();
    outcome
}

/// Looks at intervals, until nobody wants to know.
fn look(
    mut collector: Everywhere,
    interval: Duration,
    stopped: &Receiver<()>,
    tell: impl Fn(Snapshot) -> bool,
) {
    while tell(collector.look()) {
        if stopped.recv_timeout(interval) != Err(RecvTimeoutError::Timeout) {
            return;
        }
    }
}

fn draw(
    mut terminal: DefaultTerminal,
    told: &Receiver<Snapshot>,
    mut view: View,
) -> std::io::Result<()> {
    loop {
        while let Ok(snapshot) = told.try_recv() {
            view.take(snapshot);
        }
        terminal.draw(|frame| view.draw(frame))?;
        let Some(pressed) = keys::pressed(ANSWER)? else { continue };
        let key = match pressed {
            (KeyCode::Char('c'), KeyModifiers::CONTROL) => return Ok(()),
            (KeyCode::Char(c), _) => Key::Character(c),
            (KeyCode::Up, _) => Key::Up,
            (KeyCode::Down, _) => Key::Down,
            (KeyCode::PageUp, _) => Key::PageUp,
            (KeyCode::PageDown, _) => Key::PageDown,
            (KeyCode::Home, _) => Key::Home,
            (KeyCode::End, _) => Key::End,
            (KeyCode::Enter, _) => Key::Enter,
            (KeyCode::Esc, _) => Key::Escape,
            (KeyCode::Backspace, _) => Key::Backspace,
            _ => continue,
        };
        if !view.press(key) {
            return Ok(());
        }
    }
}
