//! A connection, as the live view shows it.

use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use transom_net::ConnectionStatus;

/// The longest text of another process that is kept, in characters.
const LONGEST: usize = 64;
/// The most extensions and variables of a connection that are kept.
const MOST: usize = 16;

/// Where a connection is.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Source {
    /// In a process that runs Transom.
    Transom {
        /// The process.
        pid: u32,
        /// Its name, as the kernel has it.
        name: String,
    },
    /// In the kernel.
    Kernel {
        /// The user who has the socket.
        user: u32,
        /// The processes that have it, by their numbers: as many as this user may see, and no more than sixteen.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        processes: Vec<Process>,
    },
}

/// A process.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// Its name, as the kernel has it.
    pub name: String,
}

/// A connection at one moment. Sizes are in bytes, and rates in bytes per second.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Row {
    /// A name that no other connection has: `PID.HOST.SHARD.NUMBER`, or `k` and the kernel's cookie.
    #[serde(default)]
    pub key: String,
    /// Where it is.
    #[serde(default = "nowhere")]
    pub source: Source,
    /// Its own end.
    pub local: SocketAddr,
    /// The other end.
    pub remote: SocketAddr,
    /// The state of RFC 9293, in small letters.
    pub state: String,
    /// The congestion controller's name.
    #[serde(default)]
    pub congestion: String,
    /// The congestion phase, if it is known.
    #[serde(default)]
    pub phase: String,
    /// Payload of a full segment.
    #[serde(default)]
    pub mss: u64,
    /// The congestion window.
    #[serde(default)]
    pub cwnd: u64,
    /// The slow-start threshold; nothing before the first reduction.
    #[serde(default)]
    pub ssthresh: Option<u64>,
    /// The peer's receive window, if it is known.
    #[serde(default)]
    pub send_window: Option<u64>,
    /// The receive window that is offered, if it is known.
    #[serde(default)]
    pub receive_window: Option<u64>,
    /// Bytes in flight.
    #[serde(default)]
    pub in_flight: u64,
    /// Smoothed round-trip time, microseconds.
    #[serde(default)]
    pub rtt_us: Option<u64>,
    /// The least round-trip time, microseconds.
    #[serde(default)]
    pub min_rtt_us: Option<u64>,
    /// The retransmission timeout with its back-off, microseconds.
    #[serde(default)]
    pub rto_us: u64,
    /// Segments sent again, in all.
    #[serde(default)]
    pub retransmitted: u64,
    /// Bytes believed lost: in all with Transom, of those in flight with the kernel.
    #[serde(default)]
    pub lost: u64,
    /// Retransmission timeouts, in all.
    #[serde(default)]
    pub timeouts: u64,
    /// Payload bytes sent, retransmissions included.
    #[serde(default)]
    pub sent: u64,
    /// New payload bytes received.
    #[serde(default)]
    pub received: u64,
    /// The rate of `sent` between the last two looks; nothing after the first.
    #[serde(default)]
    pub send_rate: Option<u64>,
    /// The rate of `received` between the last two looks; nothing after the first.
    #[serde(default)]
    pub receive_rate: Option<u64>,
    /// The rate at which data was delivered to the peer lately.
    #[serde(default)]
    pub delivery_rate: Option<u64>,
    /// The limit of the sender: `application`, `peer-window`, `cwnd`, `pacing`, `virtual-cwnd` or `send-buffer`; empty if it is not known.
    #[serde(default)]
    pub limited_by: String,
    /// The names of its extensions.
    #[serde(default)]
    pub layers: Vec<String>,
    /// The names of extensions that are not attached, or not any more, with the reasons.
    #[serde(default)]
    pub departed: Vec<String>,
    /// The variables of which extensions ask something.
    #[serde(default)]
    pub limits: Vec<Limit>,
}

/// The request of extensions for one variable, and its outcome.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Limit {
    /// The variable's name.
    pub variable: String,
    /// TCP's own value.
    pub own: u64,
    /// The request, as an interval; nothing if the requests contradict each other.
    pub asked: Option<String>,
    /// The value in use.
    pub used: u64,
    /// The deciding party: `tcp`, an extension's name, `safe-range` or `conflict`.
    pub by: String,
}

fn nowhere() -> Source {
    Source::Kernel { user: 0, processes: Vec::new() }
}

impl Source {
    /// The TCP in one word.
    pub const fn tcp(&self) -> &'static str {
        match self {
            Source::Transom { .. } => "Transom",
            Source::Kernel { .. } => "kernel",
        }
    }

    /// The process in one word: `name[pid]`, with `+N` if N others have the socket too; `-` if it is not known.
    pub fn name(&self) -> String {
        match self {
            Source::Transom { pid, name } => format!("{name}[{pid}]"),
            Source::Kernel { processes, .. } => match processes.as_slice() {
                [] => "-".to_owned(),
                [Process { pid, name }] => format!("{name}[{pid}]"),
                [Process { pid, name }, others @ ..] => format!("{name}[{pid}]+{}", others.len()),
            },
        }
    }

    /// Whether a process with this name or number has the connection.
    pub fn is_of(&self, wanted: &str) -> bool {
        let is = |pid: u32, name: &str| name == wanted || wanted.parse() == Ok(pid);
        match self {
            Source::Transom { pid, name } => is(*pid, name),
            Source::Kernel { processes, .. } => {
                processes.iter().any(|process| is(process.pid, &process.name))
            }
        }
    }
}

