//! The page and the picture of an event log: sequence, windows and round-trip time of its connections.
//!
//! ```
//! use transom_report::{plot_log, render};
//!
//! # let bytes = transom_stack::log::file::Header { origin: 0, places: 0 }.encode();
//! let (_, entries) = transom_stack::log::file::read(&bytes).unwrap();
//! let plotted = plot_log(&entries, "get.tlog", None);
//! assert!(plotted.picture.is_none(), "no connection, no picture");
//! assert!(render(&plotted.data).contains("get.tlog"));
//! ```

use std::collections::BTreeMap;
use std::net::SocketAddr;

use transom_stack::log::file::Entry;
use transom_stack::log::{FlowEvent, Record, Values, What};
use transom_tcp::time::Instant;

use crate::svg::Svg;
use crate::{Block, Chart, Hue, Plotted, Points, ReportData, Section, Shape, Style, Table, plot};

/// So many connections have charts on a page: those that moved most data.
const CHARTS: usize = 8;
/// The position of the first byte of data, behind the SYN.
const FIRST_BYTE: u64 = (1 << 32) + 1;

/// The page and the picture of the records of a log, as [`read`](transom_stack::log::file::read) gives them, or of the connection in it with this number.
/// `name` is the log's.
pub fn plot_log(entries: &[Entry], name: &str, only: Option<u64>) -> Plotted {
    let mut log = EventLog::new(entries);
    log.connections.retain(|one| only.is_none_or(|only| one.number == only));
    let (count, shown) = (log.connections.len(), None);
    Plotted { data: log.data(name), picture: log.picture(), count, shown }
}

/// The connections of an event log, as series over seconds since its first record.
#[derive(Default)]
struct EventLog {
    connections: Vec<Logged>,
    /// Records that the log has lost.
    missed: u64,
    /// Records that this version cannot read.
    unknown: u64,
}

/// One connection. Sequences and windows are in KiB, round-trip times in milliseconds.
#[derive(Clone, Debug, Default)]
struct Logged {
    number: u64,
    ends: Option<(SocketAddr, SocketAddr)>,
    first: f64,
    last: f64,
    /// Bytes sent for the first time, sent again, received and believed lost.
    sent: u64,
    resent: u64,
    received: u64,
    lost: u64,
    timeouts: u64,
    out: Outgoing,
    incoming: Incoming,
    windows: Windows,
    last_rtt: Points,
    smoothed: Points,
}

/// The data that the host sent.
#[derive(Clone, Debug, Default)]
struct Outgoing {
    sent: Points,
    resent: Points,
    acked: Points,
    /// The edge of the peer's window.
    edge: Points,
    losses: Points,
}

/// The data that the host received.
#[derive(Clone, Debug, Default)]
struct Incoming {
    received: Points,
    /// The edge of the window that it advertised.
    edge: Points,
}

/// The sender's windows, and the events at the height of cwnd.
#[derive(Clone, Debug, Default)]
struct Windows {
    used: Points,
    ssthresh: Points,
    in_flight: Points,
    recoveries: Points,
    timeouts: Points,
    undone: Points,
}

impl EventLog {
    fn new(entries: &[Entry]) -> EventLog {
        let mut log = EventLog::default();
        let mut start = None;
        let mut places = BTreeMap::new();
        for Entry { missed, record, .. } in entries {
            log.missed = log.missed.saturating_add(*missed);
            match record {
                Ok(record) => {
                    let start = *start.get_or_insert(record.at);
                    let place = *places.entry(record.connection).or_insert_with(|| {
                        log.connections.push(Logged::new(record.connection));
                        log.connections.len() - 1
                    });
                    if let Some(one) = log.connections.get_mut(place) {
                        one.add(start, record);
                    }
                }
                Err(_) => log.unknown += 1,
            }
        }
        log
    }

    fn data(&self, name: &str) -> ReportData {
        let largest = self.largest();
        let mut notes = Vec::new();
        if largest.len() > CHARTS {
            notes.push(format!(
                "The {CHARTS} connections that moved most data have charts; {} others have none.",
                largest.len() - CHARTS
            ));
        }
        if self.missed > 0 {
            notes.push(format!("{} records are missing: they were overwritten.", self.missed));
        }
        if self.unknown > 0 {
            notes.push(format!("{} records are of kinds that are not known here.", self.unknown));
        }
        ReportData {
            title: name.to_owned(),
            lead: "The connections of an event log. Time is in seconds since its first record."
                .into(),
            blocks: vec![Block::Table(self.table())],
            sections: largest.into_iter().take(CHARTS).map(Logged::section).collect(),
            notes,
            ..ReportData::default()
        }
    }

    /// The charts of the connection that moved most data, in one picture; `None` without any connection.
    fn picture(&self) -> Option<Svg> {
        let section = self.largest().first()?.section();
        let charts: Vec<Svg> = section.charts.iter().map(|chart| plot(&section, chart)).collect();
        Some(Svg::stack(&section.title, &charts))
    }

    fn largest(&self) -> Vec<&Logged> {
        let mut largest: Vec<&Logged> = self.connections.iter().collect();
        largest.sort_by_key(|one| std::cmp::Reverse(one.sent.saturating_add(one.received)));
        largest
    }

