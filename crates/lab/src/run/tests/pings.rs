//! Pings, and every measure of a run as a number.

use super::*;

const PINGS: &str = r#"
[scenario]
name = "pings"
duration = "4s"

[hosts.a]
[hosts.b]

[[links]]
from = "a"
to = "b"
rate = "10Mbit/s"
delay = "10ms"

[[flows]]
name = "udp"
from = "a"
to = "b"
kind = "ping"
count = 2

[[flows]]
name = "tcp"
from = "a"
to = "b"
kind = "ping"
protocol = "tcp"
interval = "500ms"

[[expect]]
measure = "completion-time"
flow = "udp"
statistic = "max"
max = "21ms"
"#;

fn run(text: &str) -> (Resolved, Observations) {
    let scenario = Scenario::parse("test.toml", text).unwrap().point(0).unwrap().resolved;
    let options = RunOptions::new(Path::new(""));
    let seen = simulate(&scenario, 1, options, |_, _| true).unwrap().unwrap();
    (scenario, seen)
}

/// 20 ms of path, and an eighth of a millisecond each way for a packet of 155 bytes at 10 Mbit/s. On each way it may wait for a packet of another flow. One each
/// 200 ms, from the beginning.
#[test]
fn a_ping_takes_the_round_trip() {
    let (scenario, seen) = run(PINGS);
    for flow in &seen.flows[..2] {
        assert_eq!(flow.completions.len(), 20, "{}", flow.name);
        for (at, took) in &flow.completions {
            let took = took.as_nanos();
            assert!((20_000_000..=20_500_000).contains(&took), "{at:?}: {took}");
        }
    }
    let tcp = &seen.flows[2].completions;
    assert!((6..=8).contains(&tcp.len()), "{tcp:?}");
    assert!(tcp.iter().all(|(_, took)| took.as_millis() == 20), "{tcp:?}");
    assert!(judge(&scenario, &seen)[0].passed);
}

/// With half of the packets lost, a late answer is never taken for that of another question.
#[test]
fn lost_pings_have_no_answers_of_others() {
    let lossy = PINGS.replace("delay = \"10ms\"", "delay = \"10ms\"\nloss = \"30%\"");
    let (_, seen) = run(&lossy.replace("count = 2", "count = 8"));
    let pings = seen.flows.iter().filter(|flow| flow.name.as_str().starts_with("udp"));
    let completions: Vec<_> = pings.flat_map(|flow| &flow.completions).collect();
    // 160 questions, of which 0.7 · 0.7 are answered.
    assert!((50..=110).contains(&completions.len()), "{}", completions.len());
    // Eight questions begin at once, so the last one waits for the others. The next ones come after 200 ms.
    assert!(completions.iter().all(|(_, took)| took.as_millis() < 25));
}

#[test]
fn every_measure_is_a_number() {
    let (scenario, seen) = run(PINGS);
    let numbers = numbers(&scenario, &seen);
    let value = |name: &str| {
        let found = numbers.iter().find(|(own, _)| own == name);
        found.unwrap_or_else(|| panic!("no {name}: {numbers:#?}")).1
    };
    let mean = value("flows.udp1.completion_time_mean_s").unwrap();
    assert!((0.020..0.0203).contains(&mean), "{mean}");
    assert_eq!(value("flows.udp1.rtt_mean_s"), None, "UDP has no such thing");
    assert!(value("flows.tcp.rtt_mean_s").is_some());
    assert!(value("links.a-b.there.utilisation").unwrap() > 0.0);
    assert!(value("jain").is_some() && value("goodput_bps").unwrap() > 0.0);
    let names: std::collections::BTreeSet<&String> = numbers.iter().map(|(name, _)| name).collect();
    assert_eq!(names.len(), numbers.len(), "no two have one name");
}
