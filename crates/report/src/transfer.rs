//! The page of two transfers over the same path, one each way, from what was sampled while they went on.
//!
//! ```
//! use transom_report::{Outcome, QueueTrace, ReportData, Trace, Transfers, render};
//! use transom_sim::link::Counters;
//! use transom_tcp::ConnectionState;
//!
//! let mut trace = Trace::default();
//! let mut state = ConnectionState::unknown();
//! (state.cwnd, state.in_flight) = (14_600, 14_600);
//! trace.add(0.005, &state);
//! (state.cwnd, state.in_flight) = (29_200, 20_440);
//! trace.add(0.010, &state);
//! let (sha256, seconds) = ("c0ffee".to_owned(), 0.01);
//! let there = Outcome { title: "there".into(), seconds, sha256, trace, ..Outcome::default() };
//! let back = Outcome { title: "back".into(), ..there.clone() };
//! let transfers = Transfers {
//!     lead: "Over a cable.".into(),
//!     bytes: 20_440,
//!     sha256: "c0ffee",
//!     outcomes: [&there, &back],
//!     queues: [&QueueTrace::default(), &QueueTrace::default()],
//!     path: [&Counters::default(), &Counters::default()],
//!     kernel_sends_back: false,
//!     command: "transom demo".into(),
//! };
//! assert!(render(&ReportData::from(&transfers)).contains("Windows of the sender"));
//! ```

use transom_sim::link::Counters;
use transom_tcp::time::Duration;
use transom_tcp::{ConnectionState, Untold};

use crate::{Chart, Hue, MOST_POINTS, Points, ReportData, Row, Section, Shape, Style};

/// The samples of one transfer, as series over seconds. Windows are in KiB, round-trip times in milliseconds.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    window: Points,
    ssthresh: Points,
    in_flight: Points,
    smoothed: Points,
    last_rtt: Points,
    min_rtt: Points,
    /// Retransmission timeouts, at the height of cwnd.
    timeouts: Points,
    /// The state that was added last.
    pub last: Option<ConnectionState>,
}

impl Trace {
    /// Adds the state of the sender, taken `at` this many seconds.
    pub fn add(&mut self, at: f64, sender: &ConnectionState) {
        let kib = |bytes: u64| bytes as f64 / 1024.0;
        let ms = |span: Duration| span.as_secs_f64() * 1e3;
        self.window.push((at, kib(sender.cwnd)));
        let threshold = Some(sender.ssthresh).filter(|&threshold| threshold != u64::MAX);
        self.ssthresh.push((at, threshold.map_or(f64::NAN, kib)));
        self.in_flight.push((at, kib(sender.in_flight)));
        if let Some(srtt) = sender.srtt {
            self.smoothed.push((at, ms(srtt)));
        }
        if let Some(rtt) = sender.last_rtt {
            self.last_rtt.push((at, ms(rtt)));
        }
        if let Some(rtt) = sender.min_rtt {
            self.min_rtt.push((at, ms(rtt)));
        }
        let before = self.last.map_or(0, |last| last.counters.timeouts);
        if sender.counters.timeouts > before {
            self.timeouts.push((at, kib(sender.cwnd)));
        }
        self.last = Some(*sender);
    }

    /// The charts of the windows and of the round-trip time.
    pub(crate) fn charts(&self) -> [Chart; 2] {
        let windows = Chart::new("Windows of the sender", "window", "KiB")
            .series("cwnd", Style::Step, Hue::Blue, self.window.clone())
            .series("ssthresh", Style::Step, Hue::Orange, self.ssthresh.clone())
            .series("in flight", Style::Line, Hue::Green, self.in_flight.clone())
            .markers("timeout", Shape::Ring, Hue::Red, self.timeouts.clone());
        let rtt = Chart::new("Round-trip time", "time", "ms")
            .floating()
            .series("smoothed", Style::Line, Hue::Blue, self.smoothed.clone())
            .series("smallest", Style::Step, Hue::Pink, self.min_rtt.clone())
            .series("last sample", Style::Dots, Hue::Grey, self.last_rtt.clone());
        [windows, rtt]
    }

    /// How many retransmission timeouts there were, if the sender tells.
    pub fn timeouts(&self) -> Option<u64> {
        let told = self.last.filter(|last| !last.untold.contains(Untold::TIMEOUTS));
        told.map(|last| last.counters.timeouts)
    }
}

/// One end's data as it passed: seconds, and bytes of the stream up to there.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ByteTraces {
    /// Data that was sent for the first time.
    pub sent: Points,
    /// Data that was sent again.
    pub resent: Points,
    /// Acknowledgements.
    pub acked: Points,
}

/// Queue lengths and drops at one end of the path: seconds and bytes.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct QueueTrace {
    /// How long the queue was.
    pub lengths: Points,
    /// How long it was when it dropped a packet.
    pub drops: Points,
}

/// The result of a transfer.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// From whom to whom.
    pub title: String,
    /// The sender's congestion control.
    pub congestion: String,
    /// When it began, in seconds.
    pub started: f64,
    /// How long it took, in seconds.
    pub seconds: f64,
    /// The hash of what arrived.
    pub sha256: String,
    /// How many segments were sent again.
    pub retransmitted: u64,
    /// How many retransmission timeouts there were, if the sender tells.
    pub timeouts: Option<u64>,
    /// The smoothed round-trip time at the end.
    pub rtt: Option<Duration>,
    /// The samples of the sender.
    pub trace: Trace,
    /// The packets at the device.
    pub passed: ByteTraces,
}

impl Outcome {
    /// The rate in Mbit/s, if `len` bytes were sent.
    pub fn megabits(&self, len: u64) -> f64 {
        len as f64 * 8.0 / self.seconds.max(1e-9) / 1e6
    }
}

