//! The page and the picture of a packet capture: time and sequence, windows, round-trip times and throughput of its connections.
//!
//! The chart of time and sequence is the picture that tcptrace made usual: each segment is a bar from its first to its last byte, between
//! the line of acknowledgements below and the edge of the receive window above.
//!
//! ```
//! use transom_report::{plot_capture, render};
//! use transom_trace::Capture;
//!
//! let plotted = plot_capture(Capture::default(), "any.pcap", None);
//! assert!(plotted.picture.is_none(), "no connection, no picture");
//! assert!(render(&plotted.data).contains("any.pcap"));
//! ```

use transom_tcp::time::{Duration, Instant};
use transom_trace::{Capture, Connection, Kind, Way};

use crate::svg::Svg;
use crate::{Block, Chart, Hue, Plotted, Points, ReportData, Section, Shape, Style, Table, plot};

/// So many connections have charts on a page: those that carried most data.
const CHARTS: usize = 8;
/// So many intervals have a throughput of their own.
const INTERVALS: f64 = 100.0;

/// The page and the picture of a capture, or of the connection in it with this number. `name` is the capture's.
pub fn plot_capture(mut capture: Capture, name: &str, only: Option<u64>) -> Plotted {
    capture.connections.retain(|one| only.is_none_or(|only| one.number as u64 == only));
    let captured = Captured { capture };
    let shown = captured.largest().first().map(|one| one.number);
    let count = captured.capture.connections.len();
    Plotted { data: captured.data(name), picture: captured.picture(), count, shown }
}

/// The connections of a capture, to be drawn.
struct Captured {
    capture: Capture,
}

impl Captured {
    fn data(&self, name: &str) -> ReportData {
        let largest = self.largest();
        let mut notes = self.capture.notes();
        if largest.len() > CHARTS {
            notes.push(format!(
                "The {CHARTS} connections that carried most data have charts; {} others have none.",
                largest.len() - CHARTS
            ));
        }
        let sections = largest.into_iter().take(CHARTS).flat_map(|one| {
            let data = one.ways.iter().enumerate().filter(|(_, way)| way.counts.segments > 0);
            data.map(|(end, _)| section(one, end))
        });
        ReportData {
            title: name.to_owned(),
            lead: "The connections of a packet capture. Time is in seconds since the first packet of each connection. Round-trip times are \
                   from the point of the capture to the receiver and back."
                .into(),
            blocks: vec![Block::Table(self.table())],
            sections: sections.collect(),
            notes,
            ..ReportData::default()
        }
    }

    /// The charts of the connection that carried most data, the way that carried more, in one picture; `None` without any connection.
    fn picture(&self) -> Option<Svg> {
        let largest = self.largest();
        let one = *largest.first()?;
        let [there, back] = &one.ways;
        let section = section(one, usize::from(back.counts.bytes > there.counts.bytes));
        let charts: Vec<Svg> = section.charts.iter().map(|chart| plot(&section, chart)).collect();
        Some(Svg::stack(&section.title, &charts))
    }

    fn largest(&self) -> Vec<&Connection> {
        let mut largest: Vec<&Connection> = self.capture.connections.iter().collect();
        let bytes = |one: &Connection| one.ways.iter().map(|way| way.counts.bytes).sum::<u64>();
        largest.sort_by_key(|one| std::cmp::Reverse(bytes(one)));
        largest
    }

    fn table(&self) -> Table {
        let head = [
            "number#",
            "from",
            "to",
            "packets#",
            "seconds#",
            "bytes#",
            "sent again, bytes#",
            "fill holes, segments#",
            "duplicate ACKs#",
            "closed windows#",
            "least round-trip time, ms#",
        ];
        let mut table = Table::new("Connections", &head);
        table.caption = "A line for each way that carried data.".into();
        for one in &self.capture.connections {
            let any = one.ways.iter().any(|way| way.counts.segments > 0);
            for (end, way) in one.ways.iter().enumerate() {
                if way.counts.segments == 0 && (any || end > 0) {
                    continue;
                }
                let [from, to] = names(one, end);
                let counts = &way.counts;
                let least = way.rtt.iter().map(|(_, rtt)| *rtt).min();
                let numbers = [
                    counts.bytes,
                    counts.resent,
                    counts.filled,
                    counts.duplicate_acks,
                    counts.zero_windows,
                ];
                let mut row = vec![one.number.to_string().into(), from.into(), to.into()];
                row.push(one.packets.to_string().into());
                row.push(format!("{:.3}", one.last.since(one.first).as_secs_f64()).into());
                row.extend(numbers.map(|number| number.to_string().into()));
                row.push(least.map_or("–".into(), |least| format!("{:.3}", ms(least))).into());
                table.rows.push(row);
            }
        }
        table
    }
}

