//! Cases measured side by side.
//!
//! On a shared machine an absolute number says little: the same work takes half as long again a minute later. Only cases
//! that ran next to each other can be compared, so a *group* of *cases* is measured in rounds. Each round takes one
//! *sample* of every case, there and back in alternating order, so that no case is always the first after a pause. For
//! each round a case's sample is divided by that of the case it is held *against*; the result is the median of these
//! ratios.

use crate::watchdog::Watchdog;
use indicatif::ProgressBar;
use serde::Serialize;
use std::time::Duration;

/// What a sample counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// Payload bits per second, in units of 10⁹.
    GigabitsPerSecond,
    /// Bytes per second, in units of 10⁹.
    GigabytesPerSecond,
    /// Events per second.
    PerSecond,
    /// Microseconds for one.
    Microseconds,
    /// Nanoseconds for one.
    Nanoseconds,
    /// Bytes for one.
    Bytes,
    /// Bytes for each byte of something else.
    BytesPerByte,
}

impl Unit {
    /// How the unit is written.
    pub fn symbol(self) -> &'static str {
        match self {
            Unit::GigabitsPerSecond => "Gb/s",
            Unit::GigabytesPerSecond => "GB/s",
            Unit::PerSecond => "/s",
            Unit::Microseconds => "µs",
            Unit::Nanoseconds => "ns",
            Unit::Bytes => "B",
            Unit::BytesPerByte => "B/B",
        }
    }

    /// A value with a sensible number of digits.
    pub fn show(self, value: f64) -> String {
        match self {
            Unit::GigabitsPerSecond
            | Unit::GigabytesPerSecond
            | Unit::Microseconds
            | Unit::BytesPerByte => {
                format!("{value:.2}")
            }
            Unit::Nanoseconds => format!("{value:.1}"),
            Unit::PerSecond | Unit::Bytes => format!("{value:.0}"),
        }
    }
}

/// A figure to reach.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// Not less than this.
    AtLeast(f64),
    /// Not more than this.
    AtMost(f64),
}

impl Bound {
    /// Whether `value` reaches the figure.
    pub fn admits(self, value: f64) -> bool {
        match self {
            Bound::AtLeast(least) => value >= least,
            Bound::AtMost(most) => value <= most,
        }
    }
}

/// What a case is held against.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Comparison {
    /// Another case of the group, or nothing but the figure itself.
    against: Option<&'static str>,
    bound: Option<Bound>,
}

/// What opening and closing a sample's connections may take, warm-up included, beyond three times its length.
const GRACE: Duration = Duration::from_secs(60);

/// Takes one sample, which should last about as long as it is told.
pub type Sampler = Box<dyn FnMut(Duration) -> anyhow::Result<f64>>;

/// A name that is put together. It lasts as long as the program; there are some hundred.
pub fn named(name: String) -> &'static str {
    String::leak(name)
}

/// Something that is measured.
pub struct Case {
    name: &'static str,
    sampler: Sampler,
    comparisons: Vec<Comparison>,
    /// What a sample may take beyond three times its length.
    grace: Duration,
}

impl std::fmt::Debug for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Case").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Case {
    /// A case that `sampler` measures.
    pub fn new(
        name: &'static str,
        sampler: impl FnMut(Duration) -> anyhow::Result<f64> + 'static,
    ) -> Self {
        Case { name, sampler: Box::new(sampler), comparisons: Vec::new(), grace: GRACE }
    }

    /// A sample may take so much longer than it is told. Without this a minute.
    pub fn with_grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Shows the ratio to another case of the group.
    pub fn against(mut self, name: &'static str) -> Self {
        self.comparisons.push(Comparison { against: Some(name), bound: None });
        self
    }

    /// Shows the ratio to another case of the group and whether it is what it should be.
    pub fn figure(mut self, name: &'static str, bound: Bound) -> Self {
        self.comparisons.push(Comparison { against: Some(name), bound: Some(bound) });
        self
    }

    /// Shows whether the value itself is what it should be.
    pub fn absolute(mut self, bound: Bound) -> Self {
        self.comparisons.push(Comparison { against: None, bound: Some(bound) });
        self
    }
}

