//! The file for systemd.

use std::process::Command;

const UNIT: &str = include_str!("../../transom-broker.service");

#[test]
fn systemd_accepts_the_unit() {
    let present = Command::new("systemd-analyze").arg("--version").output();
    if !present.is_ok_and(|output| output.status.success()) {
        eprintln!("SKIPPED: systemd-analyze is not installed; the unit was not verified");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("transom-broker.service");
    // The program need not be installed here.
    let program = std::env::current_exe().unwrap();
    let text = UNIT.replace("/usr/bin/transom", program.to_str().unwrap());
    assert_ne!(text, UNIT);
    std::fs::write(&path, text).unwrap();
    let output = Command::new("systemd-analyze").arg("verify").arg(&path).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    // Units of the system's own may have defects of their own.
    let ours: Vec<_> = errors.lines().filter(|line| line.contains("transom-broker")).collect();
    assert!(ours.is_empty(), "{ours:?}");
}

/// A mount namespace of the service's own would take a BPF file system that the broker has mounted with it, and the guards.
#[test]
fn the_unit_has_no_mount_namespace() {
    for line in UNIT.lines() {
        let name = line.split('=').next().unwrap();
        let own = name.starts_with("Protect") || name.starts_with("Private");
        assert!(!own && !name.ends_with("Paths") && name != "RootDirectory", "{line}");
    }
}
