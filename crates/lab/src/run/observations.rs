//! The observations of a run.
//!
//! Simulated and emulated runs have the same form. Values that a kernel's TCP does not report are `None`.

use super::build::Built;
use crate::scenario::{Name, Resolved};
use transom_sim::measure::{FlowSample, LinkSample, Recorder};
use transom_sim::units::Rate;
use transom_tcp::time::{Duration, Instant};

/// Everything that was seen of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observations {
    /// The flows, in the order of the scenario.
    pub flows: Vec<FlowObservations>,
    /// Both ways of the links, in the order of the scenario.
    pub links: Vec<LinkObservations>,
    /// Packets that left a host.
    pub packets: u64,
    /// Events of the simulation; `None` of a run in real time.
    pub events: Option<u64>,
    /// Captures and event logs that could not be written, and why. They are not there, and all else is.
    pub lost: Vec<String>,
}

/// The observations of a flow.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FlowObservations {
    /// Its name.
    pub name: Name,
    /// At every sample interval; before the first, everything is zero.
    pub samples: Vec<FlowSample>,
    /// Its transfers or requests: when each was complete, and how long it took.
    pub completions: Vec<(Instant, Duration)>,
    /// Extensions that connections of its sender did not have, or not to the end, and why.
    pub departures: Vec<String>,
}

/// The observations of one direction of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LinkObservations {
    /// The link's name.
    pub name: Name,
    /// Whether it is the way back.
    pub back: bool,
    /// Its rate, if it has a constant one; of a trace, the opportunities are counted in the samples.
    pub rate: Option<Rate>,
    /// At every sample interval.
    pub samples: Vec<LinkSample>,
}

impl Observations {
    pub(crate) fn collect(scenario: &Resolved, built: &Built, recorder: &Recorder) -> Self {
        let flows = scenario.flows.iter().enumerate().map(|(number, flow)| {
            let known = built.network.flows().get(number);
            let (completions, departures) = known
                .map(|flow| (flow.completions.clone(), flow.departures.iter().cloned().collect()))
                .unwrap_or_default();
            let samples = recorder.flows().get(number).cloned().unwrap_or_default();
            FlowObservations { name: flow.name.clone(), samples, completions, departures }
        });
        let ways = scenario.links.iter().flat_map(|link| {
            [(&link.name, false, link.there.rate), (&link.name, true, link.back.rate)]
        });
        let links = ways.zip(recorder.links()).map(|((name, back, rate), (_, samples))| {
            LinkObservations { name: name.clone(), back, rate, samples: samples.clone() }
        });
        let totals = built.network.totals();
        Observations {
            flows: flows.collect(),
            links: links.collect(),
            packets: totals.packets,
            events: Some(totals.events),
            lost: Vec::new(),
        }
    }
}
