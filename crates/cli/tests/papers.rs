//! Experiments of the papers run as the command says, and the page of results is what the summaries say.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[track_caller]
fn papers(arguments: &[&str], directory: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_transom"))
        .arg("papers")
        .args(arguments)
        .current_dir(directory)
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Two that take little: they come out as the paper says, are kept, not run twice, and stand in the page of results.
#[test]
fn quick_experiments_come_out() {
    let directory = tempfile::tempdir().unwrap();
    let run = ["run", "ltcp/fig11", "--seeds", "1", "--quiet", "--keep", "kept"];
    let output = papers(&run, directory.path());
    let said = text(&output.stdout);
    assert!(output.status.success(), "{said}{}", text(&output.stderr));
    assert!(said.contains("ltcp/fig11, quick") && said.contains("4 of 4 bands hold"), "{said}");
    let place = directory.path().join("results/papers/ltcp/fig11/quick");
    assert!(place.join("results.json").is_file());
    let again = text(&papers(&run, directory.path()).stdout);
    assert!(again.contains("there already"), "{again}");
    let page = text(&papers(&["results", "--from", "kept"], directory.path()).stdout);
    let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| ltcp/fig11 ")).collect();
    assert_eq!(rows.len(), 4, "{page}");
    for row in rows {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let ratio: f64 = cells[5].parse().unwrap();
        assert!((0.9..=1.1).contains(&ratio), "{row}");
        assert_eq!((cells[6], cells[7]), ("holds", "1, quick"), "{row}");
        assert_eq!(cells[8], "`transom papers run ltcp/fig11`");
    }
    // Experiments that were not run say so.
    let other = page.lines().find(|line| line.starts_with("| ltcp/fig9 ")).unwrap();
    assert!(other.contains("| not run |"), "{other}");
}

/// The page in the repository is the one that its summaries give.
#[test]
fn the_page_of_results_is_current() {
    let output = papers(&["results"], &root());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let kept = std::fs::read_to_string(root().join("RESULTS.md")).unwrap();
    assert!(
        text(&output.stdout) == kept,
        "RESULTS.md is out of date; rewrite it with\n    transom papers results > RESULTS.md"
    );
    // Every claim that differs says what was found.
    for line in kept.lines().filter(|line| line.contains("**differs**")) {
        assert!(line.contains("**differs** ("), "without a finding: {line}");
    }
}

#[test]
fn what_there_is_can_be_listed_and_described() {
    let here = Path::new(".");
    let list = text(&papers(&["list"], here).stdout);
    assert!(list.contains("ltcp/fig5") && list.contains("compose/goodput"), "{list}");
    let output = papers(&["describe", "ltcp/fig8"], here);
    let described = text(&output.stdout);
    assert!(
        described.contains("101.25 Mbit/s of 500") && described.contains("Set-up:"),
        "{described}"
    );
    let output = papers(&["describe", "ltcp/fig5", "--scenario"], here);
    let file = std::fs::read_to_string(root().join("papers/ltcp/fig5.toml")).unwrap();
    assert_eq!(text(&output.stdout).trim_end(), file.trim_end());
    let output = papers(&["run", "ltcp/fig99"], here);
    assert!(!output.status.success());
    assert!(text(&output.stderr).contains("there is no experiment ltcp/fig99"));
}
