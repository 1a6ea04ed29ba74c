//! The tutorial's commands run as they stand there, and print what it says.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::{lab, transom};

/// A command, and the lines that the page shows below it.
struct Step {
    line: usize,
    command: String,
    shown: Vec<String>,
}

fn steps(page: &str) -> Vec<Step> {
    let (mut steps, mut inside) = (Vec::<Step>::new(), false);
    for (number, line) in page.lines().enumerate() {
        if line.starts_with("```") {
            inside = line == "```console";
        } else if let Some(command) = line.strip_prefix("$ ").filter(|_| inside) {
            steps.push(Step { line: number + 1, command: command.to_owned(), shown: Vec::new() });
        } else if let Some(step) = steps.last_mut().filter(|_| inside) {
            step.shown.push(line.to_owned());
        }
    }
    steps
}

/// Whether the output has the lines shown, in this order. A line ends at `…`; what follows may be anything.
fn has_lines(output: &str, shown: &[String]) -> Result<(), String> {
    let mut lines = output.lines();
    for wanted in shown.iter().filter(|wanted| *wanted != "…") {
        let beginning = wanted.split('…').next().unwrap_or_default();
        let fits = |line: &str| {
            if wanted.contains('…') { line.starts_with(beginning) } else { line == wanted }
        };
        if !lines.any(fits) {
            return Err(format!("no line {wanted:?}, in this order, in:\n{output}"));
        }
    }
    Ok(())
}

#[test]
fn every_command_of_the_tutorial_works() {
    if !lab() {
        return;
    }
    if Command::new("curl").arg("--version").output().is_err() {
        eprintln!("SKIPPED: the tutorial (curl is not installed)");
        return;
    }
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/tutorial.md");
    let steps = steps(&fs::read_to_string(page).unwrap());
    assert!(steps.len() > 8, "the tutorial has {} commands", steps.len());
    let directory = tempfile::tempdir().unwrap();
    let path =
        format!("{}:{}", transom().parent().unwrap().display(), std::env::var("PATH").unwrap());
    for Step { line, command, shown } in steps {
        let output = Command::new("timeout")
            .args(["80", "sh", "-c", &command])
            .current_dir(directory.path())
            .env("PATH", &path)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "docs/tutorial.md:{line}: {command}\n{text}{errors}");
        if let Err(error) = has_lines(&text, &shown) {
            panic!("docs/tutorial.md:{line}: {command}: {error}");
        }
    }
}

#[test]
fn a_line_that_is_missing_is_seen() {
    let shown = |lines: &[&str]| lines.iter().map(|&line| line.to_owned()).collect::<Vec<_>>();
    assert!(has_lines("one\ntwo 3\n", &shown(&["…", "two …"])).is_ok());
    assert!(has_lines("one\ntwo 3\n", &shown(&["two …", "one"])).is_err(), "another order");
    assert!(has_lines("one\n", &shown(&["on"])).is_err(), "a part of a line");
}
