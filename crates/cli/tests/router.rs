//! `transom router` from the outside: it begins, answers and ends, and leaves nothing behind however it ends.
// Mode tc uses most of it.
#![cfg_attr(not(feature = "bpf"), allow(dead_code, unused_imports))]

use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{Ended, finish, installed, run, transom, wait};
use rustix::process::{Pid, Signal, kill_process};
use transom_device::namespace::Namespace;
#[cfg(feature = "bpf")]
use transom_forwarder::tc::attached;
use transom_forwarder::{Counters, Deployment, Refusal, Status, StatusSocket};

const PATIENCE: Duration = Duration::from_secs(30);
const POLICY: &str =
    "policy = \"target-window(upper=40kB, lower=20kB)\"\nrate = \"10Mbit/s\"\nqueue = \"75kB\"\n";

/// A router with two interfaces, `in` and `out`, of which the second has a queue; and a directory with a policy file.
struct Router {
    namespace: Namespace,
    _beyond: Namespace,
    directory: tempfile::TempDir,
}

/// `None`, and a word about it, where that cannot be had.
fn router() -> Option<Router> {
    let (Ok(namespace), Ok(beyond)) = (Namespace::new(), Namespace::new()) else {
        eprintln!("SKIPPED: no network namespaces here");
        return None;
    };
    if !installed("tc") || !installed("iptables") {
        return None;
    }
    // Nothing passes but what a test sends: with IPv6, the kernel speaks on an interface by itself (RFC 4861, RFC 9777), and the target moves.
    for space in [&namespace, &beyond] {
        for which in ["all", "default"] {
            let set = space.set_sysctl(&format!("net.ipv6.conf.{which}.disable_ipv6"), "1");
            let without_ipv6 = |error: &std::io::Error| error.kind() == ErrorKind::NotFound;
            assert!(set.as_ref().err().is_none_or(without_ipv6), "{set:?}");
        }
    }
    for name in ["in", "out"] {
        namespace.add_veth(name, &beyond, &format!("{name}-far")).unwrap();
        namespace.interfaces().set_up(name, true).unwrap();
        beyond.interfaces().set_up(&format!("{name}-far"), true).unwrap();
    }
    let words = "qdisc add dev out root tbf rate 10mbit burst 5kb limit 75000";
    assert!(
        namespace
            .run(|| Command::new("tc").args(words.split(' ')).status())
            .unwrap()
            .unwrap()
            .success()
    );
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("policy.toml"), POLICY).unwrap();
    Some(Router { namespace, _beyond: beyond, directory })
}

