//! The runs behind the page: each on a thread of its own, ended by the next one of the same side.
//!
//! A run ends early when the same side of the same page asks for another, when the page no longer listens, or when the server ends. So a slider that
//! is dragged never builds a queue of work.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::sync::{Semaphore, mpsc};
use transom_lab::run::{Observations, RunOptions, judge, simulate};
use transom_report::{self as report, MOST_POINTS, Page, ReportData, RunInfo};
use transom_sim::measure::Recorder;

use super::question::Question;

/// Between two pictures of a run that takes longer.
const REFINES: Duration = Duration::from_millis(150);
/// The points of a curve while the run goes on, and of one for an open page.
const COARSE: usize = 400;
/// So many sides of pages are remembered.
const MOST_SIDES: usize = 64;

/// Whether somebody still wants a run.
#[derive(Clone, Debug, Default)]
pub(super) struct Wanted(Arc<AtomicBool>);

impl Wanted {
    /// Nobody does any more.
    pub(super) fn end(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(super) fn holds(&self) -> bool {
        !self.0.load(Ordering::Relaxed)
    }
}

/// Ends a run when whoever listens is gone.
pub(super) struct WhileHeard(pub(super) Wanted);

impl Drop for WhileHeard {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// The runs in progress.
#[derive(Clone)]
pub(super) struct Works {
    /// The newest run of each side of each page, the oldest first.
    sides: Arc<Mutex<VecDeque<(String, Wanted)>>>,
    /// One for each processor.
    pub(super) places: Arc<Semaphore>,
}

impl Works {
    pub(super) fn new() -> Works {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        // Two sides answer beside each other on the smallest machine too.
        let places = Arc::new(Semaphore::new(processors.max(2)));
        Works { sides: Arc::default(), places }
    }

    /// A new run of a side, which ends the one before.
    pub(super) fn begin(&self, side: &str) -> Wanted {
        let wanted = Wanted::default();
        let mut sides = self.sides.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = sides.iter().position(|(other, _)| other == side)
            && let Some((_, before)) = sides.remove(at)
        {
            before.end();
        }
        if sides.len() == MOST_SIDES {
            sides.pop_front();
        }
        sides.push_back((side.to_owned(), wanted.clone()));
        wanted
    }

    /// Ends all of them.
    pub(super) fn end(&self) {
        let sides = self.sides.lock().unwrap_or_else(PoisonError::into_inner);
        sides.iter().for_each(|(_, wanted)| wanted.end());
    }
}

/// Simulates, and sends pictures as messages for the page, the last one complete. A page that does not take them gets fewer.
pub(super) fn run(question: &Question, wanted: &Wanted, tell: &mpsc::Sender<String>) {
    let began = Instant::now();
    let mut shown = began;
    let page = page(question);
    let whole = question.resolved().scenario.duration.0.as_nanos().max(1);
    let seen = made(question, |reached, recorder| {
        if shown.elapsed() > REFINES {
            shown = Instant::now();
            let share = reached.as_nanos() as f64 * 100.0 / whole as f64;
            let state = format!("{share:.0} % simulated");
            let data = page.partial(recorder);
            let _ = tell.try_send(report::message(&data, &state, false, COARSE));
        }
        wanted.holds()
    });
    let message = match seen {
        Ok(Some(seen)) => {
            let data = page.of_run(&seen, &judge(question.resolved(), &seen));
            let took = began.elapsed().as_millis();
            let state = format!("{} packets in {took} ms", seen.packets);
            report::message(&data, &state, true, MOST_POINTS.min(1200))
        }
        Ok(None) => return,
        Err(problem) => problem_message(&problem),
    };
    let _ = tell.blocking_send(message);
}

/// A message that says what is wrong.
pub(super) fn problem_message(problem: &str) -> String {
    json!({ "problem": problem }).to_string()
}

/// The page of a complete run; nothing if nobody wants it any more.
pub(super) fn whole(question: &Question, wanted: &Wanted) -> Result<Option<ReportData>, String> {
    let seen = made(question, |_, _| wanted.holds())?;
    Ok(seen.map(|seen| page(question).of_run(&seen, &judge(question.resolved(), &seen))))
}

fn made(
    question: &Question,
    look: impl FnMut(transom_tcp::time::Duration, &Recorder) -> bool,
) -> Result<Option<Observations>, String> {
    let options = RunOptions::new(question.directory());
    simulate(question.resolved(), question.seed, options, look).map_err(|error| error.to_string())
}

fn page(question: &Question) -> Page<'_> {
    Page::new(RunInfo {
        scenario: question.resolved(),
        seed: question.seed,
        point: (question.variant.number + 1, question.points),
        settings: &question.variant.settings,
        command: "transom lab run scenario.toml".into(),
        version: transom_lab::VERSION,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_run_of_a_side_ends_the_one_before() {
        let works = Works::new();
        let (first, other) = (works.begin("1.a"), works.begin("1.b"));
        let second = works.begin("1.a");
        assert!(!first.holds() && other.holds() && second.holds());
        for page in 0..MOST_SIDES {
            works.begin(&format!("{page}.c"));
        }
        works.end();
        assert!(works.sides.lock().unwrap().len() <= MOST_SIDES);
        drop(WhileHeard(other.clone()));
        assert!(!other.holds());
    }
}
