//! `--tui`: runs in the terminal, while they go on.
//!
//! A thread of its own draws the newest pictures of the runs ([`live`](super::live)) about ten times per second, and reads keys. The
//! terminal is restored whenever the view ends: by `q`, after a panic in any thread (by ratatui's hook), and when a second signal ends the
//! program ([`interrupt`](crate::interrupt)). During the view the terminal sends no signals; Ctrl-C arrives as a key and is forwarded as a
//! signal.

mod view;

use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, bail};
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{KeyCode, KeyModifiers};

use super::live::Live;
use crate::keys;
use view::View;
pub(crate) use view::draw_chart;

/// Between two drawings.
const INTERVAL: Duration = Duration::from_millis(100);

/// A view in the terminal.
pub(super) struct Tui {
    closed: Arc<AtomicBool>,
    end: Arc<AtomicBool>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

/// Whether there is a terminal to draw on.
pub(super) fn check() -> anyhow::Result<()> {
    if !io::stdout().is_terminal() {
        bail!(
            "--tui draws on a terminal, and standard output is no terminal; --watch shows the same in a browser"
        );
    }
    Ok(())
}

impl Tui {
    /// Begins to draw. `closed` is called when the terminal is as it was again.
    pub(super) fn start(
        live: Arc<Live>,
        closed: impl FnOnce() + Send + 'static,
    ) -> anyhow::Result<Tui> {
        let when_closed = closed;
        let terminal = ratatui::try_init().context("cannot draw on the terminal")?;
        crate::interrupt::before_exit(ratatui::restore);
        let (closed, end) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let (told, is_closed) = (end.clone(), closed.clone());
        let thread = std::thread::Builder::new().name("view".into()).spawn(move || {
            let drawn = draw(terminal, &live, &told);
            ratatui::restore();
            is_closed.store(true, Ordering::Relaxed);
            when_closed();
            drawn
        });
        let thread = thread.inspect_err(|_| ratatui::restore()).context("cannot start a thread")?;
        Ok(Tui { closed, end, thread: Some(thread) })
    }

    /// Whether it has been closed with `q`.
    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    /// After the runs: waits until it is closed, or `hurry` says that it has to be.
    pub(super) fn finish(mut self, hurry: impl Fn() -> bool) -> anyhow::Result<()> {
        while !self.is_closed() && !hurry() {
            std::thread::sleep(INTERVAL / 2);
        }
        match self.stop() {
            Some(Err(error)) => Err(error).context("the view in the terminal has failed"),
            _ => Ok(()),
        }
    }

    fn stop(&mut self) -> Option<io::Result<()>> {
        self.end.store(true, Ordering::Relaxed);
        self.thread.take()?.join().ok()
    }
}

impl Drop for Tui {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Draws and reads keys until `end` is set or `q` is pressed.
fn draw(mut terminal: DefaultTerminal, live: &Live, end: &AtomicBool) -> io::Result<()> {
    let mut view = View::default();
    while !end.load(Ordering::Relaxed) {
        view.follow(live);
        terminal.draw(|frame| view.draw(live, frame))?;
        let Some(pressed) = keys::pressed(INTERVAL)? else { continue };
        match pressed {
            (KeyCode::Char('c'), KeyModifiers::CONTROL) => {
                // To this process, as the terminal would have done.
                let _ = signal_hook::low_level::raise(signal_hook::consts::SIGINT);
            }
            (KeyCode::Char('q') | KeyCode::Esc, _) => return Ok(()),
            (KeyCode::Down | KeyCode::Char('j'), _) => view.choose(live, 1),
            (KeyCode::Up | KeyCode::Char('k'), _) => view.choose(live, -1),
            (KeyCode::Char('f'), _) => view.follow_again(),
            _ => {}
        }
    }
    Ok(())
}