/// Cases that are measured together.
#[derive(Debug)]
pub struct Group {
    /// What a sample counts.
    pub unit: Unit,
    /// The cases.
    pub cases: Vec<Case>,
    /// How many samples at most; a count that does not vary needs one.
    pub most_samples: usize,
    /// What was left out, and why.
    pub notes: Vec<String>,
}

impl Group {
    /// A group without notes.
    pub fn new(unit: Unit, cases: Vec<Case>) -> Self {
        Group { unit, cases, most_samples: usize::MAX, notes: Vec::new() }
    }

    /// Says that something was left out.
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }
}

/// What was found out about a case.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CaseResult {
    /// Its name.
    pub name: &'static str,
    /// The samples by round; `None` where one failed.
    pub samples: Vec<Option<f64>>,
    /// Median of the samples.
    pub median: Option<f64>,
    /// The smallest sample.
    pub min: Option<f64>,
    /// The largest sample.
    pub max: Option<f64>,
    /// Its ratios.
    pub ratios: Vec<Ratio>,
    /// Why a sample failed, the last time one did.
    pub failure: Option<String>,
}

/// A case held against another one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ratio {
    /// The other case; `None` if the value itself is looked at.
    pub against: Option<&'static str>,
    /// The median of the rounds' ratios (or of the samples themselves).
    pub value: Option<f64>,
    /// The figure to reach.
    pub bound: Option<Bound>,
    /// Whether it was reached; `None` without a figure.
    pub reached: Option<bool>,
}

/// Measures a group in `rounds` rounds of samples of `span` each.
pub fn measure(
    group: &mut Group,
    rounds: usize,
    span: Duration,
    progress: &ProgressBar,
    watchdog: &Watchdog,
) -> Vec<CaseResult> {
    let rounds = rounds.min(group.most_samples).max(1);
    let count = group.cases.len();
    let mut samples = vec![Vec::with_capacity(rounds); count];
    let mut failures: Vec<Option<String>> = vec![None; count];
    for round in 0..rounds {
        for turn in 0..count {
            let index = if round % 2 == 0 { turn } else { count - 1 - turn };
            let case = &mut group.cases[index];
            progress.set_message(case.name);
            match watchdog.watch(case.name, span * 3 + case.grace, || (case.sampler)(span)) {
                Ok(value) => samples[index].push(Some(value)),
                Err(error) => {
                    samples[index].push(None);
                    failures[index] = Some(format!("{error:#}"));
                }
            }
            progress.inc(1);
        }
    }
    let names: Vec<&str> = group.cases.iter().map(|case| case.name).collect();
    let results = group.cases.iter().zip(&samples).zip(failures);
    results
        .map(|((case, taken), failure)| {
            let ratio = |comparison: &Comparison| {
                let Comparison { against, bound } = *comparison;
                let value = match against {
                    None => median(taken.iter().flatten().copied()),
                    Some(name) => names
                        .iter()
                        .position(|other| *other == name)
                        .and_then(|index| median(ratios(taken, &samples[index]))),
                };
                let reached = bound.and_then(|bound| Some(bound.admits(value?)));
                Ratio { against, value, bound, reached }
            };
            CaseResult {
                name: case.name,
                samples: taken.clone(),
                median: median(taken.iter().flatten().copied()),
                min: taken.iter().flatten().copied().reduce(f64::min),
                max: taken.iter().flatten().copied().reduce(f64::max),
                ratios: case.comparisons.iter().map(ratio).collect(),
                failure,
            }
        })
        .collect()
}

/// Round by round, the quotient of the samples that both have.
fn ratios<'a>(
    these: &'a [Option<f64>],
    those: &'a [Option<f64>],
) -> impl Iterator<Item = f64> + 'a {
    these
        .iter()
        .zip(those)
        .filter_map(|(this, that)| Some((*this)? / (*that)?))
        .filter(|ratio| ratio.is_finite())
}

/// The middle value, or the mean of the two middle ones; `None` of nothing.
pub fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    let upper = sorted.get(sorted.len() / 2).copied()?;
    let lower = sorted.get(sorted.len().saturating_sub(1) / 2).copied()?;
    Some((lower + upper) / 2.0)
}

#[cfg(test)]
mod tests;