impl Router {
    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn command(&self, device: &str, words: &str) -> Command {
        let mut command = Command::new(transom());
        command.args(["router", "run", "--device", device]).args(words.split(' '));
        command
            .arg("--policy")
            .arg(self.path("policy.toml"))
            .arg("--socket")
            .arg(self.path("socket"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Starts it and waits until it works. What it said before that, or why it does not work.
    fn start(&self, words: &str) -> Result<(Child, String), Ended> {
        let mut child = self.namespace.spawn(&mut self.command("out", words)).unwrap();
        let mut said = String::new();
        let mut lines = BufReader::new(child.stderr.take().unwrap());
        while !said.contains("windows are controlled at out") {
            if lines.read_line(&mut said).unwrap() == 0 {
                return Err(Ended { stderr: said, ..finish(child) });
            }
        }
        child.stderr = Some(lines.into_inner());
        Ok((child, said))
    }

    fn status(&self) -> Ended {
        let socket = self.path("socket");
        run(["router", "status", "--json", "--socket", socket.to_str().unwrap()])
    }

    fn end(&self, child: Child, signal: Signal) -> Option<i32> {
        kill_process(Pid::from_raw(child.id() as i32).unwrap(), signal).unwrap();
        finish(child).code
    }

    #[cfg(feature = "bpf")]
    fn programs(&self) -> Vec<String> {
        self.namespace.run(|| attached("out")).unwrap().unwrap_or_default()
    }

    fn rules(&self) -> usize {
        let output =
            self.namespace.run(|| Command::new("iptables").args(["-t", "mangle", "-S"]).output());
        String::from_utf8_lossy(&output.unwrap().unwrap().stdout).matches("transom-router").count()
    }
}

/// Waits until something is so.
#[track_caller]
fn until(mut so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !so() {
        assert!(Instant::now() < deadline);
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Whether the mode works here; what is missing is said. Anything else is a failure.
fn unless_refused<T>(started: Result<T, Ended>) -> Option<T> {
    match started {
        Ok(started) => Some(started),
        Err(ended) => {
            let known = ["router needs CAP_", "type information", "needs NFQUEUE", "little-endian"];
            assert!(known.iter().any(|known| ended.stderr.contains(known)), "{}", ended.stderr);
            eprintln!("SKIPPED: {}", ended.stderr.trim());
            None
        }
    }
}

#[cfg(feature = "bpf")]
#[test]
fn in_the_kernel() {
    let Some(router) = router() else { return };
    let Some((child, said)) = unless_refused(router.start("--mode tc --metrics 127.0.0.1:0"))
    else {
        return;
    };
    let status = router.status().success().json();
    assert_eq!(
        (status["mode"].as_str(), status["queue"]["kind"].as_str()),
        (Some("tc"), Some("tbf"))
    );
    assert_eq!((status["target"].as_u64(), status["tracked"].as_u64()), (Some(65_536), Some(0)));
    let socket = router.path("socket");
    let shown = run(["router", "status", "--socket", socket.to_str().unwrap()]).success().text();
    assert!(shown.contains("mode tc at out, policy target-window"), "{shown}");

    let at = said.split_once("http://").unwrap().1.split_once("/metrics").unwrap().0;
    let at: SocketAddr = at.parse().unwrap();
    let mut stream = router.namespace.run(|| TcpStream::connect(at)).unwrap().unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    assert!(
        text.contains("transom_router_target_window_bytes{device=\"out\",mode=\"tc\"} 65536\n"),
        "{text}"
    );

    // Only one at an interface.
    let second = router.start("--mode tc").unwrap_err();
    second.fails_with(1, "another router already answers");
    assert_eq!(router.programs().len(), 2);

    // A crash: the kernel removes the programs; the socket's name remains, and is no hindrance.
    router.end(child, Signal::KILL);
    until(|| router.programs().is_empty());
    assert!(router.path("socket").exists());
    router.status().fails_with(1, "no router answers at");
    let (child, _) = router.start("--mode tc").unwrap();
    assert_eq!(router.programs().len(), 2);
    assert_eq!(router.end(child, Signal::TERM), Some(143));
    assert!(router.programs().is_empty() && !router.path("socket").exists());
}

#[test]
fn on_packets_that_the_kernel_forwards() {
    let Some(router) = router() else { return };
    let Some((child, _)) = unless_refused(router.start("--mode nfqueue")) else { return };
    assert_eq!(router.status().success().json()["mode"], "nfqueue");
    assert_eq!(router.rules(), 2);
    // After a crash the kernel passes the rules by; the next one removes them.
    router.end(child, Signal::KILL);
    assert_eq!(router.rules(), 2);
    let (child, _) = router.start("--mode nfqueue").unwrap();
    assert_eq!(router.rules(), 2);
    assert_eq!(router.end(child, Signal::INT), Some(130));
    assert_eq!(router.rules(), 0);
    assert!(!router.path("socket").exists());
}

#[test]
fn between_two_interfaces() {
    let Some(router) = router() else { return };
    let Some((child, _)) = unless_refused(router.start("--mode user --from in")) else { return };
    let status = router.status().success().json();
    assert_eq!(
        (status["mode"].as_str(), status["queue"]["kind"].as_str()),
        (Some("user"), Some("drop-tail(75kB)"))
    );
    // An interface that goes away ends it, with the reason.
    router.namespace.interfaces().set_up("out", false).unwrap();
    let ended = finish(child);
    ended.fails_with(1, "cannot carry frames");
    assert!(!router.path("socket").exists());
}

/// A router that tells how often it was asked, so many times; then it is broken.
struct Asked {
    times: u64,
    most: u64,
}

impl Deployment for Asked {
    fn status(&mut self, flows: usize) -> Result<Status, Refusal> {
        assert_eq!(flows, 7);
        self.times += 1;
        if self.times > self.most {
            return Err(Refusal::Parameter("the queue is gone".into()));
        }
        let counters = Counters { acks: self.times, held: 5, ..Counters::default() };
        Ok(Status { mode: "user".into(), device: "out".into(), counters, ..Status::default() })
    }

    fn maintain(&mut self) -> Result<(), Refusal> {
        Ok(())
    }
}

#[test]
fn a_status_is_watched_until_there_is_none() {
    let directory = tempfile::tempdir().unwrap();
    let watch = |name: &str, most: u64, words: &[&str]| {
        let path = directory.path().join(name);
        let serving = StatusSocket::bind(&path).unwrap();
        serving.serve(Box::new(Asked { times: 0, most })).unwrap();
        let mut command = Command::new(transom());
        command.args(["router", "status", "--watch", "--flows", "7", "--socket"]).arg(&path);
        command.args(words).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        (serving, command.spawn().unwrap())
    };
    let (_one, lines) = watch("lines", 3, &["--json"]);
    let (_other, text) = watch("text", 2, &[]);

    let ended = finish(lines).fails_with(1, "the queue is gone");
    let acks: Vec<u64> = ended
        .text()
        .lines()
        .map(|line| serde_json::from_str::<Status>(line).unwrap().counters.acks)
        .collect();
    assert_eq!(acks, [1, 2, 3], "{}", ended.text());

    let shown = finish(text).fails_with(1, "the queue is gone").text();
    assert_eq!(shown.matches("mode user at out").count(), 2, "{shown}");
    assert!(shown.contains("2: 0 rewritten, 5 held"), "{shown}");
    // Nothing is drawn over where nobody looks at a terminal.
    assert!(!shown.contains('\u{1b}'), "{shown:?}");
}

#[test]
fn policy_files_are_checked() {
    let directory = tempfile::tempdir().unwrap();
    let written = |name: &str, text: &str| {
        let path = directory.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let text = run(["router", "check", &written("good.toml", POLICY)]).success().text();
    assert!(
        text.contains("target-window(upper=40kB, lower=20kB") && text.contains("drop-tail(75kB)"),
        "{text}"
    );
    let bad = POLICY.replace("lower=20kB", "lower=50kB");
    run(["router", "check", &written("bad.toml", &bad)]).fails_with(1, "bad.toml:1:10");
    let short = POLICY.replace("upper=40kB", "upper=100kB");
    run(["router", "check", &written("short.toml", &short)])
        .fails_with(1, "a queue limited to 75kB never exceeds target-window's `upper` (100kB)");
    run(["router", "check", "/no/such/file"]).fails_with(1, "cannot read /no/such/file");
}

#[test]
fn impossible_commands_are_refused() {
    let Some(router) = router() else { return };
    for (device, words, message) in [
        ("in", "--mode tc", "noqueue"),
        ("nowhere", "--mode tc", "there is no network interface called nowhere here"),
        ("out", "--mode user --from out", "name another interface"),
        ("out", "--mode nfqueue --passive", "--passive is for mode tc"),
    ] {
        let ended = router.namespace.run(|| wait(&mut router.command(device, words))).unwrap();
        ended.fails_with(1, message);
        assert!(!router.path("socket").exists());
    }
    run(["router", "run", "--mode", "user", "--device", "x", "--policy", "y"])
        .fails_with(2, "--from");
}

#[test]
fn a_user_without_privileges_is_told_the_missing_ones() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: only root can become somebody else");
        return;
    }
    // Copies where everybody can read them.
    let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    let directory = tempfile::Builder::new().permissions(permissions).tempdir().unwrap();
    let copied = |from: &Path, name: &str| {
        let to = directory.path().join(name);
        // By a process of its own: see the same in emulate.rs.
        wait(Command::new("cp").arg(from).arg(&to)).success();
        to
    };
    let program = copied(&transom(), "transom");
    let policy = directory.path().join("policy.toml");
    fs::write(&policy, POLICY).unwrap();
    let bpf = match cfg!(feature = "bpf") {
        true => "the router needs CAP_NET_ADMIN and CAP_PERFMON and CAP_BPF: run it as root",
        false => {
            "this build of transom has no programs for the kernel (the broker, mode tc); build with `--features bpf`"
        }
    };
    for (mode, missing) in [
        ("tc", bpf),
        ("nfqueue", "the router needs CAP_NET_ADMIN: run it as root"),
        ("user", "the router needs CAP_NET_ADMIN and CAP_NET_RAW: run it as root"),
    ] {
        let mut command = Command::new(&program);
        command.args(["router", "run", "--device", "lo", "--from", "lo", "--mode", mode]);
        command.arg("--policy").arg(&policy).uid(65_534).gid(65_534);
        wait(&mut command).fails_with(1, missing);
    }
}
