//! Whether what was seen is what was expected.

use super::{LinkObservations, Observations, RunError};
use crate::scenario::{
    Band, Bound, Comparison, Direction, Measure, Name, Quantity, Resolved, Statistic, Traffic,
};
use serde::Serialize;
use transom_sim::measure::{FlowSample, LinkSample, jain_index, per_second};
use transom_tcp::time::Instant;

/// A band and what came of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Judgement {
    /// What was expected.
    pub band: Band,
    /// What was seen, in bits per second, nanoseconds, bytes, or without a unit: one value, or one for each flow. None if there was
    /// nothing to be seen, which no band accepts.
    pub values: Vec<f64>,
    /// Whether all of it lies within the band.
    pub passed: bool,
}

/// Refuses what no run measures yet, before anything is run.
pub(super) fn check(scenario: &Resolved) -> Result<(), RunError> {
    let quantities = scenario
        .expect
        .iter()
        .flat_map(|band| [Some(&band.quantity), band.relative_to.as_ref()])
        .flatten();
    for quantity in quantities {
        match quantity.measure {
            Measure::Throughput => return Err(RunError::NotMeasured("throughput")),
            Measure::Efficiency => return Err(RunError::NotMeasured("efficiency")),
            Measure::QueueDelay => return Err(RunError::NotMeasured("queue-delay")),
            // What is counted is counted for each connection, and forgotten with it.
            Measure::Retransmissions | Measure::Timeouts
                if has_many_connections(scenario, quantity) =>
            {
                return Err(RunError::NotMeasured(
                    "retransmissions or timeouts of a flow with many connections",
                ));
            }
            _ => {}
        }
    }
    Ok(())
}

fn has_many_connections(scenario: &Resolved, quantity: &Quantity) -> bool {
    let flows = scenario.flows.iter().filter(|flow| quantity.flows.contains(&flow.name));
    flows.into_iter().any(|flow| matches!(flow.traffic, Traffic::Web(_) | Traffic::Trace(_)))
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

fn verdict(band: &Band, seen: &Observations, baseline: &Observations) -> Judgement {
    let mut values = measure(&band.quantity, seen);
    if let Some(divisor) = &band.relative_to {
        let divisors = measure(divisor, baseline);
        values = match divisors[..] {
            [divisor] => values.into_iter().map(|value| value / divisor).collect(),
            _ => values.into_iter().zip(divisors).map(|(value, divisor)| value / divisor).collect(),
        };
    }
    let within = |value: f64| {
        value.is_finite()
            && band.min.is_none_or(|min| value >= number(min))
            && band.max.is_none_or(|max| value <= number(max))
    };
    let passed = !values.is_empty() && values.iter().all(|value| within(*value));
    Judgement { band: band.clone(), values, passed }
}

fn number(bound: Bound) -> f64 {
    match bound {
        Bound::Number(number) => number.billionths() as f64 / 1e9,
        _ => bound.as_integer() as f64,
    }
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

    /// The samples within, of which the first and the last tell what was added up between them.
    fn within<S: Copy>(self, samples: &[S], at: impl Fn(&S) -> Instant) -> Vec<S> {
        samples.iter().filter(|sample| self.has(at(sample))).copied().collect()
    }
}

fn measure(quantity: &Quantity, seen: &Observations) -> Vec<f64> {
    let span = Span::of(quantity);
    match &quantity.link {
        Some(link) => {
            let back = quantity.direction == Some(Direction::Back);
            let found = seen.links.iter().find(|one| one.name == *link && one.back == back);
            let values =
                found.map(|link| of_link(quantity.measure, link, span)).unwrap_or_default();
            summarise(quantity.statistic, values)
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
    let flows = names.iter().filter_map(|name| seen.flows.iter().find(|flow| flow.name == *name));
    flows
        .map(|flow| {
            if measure == Measure::CompletionTime {
                let within = flow.completions.iter().filter(|(at, _)| span.has(*at));
                return within.map(|(_, took)| took.as_nanos() as f64).collect();
            }
            let samples = span.within(&flow.samples, |sample| sample.at);
            let (Some(first), Some(last)) = (samples.first(), samples.last()) else {
                return Vec::new();
            };
            let delivered = last.delivered - first.delivered;
            let senders = || samples.iter().filter_map(|sample| sample.sender);
            let counted = |count: fn(&FlowSample) -> Option<u64>| {
                let (first, last) =
                    (samples.iter().find_map(count), samples.iter().rev().find_map(count));
                vec![last.unwrap_or(0).saturating_sub(first.unwrap_or(0)) as f64]
            };
            match measure {
                Measure::Goodput => vec![per_second(delivered, last.at.since(first.at))],
                Measure::Delivered => vec![delivered as f64],
                Measure::Retransmissions => {
                    counted(|one| one.sender.map(|one| one.retransmissions))
                }
                Measure::Timeouts => counted(|one| one.sender.map(|one| one.timeouts)),
                Measure::Rtt => senders()
                    .filter_map(|one| one.last_rtt)
                    .map(|rtt| rtt.as_nanos() as f64)
                    .collect(),
                Measure::Cwnd => senders().map(|one| one.cwnd as f64).collect(),
                Measure::Ssthresh => {
                    senders().filter_map(|one| one.ssthresh).map(|bytes| bytes as f64).collect()
                }
                Measure::Flight => senders().map(|one| one.in_flight as f64).collect(),
                _ => Vec::new(),
            }
        })
        .collect()
}

fn of_link(measure: Measure, link: &LinkObservations, span: Span) -> Vec<f64> {
    let samples = span.within(&link.samples, |sample| sample.at);
    let (Some(first), Some(last)) = (samples.first(), samples.last()) else { return Vec::new() };
    let grown = |count: fn(&LinkSample) -> u64| (count(last) - count(first)) as f64;
    match measure {
        Measure::Utilisation => {
            let bytes = last.counters.delivered.bytes - first.counters.delivered.bytes;
            let Some(rate) = link.rate else { return Vec::new() };
            vec![per_second(bytes, last.at.since(first.at)) / rate.bits_per_sec() as f64]
        }
        Measure::LossRate => {
            let offered = grown(|one| one.counters.offered.packets);
            let dropped = grown(|one| one.counters.dropped().packets);
            vec![if offered > 0.0 { dropped / offered } else { 0.0 }]
        }
        Measure::Drops => {
            vec![grown(|one| one.counters.queue_full.packets + one.counters.queue_dropped.packets)]
        }
        Measure::Marks => vec![grown(|one| one.counters.marked)],
        Measure::QueueLength => samples.iter().map(|one| one.waiting.packets as f64).collect(),
        _ => Vec::new(),
    }
}

/// Makes one of many values, if that is wanted. Percentiles are values that were seen, by the nearest rank.
fn summarise(statistic: Option<Statistic>, mut values: Vec<f64>) -> Vec<f64> {
    let Some(statistic) = statistic else { return values };
    if values.is_empty() {
        return values;
    }
    let (count, sum) = (values.len() as f64, values.iter().sum::<f64>());
    let mean = sum / count;
    values.sort_by(f64::total_cmp);
    let percentile = |percent: usize| {
        let rank = (values.len() * percent).div_ceil(100).max(1);
        values.get(rank - 1).copied().unwrap_or(mean)
    };
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
