//! Every measure of a run as one number, for tables with a line for each run. Nothing has to be expected for that.

use super::Observations;
use super::judge::measure;
use crate::scenario::{
    Direction, Measure, MeasureSource, Name, Quantity, Resolved, Statistic, Time, Unit,
};

/// So many flows have columns of their own. Of more there are only those of all together.
const MOST_FLOWS: usize = 32;

/// What is measured of flows, and how many values become one.
const OF_FLOWS: [(Measure, Statistic); 12] = [
    (Measure::Goodput, Statistic::Sum),
    (Measure::Throughput, Statistic::Sum),
    (Measure::Delivered, Statistic::Sum),
    (Measure::Efficiency, Statistic::Mean),
    (Measure::Retransmissions, Statistic::Sum),
    (Measure::Timeouts, Statistic::Sum),
    (Measure::FastRecoveries, Statistic::Sum),
    (Measure::Rtt, Statistic::Mean),
    (Measure::Rtt, Statistic::P95),
    (Measure::Cwnd, Statistic::Mean),
    (Measure::CompletionTime, Statistic::Mean),
    (Measure::CompletionTime, Statistic::P95),
];

/// What is measured of each direction of a link.
const OF_LINKS: [(Measure, Option<Statistic>); 8] = [
    (Measure::Utilisation, None),
    (Measure::LossRate, None),
    (Measure::Drops, None),
    (Measure::Marks, None),
    (Measure::QueueLength, Some(Statistic::Mean)),
    (Measure::QueueDelay, Some(Statistic::Mean)),
    (Measure::QueueDelay, Some(Statistic::P95)),
    (Measure::QueueDelay, Some(Statistic::Max)),
];

/// Every measure of a run, from the end of its warm-up: of all flows together, of each flow, and of both directions of each link. Each has a name, such
/// as `goodput_bps`, `flows.bulk1.rtt_p95_s` or `links.bottleneck.there.utilisation`, and no value where nothing was there to be measured. The
/// unit is in the name: `bps` bits per second, `s` seconds, `bytes`, or none. The names are those of the scenario, so they are the same at all
/// points of a sweep that have the same hosts and flows.
pub(crate) fn numbers(scenario: &Resolved, seen: &Observations) -> Vec<(String, Option<f64>)> {
    let quantity =
        |measure, statistic, flows: &[Name], link: Option<(&Name, Direction)>| Quantity {
            measure,
            flows: flows.to_vec(),
            link: link.map(|(name, _)| name.clone()),
            direction: link.map(|(_, direction)| direction),
            statistic,
            from: scenario.scenario.warm_up,
            until: Time(scenario.scenario.duration.0),
            reaches: None,
            stays_above: None,
            window: None,
        };
    let mut all = Vec::new();
    let mut add = |prefix: &str, quantity: &Quantity| {
        let (factor, unit) = match quantity.measure.unit() {
            Unit::Rate => (1.0, "_bps"),
            Unit::Time => (1e-9, "_s"),
            Unit::Size => (1.0, "_bytes"),
            Unit::Number => (1.0, ""),
        };
        // One value of each flow becomes a sum or a mean by itself; of many values the statistic says which.
        let often = matches!(
            quantity.measure.source(),
            MeasureSource::OftenFromFlows | MeasureSource::OftenFromLink
        );
        let statistic = quantity.statistic.filter(|_| often).map(word).unwrap_or_default();
        let value = match measure(quantity, seen)[..] {
            [value] if value.is_finite() => Some(value * factor),
            _ => None,
        };
        let measure = quantity.measure.to_string().replace('-', "_");
        let name = format!("{prefix}{measure}{statistic}{unit}");
        all.push((name, value));
    };
    let flows: Vec<Name> = scenario.flows.iter().map(|flow| flow.name.clone()).collect();
    for (measure, statistic) in OF_FLOWS {
        add("", &quantity(measure, Some(statistic), &flows, None));
    }
    if flows.len() > 1 {
        add("", &quantity(Measure::Jain, None, &flows, None));
    }
    if flows.len() <= MOST_FLOWS {
        for flow in &flows {
            for (measure, statistic) in OF_FLOWS {
                let own = std::slice::from_ref(flow);
                add(&format!("flows.{flow}."), &quantity(measure, Some(statistic), own, None));
            }
        }
    }
    for link in &scenario.links {
        for (direction, way) in [(Direction::There, "there"), (Direction::Back, "back")] {
            for (measure, statistic) in OF_LINKS {
                let prefix = format!("links.{}.{way}.", link.name);
                add(&prefix, &quantity(measure, statistic, &[], Some((&link.name, direction))));
            }
        }
    }
    all
}

fn word(statistic: Statistic) -> &'static str {
    match statistic {
        Statistic::P95 => "_p95",
        Statistic::Max => "_max",
        _ => "_mean",
    }
}
