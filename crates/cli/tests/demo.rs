//! The demo: both sides have the congestion control that is asked for, and it is said.

use std::fs;
use std::path::Path;

use crate::support::{lab, run, sha256_of};

/// A short demo with these options: its summary and its report.
fn demo(options: &[&str]) -> (serde_json::Value, String) {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("out");
    let common = ["demo", "--size", "1MiB", "--loss", "0", "--out", out.to_str().unwrap()];
    let ended = run([&common[..], &["--json"], options].concat()).success();
    let summary = serde_json::from_str(&ended.text()).unwrap();
    (summary, std::fs::read_to_string(out.join("report.html")).unwrap())
}

#[track_caller]
fn has(options: &[&str], ours: &str, kernels: &str) {
    let (summary, page) = demo(options);
    let transfers = &summary["transfers"];
    assert_eq!(
        (&transfers[0]["congestion"], &transfers[1]["congestion"]),
        (&ours.into(), &kernels.into())
    );
    assert_eq!(transfers[1]["name"], format!("kernel ({kernels}) → Transom"));
    assert!(page.contains(&format!("Congestion control: Transom {ours}, the kernel {kernels}")));
    assert!(page.contains("Congestion control of the sender"));
}

#[test]
fn both_sides_have_the_same_unless_told_otherwise() {
    if !lab() {
        return;
    }
    has(&[], "cubic", "cubic");
    has(&["--tcp", "reno"], "reno", "reno");
    has(&["--tcp", "reno", "--kernel-congestion", "cubic"], "reno", "cubic");
    has(&["--kernel-congestion", "reno"], "cubic", "reno");
    // What the kernel does not know.
    has(&["--tcp", "ltcp"], "ltcp", "cubic");
    let (_, page) = demo(&["--tcp", "ltcp"]);
    assert!(page.contains("the kernel cubic, as the kernel has no ltcp"));
}

#[test]
fn a_second_transom_has_the_same() {
    let (summary, page) = demo(&["--memory", "--tcp", "sack + reno"]);
    assert_eq!(summary["transfers"][0]["name"], "Transom (reno) → a second Transom");
    assert_eq!(summary["transfers"][1]["congestion"], "reno");
    assert!(page.contains("Congestion control: Transom reno, a second Transom reno"));
}

#[test]
fn a_profile_that_delivers_no_stream_is_refused() {
    run(["demo", "--memory", "--tcp", "unordered"]).fails_with(1, "but this one reads a stream");
    run(["demo", "--kernel-congestion", "vegas"])
        .fails_with(2, "possible values: reno, cubic, bbr");
}

/// The first look at Transom: with three seeds together, it sends hardly more segments again than the kernel does over the same paths, which lose the same
/// packets. Half as many again and twenty more for each seed are allowed: a queue that is full once costs either side that many. `.ci/demo` holds each seed
/// to its bars, on a machine that does nothing else.
#[test]
fn the_default_sends_as_little_again_as_the_kernel() {
    if !lab() {
        return;
    }
    let mut together = (0, 0);
    for seed in ["1", "2", "3"] {
        let directory = tempfile::tempdir().unwrap();
        let out = directory.path().join("out");
        let ended =
            run(["demo", "--json", "--seed", seed, "--out", out.to_str().unwrap()]).success();
        let summary: serde_json::Value = serde_json::from_str(&ended.text()).unwrap();
        let again = |number: usize| {
            summary["transfers"][number]["retransmitted_segments"].as_u64().unwrap()
        };
        let rate =
            |number: usize| summary["transfers"][number]["megabits_per_second"].as_f64().unwrap();
        let (ours, kernels) = (again(0), again(1));
        // The rates are for the reader: on a busy machine they say little.
        eprintln!(
            "seed {seed}: {ours} beside {kernels} segments again, {:.2} of the kernel's goodput",
            rate(0) / rate(1)
        );
        together = (together.0 + ours, together.1 + kernels);
    }
    let (ours, kernels) = together;
    assert!(2 * ours <= 3 * kernels + 120, "{ours} beside {kernels}");
}

/// What the README says of its picture is what the run in the picture measured. `.ci/demo COMMAND --picture` writes the picture and the values.
#[test]
fn the_readme_says_what_its_picture_shows() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let run: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(root.join("docs/demo.json")).unwrap()).unwrap();
    let readme = fs::read_to_string(root.join("README.md")).unwrap().replace('\n', " ");
    assert_eq!(run["picture_sha256"], sha256_of(&root.join("docs/demo.png")));
    let ours = &run["transfers"][0];
    let kernels = &run["transfers"][1];
    let rate = |transfer: &serde_json::Value| transfer["megabits_per_second"].as_f64().unwrap();
    let mebibytes = run["bytes"].as_u64().unwrap() >> 20;
    for sentence in [
        format!("The demo sends {mebibytes} MiB from Transom to the kernel's TCP and back"),
        format!(
            "In the run that the picture shows, Transom sent at {:.1} Mbit/s and the kernel at {:.1}.",
            rate(ours),
            rate(kernels)
        ),
        format!(
            "Transom sent {} segments again, and the kernel {}.",
            ours["retransmitted_segments"], kernels["retransmitted_segments"]
        ),
    ] {
        assert!(readme.contains(&sentence), "README.md does not say: {sentence}");
    }
    // "Both directions use CUBIC."
    assert_eq!([&ours["congestion"], &kernels["congestion"]], ["cubic", "cubic"]);
}
