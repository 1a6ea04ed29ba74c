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
    let stored = root().join("papers/results");
    let stored = stored.to_str().unwrap();
    let run =
        ["run", "ltcp/fig11", "--seeds", "1", "--quiet", "--keep", "kept", "--stored", stored];
    let output = papers(&run, directory.path());
    let said = text(&output.stdout);
    assert!(output.status.success(), "{said}{}", text(&output.stderr));
    assert!(said.contains("ltcp/fig11, quick") && said.contains("4 of 4 bands hold"), "{said}");
    assert!(said.contains("As stored: all "), "{said}");
    let place = directory.path().join("results/papers/ltcp/fig11/quick");
    assert!(place.join("results.json").is_file());
    let again = text(&papers(&run, directory.path()).stdout);
    assert!(again.contains("there already"), "{again}");
    let page = text(&papers(&["results", "--from", "kept"], directory.path()).stdout);
    let row = |id: &str| -> Vec<String> {
        let start = format!("| [{id}](");
        let rows: Vec<&str> = page.lines().filter(|line| line.starts_with(&start)).collect();
        assert_eq!(rows.len(), 1, "{id}: {page}");
        rows[0].split('|').map(|cell| cell.trim().to_owned()).collect()
    };
    // The page has two claims more, of the same experiment in real time, which was not run.
    let cells = row("ltcp/fig11");
    assert!(
        cells[4].contains("Mbit/s (1 run)") && cells[5] == "partly, 3 of 5 claims, quick form",
        "{cells:?}"
    );
    // Experiments that were not run say so.
    assert_eq!(row("ltcp/fig9")[5], "not run");
    // Its page has the claims, and a picture of the course that the run kept.
    let output = papers(&["pages", "--from", "kept", "--to", "pages"], directory.path());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let pages = directory.path().join("pages");
    let page = std::fs::read_to_string(pages.join("ltcp-fig11.md")).unwrap();
    // Each has a control that its band rejects.
    let claims = |line: &&str| line.contains("| holds") && line.contains(" | 1 | rejected, ");
    assert_eq!(page.lines().filter(claims).count(), 4, "{page}");
    assert!(page.contains("](ltcp-fig11-1.svg)") && page.contains("quick form"), "{page}");
    assert!(!page.contains("without a fingerprint") && !page.contains("changed since"), "{page}");
    assert!(pages.join("ltcp-fig11-1.svg").is_file());
    // What no experiment has any more goes; what is no page stays.
    for name in ["ltcp-fig99.md", "ltcp-fig99-1.svg", "notes.txt"] {
        std::fs::write(pages.join(name), "old").unwrap();
    }
    assert!(
        papers(&["pages", "--from", "kept", "--to", "pages"], directory.path()).status.success()
    );
    let is_there = |name: &str| pages.join(name).exists();
    assert!(!is_there("ltcp-fig99.md") && !is_there("ltcp-fig99-1.svg") && is_there("notes.txt"));
    let check = papers(&["results", "--check", "--from", "kept"], directory.path());
    assert!(!check.status.success(), "the other experiments have no values");
    assert!(text(&check.stdout).contains("ltcp/fig9: has no values, and no reason"));
    assert!(!text(&check.stdout).contains("ltcp/fig11"), "{}", text(&check.stdout));
}

/// The table in the repository is the one that its summaries give, and nothing is wrong with them. The pages are looked at in `transom-papers`.
#[test]
fn the_table_of_results_is_current() {
    let output = papers(&["results"], &root());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let kept = std::fs::read_to_string(root().join("RESULTS.md")).unwrap();
    assert!(
        text(&output.stdout) == kept,
        "RESULTS.md is out of date; rewrite it with\n    transom papers results > RESULTS.md"
    );
    let check = papers(&["results", "--check"], &root());
    let said = text(&check.stdout);
    assert!(check.status.success() && said.contains("0 defects"), "{said}");
}

#[test]
fn experiments_can_be_listed_and_described() {
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
    // A page whose values come from a benchmark says which command makes them.
    let output = papers(&["run", "tcpu/ilp"], here);
    assert!(!output.status.success());
    assert!(text(&output.stderr).contains("--group ilp"), "{}", text(&output.stderr));
}
