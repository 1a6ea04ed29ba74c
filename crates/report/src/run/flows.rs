//! The charts of the flows.

use transom_lab::scenario::{FlowSeries, Resolved};
use transom_sim::measure::{FlowSample, SenderSample};
use transom_tcp::time::Instant;

use super::charts::{growth, rate};
use super::seen::{Seen, SeenFlow, millis, seconds};
use crate::{Chart, Hue, Section, Shape, Style};

/// The flows that have curves: as many as there are colours.
fn shown<'a>(seen: &'a Seen<'a>) -> impl Iterator<Item = (&'a SeenFlow<'a>, Hue)> {
    seen.flows.iter().zip(Hue::ALL)
}

/// A chart for each measure of which there is anything.
pub(super) fn section(scenario: &Resolved, seen: &Seen<'_>) -> Section {
    let wanted = |series: FlowSeries| scenario.measure.flows.contains(&series);
    let all = [
        wanted(FlowSeries::Goodput).then(|| goodput(scenario, seen)),
        wanted(FlowSeries::Throughput).then(|| throughput(seen)),
        window(seen, wanted(FlowSeries::Cwnd), wanted(FlowSeries::Ssthresh)),
        wanted(FlowSeries::Flight).then(|| in_flight(seen)),
        wanted(FlowSeries::Rtt).then(|| round_trips(seen)),
        again(seen, wanted(FlowSeries::Retransmissions), wanted(FlowSeries::Timeouts)),
        Some(completions(seen)),
    ];
    let shown = all.into_iter().flatten().filter(|chart| !chart.is_empty());
    let mut charts: Vec<Chart> = shown.collect();
    let (some, all) = (Hue::ALL.len(), seen.flows.len());
    if let (Some(first), true) = (charts.first_mut(), all > some) {
        let more = format!(" The curves are those of the first {some} of {all} flows.");
        first.caption.push_str(&more);
    }
    Section { title: "Flows".into(), charts, ..Section::default() }
}

fn goodput(scenario: &Resolved, seen: &Seen<'_>) -> Chart {
    let delivered = |flow: &SeenFlow<'_>| -> Vec<(Instant, u64)> {
        flow.samples.iter().map(|one| (one.at, one.delivered)).collect()
    };
    let mut chart = Chart::new("Goodput", "goodput", "Mbit/s");
    let mut span = 1;
    for (flow, hue) in shown(seen) {
        let (points, samples) = rate(&delivered(flow));
        span = span.max(samples);
        chart = chart.series(flow.name.to_string(), Style::Step, hue, points);
    }
    // All together, where one cannot see all.
    if seen.flows.len() > Hue::ALL.len() {
        let mut sum: Vec<(Instant, u64)> = Vec::new();
        for flow in &seen.flows {
            // A flow is sampled from when it is first heard of to the end.
            let late = sum.len().saturating_sub(flow.samples.len());
            if sum.is_empty() {
                sum = delivered(flow);
                continue;
            }
            for (sum, one) in sum.iter_mut().skip(late).zip(flow.samples) {
                sum.1 += one.delivered;
            }
        }
        let (points, _) = rate(&sum);
        chart = chart.series("all flows", Style::Line, Hue::Grey, points);
    }
    let interval = scenario.scenario.sample_interval.0.as_nanos() as f64 / 1e9 * span as f64;
    let interval = crate::short(interval);
    chart.caption(format!("What reached the application, averaged over {interval} s."))
}

fn throughput(seen: &Seen<'_>) -> Chart {
    let chart = Chart::new("Throughput", "throughput", "Mbit/s").caption(
        "All IP packets that the sender sent, headers and retransmissions included, averaged as goodput is.",
    );
    shown(seen).fold(chart, |chart, (flow, hue)| {
        let sent = |one: &FlowSample| Some((one.at, one.sent.bytes?));
        let sent: Vec<(Instant, u64)> = flow.samples.iter().filter_map(sent).collect();
        let name = flow.name.to_string();
        if sent.is_empty() { chart } else { chart.series(name, Style::Step, hue, rate(&sent).0) }
    })
}

/// A sender's series, with gaps where there is no connection.
fn sender(flow: &SeenFlow<'_>, value: impl Fn(&SenderSample) -> Option<f64>) -> Vec<(f64, f64)> {
    let value = |one: Option<&SenderSample>| one.and_then(&value).unwrap_or(f64::NAN);
    flow.samples.iter().map(|one| (seconds(one.at), value(one.sender.as_ref()))).collect()
}

fn has_values(points: &[(f64, f64)]) -> bool {
    points.iter().any(|(_, y)| y.is_finite())
}

