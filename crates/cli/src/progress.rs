//! The progress line of a transfer: on standard error, and only when that is a terminal. And a word about what takes long before it begins.

use std::fmt;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::hash::Hasher;
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
        Self::at_most(SHORT, move || output::note(format_args!("{what} ...")))
    }

    /// Calls `say` on a thread if it is not over after this time.
    pub(crate) fn at_most(
        patience: Duration,
        say: impl FnOnce() + Send + 'static,
    ) -> anyhow::Result<Waiting> {
        let (over, told) = mpsc::channel();
        let wait = move || {
            if told.recv_timeout(patience) == Err(RecvTimeoutError::Timeout) {
                say();
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

/// A transfer under way: its bytes are counted, shown and hashed.
pub(crate) struct Transfer {
    bar: ProgressBar,
    started: Instant,
    bytes: u64,
    drawn: Instant,
    hasher: Hasher,
}

/// The result of a transfer.
#[derive(serde::Serialize)]
pub(crate) struct Totals {
    bytes: u64,
    seconds: f64,
    bits_per_second: f64,
    /// The digest of all bytes.
    pub(crate) sha256: String,
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (size, rate) = (Bytes(self.bytes), BitRate(self.bits_per_second));
        write!(f, "{size} in {:.3} s ({rate})", self.seconds)
    }
}

impl Transfer {
    /// Starts with nothing transferred of `total` bytes, if that is known.
    pub(crate) fn begin(total: Option<u64>, hidden: bool) -> Self {
        let template = match total {
            Some(_) => "{wide_bar} {percent:>3}%  {msg}  {eta} left",
            None => "{spinner} {msg}  {elapsed}",
        };
        let bar = bar(total, hidden, template);
        let now = Instant::now();
        Transfer { bar, started: now, bytes: 0, drawn: now, hasher: Hasher::default() }
    }

    /// Adds bytes that have been transferred.
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        self.hasher.update(bytes);
        self.bytes += bytes.len() as u64;
        // A look at the clock for every piece of a fast transfer is enough.
        if self.drawn.elapsed() >= INTERVAL {
            self.drawn = Instant::now();
            let rate = BitRate::of(self.bytes, self.started.elapsed());
            self.bar.set_message(format!("{}  {rate}", Bytes(self.bytes)));
            self.bar.set_position(self.bytes);
        }
    }

    /// Bytes transferred so far.
    pub(crate) fn bytes(&self) -> Bytes {
        Bytes(self.bytes)
    }

    /// Everything has been transferred.
    pub(crate) fn finish(mut self) -> Totals {
        let span = self.started.elapsed();
        Totals {
            bytes: self.bytes,
            seconds: span.as_secs_f64(),
            bits_per_second: BitRate::of(self.bytes, span).0,
            sha256: std::mem::take(&mut self.hasher).finish(),
        }
    }
}

impl Drop for Transfer {
    fn drop(&mut self) {
        // An error message should not be appended to half a progress line.
        self.bar.finish_and_clear();
    }
}
