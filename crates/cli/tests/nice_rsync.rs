//! The comparison of docs/nice-rsync.md in small: that it works, not what comes of it.

use std::process::Command;

use crate::support::{installed, transom, wait};

#[test]
fn the_comparison_runs_and_leaves_its_results() {
    if !installed("rsync") {
        return;
    }
    // `cargo test -p transom-cli` builds it beside the command.
    let example = transom().with_file_name("examples").join("nice_rsync");
    if !example.is_file() {
        eprintln!("SKIPPED: {} is not built", example.display());
        return;
    }
    let namespaces = Command::new("unshare").args(["-rn", "test", "-w", "/dev/net/tun"]).status();
    if !namespaces.is_ok_and(|status| status.success()) {
        eprintln!("SKIPPED: no network of our own here");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let mut command = Command::new(example);
    command.args(["--rounds", "1", "--transfers", "1", "--bytes", "300000", "--alone", "1"]);
    command.args(["--rate", "50Mbit/s", "--transom"]).arg(transom());
    command.arg("--out").arg(directory.path());
    let text = wait(&mut command).success().text();
    let beside =
        ["nothing", "rsync", "rsync --bwlimit=400", "transom exec --extension nice -- rsync"];
    for name in beside {
        assert!(text.contains(&format!("| {name} |")), "{text}");
    }
    let read = |name: &str| std::fs::read_to_string(directory.path().join(name)).unwrap();
    assert_eq!(read("nice-rsync.csv").lines().count(), 1 + 5, "a line for each transfer");
    assert!(read("nice-rsync.md").contains("| nothing |"));
    assert!(read("nice-rsync.svg").starts_with("<svg"));
}
