//! The examples of application level framing run, and the documents have what they print.

use std::path::{Path, PathBuf};
use std::process::Command;

/// An example that Cargo has built beside this test.
fn printed(name: &str, arguments: &[&str]) -> String {
    let test = std::env::current_exe().unwrap();
    let profile: PathBuf = test.ancestors().nth(2).unwrap().to_owned();
    let output = Command::new(profile.join("examples").join(name)).args(arguments).output();
    let output = output.unwrap_or_else(|error| {
        panic!("{name} is not built ({error}): cargo test -p transom-examples builds the examples")
    });
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn document(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs").join(name)
}

/// The page has the very lines.
fn check(name: &str) {
    let lines = printed(name, &[]);
    let page = std::fs::read_to_string(document("alf.md")).unwrap();
    for line in lines.lines() {
        assert!(page.contains(line.trim_end()), "docs/alf.md lacks a line of {name}:\n{lines}");
    }
}

#[test]
fn a_file_goes_on_past_a_lost_unit() {
    check("alf_file");
}

#[test]
fn a_video_goes_on_past_a_lost_frame() {
    check("alf_video");
}

/// The picture in the documents is what the example draws. `TRANSOM_BLESS=1` writes it.
#[test]
fn the_pictures_are_current() {
    for name in ["alf_file", "alf_video"] {
        let file = document(&format!("{}.svg", name.replace('_', "-")));
        if std::env::var_os("TRANSOM_BLESS").is_some() {
            printed(name, &["--plot", file.to_str().unwrap()]);
        }
        let directory = tempfile::tempdir().unwrap();
        let drawn = directory.path().join("drawn.svg");
        printed(name, &["--plot", drawn.to_str().unwrap()]);
        let [drawn, kept] = [drawn, file].map(|path| std::fs::read_to_string(path).unwrap());
        assert!(
            drawn == kept,
            "docs/{}.svg is old: TRANSOM_BLESS=1 writes it",
            name.replace('_', "-")
        );
    }
}

#[test]
fn they_explain_themselves() {
    for name in ["alf_file", "alf_video"] {
        let help = printed(name, &["--help"]);
        assert!(help.contains("Usage:") && help.contains("--link TEXT"), "{help}");
    }
}