    fn table(&self) -> Table {
        let head = [
            "number#",
            "local",
            "remote",
            "seconds#",
            "sent, bytes#",
            "sent again, bytes#",
            "received, bytes#",
            "lost, bytes#",
            "timeouts#",
        ];
        let mut table = Table::new("Connections", &head);
        let row = |one: &Logged| {
            let (local, remote) = one.ends.map_or_else(
                || ("–".to_owned(), "–".to_owned()),
                |(local, remote)| (local.to_string(), remote.to_string()),
            );
            let counts = [one.sent, one.resent, one.received, one.lost, one.timeouts];
            let mut row = vec![one.number.to_string().into(), local.into(), remote.into()];
            row.push(format!("{:.3}", one.last - one.first).into());
            row.extend(counts.map(|count| count.to_string().into()));
            row
        };
        table.rows = self.connections.iter().map(row).collect();
        table
    }
}

impl Logged {
    fn new(number: u64) -> Logged {
        Logged { number, first: f64::NAN, ..Logged::default() }
    }

    fn add(&mut self, start: Instant, record: &Record) {
        let at = record.at.since(start).as_secs_f64();
        if self.first.is_nan() {
            self.first = at;
        }
        self.last = at;
        match &record.what {
            What::Opened { local, remote } => self.ends = Some((*local, *remote)),
            What::Flow(event, values) => self.flow(at, *event, values),
            What::State { .. }
            | What::Request { .. }
            | What::Layer { .. }
            | What::Limited { .. } => {}
        }
    }

    fn flow(&mut self, at: f64, event: FlowEvent, values: &Values) {
        let bytes = u64::from(values.bytes);
        let start = values.position;
        let cwnd = kib(values.cwnd.into());
        self.windows.used.push((at, cwnd));
        let ssthresh =
            if values.ssthresh == u32::MAX { f64::NAN } else { kib(values.ssthresh.into()) };
        self.windows.ssthresh.push((at, ssthresh));
        self.windows.in_flight.push((at, kib(values.in_flight.into())));
        if values.srtt > 0 {
            self.smoothed.push((at, f64::from(values.srtt) / 1e3));
        }
        match event {
            FlowEvent::Acknowledged => {
                self.out.acked.push((at, place(start)));
                self.out.edge.push((at, place(start.saturating_add(values.window.into()))));
                if values.extra > 0 {
                    self.last_rtt.push((at, f64::from(values.extra) / 1e3));
                }
            }
            FlowEvent::Arrived => {
                self.received = self.received.saturating_add(bytes);
                self.incoming.received.push((at, place(start)));
                self.incoming.edge.push((at, place(start.saturating_add(values.window.into()))));
            }
            FlowEvent::Sent => {
                self.sent = self.sent.saturating_add(bytes);
                self.out.sent.push((at, place(start.saturating_add(bytes))));
            }
            FlowEvent::Retransmitted => {
                self.resent = self.resent.saturating_add(bytes);
                self.out.resent.push((at, place(start)));
            }
            FlowEvent::Lost => {
                self.lost = self.lost.saturating_add(bytes);
                self.out.losses.push((at, place(start)));
            }
            FlowEvent::Recovery => self.windows.recoveries.push((at, cwnd)),
            FlowEvent::TimedOut => {
                self.timeouts += 1;
                self.windows.timeouts.push((at, cwnd));
            }
            FlowEvent::Undone => self.windows.undone.push((at, cwnd)),
        }
    }

    fn section(&self) -> Section {
        let title = match self.ends {
            Some((local, remote)) => format!("Connection {}: {local} – {remote}", self.number),
            None => format!("Connection {}", self.number),
        };
        let Outgoing { sent, resent, acked, edge, losses } = self.out.clone();
        let outgoing = Chart::new("Sent data", "sequence", "KiB")
            .series("sent", Style::Step, Hue::Blue, sent)
            .series("acknowledged", Style::Step, Hue::Green, acked)
            .series("edge of the peer's window", Style::Dashed, Hue::Grey, edge)
            .markers("sent again", Shape::Cross, Hue::Orange, resent)
            .markers("loss", Shape::Triangle, Hue::Red, losses);
        let Incoming { received, edge } = self.incoming.clone();
        let incoming = Chart::new("Received data", "sequence", "KiB")
            .series("received in order", Style::Step, Hue::Blue, received)
            .series("edge of the window", Style::Dashed, Hue::Grey, edge);
        let Windows { used, ssthresh, in_flight, recoveries, timeouts, undone } =
            self.windows.clone();
        let windows = Chart::new("Windows of the sender", "window", "KiB")
            .series("cwnd", Style::Step, Hue::Blue, used)
            .series("ssthresh", Style::Step, Hue::Orange, ssthresh)
            .series("in flight", Style::Line, Hue::Green, in_flight)
            .markers("fast recovery", Shape::Triangle, Hue::Pink, recoveries)
            .markers("timeout", Shape::Ring, Hue::Red, timeouts)
            .markers("undone", Shape::Cross, Hue::Grey, undone);
        let rtt = Chart::new("Round-trip time", "time", "ms")
            .floating()
            .series("smoothed", Style::Line, Hue::Blue, self.smoothed.clone())
            .series("last sample", Style::Dots, Hue::Grey, self.last_rtt.clone());
        let charts = [outgoing, incoming, windows, rtt];
        let charts = charts.into_iter().filter(|chart| !chart.is_empty()).collect();
        Section { title, charts, ..Section::default() }
    }
}

fn kib(bytes: u64) -> f64 {
    bytes as f64 / 1024.0
}

/// A position as KiB of the stream.
fn place(position: u64) -> f64 {
    kib(position.saturating_sub(FIRST_BYTE))
}

#[cfg(test)]
mod tests;
