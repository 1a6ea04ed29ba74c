//! The page of the connections of a program, from what was sampled while they lasted.
//!
//! ```
//! use transom_report::{Connections, ReportData, Seen, render};
//!
//! let seen = Seen::new("10.9.0.2:40000", "10.9.0.1:80", 0.0);
//! let page = Connections { lead: "curl".into(), seen: vec![seen], ..Connections::default() };
//! assert!(render(&ReportData::from(&page)).contains("10.9.0.1:80"));
//! ```

use transom_tcp::{ConnectionState, Counters};

use crate::transfer::Trace;
use crate::{Block, Chart, Hue, Points, ReportData, Row, Section, Style, Table};

/// So many connections have charts: those that carried most.
const CHARTS: usize = 8;

/// One connection.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    local: String,
    remote: String,
    congestion: String,
    began: f64,
    ended: f64,
    /// Bytes that the program has sent, and bytes that have arrived in order.
    bytes: [u64; 2],
    trace: Trace,
    /// MiB each way over seconds.
    carried: [Points; 2],
}

impl Seen {
    /// A connection that was first seen `at` this many seconds.
    pub fn new(local: impl Into<String>, remote: impl Into<String>, at: f64) -> Seen {
        Seen { local: local.into(), remote: remote.into(), began: at, ended: at, ..Seen::default() }
    }

    /// Adds what the connection tells of itself `at` this many seconds.
    pub fn add(&mut self, at: f64, info: &ConnectionState) {
        self.trace.add(at, info);
        self.congestion = info.congestion.to_string();
        self.ended = at;
        // The end of the stream takes a place too.
        let acked = info.snd_una.stream_offset().min(info.counters.bytes_sent);
        self.bytes = [acked + info.unacknowledged as u64, info.counters.bytes_accepted];
        for (points, bytes) in self.carried.iter_mut().zip(self.bytes) {
            points.push((at, bytes as f64 / (1024.0 * 1024.0)));
        }
    }

    fn total(&self) -> u64 {
        self.bytes.iter().sum()
    }

    fn seconds(&self) -> f64 {
        self.ended - self.began
    }

    /// The mean rate of one direction, in Mbit/s.
    fn rate(&self, direction: usize) -> String {
        let bytes = self.bytes.get(direction).copied().unwrap_or_default();
        match self.seconds() {
            seconds if seconds > 0.0 => crate::short(bytes as f64 * 8.0 / 1e6 / seconds),
            _ => "–".to_owned(),
        }
    }

    fn title(&self) -> String {
        format!("{} – {}", self.local, self.remote)
    }

    fn section(&self) -> Section {
        let [up, down] = self.carried.clone();
        let carried = Chart::new("Bytes carried", "stream", "MiB")
            .series("sent", Style::Step, Hue::Blue, up)
            .series("received", Style::Step, Hue::Green, down);
        let [sent, received] = [&self.carried[0], &self.carried[1]].map(rates);
        let rate = Chart::new("Rate", "rate", "Mbit/s")
            .series("sent", Style::Step, Hue::Blue, sent)
            .series("received", Style::Step, Hue::Green, received);
        let [windows, rtt] = self.trace.charts();
        let charts = vec![carried, rate, windows, rtt];
        Section { title: self.title(), charts, ..Section::default() }
    }
}

/// The rate over time of what was carried: MiB over seconds become Mbit/s, in at most fifty steps.
fn rates(carried: &Points) -> Points {
    let (Some(&(began, _)), Some(&(ended, _))) = (carried.first(), carried.last()) else {
        return Points::new();
    };
    let step = ((ended - began) / 50.0).max(0.01);
    let mut points = Points::new();
    let mut from = (began, carried.first().map_or(0.0, |(_, bytes)| *bytes));
    for &(at, bytes) in carried {
        if at - from.0 >= step {
            points.push((at, (bytes - from.1) * 1024.0 * 1024.0 * 8.0 / 1e6 / (at - from.0)));
            from = (at, bytes);
        }
    }
    points
}

/// All connections of a program.
#[derive(Clone, Debug, Default)]
pub struct Connections {
    /// The program and its TCP, in words.
    pub lead: String,
    /// The connections that were sampled, in their order.
    pub seen: Vec<Seen>,
    /// How many there were besides.
    pub unseen: u64,
    /// How many the kernel carried.
    pub by_kernel: u64,
    /// The command that makes them again.
    pub command: String,
}

