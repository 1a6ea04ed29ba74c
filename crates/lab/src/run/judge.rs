//! Compares observations with expectations.

use super::{FlowObservations, LinkObservations, Observations};
use crate::scenario::{
    Band, Comparison, Direction, Measure, Name, Quantity, Resolved, Statistic, Time,
};
use serde::{Deserialize, Deserializer, Serialize};
use time_course::Level;
use transom_sim::link::OPPORTUNITY;
use transom_sim::measure::{
    FlowSample, Lane, LinkSample, QueueDelay, SentSample, WindowSample, jain_index, per_second,
    percentile,
};
use transom_tcp::time::{Duration, Instant};

mod time_course;

/// A band and its result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Judgement {
    /// The expectation.
    pub band: Band,
    /// The measured values, in bits per second, nanoseconds, bytes, or without a unit: one value, or one for each flow. None without a measurement,
    /// which no band accepts. A value that is not a number, such as a quotient by zero, is stored as `null`.
    #[serde(deserialize_with = "numbers")]
    pub values: Vec<f64>,
    /// Whether all of it lies within the band.
    pub passed: bool,
}

fn numbers<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<f64>, D::Error> {
    let values = Vec::<Option<f64>>::deserialize(deserializer)?;
    Ok(values.into_iter().map(|value| value.unwrap_or(f64::NAN)).collect())
}

/// Judges the bands of a scenario by one run of it.
pub fn judge(scenario: &Resolved, seen: &Observations) -> Vec<Judgement> {
    let bands = scenario.expect.iter();
    bands.map(|band| verdict(band, seen, seen)).collect()
}

/// Judges a band that compares a run with one of another point of the sweep, of the same seed.
pub fn compare(comparison: &Comparison, seen: &Observations, baseline: &Observations) -> Judgement {
    verdict(&comparison.band, seen, baseline)
}

/// The course of a quantity over time, for a figure: a curve for each flow, or one for a link. Each point is a moment in nanoseconds and the value
/// then, in bits per second, nanoseconds, bytes, or without a unit.
///
/// A rate is that of the window that ends at the moment, of a second if the quantity names none. What is counted, such as delivered bytes or drops, is
/// counted from the first moment.
pub fn course(quantity: &Quantity, seen: &Observations) -> Vec<Vec<(u64, f64)>> {
    let span = Span::of(quantity);
    let mut quantity = quantity.clone();
    quantity.window = quantity.window.or(Some(Time(Duration::from_secs(1))));
    let courses = match quantity.measure {
        Measure::Delivered | Measure::Drops => time_course::counted(&quantity, seen, span),
        _ => time_course::of(&quantity, seen, span),
    };
    let nanoseconds = |(at, value): (Instant, f64)| (at.since(Instant::ZERO).as_nanos(), value);
    courses.into_iter().map(|course| course.into_iter().map(nanoseconds).collect()).collect()
}

fn verdict(band: &Band, seen: &Observations, baseline: &Observations) -> Judgement {
    let mut values = measure(&band.quantity, seen);
    if let Some(divisor) = &band.relative_to {
        let others = measure(divisor, baseline);
        values = match others[..] {
            [other] => values.into_iter().map(|value| band.compared(value, other)).collect(),
            _ => {
                let both = values.into_iter().zip(others);
                both.map(|(value, other)| band.compared(value, other)).collect()
            }
        };
    }
    let all = !values.is_empty() && values.iter().all(|value| band.accepts(*value));
    let passed = all || !band.expects();
    Judgement { band: band.clone(), values, passed }
}

/// The moments that count.
#[derive(Clone, Copy)]
struct Span {
    from: Instant,
    until: Instant,
}

impl Span {
    fn of(quantity: &Quantity) -> Self {
        Span { from: Instant::ZERO + quantity.from.0, until: Instant::ZERO + quantity.until.0 }
    }

    fn has(self, at: Instant) -> bool {
        self.from <= at && at <= self.until
    }

    /// The samples of a flow within, of which the first and the last tell what was added up between them.
    fn of_flow(self, flow: &FlowObservations) -> &[FlowSample] {
        self.within(&flow.samples, |sample| sample.at)
    }

    /// The same of a link.
    fn of_link(self, link: &LinkObservations) -> &[LinkSample] {
        self.within(&link.samples, |sample| sample.at)
    }

    fn within<S>(self, samples: &[S], at: impl Fn(&S) -> Instant) -> &[S] {
        let from = samples.partition_point(|sample| at(sample) < self.from);
        let until = samples.partition_point(|sample| at(sample) <= self.until);
        samples.get(from..until).unwrap_or_default()
    }
}

/// The direction of a link that a quantity is of.
fn link_of<'a>(
    quantity: &Quantity,
    name: &Name,
    seen: &'a Observations,
) -> Option<&'a LinkObservations> {
    let back = quantity.direction == Some(Direction::Back);
    seen.links.iter().find(|one| one.name == *name && one.back == back)
}

