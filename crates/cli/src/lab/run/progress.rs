//! How far the runs are: n of N, and the time left. A bar on a terminal, a line now and then elsewhere.

use std::io::IsTerminal;
use std::sync::Mutex;
use std::time::{Duration as Pause, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget};
use transom_tcp::time::Duration;

use crate::output;
use crate::thread::lock;
use crate::units::counted;

/// The number of steps of one run in the bar.
const PARTS: u64 = 1000;
/// How long after each other lines come where there is no terminal.
const LINES: Pause = Pause::from_secs(30);

/// How far all runs are.
pub(super) struct Progress {
    bar: ProgressBar,
    counted: Mutex<Counted>,
    /// Whether lines are written in the place of a bar.
    lines: bool,
}

/// Runs that are finished, and all that are made.
struct Counted {
    finished: usize,
    all: usize,
    began: Instant,
    told: Instant,
}

/// How far one run is.
pub(super) struct Part<'a> {
    progress: &'a Progress,
    duration: Duration,
    shown: u64,
}

impl Progress {
    pub(super) fn new(runs: usize, hidden: bool) -> Self {
        let template = "{wide_bar} {percent:>3}%  {msg}  {eta} left";
        let bar = crate::progress::bar(Some(runs as u64 * PARTS), hidden, template);
        let now = Instant::now();
        let counted = Counted { finished: 0, all: runs, began: now, told: now };
        bar.set_message(counted.message());
        let lines = !hidden && !std::io::stderr().is_terminal();
        Progress { bar, counted: Mutex::new(counted), lines }
    }

    /// Lets the bar be seen from now on.
    pub(super) fn show(&self) -> impl FnOnce() + Send + use<> {
        let bar = self.bar.clone();
        move || bar.set_draw_target(ProgressDrawTarget::stderr())
    }

    /// A stored run takes no time. It would distort the estimate for the others.
    pub(super) fn skip(&self) {
        self.bar.dec_length(PARTS);
        self.count(|counted| counted.all = counted.all.saturating_sub(1));
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
        self.count(|counted| counted.finished += 1);
    }

    pub(super) fn part(&self, duration: Duration) -> Part<'_> {
        Part { progress: self, duration, shown: 0 }
    }

    /// Says something above the bar.
    pub(super) fn suspend(&self, say: impl FnOnce()) {
        self.bar.suspend(say);
    }

    pub(super) fn finish(&self) {
        self.bar.finish_and_clear();
    }

    fn count(&self, change: impl FnOnce(&mut Counted)) {
        let counted = &mut *lock(&self.counted);
        change(counted);
        self.bar.set_message(counted.message());
        if self.lines && counted.told.elapsed() >= LINES {
            counted.told = Instant::now();
            output::note(counted.line());
        }
    }
}

impl Counted {
    fn message(&self) -> String {
        format!("{} of {}", self.finished, counted(self.all, "run"))
    }

    /// With the time left, by the mean of those that are finished.
    fn line(&self) -> String {
        let left = self.all.saturating_sub(self.finished);
        let seconds =
            self.began.elapsed().as_secs_f64() / self.finished.max(1) as f64 * left as f64;
        format!("{}, about {} left", self.message(), in_words(seconds))
    }
}

fn in_words(seconds: f64) -> String {
    match seconds.round() as u64 {
        seconds @ 0..=90 => format!("{seconds} s"),
        seconds @ 91..=5400 => format!("{} min", (seconds + 30) / 60),
        seconds => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

impl Part<'_> {
    /// The network has reached this time.
    pub(super) fn reached(&mut self, reached: Duration) {
        let all = u128::from(self.duration.as_nanos().max(1));
        let part = (u128::from(reached.as_nanos()) * u128::from(PARTS) / all) as u64;
        self.progress.bar.inc(part.saturating_sub(self.shown));
        let was_done = self.shown >= PARTS;
        self.shown = part;
        if part >= PARTS && !was_done {
            self.progress.count(|counted| counted.finished += 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finished_runs_are_counted_among_those_that_are_made() {
        let progress = Progress::new(3, true);
        progress.skip();
        let second = Duration::from_secs(1);
        let mut part = progress.part(second);
        part.reached(Duration::from_millis(500));
        let message = || progress.counted.lock().unwrap().message();
        assert_eq!(message(), "0 of 2 runs");
        part.reached(second);
        part.reached(second);
        assert_eq!(message(), "1 of 2 runs");
        assert!(progress.counted.lock().unwrap().line().contains("s left"));
        assert_eq!(in_words(42.0), "42 s");
        assert_eq!(in_words(600.0), "10 min");
        assert_eq!(in_words(7260.0), "2 h 1 min");
    }
}
