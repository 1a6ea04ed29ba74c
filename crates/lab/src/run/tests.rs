mod changes;
mod control;
mod pings;

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

fn beside(directory: &Path) -> RunOptions<'_> {
    RunOptions::new(directory)
}

fn resolved(text: &str) -> Resolved {
    let scenario = Scenario::parse("test.toml", text).unwrap_or_else(|errors| panic!("{errors}"));
    scenario.sweep().next().unwrap().resolved
}

fn run(scenario: &Resolved, seed: u64) -> Observations {
    simulate(scenario, seed, beside(Path::new("")), |_, _| true).unwrap().unwrap()
}

#[test]
fn expectations_are_judged() {
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
fn scenarios_that_cannot_run_say_so() {
    let error = |text: &str| {
        simulate(&resolved(text), 1, beside(Path::new("")), |_, _| true).unwrap_err().to_string()
    };
    let kernel = DUMBBELL.replace("[hosts.b]", "[hosts.b]\nkind = \"kernel\"");
    assert_eq!(
        error(&kernel),
        "host b1 has the kernel's TCP, which runs in real time only: use --emulate"
    );
}

/// Safe ranges go in the simulator only: where packets reach a device, nobody takes them away.
#[test]
fn safe_ranges_stay_where_packets_are_real() {
    let lifted = "kind = \"bulk\"\nprofile = { unconstrained = true }";
    let scenario = resolved(&DUMBBELL.replacen("kind = \"bulk\"", lifted, 1));
    let with = |kernel| build(&scenario, 1, &beside(Path::new("")), kernel).map(|_| ());
    assert!(with(KernelHosts::Refused).is_ok());
    let error = with(KernelHosts::Outside).unwrap_err().to_string();
    assert!(error.starts_with("bulk is unconstrained, which is for the simulator only"), "{error}");
}

/// Two sources of 125 datagrams a second each, of 1000 bytes, whose packets come to the link in the middle at the same time, where each
/// takes 0.8 ms: of every two, one waits for the other.
const DATAGRAMS: &str = r#"
[scenario]
name = "datagrams"
duration = "10s"
warm-up = "2s"

[hosts.a]
count = 2
[hosts.b]
[routers.left]
[routers.right]

[[links]]
from = "a"
to = "left"
[[links]]
name = "middle"
from = "left"
to = "right"
rate = "10Mbit/s"
[[links]]
from = "right"
to = "b"

[[flows]]
name = "one"
from = "a1"
to = "b"
kind = "on-off-udp"
rate = "1Mbit/s"
payload = "972B"
on = "60s"
[[flows]]
name = "two"
from = "a2"
to = "b"
kind = "on-off-udp"
rate = "1Mbit/s"
payload = "972B"
on = "60s"
"#;

/// What each of these bands, written as in a scenario, is about.
fn measured(scenario: &str, bands: &[&str]) -> Vec<Vec<f64>> {
    let bands: String = bands.iter().map(|band| format!("[[expect]]\n{band}\nmin = 0\n")).collect();
    // Measures with a unit need one in the band.
    let bands: String = bands
        .split_inclusive("[[expect]]")
        .map(|band| match band {
            _ if band.contains("throughput") => band.replace("min = 0", "min = \"1bit/s\""),
            _ if band.contains("delay") => band.replace("min = 0", "min = \"0ms\""),
            _ => band.into(),
        })
        .collect();
    let scenario = resolved(&format!("{scenario}{bands}"));
    judge(&scenario, &run(&scenario, 1)).into_iter().map(|one| one.values).collect()
}

#[test]
fn throughput_and_efficiency_by_hand() {
    let values = measured(
        DATAGRAMS,
        &[
            "measure = \"throughput\"",
            "measure = \"throughput\"\nstatistic = \"sum\"",
            "measure = \"efficiency\"",
            "measure = \"throughput\"\nstatistic = \"sum\"\nrelative-to = { statistic = \"max\", difference = true }",
        ],
    );
    assert_eq!(values[..2], [vec![1e6, 1e6], vec![2e6]]);
    assert_eq!(values[3], [1e6]);
    // 972 of 1000 bytes. The packet on its way at the end of the span replaces the one on its way at its beginning.
    assert!(values[2].iter().all(|one| (one / 0.972 - 1.0).abs() < 1e-9), "{:?}", values[2]);
    // Without loss, 1448 of 1500 bytes; the handshake is over.
    let alone = DUMBBELL.split("[[flows]]\nname = \"file\"").next().unwrap();
    let alone = alone.replace("queue = \"40 packets\"", "queue = \"unlimited\"");
    let alone = alone.replace(
        "kind = \"bulk\"",
        "kind = \"app-limited\"\nrate = \"5Mbit/s\"\nwrite = \"1448B\"",
    );
    let values = measured(&alone, &["measure = \"efficiency\""]);
    assert!((values[0][0] / (1448.0 / 1500.0) - 1.0).abs() < 1e-3, "{values:?}");
    // With it, something is sent twice.
    let lossy = alone.replace("rate = \"10Mbit/s\"", "rate = \"10Mbit/s\"\nthere.loss = \"5%\"");
    let values = measured(&lossy, &["measure = \"efficiency\""]);
    let expected = 0.95 * 1448.0 / 1500.0;
    assert!((values[0][0] / expected - 1.0).abs() < 0.03, "{values:?}");
}

#[test]
fn queue_delay_by_hand() {
    let of = |statistic: &str| {
        format!("measure = \"queue-delay\"\nlink = \"middle\"\nstatistic = \"{statistic}\"")
    };
    let statistics = ["mean", "max", "min", "p50", "p90", "p99", "deviation"].map(of);
    let values = measured(DATAGRAMS, &statistics.each_ref().map(String::as_str));
    let values: Vec<f64> = values.into_iter().flatten().collect();
    let expected = [400e3, 800e3, 0.0, 0.0, 800e3, 800e3, 400e3];
    assert_eq!(values[..2], expected[..2]);
    for (value, expected) in values.iter().zip(expected) {
        assert!((value - expected).abs() <= 0.01 * expected, "{values:?}");
    }
    let values = measured(
        DATAGRAMS,
        &["measure = \"queue-delay\"\nlink = \"middle\"\ndirection = \"back\""],
    );
    assert!(values[0].is_empty(), "nothing went there: {values:?}");
}

#[test]
fn a_flow_of_many_connections_has_totals() {
    for kind in [
        "kind = \"web\"\nobject = \"20kB\"\nobjects = 6\nconnections = 3\nthink-time = \"100ms\"",
        "kind = \"request-response\"\nresponse = \"50kB\"",
    ] {
        let text = DUMBBELL
            .replace("kind = \"bulk\"", kind)
            .replace("delay = \"10ms\"", "delay = \"10ms\"\nback.loss = \"2%\"")
            .replacen("measure = \"goodput\"", "measure = \"retransmissions\"", 1)
            .replace("min = \"6Mbit/s\"\nmax = \"9.7Mbit/s\"", "min = 1");
        let scenario = resolved(&text);
        let seen = run(&scenario, 1);
        let first = &judge(&scenario, &seen)[0];
        // One of fifty of the packets on the way back, of which each carries 1448 bytes at most.
        let delivered = {
            let at = |seconds| {
                let mut samples = seen.flows[0].samples.iter();
                let wanted = Instant::ZERO + Duration::from_secs(seconds);
                samples.find(|one| one.at == wanted).unwrap().delivered
            };
            at(30) - at(10)
        };
        let packets = delivered as f64 / 1448.0;
        let share = first.values[0] / packets;
        assert!((0.01..0.05).contains(&share), "{kind}: {share}");
    }
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
    let seen = simulate(&scenario, 1, beside(Path::new("")), |reached, _| {
        steps += 1;
        reached < Duration::from_secs(3)
    });
    assert!(seen.unwrap().is_none());
    assert_eq!(steps, 20);
}

/// A link with an opportunity in each of ten milliseconds and one ten later, on the way there.
fn traced(flow: &str, bands: &str) -> (tempfile::TempDir, Resolved) {
    let directory = tempfile::tempdir().unwrap();
    let lines: String = (1..=10).chain([20]).map(|millis| format!("{millis}\n")).collect();
    std::fs::write(directory.path().join("on-off.trace"), lines).unwrap();
    let text = format!(
        r#"
[scenario]
name = "traced"
duration = "20s"
warm-up = "4s"
[hosts.a]
[hosts.b]
[[links]]
name = "path"
from = "a"
to = "b"
there.rate-trace = "on-off.trace"
queue = "60 packets"
delay = "5ms"
[[flows]]
name = "flow"
from = "a"
to = "b"
{flow}
{bands}"#
    );
    let file = directory.path().join("traced.toml");
    std::fs::write(&file, text).unwrap();
    let scenario =
        crate::scenario::Scenario::load(&file, None).unwrap_or_else(|one| panic!("{one}"));
    let resolved = scenario.sweep().next().unwrap().resolved;
    (directory, resolved)
}

const UTILISATION: &str = "[[expect]]\nmeasure = \"utilisation\"\nlink = \"path\"\nmin = 0\n\
                           [[expect]]\nmeasure = \"goodput\"\nmin = \"1bit/s\"\n";

#[test]
fn a_rate_follows_its_trace() {
    let values = |flow: &str| -> Vec<f64> {
        let (directory, scenario) = traced(flow, UTILISATION);
        let seen = simulate(&scenario, 1, beside(directory.path()), |_, _| true).unwrap().unwrap();
        judge(&scenario, &seen).into_iter().flat_map(|one| one.values).collect()
    };
    // Eleven packets of 1500 bytes in 20 ms are 6.6 Mbit/s, of which TCP takes all and gets 1448 of each 1500 bytes.
    let bulk = values("kind = \"bulk\"");
    assert!((0.99..=1.0).contains(&bulk[0]), "{bulk:?}");
    assert!((bulk[1] / (6.6e6 * 1448.0 / 1500.0) - 1.0).abs() < 0.01, "{bulk:?}");
    // A datagram of 750 bytes every 5 ms: four in 20 ms, where eleven times 1500 bytes could be sent.
    let udp = "kind = \"on-off-udp\"\nrate = \"1.2Mbit/s\"\npayload = \"722B\"\non = \"60s\"";
    let datagrams = values(udp);
    assert!((datagrams[0] - 4.0 * 750.0 / (11.0 * 1500.0)).abs() < 1e-4, "{datagrams:?}");
}

#[test]
fn a_trace_that_has_changed_is_not_used() {
    let (directory, scenario) = traced("kind = \"bulk\"", "");
    let file = directory.path().join("on-off.trace");
    std::fs::write(&file, "1\n").unwrap();
    let error =
        simulate(&scenario, 1, beside(directory.path()), |_, _| true).unwrap_err().to_string();
    assert!(error.contains("is not the scenario's"), "{error}");
    std::fs::remove_file(&file).unwrap();
    let error =
        simulate(&scenario, 1, beside(directory.path()), |_, _| true).unwrap_err().to_string();
    assert!(error.contains("cannot be read"), "{error}");
}

/// A loss halves the window of a Reno flow of 20 segments; it comes back by a segment in each round trip of 100 ms.
#[test]
fn recovery_takes_as_long_as_the_window_lost() {
    let text = r#"
[scenario]
name = "recovery"
duration = "60s"
[hosts.a]
[hosts.b]
profile = { tcp = "immediate-ack" }
[[links]]
from = "a"
to = "b"
there = { delay = "50ms", loss = "packets(50)" }
back = { delay = "50ms" }
[[flows]]
name = "bulk"
from = "a"
to = "b"
kind = "bulk"
profile = { tcp = "reno + sack" }
[[expect]]
measure = "recovery-time"
flow = "bulk"
statistic = "max"
min = "500ms"
max = "4s"
[[expect]]
measure = "cwnd"
flow = "bulk"
reaches = "144.8kB"
from = "20s"
max = "10s"
"#;
    let scenario = Scenario::parse("t.toml", text).unwrap().point(0).unwrap().resolved;
    let seen = simulate(&scenario, 1, beside(Path::new("")), |_, _| true).unwrap().unwrap();
    let cwnd = |at: u64| {
        let sample = &seen.flows[0].samples[10 * at as usize];
        sample.sender.unwrap().cwnd as f64 / 1448.0
    };
    let judged = judge(&scenario, &seen);
    // By hand: without loss or queue, so many segments more as there are round trips.
    assert!((cwnd(30) - cwnd(20) - 100.0).abs() <= 3.0, "{} {}", cwnd(20), cwnd(30));
    let expected = (100.0 - cwnd(20)).max(0.0) * 0.1;
    let [time] = judged[1].values[..] else { panic!("{judged:?}") };
    assert!((time / 1e9 - expected).abs() < 0.5, "{time} {expected}");
    assert!(judged[0].passed, "{judged:?}");
}

/// icTCP's figure 8: four transfers from one host to another over 1 Mbit/s and 120 ms of round trip.
const ONE_MACROFLOW: &str = r#"
[scenario]
name = "macroflow"
duration = "200s"
warm-up = "20s"

[hosts.a.profile]
tcp = "reno + hystart++"
[hosts.b]

[[links]]
from = "a"
to = "b"
rate = "1Mbit/s"
delay = "60ms"
queue = "10 packets"

[[flows]]
name = "one"
from = "a"
to = "b"
kind = "bulk"
[[flows]]
name = "two"
from = "a"
to = "b"
kind = "bulk"
[[flows]]
name = "three"
from = "a"
to = "b"
kind = "bulk"
start = "3s"
[[flows]]
name = "four"
from = "a"
to = "b"
kind = "bulk"
start = "5s"
"#;

/// Flows of one host share a macroflow, whether they have their profile of the host or one of their own. So one with three times the
/// weight gets more than the others, which it would not if it had a macroflow to itself. Flows of two runs do not, or the second run of
/// the same would have another result.
#[test]
fn flows_of_a_host_share_a_macroflow() {
    let each = |text: &str| measured(text, &["measure = \"throughput\""])[0].clone();
    let shared = ONE_MACROFLOW
        .replace("tcp = \"reno + hystart++\"", "tcp = \"reno + hystart++\"\nextensions = \"cm\"");
    let heavy = "start = \"5s\"\nprofile = { extensions = \"cm(weight=3)\" }";
    let weighted = shared.replace("start = \"5s\"", heavy);
    let even = each(&shared);
    let most = even.iter().copied().fold(0.0, f64::max);
    assert!(even.iter().all(|one| one / most > 0.9), "{even:?}");
    let weighted = each(&weighted);
    assert!(weighted[..3].iter().all(|one| weighted[3] / one > 1.5), "{weighted:?}");
    let scenario = resolved(&shared);
    assert_eq!(run(&scenario, 1), run(&scenario, 1));
}

/// An extension that a connection cannot have is missed in what was seen of its flow, and in no other.
#[test]
fn an_extension_that_is_missing_is_told_of() {
    let text = DUMBBELL.replacen(
        "kind = \"bulk\"",
        "kind = \"bulk\"\nprofile = { tcp = \"no-sack\", extensions = \"rr\" }",
        1,
    );
    let seen = run(&resolved(&text), 1);
    let flow = |name: &str| seen.flows.iter().find(|flow| flow.name.as_str() == name).unwrap();
    let reason = "rr: the connection does not have what the extension requires: SACK";
    assert_eq!(flow("bulk").departures, [reason]);
    assert!(flow("file").departures.is_empty());
}

/// A companion has the rate of the connection beside it, and nothing when that has gone.
#[test]
fn a_companion_has_the_rate_of_its_connection() {
    let text = r#"
[scenario]
name = "companion"
duration = "20s"
[hosts.a]
[hosts.b]
[[links]]
from = "a"
to = "b"
rate = "4Mbit/s"
delay = "10ms"
queue = "20 packets"
[[flows]]
name = "tcp"
from = "a"
to = "b"
kind = "transfer"
size = "2MB"
[[flows]]
name = "datagrams"
from = "a"
to = "b"
kind = "companion"
beside = "tcp"
[[expect]]
measure = "goodput"
flow = "datagrams"
from = "2s"
until = "7s"
relative-to = { flow = "tcp" }
min = 0.7
max = 1.4
[[expect]]
measure = "goodput"
flow = "datagrams"
from = "14s"
max = "1kbit/s"
"#;
    let scenario = resolved(text);
    for judgement in judge(&scenario, &run(&scenario, 1)) {
        assert!(judgement.passed, "{judgement:?}");
    }
}
