//! The log: what each connection asked and got, and why, in the order in which it happened.

use std::collections::VecDeque;
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::report::Limit;

/// Lines that are kept.
const KEPT: usize = 16_384;

/// A line of the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LogLine {
    /// Its number; the first is zero.
    #[serde(rename = "seq")]
    pub number: u64,
    /// When, in nanoseconds of the system's monotonic clock.
    #[serde(rename = "ns")]
    pub time: u64,
    /// The kernel's number for the socket (`SO_COOKIE`).
    pub connection: u64,
    /// The event.
    #[serde(flatten)]
    pub event: LogEvent,
}

/// The events of a connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum LogEvent {
    /// It came under control.
    Opened {
        /// This end.
        local: SocketAddr,
        /// The other end.
        remote: SocketAddr,
        /// The algorithm that it had.
        had: String,
        /// Whether extensions can limit it: there was room for its requests.
        limited: bool,
    },
    /// It has gone, or back to the algorithm that it had.
    Closed,
    /// Everything was acknowledged that was outstanding at the beginning of a round trip.
    Round(Windows),
    /// Fast recovery begins.
    Loss(Windows),
    /// The retransmission timer has expired.
    Timeout(Windows),
    /// What is asked of a variable has changed: what it is, what is used, and who decides.
    Request(Limit),
    /// An extension was not attached, or is not any more.
    Departed {
        /// Which, and why.
        reason: String,
    },
}

/// The windows and times of a connection at an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Windows {
    /// TCP's own congestion window, bytes.
    pub(crate) own: u64,
    /// The window that is used, bytes.
    pub(crate) used: u64,
    /// Bytes in flight.
    pub(crate) in_flight: u64,
    /// Smoothed round-trip time, microseconds.
    pub(crate) srtt_us: Option<u64>,
    /// The round-trip time of this event's acknowledgement, microseconds.
    pub(crate) rtt_us: Option<u64>,
    /// The least round-trip time, microseconds.
    pub(crate) min_rtt_us: Option<u64>,
    /// Acknowledgements until now whose record was lost.
    pub(crate) missed: u64,
}

/// A part of the log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LogPart {
    /// The lines, the oldest first.
    pub lines: Vec<LogLine>,
    /// The number of the next line to ask for.
    pub next: u64,
    /// Lines that were asked for and are not kept any more.
    pub missed: u64,
}

/// The last lines.
#[derive(Debug, Default)]
pub(crate) struct Log {
    lines: VecDeque<LogLine>,
    next: u64,
}

impl Log {
    pub(crate) fn write(&mut self, time: u64, connection: u64, event: LogEvent) {
        if self.lines.len() == KEPT {
            self.lines.pop_front();
        }
        self.lines.push_back(LogLine { number: self.next, time, connection, event });
        self.next += 1;
    }

    /// The lines from a number on, at most `most`.
    pub(crate) fn read(&self, from: u64, most: usize) -> LogPart {
        let oldest = self.next - u64::try_from(self.lines.len()).unwrap_or(0);
        let begin = from.max(oldest);
        let skipped = usize::try_from(begin - oldest).unwrap_or(usize::MAX);
        let lines: Vec<_> = self.lines.iter().skip(skipped).take(most).cloned().collect();
        let next = lines.last().map_or(begin.min(self.next), |line| line.number + 1);
        LogPart { lines, next, missed: begin.min(self.next).saturating_sub(from) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_learns_how_many_it_missed() {
        let mut log = Log::default();
        assert_eq!(log.read(0, 10), LogPart::default());
        let kept = u64::try_from(KEPT).unwrap();
        for time in 0..kept + 5 {
            log.write(time, 7, LogEvent::Closed);
        }
        let part = log.read(0, 3);
        assert_eq!((part.missed, part.next, part.lines.len()), (5, 8, 3));
        assert_eq!((part.lines[0].number, part.lines[0].time), (5, 5));
        let part = log.read(part.next, KEPT);
        assert_eq!((part.missed, part.next), (0, kept + 5));
        assert_eq!(log.read(part.next, 1), LogPart { next: kept + 5, ..LogPart::default() });
        assert_eq!(log.read(u64::MAX, 1).lines, []);
    }

    #[test]
    fn a_line_is_one_object() {
        let line = LogLine {
            number: 3,
            time: 9,
            connection: 7,
            event: LogEvent::Departed { reason: "a".into() },
        };
        let text = serde_json::to_string(&line).unwrap();
        assert_eq!(text, r#"{"seq":3,"ns":9,"connection":7,"event":"departed","reason":"a"}"#);
        assert_eq!(serde_json::from_str::<LogLine>(&text).unwrap(), line);
    }
}
