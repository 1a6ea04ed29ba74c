//! The figures of a run.
//!
//! Times are those of papers/router/fig5.toml: slow start is over after half a second, and until seven seconds there is data for the link to carry
//! without a pause.

use std::fmt;
use std::time::Duration;

use crate::bed::RATE;
use crate::transfers::{FLOWS, Sample, Told};

/// Seconds.
pub(crate) const FROM: f64 = 0.5;
pub(crate) const UNTIL: f64 = 7.0;
/// For comparison only: all that the receivers of today's kernels grant with their SYNs has been used by then.
pub(crate) const SETTLED: f64 = 1.0;

#[derive(Clone, Debug)]
pub(crate) struct Figures {
    /// Packets dropped, from the beginning.
    pub(crate) drops: u64,
    /// And after [`FROM`].
    pub(crate) late: u64,
    /// And after [`SETTLED`].
    pub(crate) rest: u64,
    /// The longest queue that was seen between the two times, bytes.
    pub(crate) longest: u64,
    /// The same from [`SETTLED`] on.
    pub(crate) settled: u64,
    /// The queueing delay of the mean queue, in seconds.
    pub(crate) delay: f64,
    /// Jain's index of what each flow got between [`FROM`] and the end of the first, or [`UNTIL`].
    pub(crate) jain: f64,
    /// Seconds until the first and the last had everything.
    pub(crate) first: f64,
    pub(crate) last: f64,
    /// Of the bottleneck, between the two times.
    pub(crate) utilisation: f64,
    /// Segments sent again.
    pub(crate) resent: u64,
    /// Acknowledgements whose window was changed.
    pub(crate) rewritten: u64,
    /// The median of the round-trip times of the idle path.
    pub(crate) round_trip: Duration,
    /// The longest time between two looks, seconds.
    pub(crate) unseen: f64,
}

/// Seconds. When a thread could not run for a third of the time that the queue can hold, the looks were late. In modes nfqueue and user, the router
/// was late as well. It is the machine that is measured then, and the run is repeated.
pub(crate) const BLIND: f64 = 0.02;

impl Figures {
    pub(crate) fn of(told: &Told) -> Result<Figures, String> {
        let first = told.completed.iter().copied().fold(f64::INFINITY, f64::min);
        let last = told.completed.iter().copied().fold(0.0, f64::max);
        let (begin, end) = (at(&told.samples, FROM)?, at(&told.samples, UNTIL)?);
        let fair = at(&told.samples, first.min(UNTIL))?;
        let between: Vec<&Sample> = told
            .samples
            .iter()
            .filter(|sample| sample.at >= begin.at && sample.at <= end.at)
            .collect();
        let span = end.at - begin.at;
        if span <= 0.0 || fair.at <= begin.at {
            return Err("it was over before it could be looked at".into());
        }
        // A value that was seen holds until the next look.
        let area: f64 =
            between.windows(2).map(|two| two[0].queue.bytes as f64 * (two[1].at - two[0].at)).sum();
        let got: Vec<f64> =
            (0..FLOWS).map(|flow| (fair.arrived[flow] - begin.arrived[flow]) as f64).collect();
        let end_of_all = told.samples.last().map_or(0, |sample| sample.queue.drops);
        let longest = |from| {
            let later = between.iter().filter(|sample| sample.at >= from);
            later.map(|sample| sample.queue.bytes).max().unwrap_or(0)
        };
        let mut round_trips = told.round_trips.clone();
        round_trips.sort();
        let watched = told.samples.iter().take_while(|sample| sample.at <= UNTIL);
        let watched: Vec<f64> = watched.map(|sample| sample.at).collect();
        let gaps = watched.windows(2).map(|two| two[1] - two[0]);
        Ok(Figures {
            drops: end_of_all - told.before.drops,
            late: end_of_all - begin.queue.drops,
            rest: end_of_all - at(&told.samples, SETTLED)?.queue.drops,
            longest: longest(FROM),
            settled: longest(SETTLED),
            delay: area / span * 8.0 / RATE as f64,
            jain: jain(&got),
            first,
            last,
            utilisation: (end.queue.sent_bytes - begin.queue.sent_bytes) as f64 * 8.0
                / (RATE as f64 * span),
            resent: told.resent,
            rewritten: told.rewritten,
            round_trip: round_trips[round_trips.len() / 2],
            unseen: gaps.fold(0.0, f64::max),
        })
    }
}

/// The last look not after a time: what happens between looks counts as after it.
fn at(samples: &[Sample], time: f64) -> Result<&Sample, String> {
    let found = samples.iter().rev().find(|sample| sample.at <= time);
    found.ok_or_else(|| "nobody looked in time".into())
}

/// Jain's fairness index: 1 if all have got the same, 1/n if one has got everything.
fn jain(got: &[f64]) -> f64 {
    let sum: f64 = got.iter().sum();
    let squares: f64 = got.iter().map(|one| one * one).sum();
    if squares == 0.0 { 0.0 } else { sum * sum / (got.len() as f64 * squares) }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:>4} drops, {:>3} late, {:>3} after 1 s, longest {:>4.1} kB, then {:>4.1}, delay {:>4.1} ms, Jain {:.3}, {:.2} to {:.2} s, \
             utilisation {:.3}, {} sent again, {} rewritten, unseen for {:.0} ms",
            self.drops,
            self.late,
            self.rest,
            self.longest as f64 / 1e3,
            self.settled as f64 / 1e3,
            self.delay * 1e3,
            self.jain,
            self.first,
            self.last,
            self.utilisation,
            self.resent,
            self.rewritten,
            self.unseen * 1e3,
        )
    }
}