/// The sender and the receiver of a way.
fn names(one: &Connection, end: usize) -> [String; 2] {
    let mut names = one.ends.map(|end| end.to_string());
    if end > 0 {
        names.reverse();
    }
    names
}

fn ms(span: Duration) -> f64 {
    span.as_secs_f64() * 1e3
}

/// The charts of one way of a connection.
fn section(one: &Connection, end: usize) -> Section {
    let [there, back] = &one.ways;
    let way = if end == 0 { there } else { back };
    let [from, to] = names(one, end);
    let x = |at: Instant| seconds(one.first, at);
    let charts = [sequence(one, way, &x), windows(way, &x), rtt(way, &x), throughput(way, &x)];
    Section {
        title: format!("Connection {}: data from {from} to {to}", one.number),
        charts: charts.into_iter().filter(|chart| !chart.is_empty()).collect(),
        ..Section::default()
    }
}

/// Seconds since `start`; negative if the times of a file run backwards.
fn seconds(start: Instant, at: Instant) -> f64 {
    at.since(start).as_secs_f64() - start.since(at).as_secs_f64()
}

/// A vertical bar from one position to another: a line with a gap behind it.
fn bar(points: &mut Points, x: f64, low: f64, high: f64) {
    points.extend([(x, low), (x, high), (x, f64::NAN)]);
}

fn sequence(one: &Connection, way: &Way, x: &impl Fn(Instant) -> f64) -> Chart {
    // The first byte is at zero, behind the SYN.
    let first = i64::from(one.synchronised == [true; 2]);
    let kib = |position: i64| position.saturating_sub(first) as f64 / 1024.0;
    let [mut new, mut again, mut filled, mut probes, mut sacked, mut double] =
        [const { Points::new() }; 6];
    for sent in &way.sent {
        let (x, low, high) = (x(sent.at), kib(sent.start), kib(sent.end));
        match sent.kind {
            Kind::New => bar(&mut new, x, low, high),
            Kind::Retransmitted => {
                bar(&mut new, x, low, high);
                again.push((x, low));
            }
            Kind::FillsHole => {
                bar(&mut new, x, low, high);
                filled.push((x, low));
            }
            Kind::Probe => probes.push((x, low)),
        }
    }
    for block in &way.sacks {
        let (x, low, high) = (x(block.at), kib(block.start), kib(block.end));
        if block.duplicate {
            double.push((x, low));
        } else {
            bar(&mut sacked, x, low, high);
        }
    }
    let acked = way.acks.iter().map(|ack| (x(ack.at), kib(ack.position))).collect();
    let edge = |window: u64, position: i64| {
        kib(position.saturating_add(i64::try_from(window).unwrap_or(i64::MAX)))
    };
    // A SYN's window has another scale and would bend the line.
    let edges =
        way.acks.iter().filter_map(|ack| Some((x(ack.at), edge(ack.window?, ack.position))));
    let mut chart = Chart::new("Time and sequence", "sequence", "KiB")
        .floating()
        .caption("A bar is a segment, from its first to its last byte. Bars of SACK blocks are at the time of their acknowledgement.")
        .series("segments", Style::Line, Hue::Blue, new)
        .series("acknowledged", Style::Step, Hue::Green, acked)
        .series("edge of the receive window", Style::Dashed, Hue::Grey, edges.collect());
    if !sacked.is_empty() {
        chart = chart.series("SACK blocks", Style::Line, Hue::Pink, sacked);
    }
    for (name, shape, hue, points) in [
        ("sent again", Shape::Cross, Hue::Red, again),
        ("fills a hole", Shape::Ring, Hue::Orange, filled),
        ("duplicate reported (DSACK)", Shape::Triangle, Hue::Pink, double),
        ("probe", Shape::Triangle, Hue::Grey, probes),
    ] {
        if !points.is_empty() {
            chart = chart.markers(name, shape, hue, points);
        }
    }
    chart
}

