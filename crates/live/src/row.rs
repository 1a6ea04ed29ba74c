//! A connection, as the live view shows it.

use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use transom_net::ConnectionStatus;
use transom_tcp::{ConnectionState, Name, Untold};

/// The longest text of another process that is kept, in characters.
const LONGEST: usize = 64;
/// The state of a connection whose source does not tell it.
pub(crate) const UNKNOWN: &str = "unknown";
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
    pub(crate) pid: u32,
    /// Its name, as the kernel has it.
    pub(crate) name: String,
}

/// A connection at one moment. `values` are what the status protocol says of its state.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Row {
    /// A name that no other connection has: `PID.HOST.SHARD.NUMBER`, or `k` and the kernel's cookie.
    pub key: String,
    /// Where it is.
    pub source: Source,
    /// Its own end.
    pub local: SocketAddr,
    /// The other end.
    pub remote: SocketAddr,
    /// Its state, as far as the protocol tells it.
    pub tcp: ConnectionState,
    /// The rate of sending between the last two looks, bytes per second; nothing after the first.
    pub send_rate: Option<u64>,
    /// The rate of receiving between the last two looks; nothing after the first.
    pub receive_rate: Option<u64>,
    /// The names of its extensions.
    pub layers: Vec<String>,
    /// The names of extensions that are not attached, or not any more, with the reasons.
    pub departed: Vec<String>,
    /// The variables of which extensions ask something.
    pub limits: Vec<Limit>,
}

/// The request of extensions for one variable, and its outcome.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
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

pub(crate) fn nowhere() -> Source {
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
    pub(crate) fn of(status: &ConnectionStatus) -> Row {
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
            tcp: status.info,
            send_rate: None,
            receive_rate: None,
            layers: status.layers.clone(),
            departed: status.departed.clone(),
            limits: limits.collect(),
        }
    }

    /// The name of its state: that of RFC 9293, in small letters. A listener has no connection, and so no remote port.
    pub fn state(&self) -> &'static str {
        match self.tcp.untold.contains(Untold::STATE) {
            true if self.remote.port() == 0 => "listen",
            true => UNKNOWN,
            false => self.tcp.state.name(),
        }
    }

    /// The name of the limit of its sender; empty if it is not known.
    pub fn limit(&self) -> &'static str {
        if self.tcp.untold.contains(Untold::LIMIT) { "" } else { self.tcp.limited_by.name() }
    }

    /// Makes the texts of another process harmless: short, and without control characters, which a terminal would obey.
    pub(crate) fn clean(&mut self) {
        clean(&mut self.key);
        let mut congestion = self.tcp.congestion.to_string();
        clean(&mut congestion);
        self.tcp.congestion = Name::cut(&congestion);
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

    /// The congestion window in use.
    pub fn window(&self) -> u64 {
        self.cwnd_limit().map_or(self.tcp.cwnd, |limit| limit.used)
    }

    /// The limit of the congestion window, if extensions ask anything of it.
    fn cwnd_limit(&self) -> Option<&Limit> {
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
        row.tcp.congestion = Name::cut("\u{1b}[2Jcubic");
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
        assert_eq!(row.tcp.congestion, "?[2Jcubic");
        assert_eq!((row.layers.len(), row.layers[0].as_str()), (MOST, "a?b"));
        let limit = &row.limits[0];
        assert_eq!((limit.variable.as_str(), limit.by.as_str()), ("cwnd?", "?"));
        assert_eq!((row.limits.len(), limit.asked.as_deref()), (MOST, Some("?")));
    }
}
