//! Names of nodes, links and flows.
//!
//! Names are ordered as people count: `client2` before `client10`. The order of the hosts decides their addresses and random
//! streams, so it may not depend on where in the file they happen to be.

use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// A name: a letter, then letters, digits, `-` and `_`. A clone costs next to nothing.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Name {
    text: Arc<str>,
    /// The end of the part before the final number, and (in `number`) the start of that number without leading zeros: names are
    /// compared often.
    stem: usize,
    number: usize,
}

/// The longest name, in bytes.
const LONGEST: usize = 64;

impl Name {
    fn of(text: &str) -> Name {
        let stem = text.trim_end_matches(|c: char| c.is_ascii_digit()).len();
        let digits = text.get(stem..).unwrap_or_default();
        let number = text.len() - digits.trim_start_matches('0').len();
        Name { text: text.into(), stem, number }
    }

    /// The name that `text` is; `None` if it is none.
    pub(crate) fn new(text: &str) -> Option<Name> {
        let mut characters = text.chars();
        let first = characters.next().is_some_and(|c| c.is_ascii_alphabetic());
        let rest = characters.all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
        (first && rest && text.len() <= LONGEST).then(|| Name::of(text))
    }

    /// A name that this program gives.
    pub(crate) fn literal(text: &'static str) -> Name {
        debug_assert!(Name::new(text).is_some(), "{text}");
        Name::of(text)
    }

    /// The name of the `number`th member of the group with this name, from one. Not checked against the longest name: members
    /// of a group may be a little longer.
    pub(crate) fn member(&self, number: u32) -> Name {
        Name::of(&format!("{self}{number}"))
    }

    /// The name of what joins two nodes.
    pub(crate) fn joining(from: &Name, to: &Name) -> Name {
        Name::of(&format!("{from}-{to}"))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The text before the number at the end, the number's length, and its digits.
    fn parts(&self) -> (&str, usize, &str) {
        let stem = self.text.get(..self.stem).unwrap_or_default();
        let digits = self.text.get(self.number..).unwrap_or_default();
        (stem, digits.len(), digits)
    }
}

impl Ord for Name {
    fn cmp(&self, other: &Name) -> Ordering {
        self.parts().cmp(&other.parts()).then_with(|| self.text.cmp(&other.text))
    }
}

impl PartialOrd for Name {
    fn partial_cmp(&self, other: &Name) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

impl From<Name> for String {
    fn from(name: Name) -> String {
        name.text.to_string()
    }
}

impl TryFrom<String> for Name {
    type Error = String;

    fn try_from(text: String) -> Result<Name, String> {
        // Names that this program has composed are read back: a name, a hyphen, a name and its numbers.
        let stem = text.get(..LONGEST).unwrap_or(&text);
        let rest = text.get(stem.len()..).unwrap_or_default();
        let allowed = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if text.len() <= 4 * LONGEST && Name::new(stem).is_some() && rest.chars().all(allowed) {
            return Ok(Name::of(&text));
        }
        Err(super::error::Problem::BadName(text).to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_counted_as_people_count() {
        let mut names: Vec<Name> = ["b", "a10", "a2", "a", "a-1", "a02", "A1"]
            .into_iter()
            .map(|text| Name::new(text).unwrap())
            .collect();
        names.sort();
        let sorted: Vec<&str> = names.iter().map(Name::as_str).collect();
        assert_eq!(sorted, ["A1", "a", "a02", "a2", "a10", "a-1", "b"]);
    }

    #[test]
    fn a_name_is_a_word() {
        for text in ["", "1a", "a b", "a.b", "ä", "-", &"a".repeat(65)] {
            assert_eq!(Name::new(text), None, "{text}");
        }
        assert!(Name::new("tcp-x_1").is_some());
    }
}
