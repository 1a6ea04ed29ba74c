//! What is logged, read back.

use super::super::{RunOptions, simulate};
use crate::scenario::Scenario;
use std::fs;
use std::path::Path;
use transom_stack::log::file::{Entry, read};
use transom_stack::log::{FlowEvent, What};
use transom_tcp::time::{Duration, Instant};

const SCENARIO: &str = r#"
[scenario]
name = "logged"
duration = "5s"
[topology]
kind = "dumbbell"
pairs = 2
bottleneck = { rate = "2Mbit/s", delay = "10ms", queue = "8 packets" }
[[flows]]
name = "file"
from = "sender1"
to = "receiver1"
kind = "transfer"
size = "300kB"
[[flows]]
name = "other"
from = "sender2"
to = "receiver2"
kind = "bulk"
[measure]
log = ["sender1", "receiver"]
"#;

fn entries(path: &Path) -> Vec<Entry> {
    let (header, entries) = read(&fs::read(path).unwrap()).unwrap();
    assert_eq!((header.origin, header.places), (0, 0));
    entries
}

/// The bytes of all events of a kind.
fn bytes(entries: &[Entry], kind: FlowEvent) -> u64 {
    let of = |entry: &Entry| match entry.record.as_ref().unwrap().what {
        What::Flow(event, values) if event == kind => u64::from(values.bytes),
        _ => 0,
    };
    entries.iter().map(of).sum()
}

/// Every byte is in the log of the host that sent it and of the one that got it, in order and without gaps, whatever the queue dropped.
#[test]
fn a_log_has_everything() {
    let directory = tempfile::tempdir().unwrap();
    let scenario = Scenario::parse("logged.toml", SCENARIO).unwrap_or_else(|one| panic!("{one}"));
    let resolved = scenario.sweep().next().unwrap().resolved;
    let options = RunOptions { output: Some(directory.path()), ..RunOptions::new(Path::new("")) };
    simulate(&resolved, 1, options, |_, _| true).unwrap().unwrap();
    let mut names: Vec<String> = fs::read_dir(directory.path())
        .unwrap()
        .map(|one| one.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["log-receiver1.tlog", "log-receiver2.tlog", "log-sender1.tlog"]);

    let sender = entries(&directory.path().join("log-sender1.tlog"));
    let receiver = entries(&directory.path().join("log-receiver1.tlog"));
    for log in [&sender, &receiver] {
        assert!((0..).zip(log).all(|(number, one)| one.sequence == number && one.missed == 0));
        let times: Vec<Instant> = log.iter().map(|one| one.record.as_ref().unwrap().at).collect();
        assert!(
            times.is_sorted() && *times.last().unwrap() < Instant::ZERO + Duration::from_secs(5)
        );
    }
    // 300,000 bytes, SYN and FIN.
    assert_eq!(bytes(&sender, FlowEvent::Sent), 300_002);
    assert_eq!(bytes(&receiver, FlowEvent::Arrived), 300_000);
    assert!(bytes(&sender, FlowEvent::Retransmitted) > 0, "the queue was never full");
}

#[test]
fn only_hosts_have_logs() {
    let text = SCENARIO.replace("\"receiver\"", "\"bottleneck\"");
    let error = Scenario::parse("logged.toml", &text).unwrap_err().to_string();
    assert!(error.contains("there is no host called `bottleneck`"), "{error}");
}

/// A run that is ended leaves nothing behind.
#[test]
fn nothing_is_left_of_a_run_that_was_ended() {
    let directory = tempfile::tempdir().unwrap();
    let scenario = Scenario::parse("logged.toml", SCENARIO).unwrap_or_else(|one| panic!("{one}"));
    let resolved = scenario.sweep().next().unwrap().resolved;
    let options = RunOptions { output: Some(directory.path()), ..RunOptions::new(Path::new("")) };
    assert!(simulate(&resolved, 1, options, |_, _| false).unwrap().is_none());
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}
