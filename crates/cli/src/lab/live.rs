//! Live views of runs in progress, in the browser ([`watch`](super::watch)) and the terminal ([`tui`](super::tui)).
//!
//! Theory of operation. Each run in progress has one *picture*: its page at this moment. The next picture replaces it. A viewer takes the
//! newest one when it is ready: a slow viewer misses some and costs nothing, a late viewer misses nothing. The thread of the run makes a
//! picture from the recorder's data, not more often than every [`INTERVAL`]. It is encoded for a browser only if there is one.
// A build may have no viewer.
#![cfg_attr(not(all(feature = "tui", feature = "web")), allow(dead_code))]

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::{Duration, Instant};

#[cfg(feature = "web")]
use tokio::sync::watch;
use transom_report::{self as report, Block, Cell, MOST_POINTS, ReportData, Table};

use crate::thread::lock;

/// Between two pictures of a run.
const INTERVAL: Duration = Duration::from_millis(250);
/// The number of points of a curve while its run goes on: one for each pixel of a wide chart.
const LIVE_POINTS: usize = 1200;
/// This many finished runs keep their picture; the pages of others are read from their files.
const KEPT: usize = 4;

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Stage {
    /// It has not started.
    Waiting,
    /// It is running; the share that is done, from 0 to 1.
    Running(f64),
    /// It has ended, and its bands hold, or not; or something is not known yet.
    Done(Option<bool>),
    /// It was broken off.
    Broken,
}

/// A run, as viewers see it.
#[derive(Clone, Debug)]
pub(super) struct RunView {
    /// Its name: its point and seed.
    pub(super) label: String,
    pub(super) stage: Stage,
    /// The newest picture, if one is kept.
    pub(super) picture: Option<Arc<Picture>>,
    /// The file of its page after the end.
    pub(super) page: PathBuf,
}

/// The page of a run at one moment.
#[derive(Debug)]
pub(super) struct Picture {
    pub(super) data: ReportData,
    /// How far the run is, in words.
    state: String,
    /// Whether no other follows.
    pub(super) done: bool,
    message: OnceLock<Arc<str>>,
}

impl Picture {
    fn new(data: ReportData, state: String, done: bool) -> Arc<Picture> {
        Arc::new(Picture { data, state, done, message: OnceLock::new() })
    }

    /// As a browser reads it.
    pub(super) fn message(&self) -> Arc<str> {
        let most = if self.done { MOST_POINTS } else { LIVE_POINTS };
        let make = || report::message(&self.data, &self.state, self.done, most).into();
        self.message.get_or_init(make).clone()
    }
}

/// All runs of a command.
#[derive(Debug)]
pub(super) struct Live {
    title: String,
    state: Mutex<State>,
    /// Counts changes, so that a viewer can wait for one without polling.
    #[cfg(feature = "web")]
    changes: watch::Sender<u64>,
}

#[derive(Debug)]
struct State {
    runs: Vec<RunView>,
    /// When each run's picture was made.
    drawn: Vec<Option<Instant>>,
    /// Those that have ended and still have a picture, the oldest first.
    kept: VecDeque<usize>,
    /// Whether all has ended.
    ended: bool,
}

impl Live {
    /// Runs with these names, of which each has its page there when it has ended.
    pub(super) fn new(title: String, runs: Vec<(String, PathBuf)>) -> Arc<Live> {
        let view = |(label, page)| RunView { label, stage: Stage::Waiting, picture: None, page };
        let runs: Vec<RunView> = runs.into_iter().map(view).collect();
        let drawn = vec![None; runs.len()];
        let state = State { runs, drawn, kept: VecDeque::new(), ended: false };
        Arc::new(Live {
            title,
            state: Mutex::new(state),
            #[cfg(feature = "web")]
            changes: watch::channel(0).0,
        })
    }

