//! Files that were compiled once and are checked in.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use sha2::{Digest, Sha256};

/// Compares the sources and objects of a directory with the digests that its `build.sh` has written (`*.sha256`, as sha256sum(1) does).
///
/// # Panics
/// When a file has changed since then, or one of C or an object has no digest.
pub fn assert_unchanged(directory: impl AsRef<Path>) {
    let directory = directory.as_ref();
    let with_ending = |endings: &[&str]| -> BTreeSet<String> {
        let entries = fs::read_dir(directory).expect("the directory is there");
        let names = entries.map(|entry| entry.expect("an entry").file_name());
        let names = names.map(|name| name.into_string().expect("a name in UTF-8"));
        names.filter(|name| endings.iter().any(|ending| name.ends_with(ending))).collect()
    };
    let read = |name: &str| fs::read(directory.join(name)).expect(name);
    let mut noted = BTreeSet::new();
    for list in with_ending(&[".sha256"]) {
        let list = String::from_utf8(read(&list)).expect("text");
        for (digest, name) in list.lines().filter_map(|line| line.split_once("  ")) {
            let found = Sha256::digest(read(name));
            let found: String = found.iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(digest, found, "{name} has changed since build.sh ran");
            // Headers of another directory have their own test there.
            if !name.contains('/') {
                noted.insert(name.to_owned());
            }
        }
    }
    assert_eq!(noted, with_ending(&[".c", ".h", ".o"]), "files with a digest, and files");
}