fn windows(way: &Way, x: &impl Fn(Instant) -> f64) -> Chart {
    let kib = |bytes: u64| bytes as f64 / 1024.0;
    let flying = way.in_flight.iter().map(|&(at, bytes)| (x(at), kib(bytes))).collect();
    let window: Points =
        way.acks.iter().filter_map(|ack| Some((x(ack.at), kib(ack.window?)))).collect();
    let chart = Chart::new("Windows", "window", "KiB").series(
        "in flight: sent and not acknowledged",
        Style::Step,
        Hue::Blue,
        flying,
    );
    if window.is_empty() {
        return chart.caption(
            "The capture has not both SYNs with their options, so the scale of the receive window is not known.",
        );
    }
    chart.series("receive window", Style::Step, Hue::Grey, window)
}

fn rtt(way: &Way, x: &impl Fn(Instant) -> f64) -> Chart {
    let points = |times: &[(Instant, Duration)]| -> Points {
        times.iter().map(|&(at, rtt)| (x(at), ms(rtt))).collect()
    };
    let mut chart = Chart::new("Round-trip time", "time", "ms")
        .caption("By Karn's rule: from segments that were sent once. By timestamps: since the echoed value was seen first.")
        .series("by Karn's rule", Style::Dots, Hue::Blue, points(&way.rtt));
    if !way.stamped.is_empty() {
        chart = chart.series("by timestamps", Style::Dots, Hue::Orange, points(&way.stamped));
    }
    chart
}

/// Sent and acknowledged in intervals of a hundredth of the time from the first to the last packet with data.
fn throughput(way: &Way, x: &impl Fn(Instant) -> f64) -> Chart {
    let mut sent: Vec<(f64, f64)> = Vec::new();
    for one in way.sent.iter().filter(|one| one.kind != Kind::Probe) {
        sent.push((x(one.at), one.end.saturating_sub(one.start) as f64));
    }
    let mut acked: Vec<(f64, f64)> = Vec::new();
    let mut before: Option<i64> = None;
    for ack in &way.acks {
        let step = before.map_or(0, |before| ack.position.saturating_sub(before));
        if step >= 0 {
            before = Some(ack.position);
            acked.push((x(ack.at), step as f64));
        }
    }
    let times = || sent.iter().chain(&acked).map(|(x, _)| *x);
    let (start, end) = (times().fold(f64::MAX, f64::min), times().fold(f64::MIN, f64::max));
    let step = ((end - start) / INTERVALS).max(1e-3);
    let rate = |moved: &[(f64, f64)]| -> Points {
        let mut bytes = vec![0.0; INTERVALS as usize + 1];
        for (x, count) in moved {
            // A float cast to an integer saturates.
            if let Some(here) = bytes.get_mut(((x - start) / step) as usize) {
                *here += count;
            }
        }
        let used = ((end - start) / step) as usize + 1;
        let middle = |number: usize| start + (number as f64 + 0.5) * step;
        let rates = bytes.iter().take(used).enumerate();
        rates.map(|(number, bytes)| (middle(number), bytes * 8.0 / step / 1e6)).collect()
    };
    if sent.is_empty() {
        return Chart::new("Throughput", "rate", "Mbit/s");
    }
    Chart::new("Throughput", "rate", "Mbit/s")
        .caption(format!(
            "In intervals of {} ms. What is sent counts each time.",
            crate::short(step * 1e3)
        ))
        .series("sent", Style::Step, Hue::Blue, rate(&sent))
        .series("acknowledged", Style::Step, Hue::Green, rate(&acked))
}

#[cfg(test)]
mod tests;
