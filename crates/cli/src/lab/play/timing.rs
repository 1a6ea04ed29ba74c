//! How long the curves of the presets take after a change.
//!
//! A slider's move is answered by what is timed here: the changed scenario is read, simulated, judged, and made the message with the complete curves.
//! What the browser takes to draw them comes on top.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use transom_sim::measure::percentile;

use super::bases::Bases;
use super::question::{Pairs, Question};
use super::work::{self, Wanted};

/// Within this time, a slider feels as if the curves were fixed to it.
const BUDGET: Duration = Duration::from_millis(500);
/// So many changes of each preset.
const CHANGES: u32 = 5;

/// A line for each preset: the least, the median and the most time of several changes, and how many of the medians are within the budget.
pub(super) fn table(bases: &Bases) -> anyhow::Result<String> {
    let presets: Vec<&str> = bases.presets().collect();
    let mut text = format!("{:<16} {:>10} {:>10} {:>10}\n", "figure", "least", "median", "most");
    let mut within = 0;
    for id in &presets {
        let mut times = Vec::new();
        for seed in 1..=CHANGES {
            times.push(answered(bases, id, seed)?);
        }
        times.sort_unstable();
        let [least, median, most] =
            [0, 50, 100].map(|percent| percentile(&times, percent).unwrap_or_default());
        within += u32::from(median <= BUDGET);
        let [least, median, most] =
            [least, median, most].map(|time| format!("{:.0} ms", time.as_secs_f64() * 1e3));
        writeln!(text, "{id:<16} {least:>10} {median:>10} {most:>10}")?;
    }
    let (budget, all) = (BUDGET.as_millis(), presets.len());
    writeln!(text, "{within} of {all} medians are within {budget} ms")?;
    Ok(text)
}

/// From a change, which is another seed, to the message with the complete curves.
fn answered(bases: &Bases, id: &str, seed: u32) -> anyhow::Result<Duration> {
    let pairs: Pairs = vec![("base".into(), id.into()), ("seed".into(), seed.to_string())];
    let began = Instant::now();
    let question = Question::read(bases, &pairs).map_err(anyhow::Error::msg)?;
    // As much room as a page has. Pictures on the way are not sent if nobody takes them; there is always room for the last one.
    let (tell, mut told) = mpsc::channel(2);
    let last = std::thread::scope(|scope| {
        scope.spawn(|| {
            let tell = tell;
            work::run(&question, &Wanted::default(), &tell);
        });
        let mut last = None;
        while let Some(message) = told.blocking_recv() {
            last = Some(message);
        }
        last
    });
    let took = began.elapsed();
    let last = last.unwrap_or_default();
    anyhow::ensure!(last.contains("\"done\":true"), "{id} was not answered: {last}");
    Ok(took)
}