impl Row {
    /// A connection of a host in this process. Its source is filled in by whoever asks.
    pub fn of(status: &ConnectionStatus) -> Row {
        let info = &status.info;
        let micros = |time: transom_tcp::time::Duration| time.as_micros();
        let limits = status.requests.iter().map(|request| Limit {
            variable: request.variable.name().to_owned(),
            own: request.ruling.own,
            asked: request.ruling.requested.map(|asked| asked.to_string()),
            used: request.ruling.effective,
            by: request.by.clone(),
        });
        Row {
            key: format!("{}.{}", status.shard, status.connection),
            source: nowhere(),
            local: status.local,
            remote: status.remote,
            state: info.state.name().to_owned(),
            congestion: info.congestion.to_string(),
            phase: info.phase.name().to_owned(),
            mss: info.mss.into(),
            cwnd: info.cwnd,
            ssthresh: (info.ssthresh < u64::MAX).then_some(info.ssthresh),
            send_window: Some(info.snd_wnd),
            receive_window: Some(info.rcv_wnd),
            in_flight: info.in_flight,
            rtt_us: info.srtt.map(micros),
            min_rtt_us: info.min_rtt.map(micros),
            rto_us: micros(info.effective_rto),
            retransmitted: info.counters.retransmitted_segments,
            lost: info.counters.lost_bytes,
            timeouts: info.counters.timeouts,
            sent: info.counters.bytes_sent,
            received: info.counters.bytes_accepted,
            send_rate: None,
            receive_rate: None,
            delivery_rate: info.delivery_rate,
            limited_by: info.limited_by.name().to_owned(),
            layers: status.layers.clone(),
            departed: status.departed.clone(),
            limits: limits.collect(),
        }
    }

    /// Makes the texts of another process harmless: short, and without control characters, which a terminal would obey.
    pub fn clean(&mut self) {
        for text in [&mut self.key, &mut self.state, &mut self.congestion, &mut self.phase] {
            clean(text);
        }
        clean(&mut self.limited_by);
        for texts in [&mut self.layers, &mut self.departed] {
            texts.truncate(MOST);
            texts.iter_mut().for_each(clean);
        }
        self.limits.truncate(MOST);
        for limit in &mut self.limits {
            clean(&mut limit.variable);
            clean(&mut limit.by);
            limit.asked.iter_mut().for_each(clean);
        }
    }

    /// The limit of the congestion window, if extensions ask anything of it.
    pub fn cwnd_limit(&self) -> Option<&Limit> {
        self.limits.iter().find(|limit| limit.variable == "cwnd")
    }
}

/// Shortens a text, and replaces its control characters and those that change the direction of writing.
pub(crate) fn clean(text: &mut String) {
    let harmful = |c: char| {
        c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
    };
    if text.chars().any(harmful) || text.chars().nth(LONGEST).is_some() {
        *text = text.chars().take(LONGEST).map(|c| if harmful(c) { '?' } else { c }).collect();
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A connection of process `pid`.
    pub(crate) fn row(pid: u32, number: u32, local: &str, remote: &str) -> Row {
        let (local, remote): (SocketAddr, SocketAddr) =
            (local.parse().unwrap(), remote.parse().unwrap());
        let text = serde_json::json!({ "local": local, "remote": remote, "state": "established" });
        let mut row: Row = serde_json::from_value(text).unwrap();
        row.key = format!("{pid}.0.{number}");
        row.source = Source::Transom { pid, name: "program".into() };
        row
    }

    #[test]
    fn nothing_of_another_process_steers_a_terminal() {
        let mut row = row(1, 1, "10.0.0.1:1", "10.0.0.2:2");
        row.state = "\u{1b}[2Jestablished".into();
        row.congestion = "x".repeat(10_000);
        row.layers = vec!["a\nb".into(); 100];
        row.limits = vec![
            Limit {
                variable: "cwnd\u{202e}".into(),
                own: 1,
                asked: Some("\u{7}".into()),
                used: 1,
                by: "\r".into()
            };
            100
        ];
        row.clean();
        assert_eq!(row.state, "?[2Jestablished");
        assert_eq!(row.congestion.chars().count(), LONGEST);
        assert_eq!((row.layers.len(), row.layers[0].as_str()), (MOST, "a?b"));
        let limit = &row.limits[0];
        assert_eq!((limit.variable.as_str(), limit.by.as_str()), ("cwnd?", "?"));
        assert_eq!((row.limits.len(), limit.asked.as_deref()), (MOST, Some("?")));
    }
}
