//! The report of a run: what was expected and what came of it, and a chart for each measure.

use std::path::Path;

use transom_lab::run::{FlowObservations, Judgement, LinkObservations, Observations};
use transom_lab::scenario::Resolved;
use transom_sim::measure::{SenderSample, per_second};
use transom_tcp::time::Duration;

use super::words;
use crate::report::{Chart, Hue, ReportData, Row, Section, Style};

/// As many curves as can be told apart in one chart.
const HUES: [Hue; 6] = [Hue::Blue, Hue::Orange, Hue::Green, Hue::Pink, Hue::Red, Hue::Grey];

/// What the page is about.
pub(super) struct Page<'a> {
    pub(super) scenario: &'a Resolved,
    pub(super) seed: u64,
    /// What the sweep has set.
    pub(super) settings: &'a [String],
    pub(super) seen: &'a Observations,
    pub(super) judgements: &'a [Judgement],
    /// The command that makes it again.
    pub(super) command: String,
}

impl Page<'_> {
    /// Writes it to a file.
    pub(super) fn write(&self, path: &Path) -> std::io::Result<()> {
        crate::report::write(path, &self.data())
    }

    fn data(&self) -> ReportData {
        let header = &self.scenario.scenario;
        let title = header.title.clone().unwrap_or_else(|| header.name.to_string());
        let mut lead = header.description.clone().unwrap_or_default();
        if !self.settings.is_empty() {
            lead = format!("{lead} With {}.", self.settings.join(", "));
        }
        let mut notes = Vec::new();
        let most = HUES.len();
        if self.seen.flows.len() > most {
            notes.push(format!(
                "The charts show the first {most} of {} flows.",
                self.seen.flows.len()
            ));
        }
        if header.warm_up.0 > Duration::ZERO {
            notes.push(format!("The first {} count for no band.", header.warm_up));
        }
        ReportData {
            title,
            lead: lead.trim().into(),
            columns: Vec::new(),
            summary: self.summary(),
            sections: vec![self.flows(), self.links()],
            notes,
            command: self.command.clone(),
        }
    }

    fn summary(&self) -> Vec<Row> {
        let bands = self.judgements.iter().map(|judgement| {
            let seen = format!("{}  {}", words::seen(judgement), words::bounds(&judgement.band));
            Row::new(words::quantity(&judgement.band), [seen.trim()]).verdict(judgement.passed)
        });
        let run = [
            Row::new("Seed", [self.seed.to_string()]),
            Row::new("Time in the network", [self.scenario.scenario.duration.to_string()]),
            Row::new("Packets sent", [self.seen.packets.to_string()]),
        ];
        bands.chain(run).collect()
    }

    /// A chart with a curve for each flow.
    fn by_flow(
        &self,
        chart: Chart,
        style: Style,
        points: impl Fn(&FlowObservations) -> Vec<(f64, f64)>,
    ) -> Chart {
        let curves = self.seen.flows.iter().zip(HUES);
        curves.fold(chart, |chart, (flow, hue)| {
            chart.series(flow.name.to_string(), style, hue, points(flow))
        })
    }

    fn flows(&self) -> Section {
        let goodput = self.by_flow(
            Chart::new("Goodput", "rate", "Mbit/s")
                .caption("What reached the application, from one sample to the next."),
            Style::Step,
            |flow| {
                let pairs = flow.samples.iter().zip(flow.samples.iter().skip(1));
                let rate = pairs.map(|(one, next)| {
                    let bytes = next.delivered - one.delivered;
                    (next.at.as_secs_f64(), per_second(bytes, next.at.since(one.at)) / 1e6)
                });
                rate.collect()
            },
        );
        let window =
            self.by_flow(Chart::new("Congestion window", "cwnd", "KiB"), Style::Step, |flow| {
                sender(flow, |one| Some(one.cwnd as f64 / 1024.0))
            });
        let rtt = self.by_flow(
            Chart::new("Smoothed round-trip time", "SRTT", "ms"),
            Style::Line,
            |flow| sender(flow, |one| one.srtt.map(|rtt| rtt.as_nanos() as f64 / 1e6)),
        );
        let again = self.by_flow(
            Chart::new("Segments sent again", "segments", "").caption("Counted from the start."),
            Style::Step,
            |flow| sender(flow, |one| Some(one.retransmissions as f64)),
        );
        Section { title: "Flows".into(), charts: vec![goodput, window, rtt, again] }
    }

    /// The links at which anything ever waited or was dropped.
    fn links(&self) -> Section {
        let busy = |link: &&LinkObservations| {
            link.samples.last().is_some_and(|last| {
                last.counters.queue_peak.packets > 0 || last.counters.dropped().packets > 0
            })
        };
        let links: Vec<&LinkObservations> =
            self.seen.links.iter().filter(busy).take(HUES.len()).collect();
        let chart = |chart: Chart, value: fn(&transom_sim::measure::LinkSample) -> f64| {
            links.iter().zip(HUES).fold(chart, |chart, (link, hue)| {
                let way = if link.back { " (back)" } else { "" };
                let points =
                    link.samples.iter().map(|one| (one.at.as_secs_f64(), value(one))).collect();
                chart.series(format!("{}{way}", link.name), Style::Step, hue, points)
            })
        };
        let queue = chart(
            Chart::new("Queues", "queue", "packets").caption("What waits, at each sample."),
            |one| one.waiting.packets as f64,
        );
        let drops = chart(
            Chart::new("Packets dropped or lost", "packets", "").caption("Counted from the start."),
            |one| one.counters.dropped().packets as f64,
        );
        Section { title: "Links".into(), charts: vec![queue, drops] }
    }
}

/// A sender's series; nothing where there is no connection.
fn sender(
    flow: &FlowObservations,
    value: impl Fn(&SenderSample) -> Option<f64>,
) -> Vec<(f64, f64)> {
    let point = |at: transom_tcp::time::Instant, one: Option<f64>| {
        (at.as_secs_f64(), one.unwrap_or(f64::NAN))
    };
    flow.samples.iter().map(|one| point(one.at, one.sender.as_ref().and_then(&value))).collect()
}
