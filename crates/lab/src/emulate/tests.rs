//! Emulated runs on this machine: with bands so wide that a busy one keeps them. Each says SKIPPED where the system does not let it.

mod controllers;
mod traces;
mod windows;

use super::*;
use crate::scenario::Scenario;
use std::path::Path;
use transom_tcp::time::{Duration, Instant};

/// Whether this system lets us make hosts; says so if not.
fn allowed() -> bool {
    if let Err(error) = permitted() {
        eprintln!("SKIPPED: no network namespaces here: {error:?}");
        return false;
    }
    if let Err(error) = std::fs::File::options().read(true).write(true).open("/dev/net/tun") {
        eprintln!("SKIPPED: no access to TUN here: {error}");
        return false;
    }
    true
}

#[track_caller]
fn resolved(text: &str) -> Resolved {
    let scenario = Scenario::parse("test.toml", text).unwrap_or_else(|errors| panic!("{errors}"));
    scenario.sweep().next().unwrap().resolved
}

#[track_caller]
fn run(text: &str) -> (Observations, Record) {
    let output = tempfile::tempdir().unwrap();
    let options = RunOptions { output: Some(output.path()), ..RunOptions::new(Path::new("")) };
    let emulated = emulate(&resolved(text), 1, options, |_, _| true).unwrap().unwrap();
    eprintln!("{}", emulated.1.fidelity);
    emulated
}

/// Two hosts joined by a link, and a flow from the first to the second.
fn pair(from: &str, to: &str, link: &str, seconds: &str, flow: &str) -> String {
    format!(
        r#"
[scenario]
name = "pair"
tcp = "classic"
duration = "{seconds}"
sample-interval = "50ms"
[hosts.a]
{from}
[hosts.b]
{to}
[[links]]
name = "path"
from = "a"
to = "b"
{link}
[[flows]]
name = "flow"
from = "a"
to = "b"
{flow}
"#
    )
}

const KERNEL: &str = "kind = \"kernel\"";

/// Runs it until the machine lets the emulator do its work, three times at most; says so if it never does. A test must not depend on
/// the scheduler. Output is left in `output`.
#[track_caller]
fn undisturbed(text: &str, output: &Path) -> Option<(Observations, Record)> {
    let mut longest = Duration::ZERO;
    for _ in 0..3 {
        let options = RunOptions { output: Some(output), ..RunOptions::new(Path::new("")) };
        let (seen, record) = emulate(&resolved(text), 1, options, |_, _| true).unwrap().unwrap();
        eprintln!("{}", record.fidelity);
        longest = record.fidelity.lag.max;
        if longest <= Duration::from_millis(10) {
            return Some((seen, record));
        }
    }
    eprintln!("SKIPPED: this machine is too busy: the emulator stood still for {longest:?}");
    None
}

/// The same without its output.
#[track_caller]
fn run_undisturbed(text: &str) -> Option<(Observations, Record)> {
    undisturbed(text, tempfile::tempdir().unwrap().path())
}

/// Bits per second that reached the application from `from` on.
fn goodput(observations: &Observations, from: Duration) -> f64 {
    let samples = &observations.flows[0].samples;
    let first = samples.iter().find(|one| one.at >= Instant::ZERO + from).unwrap();
    let last = samples.last().unwrap();
    (last.delivered - first.delivered) as f64 * 8.0 / last.at.since(first.at).as_secs_f64()
}

#[test]
fn a_kernel_sends_to_a_kernel_at_the_rate_of_the_link() {
    if !allowed() {
        return;
    }
    let link = "rate = \"50Mbit/s\"\ndelay = \"5ms\"\nqueue = \"100 packets\"";
    let text = pair(KERNEL, KERNEL, link, "3s", "kind = \"bulk\"");
    let Some((observations, _)) = run_undisturbed(&text) else { return };
    // 1448 bytes of each 1500 are payload.
    let expected = 50e6 * 1448.0 / 1500.0;
    let seen = goodput(&observations, Duration::from_secs(1));
    assert!((0.9 * expected..1.05 * expected).contains(&seen), "{seen}");
    let last = observations.flows[0].samples.last().unwrap();
    let sender = last.sender.unwrap();
    assert_eq!(sender.mss, 1448);
    assert!(
        sender.cwnd > 10 * 1448 && sender.srtt.unwrap() > Duration::from_millis(9),
        "{sender:?}"
    );
}

#[test]
fn a_delay_is_never_shorter_and_seldom_much_longer() {
    if !allowed() {
        return;
    }
    let delay = Duration::from_millis(5);
    let mut delays = measured_delays(delay).unwrap();
    delays.sort_unstable();
    assert!(delays.len() > 1000, "{}", delays.len());
    assert!(delays[0] >= delay, "{:?}", delays[0]);
    // On an idle machine these are tens of microseconds.
    let (median, p90) = (delays[delays.len() / 2], delays[delays.len() * 9 / 10]);
    eprintln!("median {median:?}, 90 % {p90:?}");
    assert!(median < delay + Duration::from_millis(3), "{median:?}");
}

