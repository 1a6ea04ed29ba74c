//! Every command that works for long checks before that whether its outputs can be written.

use std::fs;

use crate::support::{lab, run};

/// A path in a directory that does not exist.
const NOWHERE: &str = "/no-such-directory/output";

/// Each of these ends at once: no network is made, no program is started, no input is read.
#[test]
fn a_file_in_no_directory_is_refused_before_any_work() {
    let file = |name: &str| format!("{NOWHERE}.{name}");
    let (page, log) = (file("html"), file("jsonl"));
    let commands: &[&[&str]] = &[
        &["exec", "--report", &page, "--", "false"],
        &["get", "http://10.9.0.1/", "-o", NOWHERE],
        &["recv", "9000", "-o", NOWHERE],
        &["demo", "--memory", "--size", "1KiB", "--out", "/dev/null/demo"],
        &["demo", "--memory", "--size", "1KiB", "--pcap", NOWHERE],
        &["log", "plot", "input.tlog", "-o", &page],
        &["log", "convert", "input.tlog", &log],
        &["lab", "merge", "input", "-o", "/dev/null/results"],
        &["papers", "run", "ltcp/fig5", "-o", "/dev/null/results"],
        &["papers", "run", "ltcp/fig5", "--keep", "/dev/null/kept"],
        &["papers", "keep", "--to", "/dev/null/kept"],
        &["papers", "pages", "--from", ".", "--to", "/dev/null/pages"],
    ];
    for command in commands {
        let ended = run(command.iter().copied());
        let status = ended.fails_with(1, "cannot write");
        assert!(status.text().is_empty(), "{command:?}: {}", status.text());
    }
    let directory = tempfile::tempdir().unwrap();
    let scenario = directory.path().join("short.toml");
    let text = "[scenario]\nname = \"short\"\nduration = \"1s\"\n[hosts.a]\n[hosts.b]\n[[links]]\nname = \"path\"\nfrom = \"a\"\nto = \"b\"\ndelay = \"10ms\"\n[[flows]]\nname = \"flow\"\nfrom = \"a\"\nto = \"b\"\nkind = \"bulk\"\n";
    fs::write(&scenario, text).unwrap();
    let lab = ["lab", "run", scenario.to_str().unwrap(), "-o", "/dev/null/results"];
    run(lab).fails_with(1, "cannot write to /dev/null/results: Not a directory");
}

#[test]
fn a_program_is_not_started_for_a_report_that_cannot_be_written() {
    if !lab() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let mark = directory.path().join("started");
    let touch = |report: &str| {
        run(["exec", "--lab", "--report", report, "--", "touch", mark.to_str().unwrap()])
    };
    touch(NOWHERE).fails_with(1, "cannot write /no-such-directory/output: No such file");
    assert!(!mark.exists());
    let page = directory.path().join("page.html");
    touch(page.to_str().unwrap()).success();
    assert!(mark.exists() && page.exists());
}

#[test]
fn a_demo_that_no_disk_holds_writes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("out");
    let demo = ["demo", "--memory", "--size", "100000GB", "--out", out.to_str().unwrap()];
    run(demo).fails_with(1, "not enough room on the disk");
    assert!(!out.exists());
}

/// A result of before is worth more than a command that fails.
#[test]
fn a_check_leaves_an_older_output_as_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let old = directory.path().join("old.jsonl");
    fs::write(&old, "older").unwrap();
    run(["log", "convert", "no-such-file.tlog", old.to_str().unwrap()])
        .fails_with(1, "cannot read no-such-file.tlog");
    assert_eq!(fs::read_to_string(&old).unwrap(), "older");
}