/// The two transfers.
#[derive(Clone, Debug)]
pub struct Transfers<'a> {
    /// Between whom they were, and over which path.
    pub lead: String,
    /// How long each was.
    pub bytes: u64,
    /// The hash of what was sent.
    pub sha256: &'a str,
    /// The results of both directions.
    pub outcomes: [&'a Outcome; 2],
    /// The queues that they met.
    pub queues: [&'a QueueTrace; 2],
    /// The link counters of both directions.
    pub path: [&'a Counters; 2],
    /// Whether the samples of the one back are the kernel's.
    pub kernel_sends_back: bool,
    /// The command that makes them again.
    pub command: String,
}

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
        // However long after the end an acknowledgement comes.
        while at > edge && points.len() < MOST_POINTS {
            points.push((edge - step / 2.0, (bytes - last) * 8.0 / step / 1e6));
            last = bytes;
            edge += step;
        }
        bytes = acked.max(bytes);
    }
    points
}

fn section(outcome: &Outcome, queue: &QueueTrace, sampled_by_kernel: bool) -> Section {
    let Outcome { trace, passed, .. } = outcome;
    let [windows, rtt] = trace.charts();
    let windows = windows.caption(if sampled_by_kernel {
        "As the kernel's TCP_INFO tells them, every 5 ms."
    } else {
        "Sampled every 5 ms."
    });
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

/// The page's contents.
impl From<&Transfers<'_>> for ReportData {
    fn from(transfers: &Transfers<'_>) -> ReportData {
        let sections = transfers.outcomes.iter().zip(transfers.queues).enumerate();
        let sections = sections.map(|(index, (outcome, queue))| {
            section(outcome, queue, index == 1 && transfers.kernel_sends_back)
        });
        ReportData {
            title: "Transom demo".into(),
            lead: transfers.lead.clone(),
            columns: transfers.outcomes.iter().map(|outcome| outcome.title.clone()).collect(),
            summary: transfers.summary(),
            sections: sections.collect(),
            notes: NOTES.map(String::from).into(),
            command: transfers.command.clone(),
            ..ReportData::default()
        }
    }
}

impl Transfers<'_> {
    fn summary(&self) -> Vec<Row> {
        let both = |value: &dyn Fn(&Outcome) -> String| self.outcomes.map(value);
        let links = |value: &dyn Fn(&Counters) -> u64| self.path.map(|way| value(way).to_string());
        let timeouts = |outcome: &Outcome| {
            outcome.timeouts.map_or("not told".into(), |count| count.to_string())
        };
        let rtt = |outcome: &Outcome| {
            outcome.rtt.map_or("–".into(), |rtt| format!("{:.2} ms", rtt.as_secs_f64() * 1e3))
        };
        let goodput = |outcome: &Outcome| format!("{:.2} Mbit/s", outcome.megabits(self.bytes));
        let intact = self.outcomes.iter().all(|outcome| outcome.sha256 == self.sha256);
        vec![
            Row::new("Bytes", both(&|_| self.bytes.to_string())),
            Row::new("Congestion control of the sender", both(&|one| one.congestion.clone())),
            Row::new("Time", both(&|outcome| format!("{:.3} s", outcome.seconds))),
            Row::new("Goodput", both(&goodput)),
            Row::new("Segments sent again", both(&|one| one.retransmitted.to_string())),
            Row::new("Retransmission timeouts", both(&timeouts)),
            Row::new("Smoothed round-trip time at the end", both(&rtt)),
            Row::new("Packets offered to the path", links(&|way| way.offered.packets)),
            Row::new("Lost on the path", links(&|way| way.lost.packets)),
            Row::new("Dropped by the queue", links(&|way| way.queue_full.packets)),
            Row::new("SHA-256 of the copy", both(&|one| one.sha256.clone())).verdict(intact),
        ]
    }
}

const NOTES: [&str; 2] = [
    "Packet counts of the path are those of the direction over the whole run; the small difference between two \
     directions is acknowledgements.",
    "Times are real: another run gives a slightly different picture, with the same losses by number of packet. \
     The second transfer meets the losses of the first.",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_become_series_and_timeouts_are_seen_once() {
        let mut trace = Trace::default();
        for (at, timeouts) in [(0.1, 0), (0.2, 1), (0.3, 1)] {
            let mut sample = ConnectionState::unknown();
            (sample.cwnd, sample.counters.timeouts) = (2048, timeouts);
            trace.add(at, &sample);
        }
        assert_eq!(trace.window, [(0.1, 2.0), (0.2, 2.0), (0.3, 2.0)]);
        assert_eq!(trace.timeouts, [(0.2, 2.0)]);
        assert!(
            trace.ssthresh.iter().all(|(_, height)| height.is_nan()) && trace.smoothed.is_empty()
        );
        assert_eq!(trace.last.unwrap().counters.timeouts, 1);
        // A sender that is not known does not tell.
        assert_eq!(trace.timeouts(), None);
    }

    #[test]
    fn goodput_is_what_is_acknowledged_in_a_window() {
        // Fifty windows of 0.1 s: 12,500 bytes in the first are 1 Mbit/s, and nothing follows until the third.
        let outcome = Outcome { started: 1.0, seconds: 5.0, ..Outcome::default() };
        let points = goodput(&[(1.05, 12_500.0), (1.25, 25_000.0)], &outcome);
        assert_eq!(points.len(), 2);
        assert!((points[0].0 - 1.05).abs() < 1e-9 && (points[0].1 - 1.0).abs() < 1e-9);
        assert!(points[1].1.abs() < 1e-9);
        assert_eq!(goodput(&[(f64::INFINITY, 1.0)], &outcome).len(), MOST_POINTS);
    }
}
