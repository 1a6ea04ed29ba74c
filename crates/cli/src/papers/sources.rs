//! Statements and lines of Transom's own sources, which some papers count of theirs: `papers/results/sources.json`.
//!
//! A test of `transom-extensions` counts them and keeps the file current, so no number of it is written twice.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use super::summary::stored;

/// What was counted, by name.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(transparent)]
pub(super) struct Sources(BTreeMap<String, Count>);

/// A count of a part of the sources.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Count {
    statements: u32,
    lines: u32,
}

/// Parts of the sources that a page names.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct SourceChoice {
    /// Their names.
    pub(super) of: Vec<String>,
    /// Whether lines are shown instead of statements.
    #[serde(default)]
    pub(super) lines: bool,
}

impl Sources {
    /// The file of a directory; nothing if there is none.
    pub(super) fn read(directory: &Path) -> anyhow::Result<Sources> {
        Ok(stored(&directory.join("sources.json"))?.unwrap_or_default())
    }

    /// One count.
    pub(super) fn value(&self, name: &str, lines: bool) -> Option<f64> {
        let count = self.0.get(name)?;
        Some(if lines { count.lines } else { count.statements }.into())
    }

    /// All of them together.
    pub(super) fn sum(&self, choice: &SourceChoice) -> Option<f64> {
        choice.of.iter().map(|name| self.value(name, choice.lines)).sum()
    }

    /// All of them in words: "79, 41".
    pub(super) fn told(&self, choice: &SourceChoice) -> Option<String> {
        let each = choice.of.iter().map(|name| self.value(name, choice.lines));
        let each: Option<Vec<String>> = each.map(|value| Some(value?.to_string())).collect();
        each.map(|all| all.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parts are added up; a name that nothing has gives no number.
    #[test]
    fn parts_are_added_up() {
        let text =
            r#"{ "a": { "statements": 3, "lines": 5 }, "b": { "statements": 4, "lines": 9 } }"#;
        let sources: Sources = serde_json::from_str(text).unwrap();
        let of = |names: &[&str], lines| SourceChoice {
            of: names.iter().map(|name| (*name).to_owned()).collect(),
            lines,
        };
        assert_eq!(sources.sum(&of(&["a", "b"], false)), Some(7.0));
        assert_eq!(sources.sum(&of(&["a", "b"], true)), Some(14.0));
        assert_eq!(sources.told(&of(&["a", "b"], false)).as_deref(), Some("3, 4"));
        assert_eq!(sources.sum(&of(&["a", "c"], false)), None);
    }
}
