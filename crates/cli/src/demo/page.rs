//! The demo's report page.

use super::Args;
use super::network::Network;
use super::observe::Timeline;
use super::transfer::Outcome;
use std::sync::PoisonError;
use transom_report::{Chart, Hue, ReportData, Row, Section, Shape, Style};

const MIB: f64 = 1024.0 * 1024.0;

fn scaled(points: &[(f64, f64)], by: f64) -> Vec<(f64, f64)> {
    points.iter().map(|&(x, y)| (x, y / by)).collect()
}

fn during(points: &[(f64, f64)], outcome: &Outcome) -> Vec<(f64, f64)> {
    let (from, to) = (outcome.started, outcome.started + outcome.seconds);
    points.iter().copied().filter(|&(x, _)| x >= from && x <= to).collect()
}

/// Goodput over windows of a fiftieth of the transfer: Mbit/s.
fn goodput(acked: &[(f64, f64)], outcome: &Outcome) -> Vec<(f64, f64)> {
    let step = (outcome.seconds / 50.0).max(1e-3);
    let mut points = Vec::new();
    let (mut edge, mut bytes, mut last) = (outcome.started + step, 0.0, 0.0);
    for &(at, acked) in acked {
        while at > edge {
            points.push((edge - step / 2.0, (bytes - last) * 8.0 / step / 1e6));
            last = bytes;
            edge += step;
        }
        bytes = acked.max(bytes);
    }
    points
}

fn section(
    outcome: &Outcome,
    queue: &super::network::QueueTrace,
    sampled_by_kernel: bool,
) -> Section {
    let Outcome { trace, passed, .. } = outcome;
    let rtt = Chart::new("Round-trip time", "time", "ms")
        .floating()
        .series("smoothed", Style::Line, Hue::Blue, trace.srtt.clone())
        .series("smallest", Style::Step, Hue::Pink, trace.min_rtt.clone())
        .series("last sample", Style::Dots, Hue::Grey, trace.last_rtt.clone());
    let windows = Chart::new("Windows of the sender", "window", "KiB")
        .caption(if sampled_by_kernel {
            "As the kernel's TCP_INFO tells them, every 5 ms."
        } else {
            "Sampled every 5 ms."
        })
        .series("cwnd", Style::Step, Hue::Blue, trace.cwnd.clone())
        .series("ssthresh", Style::Step, Hue::Orange, trace.ssthresh.clone())
        .series("in flight", Style::Line, Hue::Green, trace.in_flight.clone())
        .markers("timeout", Shape::Ring, Hue::Red, trace.timeouts.clone());
    let sequence = Chart::new("Time and sequence", "stream", "MiB")
        .caption("As seen at Transom's device.")
        .series("data", Style::Line, Hue::Blue, scaled(&passed.sent, MIB))
        .series("acknowledged", Style::Step, Hue::Green, scaled(&passed.acked, MIB))
        .markers("sent again", Shape::Cross, Hue::Red, scaled(&passed.resent, MIB));
    let queue = Chart::new("Queue before the bottleneck", "queue", "KiB")
        .series("length", Style::Step, Hue::Blue, scaled(&during(&queue.lengths, outcome), 1024.0))
        .markers(
            "dropped",
            Shape::Triangle,
            Hue::Red,
            scaled(&during(&queue.drops, outcome), 1024.0),
        );
    let rate = Chart::new("Goodput", "rate", "Mbit/s").series(
        "acknowledged",
        Style::Line,
        Hue::Blue,
        goodput(&passed.acked, outcome),
    );
    Section {
        title: outcome.title.clone(),
        charts: vec![sequence, windows, rtt, queue, rate],
        ..Section::default()
    }
}

/// Puts the page together.
pub(crate) fn build(
    args: &Args,
    network: &Network,
    _timeline: &Timeline,
    len: u64,
    original: &str,
    results: [&Outcome; 2],
) -> ReportData {
    let both = |value: &dyn Fn(&Outcome) -> String| results.map(value);
    let path = network.monitor.report();
    let links = [&path.egress, &path.ingress];
    let intact = results.map(|outcome| outcome.sha256 == original);
    let summary = vec![
        Row::new("Bytes", both(&|_| len.to_string())),
        Row::new("Congestion control of the sender", both(&|outcome| outcome.congestion.clone())),
        Row::new("Time", both(&|outcome| format!("{:.3} s", outcome.seconds))),
        Row::new("Goodput", both(&|outcome| format!("{:.2} Mbit/s", outcome.megabits(len)))),
        Row::new("Segments sent again", both(&|outcome| outcome.retransmitted.to_string())),
        Row::new(
            "Retransmission timeouts",
            both(&|outcome| outcome.timeouts.map_or("not told".into(), |n| n.to_string())),
        ),
        Row::new(
            "Smoothed round-trip time at the end",
            both(&|outcome| {
                outcome.rtt.map_or("–".into(), |rtt| format!("{:.2} ms", rtt.as_secs_f64() * 1e3))
            }),
        ),
        Row::new("Packets offered to the path", links.map(|link| link.offered.packets.to_string())),
        Row::new("Lost on the path", links.map(|link| link.lost.packets.to_string())),
        Row::new("Dropped by the queue", links.map(|link| link.queue_full.packets.to_string())),
        Row::new("SHA-256 of the copy", results.map(|outcome| outcome.sha256.clone()))
            .verdict(intact.iter().all(|&same| same)),
    ];
    let sections = results
        .iter()
        .zip(&network.queues)
        .enumerate()
        .map(|(index, (outcome, queue))| {
            let queue = queue.lock().unwrap_or_else(PoisonError::into_inner);
            section(outcome, &queue, index == 1 && network.peer_name() == "the kernel")
        })
        .collect();
    ReportData {
        title: "Transom demo".into(),
        lead: format!(
            "{}. {}. {} each way: {}, {} ms of delay, {} lost, a queue of {}.",
            network.describe(),
            network.describe_congestion(),
            "The path",
            args.rate,
            args.delay.as_secs_f64() * 1e3,
            super::percent(args.loss),
            args.queue
        ),
        columns: results.iter().map(|outcome| outcome.title.clone()).collect(),
        summary,
        sections,
        notes: vec![
            "Packet counts of the path are those of the direction over the whole run; the small difference between two \
             directions is acknowledgements."
                .into(),
            "Times are real: another run gives a slightly different picture, with the same losses by number of packet. \
             The second transfer meets the losses of the first."
                .into(),
        ],
        command: std::env::args().collect::<Vec<_>>().join(" "),
        ..ReportData::default()
    }
}