/// All kinds of traffic between a host of Transom's and one of the kernel's, each in both directions.
const BOTH_WAYS: &str = r#"
[scenario]
name = "both-ways"
duration = "4s"
sample-interval = "100ms"
[hosts]
kernel = { kind = "kernel", congestion = "reno" }
transom = {}
[routers.middle]
[[links]]
name = "left"
from = "kernel"
to = "middle"
delay = "2ms"
[[links]]
name = "right"
from = "middle"
to = "transom"
rate = "40Mbit/s"
delay = "3ms"
queue = "200 packets"
"#;

#[test]
fn every_kind_of_traffic_between_both_kinds_of_hosts() {
    if !allowed() {
        return;
    }
    let mut text = BOTH_WAYS.to_string();
    let kinds = [
        ("transfer", "kind = \"transfer\"\nsize = \"300kB\""),
        (
            "asked",
            "kind = \"request-response\"\nresponse = \"uniform(5kB, 9kB)\"\nrequests = 10\nthink-time = \"10ms\"",
        ),
        (
            "pages",
            "kind = \"web\"\nobject = \"pareto(2kB, 1.2, 20kB)\"\nobjects = 4\nconnections = 2\nthink-time = \"50ms\"\nstop = \"2s\"",
        ),
        (
            "limited",
            "kind = \"app-limited\"\nrate = \"800kbit/s\"\nwrite = \"1000B\"\nstop = \"2s\"",
        ),
        (
            "datagrams",
            "kind = \"on-off-udp\"\nrate = \"1Mbit/s\"\npayload = \"972B\"\nstop = \"2s\"",
        ),
        ("bulk", "kind = \"bulk\"\nstop = \"1s\""),
    ];
    for (name, kind) in kinds {
        for (way, from, to) in [("up", "kernel", "transom"), ("down", "transom", "kernel")] {
            text += &format!(
                "[[flows]]\nname = \"{name}-{way}\"\nfrom = \"{from}\"\nto = \"{to}\"\n{kind}\n"
            );
        }
    }
    let Some((observations, record)) = run_undisturbed(&text) else { return };
    let seen = |name: &str| {
        let flows = &observations.flows;
        let flow = flows.iter().find(|flow| flow.name.as_str() == name).unwrap();
        (flow.samples.last().unwrap().delivered, flow.completions.clone())
    };
    for way in ["up", "down"] {
        let (delivered, completions) = seen(&format!("transfer-{way}"));
        assert_eq!((delivered, completions.len()), (300_000, 1), "{way}");
        // A round trip for the handshake, and 300 kB at 40 Mbit/s.
        assert!(completions[0].1 >= Duration::from_millis(10 + 60), "{completions:?}");
        let (delivered, completions) = seen(&format!("asked-{way}"));
        assert_eq!(completions.len(), 10, "{way}");
        assert!((50_000..=90_000).contains(&delivered), "{way}: {delivered}");
        // A request and its response take a round trip at least.
        assert!(completions.iter().all(|(_, took)| *took >= Duration::from_millis(10)));
        let (delivered, completions) = seen(&format!("pages-{way}"));
        assert!(completions.len() >= 12 && delivered >= 12 * 2000, "{way}: {}", completions.len());
        let (delivered, _) = seen(&format!("limited-{way}"));
        // 100 writes a second for two seconds; how many exactly is up to the last moment.
        assert!((195_000..=201_000).contains(&delivered), "{way}: {delivered}");
        let (delivered, _) = seen(&format!("datagrams-{way}"));
        // A datagram of 1000 bytes in all every 8 ms.
        assert!(delivered % 972 == 0, "{way}: {delivered}");
        assert!((240..=251).contains(&(delivered / 972)), "{way}: {delivered}");
        let (delivered, completions) = seen(&format!("bulk-{way}"));
        assert!(delivered > 500_000, "{way}: {delivered}");
        assert_eq!(completions.len(), 1, "{way}");
    }
    assert_eq!(record.fidelity.refused, 0);
}

/// Without hosts outside there is nothing that real time could change.
#[test]
fn transoms_hosts_do_in_real_time_what_they_do_in_virtual_time() {
    let text = pair(
        "",
        "",
        "rate = \"10Mbit/s\"\ndelay = \"10ms\"\nqueue = \"30 packets\"\nloss = \"0.5%\"",
        "1s",
        "kind = \"bulk\"",
    );
    let scenario = resolved(&text);
    let simulated = crate::run::simulate(&scenario, 1, RunOptions::new(Path::new("")), |_, _| true)
        .unwrap()
        .unwrap();
    let (observations, _) = run(&text);
    assert_eq!(observations.flows, simulated.flows);
    assert_eq!(observations.links, simulated.links);
}