/// The page's contents.
impl From<&Connections> for ReportData {
    fn from(all: &Connections) -> ReportData {
        let mut largest: Vec<&Seen> = all.seen.iter().collect();
        largest.sort_by_key(|seen| std::cmp::Reverse(seen.total()));
        largest.truncate(CHARTS);
        let mut notes = vec!["Times are real: another run gives a different picture.".to_owned()];
        if all.seen.len() > CHARTS {
            notes.push(format!("Charts are shown for the {CHARTS} connections that carried most."));
        }
        if all.unseen > 0 {
            notes.push(format!("{} further connections were not sampled.", all.unseen));
        }
        ReportData {
            title: "Transom exec".into(),
            lead: all.lead.clone(),
            summary: all.summary(),
            blocks: vec![Block::Table(all.table())],
            sections: largest.into_iter().map(Seen::section).collect(),
            notes,
            command: all.command.clone(),
            ..ReportData::default()
        }
    }
}

impl Connections {
    fn summary(&self) -> Vec<Row> {
        let sum = |part: &dyn Fn(&Seen) -> u64| self.seen.iter().map(part).sum::<u64>().to_string();
        let last = |part: &dyn Fn(&Counters) -> u64| {
            sum(&|seen: &Seen| seen.trace.last.as_ref().map_or(0, |last| part(&last.counters)))
        };
        vec![
            Row::new(
                "Connections by Transom",
                [(self.seen.len() as u64 + self.unseen).to_string()],
            ),
            Row::new("Connections by the kernel", [self.by_kernel.to_string()]),
            Row::new("Bytes sent", [sum(&|seen| seen.bytes[0])]),
            Row::new("Bytes received", [sum(&|seen| seen.bytes[1])]),
            Row::new("Segments sent again", [last(&|counters| counters.retransmitted_segments)]),
            Row::new("Retransmission timeouts", [last(&|counters| counters.timeouts)]),
        ]
    }

    fn table(&self) -> Table {
        let head = [
            "local",
            "remote",
            "units",
            "seconds#",
            "sent, bytes#",
            "received, bytes#",
            "sent, Mbit/s#",
            "received, Mbit/s#",
            "sent again#",
            "round-trip time, ms#",
        ];
        let mut table = Table::new("Connections", &head);
        table.rows = self
            .seen
            .iter()
            .map(|seen| {
                let last = seen.trace.last.as_ref();
                let rtt = last.and_then(|last| last.srtt);
                let rtt = rtt.map_or("–".into(), |rtt| format!("{:.3}", rtt.as_secs_f64() * 1e3));
                let again = last.map_or(0, |last| last.counters.retransmitted_segments);
                vec![
                    seen.local.clone().into(),
                    seen.remote.clone().into(),
                    seen.congestion.clone().into(),
                    format!("{:.3}", seen.seconds()).into(),
                    seen.bytes[0].to_string().into(),
                    seen.bytes[1].to_string().into(),
                    seen.rate(0).into(),
                    seen.rate(1).into(),
                    again.to_string().into(),
                    rtt.into(),
                ]
            })
            .collect();
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_connections_are_one_page() {
        let seen = |number: u64| {
            let mut seen = Seen::new("10.9.0.2:40000", format!("10.9.0.1:{number}"), 0.5);
            seen.bytes = [number, 1];
            seen.ended = 1.0;
            seen
        };
        let connections = Connections {
            seen: (0..20).map(seen).collect(),
            unseen: 3,
            by_kernel: 2,
            ..Connections::default()
        };
        let data = ReportData::from(&connections);
        assert_eq!(data.sections.len(), CHARTS);
        assert_eq!(data.sections[0].title, "10.9.0.2:40000 – 10.9.0.1:19");
        assert_eq!(data.summary[0].values, ["23"]);
        assert_eq!(data.summary[2].values, ["190"]);
        let Block::Table(table) = &data.blocks[0] else { panic!("a table") };
        assert_eq!(table.rows.len(), 20);
        assert_eq!(table.rows[3][3].text, "0.500");
    }
}
