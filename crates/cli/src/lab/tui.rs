//! `--tui`: runs in the terminal, while they go on.
//!
//! A thread of its own draws the newest pictures of the runs ([`live`](super::live)). Ctrl-C is forwarded as a signal.

mod view;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use anyhow::{Context, bail};

use super::live::Live;
use crate::terminal::{self, Terminal};
use view::View;

/// A view in the terminal.
pub(super) struct Tui {
    end: Arc<AtomicBool>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

/// Whether there is a terminal to draw on.
pub(super) fn check() -> anyhow::Result<()> {
    if !terminal::is_there() {
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
        let terminal = Terminal::enter()?;
        let end = Arc::new(AtomicBool::new(false));
        let told = end.clone();
        let work = move || {
            let drawn = terminal.show(View::new(live), &told);
            closed();
            drawn
        };
        Ok(Tui { end, thread: Some(crate::thread::spawn("view", work)?) })
    }

    /// After the runs: waits until it is closed with `q`, or `hurry` says that it has to be.
    pub(super) fn finish(mut self, hurry: impl Fn() -> bool) -> anyhow::Result<()> {
        while self.thread.as_ref().is_some_and(|thread| !thread.is_finished()) && !hurry() {
            std::thread::sleep(terminal::INTERVAL / 2);
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