#[test]
fn a_run_that_is_broken_off_ends_at_once_and_leaves_nothing() {
    if !allowed() {
        return;
    }
    let text =
        pair(KERNEL, KERNEL, "delay = \"5ms\"\nrate = \"5Mbit/s\"", "600s", "kind = \"bulk\"");
    let output = tempfile::tempdir().unwrap();
    let options = RunOptions { output: Some(output.path()), ..RunOptions::new(Path::new("")) };
    let started = std::time::Instant::now();
    let mut calls = 0;
    let outcome = emulate(&resolved(&text), 1, options, |reached, _| {
        calls += 1;
        reached < Duration::from_millis(500)
    });
    assert!(outcome.unwrap().is_none());
    assert!(calls >= 4, "{calls}");
    assert!(started.elapsed() < std::time::Duration::from_secs(30));
}

#[test]
fn scenarios_that_cannot_be_emulated_are_refused_before_anything_runs() {
    let output = tempfile::tempdir().unwrap();
    let options = RunOptions { output: Some(output.path()), ..RunOptions::new(Path::new("")) };
    let refused =
        |text: &str| emulate(&resolved(text), 1, options, |_, _| true).unwrap_err().to_string();
    let datagrams = "kind = \"on-off-udp\"\nrate = \"1Mbit/s\"\npayload = \"1473B\"";
    let text = pair(KERNEL, KERNEL, "delay = \"5ms\"", "1s", datagrams);
    assert_eq!(
        refused(&text),
        "flow flow: datagrams of 1473 bytes do not fit into the 1500 bytes that host a can send at once"
    );
    let program = "kind = \"program\"\nclient = [\"no-such-program\", \"{port}\"]";
    let text = pair(KERNEL, KERNEL, "delay = \"5ms\"", "1s", program);
    assert_eq!(refused(&text), "flow flow: there is no program no-such-program");
    let program = "kind = \"program\"\nserver = [\"./not/here\"]\nclient = [\"sh\"]";
    let text = pair(KERNEL, KERNEL, "delay = \"5ms\"", "1s", program);
    assert_eq!(refused(&text), "flow flow: there is no program ./not/here");
    assert_eq!(std::fs::read_dir(output.path()).unwrap().count(), 0);
}

