//! A table itself: a file such as `rfc9293.toml` as typed rows.

use serde::Deserialize;

/// The keyword of a requirement (RFC 2119). RFC 8200 and RFC 792 write it in small letters.
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
    /// It asks nothing of what is built here, for the reason in the note.
    #[serde(rename = "not applicable")]
    NotApplicable,
}

impl Status {
    /// Every status, in the order the page lists them.
    pub(crate) const ALL: [Self; 3] = [Self::Done, Self::NotDone, Self::NotApplicable];

    /// The status as the table writes it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::NotDone => "not done",
            Self::NotApplicable => "not applicable",
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
    /// Its rows in the document's own list, where that is not the one row `kind` says: RFC 9293's Appendix B.
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
    /// Its rows in the document's own list.
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
