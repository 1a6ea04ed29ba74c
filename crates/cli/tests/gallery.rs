//! Every scenario in `scenarios/` runs, in its quick form if it has one, and what it expects holds.

use crate::support;

use std::path::Path;
use std::process::Command;

use transom_lab::results::Store;
use transom_lab::scenario::Scenario;

#[test]
fn the_expectations_of_the_scenarios_hold() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let results = tempfile::tempdir().unwrap();
    let mut count = 0;
    for entry in std::fs::read_dir(&directory).unwrap() {
        let file = entry.unwrap().path();
        if file.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        count += 1;
        let name = file.file_stem().unwrap().to_owned();
        // Experiments with the kernel's TCP need real time, and a system that allows them.
        let scenario = Scenario::load(&file, None).unwrap();
        let emulated = scenario.sweep().any(|variant| variant.resolved.needs_emulation());
        if emulated && !support::lab() {
            continue;
        }
        let is_long = std::fs::read_to_string(&file).unwrap().contains("[forms.quick]");
        let output = Command::new(env!("CARGO_BIN_EXE_transom"))
            .args(["lab", "run", "--quiet"])
            .args(if is_long { &["--form", "quick"][..] } else { &[] })
            .args(emulated.then_some("--emulate"))
            .arg("--output")
            .args([&results.path().join(&name), &file])
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        if emulated && errors.contains("FELL BEHIND") {
            eprintln!("SKIPPED: this machine is too busy for {}: {errors}", file.display());
            continue;
        }
        assert!(output.status.success(), "{}:\n{text}{errors}", file.display());
        assert!(text.contains("bands hold") && !text.contains("FAILED"), "{text}");
        // For each run: what it was, what was seen, and what came of it.
        let store = Store::open(&results.path().join(&name)).unwrap();
        let runs = store.runs().unwrap();
        assert_eq!(runs.len(), store.plan().unwrap().unwrap().runs.len());
        for run in runs {
            assert_eq!(run.manifest.passed(), Some(true));
            for file in
                ["scenario.toml", "flows.csv", "links.csv", "completions.csv", "report.html"]
            {
                assert!(run.directory.join(file).is_file(), "{run:?} has no {file}");
            }
            assert!(run.observations().unwrap().packets > 0);
        }
    }
    assert!(count >= 7, "{count} scenarios");
}

#[test]
fn a_band_that_does_not_hold_fails_the_run() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("wrong.toml");
    let text =
        include_str!("../../../scenarios/sawtooth.toml").replace("min = 0.98", "min = 0.9999");
    std::fs::write(&file, text).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_transom"))
        .args(["lab", "run", "--json", "-o"])
        .args([&directory.path().join("results"), &file])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["passed"], false);
    let bands = json["runs"][0]["bands"].as_array().unwrap();
    let passed: Vec<bool> = bands.iter().map(|band| band["passed"].as_bool().unwrap()).collect();
    assert_eq!(passed, [false, true, true, true]);
}

#[test]
fn the_same_run_gives_the_same_bytes() {
    let directory = tempfile::tempdir().unwrap();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/lossy.toml");
    let mut all = Vec::new();
    for name in ["one", "other"] {
        let results = directory.path().join(name);
        let status = Command::new(env!("CARGO_BIN_EXE_transom"))
            .args(["lab", "run", "--quiet", "--seeds", "1", "-o"])
            .args([&results, &file])
            .output()
            .unwrap()
            .status;
        assert!(status.success());
        let run = Store::open(&results).unwrap().runs().unwrap().remove(0);
        // The manifest has the hashes of all others.
        assert_eq!(run.manifest.files.len(), 7);
        let files = ["run.json".to_owned(), format!("flows.{}", support::TABLE)];
        all.push(files.map(|file| std::fs::read(run.directory.join(file)).unwrap()));
    }
    assert!(all[0] == all[1]);
}

/// Those take minutes of real time, so nothing but their text is checked.
#[test]
fn scenarios_beside_the_kernel_load() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/kernel");
    let mut count = 0;
    for entry in std::fs::read_dir(&directory).unwrap() {
        let file = entry.unwrap().path();
        let scenario = Scenario::load(&file, None)
            .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        assert!(
            scenario.sweep().all(|variant| variant.resolved.needs_emulation()),
            "{}",
            file.display()
        );
        count += 1;
    }
    assert!(count >= 2, "{count} scenarios");
}

/// The matrix of paths takes hours, and most of it real time. `scenarios/paths.toml`, which runs above, has a dozen of its cells.
#[test]
fn scenarios_of_the_matrix_load() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/paths");
    let mut count = 0;
    for entry in std::fs::read_dir(&directory).unwrap() {
        let file = entry.unwrap().path();
        if file.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        let scenario = Scenario::load(&file, None)
            .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let beside_the_kernel = file.file_name().unwrap().to_string_lossy().starts_with("kernel-");
        let emulated = scenario.sweep().all(|variant| variant.resolved.needs_emulation());
        assert_eq!(emulated, beside_the_kernel, "{}", file.display());
        count += 1;
    }
    assert!(count >= 20, "{count} scenarios");
}
