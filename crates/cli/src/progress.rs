//! The progress line of a transfer: on standard error, and only when that is a terminal. And a word about what takes long before it begins.

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::output;
use crate::thread;
use crate::units::{BitRate, Bytes};

/// How often the line is drawn anew.
const INTERVAL: Duration = Duration::from_millis(100);
/// A shorter task is not announced.
const SHORT: Duration = Duration::from_millis(300);

/// Something that is waited for until this is dropped.
pub(crate) struct Waiting {
    /// Its end is how the thread learns that there is nothing to say.
    _over: Sender<()>,
}

impl Waiting {
    /// Says what it is on standard error if it is not over soon.
    pub(crate) fn begin(what: String) -> anyhow::Result<Waiting> {
        let (over, told) = mpsc::channel();
        let wait = move || {
            if told.recv_timeout(SHORT) == Err(RecvTimeoutError::Timeout) {
                output::note(format_args!("{what} ..."));
            }
        };
        thread::spawn("waiting", wait)?;
        Ok(Waiting { _over: over })
    }
}

/// A bar on standard error of so many steps, if that is known.
pub(crate) fn bar(steps: Option<u64>, hidden: bool, template: &str) -> ProgressBar {
    let target = if hidden { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
    let bar = ProgressBar::with_draw_target(steps, target);
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar
}

/// A transfer's progress.
pub(crate) struct Progress {
    bar: ProgressBar,
    started: Instant,
    bytes: u64,
    drawn: Instant,
}

impl Progress {
    /// Starts with nothing transferred of `total` bytes, if that is known.
    pub(crate) fn new(total: Option<u64>, hidden: bool) -> Self {
        let template = match total {
            Some(_) => "{wide_bar} {percent:>3}%  {msg}  {eta} left",
            None => "{spinner} {msg}  {elapsed}",
        };
        let bar = bar(total, hidden, template);
        let now = Instant::now();
        Progress { bar, started: now, bytes: 0, drawn: now }
    }

    /// Counts bytes that have been transferred.
    pub(crate) fn add(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
        // A look at the clock for every piece of a fast transfer is enough.
        if self.drawn.elapsed() >= INTERVAL {
            self.drawn = Instant::now();
            let rate = BitRate::of(self.bytes, self.started.elapsed());
            self.bar.set_message(format!("{}  {rate}", Bytes(self.bytes)));
            self.bar.set_position(self.bytes);
        }
    }

    /// Bytes transferred so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Removes the line and gives the time since the start.
    pub(crate) fn finish(&self) -> Duration {
        self.bar.finish_and_clear();
        self.started.elapsed()
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        // An error message should not be appended to half a progress line.
        self.bar.finish_and_clear();
    }
}
