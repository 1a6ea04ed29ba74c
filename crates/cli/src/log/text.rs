//! A record of an event log as a line that a person reads: when, which connection, what happened, and what the sender may do then.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Map, Value};

use crate::units::Bytes;

/// Makes lines of records. Times count from the first.
#[derive(Debug, Default)]
pub(super) struct Lines {
    began: Option<u64>,
    /// The first position of each connection's own data, and of the peer's, so that positions are bytes of the stream.
    first: BTreeMap<u64, u64>,
    ends: BTreeMap<u64, String>,
}

impl Lines {
    /// The line of a record in JSON, which is the form that describes every field.
    pub(super) fn line(&mut self, record: &str) -> String {
        let record: Map<String, Value> = serde_json::from_str(record).unwrap_or_default();
        let number = |key: &str| record.get(key).and_then(Value::as_u64);
        let word = |key: &str| record.get(key).and_then(Value::as_str).unwrap_or_default();
        let now = number("ns").unwrap_or_default();
        let began = *self.began.get_or_insert(now);
        let connection = number("connection").unwrap_or_default();
        if word("event") == "opened" {
            self.ends.insert(connection, format!("{} → {}", word("local"), word("remote")));
        }
        let mut text =
            format!("{:>10.6} s  {connection}  ", now.saturating_sub(began) as f64 / 1e9);
        let bytes = |key: &str| Bytes(number(key).unwrap_or_default()).to_string();
        let at = |first: &mut BTreeMap<u64, u64>, key: &str| {
            let position = number(key).unwrap_or_default();
            let first = *first.entry(connection).or_insert(position);
            // Sequence numbers go around.
            position.wrapping_sub(first) & 0xffff_ffff
        };
        let _ = match word("event") {
            "opened" => {
                let ends = self.ends.get(&connection).map_or("", String::as_str);
                write!(text, "opened {ends}")
            }
            "ack" if number("bytes") == Some(0) => write!(text, "duplicate acknowledgement"),
            "ack" => {
                let upto = at(&mut self.first, "snd_una");
                write!(text, "{} acknowledged, up to {upto}", bytes("bytes"))
            }
            "data" => {
                write!(text, "{} arrived, window offered {}", bytes("bytes"), bytes("rcv_wnd"))
            }
            "sent" => {
                let from = at(&mut self.first, "start");
                write!(text, "sent {} from {from}{}", bytes("bytes"), flags(number("tcp_flags")))
            }
            "retransmitted" => {
                let from = at(&mut self.first, "start");
                write!(text, "SENT AGAIN {} from {from}", bytes("bytes"))
            }
            "lost" => write!(text, "{} believed lost", bytes("bytes")),
            "recovery" => write!(text, "fast recovery begins"),
            "timeout" => write!(text, "TIMEOUT of the retransmission timer"),
            "undone" => write!(text, "a reduction of the window is taken back: it was needless"),
            "state" => {
                let error = word("error");
                let why = if error.is_empty() { String::new() } else { format!(": {error}") };
                write!(text, "state {} → {}{why}", word("from"), word("state"))
            }
            "request" => {
                let most = number("most").filter(|most| *most < 1 << 63);
                let asked = most.map_or("no limit".to_owned(), |most| most.to_string());
                let used = number("effective").unwrap_or_default();
                write!(text, "extensions ask {} of at most {asked}, used {used}", word("variable"))
            }
            "layer" => write!(text, "extension {} {}", word("name"), word("fate")),
            "limited" => {
                let (by, because) = (word("limited_by"), word("limited_because"));
                write!(text, "limited by {by} ({because})")
            }
            other => write!(text, "{other}"),
        };
        if let Some(cwnd) = number("cwnd") {
            let _ = write!(text, "; cwnd {}, in flight {}", Bytes(cwnd), bytes("in_flight"));
            if let Some(rtt) = number("srtt_us") {
                let _ = write!(text, ", RTT {}.{:03} ms", rtt / 1000, rtt % 1000);
            }
            let _ = write!(text, ", limited by {}", word("limited_by"));
        }
        text
    }
}

/// The flags that make a segment more than data.
fn flags(flags: Option<u64>) -> String {
    let names = [(1u64, "FIN"), (2, "SYN"), (4, "RST")];
    let set = names.iter().filter(|(bit, _)| flags.unwrap_or_default() & bit != 0);
    let set: Vec<&str> = set.map(|(_, name)| *name).collect();
    if set.is_empty() { String::new() } else { format!(" with {}", set.join(" and ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_become_sentences() {
        let mut lines = Lines::default();
        let opened = r#"{"seq":0,"ns":5000000000,"connection":0,"event":"opened","local":"10.9.0.2:80","remote":"10.9.0.1:7"}"#;
        assert_eq!(lines.line(opened), "  0.000000 s  0  opened 10.9.0.2:80 → 10.9.0.1:7");
        let sent = r#"{"ns":5010000000,"connection":0,"event":"sent","start":4294967290,"bytes":1000,"cwnd":14480,"in_flight":1000,"srtt_us":20110,"limited_by":"cwnd","tcp_flags":17}"#;
        assert_eq!(
            lines.line(sent),
            "  0.010000 s  0  sent 1000 B from 0 with FIN; cwnd 14.14 KiB, in flight 1000 B, RTT 20.110 ms, limited by cwnd"
        );
        let acked = r#"{"ns":5020000000,"connection":0,"event":"ack","snd_una":994,"bytes":1000}"#;
        assert!(lines.line(acked).ends_with("1000 B acknowledged, up to 1000"));
        let limited = r#"{"event":"limited","limited_by":"application","limited_because":"nagle"}"#;
        assert!(lines.line(limited).ends_with("limited by application (nagle)"));
        assert!(lines.line(r#"{"event":"timeout"}"#).contains("TIMEOUT"));
        assert!(lines.line("no JSON").contains(" s  0  "));
    }
}
