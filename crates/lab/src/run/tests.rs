use super::*;
use crate::scenario::Scenario;

const DUMBBELL: &str = r#"
[scenario]
name = "shares"
duration = "30s"
warm-up = "10s"

[hosts.a]
count = 2
[hosts.b]
count = 2
[routers.left]
[routers.right]

[[links]]
from = "a"
to = "left"
delay = "1ms"
[[links]]
name = "middle"
from = "left"
to = "right"
rate = "10Mbit/s"
delay = "10ms"
queue = "40 packets"
[[links]]
from = "right"
to = "b"
delay = "1ms"

[[flows]]
name = "bulk"
from = "a1"
to = "b1"
kind = "bulk"
[[flows]]
name = "file"
from = "a2"
to = "b2"
kind = "transfer"
size = "1MB"
start = "12s"

[[expect]]
measure = "goodput"
flow = "bulk"
min = "6Mbit/s"
max = "9.7Mbit/s"
[[expect]]
measure = "delivered"
flow = "file"
min = "1MB"
max = "1MB"
[[expect]]
measure = "completion-time"
flow = "file"
min = "800ms"
max = "8s"
[[expect]]
measure = "utilisation"
link = "middle"
min = 0.9
max = 1
[[expect]]
measure = "queue-length"
link = "middle"
statistic = "max"
max = 40
[[expect]]
measure = "goodput"
flow = "bulk"
max = "1Mbit/s"
why = "it is meant to fail"
"#;

fn resolved(text: &str) -> Resolved {
    let scenario = Scenario::parse("test.toml", text).unwrap_or_else(|errors| panic!("{errors}"));
    scenario.sweep().next().unwrap().resolved
}

fn run(scenario: &Resolved, seed: u64) -> Observations {
    simulate(scenario, seed, Path::new(""), |_| true).unwrap().unwrap()
}

#[test]
fn what_is_expected_is_judged() {
    let scenario = resolved(DUMBBELL);
    let judgements = judge(&scenario, &run(&scenario, 1));
    let passed: Vec<bool> = judgements.iter().map(|one| one.passed).collect();
    assert_eq!(passed, [true, true, true, true, true, false], "{judgements:#?}");
    assert_eq!(judgements[1].values, [1e6]);
}

#[test]
fn a_run_is_a_function_of_scenario_and_seed() {
    let text =
        DUMBBELL.replace("queue = \"40 packets\"", "queue = \"40 packets\"\nloss = \"0.5%\"");
    let scenario = resolved(&text);
    assert_eq!(run(&scenario, 1), run(&scenario, 1));
    assert_ne!(run(&scenario, 1), run(&scenario, 2));
}

#[test]
fn a_table_begins_with_what_made_it() {
    let scenario = resolved(DUMBBELL);
    let seen = run(&scenario, 7);
    for text in [flows_csv(&scenario, 7, &seen), links_csv(&scenario, 7, &seen)] {
        let comments: String = text
            .lines()
            .filter_map(|line| line.strip_prefix('#'))
            .skip(1)
            .flat_map(|line| [line.strip_prefix(' ').unwrap_or(line), "\n"])
            .collect();
        assert_eq!(resolved(&comments), scenario);
        let rows: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        let columns = rows[0].split(',').count();
        assert!(rows.len() > 300 && rows.iter().all(|row| row.split(',').count() == columns));
    }
}

#[test]
fn what_cannot_be_run_says_so() {
    let error =
        |text: &str| simulate(&resolved(text), 1, Path::new(""), |_| true).unwrap_err().to_string();
    let kernel = DUMBBELL.replace("[hosts.b]", "[hosts.b]\nkind = \"kernel\"");
    assert_eq!(error(&kernel), "host b1 has the kernel's TCP, which can only be emulated");
    let measure = DUMBBELL.replace("measure = \"goodput\"", "measure = \"throughput\"");
    assert_eq!(error(&measure), "the measure throughput is not taken yet");
    let web = DUMBBELL
        .replace("kind = \"bulk\"", "kind = \"web\"\nobject = \"10kB\"\nthink-time = \"1s\"")
        .replacen("measure = \"goodput\"", "measure = \"timeouts\"", 1)
        .replace("min = \"6Mbit/s\"\nmax = \"9.7Mbit/s\"", "max = 0");
    let message =
        "the measure retransmissions or timeouts of a flow with many connections is not taken yet";
    assert_eq!(error(&web), message);
}

#[test]
fn every_kind_of_traffic_runs() {
    for kind in [
        "kind = \"request-response\"\nresponse = \"uniform(1kB, 20kB)\"\nthink-time = \"exponential(50ms)\"\nrequests = 40",
        "kind = \"web\"\nobject = \"pareto(2kB, 1.2, 200kB)\"\nobjects = 6\nconnections = 3\nthink-time = \"300ms\"",
        "kind = \"on-off-udp\"\nrate = \"1Mbit/s\"\non = \"exponential(1s)\"\noff = \"uniform(0s, 1s)\"",
        "kind = \"app-limited\"\nrate = \"500kbit/s\"",
    ] {
        let scenario = resolved(&DUMBBELL.replace("kind = \"bulk\"", kind));
        let seen = run(&scenario, 1);
        let flow = &seen.flows[0];
        assert!(flow.samples.last().unwrap().delivered > 100_000, "{kind}");
        if kind.contains("requests") {
            assert_eq!(flow.completions.len(), 40);
        } else if kind.contains("web") {
            assert!(flow.completions.len() > 60, "{}", flow.completions.len());
        }
        assert_eq!(seen, run(&scenario, 1));
    }
}

#[test]
fn a_run_can_be_broken_off() {
    let scenario = resolved(DUMBBELL);
    let mut steps = 0;
    let seen = simulate(&scenario, 1, Path::new(""), |reached| {
        steps += 1;
        reached < Duration::from_secs(3)
    });
    assert!(seen.unwrap().is_none());
    assert_eq!(steps, 20);
}
