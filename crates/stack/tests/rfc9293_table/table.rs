//! The table itself: `rfc9293.toml` as typed rows, and the ids the RFC defines.

use serde::Deserialize;

/// The keyword of a requirement (RFC 2119), as the columns of RFC 9293's Appendix B name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(crate) enum Kind {
    #[serde(rename = "MUST")]
    Must,
    #[serde(rename = "MUST NOT")]
    MustNot,
    #[serde(rename = "SHOULD")]
    Should,
    #[serde(rename = "SHOULD NOT")]
    ShouldNot,
    #[serde(rename = "MAY")]
    May,
}

impl Kind {
    /// Every keyword, in the order the page lists them.
    pub(crate) const ALL: [Self; 5] =
        [Self::Must, Self::MustNot, Self::Should, Self::ShouldNot, Self::May];

    /// The keyword as the RFC writes it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Must => "MUST",
            Self::MustNot => "MUST NOT",
            Self::Should => "SHOULD",
            Self::ShouldNot => "SHOULD NOT",
            Self::May => "MAY",
        }
    }

    /// How many rows of Appendix B have their mark in this keyword's column.
    pub(crate) fn appendix_b_rows(self) -> usize {
        match self {
            Self::Must => 68,
            Self::MustNot => 8,
            Self::Should => 30,
            Self::ShouldNot => 5,
            Self::May => 15,
        }
    }

    /// Whether ids of this prefix may carry this keyword (RFC 9293, 2.1: the negations share the
    /// series).
    pub(crate) fn fits(self, prefix: &str) -> bool {
        match self {
            Self::Must | Self::MustNot => prefix == "MUST",
            Self::Should => prefix == "SHLD" || prefix == "REC",
            Self::ShouldNot => prefix == "SHLD",
            Self::May => prefix == "MAY",
        }
    }
}

/// Whether the workspace meets a requirement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(crate) enum Status {
    /// Met: marked in the code and in a test.
    #[serde(rename = "done")]
    Done,
    /// Not met, for the reason in the note.
    #[serde(rename = "not done")]
    NotDone,
}

impl Status {
    /// Every status, in the order the page lists them.
    pub(crate) const ALL: [Self; 2] = [Self::Done, Self::NotDone];

    /// The status as the table writes it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::NotDone => "not done",
        }
    }
}

/// One requirement; the fields are described at the head of `rfc9293.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Requirement {
    pub(crate) id: String,
    pub(crate) topic: String,
    pub(crate) section: String,
    pub(crate) kind: Kind,
    #[serde(default)]
    pub(crate) appendix_b: Vec<Kind>,
    pub(crate) text: String,
    pub(crate) status: Status,
    #[serde(default)]
    pub(crate) note: String,
    #[serde(default)]
    pub(crate) rust: String,
    #[serde(default)]
    pub(crate) c: String,
}

impl Requirement {
    /// Its rows in Appendix B.
    pub(crate) fn rows(&self) -> &[Kind] {
        if self.appendix_b.is_empty() { std::slice::from_ref(&self.kind) } else { &self.appendix_b }
    }

    /// What programs call or see, and where a test of that stands: in Rust and in C.
    pub(crate) fn interfaces(&self) -> [(&str, &'static str); 2] {
        [(&self.rust, "net/tests/"), (&self.c, "sansio/tests/")]
    }
}

/// Reads the table.
pub(crate) fn parse(text: &str) -> Result<Vec<Requirement>, toml::de::Error> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct File {
        requirement: Vec<Requirement>,
    }
    toml::from_str::<File>(text).map(|file| file.requirement)
}

/// Every id RFC 9293 defines.
pub(crate) fn ids() -> impl Iterator<Item = String> {
    [("MUST", 69), ("SHLD", 31), ("MAY", 18), ("REC", 1)]
        .into_iter()
        .flat_map(|(prefix, last)| (1..=last).map(move |number| format!("{prefix}-{number}")))
}