    /// The title of all runs together.
    pub(super) fn title(&self) -> &str {
        &self.title
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    fn changed(&self) {
        #[cfg(feature = "web")]
        self.changes.send_modify(|count| *count += 1);
    }

    /// Wakes whenever something has changed.
    #[cfg(feature = "web")]
    pub(super) fn subscribe(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// A run has reached this share of its time. `make` gives its page, and is called only when it is time for a new picture.
    pub(super) fn reached(
        &self,
        run: usize,
        share: f64,
        make: impl FnOnce() -> (ReportData, String),
    ) {
        let now = Instant::now();
        {
            let mut state = self.lock();
            let Some(view) = state.runs.get_mut(run) else { return };
            view.stage = Stage::Running(share);
            let Some(drawn) = state.drawn.get_mut(run) else { return };
            if drawn.is_some_and(|drawn| now.duration_since(drawn) < INTERVAL) {
                return;
            }
            *drawn = Some(now);
        }
        // Nobody waits for the lock meanwhile.
        let (data, words) = make();
        let picture = Picture::new(data, words, false);
        if let Some(view) = self.lock().runs.get_mut(run) {
            view.picture = Some(picture);
        }
        self.changed();
    }

    /// A run has ended, and this is its page.
    pub(super) fn done(&self, run: usize, passed: Option<bool>, data: Option<ReportData>) {
        let picture = data.map(|data| Picture::new(data, "The run has ended.".into(), true));
        let mut state = self.lock();
        if let Some(view) = state.runs.get_mut(run) {
            view.stage = Stage::Done(passed);
            view.picture = picture;
        }
        state.kept.retain(|kept| *kept != run);
        state.kept.push_back(run);
        if state.kept.len() > KEPT
            && let Some(oldest) = state.kept.pop_front()
            && let Some(view) = state.runs.get_mut(oldest)
        {
            view.picture = None;
        }
        drop(state);
        self.changed();
    }

    /// A run has been broken off.
    pub(super) fn broken(&self, run: usize) {
        if let Some(view) = self.lock().runs.get_mut(run) {
            view.stage = Stage::Broken;
        }
        self.changed();
    }

    /// Nothing changes any more.
    pub(super) fn end(&self) {
        self.lock().ended = true;
        self.changed();
    }

    /// Whether nothing changes any more.
    pub(super) fn has_ended(&self) -> bool {
        self.lock().ended
    }

    /// How many runs there are.
    pub(super) fn count(&self) -> usize {
        self.lock().runs.len()
    }

    /// The present state of a run.
    pub(super) fn run(&self, run: usize) -> Option<RunView> {
        self.lock().runs.get(run).cloned()
    }

    /// All runs as they are now, without their pictures.
    pub(super) fn runs(&self) -> Vec<(String, Stage)> {
        self.lock().runs.iter().map(|run| (run.label.clone(), run.stage)).collect()
    }

    /// A page that lists all runs, with links to their pages, and a status line.
    pub(super) fn overview(&self) -> (ReportData, String) {
        let runs = self.runs();
        let count = |wanted: fn(&Stage) -> bool| runs.iter().filter(|(_, one)| wanted(one)).count();
        let done = count(|stage| matches!(stage, Stage::Done(_)));
        let failed = count(|stage| *stage == Stage::Done(Some(false)));
        let mut table = Table::new("Runs", &["run", "", "bands"]);
        // Running and failed runs come first.
        let rank = |stage: &Stage| match stage {
            Stage::Running(_) => 0,
            Stage::Done(Some(false)) => 1,
            Stage::Broken => 2,
            Stage::Done(_) => 3,
            Stage::Waiting => 4,
        };
        let mut order: Vec<usize> = (0..runs.len()).collect();
        order.sort_by_key(|number| runs.get(*number).map(|(_, stage)| rank(stage)));
        for number in order {
            let Some((label, stage)) = runs.get(number) else { continue };
            let mut name = Cell::from(label.clone());
            if !matches!(stage, Stage::Waiting | Stage::Broken) {
                name.link = Some(format!("run/{number}"));
            }
            let mut bands = Cell::default();
            if let Stage::Done(passed) = stage {
                bands.verdict = *passed;
            }
            table.rows.push(vec![name, stage.words().into(), bands]);
        }
        let data = ReportData {
            title: self.title.clone(),
            blocks: vec![Block::Table(table)],
            ..ReportData::default()
        };
        let failed =
            if failed > 0 { format!(", in {failed} of them bands fail") } else { String::new() };
        (data, format!("{done} of {} runs are done{failed}.", runs.len()))
    }
}

impl Stage {
    /// In a word or two.
    pub(super) fn words(self) -> String {
        match self {
            Stage::Waiting => "waiting".into(),
            Stage::Running(share) => format!("{:.0} %", share * 100.0),
            Stage::Done(_) => "done".into(),
            Stage::Broken => "broken off".into(),
        }
    }
}

#[cfg(test)]
mod tests;
