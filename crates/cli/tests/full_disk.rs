//! A capture that cannot be written is said to be incomplete and fails the command, which has done all else.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::{TABLE, content, installed, lab, run, sha256_of, transom, wait};

const FULL: &str = "/dev/full";

fn has_full_device() -> bool {
    let has = Path::new(FULL).exists();
    if !has {
        eprintln!("SKIPPED: no device that is always full");
    }
    has
}

#[test]
fn a_server_says_that_its_capture_is_incomplete() {
    if !has_full_device() || !lab() {
        return;
    }
    let server = ["serve", ".", "--pcap", FULL, "--run", "true"];
    let ended = run(server).fails_with(1, "the capture /dev/full is incomplete: No space left");
    assert!(ended.stderr.contains("0 requests"), "{}", ended.stderr);
    // A log begins at once, so it is known before anything else is done.
    let server = ["serve", ".", "--log", FULL, "--run", "true"];
    run(server).fails_with(1, "cannot write /dev/full: No space left");
}

#[test]
fn a_transfer_is_whole_though_its_capture_is_not() {
    if !has_full_device() || !lab() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let (file, copy) = (directory.path().join("file"), directory.path().join("copy"));
    // More than the capture's buffer holds, so that it fails on the way.
    let digest = content(&file, 3_000_000);
    let program = transom();
    let receiver = [program.to_str().unwrap(), "recv", "9000", "--side", "kernel", "-o"];
    let (file, copy) = (file.to_str().unwrap(), copy.to_str().unwrap());
    let send = ["send", file, "10.9.0.1:9000", "--pcap", FULL, "--run"];
    let ended = run([&send[..], &receiver, &[copy]].concat());
    let ended = ended.fails_with(1, "the capture /dev/full is incomplete: No space left on device");
    assert!(ended.stderr.contains("sent "), "{}", ended.stderr);
    assert_eq!(sha256_of(Path::new(copy)), digest);
}

#[test]
fn the_demo_has_its_report() {
    if !has_full_device() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("out");
    let demo = ["demo", "--memory", "--size", "256KiB", "--rate", "1Gbit/s", "--delay", "1ms"];
    let where_to = ["--pcap", FULL, "--out", out.to_str().unwrap(), "--json"];
    let ended = run([&demo[..], &where_to].concat());
    let ended = ended.fails_with(1, "the capture /dev/full is incomplete: No space left");
    let summary: serde_json::Value = serde_json::from_str(&ended.text()).unwrap();
    assert_eq!(summary["intact"], true);
    assert!(summary["capture_error"].as_str().unwrap().contains("No space left"), "{summary}");
    assert!(out.join("report.html").is_file());
}

/// On a small disk: what a run has seen is kept, and the capture is made when there is room.
#[test]
fn a_run_is_kept_without_its_capture() {
    if !installed("unshare") || !installed("mount") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("test.toml");
    let text = "[scenario]\nname = \"test\"\nduration = \"8s\"\n[hosts.a]\n[hosts.b]\n\
                [[links]]\nname = \"path\"\nfrom = \"a\"\nto = \"b\"\nrate = \"10Mbit/s\"\ndelay = \"10ms\"\n\
                [[flows]]\nname = \"flow\"\nfrom = \"a\"\nto = \"b\"\nkind = \"bulk\"\n\
                [measure]\ncapture = [\"path\"]\n[[expect]]\nmeasure = \"goodput\"\nflow = \"flow\"\nmin = \"1Mbit/s\"\n";
    fs::write(&file, text).unwrap();
    let disk = directory.path().join("disk");
    fs::create_dir(&disk).unwrap();
    let script = "mount -t tmpfs -o size=4m tmpfs disk || exit 99
        \"$0\" lab run test.toml -q -o disk/results 2>first; echo $? >first.status
        mkdir kept && cp disk/results/*/* kept
        mount -o remount,size=200m disk || exit 99
        \"$0\" lab run test.toml -q -o disk/results 2>again; echo $? >again.status
        cp disk/results/*/capture-* .";
    let ended = wait(
        Command::new("unshare")
            .args(["--user", "--map-root-user", "--mount", "sh", "-c", script])
            .arg(transom())
            .current_dir(directory.path()),
    );
    if ended.code != Some(0) && ended.code == Some(99) || ended.stderr.contains("unshare:") {
        eprintln!("SKIPPED: no small disk here: {}", ended.stderr);
        return;
    }
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let said = |name: &str| fs::read_to_string(directory.path().join(name)).unwrap();
    let first = said("first");
    assert_eq!(said("first.status").trim(), "1", "{first}");
    assert!(first.contains("capture-path@a.pcapng cannot be written: No space left"), "{first}");
    assert!(first.contains("1 of 1 runs lack a capture or a log"), "{first}");
    let table = format!("links.{TABLE}");
    for file in ["run.json", "flows.csv", &table, "report.html"] {
        assert!(directory.path().join("kept").join(file).is_file(), "{file}");
    }
    assert!(!directory.path().join("kept/capture-path@a.pcapng").exists());
    // The files that are there are not taken for complete.
    assert_eq!(said("again.status").trim(), "0", "{}", said("again"));
    assert!(
        fs::metadata(directory.path().join("capture-path@a.pcapng")).unwrap().len() > 5_000_000
    );
}
