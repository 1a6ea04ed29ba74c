//! `transom kernel`: an unmodified program whose sockets are the kernel's, with extensions on them.

use std::process::Command;

use crate::support::{in_own_network, lab, run, transom, wait};

/// Two hosts in namespaces of the test's own. `$T` is the command, `$P` begins commands of the peer.
const SETUP: &str = r#"
PATH=$PATH:/usr/sbin:/sbin
T=$1
ip link set lo up && ip link add eth0 type veth peer name peer || exit 99
unshare --net sleep 100 & P="nsenter --net=/proc/$!/ns/net"
background=$!
trap 'kill $background 2>/dev/null' EXIT
until [ "$(readlink /proc/$!/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.02; done
ip link set peer netns $! || exit 99
ip address add 192.0.2.1/24 dev eth0; ip link set eth0 up
$P ip address add 192.0.2.2/24 dev peer; $P ip link set peer up
"$T" kernel check >check || { cat check >&2; exit 99; }
$P python3 -c '
import socket, threading
server = socket.create_server(("192.0.2.2", 7000))
def take(s):
    while s.recv(65536): pass
while True: threading.Thread(target=take, args=(server.accept()[0],), daemon=True).start()
' & background="$background $!"
cat >send <<'END'
import socket, sys, time
for turn in range(200):
    try: s = socket.create_connection(("192.0.2.2", 7000)); break
    except OSError: time.sleep(0.05)
if sys.argv[1] == "for-ever":
    while True: s.sendall(bytes(65536))
s.sendall(bytes(int(sys.argv[1])))
END
until_so() {
    turns=0
    until eval "$1"; do
        turns=$((turns + 1)); [ $turns -lt 500 ] || { echo "not: $1" >&2; exit 98; }
        sleep 0.04
    done
}
"#;

fn script(text: &str) -> Option<String> {
    if !cfg!(feature = "kernel") {
        eprintln!("SKIPPED: this build has no extensions on the kernel's sockets (feature kernel)");
        return None;
    }
    let programs = ["nsenter", "ip", "ss", "python3"];
    in_own_network(&[], &programs, |_| {}, &format!("{SETUP}{text}"))
}

#[test]
fn a_program_runs_with_its_sockets_limited() {
    let Some(said) = script(
        r#"
"$T" kernel run -v --extension 'rate-cap(rate=2MB)' -- python3 send 3000000 2>said; echo "status $?"
grep -o '1 connections' said
"$T" kernel run --extension nice -- sh -c 'exit 7'; echo "status $?"
"$T" kernel run --extension nice -- ./nothing 2>said; echo "status $?"; cat said
"$T" kernel run --extension 'rr' -- true 2>said; echo "status $?"; cat said
"$T" kernel run --extension 'rate-cap(rate=1MB)' -- python3 send for-ever & run=$!
until_so '"$T" kernel list | grep -q 192.0.2.2:7000'
"$T" kernel show | grep -E 'pacing_rate|grows by'
number=$("$T" kernel list | awk -v mine="$run," '/^process/ { found = $2 == mine } found && /:7000/ { print $1; exit }')
"$T" kernel log "$number" | head -n 2
ss -tnoiH dst 192.0.2.2 | grep -o 'transom_' | head -n 1
kill $run; wait $run; echo "status $?"
"$T" kernel list
"#,
    ) else {
        return;
    };
    for part in [
        "status 0\n1 connections\nstatus 7\nstatus 127\n",
        "cannot run ./nothing",
        "status 1\n",
        "`rr` sets dupthresh, which has no form here",
        "asked 0..=1000000",
        r#","event":"opened","local":"192.0.2.1:"#,
        r#","event":"request","variable":"pacing_rate","#,
        "transom_",
        "status 143",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

/// A signal at any moment of the beginning: neither the program nor its group is left.
#[test]
fn nothing_remains_of_a_command_that_is_ended_early() {
    let Some(said) = script(
        r#"
mounts=$(sed -n 's/^[^ ]* [^ ]* [^ ]* [^ ]* \([^ ]*\) .* - cgroup2 .*/\1/p' /proc/self/mountinfo | head -n 1)
for pause in 0 0.01 0.03 0.05 0.1 0.15 0.2 0.3 0.5; do
    "$T" kernel run --extension nice -- sleep 61.7 & run=$!
    sleep $pause; kill $run; wait $run; echo "status $?"
    until_so "! ls -d $mounts/transom-kernel-$run-* $mounts/*/transom-kernel-$run-* 2>/dev/null | grep -q ."
done
pgrep -f '^sleep 61[.]7' | grep -q . || echo "no program is left"
"#,
    ) else {
        return;
    };
    assert_eq!(said.matches("status 143").count(), 9, "{said}");
    assert!(said.contains("no program is left"), "{said}");
}

/// Killed: the program goes on without limits, and the control group goes when it ends.
#[test]
fn nothing_remains_of_a_killed_command() {
    let Some(said) = script(
        r#"
"$T" kernel run --extension 'rate-cap(rate=1MB)' -- python3 send for-ever & run=$!
until_so 'ss -tniH dst 192.0.2.2 | grep -q transom_'
group=$(sed -n 's/^0:://p' /proc/$(pgrep -P $run python3)/cgroup)
program=$(pgrep -P $run python3)
echo "$group" | grep -o transom-kernel
kill -9 $run
until_so '! ss -tniH dst 192.0.2.2 | grep -q transom_'
ss -tniH dst 192.0.2.2 | grep -q cwnd && echo "it goes on"
grep -c transom_ /proc/sys/net/ipv4/tcp_available_congestion_control | sed 's/.*/names counted/'
kill $program
mounts=$(sed -n 's/^[^ ]* [^ ]* [^ ]* [^ ]* \([^ ]*\) .* - cgroup2 .*/\1/p' /proc/self/mountinfo | head -n 1)
until_so '[ ! -d "$mounts$group" ]'
echo "the group has gone"
"#,
    ) else {
        return;
    };
    for part in ["transom-kernel", "it goes on", "the group has gone"] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

/// The kernel's sender beside Transom's with the same extension, by `scenarios/kernel/extensions.toml`: bytes in flight, sample by sample, each a round trip
/// long. Gives how far they are apart, as a part of Transom's: the median over all samples after the beginning. And the scenario's own verdict.
fn apart(extension: &str, point: usize, form: &[&str]) -> Option<(f64, String)> {
    if !cfg!(feature = "kernel") {
        eprintln!("SKIPPED: this build has no extensions on the kernel's sockets (feature kernel)");
        return None;
    }
    if !rustix::process::geteuid().is_root() || !lab() {
        eprintln!("SKIPPED: programs in the kernel need root");
        return None;
    }
    let directory = tempfile::tempdir().unwrap();
    let results = directory.path().join("results");
    let scenario = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/kernel/extensions.toml");
    let mut command = Command::new(transom());
    command.args(["kernel", "run", "--extension", extension, "--"]).arg(transom());
    command.args(["lab", "run", scenario, "--emulate", "--allow-late", "--quiet"]);
    command.args(["--point", &point.to_string(), "-o"]).arg(&results).args(form);
    let ended = wait(&mut command);
    let verdict = ended.text();
    let runs = std::fs::read_dir(&results).unwrap().flatten().map(|entry| entry.path());
    let Some(run) = runs.into_iter().find(|path| path.is_dir()) else {
        panic!("{verdict}\n{}", ended.stderr)
    };
    let table = std::fs::read_to_string(run.join("flows.csv")).unwrap();
    let mut lines = table.lines().filter(|line| !line.starts_with('#'));
    let header: Vec<&str> = lines.next().unwrap().split(',').collect();
    let column = |name: &str| header.iter().position(|found| *found == name).unwrap();
    let (flow, in_flight) = (column("flow"), column("in_flight"));
    let mut courses = [Vec::new(), Vec::new()];
    for line in lines {
        let values: Vec<&str> = line.split(',').collect();
        let course = match values[flow] {
            "transom" => &mut courses[0],
            "kernel" => &mut courses[1],
            _ => continue,
        };
        course.push(values[in_flight].parse::<f64>().unwrap_or(0.0));
    }
    let [transom, kernel] = &courses;
    let pairs = transom.iter().zip(kernel).skip(100);
    let mut distances: Vec<f64> =
        pairs.map(|(ours, theirs)| (ours - theirs).abs() / ours.max(1448.0)).collect();
    distances.sort_by(f64::total_cmp);
    Some((*distances.get(distances.len() / 2).expect("samples"), verdict))
}

/// In short. A quarter is what the scenario allows for bytes in flight.
#[test]
fn the_kernels_window_follows_the_same_course() {
    for (extension, point) in [("rate-cap(rate=600kB)", 2), ("vegas", 1)] {
        let Some((distance, verdict)) = apart(extension, point, &["--form", "short"]) else {
            return;
        };
        assert!(distance < 0.25, "{extension}: {distance:.2} apart\n{verdict}");
    }
}

/// All of it, with the bands of the scenario: `cargo test -p transom-cli --features full --test all kernel:: -- --ignored --nocapture`.
#[test]
#[ignore = "takes minutes of real time on a quiet machine"]
fn every_extension_beside_transoms() {
    for (extension, point) in [
        ("vegas", 1),
        ("rate-cap(rate=600kB)", 2),
        ("limited-slow-start(max-ssthresh=10)", 3),
        ("nice", 4),
        ("nice(threshold=0.05)", 5),
    ] {
        let Some((distance, verdict)) = apart(extension, point, &[]) else { return };
        println!("{extension}, point {point}: {distance:.3} apart in the median\n{verdict}");
        assert!(!verdict.contains("FAILED"));
    }
    // What has no form on the kernel's sockets is refused, with the reason.
    for (extension, reason) in [("rr", "dupthresh"), ("cm", "SEND")] {
        let ended = run(["kernel", "run", "--extension", extension, "--", "true"]);
        assert!(ended.stderr.contains(reason), "{}", ended.stderr);
    }
}

#[test]
fn check_lists_every_variable() {
    if !cfg!(feature = "kernel") {
        run(["kernel", "check"]).fails_with(1, "build with `--features kernel`");
        return;
    }
    let ended = run(["kernel", "check", "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&ended.stdout).unwrap();
    let variables = json["variables"].as_object().unwrap();
    assert_eq!(variables.len(), 11);
    for (name, bounded) in [("cwnd", true), ("pacing_rate", true), ("dupthresh", false)] {
        assert_eq!(variables[name]["bounded"], bounded);
        assert!(variables[name]["how"].as_str().unwrap().len() > 20);
    }
    for name in ["rr", "efr", "eifel", "rledbat", "cm"] {
        assert!(json["refused"][name].as_str().unwrap().len() > 20, "{name}");
    }
    assert!(json["refused"].get("nice").is_none());
}