/// The flows of these names.
fn flows_of<'a>(
    names: &'a [Name],
    seen: &'a Observations,
) -> impl Iterator<Item = &'a FlowObservations> {
    names.iter().filter_map(|name| seen.flows.iter().find(|flow| flow.name == *name))
}

/// The values of a quantity; none where nothing was measured.
pub(super) fn measure(quantity: &Quantity, seen: &Observations) -> Vec<f64> {
    let span = Span::of(quantity);
    if let Some(level) = Level::of(quantity) {
        let times = time_course::of(quantity, seen, span).into_iter();
        let times = times.filter_map(|course| level.time(&course, span.from));
        return summarise(quantity.statistic, times.collect());
    }
    match &quantity.link {
        Some(name) => {
            let Some(link) = link_of(quantity, name, seen) else { return Vec::new() };
            let lane = match quantity.measure {
                Measure::QueueDelay => Some(Lane::All),
                Measure::LowLatencyDelay => Some(Lane::LowLatency),
                Measure::ClassicDelay => Some(Lane::Classic),
                _ => None,
            };
            if let Some(lane) = lane {
                return queue_delay(quantity.statistic, link, lane, span);
            }
            summarise(quantity.statistic, of_link(quantity.measure, link, span))
        }
        None if quantity.measure == Measure::Jain => {
            let shares = of_flows(Measure::Goodput, &quantity.flows, seen, span);
            vec![jain_index(shares.into_iter().flatten().map(|share| share as u64))]
        }
        None => {
            let values = of_flows(quantity.measure, &quantity.flows, seen, span);
            summarise(quantity.statistic, values.into_iter().flatten().collect())
        }
    }
}

/// The values of each flow.
fn of_flows(measure: Measure, names: &[Name], seen: &Observations, span: Span) -> Vec<Vec<f64>> {
    flows_of(names, seen)
        .map(|flow| {
            if measure == Measure::CompletionTime {
                let within = flow.completions.iter().filter(|(at, _)| span.has(*at));
                return within.map(|(_, took)| took.as_nanos() as f64).collect();
            }
            let samples = span.of_flow(flow);
            let (Some(first), Some(last)) = (samples.first(), samples.last()) else {
                return Vec::new();
            };
            let delivered = last.delivered - first.delivered;
            let senders = || samples.iter().filter_map(|sample| sample.sender);
            // A measure that could not be taken has no value.
            let sent = |count: fn(&SentSample) -> Option<u64>| {
                Some(count(&last.sent)? - count(&first.sent)?)
            };
            let one = |count| sent(count).map(|count| count as f64).into_iter().collect();
            match measure {
                Measure::Goodput => vec![per_second(delivered, last.at.since(first.at))],
                Measure::Delivered => vec![delivered as f64],
                Measure::Skipped => vec![(last.skipped - first.skipped) as f64],
                Measure::Throughput => {
                    let bytes = sent(|sent| sent.bytes).into_iter();
                    bytes.map(|bytes| per_second(bytes, last.at.since(first.at))).collect()
                }
                Measure::Efficiency => {
                    let bytes = sent(|sent| sent.bytes).filter(|bytes| *bytes > 0).into_iter();
                    bytes.map(|bytes| delivered as f64 / bytes as f64).collect()
                }
                Measure::Retransmissions => one(|sent| sent.retransmissions),
                Measure::Timeouts => one(|sent| sent.timeouts),
                Measure::FastRecoveries => one(|sent| sent.fast_recoveries),
                Measure::Rtt
                | Measure::Rto
                | Measure::RtoToRtt
                | Measure::Cwnd
                | Measure::Ssthresh
                | Measure::Flight => {
                    senders().filter_map(|one| time_course::of_sender(measure, one)).collect()
                }
                Measure::RecoveryTime => recovery_times(samples),
                _ => Vec::new(),
            }
        })
        .collect()
}

/// From each fall of the window until it is what it was, but for a fiftieth of what it lost: the height it falls from is a little different each time. A
/// fall before that counts for the same recovery, and one that is not over at the end has no value.
fn recovery_times(samples: &[FlowSample]) -> Vec<f64> {
    let mut times = Vec::new();
    // Since when, from what, and how far it fell.
    let mut fallen: Option<(Instant, u64, u64)> = None;
    let mut before: Option<(Instant, u64)> = None;
    for (at, window) in samples.iter().filter_map(|one| Some((one.at, one.sender?.cwnd))) {
        match (fallen, before) {
            (Some((since, level, least)), _) => {
                if window >= level - (level - least) / 50 {
                    times.push(at.since(since).as_nanos() as f64);
                    fallen = None;
                } else {
                    fallen = Some((since, level, least.min(window)));
                }
            }
            // A smaller step is no reaction to a loss.
            (None, Some((since, level))) if window < level - level / 50 => {
                fallen = Some((since, level, window));
            }
            (None, _) => {}
        }
        before = Some((at, window));
    }
    times
}

