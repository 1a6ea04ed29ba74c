//! Files that were compiled once and are checked in.

use sha2::{Digest, Sha256};

/// Compares files with the digests that `sha256sum` wrote when the last of them was compiled from the others.
///
/// # Panics
/// When a file has changed since then, or the names are others.
pub fn assert_unchanged(written: &str, files: &[(&str, &[u8])]) {
    let written: Vec<_> = written.lines().filter_map(|line| line.split_once("  ")).collect();
    let names: Vec<_> = written.iter().map(|(_, name)| *name).collect();
    let expected: Vec<_> = files.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, expected, "files with a digest");
    for ((digest, name), (_, bytes)) in written.iter().zip(files) {
        let found: String =
            Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(*digest, found, "{name} has changed since build.sh ran");
    }
}
