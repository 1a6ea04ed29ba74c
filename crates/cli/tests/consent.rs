//! The programs of a scenario do not run before somebody has said that they may.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::{Ended, finish, installed, lab, run, transom, wait};
use transom_lab::scenario::Scenario;

/// A scenario whose client leaves a mark where it ran.
fn scenario(directory: &Path, mark: &str) -> PathBuf {
    let text = format!(
        "[scenario]\nname = \"test\"\nduration = \"300ms\"\n\
         [hosts]\na = {{ kind = \"kernel\" }}\nb = {{ kind = \"kernel\" }}\n\
         [[links]]\nname = \"path\"\nfrom = \"a\"\nto = \"b\"\ndelay = \"5ms\"\n\
         [[flows]]\nname = \"flow\"\nfrom = \"a\"\nto = \"b\"\nkind = \"program\"\n\
         client = [\"sh\", \"-c\", \"echo {mark} > mark\"]\n\
         [forms.other.flows.flow]\nclient = [\"echo\", \"other {{address}}\"]\n"
    );
    let file = directory.join("test.toml");
    fs::write(&file, text).unwrap();
    file
}

/// `transom lab run --emulate` on a file, with what it remembers in this directory too.
fn emulate(file: &Path, more: &[&str]) -> Command {
    let directory = file.parent().unwrap();
    let mut command = Command::new(transom());
    command
        .args(["lab", "run", "--emulate", "--allow-late", "--quiet", "--fresh", "-o"])
        .args([&directory.join("results"), file])
        .args(more)
        .env("XDG_STATE_HOME", directory.join("state"));
    command
}

/// The same on a terminal, where this is typed.
fn on_a_terminal(file: &Path, typed: &str) -> Ended {
    let command = emulate(file, &[]);
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let line: Vec<&str> = words.map(|word| word.to_str().unwrap()).collect();
    let mut child = Command::new("script")
        .args(["-qec", &line.join(" "), "/dev/null"])
        .env("XDG_STATE_HOME", file.parent().unwrap().join("state"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut terminal = child.stdin.take().unwrap();
    terminal.write_all(typed.as_bytes()).unwrap();
    // Kept open: the end of a terminal's input is another answer.
    let ended = finish(child);
    drop(terminal);
    ended
}

fn mark(file: &Path) -> Option<String> {
    let text = fs::read_to_string(file.with_file_name("mark")).ok()?;
    Some(text.trim().to_owned())
}

#[test]
fn a_check_shows_what_would_run() {
    let directory = tempfile::tempdir().unwrap();
    let file = scenario(directory.path(), "one");
    let file = file.to_str().unwrap();
    let said = run(["lab", "check", file]).success().text();
    assert!(
        said.contains(
            "It runs programs, with your rights:\n  on a, client of flow:  sh -c 'echo one > mark'\n\
             It runs programs, with your rights, in its form other:\n  on a, client of flow:  echo 'other {address}'\n"
        ),
        "{said}"
    );
    let json = run(["lab", "check", file, "--json"]).success().json();
    let first = &json["programs"][0];
    assert_eq!(first["form"], serde_json::Value::Null);
    assert_eq!(first["commands"][0]["command"][2], "echo one > mark");
    assert_eq!(first["commands"][0]["hosts"][0], "a");
    assert_eq!(json["programs"][1]["form"], "other");
}

#[test]
fn without_a_terminal_nothing_runs_unasked() {
    let directory = tempfile::tempdir().unwrap();
    let file = scenario(directory.path(), "one");
    let refused = wait(&mut emulate(&file, &[])).fails_with(1, "--allow-programs");
    assert!(refused.stderr.contains("on a, client of flow:  sh -c 'echo one > mark'"));
    wait(&mut emulate(&file, &["--no-programs"])).fails_with(1, "which --no-programs refuses");
    wait(&mut emulate(&file, &["--no-programs", "--allow-programs"]))
        .fails_with(2, "cannot be used");
    assert_eq!(mark(&file), None);
    if !lab() {
        return;
    }
    let allowed = emulate(&file, &["--allow-programs"]).output().unwrap();
    assert!(allowed.status.success(), "{}", String::from_utf8_lossy(&allowed.stderr));
    assert_eq!(mark(&file).as_deref(), Some("one"));
    // That was for this time.
    assert!(!directory.path().join("state").exists());
    wait(&mut emulate(&file, &[])).fails_with(1, "--allow-programs");
}

#[test]
fn on_a_terminal_it_is_asked_once() {
    if !installed("script") || !lab() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let file = scenario(directory.path(), "one");
    let refused = on_a_terminal(&file, "no\n");
    assert_eq!(refused.code, Some(1), "{}", refused.text());
    assert!(refused.text().contains("May they run?"), "{}", refused.text());
    assert_eq!(mark(&file), None);
    let allowed = on_a_terminal(&file, "yes\n");
    assert_eq!(allowed.code, Some(0), "{}", allowed.text());
    assert!(allowed.text().contains("May they run?"), "{}", allowed.text());
    assert_eq!(mark(&file).as_deref(), Some("one"));
    // It is known now, with and without a terminal.
    fs::remove_file(file.with_file_name("mark")).unwrap();
    wait(&mut emulate(&file, &[])).success();
    assert_eq!(mark(&file).as_deref(), Some("one"));
    wait(&mut emulate(&file, &["--no-programs"])).fails_with(1, "which --no-programs refuses");
    // Another form, or a change, is not.
    wait(&mut emulate(&file, &["--form", "other"])).fails_with(1, "--allow-programs");
    scenario(directory.path(), "two");
    wait(&mut emulate(&file, &[])).fails_with(1, "--allow-programs");
    assert_eq!(mark(&file).as_deref(), Some("one"));
}

/// None of the repository's own scenarios runs programs. One that did would have to be known, or to be allowed wherever it is run.
#[test]
fn the_gallery_and_the_papers_run_no_programs() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut count = 0;
    for directory in ["scenarios", "papers/ictcp", "papers/compose", "papers/ltcp", "papers/router"]
    {
        for entry in fs::read_dir(root.join(directory)).unwrap() {
            let file = entry.unwrap().path();
            if file.extension().is_none_or(|extension| extension != "toml") {
                continue;
            }
            count += 1;
            let forms = Scenario::load(&file, None).unwrap().forms;
            for form in std::iter::once(None).chain(forms.iter().map(|form| Some(form.as_str()))) {
                let scenario = Scenario::load(&file, form).unwrap();
                let flows = scenario.sweep().flat_map(|variant| variant.resolved.flows);
                let programs = flows.filter(|flow| flow.program().is_some());
                assert_eq!(programs.count(), 0, "{}", file.display());
            }
        }
    }
    assert!(count >= 30, "{count} scenarios");
}
