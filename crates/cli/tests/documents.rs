//! The documents are tests: the command lines of each page run as they stand there, and so do the examples in the help of each command.
//!
//! Each page has a [stage](stage.py): a network of its own, servers at the addresses that pages name, and a directory with files of the names that
//! they use. Whether the words of all command lines are right, also of those that do not run, is a test of the command line itself
//! (`src/documents.rs`). Rust in pages is compiled by `examples/documents`.

use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

use serde_json::{Value, json};

use crate::support::{content, installed, run, transom};
use snippets::{Fence, examples, fences, pages};

mod examples;
#[allow(dead_code, unreachable_pub, reason = "other programs have it too, and need more of it")]
mod snippets;

/// How many stages there are at once.
const AT_ONCE: usize = 3;
/// The beginnings of commands that go on until they are interrupted.
const GO_ON: [&str; 21] = [
    "transom serve . --device",
    "transom serve /srv/www",
    "transom serve --",
    "transom exec -- nginx",
    "transom demux",
    "transom kernel log --follow",
    "transom lab play",
    "transom router status --device eth1 --watch",
    "transom top",
    "transom dash",
    "transom router run",
    "transom broker run",
    "transom broker watch",
    "transom kernel watch",
    "transom recv 9000 -o disk.img",
    "transom cm run",
    "transom bench --server --side kernel",
    "transom lab run fairness.toml --tui",
    "transom kernel run --extension 'rate-cap",
    "setpriv",
    "tcpdump",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// A command line that runs: where it stands, and its words.
struct Step {
    place: String,
    command: String,
    /// Its block of code: commands that go on end with it.
    block: usize,
}

/// As a command line of a page runs here: the command that is tested stands for the one that `cargo run` would build.
fn here(command: &str) -> String {
    let command = command.strip_prefix("sudo ").unwrap_or(command);
    command.replace("cargo run --release --", "transom")
}

fn goes_on(command: &str) -> bool {
    let command = command.trim_start_matches("TRANSOM_STATUS=1 ");
    let ends =
        command.contains("--run") || command.contains("--once") || command.contains("--help");
    !ends && GO_ON.iter().any(|beginning| command.starts_with(beginning))
}

/// The files that pages speak of.
fn furnish(directory: &Path, fences: &[Fence], makes_scenario: bool) {
    for name in ["scenarios", "papers", "examples", "crates", "docs", "packaging"] {
        symlink(root().join(name), directory.join(name)).unwrap();
    }
    let www = directory.join("www");
    fs::create_dir(&www).unwrap();
    for name in ["file", "FILE", "big.iso", "disk.img", "x", "big", "original", "photo.raw"] {
        content(&directory.join(name), 100_000);
        content(&www.join(name), 100_000);
    }
    fs::create_dir(directory.join("src")).unwrap();
    fs::write(directory.join("src/a.txt"), "a file\n").unwrap();
    for place in [directory, &www] {
        fs::write(place.join("index.html"), "<p>hello</p>\n").unwrap();
    }
    let tar = Command::new("tar").args(["cf", "src.tar", "src"]).current_dir(directory).status();
    assert!(tar.unwrap().success());
    let scenarios = root().join("scenarios");
    for name in ["fairness.toml", "kernel-cubic.toml"] {
        fs::copy(scenarios.join(name), directory.join(name)).unwrap();
    }
    // Unless the commands make it.
    if !makes_scenario {
        fs::copy(scenarios.join("fairness.toml"), directory.join("scenario.toml")).unwrap();
    }
    fs::copy(root().join("packaging/router.toml"), directory.join("policy.toml")).unwrap();
    fs::copy(root().join("packaging/broker.toml"), directory.join("broker.toml")).unwrap();
    for fence in fences.iter().filter(|fence| fence.language == "toml" && !fence.note.is_empty()) {
        if fence.reason().is_none() {
            fs::write(directory.join(&fence.note), fence.lines.join("\n") + "\n").unwrap();
        }
    }
}

/// Runs commands on a stage, and gives what failed.
fn staged(steps: &[Step], fences: &[Fence]) -> Vec<String> {
    let directory = tempfile::tempdir().unwrap();
    let makes_scenario = steps.iter().any(|step| step.command.contains("lab new"));
    furnish(directory.path(), fences, makes_scenario);
    let commands: Vec<Value> = steps
        .iter()
        .map(|step| json!([step.place, step.command, goes_on(&step.command), step.block]))
        .collect();
    let told = json!({
        "commands": commands,
        "directory": directory.path(),
        "path": transom().parent().unwrap(),
    });
    let mut unshare = Command::new("unshare");
    if !rustix::process::geteuid().is_root() {
        unshare.args(["--user", "--map-root-user"]);
    }
    let mut child = unshare
        .args(["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "python3"])
        .arg(root().join("crates/cli/tests/documents/stage.py"))
        .current_dir(directory.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(told.to_string().as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    let mut failures = Vec::new();
    let mut results = 0;
    for line in told.lines() {
        let result: Value = serde_json::from_str(line).unwrap();
        results += 1;
        if result[1] != 0 {
            let text = |index: usize| result[index].as_str().unwrap_or_default().to_owned();
            let step = steps.iter().find(|step| step.place == text(0)).expect("a step");
            failures.push(format!(
                "{}: `{}` ends with {}\n{}{}",
                step.place,
                step.command,
                result[1],
                text(2),
                text(3)
            ));
        }
    }
    if results != steps.len() {
        let errors = String::from_utf8_lossy(&output.stderr);
        failures.push(format!("{}: {results} of {} ran: {errors}", steps[0].place, steps.len()));
    }
    failures
}

/// Runs groups of commands, each on a stage of its own: the last group first, some at once.
fn all_staged(groups: Vec<(Vec<Step>, Vec<Fence>)>) {
    let (waiting, failures) = (Mutex::new(groups), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let next = waiting.lock().unwrap().pop();
                    let Some((steps, fences)) = next else { return };
                    let failed = staged(&steps, &fences);
                    failures.lock().unwrap().extend(failed);
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// The commands of a page that run.
fn steps_of(page: &Path, fences: &[Fence]) -> Vec<Step> {
    let shell = fences.iter().filter(|fence| fence.language == "sh" && fence.reason().is_none());
    let mut steps: Vec<Step> = shell
        .flat_map(|fence| {
            fence.commands().into_iter().map(|(line, command)| Step {
                place: format!("{}:{line}", page.display()),
                command: here(&command),
                block: fence.line,
            })
        })
        .collect();
    prepare(&mut steps);
    // Files that a page shows are checked by the command that reads such files.
    for fence in fences.iter().filter(|fence| fence.language == "toml" && fence.reason().is_none())
    {
        let command = match fence.note.as_str() {
            "policy.toml" => "transom router check policy.toml",
            "broker.toml" => "transom broker check broker.toml",
            name if name.ends_with(".toml") => &format!("transom lab check {name}"),
            _ => continue,
        };
        let place = format!("{}:{}", page.display(), fence.line);
        steps.push(Step { place, command: command.to_owned(), block: fence.line });
    }
    steps
}

/// Makes the logs and captures that commands read, unless they write them themselves.
fn prepare(steps: &mut Vec<Step>) {
    let reads = |name: &str| {
        let first = steps.iter().find(|step| step.command.contains(name));
        first.is_some_and(|step| !step.command.contains("--log"))
    };
    if ["get.tlog", "seen.pcap"].into_iter().any(reads) {
        let command = "transom get http://10.9.0.1/file -o got --log get.tlog --pcap seen.pcapng && cp seen.pcapng seen.pcap";
        let place = "files that the commands read".to_owned();
        steps.insert(0, Step { place, command: command.to_owned(), block: 0 });
    }
}

/// Whether this system can give a stage; says so if not.
fn can_stage() -> bool {
    if ![
        "unshare", "python3", "ip", "tc", "curl", "bash", "rsync", "nginx", "busybox", "iptables",
        "socat", "tar", "tshark", "tcpdump", "iperf3", "wrk", "setpriv",
    ]
    .iter()
    .all(|name| installed(name))
    {
        return false;
    }
    let mut unshare = Command::new("unshare");
    if !rustix::process::geteuid().is_root() {
        unshare.args(["--user", "--map-root-user"]);
    }
    let made = unshare.args(["--net", "--mount", "--pid", "--fork", "true"]).output().unwrap();
    if !made.status.success() {
        let why = String::from_utf8_lossy(&made.stderr).into_owned();
        eprintln!("SKIPPED: the commands of the documents (no network of our own: {})", why.trim());
    }
    made.status.success()
}

#[test]
fn the_commands_of_every_page_run() {
    if !can_stage() {
        return;
    }
    let only = std::env::var("TRANSOM_PAGE").unwrap_or_default();
    let mut waiting: Vec<(Vec<Step>, Vec<Fence>)> = pages(&root())
        .into_iter()
        .filter(|page| page.to_string_lossy().contains(&only))
        .map(|page| {
            let fences = fences(&fs::read_to_string(root().join(&page)).unwrap());
            (steps_of(&page, &fences), fences)
        })
        .filter(|(steps, _)| !steps.is_empty())
        .collect();
    assert!(!only.is_empty() || waiting.len() > 8, "{} pages have commands", waiting.len());
    waiting.reverse();
    all_staged(waiting);
}

#[test]
fn the_examples_of_the_help_run() {
    if !can_stage() || !cfg!(feature = "packaging") {
        return;
    }
    let page = run(["man", "--markdown"]).success().text();
    let only = std::env::var("TRANSOM_PAGE").unwrap_or_default();
    let (mut groups, mut all) = (Vec::new(), Vec::new());
    for section in page.split("\n#").skip(1) {
        let section = section.trim_start_matches('#').trim_start();
        let name = section.lines().next().unwrap_or_default();
        let commands = examples(section);
        all.extend(commands.iter().cloned());
        let mut steps: Vec<Step> = commands
            .into_iter()
            .filter(|command| examples::runs(command))
            .map(|command| Step {
                place: format!("help of {name}: {command}"),
                command: here(&command),
                block: 0,
            })
            .collect();
        prepare(&mut steps);
        if !steps.is_empty() && name.contains(&only) {
            groups.push((examples::complete(steps), Vec::new()));
        }
    }
    assert!(!only.is_empty() || groups.len() > 30, "{} commands have examples", groups.len());
    examples::all_needed(&all);
    all_staged(groups);
}

/// A fence says what it is, and a command that is not run says why.
#[test]
fn every_fence_says_what_it_is() {
    let known = ["sh", "console", "text", "rust", "toml", "c", "python", "json", "mermaid"];
    let mut wrong = Vec::new();
    for page in pages(&root()) {
        for fence in fences(&fs::read_to_string(root().join(&page)).unwrap()) {
            let place = format!("{}:{}", page.display(), fence.line);
            if !known.contains(&fence.language.as_str()) {
                wrong.push(format!("{place}: a fence of kind {:?}", fence.language));
            }
            if fence.language != "toml" && !fence.note.is_empty() && fence.reason().is_none() {
                wrong.push(format!("{place}: {:?} is no reason", fence.note));
            }
            if fence.reason().is_some_and(|reason| reason.len() < 10) {
                wrong.push(format!("{place}: {:?} says too little", fence.note));
            }
            let command = |line: &&String| {
                ["transom ", "sudo ", "cargo ", "make ", "pip "]
                    .iter()
                    .any(|word| line.starts_with(word))
            };
            // Records of a protocol begin with the name of their speaker.
            if fence.language == "text"
                && let Some(line) =
                    fence.lines.iter().find(|line| command(line) && !line.contains("  {"))
            {
                wrong.push(format!("{place}: a command in a fence of text: {line}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
