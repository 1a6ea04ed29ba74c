//! The commits whose programs made the stored results.
//!
//! A result names its program by a hash of the sources (`transom_lab`'s build script). `papers/commits.py` finds the commit with these sources and
//! writes `papers/commits.json`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

/// A commit for each hash of sources.
static TABLE: LazyLock<BTreeMap<&str, &str>> = LazyLock::new(|| {
    let text = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/papers/commits.json"));
    // A test reads it too.
    serde_json::from_str(text).unwrap_or_default()
});

/// The commit of a program such as "0.1.0+41a3a4bac7c3", shortened. `None` if no commit has exactly its sources.
fn commit_of(version: &str) -> Option<&'static str> {
    let (_, sources) = version.split_once('+')?;
    TABLE.get(sources)?.get(..12)
}

/// The program with its commit, for a page.
pub(super) fn named(version: &str) -> String {
    match commit_of(version) {
        Some(commit) => format!("{version} (commit `{commit}`)"),
        None => format!("{version} (of sources between two commits)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_one() {
        assert!(!TABLE.is_empty());
        for (sources, commit) in &*TABLE {
            let is_hex = |text: &str| text.chars().all(|c| c.is_ascii_hexdigit());
            assert!(sources.len() == 12 && is_hex(sources), "{sources}");
            assert!(commit.len() == 40 && is_hex(commit), "{commit}");
            assert_eq!(commit_of(&format!("0.1.0+{sources}")), commit.get(..12));
        }
        assert_eq!(commit_of("0.1.0"), None);
        assert!(named("0.1.0+000000000000").contains("between two commits"));
    }
}