fn of_link(measure: Measure, link: &LinkObservations, span: Span) -> Vec<f64> {
    let samples = span.of_link(link);
    let (Some(first), Some(last)) = (samples.first(), samples.last()) else { return Vec::new() };
    let grown = |count: fn(&LinkSample) -> u64| (count(last) - count(first)) as f64;
    let control = |count: fn(&WindowSample) -> u64| {
        let windows = first.window.zip(last.window).into_iter();
        windows.map(|(first, last)| (count(&last) - count(&first)) as f64).collect()
    };
    match measure {
        Measure::Utilisation => {
            let bytes = last.counters.delivered.bytes - first.counters.delivered.bytes;
            let opportunities = grown(|one| one.counters.opportunities);
            match link.rate {
                Some(rate) => {
                    vec![per_second(bytes, last.at.since(first.at)) / rate.bits_per_sec() as f64]
                }
                // Of a rate that follows a trace.
                None if opportunities > 0.0 => {
                    vec![bytes as f64 / (opportunities * OPPORTUNITY as f64)]
                }
                None => Vec::new(),
            }
        }
        Measure::LossRate => {
            let offered = grown(|one| one.counters.offered.packets);
            let dropped = grown(|one| one.counters.dropped().packets);
            vec![if offered > 0.0 { dropped / offered } else { 0.0 }]
        }
        Measure::Drops => vec![grown(time_course::drops)],
        Measure::Marks => vec![grown(|one| one.counters.marked)],
        Measure::WindowsRewritten => control(|one| one.rewritten),
        Measure::AcksSeen => control(|one| one.acks),
        Measure::AcksUnknown => control(|one| one.unknown),
        Measure::AcksImplausible => control(|one| one.implausible),
        Measure::AcksHeld => control(|one| one.held),
        Measure::FlowsOpened => control(|one| one.opened),
        Measure::QueueLength | Measure::WindowTarget => {
            samples.iter().filter_map(|one| time_course::of_way(measure, one)).collect()
        }
        _ => Vec::new(),
    }
}

/// One statistic of the delays of the packets of one lane that left a queue: mean and maximum are exact, the others to 1 %.
fn queue_delay(
    statistic: Option<Statistic>,
    link: &LinkObservations,
    lane: Lane,
    span: Span,
) -> Vec<f64> {
    let Some(delay) = QueueDelay::between(span.of_link(link), lane) else { return Vec::new() };
    let percentile = |percent| delay.percentile(percent).as_nanos() as f64;
    vec![match statistic {
        // A scenario that asks for anything else of many values is refused when it is read.
        None | Some(Statistic::Each | Statistic::Sum | Statistic::Mean) => delay.mean(),
        Some(Statistic::Min) => percentile(0.0),
        Some(Statistic::Max) => percentile(100.0),
        Some(Statistic::Deviation) => delay.deviation(),
        Some(Statistic::P50) => percentile(50.0),
        Some(Statistic::P90) => percentile(90.0),
        Some(Statistic::P95) => percentile(95.0),
        Some(Statistic::P99) => percentile(99.0),
    }]
}

/// Reduces many values to one, if that is wanted. Percentiles are exact: observed values, by the nearest rank.
fn summarise(statistic: Option<Statistic>, mut values: Vec<f64>) -> Vec<f64> {
    let Some(statistic) = statistic else { return values };
    if values.is_empty() {
        return values;
    }
    let (count, sum) = (values.len() as f64, values.iter().sum::<f64>());
    let mean = sum / count;
    values.sort_by(f64::total_cmp);
    let percentile = |percent| percentile(&values, percent).unwrap_or(mean);
    let one = match statistic {
        Statistic::Each => return values,
        Statistic::Sum => sum,
        Statistic::Mean => mean,
        Statistic::Min => percentile(0),
        Statistic::Max => percentile(100),
        Statistic::Deviation => {
            let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
            (squares / count).sqrt()
        }
        Statistic::P50 => percentile(50),
        Statistic::P90 => percentile(90),
        Statistic::P95 => percentile(95),
        Statistic::P99 => percentile(99),
    };
    vec![one]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_by_hand() {
        let values = || vec![4.0, 1.0, 3.0, 2.0];
        for (statistic, expected) in [
            (Statistic::Sum, 10.0),
            (Statistic::Mean, 2.5),
            (Statistic::Min, 1.0),
            (Statistic::Max, 4.0),
            // √((2.25 + 0.25 + 0.25 + 2.25) / 4)
            (Statistic::Deviation, 1.25f64.sqrt()),
            (Statistic::P50, 2.0),
            (Statistic::P90, 4.0),
        ] {
            assert_eq!(summarise(Some(statistic), values()), [expected], "{statistic:?}");
        }
        assert_eq!(summarise(None, values()), values());
        assert!(summarise(Some(Statistic::Mean), Vec::new()).is_empty());
    }
}
