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

/// A number of a run. Its name has what it is of, and its unit: `bps` bits per second, `s` seconds, `bytes`, or none.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Number {
    /// Such as `goodput_bps`, `flows.bulk1.rtt_p95_s` or `links.bottleneck.there.utilisation`.
    pub name: String,
    /// The value; none where nothing was there to be measured.
    pub value: Option<f64>,
}

/// Every measure of a run, from the end of its warm-up: of all flows together, of each flow, and of both directions of each link. The names are
/// those of the scenario, so they are the same at all points of a sweep that have the same hosts and flows.
pub(crate) fn numbers(scenario: &Resolved, seen: &Observations) -> Vec<Number> {
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
        let name = format!("{prefix}{}{statistic}{unit}", word_of(quantity.measure));
        all.push(Number { name, value });
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

/// The word that scenarios have for it, as the name of a column.
fn word_of(measure: Measure) -> String {
    let text = serde_json::to_value(measure).ok();
    let text = text.as_ref().and_then(|text| text.as_str());
    text.unwrap_or_default().replace('-', "_")
}

fn word(statistic: Statistic) -> &'static str {
    match statistic {
        Statistic::P95 => "_p95",
        Statistic::Max => "_max",
        _ => "_mean",
    }
}
