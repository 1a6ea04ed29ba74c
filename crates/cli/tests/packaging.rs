//! Completions and manual pages.

use std::collections::BTreeSet;
use std::fs;

use crate::support::run;

const HAS_FEATURE: bool = cfg!(feature = "packaging");

#[test]
fn a_light_build_says_how_to_get_them() {
    if HAS_FEATURE {
        return;
    }
    run(["completions", "bash"]).fails_with(1, "build with `--features packaging`");
    run(["man", "--out", "/nonexistent"]).fails_with(1, "build with `--features packaging`");
}

#[test]
fn every_shell_has_completions() {
    if !HAS_FEATURE {
        return;
    }
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = run(["completions", shell]).success().text();
        assert!(script.contains("serve") && script.contains("router"), "{shell}: {script}");
    }
    let ended = run(["completions", "tcsh"]).fails_with(1, "no completions for \"tcsh\"");
    assert!(ended.stderr.contains("bash"), "{}", ended.stderr);
}

/// bash itself reads the script, and completes a word.
#[test]
fn bash_completes_a_command() {
    if !HAS_FEATURE {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let script = directory.path().join("transom.bash");
    fs::write(&script, run(["completions", "bash"]).success().text()).unwrap();
    let line = "source \"$1\"; COMP_WORDS=(transom ro); COMP_CWORD=1; _transom transom ro transom; printf '%s\\n' \"${COMPREPLY[@]}\"";
    let output =
        std::process::Command::new("bash").args(["-c", line, "bash"]).arg(&script).output();
    let Ok(output) = output else {
        eprintln!("SKIPPED: no bash to complete a command");
        return;
    };
    let words = String::from_utf8_lossy(&output.stdout);
    assert_eq!(words.trim(), "router", "{}", String::from_utf8_lossy(&output.stderr));
}

/// Each command that the help lists has a page, and each page its sections.
#[test]
fn every_command_has_a_manual_page() {
    if !HAS_FEATURE {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let man = directory.path().join("man");
    run(["man", "--out", man.to_str().unwrap()]).success();
    let pages: BTreeSet<String> = fs::read_dir(&man)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let help = run(["--help"]).success().text();
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let mut commands = 0;
    for line in listed.take_while(|line| !line.is_empty()) {
        let name = line.split_whitespace().next().unwrap();
        if name != "help" {
            assert!(pages.contains(&format!("transom-{name}.1")), "{name}: {pages:?}");
            commands += 1;
        }
    }
    assert!(commands > 15, "{help}");
    let page = fs::read_to_string(man.join("transom-serve.1")).unwrap();
    for section in [".SH NAME", ".SH SYNOPSIS", ".SH OPTIONS", "Examples"] {
        assert!(page.contains(section), "{section}: {page}");
    }
}
