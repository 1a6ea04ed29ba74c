//! Emulated runs from the outside: what is kept, what is said when they cannot be believed, and that nothing is left of them.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{TABLE, finish, lab, run, transom, wait};
use rustix::process::{Pid, Signal, kill_process};

const PATIENCE: Duration = Duration::from_secs(30);

/// Two hosts with the kernel's TCP.
fn scenario(duration: &str, link: &str, flow: &str) -> String {
    format!(
        "[scenario]\nname = \"test\"\nduration = \"{duration}\"\n\
         [hosts]\na = {{ kind = \"kernel\" }}\nb = {{ kind = \"kernel\" }}\n\
         [[links]]\nname = \"path\"\nfrom = \"a\"\nto = \"b\"\n{link}\n\
         [[flows]]\nname = \"flow\"\nfrom = \"a\"\nto = \"b\"\n{flow}\n"
    )
}

/// Writes a scenario, and says where it and its results are.
fn written(directory: &Path, text: &str) -> (String, String) {
    let file = directory.join("test.toml");
    fs::write(&file, text).unwrap();
    let text = |path: PathBuf| path.to_str().unwrap().to_owned();
    (text(file), text(directory.join("results")))
}

/// Waits until `ready` gives something.
#[track_caller]
fn until<T>(mut ready: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(value) = ready() {
            return value;
        }
        assert!(Instant::now() < deadline, "it did not come to be in time");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn entries(directory: &str) -> Vec<PathBuf> {
    let all = fs::read_dir(directory).map(|all| all.flatten().map(|one| one.path()).collect());
    all.unwrap_or_default()
}

#[test]
fn a_run_is_kept_and_not_repeated_and_is_another_than_the_simulated_one() {
    let directory = tempfile::tempdir().unwrap();
    // Transom's hosts need no privileges.
    let text = scenario("300ms", "delay = \"5ms\"\nrate = \"5Mbit/s\"", "kind = \"bulk\"")
        .replace("{ kind = \"kernel\" }", "{}");
    let (file, results) = written(directory.path(), &text);
    let emulate = ["lab", "run", &file, "-o", &results, "--emulate", "--allow-late", "--json"];
    let first = run(emulate).success().json();
    let made = &first["runs"][0];
    assert!(made["emulation"]["fidelity"]["lag"]["p99_us"].is_number(), "{made}");
    assert_eq!(made["events"], serde_json::Value::Null);
    let place = Path::new(made["directory"].as_str().unwrap()).to_owned();
    let table = format!("flows.{TABLE}");
    for file in ["emulation.json", &table, "links.csv", "report.html"] {
        assert!(place.join(file).is_file(), "{file}");
    }
    let page = fs::read_to_string(place.join("report.html")).unwrap();
    assert!(page.contains("Emulated in real time") && page.contains("--emulate --seed 1"));
    assert_eq!(run(emulate).success().json()["already"], 1);
    let simulated = run(["lab", "run", &file, "-o", &results, "--json"]).success().json();
    assert_eq!(simulated["already"], 0);
    assert_ne!(simulated["runs"][0]["id"], made["id"]);
    assert_eq!(simulated["runs"][0]["emulation"], serde_json::Value::Null);
    run(["lab", "run", &file, "--allow-late"]).fails_with(2, "--emulate");
    run(["lab", "run", &file, "--emulate", "--jobs", "2"]).fails_with(2, "cannot be used with");
}

#[test]
fn a_run_that_cannot_be_believed_fails_and_is_not_kept() {
    if !lab() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    // Without a rate and a delay, what comes out is due when it comes in: a window of packets at the same time.
    let (file, results) = written(directory.path(), &scenario("1s", "", "kind = \"bulk\""));
    let emulate = ["lab", "run", &file, "-o", &results, "--emulate", "-q"];
    let late = run(emulate).fails_with(1, "THE EMULATOR FELL BEHIND");
    assert!(late.stderr.contains("1 of 1 runs are missing"), "{}", late.stderr);
    assert!(!entries(&results).iter().any(|path| path.is_dir()), "{:?}", entries(&results));
    let kept = run([&emulate[..], &["--allow-late"]].concat()).success();
    assert!(kept.text().contains("THE EMULATOR FELL BEHIND"), "{}", kept.text());
    let place = entries(&results).into_iter().find(|path| path.is_dir()).unwrap();
    let page = fs::read_to_string(place.join("report.html")).unwrap();
    assert!(page.contains("The emulator fell behind, and nothing here is to be believed"));
    // It does not stand for a run that is to be believed.
    run(emulate).fails_with(1, "THE EMULATOR FELL BEHIND");
}

#[test]
fn a_program_that_fails_fails_the_run() {
    if !lab() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let flow = "kind = \"program\"\nclient = [\"sh\", \"-c\", \"echo so it is; exit 7\"]";
    let text = scenario("300ms", "delay = \"5ms\"", flow);
    let (file, results) = written(directory.path(), &text);
    let ended = run([
        "lab",
        "run",
        &file,
        "-o",
        &results,
        "--emulate",
        "--allow-late",
        "--allow-programs",
        "-q",
    ]);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(ended.text().contains("FAILED client of flow, sh: exit status 7"), "{}", ended.text());
    let place = entries(&results).into_iter().find(|path| path.is_dir()).unwrap();
    assert_eq!(fs::read_to_string(place.join("flow.client.stdout")).unwrap(), "so it is\n");
}

#[test]
fn an_interruption_ends_programs_and_leaves_nothing() {
    if !lab() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let flow = "kind = \"program\"\nserver = [\"sh\", \"-c\", \"echo $$; exec sleep 1003\"]\n\
                client = [\"sh\", \"-c\", \"sleep 1004 & echo $!; wait\"]";
    let text = scenario("600s", "delay = \"5ms\"", flow);
    let (file, results) = written(directory.path(), &text);
    let child = Command::new(transom())
        .args(["lab", "run", &file, "-o", &results, "--emulate", "--allow-programs", "-q"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let printed = |name: &str| {
        until(|| {
            let unfinished = entries(&results).into_iter().find(|path| path.is_dir())?;
            let text = fs::read_to_string(unfinished.join(name)).ok()?;
            text.ends_with('\n').then(|| text.trim().to_owned())
        })
    };
    let programs = [printed("flow.server.stdout"), printed("flow.client.stdout")];
    let running = |pid: &String| {
        // One that is dead and not waited for by anybody does not run.
        fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
    };
    assert!(programs.iter().all(running));
    let asked = Instant::now();
    kill_process(Pid::from_raw(child.id() as i32).unwrap(), Signal::INT).unwrap();
    let ended = finish(child);
    assert_eq!(ended.code, Some(130), "{}", ended.stderr);
    assert!(asked.elapsed() < PATIENCE);
    assert!(ended.stderr.contains("interrupted: 1 of 1 runs are missing"), "{}", ended.stderr);
    until(|| (!programs.iter().any(running)).then_some(()));
    assert!(!entries(&results).iter().any(|path| path.is_dir()), "{:?}", entries(&results));
}

#[test]
fn a_user_without_privileges_is_told_how_to_go_on() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: only root can become somebody else");
        return;
    }
    // A copy where everybody can read it.
    let directory = tempfile::Builder::new().permissions(permissions(0o755)).tempdir().unwrap();
    let program = directory.path().join("transom");
    // Not `fs::copy`: a child that another test forks meanwhile would hold the file open for writing, and the kernel runs no such file.
    wait(Command::new("cp").arg(transom()).arg(&program)).success();
    let text = scenario("200ms", "delay = \"5ms\"", "kind = \"bulk\"");
    let (file, _) = written(directory.path(), &text);
    let results = tempfile::tempdir().unwrap();
    // Afterwards, because the mask of the process holds for what is created.
    fs::set_permissions(results.path(), permissions(0o777)).unwrap();
    let ended = wait(
        Command::new(&program)
            .args(["lab", "run", &file, "--emulate", "--allow-late", "-q", "-o"])
            .arg(results.path())
            .uid(65_534)
            .gid(65_534),
    );
    if ended.code == Some(0) {
        eprintln!("ordinary users may emulate here");
        return;
    }
    let said = &ended.stderr;
    assert_eq!(ended.code, Some(1), "{said}");
    assert!(said.contains("run it as root") || said.contains("chmod 666 /dev/net/tun"), "{said}");
}

fn permissions(mode: u32) -> fs::Permissions {
    use std::os::unix::fs::PermissionsExt;
    fs::Permissions::from_mode(mode)
}
