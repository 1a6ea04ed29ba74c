//! The progress bar: how much of all runs is done.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use transom_tcp::time::Duration;

/// The number of steps of one run in the bar.
const PARTS: u64 = 1000;

/// How far all runs are.
pub(super) struct Progress {
    bar: ProgressBar,
}

/// How far one run is.
pub(super) struct Part<'a> {
    bar: &'a ProgressBar,
    duration: Duration,
    shown: u64,
}

impl Progress {
    pub(super) fn new(runs: usize, hidden: bool) -> Self {
        let target =
            if hidden { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let bar = ProgressBar::with_draw_target(Some(runs as u64 * PARTS), target);
        if let Ok(style) =
            ProgressStyle::with_template("{wide_bar} {percent:>3}%  {msg}  {eta} left")
        {
            bar.set_style(style);
        }
        bar.set_message(format!("{runs} run{}", if runs == 1 { "" } else { "s" }));
        Progress { bar }
    }

    /// Lets the bar be seen from now on.
    pub(super) fn show(&self) -> impl FnOnce() + Send + use<> {
        let bar = self.bar.clone();
        move || bar.set_draw_target(ProgressDrawTarget::stderr())
    }

    /// A stored run takes no time. It would distort the estimate for the others.
    pub(super) fn skip(&self) {
        self.bar.dec_length(PARTS);
    }

    /// Begins another stage with this many steps.
    pub(super) fn next(&self, what: &'static str, steps: usize) {
        self.bar.reset();
        self.bar.set_length(steps as u64);
        self.bar.set_message(what);
    }

    pub(super) fn step(&self) {
        self.bar.inc(1);
    }

    /// A run was made elsewhere.
    pub(super) fn whole(&self) {
        self.bar.inc(PARTS);
    }

    pub(super) fn part(&self, duration: Duration) -> Part<'_> {
        Part { bar: &self.bar, duration, shown: 0 }
    }

    /// Says something above the bar.
    pub(super) fn suspend(&self, say: impl FnOnce()) {
        self.bar.suspend(say);
    }

    pub(super) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

impl Part<'_> {
    /// The network has reached this time.
    pub(super) fn reached(&mut self, reached: Duration) {
        let all = u128::from(self.duration.as_nanos().max(1));
        let part = (u128::from(reached.as_nanos()) * u128::from(PARTS) / all) as u64;
        self.bar.inc(part.saturating_sub(self.shown));
        self.shown = part;
    }
}