fn window(seen: &Seen<'_>, with_window: bool, with_threshold: bool) -> Option<Chart> {
    let (title, axis, caption) = match (with_window, with_threshold) {
        (true, true) => (
            "Congestion window",
            "cwnd",
            "The broken line in the same colour is the slow-start threshold.",
        ),
        (true, false) => ("Congestion window", "cwnd", ""),
        (false, true) => ("Slow-start threshold", "ssthresh", ""),
        (false, false) => return None,
    };
    let mut chart = Chart::new(title, axis, "KiB").caption(caption);
    let mut highest = 0.0f64;
    for (flow, hue) in shown(seen) {
        let cwnd = sender(flow, |one| Some(one.cwnd as f64 / 1024.0));
        highest = cwnd.iter().map(|(_, y)| *y).filter(|y| y.is_finite()).fold(highest, f64::max);
        if with_window && has_values(&cwnd) {
            chart = chart.series(flow.name.to_string(), Style::Step, hue, cwnd);
        }
    }
    for (flow, hue) in shown(seen).filter(|_| with_threshold) {
        // A threshold that was never near the window would only make the window small.
        let ssthresh = sender(flow, |one| {
            one.ssthresh.map(|bytes| bytes as f64 / 1024.0).filter(|one| *one <= 2.0 * highest)
        });
        if has_values(&ssthresh) {
            chart = chart.series(format!("{} ssthresh", flow.name), Style::Dashed, hue, ssthresh);
        }
    }
    Some(chart)
}

fn in_flight(seen: &Seen<'_>) -> Chart {
    let chart = Chart::new("Bytes in flight", "in flight", "KiB")
        .caption("Sent, and neither acknowledged nor taken for lost.");
    of_senders(seen, chart, Style::Step, |one| Some(one.in_flight as f64 / 1024.0))
}

/// The chart with a series for each flow of which a value was seen.
fn of_senders(
    seen: &Seen<'_>,
    chart: Chart,
    style: Style,
    value: impl Fn(&SenderSample) -> Option<f64>,
) -> Chart {
    shown(seen).fold(chart, |chart, (flow, hue)| {
        let points = sender(flow, &value);
        let name = flow.name.to_string();
        if has_values(&points) { chart.series(name, style, hue, points) } else { chart }
    })
}

fn round_trips(seen: &Seen<'_>) -> Chart {
    let chart = Chart::new("Round-trip time", "smoothed RTT", "ms")
        .caption("As the sender has smoothed it (RFC 6298).");
    of_senders(seen, chart, Style::Line, |one| one.srtt.map(millis))
}

fn again(seen: &Seen<'_>, with_segments: bool, with_timeouts: bool) -> Option<Chart> {
    let (title, axis, caption) = match (with_segments, with_timeouts) {
        (true, true) => (
            "Retransmissions",
            "segments sent again",
            "Counted from the start; a ring is a retransmission timeout.",
        ),
        (true, false) => ("Retransmissions", "segments sent again", "Counted from the start."),
        (false, true) => (
            "Retransmission timeouts",
            "segments sent again",
            "At the height of the segments sent again so far.",
        ),
        (false, false) => return None,
    };
    let mut chart = Chart::new(title, axis, "").caption(caption);
    for (flow, hue) in shown(seen) {
        let samples = || flow.samples.iter();
        let again = |one: &FlowSample| one.sent.retransmissions.map_or(f64::NAN, |n| n as f64);
        let points: Vec<(f64, f64)> = samples().map(|one| (seconds(one.at), again(one))).collect();
        if !points.iter().any(|(_, y)| *y > 0.0) {
            continue;
        }
        let timeouts: Vec<(f64, u64)> =
            samples().map(|one| (seconds(one.at), one.sent.timeouts.unwrap_or(0))).collect();
        let rings = growth(&timeouts, |n| points.get(n).map_or(0.0, |(_, y)| *y));
        if with_segments {
            chart = chart.series(flow.name.to_string(), Style::Step, hue, points);
        }
        if with_timeouts && !rings.is_empty() {
            chart = chart.markers(format!("{} timeout", flow.name), Shape::Ring, hue, rings);
        }
    }
    Some(chart)
}

fn completions(seen: &Seen<'_>) -> Chart {
    let chart = Chart::new("Completion times", "took", "ms")
        .caption("A point for each transfer or request, when it was complete.");
    shown(seen).fold(chart, |chart, (flow, hue)| {
        if flow.completions.is_empty() {
            return chart;
        }
        let mut points: Vec<(f64, f64)> =
            flow.completions.iter().map(|(at, took)| (seconds(*at), millis(*took))).collect();
        points.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        chart.series(flow.name.to_string(), Style::Dots, hue, points)
    })
}
