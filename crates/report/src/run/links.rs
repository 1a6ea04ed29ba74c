//! The charts of the links.

use transom_lab::scenario::{LinkSeries, Resolved};
use transom_sim::measure::{LinkSample, WindowSample};
use transom_tcp::time::Instant;

use super::charts::rate;
use super::seen::{Seen, SeenLink, millis, seconds};
use crate::{Chart, Hue, Section, Style};

/// A chart for each measure of which there is anything, of the links at which anything waited or was dropped.
pub(super) fn section(scenario: &Resolved, seen: &Seen<'_>) -> Section {
    let links: Vec<&SeenLink<'_>> =
        seen.links.iter().filter(|link| link.is_of_interest()).collect();
    let curves = |chart: Chart, value: &dyn Fn(&SeenLink<'_>, &LinkSample) -> f64| {
        links.iter().zip(Hue::ALL).fold(chart, |chart, (link, hue)| {
            let points: Vec<(f64, f64)> =
                link.samples.iter().map(|one| (seconds(one.at), value(link, one))).collect();
            if points.iter().all(|(_, y)| !y.is_finite() || *y == 0.0) {
                return chart;
            }
            chart.series(link.title(), Style::Step, hue, points)
        })
    };
    let counted = "Counted from the start.";
    let all = [
        (LinkSeries::Throughput, utilisation(&links)),
        (
            LinkSeries::QueueLength,
            curves(
                Chart::new("Queue length", "queue", "packets")
                    .caption("What waits, at each sample."),
                &|_, one| one.waiting.packets as f64,
            ),
        ),
        (LinkSeries::QueueDelay, delay(&links)),
        (
            LinkSeries::Drops,
            curves(
                Chart::new("Packets dropped by queues", "dropped", "packets").caption(counted),
                &|_, one| {
                    (one.counters.queue_full.packets + one.counters.queue_dropped.packets) as f64
                },
            ),
        ),
        (
            LinkSeries::Drops,
            curves(
                Chart::new("Packets lost on the wire", "lost", "packets").caption(counted),
                &|_, one| one.counters.lost.packets as f64,
            ),
        ),
        (
            LinkSeries::Marks,
            curves(
                Chart::new("Packets marked", "marked", "packets")
                    .caption(format!("With congestion experienced (RFC 3168). {counted}")),
                &|_, one| one.counters.marked as f64,
            ),
        ),
        (
            LinkSeries::WindowTarget,
            curves(
                Chart::new("Window target", "target", "KiB")
                    .caption("The window that the link's window control has arrived at."),
                &|_, one| {
                    let target = one.window.and_then(|window| window.target);
                    target.map_or(f64::NAN, |bytes| bytes as f64 / 1024.0)
                },
            ),
        ),
        (LinkSeries::WindowsRewritten, rewritten(&links)),
    ];
    let wanted = |series: LinkSeries| scenario.measure.links.contains(&series);
    let shown = all.into_iter().filter(|(series, chart)| wanted(*series) && !chart.is_empty());
    let mut charts: Vec<Chart> = shown.map(|(_, chart)| chart).collect();
    let some = Hue::ALL.len();
    if let (Some(first), true) = (charts.first_mut(), links.len() > some) {
        let more = format!(" The curves are those of the first {some} of {} ways.", links.len());
        first.caption.push_str(&more);
    }
    Section { title: "Links".into(), charts, ..Section::default() }
}

fn utilisation(links: &[&SeenLink<'_>]) -> Chart {
    let chart = Chart::new("Utilisation", "share of the rate", "%")
        .caption("What came out of the link, as a share of its rate.");
    links.iter().zip(Hue::ALL).fold(chart, |chart, (link, hue)| {
        let Some(capacity) = link.rate else { return chart };
        let delivered: Vec<(Instant, u64)> =
            link.samples.iter().map(|one| (one.at, one.counters.delivered.bytes)).collect();
        let (mut points, _) = rate(&delivered);
        for (_, y) in &mut points {
            *y = *y * 1e8 / capacity.bits_per_sec() as f64;
        }
        chart.series(link.title(), Style::Step, hue, points)
    })
}

/// Of the acknowledgements that a link's window control has seen, those whose window it has rewritten.
fn rewritten(links: &[&SeenLink<'_>]) -> Chart {
    let chart = Chart::new("Windows rewritten", "acknowledgements", "").caption(
        "Acknowledgements whose window was rewritten; the broken line is all that came back. Counted from the start.",
    );
    links.iter().zip(Hue::ALL).fold(chart, |chart, (link, hue)| {
        let course = |count: fn(&WindowSample) -> u64| -> Vec<(f64, f64)> {
            let windows = link.samples.iter().filter_map(|one| Some((one.at, one.window?)));
            windows.map(|(at, window)| (seconds(at), count(&window) as f64)).collect()
        };
        let seen = course(|window| window.acks);
        if seen.is_empty() {
            return chart;
        }
        chart.series(link.title(), Style::Step, hue, course(|window| window.rewritten)).series(
            format!("{} seen", link.title()),
            Style::Dashed,
            hue,
            seen,
        )
    })
}

/// How long packets were in the queue: the mean and the greatest of those that left it between two samples.
fn delay(links: &[&SeenLink<'_>]) -> Chart {
    let mut chart = Chart::new("Queueing delay", "in the queue", "ms").caption(
        "The mean of all packets that left the queue since the sample before; the broken line is the longest of them.",
    );
    for (link, hue) in links.iter().zip(Hue::ALL) {
        let pairs = || link.samples.iter().zip(link.samples.iter().skip(1));
        let mean = |before: &LinkSample, one: &LinkSample| {
            let packets = one.counters.dequeued - before.counters.dequeued;
            let (from, to) = (before.counters.queue_delay, one.counters.queue_delay);
            if packets == 0 { f64::NAN } else { (millis(to) - millis(from)) / packets as f64 }
        };
        let means: Vec<(f64, f64)> =
            pairs().map(|(before, one)| (seconds(one.at), mean(before, one))).collect();
        if !means.iter().any(|(_, y)| *y > 0.0) {
            continue;
        }
        let longest: Vec<(f64, f64)> = pairs()
            .map(|(_, one)| (seconds(one.at), one.delays.max().map_or(f64::NAN, millis)))
            .collect();
        chart = chart.series(link.title(), Style::Step, hue, means);
        chart = chart.series(format!("{} longest", link.title()), Style::Dashed, hue, longest);
    }
    chart
}
