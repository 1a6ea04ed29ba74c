//! The observations of a run, finished or not.

use transom_lab::run::Observations;
use transom_lab::scenario::{Name, Resolved};
use transom_sim::measure::{FlowSample, LinkSample, Recorder};
use transom_sim::units::Rate;
use transom_tcp::time::{Duration, Instant};

/// Everything that a page shows, borrowed from its owner.
pub(super) struct Seen<'a> {
    pub(super) flows: Vec<SeenFlow<'a>>,
    pub(super) links: Vec<SeenLink<'a>>,
}

/// Of a flow.
pub(super) struct SeenFlow<'a> {
    pub(super) name: &'a Name,
    pub(super) samples: &'a [FlowSample],
    /// Known only after the run.
    pub(super) completions: &'a [(Instant, Duration)],
}

/// Of one way of a link.
pub(super) struct SeenLink<'a> {
    pub(super) name: &'a Name,
    pub(super) back: bool,
    pub(super) rate: Option<Rate>,
    pub(super) samples: &'a [LinkSample],
}

impl<'a> Seen<'a> {
    /// Of a finished run.
    pub(super) fn observed(seen: &'a Observations) -> Seen<'a> {
        let flows = seen.flows.iter().map(|flow| SeenFlow {
            name: &flow.name,
            samples: &flow.samples,
            completions: &flow.completions,
        });
        let links = seen.links.iter().map(|link| SeenLink {
            name: &link.name,
            back: link.back,
            rate: link.rate,
            samples: &link.samples,
        });
        Seen { flows: flows.collect(), links: links.collect() }
    }

    /// Of a run in progress.
    pub(super) fn partial(scenario: &'a Resolved, recorder: &'a Recorder) -> Seen<'a> {
        let flows = scenario.flows.iter().enumerate().map(|(number, flow)| SeenFlow {
            name: &flow.name,
            samples: recorder.flows().get(number).map(Vec::as_slice).unwrap_or_default(),
            completions: &[],
        });
        let ways = scenario.links.iter().flat_map(|link| {
            [(&link.name, false, link.there.rate), (&link.name, true, link.back.rate)]
        });
        let links = ways.zip(recorder.links()).map(|((name, back, rate), (_, samples))| SeenLink {
            name,
            back,
            rate,
            samples,
        });
        Seen { flows: flows.collect(), links: links.collect() }
    }
}

impl SeenLink<'_> {
    /// Its name in a chart.
    pub(super) fn title(&self) -> String {
        if self.back { format!("{} (back)", self.name) } else { self.name.to_string() }
    }

    /// Whether anything ever waited or was dropped there, or windows are controlled.
    pub(super) fn is_of_interest(&self) -> bool {
        self.samples.last().is_some_and(|last| {
            let counters = &last.counters;
            counters.queue_peak.packets > 0
                || counters.dropped().packets > 0
                || counters.marked > 0
                || last.window.is_some()
        })
    }
}

/// A moment in seconds.
pub(super) fn seconds(at: Instant) -> f64 {
    at.as_secs_f64()
}

/// Milliseconds.
pub(super) fn millis(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1e6
}