#[test]
fn programs_run_and_their_ends_are_told() {
    if !allowed() {
        return;
    }
    let flow = r#"kind = "program"
server = ["sh", "-c", "exec sleep 1000"]
client = ["sh", "-c", "echo to {address}:{port}; echo oops >&2; exit 3"]
[[flows]]
name = "killed"
from = "b"
to = "a"
kind = "program"
client = ["sh", "-c", "kill -9 $$"]
[[flows]]
name = "stopped"
from = "b"
to = "a"
kind = "program"
stop = "300ms"
client = ["sh", "-c", "trap 'echo bye; exit 0' TERM; while :; do sleep 0.01; done"]
[[flows]]
name = "parent"
from = "b"
to = "a"
kind = "program"
client = ["sh", "-c", "sleep 1001 & echo $!; exit 0"]"#;
    let text = pair(KERNEL, KERNEL, "delay = \"5ms\"", "1s", flow);
    let output = tempfile::tempdir().unwrap();
    let options = RunOptions { output: Some(output.path()), ..RunOptions::new(Path::new("")) };
    let (_, record) = emulate(&resolved(&text), 1, options, |_, _| true).unwrap().unwrap();
    let ends: Vec<(&str, Role, ProgramEnd)> =
        record.programs.iter().map(|one| (one.flow.as_str(), one.role, one.end)).collect();
    let all = [
        ("flow", Role::Client, ProgramEnd::Exited(3)),
        ("killed", Role::Client, ProgramEnd::Killed(9)),
        ("stopped", Role::Client, ProgramEnd::Stopped),
        ("parent", Role::Client, ProgramEnd::Exited(0)),
        ("flow", Role::Server, ProgramEnd::Stopped),
    ];
    for one in all {
        assert!(ends.contains(&one), "{one:?} is not in {ends:?}");
    }
    assert_eq!(ends.len(), all.len());
    let read = |name: &str| std::fs::read_to_string(output.path().join(name)).unwrap();
    assert_eq!(read("flow.client.stdout"), "to 10.0.0.2:1024\n");
    assert_eq!(read("flow.client.stderr"), "oops\n");
    assert_eq!(read("stopped.client.stdout"), "bye\n");
    // Processes that a program has started and left behind end with it.
    let child = read("parent.client.stdout");
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(5);
    let stat = format!("/proc/{}/stat", child.trim());
    // It may be left to nobody who waits for it: dead, but there.
    while std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z ")) {
        assert!(std::time::Instant::now() < deadline, "{child} still runs");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

#[test]
fn a_server_that_does_not_listen_is_not_waited_for() {
    if !allowed() {
        return;
    }
    let program =
        "kind = \"program\"\nserver = [\"sh\", \"-c\", \"exit 0 {port}\"]\nclient = [\"true\"]";
    let text = pair(KERNEL, KERNEL, "delay = \"5ms\"", "1s", program);
    let output = tempfile::tempdir().unwrap();
    let options = RunOptions { output: Some(output.path()), ..RunOptions::new(Path::new("")) };
    let error = emulate(&resolved(&text), 1, options, |_, _| true).unwrap_err();
    assert!(error.to_string().contains("does not listen at port 1024: it has ended"), "{error}");
}

/// Whether there is a program; says so if not.
fn has(program: &str) -> bool {
    let found = programs::find(program, Path::new("")).is_some();
    if !found {
        eprintln!("SKIPPED: {program} is not installed");
    }
    found
}

#[test]
fn iperf3_measures_what_the_link_gives() {
    if !allowed() || !has("iperf3") {
        return;
    }
    let flow = "kind = \"program\"\nserver = [\"iperf3\", \"-s\", \"-1\", \"-p\", \"{port}\"]\n\
                client = [\"iperf3\", \"-c\", \"{address}\", \"-p\", \"{port}\", \"-t\", \"3\", \"-J\"]";
    let link = "rate = \"20Mbit/s\"\ndelay = \"5ms\"\nqueue = \"100 packets\"";
    let text = pair(KERNEL, KERNEL, link, "4s", flow);
    let output = tempfile::tempdir().unwrap();
    let Some((observations, record)) = undisturbed(&text, output.path()) else { return };
    assert!(record.programs.iter().all(ProgramReport::succeeded), "{:?}", record.programs);
    let said = std::fs::read_to_string(output.path().join("flow.client.stdout")).unwrap();
    let said: serde_json::Value = serde_json::from_str(&said).unwrap();
    let rate = said["end"]["sum_received"]["bits_per_second"].as_f64().unwrap();
    let expected = 20e6 * 1448.0 / 1500.0;
    assert!((0.85 * expected..1.02 * expected).contains(&rate), "{rate}");
    assert_eq!(said["end"]["sender_tcp_congestion"], "cubic");
    // The count from outside is its own count, some bytes of its control connection, and what arrived after it had stopped counting:
    // a queue and a link full of data, 150 kB and 25 kB.
    let samples = &observations.flows[0].samples;
    let received = said["end"]["sum_received"]["bytes"].as_u64().unwrap();
    let delivered = samples.last().unwrap().delivered;
    assert!((received..received + 185_000).contains(&delivered), "{delivered} of {received}");
    let windows = samples.iter().filter_map(|one| one.sender).filter(|one| one.cwnd > 10 * 1448);
    assert!(windows.count() > 20);
}

#[test]
fn curl_fetches_from_nginx() {
    if !allowed() || !has("curl") || !has("nginx") {
        return;
    }
    let flow = r#"kind = "program"
server = ["nginx", "-p", ".", "-e", "stderr", "-c", "nginx.conf", "-g", "daemon off; pid {port}.pid;"]
client = ["curl", "-sS", "--retry", "3", "-o", "copy", "http://{address}:{port}/file"]
"#;
    let link = "rate = \"20Mbit/s\"\ndelay = \"5ms\"\nqueue = \"100 packets\"";
    let text = pair(KERNEL, KERNEL, link, "4s", flow);
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let conf =
        "worker_processes 1; events {} http { access_log off; server { listen 1024; root .; } }";
    std::fs::write(path("nginx.conf"), conf).unwrap();
    let content: Vec<u8> = (0..1_000_000u32).map(|n| (n * 7 / 3) as u8).collect();
    std::fs::write(path("file"), &content).unwrap();
    let options =
        RunOptions { output: Some(directory.path()), ..RunOptions::new(directory.path()) };
    let (observations, record) =
        emulate(&resolved(&text), 1, options, |_, _| true).unwrap().unwrap();
    let said = |name: &str| std::fs::read_to_string(path(name)).unwrap();
    let all = format!(
        "{:?}\n{}{}",
        record.programs,
        said("flow.server.stderr"),
        said("flow.client.stderr")
    );
    assert!(record.programs.iter().all(ProgramReport::succeeded), "{all}");
    assert!(std::fs::read(path("copy")).unwrap() == content, "{all}");
    // The file and a few headers.
    let delivered = observations.flows[0].samples.last().unwrap().delivered;
    assert!((1_000_000..1_002_000).contains(&delivered), "{delivered}");
}
